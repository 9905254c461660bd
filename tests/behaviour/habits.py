#!/usr/bin/python3
"""Habits from notebooks in Python code: !command, %magic, %%magic (TAP)."""

import json
import sys

from oneshot import Tap, run

# code, what it prints on stdout, name
HABITS = (
    ("!echo hi", "hi\n", "!command"),
    ("x = !echo a; echo b\nx", "['a', 'b']\n", "its output as a list"),
    ("name = 'n'\n!echo {1 + 1} $name $HOME", "2 n /home/user\n", "values of the session in it"),
    ("for i in range(2):\n    !echo {i}", "0\n1\n", "inside a block"),
    ("!echo a \\\n  b", "a b\n", "over two lines"),
    ("!false\n_exit_code", "1\n", "its status"),
    ("s = '''\n!echo no\n%cd no\n'''\nlen(s)", "17\n", "not in a string"),
    ("x = (7\n%4)\nx", "3\n", "not in an expression"),
    ("%cd /tmp\n%pwd", "/tmp\n'/tmp'\n", "%cd and %pwd"),
    ("%env A=b\nimport os; os.environ['A']", "'b'\n", "%env"),
    ("%matplotlib inline\n7", "7\n", "what is about another front end is ignored"),
    ("%%bash\necho $((40 + 2))", "42\n", "%%bash"),
    ("%%writefile /tmp/f\na\nb\n", "Writing /tmp/f\n", "%%writefile"),
)


def main():
    tap = Tap()
    for source, wanted, name in HABITS:
        status, out, err, _ = run(["run", "--level=permissive", "-e", source])
        tap.check(status == 0 and out.decode() == wanted, "habit: " + name, status, out, err)
    for source, parts in (("%time 1 + 1", (b"Wall time: ", b"\n2\n")), ("%%time\nx = 4\nx + 1", (b"Wall time: ", b"\n5\n"))):
        status, out, err, _ = run(["run", "-e", source])
        tap.check(status == 0 and all(p in out for p in parts), "habit: " + source.split("\n")[0], status, out, err)
    status, out, err, _ = run(["run", "-e", "%timeit -n 10 -r 2 1 + 1"])
    tap.check(status == 0 and b"best of 2, 10 loops" in out, "habit: options of %timeit", status, out, err)
    status, out, err, _ = run(["run", "-e", "x = 1\n%%bash\necho"])
    tap.check(status == 1 and b"%%bash must be the first line" in err, "habit: a cell magic that is not first", status, out, err)
    status, out, err, _ = run(["run", "-e", "%nosuch"])
    tap.check(status == 1 and b"there is no magic %nosuch here; there are %cd" in err, "habit: an unknown magic", err)
    status, out, err, _ = run(["run", "-e", "x = 1\ny = = 2\n!echo"])
    tap.check(status == 1 and b"line 2" in err and b"y = = 2" in err, "habit: a syntax error keeps its line", err)
    status, out, err, _ = run(["run", "--json", "-e", "!echo x\n%pwd"])
    tap.check(status == 0 and json.loads(out)["warnings"] == [], "habit: no warning of what a magic became", status, out, err)
    # No new door: a command is what subprocess may start.
    for source in ("!echo through", "%%bash\necho through", "x = !echo through\nprint(x)"):
        status, out, err, _ = run(["run", "--level=strict", "-e", source])
        tap.check(status != 0 and b"through" not in out, "habit: strict refuses " + source.split("\n")[0], status, out, err)
    status, out, err, _ = run(["validate", "-e", "!ls\n%cd /tmp\nx = 1"])
    tap.check(status == 0, "habit: validate knows them", out, err)
    tap.done()


sys.exit(main())

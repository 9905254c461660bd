#!/usr/bin/python3
"""How the program is called: where code and its arguments come from, odd but valid code, and what our own ends lead to."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from oneshot import CORDON, become, main, run

BOM = "\ufeff"
ARGV = {"python": "import sys; print(*sys.argv[1:], sep='|')", "r": "cat(commandArgs(TRUE), sep='|'); cat('\\n')",
        "node": "console.log(process.argv.slice(2).join('|'))", "sh": "IFS='|'; echo \"$*\""}
# name, guest, code, what is printed
CODES = [
    ("nothing but a comment", "python", "# x", ""),
    ("nothing but a comment", "r", "# x", ""),
    ("nothing but a comment", "node", "// x", ""),
    ("nothing but a comment", "sh", "# x", ""),
    ("lines that end as on Windows", "python", "x = 1\r\nif x:\r\n    x = 2\r\nx\r\n", "2\n"),
    ("lines that end as on Windows", "r", "x <- 1\r\nif (x == 1) {\r\n  x <- 2\r\n}\r\nx\r\n", "[1] 2\n"),
    ("lines that end as on Windows", "node", "let x = 1\r\nif (x) {\r\n  x = 2\r\n}\r\nx\r\n", "2\n"),
    ("a byte order mark", "python", BOM + "1 + 1", "2\n"),
    ("a byte order mark", "r", BOM + "1 + 1", "[1] 2\n"),
    ("a byte order mark", "node", BOM + "1 + 1", "2\n"),
    ("a long line", "python", "len('%s')" % ("y" * 100000), "100000\n"),
    ("a long line", "r", "nchar('%s')" % ("y" * 100000), "[1] 100000\n"),
    ("a long line", "node", "'%s'.length" % ("y" * 100000), "100000\n"),
    ("a long line", "sh", "x=%s; echo ${#x}" % ("y" * 60000), "60000\n"),
    ("tabs", "python", "if 1:\n\tprint('tab')", "tab\n"),
    ("no line end at the end, and many", "python", "1\n2\n\n\n\n", "2\n"),
]


def codes(tap, who, uid):
    for name, guest, code, want in CODES:
        status, out, err, _ = run(["run", "-g", guest, "-e", code], uid)
        tap.check((status, out.decode(), err) == (0, want, b""), f"{who}: {guest}: {name}", status, out, err)


def arguments(tap, who, uid):
    """After the file or the code everything is the code's own, whatever it looks like."""
    for guest, code in ARGV.items():
        for words in (["a b", "", "é"], ["--json", "-x", "--", "c"]):
            status, out, err, _ = run(["run", "-g", guest, "-e", code, "--", *words], uid)
            tap.check((status, out.decode()) == (0, "|".join(words) + "\n"), f"{who}: {guest}: arguments {words}", status, out, err)
        status, out, err, _ = run(["run", "-g", guest, "-", "x", "-y"], uid, stdin=code.encode())
        tap.check((status, out) == (0, b"x|-y\n"), f"{who}: {guest}: code from standard input", status, out, err)


def paths(tap, who, uid):
    top = tempfile.mkdtemp(prefix="invocation-")
    os.chmod(top, 0o755)
    os.mkdir(os.path.join(top, "sp ace"))
    os.symlink("sp ace", os.path.join(top, "link"))
    for name in ("sp ace/a b.py", "sp ace/ñ.py", "sp ace/-d.py"):
        with open(os.path.join(top, name), "w", encoding="ascii") as f:
            f.write("print('ran')")

    def go(words, where):
        return subprocess.run([CORDON, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              cwd=os.path.join(top, where), preexec_fn=become(uid), check=False)
    for words, where in ((["sp ace/a b.py"], "."), (["ñ.py"], "sp ace"), (["--", "-d.py"], "sp ace"), (["./-d.py"], "link"),
                         (["../link/../sp ace/ñ.py"], "sp ace")):
        done = go(["run", *words], where)
        tap.check((done.returncode, done.stdout) == (0, b"ran\n"), f"{who}: {words} in {where}", done)
    for words, where in ((["--mount", ".:/data:ro"], "link"), (["--mount", "../sp ace:/data"], "sp ace"), (["--mount", "link:/data"], ".")):
        done = go(["run", *words, "-e", "import os; sorted(os.listdir('/data'))"], where)
        tap.check((done.returncode, done.stdout) == (0, "['-d.py', 'a b.py', 'ñ.py']\n".encode()), f"{who}: {words} in {where}", done)
    done = go(["run", "--mount", "none:/data", "-e", "1"], ".")
    tap.check(done.returncode == 2 and b"must be absolute" in done.stderr, f"{who}: a relative mount of nothing", done)
    shutil.rmtree(top)
    place = tempfile.mkdtemp(prefix="invocation-")
    os.chmod(place, 0o755)
    done = subprocess.run(["sh", "-c", 'rmdir "$1" && exec "$2" run -e 1+1', "sh", place, CORDON], cwd=place, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    tap.check((done.returncode, done.stdout) == (0, b"2\n"), f"{who}: a directory that is gone", done)


def surroundings(tap, who, uid):
    done = subprocess.run([CORDON, "run", "-e", "1+1"], env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=become(uid), timeout=120, check=False)
    tap.check((done.returncode, done.stdout) == (0, b"2\n"), f"{who}: no environment at all", done)
    for guest, code in (("python", "print(1)\n2"), ("sh", "echo 1; echo 2")):
        for options in ([], ["--json"]):
            name = " ".join([guest, *options])
            words = [CORDON, "run", *options, "-g", guest, "-e", code]
            for place, why in ((">&-", b"Bad file descriptor"), ("> /dev/full", b"No space left on device")):
                done = subprocess.run(["sh", "-c", '"$@" ' + place, "sh", *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      preexec_fn=become(uid), timeout=120, check=False)
                tap.check(done.returncode == 125 and b"cannot write to standard output" in done.stderr and why in done.stderr,
                          f"{who}: {name}: {place}", done)
        for place in ("<&-", "2>&-"):
            done = subprocess.run(["sh", "-c", '"$@" ' + place, "sh", CORDON, "run", "-g", guest, "-e", code], stdout=subprocess.PIPE,
                                  preexec_fn=become(uid), timeout=120, check=False)
            tap.check((done.returncode, done.stdout) == (0, b"1\n2\n"), f"{who}: {guest}: {place}", done)


def stalled(tap, who, uid):
    """Who does not read holds the code up, but not beyond its time; what it printed in it is still there."""
    child = subprocess.Popen([CORDON, "run", "-g", "sh", "-t", "700ms", "-e", "yes"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=become(uid))
    select.select([child.stdout], [], [], 100)  # it runs
    end, children = time.monotonic() + 100, True
    while children and time.monotonic() < end:
        time.sleep(0.05)
        with open("/proc/%d/task/%d/children" % (child.pid, child.pid), encoding="ascii") as f:
            children = f.read().split()
    tap.check(child.poll() is None, f"{who}: it waits for its reader")
    tap.check(not children, f"{who}: the code is gone in spite of a reader that does not read")
    out, err = child.communicate(timeout=100)
    tap.check(child.returncode == 124 and len(out) > 65536 and set(out.split()) == {b"y"} and b"timed out" in err, f"{who}: what it printed",
              child.returncode, len(out), err)


def cuts(tap, who, uid):
    """Limits of output hold without --json too, and are told; so is what the code's end was."""
    for option, code, want in (("output_lines=3", "seq 9", b"1\n2\n3\n"), ("stdout_bytes=4", "seq 9", b"1\n2\n"),
                               ("output_lines=9", "seq 9", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")):
        status, out, err, _ = run(["run", "--set", option, "-g", "sh", "-e", code], uid)
        told = b"standard output was cut" in err
        tap.check((status, out, told) == (0, want, option != "output_lines=9"), f"{who}: {option}", status, out, err)
    status, out, err, _ = run(["run", "-g", "sh", "-e", "if true; then"], uid)
    tap.check(status == 2 and b"run: syntax: " in err, f"{who}: a shell's syntax error is named", status, out, err)


def audited(tap, who, uid):
    """A script's session has a process from the start, and its events their order."""
    place = tempfile.mkdtemp(prefix="invocation-")
    os.chmod(place, 0o777)
    log = os.path.join(place, "log")
    for options in ([], ["--set", "audit_required=true"]):
        status, out, err, _ = run(["run", *options, "--audit", log, "-g", "sh", "-e", "echo $1; exit 4", "x"], uid)
        tap.check((status, out) == (4, b"x\n"), f"{who}: an audited script {options}", status, out, err)
    with open(log, encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    names = ["session_start", "execute_start", "execute_error", "session_close"]
    tap.check([e["event"] for e in events] == names * 2 and all(e["pid"] > 1 for e in events if e["event"] == "session_start"),
              f"{who}: its events", events)
    shutil.rmtree(place)


def left_over(tap, who, uid):
    """A file that is not there to be fetched does not take the result with it."""
    words = ["--out", "/tmp/none:/dev/null/x", "-e", "6 * 7"]
    status, out, err, _ = run(["run", *words], uid)
    tap.check((status, out) == (2, b"42\n") and err.count(b"No such file") == 1, f"{who}: --out of nothing", status, out, err)
    status, out, err, _ = run(["run", "--json", *words], uid)
    tap.check(status == 2 and json.loads(out)["result"] == 42, f"{who}: --out of nothing, as JSON", status, out, err)
    status, out, err, _ = run(["validate", "/nonexistent.py"], uid)
    tap.check((status, out) == (2, b""), f"{who}: validate: no such file", status, out, err)
    status, out, err, _ = run(["run", "--out", "/tmp/none:/dev/null/x", "-g", "sh", "-e", "exit 7"], uid)
    tap.check(status == 7, f"{who}: --out of nothing, and the code failed", status, out, err)


main([], codes, arguments, paths, surroundings, stalled, cuts, audited, left_over)

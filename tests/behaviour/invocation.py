#!/usr/bin/python3
"""How the program is called: sources of code and arguments, odd but valid code, and where our standard streams lead."""
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


def late_refusals(tap, who, uid):
    """The end of stderr tells of a refusal as well as its beginning, also where no copy of it is kept for a result."""
    code = "%s; printf '#!/bin/sh' > s; chmod +x s; ./s; %s"
    for name, before, after in (("alone", "true", "true"), ("after much", "seq 50000 >&2", "true"), ("before much", "true", "seq 50000 >&2")):
        _, _, err, _ = run(["run", "-g", "sh", "-e", code % (before, after)], uid)
        tap.check(b"(workspace_exec=true)" in err.splitlines()[-1], f"{who}: a refusal {name}", err[-300:])


def options_add(tap, who, uid):
    """--mount and --allow-host add to the list of --set, wherever they stand."""
    for options in (["--set", "network.allow=a.test", "--allow-host", "b.test"], ["--allow-host", "b.test", "--set", "network.allow=a.test"]):
        status, out, err, _ = run(["policy", "show", *options], uid)
        hosts = json.loads(out)["network"]["allow"] if status == 0 else err
        tap.check(hosts == ["a.test", "b.test"], f"{who}: {options[0]} first", hosts)


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
        is_cut = option != "output_lines=9"
        tap.check((status, out, told) == (125 if is_cut else 0, want, is_cut), f"{who}: {option}", status, out, err)
    # A policy file that names it counts like --set; a level does not, and nothing is cut.
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        os.chmod(f.name, 0o644)
        f.write('{"level": "strict", "stdout_bytes": 1048576}')
        f.flush()
        for options, size, want in (([], 3000000, 0), (["--level", "strict"], 3000000, 0), (["-p", f.name], 1048576, 125),
                                    (["-p", f.name, "--set", "stdout_bytes=none"], 3000000, 0)):
            status, out, err, _ = run(["run", *options, "-g", "sh", "-e", "yes | head -c 3000000; yes | head -c 3000000 >&2"], uid)
            told = b"standard output was cut" in err
            tap.check((status, len(out), told) == (want, size, want != 0) and err.count(b"y\n") == 1500000,
                      f"{who}: 3 MB with {len(options)} options {options[2:]}", status, len(out), err[-200:])
    status, out, err, _ = run(["run", "-g", "sh", "--set", "stdout_bytes=4", "-e", "seq 9; exit 3"], uid)
    tap.check((status, out) == (3, b"1\n2\n"), f"{who}: the code's own status stays", status, out, err)
    status, out, err, _ = run(["run", "-g", "sh", "--json", "-e", "yes | head -c 3000000"], uid)
    result = json.loads(out)
    tap.check((status, len(result["stdout"]), result["truncated"]["stdout"]) == (0, 1048576, True), f"{who}: a result keeps what the policy says",
              status, err)
    status, out, err, _ = run(["run", "-g", "sh", "-e", "if true; then"], uid)
    tap.check(status == 2 and b"run: syntax: " in err, f"{who}: a shell's syntax error is named", status, out, err)


# name, text, options, status, stdout, what stderr says
LANGUAGES = [
    ("a.sh", "echo $1", [], 0, b"x\n", b""),
    ("a.py", "import sys; print(sys.argv[1])", [], 0, b"x\n", b""),
    ("script", "#!/bin/sh\necho sh $1", [], 0, b"sh x\n", b""),
    ("a.py", "#!/usr/bin/env bash\necho sh $1", [], 0, b"sh x\n", b""),
    ("a.txt", "#!/usr/bin/env -S python3.11 -u\nprint('py')", [], 0, b"py\n", b""),
    ("n", "#!/usr/bin/env node\nconsole.log('js')", [], 0, b"js\n", b""),
    ("r", "#! /usr/bin/Rscript\ncat('R\\n')", [], 0, b"R\n", b""),
    ("x.rb", "puts 1", [], 2, b"", b"does not tell its language: there are python (.py), r (.R, .r), node (.js"),
    ("noend", "print(1)", [], 2, b"", b"--guest names one"),
    ("noend", "print(1)", ["-g", "python"], 0, b"1\n", b""),
    ("a.py", "#!/usr/bin/env ruby\nputs 1", [], 2, b"", b"the #! line names 'ruby'"),
    ("a.py", "#!\nputs 1", [], 2, b"", b"the #! line names 'nothing'"),
    ("a.rb", "#!/usr/bin/env ruby\nprint(1)", ["-g", "python"], 0, b"1\n", b""),
    ("strict", "#!/bin/bash -eu\nfalse\necho no", [], 2, b"", b"gives bash the option '-eu', which is not passed on"),
    ("strict", "#!/usr/bin/env -S bash -e\nfalse\necho no", [], 2, b"", b"the option '-e'"),
    ("strict", "#!/bin/sh -e\nfalse\necho on", ["-g", "sh"], 0, b"on\n", b""),
    ("dash", "#!/bin/sh -\necho on", [], 0, b"on\n", b""),
    ("empty.py", "", [], 0, b"", b""),
    ("big.py", "#" * 2000000, [], 2, b"", b"Code too long (2000000 chars, max 1048576)"),
    ("huge.py", "#" * (65 << 20), [], 2, b"", b"more than the 67108864 allowed"),
    ("nul.py", "print(1)\0", [], 2, b"", b"the code contains a NUL byte"),
]


def languages(tap, who, uid):
    """The #! line, then the ending, else an error with the list; and files that are none."""
    top = tempfile.mkdtemp(prefix="invocation-")
    os.chmod(top, 0o755)
    for name, text, options, want, printed, said in LANGUAGES:
        path = os.path.join(top, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o644)
        status, out, err, _ = run(["run", *options, path, "x"], uid)
        tap.check((status, out) == (want, printed) and said in err and (want or err == b""), f"{who}: {name}: {text[:40]!r} {options}", status, out, err)
    status, out, err, _ = run(["validate", os.path.join(top, "strict")], uid)
    tap.check(status == 0, f"{who}: a script with options is validated as any", status, out, err)
    os.mkdir(os.path.join(top, "d.py"))
    os.mkfifo(os.path.join(top, "f.py"))
    with open(os.path.join(top, "secret.py"), "w", encoding="ascii") as f:
        f.write("1")
    os.chmod(os.path.join(top, "secret.py"), 0)
    for name, said in (("d.py", b"is a directory"), ("f.py", b"is not a regular file"), ("none.py", b"No such file"),
                       ("secret.py", b"Permission denied" if uid or os.getuid() else b"")):
        status, out, err, _ = run(["run", os.path.join(top, name)], uid)
        tap.check(status == (2 if said else 0) and said in err, f"{who}: {name}", status, out, err)
    done = subprocess.run([CORDON, "run", "-zd.py"], cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=become(uid), timeout=120, check=False)
    tap.check(done.returncode == 2 and b"unknown option '-z'" in done.stderr, f"{who}: a name that begins with a dash", done)
    with open(os.path.join(top, "-zd.py"), "w", encoding="ascii") as f:
        f.write("1")
    done = subprocess.run([CORDON, "run", "-zd.py"], cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=become(uid), timeout=120, check=False)
    tap.check(done.returncode == 2 and b"for the file of that name write -- -zd.py" in done.stderr, f"{who}: a file of such a name", done)
    for text, said in ((b"print('py')", b"py\n"), (b"#!/bin/sh\necho sh", b"sh\n")):
        status, out, err, _ = run(["run", "-"], uid, stdin=text)
        tap.check((status, out) == (0, said), f"{who}: standard input: {text!r}", status, out, err)
    shutil.rmtree(top)


TYPESCRIPT = {"a.ts": ([], "const x: number = 20; console.log(x + 1); x + 2", (0, b"21\n22\n", b"")),
              "b.ts": (["-g", "node"], "const x: number = 1; x", (0, b"1\n", b"")),
              "c.mts": ([], "#!/usr/bin/env node\nconst x: number = 1; x", (0, b"1\n", b"")),
              "bad.ts": ([], "const x: number = <<", (1, b"", b"SyntaxError"))}
# Node is the machine's own, and says that it is another.
NODE = """#!/bin/sh
echo "require('module').stripTypeScriptTypes = %s
Object.defineProperty(process, 'version', { value: '%s' })" > /tmp/other.cjs
exec /usr/bin/node --require /tmp/other.cjs "$@"
"""
STRIP = "(s) => { if (s.endsWith('<<')) throw new SyntaxError('<<'); return s.replace(': number', '') }"


def typescript(tap, who, uid):
    """Node takes the types out where it can, and where it cannot, the error says which one can. With the machine's
    Node and with two that tell another version."""
    top = tempfile.mkdtemp(prefix="invocation-")
    # Beside the program, as a sandbox has a /tmp of its own.
    nodes = tempfile.mkdtemp(prefix="invocation-", dir=os.path.dirname(os.path.abspath(CORDON)))
    for folder in (top, nodes):
        os.chmod(folder, 0o755)
    for name, (_, text, _) in TYPESCRIPT.items():
        with open(os.path.join(top, name), "w", encoding="ascii") as f:
            f.write(text)
    asked = subprocess.run(["node", "-p", "typeof require('node:module').stripTypeScriptTypes"], stdout=subprocess.PIPE, check=False)
    kinds = [("the machine's", [], asked.stdout == b"function\n", b"")]
    for version, strip in (("v18.20.4", "undefined"), ("v22.13.0", STRIP)):
        path = os.path.join(nodes, version)
        with open(path, "w", encoding="ascii") as f:
            f.write(NODE % (strip, version))
        os.chmod(path, 0o755)
        if not path.startswith(("/tmp/", "/var/tmp/")):
            kinds.append((version, ["--set", "node=" + path, "--set", "commands=sh,node"], strip == STRIP, version.encode()))
    for node, options, can, version in kinds:
        for name, (named, _, wanted) in TYPESCRIPT.items():
            want, printed, said = wanted if can else (125, b"", b"TypeScript needs Node 22.13 or later, which can strip types; this machine has " + version)
            status, out, err, _ = run(["run", *options, *named, os.path.join(top, name)], uid)
            tap.check((status, out) == (want, printed) and said in err, f"{who}: TypeScript: {node} Node: {name}", status, out, err)
    shutil.rmtree(top)
    shutil.rmtree(nodes)


# option, value, status, what is said of it
VALUES = [
    ("timeout", "1", 0, b""), ("timeout", "0.5", 0, b""), ("timeout", "5s", 0, b""), ("timeout", "900ms", 0, b""), ("timeout", "1m", 0, b""),
    ("timeout", "1h", 0, b""), ("timeout", "none", 0, b""),
    *(("timeout", v, 2, b"--timeout takes seconds (5, 0.5)") for v in ("0", "x", "-1", "", "1x", "1.2.3", "99999999999", "25h")),
    ("memory", "512M", 0, b""), ("memory", "536870912", 0, b""), ("memory", "1G", 0, b""),
    ("memory", "64", 2, b"--memory 64 is 64 bytes; for mebibytes write 64M"),
    *(("memory", v, 2, b"--memory takes a size such as 256M or 1G") for v in ("0", "x", "", "1M", "none", "-5")),
    ("level", "stricct", 2, b"level must be permissive, standard or strict, got: stricct"), ("policy", "/none/such", 2, b"No such file"),
    ("guest", "perl", 2, b"unknown guest 'perl'"), ("mount", "x", 2, b"--mount x: "), ("env", "x", 2, b"--env x: write NAME=VALUE"), ("set", "x", 2, b"KEY=VALUE"),
    ("set", "nofield=1", 2, b"Unknown policy field"), ("context", "[1]", 2, b"--context takes a JSON object"), ("context", "{", 2, b"--context"),
    ("file", "x", 2, b"is not FROM:TO"), ("file", "/none/such:x", 2, b"No such file"), ("out", "x", 2, b"is not FROM:TO"),
    ("tools", "/none/such", 2, b"No such file"), ("audit", "", 2, b"audit"), ("audit", "/dev/null", 2, b"not below /dev"),
    ("workspace", "", 2, b"workspace"), ("project", "/none/such", 2, b"No such file"), ("allow-host", "", 2, b"--allow-host needs a value"),
    ("block-host", "", 2, b"--block-host needs a value"), ("mount", "", 2, b"--mount"),
]


def values(tap, who, uid):
    """What each option says of what it is given."""
    place = tempfile.mkdtemp(prefix="invocation-")
    os.chmod(place, 0o777)
    for option, value, want, said in VALUES:
        words = ["-e", "1"] if option == "guest" else ["-g", "sh", "-e", ":"]
        status, out, err, _ = run(["run", f"--{option}={value}", *words], uid, env={"HOME": place})
        tap.check(status == want and said in err and err.count(b"\n") == (1 if want else 0), f"{who}: --{option}={value}", status, out, err)
    status, out, err, _ = run(["run", "--approve=perhaps", "--tools=/dev/null", "-e", "1"], uid)
    tap.check(status == 2, f"{who}: --approve=perhaps", status, out, err)
    status, out, err, _ = run(["policy", "show", "--timeout", "2", "--memory", "67108864"], uid)
    tap.check(b'"timeout_ms": 2000,' in out and b'"memory_bytes": 67108864,' in out, f"{who}: a bare number is seconds, or bytes", out)
    shutil.rmtree(place)


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


main([], codes, late_refusals, options_add, arguments, paths, surroundings, stalled, cuts, languages, typescript, values, audited, left_over)

#!/usr/bin/python3
# tests/pod/guest_test.py - the pod as a guest, through `cordon`: sessions, tools, limits, files.
"""usage: guest_test.py [--user] [GROUP...]   (TAP; $CORDON is the program, $CORDON_POD the image)

--user: as an ordinary user, with copies that such a user can reach; started by root.
"""
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("CORDON_CLIENT") or os.path.join(HERE, "..", "..", "clients", "python"))
import cordon  # noqa: E402

PATIENCE = 300  # seconds that a busy machine may take; nothing here is meant to
count = failed = 0


def check(what, ok, note=""):
    global count, failed
    count += 1
    failed += not ok
    print("%s %d - %s%s" % ("ok" if ok else "not ok", count, what, "" if ok else "  # %s" % (note,)))
    sys.stdout.flush()


def opened(**options):
    policy = options.pop("policy", {})
    return cordon.Session("pod", policy=policy, **options)


def gives(s, code, out=None, status=0, kind=None, err=None, what=None, **options):
    r = s.execute(code, **options)
    ok = r.exit_code == status and r.error_kind == kind
    ok = ok and (out is None or r.stdout == out) and (err is None or err in r.stderr)
    check(what or code.split("\n")[0][:70], ok, (r.exit_code, r.error_kind, r.stdout[:300], r.stderr[:300], r.error))
    return r


def at_go(what):
    """Options of an execution: it is done, from elsewhere, when the code has said "go"."""
    def heard(_):
        once = threading.Thread(target=what) if not started else None
        started.append(once)
        if once:
            once.start()

    started = []
    return {"on_stdout": heard, "timeout": PATIENCE}


def refused(what, words, fn, *args, **options):
    try:
        fn(*args, **options)
        check(what, False, "was not refused")
    except cordon.CordonError as e:
        check(what, words in str(e), str(e))


# ---- state, exits, syntax, stdin, context, history

def fatal(s):
    """Errors that end a shell by themselves, where set -e is on: the command ends, and nothing else."""
    s.execute("kept=42; keep() { echo $kept $PWD; }; readonly fixed=1")
    for what, code in (("a variable that is not set", 'set -euo pipefail; echo "$unset"'), ("a readonly one", "fixed=2"),
                       ("${x:?}", "echo ${unset:?message}"), ("failglob", "shopt -s failglob; echo /nothing*"), ("a syntax error", "eval 'if'"),
                       ("an exec that finds nothing", "exec nothing-of-that-name"), ("in a function", "f() { local kept=7; echo ${unset:?message}; }; f"),
                       ("in a trap", "trap 'echo ${unset:?message}' USR1; kill -USR1 $$")):
        r = s.execute("set -e; trap 'echo bye' EXIT; " + code + "; echo never")
        after = s.execute("shopt -u failglob; trap - USR1; keep; echo $-")
        good = r.exit_code in (1, 2, 127) and r.stdout == "bye\n" and not r.restarted and not after.restarted
        check("set -e and %s: the shell stays, the trap on EXIT runs" % what, good and after.stdout.startswith("42 /tmp\n") and "e" in after.stdout[8:],
              (r.exit_code, r.stdout, r.stderr, r.restarted, after.stdout))
    gives(s, "set +euo pipefail; (set -e; echo ${unset:?message}; echo never); echo $?", "1\n", what="a subshell ends as ever")
    gives(s, "fixed=3\necho on", "on\n", what="a failing assignment does not end the rest")


def executables(s):
    """The workspace is mounted noexec, and what exec says counts."""
    gives(s, "cd; printf '#!/bin/bash\\necho mine $@\\n' > y; [ -x y ] || echo no; chmod +x y; [ -x y ] && ./y a; test -x /tmp && echo dir",
          "no\nmine a\ndir\n", what="test -x")
    gives(s, "mkdir -p .local/bin; cp y .local/bin/y2; PATH=$PATH:~/.local/bin; which y2; command -v y2; y2 b; find .local -type f -executable; "
             "python3 -c 'import shutil, os; print(shutil.which(\"y2\"), os.access(\"y\", os.X_OK))'",
          "/home/user/.local/bin/y2\n/home/user/.local/bin/y2\nmine b\n.local/bin/y2\n/home/user/.local/bin/y2 True\n", what="which, find, shutil.which")
    gives(s, "cp y .local/bin/grep; (PATH=~/.local/bin:$PATH; grep x; env grep y; type -P grep)", "mine x\nmine y\n/home/user/.local/bin/grep\n",
          what="a wrapper earlier in PATH shadows a command")
    gives(s, "chmod 066 y; [ -x y ] || echo no; ./y; echo $?; [ -x /etc/passwd ] || echo no", "no\n126\nno\n", what="and nothing is that is not")
    s2 = opened(policy={"commands": ["bash", "chmod", "mkdir"]})
    r = s2.execute("mkdir -p ~/.local/bin; cd ~/.local/bin; printf '#!/bin/bash\\necho wrapped\\n' > wc; printf '#!/usr/bin/wc x\\n' > z; chmod +x wc z; "
                   "PATH=~/.local/bin:$PATH; wc; z; /usr/bin/wc")
    check("what the policy forbids stays so", r.stdout == "wrapped\n" and r.stderr.count("not allowed by security policy") == 2, (r.stdout, r.stderr))
    s2.close()


def sessions():
    s = opened()
    gives(s, "x=5; f() { echo f$1; }; alias al='echo aliased'; cd /tmp; export E=env")
    gives(s, "echo $x; f 1; al; pwd; printenv E", "5\nf1\naliased\n/tmp\nenv\n")
    gives(s, "(exit 3)", "", 3, "exception")
    gives(s, "echo $?", "3\n")
    for bad in ("if true; then", "(", "for", "echo 'open", "case x in"):
        gives(s, bad, "", 2, "syntax", what="VAL-02: " + bad)
    gives(s, "exit 2", "", 2, "exception", what="a status of 2 is no syntax error")
    gives(s, "echo alive $x", "alive 5\n")
    gives(s, "exit 4", "", 4, "exception")
    gives(s, "set -e; false; echo never", "", 1, "exception")
    gives(s, "set +e; set -u; echo $undefined", "", 1, "exception")
    gives(s, "set +u; exec echo replaced", "replaced\n")
    gives(s, "trap 'echo bye' EXIT; exit 1", "bye\n", 1, "exception")
    gives(s, "trap 'echo usr1' USR1; kill -USR1 $$; echo done", "usr1\ndone\n")
    gives(s, "echo $x", "5\n", what="variables outlive all of it")
    fatal(s)
    r = gives(s, "kill -9 $$", "", 137, "exception")
    check("a killed shell is said to be a new one", r.restarted, r)
    gives(s, "echo ${x-unset}; pwd", "unset\n/tmp\n", what="and is one, in its directory")
    gives(s, "kill -SEGV $$", None, 139, "exception")
    gives(s, "echo still here", "still here\n")
    gives(s, "cat; echo end", "given\nend\n", stdin="given\n", what="stdin of one execution")
    gives(s, "cat", "", what="none for the next")
    gives(s, "read line; echo $line", "one\n", stdin="one\n" + "two\n" * 100000, what="stdin that is not read to its end")
    gives(s, "cat", "three\n", stdin="three\n", what="what was left is not the next one's")
    big = "z" * 3_000_000
    gives(s, "wc -c", "3000000\n", stdin=big, what="3 MB of stdin")
    gives(s, 'echo "$name|${list[1]}|${map[k]}|$n|$none|${#big}"', "a b'c|y z|v|1.5||200000\n",
          context={"name": "a b'c", "list": ["x", "y z"], "map": {"k": "v"}, "n": 1.5, "none": None, "big": "b" * 200000},
          what="context: strings, lists, maps, numbers, 200 kB")
    gives(s, "echo $?; (exit 7)", "0\n", 7, "exception", context={"q": 1})
    gives(s, "echo $?", "7\n", context={"q": 2}, what="context leaves $? alone")
    refused_context = s.execute("echo x", context={"not a name": 1})
    check("a name that is none is refused", refused_context.error_kind is not None and not refused_context.stdout)
    s.setenv("MY_VAR", "hello")
    gives(s, "printenv MY_VAR; bash -c 'echo $MY_VAR'", "hello\nhello\n", what="ENV-04: setenv")
    refused("ENV-04: a bad name", "Invalid environment variable name", s.setenv, "1x", "v")
    s.setenv("MY_VAR", None)
    gives(s, "printenv MY_VAR", "", 1, "exception")
    gives(s, "history -c")
    gives(s, "echo one >/dev/null")
    gives(s, "history | sed 's/^ *[0-9]* *//'", "echo one >/dev/null\nhistory | sed 's/^ *[0-9]* *//'\n",
          what="history, without what goes before a command", context={"v": 1})
    gives(s, "export BIG=$(head -c 9000 /dev/zero | tr '\\0' x); echo once >> /tmp/log; cat /tmp/log", "once\n", what="ENV-05")
    gives(s, "echo go; sleep 600; echo never", "go\n", 125, "cancelled", what="STR-04: streams as it is written", **at_go(s.cancel))
    gives(s, "sleep 600 & echo started", "started\n", what="a background job does not hold the answer")
    gives(s, "jobs | wc -l; kill %1", "1\n")
    executables(s)
    s.restart()
    gives(s, "echo ${E-unset}; cat /tmp/log", "unset\nonce\n", what="restart: files stay, variables go")
    s.close()
    refused("a closed session", "not running", s.execute, "echo x")
    s = opened(env={"MINE": "yes"})
    gives(s, "echo $MINE; env | grep -c CORDON", "yes\n0\n", 1, "exception", what="env of the session, nothing of Cordon's")
    s.close()
    check("validate: good code", cordon.validate("if true; then echo x; fi", guest="pod")["valid"])
    bad = cordon.validate("if true; then", guest="pod")
    check("validate: bad code", not bad["valid"] and "syntax error" in bad["error"], bad)
    warned = cordon.validate("echo x; curl http://x", guest="pod")
    check("validate: warns", warned["valid"] and warned["warnings"], warned)


def words_of_history(s, what):
    gives(s, "history clear")
    gives(s, "echo one >/dev/null")
    gives(s, "history list | sed 's/^ *[0-9]* *//'", "echo one >/dev/null\nhistory list | sed 's/^ *[0-9]* *//'\n", what=what)


def set_up():
    """A shell is set up before its first command: ahead of it if there is time, else with it."""
    for pause in (0, 0.001, 0.005, 0.5):
        s = opened()
        time.sleep(pause)
        r = gives(s, "echo $? $# ${__cordon-unset}; compgen -A function; history | wc -l", "0 0 unset\nhistory\n1\n",
                  what="a first command after %g s" % pause)
        check("which says nothing of a new shell", not r.restarted, r)
        words_of_history(s, "history list and clear")
        gives(s, "(sleep 0.2; kill -9 $$) & echo going", "going\n")
        time.sleep(1)
        r = gives(s, "compgen -A function", "history\n", what="a shell that replaces one that died meanwhile")
        check("says so", r.restarted, r)
        words_of_history(s, "and has them too")
        s.close()


# ---- tools as commands

def greet(args, stdin):
    return {"stdout": "hello from extension\n", "exit_code": 0}


def upper(args, stdin):
    return {"stdout": stdin.upper() if isinstance(stdin, str) else stdin}


def show(args, stdin):
    return {"stdout": repr(args) + "\n"}


def fail(args, stdin):
    return {"stderr": "oops\n", "exit_code": 1}


def boom(args, stdin):
    raise RuntimeError("boom")


def add(a: float, b: float) -> float:
    """Adds two numbers."""
    return a + b


def size(args, stdin):
    return {"stdout": "%d\n" % len(stdin)}


TOOLS = [cordon.Tool(f, f.__name__, "The command %s." % f.__name__, command=True,
                     category="search" if f is greet else "text") for f in (greet, upper, show, fail, boom, size)]
TOOLS.append(cordon.Tool(add, python_package={"__init__.py": "from cordon import call\n\ndef plus(a, b):\n    return call('add', a=a, b=b)\n"}))


def tools():
    s = opened(tools=TOOLS, policy={"message_bytes": 8 << 20})
    gives(s, "greet", "hello from extension\n", what="EXT-01")
    gives(s, "show foo 'b ar'", "['foo', 'b ar']\n", what="EXT-02")
    gives(s, "echo hello | upper", "HELLO\n", what="EXT-03")
    gives(s, "head -c 5000000 /dev/zero | tr '\\0' a | upper | tr -d A | wc -c", "0\n", what="EXT-04: 5 MB in the middle of a pipe")
    gives(s, "greet > /tmp/out.txt; cat /tmp/out.txt", "hello from extension\n", what="EXT-05")
    gives(s, "fail && echo never", "", 1, "exception", "oops", what="EXT-06")
    gives(s, "boom", "", 1, "exception", "boom: boom", what="EXT-07")
    gives(s, "greet --help | head -1", "The command greet.\n", what="EXT-08")
    gives(s, "which greet; type -t greet; command -v add", "/usr/bin/greet\nfile\n/usr/bin/add\n", what="EXT-09")
    r = gives(s, "extensions list", what="EXT-10: list")
    check("EXT-10: all of them", all(t.name in r.stdout for t in TOOLS), r.stdout)
    gives(s, "extensions list --category search | wc -l", "3\n", what="EXT-10: category")
    gives(s, "extensions list --json | jq -r '.[].name' | sort | head -1", "add\n", what="EXT-10: json")
    gives(s, "extensions info greet | head -1", "Name:        greet\n", what="EXT-10: info")
    gives(s, "extensions info nope", "", 1, "exception", "unknown extension", what="EXT-10: unknown")
    gives(s, "extensions bad", "", 1, "exception", what="EXT-10: usage")
    gives(s, "add 2 3; add --a=1 --b 2.5", "5\n3.5\n", what="typed arguments, by place and by name")
    gives(s, "add hello 3", "", 1, "exception", "must be numeric", what="TOOL-06")
    gives(s, "add 1 2 3", "", 1, "exception", "Unexpected", what="TOOL-08")
    gives(s, "x=$(greet); echo \"[$x]\"; greet | greet; printf '1\\n2\\n' | xargs -n1 show",
          "[hello from extension]\nhello from extension\n['1']\n['2']\n", what="in substitutions, pipes and xargs")
    gives(s, "find /etc/hostname -exec show {} ';'; bash -c greet; env -i /usr/bin/greet",
          "['/etc/hostname']\nhello from extension\nhello from extension\n", what="from find -exec, a second shell and env -i")
    gives(s, "python3 -c 'import subprocess; print(subprocess.check_output([\"upper\"], input=b\"x\"))'", "b'X'\n",
          what="from Python's subprocess")
    gives(s, "python3 -c 'import add; print(add.plus(2, 3), add.__file__)'", "5 /usr/lib/python/add/__init__.py\n",
          what="a tool's Python package")
    gives(s, "python3 -c 'import codepod_ext as c; print(c.is_extension(\"greet\"), c.call(\"greet\")[\"stdout\"], end=\"\")'",
          "True hello from extension\n", what="codepod_ext")
    gives(s, "echo x > /usr/lib/python", None, 1, "exception", what="the packages cannot be changed")
    gives(s, "for i in {1..20}; do greet & done | wc -l; wait", "20\n", what="20 calls at once")
    r = s.execute("for i in 1 2 3; do add 1 1; done", tool_calls=2)
    check("TOOL-15: a budget of calls", r.stdout == "2\n2\n" and "Maximum tool calls" in r.stderr, (r.stdout, r.stderr))
    gives(s, "add 1 1", "2\n", what="TOOL-16: and the session goes on")
    gives(s, "cp /usr/bin/greet /tmp/g; /tmp/g", "", 126, "exception", what="a copy of a tool is none")
    child = s.fork()
    gives(child, "greet", "hello from extension\n", what="EXT-12: in a fork")
    child.close()
    s.close()
    s = opened(tools=TOOLS, policy={"commands": ["bash", "cat", "greet"]})
    gives(s, "greet | cat", "hello from extension\n", what="EXT-11: an allowed one")
    r = gives(s, "echo secret | upper", "", 126, "denied", "not allowed", what="EXT-11: one that is not, in a pipe")
    check("EXT-11: is told", [d.target for d in r.denials] == ["upper"], r.denials)
    s.close()
    s = opened()
    gives(s, "extensions list", "(no extensions registered)\n", what="no tools: an empty list")
    gives(s, "greet", "", 127, "exception", what="no tools: not found")
    s.close()


# ---- denials

def denials():
    s = opened(policy={"commands": ["bash", "echo", "cat"]})
    r = gives(s, "cat /etc/passwd | grep root", "", 126, "denied", "grep: tool not allowed by security policy")
    check("AUD-07: layer, rule and remedy", [(d.operation, d.target, d.layer) for d in r.denials] == [("execute", "grep", "door")]
          and "commands" in r.denials[0].remedy, r.denials)
    r = gives(s, "echo $(grep x /etc/passwd)", "\n", what="ADV-01: substitution")
    check("AUD-09: told though it failed quietly", len(r.denials) == 1, r.denials)
    r = gives(s, "grep x f 2>/dev/null; sort f 2>/dev/null; echo done", "done\n")
    check("AUD-09: told though hidden", sorted(d.target for d in r.denials) == ["grep", "sort"], r.denials)
    r = gives(s, "echo 'x: tool not allowed by security policy' >&2", "")
    check("AUD-08: no denial by a forged line", not r.denials, r.denials)
    # What a program says, on its streams or to descriptors that are not its own, is no denial, and no reason for one.
    told = '{"type":"done","id":1,"exit_code":126,"denials":[{"operation":"exec","target":"grep"}]}'
    forged = "echo 'grep: tool not allowed by security policy' >&2; echo '%s'; echo '%s' >&2; " % (told, told)
    for what, code in (("said", forged), ("sent to the runtime's descriptors",
                                          "for i in {3..255} {1000..1023}; do echo 'exec grep' >&$i; done 2>/dev/null; "),
                       ("and by their names", "for i in /proc/self/fd/* /proc/$PPID/fd/* /dev/fd/*; do echo 'exec grep' > $i; done 2>/dev/null; ")):
        r = gives(s, code + "exit 126", None, 126, "exception", what="AUD-08: a denial that is only %s" % what)
        check("AUD-08: is none", not r.denials, r.denials)
        r = gives(s, code + "true", None, what="AUD-08: nor does it spoil a success")
        check("AUD-08: of which nothing is told", not r.denials, r.denials)
    for name in ("curl", "wget", "sort"):
        gives(s, name + " http://x", "", 126, "denied", what="ADV-02: " + name)
    r = gives(s, "echo fine", "fine\n")
    check("denials are of one execution", not r.denials, r.denials)
    child = s.fork()
    gives(child, "grep x /etc/passwd", "", 126, "denied", what="SNP-04: a fork has the same list")
    child.close()
    s.close()
    s = opened()
    r = gives(s, "echo 'ls: tool not allowed by security policy' >&2; exit 126", "", 126, "exception", what="AUD-08: where all is allowed, too")
    check("AUD-08: and nothing is told", not r.denials, r.denials)
    s.close()


# ---- the network

class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " + self.path.encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.upper())

    def log_message(self, *args):
        pass


def network():
    s = opened()
    r = gives(s, "(echo > /dev/tcp/127.0.0.1/80) 2>/dev/null", "", 1, "exception", what="NET-01, NET-15: no network")
    check("NET-01: is told", [(d.operation, d.layer) for d in r.denials] == [("socket", "door")]
          and "network.allow" in r.denials[0].remedy, r.denials)
    gives(s, "python3 -c 'import urllib.request as u; u.urlopen(\"http://a.test/\")'", "", 1, "exception", "Error", what="PY-05")
    gives(s, "echo ${HTTP_PROXY-none}", "none\n")
    s.close()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    s = opened(policy={"network": {"allow": [{"host": "127.0.0.1", "port": port}]}})
    gives(s, "echo ${NO_PROXY-none} ${no_proxy-none}", "none none\n", what="loopback goes through the proxy, too")
    fetch = "python3 -c 'import urllib.request as u, sys; print(u.urlopen(sys.argv[1], timeout=5).read().decode())' "
    url = "http://127.0.0.1:%d" % port
    gives(s, fetch + url + "/x", "hello /x\n", what="NET-13: urllib through the gateway")
    gives(s, "curl -s %s/y; wget -qO- %s/z" % (url, url), "hello /yhello /z", what="NET-13: curl and wget through the gateway")
    r = gives(s, fetch + "http://b.test/", "", 1, "exception", "403", what="NET-13: another host")
    check("NET-02: is told", [(d.operation, d.target) for d in r.denials if d.layer == "gateway"] != [], r.denials)
    gives(s, "python3 -c 'import urllib.request as u, sys; print(u.urlopen(sys.argv[1], data=b\"abc\").read())' " + url,
          "b'ABC'\n", what="POST")
    r = gives(s, "(exec 3<>/dev/tcp/127.0.0.1/%d) 2>&1" % port, None, 1, "exception", what="NET-11: not past the gateway")
    check("NET-11: is told", [(d.operation, d.target) for d in r.denials] == [("connect", "127.0.0.1:%d" % port)], r.denials)
    gives(s, "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'", "", 1, "exception",
          what="no datagrams")
    gives(s, "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET %s/raw HTTP/1.0\r\n\r\n' >&3; tail -n1 <&3" % url, "hello /raw",
          what="bash speaks to the gateway itself")
    s.close()
    server.shutdown()


# ---- time and size

def stopped(what, code, how, keeps=True, **options):
    """One that is stopped; a shell that can come back has kept its variables, else it is said to be a new one."""
    want = "yes\nfile\njob\n" if keeps else "file\n"
    # One that was killed with its shell is there until init has seen its end.
    gone = "" if keeps else "for i in {1..300}; do kill -0 $j 2>/dev/null || break; sleep 0.05; done; "
    for _ in range(10):  # a busy machine may not come back in time, which a cancel and a timeout give it a third of a second for
        s = opened()
        s.execute("kept=yes; keep() { echo $kept; }; cd /tmp; echo file > /tmp/file")
        # One that has come to run: before that, ^C would still end it, as in any shell.
        s.execute("bash -c 'echo > /tmp/up; exec sleep 300' & echo $! > /tmp/job; until [ -e /tmp/up ]; do sleep 0.01; done")
        if how:
            options = at_go(getattr(s, how))
            code = code if "go" in code else "echo go; " + code
        start = time.monotonic()
        r = s.execute(code, **options)
        took = time.monotonic() - start
        # By builtins: in a new shell a program may get the number of the old one's job.
        after = s.execute("keep 2>/dev/null; read f < /tmp/file; echo $f; read j < /tmp/job; " + gone + "kill -0 $j 2>/dev/null && echo job; beats=$(cat beat* 2>/dev/null | wc -c)"
                          "; sleep 0.3; [ $beats = $(cat beat* 2>/dev/null | wc -c) ] || echo beats")
        s.close()
        if r.restarted != keeps and (how == "interrupt" or after.stdout == want):
            break
    check(what, after.stdout == want and r.restarted != keeps, (r.exit_code, r.error_kind, r.restarted, after.stdout, after.stderr))
    return r, took


def interrupts():
    loop, deaf = "while true; do :; done", "python3 -c 'import signal, time\nsignal.signal(2, signal.SIG_IGN)\nprint(\"go\", flush=True)\nwhile True: time.sleep(9)'"
    beats = ("beat() { while :; do echo >> beat$1; sleep 0.05; done; }; export -f beat; beat 1 & setsid bash -c 'beat 2' & "
             "(trap '' INT TERM; beat 3) & set -m; beat 4 & sleep 600")
    r, _ = stopped("^C: a loop of builtins", loop, "interrupt")
    check("^C: says so", (r.exit_code, r.error_kind) == (130, "exception"), (r.exit_code, r.error_kind))
    nap = "bash -c 'echo go; exec sleep 600'"  # what says "go" is the program itself, not a shell that has yet to start it
    for what, code in (("a program in front", nap + "; echo never"), ("a function", "f() { %s; }; f; f" % nap), ("a pipe", nap + " | cat"),
                       ("a substitution", "exec 3>&1; x=$(%s >&3; echo never)" % nap),
                       ("Python", "python3 -c 'import time; print(\"go\", flush=True); time.sleep(600)'"),
                       ("read", "mkfifo f; read line <> f"), ("wait", "sleep 600 & echo go; wait"), ("exec", "exec " + nap),
                       ("a subshell", "(%s; echo never); echo never" % nap), ("xargs", "echo go | xargs -I{} bash -c 'echo {}; exec sleep 600'"),
                       ("job control", "set -m; %s; set +m" % nap), ("a deaf program", deaf + "; echo never"),
                       ("what it has in the background", beats)):
        r, _ = stopped("^C: " + what, code, "interrupt")
        check("^C: %s: ended there" % what, r.exit_code in (130, 137) and "never" not in r.stdout, (r.exit_code, r.error_kind, r.stdout))
    left = []
    with opened() as s:
        for code in ("printf '%s ' {1..200000}; echo never", "while :; do echo -n abc; done", "while :; do printf '%s\\n' {1..300}; done") * 5:
            r = s.execute(code, **at_go(s.interrupt))
            after = s.execute("echo 2")
            if r.exit_code != 130 or after.stdout != "2\n":
                left.append((code, r.exit_code, after.stdout[:100]))
    check("^C: an interrupted builtin leaves no text for the next execution", not left, left)
    stopped("^C: a shell that does not come back is replaced", "trap '' INT; " + loop, "interrupt", keeps=False)
    r, took = stopped("cancel", "sleep 600", "cancel")
    check("cancel: says so", (r.exit_code, r.error_kind) == (125, "cancelled") and took < 60, (r.exit_code, r.error_kind, took))
    r, took = stopped("timeout", loop, None, timeout=0.5)
    check("timeout: says so", (r.exit_code, r.error_kind) == (124, "timeout") and took < 60, (r.exit_code, r.error_kind, took))
    stopped("timeout: what it has in the background", beats, None, timeout=0.5)
    stopped("timeout: a deaf program", deaf, None, timeout=0.5)
    r, took = stopped("timeout: a deaf shell is replaced", "trap '' INT; " + loop, None, keeps=False, timeout=0.5)
    check("timeout: in time", r.error_kind == "timeout" and took < 60, (r.error_kind, took))
    s = opened()
    gives(s, "trap 'echo caught' INT; sleep 1; kill -INT $$; echo on; trap - INT", "caught\non\n", what="a trap on INT is the shell's own")
    gives(s, "bash -c 'kill -INT $$; echo never'", "", 130, "exception", what="SIGINT ends a script")
    gives(s, "kill -INT $$; echo never", "", 130, "exception", what="and a command, not the session's shell")
    gives(s, "x=1; (kill -INT $BASHPID; echo never); echo $? $x", "130 1\n", what="or a subshell")
    check("which stays", not s.execute("true").restarted)
    s.close()


def clocks():
    s = opened()
    gives(s, "echo kept > /tmp/file")
    for what, code in (("TMO-12: a loop of builtins", "while true; do :; done"), ("TMO-02: asleep", "sleep 600"),
                       ("TMO-05: output", "seq 1 999999999 > /dev/null"), ("TMO-06: a chain", "sleep 600 && sleep 600"),
                       ("TMO-07: Python without system calls", "python3 -c 'while True: pass'"),
                       ("TMO-08: Python and the clock", "python3 -c 'import time\nwhile True: time.time()'"),
                       ("TMO-11: nested", "python3 -c 'import subprocess; subprocess.run([\"sleep\", \"60\"])'"),
                       ("a deaf one", "trap '' TERM INT HUP; sleep 60"), ("in the background too", "sleep 600 & sleep 60 & wait")):
        start = time.monotonic()
        gives(s, code, "", 124, "timeout", what=what, timeout=0.5)
        check(what + ": in time", time.monotonic() - start < 30, time.monotonic() - start)
    gives(s, "echo recovered; cat /tmp/file", "recovered\nkept\n", what="TMO-03, TMO-10: and goes on")
    check("TMO-01: says how long", s.execute("sleep 9", timeout=1).error == "Execution timed out after 1 second")
    gives(s, "echo go; sleep 600", "go\n", 125, "cancelled", what="TMO-09: cancel", **at_go(s.cancel))
    gives(s, "echo after", "after\n")
    gives(s, "x=1", timeout=float("inf"), what="TMO-04: no timeout")
    s.close()


def limits():
    s = opened()
    gives(s, "ulimit -f; ulimit -u; ulimit -c", "51200\n50\n0\n", what="LIM-04: limits from inside")
    gives(s, "python3 -c 'x = bytearray(600 << 20)'", "", 1, "exception", "MemoryError", what="LIM-06: more than a process may have")
    gives(s, "echo fine", "fine\n")
    gives(s, "f() { f; }; f", None, 1, "exception", "maximum", what="LIM-21: endless recursion")
    r = gives(s, "f() { if (( $1 )); then f $(($1 - 1)); else echo bottom; fi; }; f 10000", "", 1, "exception", "maximum function nesting level",
              what="10,000 levels of functions: an error", timeout=PATIENCE)
    check("and the shell is the same", not r.restarted)
    deep = "(" * 10000 + "echo x" + ")" * 10000
    gives(s, deep, "", 1, "exception", "((", what="10,000 subshells: an error", timeout=PATIENCE)
    # The innermost that gets no process waits for one as bash does, in vain; the others end with what they have.
    deep = "$(echo " * 1000 + "x" + ")" * 1000
    gives(s, "echo " + deep, "\n", 0, None, "fork: Resource temporarily unavailable", what="LIM-22: 1,000 nested substitutions end", timeout=PATIENCE)
    gives(s, "false", "", 1, "exception", what="LIM-22: a later failure has its own reason")
    gives(s, "echo $(echo $(echo $(echo word)))", "word\n", what="LIM-22: a few work")
    gives(s, "echo usable", "usable\n", what="and the session goes on")
    refused("LIM-11: a command of more than 64 KiB", "too large", s.execute, "echo " + "x" * 70000)
    gives(s, "x=" + "y" * 65000 + "; echo ${#x}", "65000\n", what="one of 64 KiB")
    s.close()
    s = opened(policy={"stdout_bytes": 2000, "stderr_bytes": 2000})
    r = s.execute("yes hello | head -100000; ls /a$(seq -s/a 1 900)")
    check("LIM-13, LIM-14: output is cut and said to be", len(r.stdout) <= 2100 and r.truncated["stdout"] and r.truncated["stderr"],
          (len(r.stdout), r.truncated))
    r = s.execute("echo short")
    check("LIM-15: not cut", not r.truncated["stdout"], r.truncated)
    s.close()
    s = opened(policy={"memory_bytes": 64 << 20})
    gives(s, "cat /etc/hostname | wc -c", None, what="LIM-20: 64 MB are enough for cat")
    r = s.execute("for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(20 << 20); import time; time.sleep(600)' & done; "
                  "wait -n; status=$?; kill $(jobs -p); exit $status", timeout=PATIENCE)
    # Where there are no control groups the supervisor ends the whole session, and says why.
    check("memory of the whole pod", r.error_kind == "memory", (r.error_kind, r.exit_code, r.stderr[:200]))
    gives(s, "echo usable", "usable\n", what="and goes on")
    s.close()
    s = opened(policy={"processes": 20})
    # bash tries for 15 seconds to get one more.
    r = gives(s, "for i in {1..200}; do sleep 600 & echo $i; done", None, 124, "timeout", what="LIM-08: a shell waits for a process", timeout=4)
    check("LIM-08: processes are bounded", len(r.stdout.split()) < 20, r.stdout)
    s.restart()
    gives(s, "python3 -c 'import os, time\nfor i in range(200):\n  if not os.fork(): time.sleep(9); os._exit(0)'", "", 1, "processes", "Errno 11",
          what="LIM-08: and the limit is named")
    s.restart()
    gives(s, "mkfifo /tmp/p; exec 9<>/tmp/p; :(){ :|:& };:; read -u 9", "", 124, "timeout", what="ADV-08: a fork bomb", timeout=3)
    gives(s, "echo $(echo usable)", "usable\n", what="ADV-08: recovers")
    s.close()
    s = opened(policy={"file_bytes": 1 << 20, "fs_bytes": 4 << 20, "file_count": 100, "open_files": 64})
    gives(s, "head -c 5000000 /dev/zero > /tmp/big", None, 153, "file_size", what="LIM-07: a file's size")
    gives(s, "stat -c %s /tmp/big; rm /tmp/big", "1048576\n")
    r = s.execute("for i in 1 2 3 4 5 6; do head -c 1000000 /dev/zero > /tmp/f$i || exit 1; done")
    check("LIM-17: bytes of the workspace", r.error_kind == "disk" and "No space left" in r.stderr, (r.error_kind, r.stderr[:100]))
    gives(s, "rm /tmp/f*; head -c 1000000 /dev/zero > /tmp/again; rm /tmp/again", "", what="LIM-17: and back")
    r = s.execute("for i in {1..200}; do : > /tmp/n$i || exit 1; done")
    check("LIM-18: number of files", r.error_kind == "disk", (r.error_kind, r.stderr[:100]))
    gives(s, "rm /tmp/n*; python3 -c 'f = [open(\"/etc/passwd\") for i in range(1000)]'", "", 1, "exception", "No file descriptors available",
          what="LIM-09: open files")
    s.close()
    s = opened(policy={"cpu_seconds": 1})
    r = s.execute("python3 -c 'while True: pass'", timeout=PATIENCE)
    check("LIM-05: CPU time, not the wall clock", r.error_kind == "cpu", (r.error_kind, r.exit_code, r.error))
    gives(s, "echo usable", "usable\n")
    s.close()


# ---- files, snapshots, forks

def files():
    s = opened()
    every = bytes(range(256)) * 10
    s.files.write("/tmp/test.bin", every)
    check("FS-01: all bytes", s.files.read("/tmp/test.bin") == every)
    gives(s, "sha256sum < /tmp/test.bin | cut -c1-8", None)
    gives(s, "echo abc > /workspace/f; mkdir -p /home/user/d/e; ln -s /workspace/f /home/user/l", "")
    check("FS-02: stat", (s.files.stat("/workspace/f").type, s.files.stat("/workspace/f").size) == ("file", 4))
    check("FS-02: list", sorted(e.name for e in s.files.list("/home/user")) == ["d", "l"], s.files.list("/home/user"))
    refused("FS-03: none there", "nonexistent", s.files.read, "/home/user/nonexistent")
    for code in ("echo evil > /etc/x", "mkdir /newtop", "rm /usr/bin/ls", "echo evil > /tmp/../../../etc/passwd",
                 "ln -s /bin /tmp/escape; echo x > /tmp/escape/backdoor", "chmod 777 /etc/passwd", "touch /usr/lib/x",
                 "mv /workspace/f /usr/bin/f"):
        gives(s, "(" + code + ") 2>/dev/null", "", 1, "exception", what="FS-04 to 10: " + code)
    gives(s, "cat /workspace/f", "abc\n", what="FS-07: the source is kept")
    gives(s, "ln -s a /tmp/b; ln -s b /tmp/a; cat /tmp/a", "", 1, "exception", "ymbolic link", what="FS-08")
    gives(s, "echo old > /tmp/ro; chmod 444 /tmp/ro; (echo new > /tmp/ro) 2>/dev/null; cat /tmp/ro", "old\n", what="FS-09")
    gives(s, "cp /usr/bin/ls /tmp/mine; chmod +x /tmp/mine; /tmp/mine 2>/dev/null", "", 126, "exception", what="FS-11")
    gives(s, "cat /dev/null; echo x > /dev/null; [ $(head -c16 /dev/urandom | xxd -p) != $(head -c16 /dev/urandom | xxd -p) ]", "", what="FS-12")
    gives(s, "head -c 100000 /dev/zero | wc -c", "100000\n", what="FS-13")
    gives(s, "a=$(cut -d' ' -f1 /proc/uptime); sleep 0.1; b=$(cut -d' ' -f1 /proc/uptime); [ ${a//.} -lt ${b//.} ] && echo more", "more\n", what="FS-14")
    gives(s, "echo x > /proc/uptime", "", 1, "exception", "Read-only file system", what="FS-14: read-only")
    gives(s, "free | grep -c Mem; grep -c MemTotal /proc/meminfo; grep -c processor /proc/cpuinfo | grep -c .; wc -l < /proc/version", "1\n1\n1\n1\n",
          what="the rest of what /proc says about a machine")
    gives(s, "echo through > /home/user/l; cat /workspace/f; readlink /home/user/l", "through\n/workspace/f\n", what="FS-19")
    gives(s, "for j in 1 2; do (for i in {1..200}; do echo line $j; done >> /tmp/both) & done; wait; wc -l < /tmp/both", "400\n", what="FS-20")
    other = opened()
    gives(other, "cat /workspace/f", "", 1, "exception", what="FS-18: not another session's")
    other.close()
    s.setenv("MODE", "original")
    gives(s, "cd /workspace; echo v1 > state; export HERE=1")
    name = s.snapshot()
    s.setenv("MODE", "changed")
    gives(s, "echo v2 > state; touch new; cd /tmp; printenv MODE", "changed\n")
    for _ in range(2):
        s.restore(name)
        gives(s, "cat state; ls new 2>/dev/null; printenv MODE; pwd", "v1\noriginal\n/workspace\n", what="SNP-01, SNP-02: restored, the directory too")
    child = s.fork()
    gives(child, "pwd; cat state; printenv MODE; echo child > state", "/workspace\nv1\noriginal\n", what="SNP-03: a fork")
    gives(s, "cat state; echo parent > state", "v1\n", what="SNP-03: independent")
    gives(child, "cat state", "child\n", what="SNP-03: both ways")
    child.close()
    blob = s.export()
    fresh = opened()
    fresh.import_(blob)
    gives(fresh, "cat /workspace/state; readlink /home/user/l", "parent\n/workspace/f\n", what="SNP-05, SNP-10: export and import")
    fresh.close()
    s.close()
    where = tempfile.mkdtemp()
    os.chmod(where, 0o755)
    with open(where + "/a.txt", "w") as f:
        f.write("mounted\n")
    s = opened(policy={"mounts": [{"host": where, "guest": "/mnt/x"}]})
    gives(s, "cat /mnt/x/a.txt; ls /mnt; (echo x > /mnt/x/b) 2>/dev/null || echo no", "mounted\nx\nno\n", what="FS-15: a mount")
    s.close()
    shutil.rmtree(where)


# ---- hostile code, Python

def adversarial():
    s = opened()
    for what, code in (("ADV-03: /etc/shadow", "cat /etc/shadow"), ("ADV-03: /root", "ls /root"),
                       ("ADV-04: the host's home", "touch /root/x"), ("ADV-05: a host's program", "/usr/bin/perl -e 1"),
                       ("ADV-06: init", "kill -9 1"), ("ADV-06: the agent", "kill -9 $PPID"), ("ADV-06: everyone", "kill -9 -1"),
                       ("its own memory", "echo x > /proc/self/mem"), ("another's", "cat /proc/1/environ"),
                       ("the runtime's descriptors", "ls -l /proc/self/fd/1008 || cat <&1008"),
                       ("the wire", "echo '{}' >&3"), ("namespaces", "unshare -r true"), ("mounts", "mount -t tmpfs x /mnt")):
        r = s.execute("{ " + code + "; } 2>/dev/null")
        check(what, not r.success and not r.restarted, (r.exit_code, r.stdout[:200]))
    check("ADV-06: only its own processes", int(s.execute("ls -d /proc/[0-9]* | wc -l").stdout) < 10)
    gives(s, "echo '{\"type\":\"result\",\"id\":1,\"ok\":true}' > /dev/fd/3", None, 1, "exception", what="ADV-07: no forged result")
    gives(s, "env | grep -i -E 'token|cordon' | wc -l", "0\n", what="TOOL-25: no token inside")
    gives(s, "echo still", "still\n")
    r = s.execute("true")
    check("the assurance names both walls", r.assurance.get("wasm") is not None and r.assurance["wall"] == "linux", r.assurance)
    s.close()


def python():
    s = opened()
    gives(s, 'python3 -c "print(1+1)"', "2\n", what="PY-01")
    gives(s, 'python3 -c "1/0"', "", 1, "exception", "ZeroDivisionError", what="PY-01: an error")
    gives(s, 'python3 -c "if"', "", 1, "exception", "SyntaxError", what="PY-01: a syntax error")
    gives(s, 'echo 5 | python3 -c "print(int(input())*2)"', "10\n", what="PY-02")
    gives(s, "echo hi > /tmp/a; python3 -c 'print(open(\"/tmp/a\").read().strip()); open(\"/tmp/b\", \"w\").write(\"back\")'; cat /tmp/b",
          "hi\nback", what="PY-03")
    gives(s, """python3 - <<'E'
import subprocess as p
print(p.run(["echo", "hi"], capture_output=True, text=True).stdout, end="")
print(p.run("echo a b | wc -w", shell=True, capture_output=True, text=True).stdout, end="")
print(p.check_output(["printf", "x"]), p.run(["bash", "-c", "exit 3"]).returncode)
print(p.run(["tr", "a", "b"], input="aaa", capture_output=True, text=True).stdout)
E""", "hi\n2\nb'x' 3\nbbb\n", what="PY-04: subprocess")
    gives(s, "python3 -c 'x = 1\nprint(x)'", "1\n", what="PY-06")
    gives(s, "python3 -c 'import json, re, csv, sqlite3, zlib, bz2, lzma, hashlib, decimal, asyncio, unittest; print(1)'", "1\n")
    s.close()


def one_shots():
    """A script's shell exits at its end, as natively: the trap on EXIT runs and may choose the status."""
    for code, out, status in (
            ("trap 'echo bye $?' EXIT; echo hi", "hi\nbye 0\n", 0),
            ("trap 'echo bye $?' EXIT; false", "bye 1\n", 1),
            ("trap 'echo bye; exit 7' EXIT; echo hi", "hi\nbye\n", 7),
            ("trap 'echo bye' EXIT; exit 3", "bye\n", 3),
            ("set -e; trap 'echo bye' EXIT; false; echo no", "bye\n", 1),
            ("trap 'cat; echo z' EXIT; cat", "given\nz\n", 0),
            ("trap 'echo bye' EXIT; kill -9 $$", "", 137)):
        done = subprocess.run([os.environ["CORDON"], "run", "--guest", "pod", "-e", code], input="given\n", capture_output=True, text=True,
                              timeout=120)
        check("one-shot: " + code, (done.stdout, done.returncode) == (out, status), (done.stdout, done.returncode, done.stderr))


    for name, code, out, status in (
            ("text behind an exit is not read", "echo ran\nexit 3\nif then (\n", "ran\n", 3),
            ("what comes before broken text runs", "echo ran\nif then (\n", "ran\n", 2),
            ("an alias may be half of a command", "shopt -s expand_aliases\nalias begin='{' end='}'\nbegin echo block; end\n", "block\n", 0),
            ("a failing assignment does not end the rest", "readonly x=1\nx=2\necho on\n", "on\n", 0)):
        for options in ([], ["--workspace", "guest-test-%d" % os.getpid()]):
            with tempfile.NamedTemporaryFile("w", suffix=".sh") as f, tempfile.TemporaryDirectory() as home:
                f.write(code)
                f.flush()
                done = subprocess.run([os.environ["CORDON"], "run", "--guest", "pod", *options, f.name], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=120, env={**os.environ, "XDG_DATA_HOME": home})
            check("a file%s: %s" % (" in a session" if options else "", name), (done.stdout, done.returncode) == (out, status),
                  (done.stdout, done.returncode, done.stderr))


def late():
    """An interrupt or a cancel at any moment of an execution, its end too, hits no later one and costs no shell."""
    def work(seed):
        r, s = random.Random(seed), opened()
        s.execute("x=42")
        for _ in range(40):
            first = threading.Thread(target=s.execute, args=(r.choice(("echo hi", "sleep 0.01", "for i in {1..300}; do :; done", "ls | cat")),))
            first.start()
            for _ in range(r.randrange(200)):
                os.sched_yield()
            getattr(s, r.choice(("interrupt", "cancel")))()
            first.join()
            after = s.execute("echo $x")
            if (after.exit_code, after.stdout) != (0, "42\n"):
                bad.append((after.exit_code, after.stdout, after.error))
        s.close()

    bad = []
    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    check("^C and cancel at any moment: the next command is not hit", not bad, bad[:4])
    slow = "bash -c 'trap \"sleep 0.1; exit 130\" INT; echo go; while :; do sleep 0.01; done'"
    stopped("cancel: a program that takes a while to stop costs no shell", slow, "cancel")


def proof():
    done = subprocess.run([os.environ["CORDON"], "doctor", "--json"], capture_output=True, text=True, timeout=300)
    pod = [g for g in json.loads(done.stdout)["guests"] if g["guest"] == "pod"][0]
    check("doctor: the pod's version", pod["there"] and re.fullmatch(r"cordon-pod [0-9.]+ \(.*bash 5\.[0-9.]+.*\)", pod["version"] or ""), pod)
    done = subprocess.run([os.environ["CORDON"], "doctor", "--prove", "--guest", "pod", "--quick", "--json"], capture_output=True,
                          text=True, timeout=300)
    report = json.loads(done.stdout)
    check("doctor: the pod's second wall holds by itself", done.returncode == 0 and report["open"] == 0 and report["broken"] == 0,
          [a for a in report.get("pod", []) if a["outcome"] in ("open", "broken")])
    check("doctor: by more than a hundred attacks", len(report.get("pod", [])) > 100, len(report.get("pod", [])))
    check("doctor: after the seal, as a module would", all(a["sealed"] for a in report["pod"]), report["pod"][0])
    done = subprocess.run([os.environ["CORDON"], "doctor", "--prove", "--guest", "pod", "--attack", "keyctl", "--json"], capture_output=True,
                          text=True, timeout=300)
    layers = [a["layers"] for a in json.loads(done.stdout)["pod"]]
    check("doctor: what stops one: both filters, each alone", layers == [["seccomp", "seal"]], (layers, done.stderr))


GROUPS = {f.__name__: f for f in (sessions, set_up, tools, denials, network, interrupts, late, clocks, limits, files, adversarial, python, one_shots, proof)}

def as_user(groups):
    where = tempfile.mkdtemp()
    try:
        os.chmod(where, 0o755)
        shutil.copy(os.environ["CORDON"], where + "/cordon")
        gateway = os.environ.get("CORDON_GATEWAY") or os.path.join(os.path.dirname(os.environ["CORDON"]), "src/net/cordon-gateway")
        if os.path.exists(gateway):
            shutil.copy(gateway, where + "/cordon-gateway")
        shutil.copytree(image(), where + "/pod", symlinks=True)
        shutil.copytree(os.path.dirname(cordon.__file__), where + "/client/cordon")
        shutil.copy(os.path.abspath(__file__), where + "/test.py")
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "CORDON": where + "/cordon",
               "CORDON_POD": where + "/pod", "CORDON_CLIENT": where + "/client", "CORDON_GATEWAY": where + "/cordon-gateway"}
        user = ["setpriv", "--reuid", "64999", "--regid", "64999", "--clear-groups"] if os.geteuid() == 0 else []
        return subprocess.call(user + [sys.executable, where + "/test.py", *groups], env=env, cwd="/")
    finally:
        shutil.rmtree(where)


def image():
    return os.environ.get("CORDON_POD") or os.path.join(os.path.dirname(os.environ["CORDON"]), "pod")


if __name__ == "__main__":
    if not os.access(image() + "/bin/cordon-pod", os.X_OK):
        strict = os.environ.get("CORDON_NEEDS") == "strict"
        print("1..1\nnot ok 1 - there is no pod image: make pod" if strict else "1..0 # skip there is no pod image: make pod")
        sys.exit(strict)
    if "--user" in sys.argv:
        sys.exit(as_user([a for a in sys.argv[1:] if a != "--user"]))
    for name in sys.argv[1:] or GROUPS:
        print("# --- " + name)
        GROUPS[name]()
    print("1..%d" % count)
    print("# %d of %d failed" % (failed, count))
    sys.exit(bool(failed))

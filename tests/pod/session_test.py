# tests/pod/session_test.py - a session's shell keeps its state and survives what ends a shell.
"""usage: session_test.py CORDON_POD ROOT   (TAP)"""
import sys
import time

from agent_client import Session

pod, root = sys.argv[1:3]
count = failed = 0


def check(what, ok, note=""):
    global count, failed
    count += 1
    failed += not ok
    print("%s %d - %s%s" % ("ok" if ok else "not ok", count, what, "" if ok else "  # %s" % (note,)))
    sys.stdout.flush()


def gives(session, command, out, status=0, restarted=False, stdin=b""):
    got = session.run(command, stdin)
    check(command.split("\n")[0][:70], got[0] == status and got[1] == out and got[3] == restarted, got)


s = Session(pod, root)
gives(s, "echo hello", "hello\n")
gives(s, "x=5; f() { echo f$1; }; alias al='echo aliased'; cd /tmp; set -o noglob; export E=env", "")
gives(s, "echo $x; f 1; al; pwd; echo *; printenv E", "5\nf1\naliased\n/tmp\n*\nenv\n")
gives(s, "set +o noglob; (exit 3)", "", 3)
gives(s, "echo $?", "3\n")
gives(s, "cat; echo end", "given\nend\n", stdin=b"given\n")
gives(s, "if true; then", "", 2)
gives(s, "echo alive $x", "alive 5\n")
gives(s, "(", "", 2)
gives(s, "for", "", 2)
gives(s, "echo still", "still\n")
gives(s, "exit 4", "", 4)
gives(s, "echo $x; f 2", "5\nf2\n")
gives(s, "g() { local x=inner; while true; do exit 6; done; }; g", "", 6)
gives(s, "echo $x", "5\n")
gives(s, "trap 'echo bye' EXIT; exit 1", "bye\n", 1)
gives(s, "echo after the trap", "after the trap\n")
gives(s, "set -e; false; echo never", "", 1)
gives(s, "set +e; echo on", "on\n")
gives(s, "exec echo replaced", "replaced\n")
gives(s, "echo $x", "5\n")
gives(s, "exec false", "", 1)
gives(s, "set -u; echo $undefined", "", 1)
gives(s, "set +u; echo $x", "5\n")
gives(s, "nosuch || echo fallback", "fallback\n")
gives(s, "exec > /tmp/redirected; echo to file", "")
gives(s, "cat /tmp/redirected", "to file\n")
gives(s, "sleep 30 & echo started", "started\n")
gives(s, "kill %1; wait; jobs | wc -l", "0\n")
gives(s, "history | tail -n 1 | sed 's/^ *[0-9]* *//'", "history | tail -n 1 | sed 's/^ *[0-9]* *//'\n")
gives(s, "f() { f; }; f 2>/dev/null; echo never", "", 1)
gives(s, "echo usable", "usable\n")
gives(s, "trap 'echo usr1' USR1; kill -USR1 $$; echo done", "usr1\ndone\n")
gives(s, "kill -9 $$", "", 137, restarted=True)
got = s.run("echo new ${x-unset}; pwd")
check("a killed shell is replaced, in its directory", got[:2] == (0, "new unset\n/tmp\n") and not got[3], got)
gives(s, "kill -TERM $PPID", "", 1)
gives(s, "kill -9 -1", "", 1)
gives(s, "echo x > /proc/self/mem", "", 1)
gives(s, "ls /nonexistent", "", 2)
gives(s, "x=" + "y" * 65000 + "; echo ${#x}", "65000\n")
s.send("R", "sleep 60", (0, 1, 2))
time.sleep(0.1)
s.send("C")
status, flags = s.done()
check("cancel ends a command", (status, flags) == (137, 1), (status, flags))
gives(s, "echo after cancel", "after cancel\n")
s.send("R", "while true; do :; done", (0, 1, 2))
time.sleep(0.1)
s.send("R", "echo second", (0, 1, 2))
check("a second command is refused", s.done()[0] == "refused: a command is running")
s.send("C")
check("a loop of builtins is cancelled", s.done()[0] == 137)
s.run(":")
best = 9
for _ in range(200):
    t = time.perf_counter()
    s.run(":")
    best = min(best, time.perf_counter() - t)
print("# a builtin takes %.3f ms at best" % (best * 1e3))
s.close()

s = Session(pod, root)
gives(s, "cat /proc/self/cmdline | tr '\\0' '|'; echo; exec -a other head -c 99 /proc/self/cmdline | tr '\\0' '|'", "cat|/proc/self/cmdline|\nother|-c|99|/proc/self/cmdline|")
gives(s, "sh -c 'exec cat /proc/$$/cmdline' | cut -d/ -f1,2,4 | tr '\\0' '|'", "cat|/proc/cmdline|\n")
s.close()

# Python that goes on from a snapshot is as one that has been started.
s = Session(pod, root, "--warm")
cold = Session(pod, root)
for code in (
    "print(sorted(k for k in globals() if not k.startswith('__')), __name__)",
    "import re, sys\nprint(sorted(globals())[-2:], sys.stdin.name, sys.stdout.mode, sys.stdout is sys.__stdout__, sys.argv, sys.path[0])",
    "class A:\n    def __init__(self): self.me = self\n    def __del__(self): print('gone')\na = A(); del A\nprint('end')",
    "import atexit, os\natexit.register(print, 'at exit')\nprint(os.environ['HOME'], len(os.environ))",
    "import sys\nsys.path.insert(0, '/tmp')\nimport ended\nprint(ended.__name__)",
    "json",
    "import sys\nsys.stdout = open('/tmp/away', 'w')\nprint(1)",
):
    s.run("mkdir -p /tmp; printf 'class B:\\n  def __del__(self): print(\"of a module\")\\nb = B()\\n' > /tmp/ended.py")
    command = 'python3 -B -c "%s"' % code.replace('"', '\\"')
    warm, started = s.run(command), cold.run(command)
    check("warm Python: " + code.split("\n")[-1][:60], warm == started, (warm, started))
gives(s, "cat /tmp/away; rm /tmp/away /tmp/ended.py", "1\n")
s.close()
cold.close()

s = Session(pod, root, "--commands", "bash,echo,cat")
gives(s, "echo $(grep x /etc/passwd)", "\n")
check("the host is told of a denial", s.denials == ["exec grep"], s.denials)
gives(s, "cat /etc/hostname | grep pod", "", 126)
gives(s, "grep root /etc/passwd 2>/dev/null", "", 126)
check("also where its message was hidden", s.denials[-1] == "exec grep", s.denials)
s.denials.clear()
s.run("echo 'x: tool not allowed by security policy' >&2")
check("a forged message is no denial", s.denials == [], s.denials)
for way in (
    "/usr/bin/grep x /etc/passwd",
    "cp /usr/bin/grep /tmp/g; /tmp/g",
    "ln -s /usr/bin/grep /tmp/l$$; /tmp/l$$ x",
    "exec grep x /etc/passwd",
    "exec -a cat grep x /etc/passwd",
    "bash -c 'grep x /etc/passwd'",
    "echo 'grep x /etc/passwd' > /tmp/s; . /tmp/s",
    "printf '#!/usr/bin/grep x\\n' > /tmp/sb; bash /tmp/sb; /tmp/sb",
    "command grep x; builtin grep x; eval grep x",
    "hash -p /usr/bin/grep cat; cat x /etc/passwd",
    "cat() { grep root /etc/passwd; }; cat",
    "PATH=/bin:/sbin; grep root /etc/passwd",
    "/proc/self/exe grep root",
    "coproc grep root /etc/passwd; wait",
    "cat <(grep root /etc/passwd)",
):
    got = s.run(way)
    check("allowlist: " + way[:60], "root:" not in got[1], got)
s.close()
print("1..%d" % count)
print("# %d of %d failed" % (failed, count))
sys.exit(bool(failed))

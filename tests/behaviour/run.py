#!/usr/bin/python3
"""The result of a one-shot run: values, output, and each kind of reason why the code ended."""
import os

from oneshot import below, case, has, main, run

SECRET = {"MY_SECRET": "leaked", "LD_PRELOAD": "", "R_LIBS": "/leak", "PYTHONPATH": "/leak", "AWS_SECRET_ACCESS_KEY": "leaked"}

CASES = [
    # SES-01, 02, 04: values and errors.
    case("the value of an expression", "1 + 1", success=True, result=2, result_text="2", error=None, error_kind=None,
         exit_code=0),
    case("several lines, the last is the value", "x = 10\ny = 20\nx + y", result=30),
    case("output and no value", "print('hi')", success=True, result=None, stdout="hi\n"),
    case("a variable named result wins", "result = 5\n7", result=5),
    case("an exception", "raise ValueError('user error')", status=1, success=False, error_kind="exception",
         error=has("user error"), exception__name="ValueError", exit_code=1),
    case("the line of an exception", "x = 1\n\n1 / 0", status=1, exception__line=3, exception__name="ZeroDivisionError"),
    case("a syntax error", "def f(:\n", status=1, error_kind="syntax", exception__name="SyntaxError"),
    case("empty code", "", success=True, result=None),
    case("white space", "  \n\t\n", success=True, result=None),
    case("exit with a status", "import sys; print('x'); sys.exit(3)", status=3, success=False, exit_code=3, stdout="x\n"),
    case("exit with zero", "import sys; sys.exit(0)", status=0, success=True),
    case("leave at once", "import os; os._exit(4)", status=4, exit_code=4, success=False),
    case("precision", "0.1 + 0.2", result=0.30000000000000004),
    case("big integers", "2 ** 80", result=has("1208925819614629174706176")),
    case("Unicode", "print('äöü€😀'); 'äöü€😀'", stdout="äöü€😀\n", result="äöü€😀"),
    case("bytes that are no text on stdout", "import sys; sys.stdout.buffer.write(b'a\\xffb'); None", stdout="a\ufffdb"),
    case("stderr apart", "import sys; print('e', file=sys.stderr)", stdout="", stderr="e\n"),
    case("standard input", "input() + '|' + __import__('sys').stdin.read()", stdin=b"one\ntwo\n", result="one|two\n"),
    case("no standard input", "__import__('sys').stdin.read()", result=""),
    case("context", "a + len(b)", options=["--context", '{"a": 1, "b": [1, 2]}'], result=3),
    # Shell.
    case("sh: output and status 0", "echo a; echo b >&2", "sh", success=True, stdout="a\n", stderr="b\n", exit_code=0),
    case("sh: the script's own status", "exit 7", "sh", status=7, success=False, exit_code=7),
    case("sh: arguments of pipes", "seq 5 | tail -1", "sh", stdout="5\n"),
    case("sh: standard input", "cat", "sh", stdin=b"through\n", stdout="through\n"),
    case("sh: a syntax error", "if true; then", "sh", status=2, error_kind="syntax"),
    case("sh: unknown command goes on", "nosuchcommand || echo fallback", "sh", stdout="fallback\n", success=True),
    case("sh: reserved words as arguments", "echo done; for i in a; do echo do; done", "sh", stdout="done\ndo\n"),
    case("sh: quoting", 'x="a b"; [ "$x" = "a b" ] && echo same; set -- "$x"; echo $#', "sh", stdout="same\n1\n"),
    # Time.
    case("TMO-01: an endless loop", "print('part', flush=True)\nwhile True: pass", options=["--timeout", "1s"], status=124,
         error_kind="timeout", error="Execution timed out after 1 second", exit_code=124, stdout="part\n",
         execution_time_ms=below(5000)),
    case("TMO-02: a sleep", "import time; time.sleep(60)", options=["--timeout", "1s"], status=124, error_kind="timeout"),
    case("TMO-04: no timeout", "42", options=["--timeout", "none"], result=42),
    case("TMO-05: sh", "seq 1 999999999", "sh", ["--timeout", "100ms"], status=124, error_kind="timeout",
         error="Execution timed out after 100 ms"),
    case("TMO-06: a chain", "sleep 9 && sleep 9", "sh", ["--timeout", "200ms"], status=124, error_kind="timeout"),
    case("TMO-08: a clock loop", "import time\nwhile True: time.time()", options=["--timeout", "300ms"], status=124),
    case("TMO-12: a builtin loop", "while true; do :; done", "sh", ["--timeout", "500ms"], status=124,
         execution_time_ms=below(4000)),
    case("deaf to signals", "import signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n"
         "  except (OSError, ValueError): pass\ntime.sleep(60)", options=["--timeout", "500ms"], status=124),
    # Causes of death.
    case("crash: SIGSEGV is named", "import os; os.kill(os.getpid(), 11)", status=139, error_kind="crashed",
         error=has("signal 11"), exit_code=139),
    case("crash: SIGABRT is named", "import os; os.abort()", status=134, error_kind="crashed", error=has("signal 6")),
    case("crash: ctypes", "import ctypes; ctypes.string_at(0)", status=139, error_kind="crashed"),
    case("crash: sh", "kill -SEGV $$", "sh", status=139, error_kind="crashed"),
    case("killing oneself is no limit", "import os; os.kill(os.getpid(), 9)", status=137, error_kind="crashed",
         error=has("signal 9")),
    case("the wire: garbage", "import os; os.write(3, b'garbage\\n'); 1", status=125, error_kind="protocol"),
    case("the wire: closed", "import os; os.close(3); 1", status=1, success=False, result=None,
         error_kind=lambda v: v in ("crashed", "exception")),
    case("the wire: a result of another execution is ignored",
         "import os; os.write(3, b'{\"type\":\"result\",\"id\":999,\"ok\":true,\"value\":1}\\n'); 2", result=2),
    # Environment: ENV-01 to 03.
    case("ENV-01: a secret of the host", "import os; os.environ.get('MY_SECRET')", env=SECRET, result=None),
    case("ENV-01: nowhere in the environment", "import os; 'leak' in str(os.environ) + open('/proc/self/environ').read()",
         env=SECRET, result=False),
    case("ENV-02: PATH", "import os; bool(os.environ['PATH'])", result=True),
    case("ENV-03: variables of loaders", "import os; [n for n in os.environ if n.startswith(('LD_', 'R_', 'PYTHON'))"
         " and n != 'PYTHONDONTWRITEBYTECODE']", env=SECRET, result=[]),
    case("--env", "import os; os.environ['A'] + os.environ['HOME']", options=["--env", "A=b"], result="b/home/user"),
    case("sh: the secret", "echo ${MY_SECRET:-none}", "sh", env=SECRET, stdout="none\n"),
    case("identity", "import os; [os.getuid(), os.getgid(), os.uname().nodename, os.getcwd()]",
         result=[1000, 1000, "sandbox", "/home/user"]),
    # What programs read of the machine: the sandbox's own limits.
    case("free", "free -b | awk '/^Mem/ { print $2 }'", "sh", ["--set", "memory_bytes=100M"], stdout=f"{100 << 20}\n"),
    case("uptime", "uptime", "sh", success=True, stdout=has("up", "load average: 0.00")),
    case("nproc --all", "unset OMP_NUM_THREADS; [ $(nproc) = $(nproc --all) ] && [ $(nproc) = $(grep -c ^processor /proc/cpuinfo) ]", "sh",
         success=True),
    case("Node: os.cpus()", "const os = require('os'); [os.cpus().length > 0, os.totalmem()]", "node",
         ["--set", "memory_bytes=300M"], result=[True, 300 << 20]),
    case("R: detectCores()", "parallel::detectCores()", "r", result=lambda n: n in (1, len(os.sched_getaffinity(0)))),
    case("Python: what psutil reads when it is imported",
         "s = open('/proc/stat').read(); m = open('/proc/meminfo').read(); s.startswith('cpu ') and 'btime' in s and 'Cached:' in m",
         result=True),
    # The real one, where it is installed (tools/setup).
    *([case("Python: psutil", "import psutil; m = psutil.virtual_memory(); [m.total, m.available <= m.total, psutil.cpu_count() > 0, "
            "psutil.boot_time() > 0, psutil.Process().pid > 0]", options=["--set", "memory_bytes=300M"],
            result=[300 << 20, True, True, True, True])] if os.path.isdir("/usr/lib/python3/dist-packages/psutil") else []),
    case("the host's memory is nowhere in it", "import os; host = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 1024; "
         "str(host) in open('/proc/meminfo').read()", result=False),
    case("they cannot be changed", "import os; os.chmod('/proc/meminfo', 0o777)", status=126, error=has("Read-only file system")),
    case("nor listed with more", "import os; sorted(n for n in os.listdir('/proc') if not n.isdigit())", result=["self", "thread-self"]),
    # Levels: LVL-01.
    case("LVL-01: strict is proven", "1", options=["--level", "strict"], success=True,
         assurance__limits__memory_bytes=256 << 20, assurance__limits__processes=16, assurance__limits__cpu_seconds=10),
    case("LVL-01: permissive", "1", options=["--level", "permissive"], assurance__limits__memory_bytes=1 << 30),
    case("assurance", "1", assurance__wall="linux", assurance__landlock=lambda v: v >= 1, assurance__no_new_privs=True,
         assurance__seccomp=has("sha256:"), assurance__capabilities=False,
         assurance__namespaces=["user", "pid", "mount", "net", "ipc", "uts", "cgroup"]),
]


def streams(tap, who, uid):
    """Without --json output goes through, the value comes last, and the status is the same."""
    status, out, err, _ = run(["run", "-e", "print('a')\nimport sys; print('b', file=sys.stderr)\n6 * 7"], uid)
    tap.check((status, out, err) == (0, b"a\n42\n", b"b\n"), f"{who}: plain output, then the value", status, out, err)
    status, out, err, _ = run(["run", "-e", "print('a')\n1 / 0"], uid)
    tap.check(status == 1 and out == b"a\n" and b"ZeroDivisionError" in err, f"{who}: plain failure", status, out, err)
    status, out, err, _ = run(["run", "-g", "sh", "-e", "echo $1 $2", "x", "y"], uid)
    tap.check((status, out) == (0, b"x y\n"), f"{who}: arguments of a script", status, out, err)


# Optional in tools/setup.
if os.path.isdir("/usr/lib/R/site-library/ggplot2"):
    CASES += [
        case("rich: a plot of ggplot2 comes back as a picture", "library(ggplot2)\nggplot(data.frame(x = 1:3, y = c(2, 4, 8)), aes(x, y)) + geom_line()",
             "r", outputs=lambda o: [x["mime"] for x in o] == ["image/png"] and len(o[0]["data"]) > 1000),
    ]


main(CASES, streams)

#!/usr/bin/python3
"""Every limit is enforced and read back, and the result names the one that was reached."""
import os
import subprocess

from oneshot import become, case, has, main, run, CORDON

READ_BACK = """
import resource as r
names = {"cpu": r.RLIMIT_CPU, "data": r.RLIMIT_DATA, "fsize": r.RLIMIT_FSIZE, "nproc": r.RLIMIT_NPROC, "nofile": r.RLIMIT_NOFILE,
         "stack": r.RLIMIT_STACK, "core": r.RLIMIT_CORE}
{k: list(r.getrlimit(v)) for k, v in names.items()}
"""
FORKS = """
import os, signal
pids = []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        pids.append(pid)
finally:
    print(len(pids))
"""
FILES = """
made = 0
try:
    for i in range(5000):
        open(f"/tmp/f{i}", "w").close()
        made += 1
finally:
    print(made)
"""
OPEN = """
held = []
try:
    for i in range(1000):
        held.append(open("/etc/passwd"))
except OSError as e:
    print(len(held) < 257, e.errno)
"""

CASES = [
    # LIM-03, 04: defaults, read back from inside and in the assurance.
    case("LIM-04: the defaults from inside", READ_BACK,
         result={"cpu": [60, 60], "data": [512 << 20] * 2, "fsize": [50 << 20] * 2, "nproc": [50, 50], "nofile": [256, 256],
                 "stack": [8 << 20] * 2, "core": [0, 0]}),
    case("LIM-04: chosen ones from inside", READ_BACK,
         options=["--memory", "100M", "--set", "cpu_seconds=7", "--set", "file_bytes=3M", "--set", "processes=20", "--set",
                  "open_files=99"],
         result=has('"cpu": [7, 7]', f'"data": [{100 << 20}, {100 << 20}]', f'"fsize": [{3 << 20}, {3 << 20}]',
                    '"nproc": [20, 20]', '"nofile": [99, 99]'),
         assurance__limits__memory_bytes=100 << 20, assurance__limits__open_files=99),
    # LIM-13: no half of a character.
    case("LIM-13: cut between characters", "print('\u00e9' * 9)", options=["--set", "stdout_bytes=5"], stdout="\u00e9\u00e9",
         truncated__stdout=True),
    case("LIM-13: cut in a wide character", "print('a' + chr(0x1f600) * 9)", options=["--set", "stdout_bytes=8"],
         stdout="a\U0001f600", truncated__stdout=True),
    case("LIM-13: cut after a character", "print('\u00e9' * 9)", options=["--set", "stdout_bytes=6"], stdout="\u00e9" * 3,
         truncated__stdout=True),
    case("LIM-13: not cut, and no text", "import sys; sys.stdout.buffer.write(b'a\\xc3'); None", options=["--set", "stdout_bytes=2"],
         stdout="a\ufffd", truncated__stdout=False),
    # LIM-05: CPU.
    case("LIM-05: CPU time", "while True: pass", options=["--set", "cpu_seconds=1", "--timeout", "60s"], status=137,
         error_kind="cpu", error=has("CPU time limit of 1 second was"), exit_code=137),
    case("LIM-05: CPU time in a shell", "while :; do :; done", "sh", ["--set", "cpu_seconds=1", "--timeout", "60s"],
         status=137, error_kind="cpu"),
    # LIM-06: memory.
    case("LIM-06: one big string", "x = 'x' * (100 << 20)", options=["--memory", "50M"], status=137, error_kind="memory"),
    case("LIM-06: growing", "x = []\nwhile True: x.append(bytearray(1 << 20))", options=["--memory", "64M"], status=137,
         error_kind="memory"),
    case("LIM-06: shared memory", "import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, 300 << 20, 4096): m[i] = 1\n"
         "import time; time.sleep(3)", options=["--memory", "64M"], status=137, error_kind="memory"),
    case("LIM-06: ten gigabytes", "x = bytearray(10 << 30)", status=137, error_kind="memory"),
    # Bash takes its time to read a variable, where the machine is emulated above all.
    case("LIM-06: sh", "x=$(head -c 300M /dev/zero | tr '\\0' x); echo ${#x}", "sh",
         ["--memory", "32M", "--timeout", "110s", "--set", "cpu_seconds=110"],
         stdout=lambda v: v != f"{300 << 20}\n", status=137, error_kind="memory"),
    case("LIM-06: node, buffers: the kernel's word", "const a = []; for (let i = 0; i < 4000; i++) a.push(Buffer.alloc(1 << 20, 1)); a.length",
         "node", ["--memory", "200M"], status=137, error_kind="memory", error=has("killed: the memory limit of 209715200 bytes")),
    case("LIM-06: node, V8's heap", "const a = []; for (;;) a.push({x: a.length, y: [a.length]})", "node",
         ["--memory", "300M", "--timeout", "110s", "--set", "cpu_seconds=110"], status=137, error_kind="memory"),
    case("LIM-06: node that aborts has not run out of memory", "process.abort()", "node", ["--memory", "300M"], status=134,
         error_kind="crashed"),
    case("LIM-20: 64 MB are enough for node", "[1, 2, 3].map((x) => x * 2).length", "node", ["--memory", "64M"], result=3),
    case("LIM-20: 64 MB are enough for a small job", "echo small > f; cat f", "sh", ["--memory", "64M"], stdout="small\n"),
    # LIM-07: file size, disk.
    case("LIM-07: file size", "open('/tmp/x', 'wb').write(b'x' * (5 << 20))", options=["--set", "file_bytes=1M"], status=1,
         error_kind="file_size"),
    case("LIM-07: the file stays within", "import os\ntry: open('/tmp/x', 'wb').write(b'x' * (5 << 20))\nexcept OSError: pass\n"
         "os.path.getsize('/tmp/x') <= 1 << 20", options=["--set", "file_bytes=1M"], result=True),
    case("LIM-07: sh", "head -c 5M /dev/zero > x; exit $?", "sh", ["--set", "file_bytes=1M"], status=153,
         error_kind="file_size"),
    case("LIM-17: disk", "open('/tmp/x', 'wb').write(b'x' * (5 << 20))", options=["--set", "fs_bytes=1M"], status=1,
         error_kind="disk", error=has("No space left")),
    case("LIM-17: sh", "head -c 5M /dev/zero > x", "sh", ["--set", "fs_bytes=1M"], status=1, error_kind="disk"),
    case("LIM-17: space comes back", "import os\nfor i in range(20):\n  open('/tmp/x', 'wb').write(b'x' * (600 << 10))\n"
         "  os.unlink('/tmp/x')\n'ok'", options=["--set", "fs_bytes=1M"], result="ok"),
    case("LIM-18: file count", FILES, options=["--set", "file_count=100"], status=1, error_kind="disk",
         stdout=lambda v: 90 <= int(v) <= 100),
    # LIM-08, 09: processes and descriptors.
    case("LIM-08: processes", FORKS, options=["--set", "processes=30"], status=1, error_kind="processes",
         stdout=lambda v: 20 <= int(v) <= 30),
    case("LIM-08: threads", "import threading\ne = threading.Event()\ntry:\n  for _ in range(200): threading.Thread(target=e.wait).start()\n"
         "finally: e.set()", status=1, error_kind="processes"),
    case("LIM-08: a fork bomb in a shell", ":(){ :|:& };:; sleep 1", "sh", ["--timeout", "5s"], status=None,
         error_kind=lambda v: v in (None, "processes", "timeout"), stderr=has("fork")),
    case("LIM-09: descriptors", OPEN, stdout="True 24\n"),
    # LIM-10, 11: code.
    case("LIM-10: code of exactly the limit", "1 + 1", options=["--set", "code_bytes=5"], result=2),
    # LIM-12 to 16: output.
    case("LIM-12: lines", "for i in range(100): print(i)", options=["--set", "output_lines=3"], stdout="0\n1\n2\n",
         truncated__stdout=True, success=True),
    case("LIM-13: bytes of stdout", "yes hello | head -100", "sh", ["--set", "stdout_bytes=20"], stdout=lambda v: len(v) == 20,
         truncated__stdout=True, truncated__stderr=False),
    case("LIM-14: bytes of stderr", "cat /a /b /c", "sh", ["--set", "stderr_bytes=20"], status=1, truncated__stderr=True,
         stderr=lambda v: len(v) == 20),
    case("LIM-15: not truncated", "echo hello", "sh", ["--set", "stdout_bytes=1M"], truncated__stdout=False, stdout="hello\n"),
    case("LIM-16: 50 MB by default", "print('x' * (50 << 20))", stdout=lambda v: len(v) == 1 << 20, truncated__stdout=True,
         success=True),
    case("LIM-21: recursion in a shell", "f(){ f; }; f", "sh", ["--timeout", "60s", "--set", "stack_bytes=1M"], success=False,
         status=139, error_kind="crashed"),
    case("LIM-21: recursion in Python", "def f(): f()\nf()", status=1, error_kind="exception", exception__name="RecursionError"),
]


def code_length(tap, who, uid):
    status, out, err, _ = run(["run", "--set", "code_bytes=3", "-e", "1 + 1"], uid)
    tap.check(status == 2 and b"Code too long (5 chars, max 3)" in err and not out, f"{who}: LIM-10: code over the limit",
              status, out, err)
    status, out, err, _ = run(["run", "-g", "sh", "--set", "command_bytes=50", "-e", "echo " + "x" * 100], uid)
    tap.check(status == 2 and b"Command too large" in err and not out, f"{who}: LIM-11: command over the limit", status, out, err)


def small_node(tap, who, uid):
    status, out, err, _ = run(["run", "-g", "node", "--memory", "31M", "-e", "1"], uid)
    tap.check(status == 2 and b"memory_bytes of 32505856: it needs 33554432 (memory_bytes=32M)" in err and not out,
              f"{who}: LIM-20: less than Node starts with", status, out, err)


def peak_of(words, uid):
    """The most memory the program itself had while it ran, in kB."""
    child = subprocess.Popen([CORDON, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             cwd="/", preexec_fn=become(uid))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage.ru_maxrss


def flat_memory(tap, who, uid):
    code = "import sys\nfor _ in range(1600): sys.stdout.write('x' * 65536)"
    for name, words in (("kept", ["run", "--json", "-e", code]), ("passed through", ["run", "-e", code])):
        status, small = peak_of(["run", "-e", "1"], uid)
        status, big = peak_of(words, uid)
        # Sanitizers have memory of their own: the difference counts.
        tap.check(status == 0 and big - small < 16 << 10, f"{who}: 100 MB of output {name}: the host's memory stays flat",
                  status, f"{small} kB idle, {big} kB")


main(CASES, code_length, small_node, flat_memory)

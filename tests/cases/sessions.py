"""SES, TMO, STR, POOL: sessions, time, streams, pools."""
import gc
import os
import subprocess
import threading
import time

from book import CORDON, LANGUAGES, NATIVE, SAY, case, cordon, has, refused, same, session, value, wait_until

ALL = NATIVE + ("pod",)
# In a shell a failing command is not an exception, and a syntax error is the shell's own.
PID = {"python": "import os; os.getpid()", "sh": "echo $$"}


@case("SES-01", ALL)
def a_value(guest):
    with session(guest) as s:
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("SES-02", ALL)
def several_lines(guest):
    with session(guest) as s:
        same(str(value(s.execute(SAY["lines"][guest]))), "30")


@case("SES-03", ALL)
def state_stays(guest):
    with session(guest) as s:
        assert s.execute(SAY["set"][guest]).success
        same(str(value(s.execute(SAY["get"][guest]))), "20")


@case("SES-04", ALL)
def an_error_and_on(guest):
    with session(guest) as s:
        r = s.execute(SAY["fail"][guest])
        assert not r.success
        has((r.error or "") + r.stderr, "user error")
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("SES-05", ALL)
def closed(guest):
    s = cordon.Session(guest)
    assert s.is_alive
    s.close()
    assert not s.is_alive
    for call in (lambda: s.execute("1"), s.restart, s.snapshot, lambda: s.files.read("/tmp/x"), lambda: s.files.write("/tmp/x", "")):
        refused(call, "Session is not running")
    s.close()


def host_pid(s):
    return s.describe()["pid"]


def gone(pid):
    wait_until(lambda: not os.path.exists("/proc/%d" % pid))


def kill(pid):
    os.kill(pid, 9)
    gone(pid)


@case("SES-06", ALL)
def nothing_left_after_close(guest):
    s = cordon.Session(guest)
    s.execute(SAY["two"][guest])
    pid = host_pid(s)
    assert os.path.exists("/proc/%d" % pid)
    s.close()
    gone(pid)


@case("SES-07", NATIVE)
def restart(guest):
    with session(guest, tools=[cordon.tool(lambda: "pong", name="ping")]) as s:
        before = host_pid(s)
        s.execute(SAY["set"][guest])
        s.restart()
        assert host_pid(s) != before
        r = s.execute(SAY["get"][guest])
        assert not r.success or r.stdout.strip() == "0"
        has(str(value(s.execute("ping()" if guest != "sh" else "ping"))), "pong")


@case("SES-08", ALL)
def killed_from_outside(guest):
    with session(guest) as s:
        s.execute(SAY["two"][guest])
        kill(host_pid(s))
        s.restart()
        assert s.is_alive
        same(str(value(s.execute(SAY["two"][guest]))), "2")


def in_background(function):
    got = []
    thread = threading.Thread(target=lambda: got.append(function()))
    thread.start()
    return thread, got


@case("SES-09 SES-10", ALL)
def one_at_a_time(guest):
    with session(guest) as s:
        up = threading.Event()
        thread, got = in_background(lambda: s.execute(SAY["up"][guest], on_stdout=lambda _: up.set()))
        assert up.wait(30)
        refused(s.restart, "Cannot restart while an execution is in progress")
        refused(lambda: s.execute("1"), "concurrent")
        s.cancel()
        thread.join()
        same(got[0].error_kind, "cancelled")


@case("SES-11", ALL)
def one_shot(guest):
    done = subprocess.run([CORDON, "run", "-g", guest, "-e", SAY["two"][guest]], stdout=subprocess.PIPE, check=True)
    has(done.stdout.decode(), "2")


@case("SES-12")
def a_scope_that_raises(guest):
    try:
        with session(guest) as s:
            raise KeyError("x")
    except KeyError:
        pass
    assert not s.is_alive


@case("SES-13", ALL)
def describe(guest):
    s = cordon.Session(guest, tools=[cordon.tool(lambda: 1, name="one")])
    same((s.describe()["state"], len(s.describe()["tools"])), ("running", 1))
    has(repr(s), "running", "tools=1", "pid=%d" % host_pid(s))
    s.close()
    has(repr(s), "stopped", "pid=NA")


@case("SES-14")
def dropped(guest):
    s = cordon.Session(guest)
    pid = host_pid(s)
    del s
    gc.collect()
    gone(pid)


@case("SES-15", ALL)
def max_executions(guest):
    with session(guest, {"max_executions": 2}) as s:
        assert s.execute(SAY["two"][guest]).success and s.execute(SAY["two"][guest]).success
        refused(lambda: s.execute(SAY["two"][guest]).check(), "Maximum executions (2) reached for this session")


@case("SES-16", LANGUAGES)
def rejected_code_is_not_counted(guest):
    with session(guest, {"max_executions": 1}) as s:
        assert not s.execute(SAY["broken"][guest], validate=True).success
        same(value(s.execute(SAY["two"][guest])), 2)


@case("SES-18", ("sh", "pod"))
def destroyed(guest):
    box = cordon.Sandbox(guest=guest)
    same(box.commands.run("echo hi").stdout, "hi\n")
    box.destroy()
    refused(lambda: box.files.read("/tmp/x"), "Sandbox has been destroyed")
    refused(lambda: box.commands.run("echo"), "Sandbox has been destroyed")
    box.destroy()


@case("SES-19", ALL)
def output_and_no_value(guest):
    with session(guest) as s:
        r = s.execute(SAY["hi"][guest])
        assert r.success, r.error
        same((r.value, r.stdout), (None, "hi\n"))


@case("TMO-01 TMO-03", ALL)
def endless(guest):
    with session(guest) as s:
        start = time.monotonic()
        r = s.execute(SAY["loop"][guest], timeout=1)
        same((r.error_kind, r.exit_code), ("timeout", 124))
        has(r.error, "Execution timed out after 1 second")
        assert "seconds" not in r.error and time.monotonic() - start < 30
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("TMO-02", ALL)
def blocked(guest):
    with session(guest) as s:
        same(s.execute(SAY["sleep"][guest], timeout=0.5).error_kind, "timeout")


@case("TMO-04", ALL)
def no_timeout(guest):
    with session(guest, {"timeout_ms": None}) as s:
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("TMO-05 TMO-06", ("sh", "pod"))
def shell_timeouts(guest):
    with session(guest) as s:
        for code in ("seq 1 999999999", "seq 1 999999999 && seq 1 999999999"):
            r = s.execute(code, timeout=0.1)
            same((r.error_kind, r.exit_code), ("timeout", 124))


@case("TMO-08")
def clock_loop(guest):
    with session(guest) as s:
        same(s.execute("import time\nwhile True: time.time()", timeout=0.3).error_kind, "timeout")


@case("TMO-09", ALL)
def cancel(guest):
    with session(guest) as s:
        up = threading.Event()
        thread, got = in_background(lambda: s.execute(SAY["up"][guest], on_stdout=lambda _: up.set()))
        assert up.wait(30)
        start = time.monotonic()
        s.cancel()
        thread.join()
        same((got[0].error_kind, got[0].exit_code), ("cancelled", 125))
        assert time.monotonic() - start < 40
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("TMO-10", ALL)
def files_outlive_a_timeout(guest):
    with session(guest) as s:
        s.files.write("/workspace/kept.txt", "kept")
        same(s.execute(SAY["loop"][guest], timeout=0.3).error_kind, "timeout")
        same(s.files.read("/workspace/kept.txt"), b"kept")
        same(str(value(s.execute(SAY["two"][guest]))), "2")


@case("TMO-11", ("pod",))
def nested(guest):
    with session(guest) as s:
        same(s.execute("python3 -c 'import subprocess; subprocess.run([\"sh\", \"-c\", \"while true; do :; done\"])'",
                       timeout=1).error_kind, "timeout")


EXEC = {"python": "import subprocess\nsubprocess.run(['ls'])", "node": "require('child_process').execFileSync('ls')"}


@case("ADV-05", tuple(EXEC))
def a_program_is_told(guest):
    with session(guest, {"commands": ["sh:*"]}) as s:
        r = s.execute(EXEC[guest])
        same((r.error_kind, [(d.operation, d.target, d.layer) for d in r.denials]), ("denied", [("execute", "ls", "mount")]))
        same(s.execute(SAY["two"][guest]).denials, [])
        if guest == "python":  # a file of that name is another thing, and so is a claim without an attempt
            r = s.execute("try: subprocess.run(['ls'])\nexcept OSError: pass\nopen('ls')")
            same((r.error_kind, r.denials), ("exception", []))
            r = s.execute("def _execute_child(): raise FileNotFoundError(2, 'No such file', 'ls')\n_execute_child()")
            same((r.error_kind, r.denials), ("exception", []))


@case("ADV-05", ("python",))
def no_namespace_as_a_descriptor(guest):
    """A template may ask for them, to prove what its sessions have; a session may not."""
    code = ("import fcntl, os\nfd, out = os.pidfd_open(os.getpid()), []\nfor n in range(16):\n"
            "    try: out.append(fcntl.ioctl(fd, 0xff00 + n))\n    except OSError as e: out.append(-e.errno)\nmax(out)")
    with session(guest) as s:
        assert value(s.execute(code)) < 0


@case("STR-01 STR-02", ALL)
def streams(guest):
    with session(guest) as s:
        out, err = [], []
        r = s.execute(SAY["streams"][guest], on_stdout=out.append, on_stderr=err.append)
        same(("".join(out), "".join(err)), ("out\n", "err\n"))
        same((r.stdout, r.stderr), ("out\n", "err\n"))


@case("STR-03", ALL)
def a_handler_that_throws(guest):
    def bad(_):
        raise RuntimeError("handler")
    with session(guest) as s:
        same(s.execute(SAY["hi"][guest], on_stdout=bad).stdout, "hi\n")


@case("STR-04", ALL)
def as_it_comes(guest):
    with session(guest) as s:
        times = []
        assert s.execute(SAY["pause"][guest], on_stdout=lambda _: times.append(time.monotonic())).success
        assert times[-1] - times[0] >= 0.9, times


@case("POOL-01")
def sizes(guest):
    refused(lambda: cordon.Pool(guest, 0), "at least 1")
    refused(lambda: cordon.Pool(guest, 101), "must not exceed 100")
    with cordon.Pool(guest) as p:
        same(p.status()["total"], 4)
        has(repr(p), "size=4 idle=4 busy=0")
    has(repr(p), "[closed]")


@case("POOL-02 POOL-03 POOL-06", ALL)
def a_pool(guest):
    with cordon.Pool(guest, 2) as p:
        for _ in range(3):
            same(str(value(p.execute(SAY["two"][guest]))), "2")
        assert not p.execute(SAY["fail"][guest]).success
        same(str(value(p.execute(SAY["two"][guest]))), "2")
        same(p.status()["busy"], 0)
        same(p.status()["dead"], 0)
    refused(lambda: p.execute("1"), "Pool is closed")


@case("POOL-04", NATIVE)
def busy(guest):
    with cordon.Pool(guest, 1, max_size=1) as p, p.acquire():
        refused(p.acquire, "All sessions are busy")
        start = time.monotonic()
        refused(lambda: p.acquire(wait=0.3), "All sessions are busy")
        assert time.monotonic() - start >= 0.2


@case("POOL-05", NATIVE)
def a_dead_member(guest):
    with cordon.Pool(guest, 1) as p:
        with p.acquire() as s:
            kill(host_pid(s))
        same(str(value(p.execute(SAY["two"][guest]))), "2")
        same(p.status()["dead"], 0)


@case("POOL-07", NATIVE)
def nothing_leaks(guest):
    with cordon.Pool(guest, 1, max_size=1) as p:
        p.execute(SAY["set"][guest])
        r = p.execute(SAY["get"][guest])
        assert not r.success or r.stdout.strip() == "0"
    with cordon.Pool(guest, 1, max_size=1, reuse=True) as p:
        p.execute(SAY["set"][guest])
        same(str(value(p.execute(SAY["get"][guest]))), "20")


@case("POOL-08 POOL-09", NATIVE)
def warm_and_capped(guest):
    with cordon.Pool(guest, 2, max_size=3) as p:
        held = [p.acquire(wait=30) for _ in range(3)]
        refused(p.acquire, "All sessions are busy")
        same(p.status()["total"], 3)
        for s in held:
            s.close()

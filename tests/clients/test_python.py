"""What only the Python client has: its types, its threads, asyncio, codepod's and SandboxedRunner's names."""
import asyncio
import datetime
import decimal
import gc
import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import table

import cordon
import cordon.aio

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENT = os.path.join(ROOT, "clients", "python")


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until(condition, seconds=1.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def raises(kind, text, action, *args, **kwargs):
    try:
        action(*args, **kwargs)
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError("it did not fail")


def test_suspend_and_interrupt():
    with cordon.Sandbox() as sb:
        sb.suspend()
        seen = []
        t = threading.Thread(target=lambda: seen.append(sb.commands.run("echo later").stdout))
        t.start()
        time.sleep(0.3)
        assert not seen
        sb.resume()
        t.join(10)
        assert seen == ["later\n"]
    with cordon.Session("python") as s:
        s.execute("x = 5")
        threading.Timer(0.4, s.interrupt).start()
        r = s.execute("import time; time.sleep(20)")
        assert not r.success and "KeyboardInterrupt" in r.error, r
        assert s.execute("x").value == 5


def test_values_both_ways():
    values = [1, 2**80, -2**63, 0.1, float("inf"), "é", b"\x00\xff", None, True, (1, 2), {1, 2}, {"$": 1}, {1: "a"}, 1 + 2j,
              datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 0, 0, 1, datetime.timezone.utc), datetime.time(12),
              datetime.timedelta(seconds=1.5), decimal.Decimal("1.10"), [], {}, [[1, [2.0]]]]
    with cordon.Session("python") as s:
        for v in values:
            got = s.run("v", {"v": v})
            assert got == v and type(got) is type(v), (v, got)
        nan = s.run("float('nan')")
        assert nan != nan
        assert "lambda" in s.run("lambda: 1")


def test_frames_and_arrays():
    import numpy as np
    import pandas as pd
    df = pd.DataFrame({"a": [1, 2, 3], "b": [0.1, np.nan, 3.0], "c": ["x", None, "z"]})
    array = np.arange(6, dtype="float32").reshape(2, 3)
    with cordon.Session("python") as s:
        pd.testing.assert_frame_equal(s.run("df", {"df": df}), df)
        assert s.run("df.a.sum()", {"df": df}) == 6
        got = s.run("a * 2", {"a": array})
        assert got.dtype == array.dtype and (got == array * 2).all()
    with cordon.Session("r") as s:
        got = s.run("data.frame(x = c(1.5, NA), y = c('a', 'b'))")
        assert list(got.columns) == ["x", "y"] and got.x[0] == 1.5 and pd.isna(got.x[1]) and list(got.y) == ["a", "b"]


def test_plots_are_outputs():
    with cordon.Session("python") as s:
        r = s.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()", timeout=60)
        assert r.success, r.error
        assert any(o.mime == "image/png" and o.data.startswith(b"\x89PNG") for o in r.outputs), r.outputs


def test_errors_carry_the_result():
    with cordon.Session("python") as s:
        e = raises(cordon.ExecutionError, "division", s.run, "print('before'); 1 / 0")
        assert e.result.stdout == "before\n" and e.kind == "exception" and "ZeroDivisionError" in e.result.traceback
        e = raises(cordon.ExecutionTimeout, "timed out", s.run, "while True: pass", timeout=0.2)
        assert isinstance(e, TimeoutError)
    raises(cordon.StateError, "Session is not running.", s.run, "1")
    raises(cordon.StateError, "Session is not running.", s.restart)
    assert not s.is_alive


def test_tool_schema_from_hints():
    from typing import List, Literal, Optional

    @cordon.tool(max_calls=2)
    def find(query: str, limit: int = 10, tags: Optional[List[str]] = None, mode: Literal["a", "b"] = "a") -> list:
        """Finds things.

        Not part of the description."""
        return [query, limit, tags, mode]

    assert find.description == "Finds things." and find("q")[1] == 10
    assert find.args["required"] == ["query"] and find.args["properties"]["limit"] == {"type": "integer"}
    with cordon.Session("python", tools=[find]) as s:
        assert s.run("find('q', tags=['t'])") == ["q", 10, ["t"], "a"]
        assert not s.execute("find('q', mode='z')").success
        assert not s.execute("find(3)").success
        assert "find" in s.execute("find('1'); find('2'); find('3')").error
    raises(TypeError, "by name", cordon.tool, lambda *a: 1)


def test_tools_run_in_the_waiting_thread():
    seen = []

    def where() -> str:
        seen.append(threading.current_thread())
        return "here"

    def nested() -> int:
        return other.run("40 + 2")

    with cordon.Session("python") as other, cordon.Session("python", tools=[where, nested]) as s:
        s.run("where()")
        assert seen == [threading.current_thread()]
        assert s.run("nested()") == 42


def test_threads_share_a_connection():
    results = {}

    def work(i):
        def me() -> int:
            time.sleep(0.01)
            return i
        with cordon.Session("python", tools=[me]) as s:
            results[i] = [s.run("me() * 1000 + %d" % k) for k in range(5)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == {i: [i * 1000 + k for k in range(5)] for i in range(8)}


def test_cancel_from_another_thread():
    with cordon.Session("python") as s:
        up = threading.Event()
        timer = threading.Thread(target=lambda: up.wait(30) and s.cancel())
        timer.start()
        start = time.monotonic()
        assert s.execute("import time; print(1, flush=True); time.sleep(60)", on_stdout=lambda _: up.set()).error_kind == "cancelled"
        timer.join()
        assert time.monotonic() - start < 40
        assert not s.cancel() and s.run("1") == 1


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=300, env=dict(os.environ, PYTHONPATH=CLIENT))


def test_interrupt_cancels_the_code():
    code = ("import cordon, signal, threading, os\n"
            "s = cordon.Session('python')\n"
            "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            "try: s.run('import time; time.sleep(60)')\n"
            "except KeyboardInterrupt: print('interrupted')\n"
            "import time\n"
            "for _ in range(200):\n"
            "    try: print(s.run('1 + 1')); break\n"
            "    except cordon.StateError: time.sleep(0.05)\n")
    r = in_a_new_process(code)
    assert r.stdout == "interrupted\n2\n", r


def test_few_descriptors_are_enough():
    code = ("import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
            "import cordon\n"
            "for guest in ('python', 'r', 'sh', 'node'):\n"
            "    with cordon.Session(guest) as s: print(s.execute('echo 2' if guest == 'sh' else '1 + 1').success)\n")
    r = in_a_new_process(code)
    assert r.stdout == "True\n" * 4, r


def test_approval():
    asked = []

    @cordon.tool(approval=True)
    def pay(amount: int) -> str:
        return "paid %d" % amount

    def decide(a):
        asked.append((a.kind, a.what, a.detail))
        return {"value": "free"} if len(asked) == 2 else "too much" if len(asked) == 3 else True

    with cordon.Session("python", tools=[pay], on_approval=decide) as s:
        assert s.run("pay(5)") == "paid 5"
        assert s.run("pay(5)") == "free"
        assert "too much" in s.execute("pay(5)").error
    assert [a[:2] for a in asked] == [("tool", "pay")] * 3
    with cordon.Session("python", tools=[pay]) as s:
        assert not s.execute("pay(5)").success, "nobody decides: denied"


def test_only_true_approves():
    @cordon.tool(approval=True)
    def pay(amount: int) -> str:
        return "paid"

    async def later(a):
        return a.detail["amount"] == 1

    for verdict in (1, [1], {"allow": False}, {}, object(), None, "", False):
        with cordon.Session("python", tools=[pay], on_approval=lambda a, v=verdict: v) as s:
            assert "Tool 'pay' was denied" in s.execute("pay(1)").error, verdict
    with cordon.Session("python", tools=[pay], on_approval=lambda a: 1 / 0) as s:
        assert "Tool 'pay' was denied" in s.execute("pay(1)").error
    with cordon.Session("python", tools=[pay], on_approval=later) as s:
        assert s.run("pay(1)") == "paid" and not s.execute("pay(2)").success
    for options, good in (({}, False), ({"on_approval": lambda a: True}, True)):
        with cordon.Pool(size=1, tools=[pay], **options) as p:
            assert p.execute("pay(1)").success == good
            with p.acquire(wait=30) as s:
                assert s.guest == "python" and s.execute("pay(1)").success == good


def test_tools_of_every_kind():
    class Broken(Exception):
        def __str__(self):
            raise ValueError("no text")

    async def later(a: int) -> int:
        return a + 1

    def broken():
        raise Broken()

    def leave():
        raise SystemExit(3)

    def chatty():
        raise ValueError("x" * 1000000)

    with cordon.Session("python", tools=[later, broken, leave, chatty]) as s:
        assert s.run("later(1)") == 2
        assert "Broken" in s.execute("broken()").error
        assert s.execute("chatty()").error.endswith("...")
        raises(SystemExit, "3", s.run, "leave()")
        assert s.run("1 + 1") == 2, "the execution that was left has ended"
    with cordon.connect() as c, cordon.Session("python", tools=[leave, later], connection=c) as s:
        sent, write = [], c._write
        c._write = lambda line, *more: (sent.append(line), write(line, *more))
        raises(SystemExit, "3", s.run, "leave()")
        assert any(b'"id":"cb_' in x and b"given up" in x for x in sent), "the call is kept until it is answered"
        assert s.run("later(1)") == 2

    async def in_a_loop():
        with cordon.Session("python", tools=[later]) as s:
            return s.run("later(2)")
    assert asyncio.run(in_a_loop()) == 3


def test_what_the_server_cannot_read_is_told():
    raises(cordon.RpcError, "number out of range", cordon.Session, policy={"memory_bytes": 1 << 70})
    with cordon.Session("python") as s:
        raises(cordon.RpcError, "number out of range", s.execute, "1", tool_calls=1 << 70)
        for bad in (0, -1, float("nan"), "5", True, [1]):
            raises(ValueError, "timeout must be a positive number", s.execute, "1", timeout=bad)
        assert s.run("1", timeout=1e300) == 1

    async def same():
        async with cordon.aio.Session("python") as s:
            try:
                await s.execute("1", tool_calls=1 << 70)
            except cordon.RpcError as e:
                assert "number out of range" in str(e)
            return await s.run("1")
    assert asyncio.run(same()) == 1


def test_states_of_any_size():
    data = os.urandom(40 << 20)  # more than fits into an answer, let alone a request
    with cordon.Session("sh", policy={"file_bytes": 64 << 20}) as s:
        s.files.write("big", data)
        blob = s.export()

        async def same():
            async with cordon.aio.Session("sh", policy={"file_bytes": 64 << 20}) as t:
                await t.import_(blob)
                assert await t.files.read("big") == data
                return len(await t.export())
        assert asyncio.run(same()) > len(data)
    with cordon.Sandbox(policy={"file_bytes": 64 << 20}) as sb:
        sb.import_state(blob)
        sb.mount("/mnt/x", {"a": "1"})
        sb.offload()
        sb.rehydrate()
        assert sb.files.read("/home/user/big") == data


def test_audit_events_of_forks():
    events = []
    with cordon.Session("python", on_audit=events.append) as s:
        with s.fork() as f:
            f.run("1")
    assert [e["event"] for e in events if e["session_id"] == f.id] == ["session_start", "execute_start", "execute_complete",
                                                                      "session_close"], events


def test_cancelled_coroutines():
    async def work():
        async with cordon.aio.Session("python") as s:
            await s.run("x = 5")
            for seconds in (0, 0.001, 0.2):
                try:
                    await asyncio.wait_for(s.execute("import time; time.sleep(60)"), seconds)
                    raise AssertionError("it was not cancelled")
                except asyncio.TimeoutError:
                    pass
                assert await s.run("1 + 1") == 2, "the one that was cancelled has ended"
            return True
    assert asyncio.run(work())


def test_asyncio_approval():
    @cordon.tool(approval=True)
    async def pay(amount: int) -> int:
        return amount

    async def yes(a):
        return True

    async def fail(a):
        raise ValueError("no way")

    async def work():
        for decide, good in ((yes, True), (fail, False), (None, False), (lambda a: {"allow": False}, False), (lambda a: True, True)):
            async with cordon.aio.Session("python", tools=[pay], on_approval=decide) as s:
                assert (await s.execute("pay(3)")).success == good, decide
        async with cordon.aio.Pool("python", 1, tools=[pay]) as p:
            assert "was denied" in (await p.execute("pay(3)")).error
        async with cordon.aio.Pool("python", 1, tools=[pay], on_approval=yes) as p:
            assert await p.run("pay(3)") == 3
            s = await p.acquire(wait=30)
            assert await s.run("pay(4)") == 4
            await s.close()
    asyncio.run(work())


def test_audit_events():
    events = []
    with cordon.Session("python", on_audit=events.append) as s:
        s.run("1")
    names = [e["event"] for e in events]
    assert names[0] == "session_start" and names[-1] == "session_close" and "execute_complete" in names, names


def test_dropped_session_is_closed():  # SES-14
    s = cordon.Session("python")
    pid = s.describe()["pid"]
    assert is_alive(pid) and s.describe()["assurance"]["no_new_privs"] is True
    del s
    gc.collect()
    assert until(lambda: not is_alive(pid)), "it lives on"


def test_hundred_sessions():
    sessions = [cordon.Session("sh") for _ in range(100)]
    try:
        results = {}

        def work(i):
            results[i] = sessions[i].execute("echo $((%d * 2))" % i).stdout
        threads = [threading.Thread(target=work, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert results == {i: "%d\n" % (i * 2) for i in range(100)}
    finally:
        for s in sessions:
            s.close()


def test_server_death_is_told():
    c = cordon.connect()
    s = cordon.Session("python", connection=c)
    pid = s.describe()["pid"]
    threading.Timer(0.3, c._process.kill).start()
    raises(cordon.ConnectionLost, "gone", s.run, "import time; time.sleep(60)")
    assert until(lambda: not is_alive(pid)) and not s.is_alive
    s.close()
    with cordon.Session("python") as other:
        assert other.run("1") == 1


def test_client_death_ends_the_guests():
    code = ("import cordon, os, sys\ns = cordon.Session('python')\nprint(s.describe()['pid'], flush=True)\n"
            "s.run('while True: pass')")
    p = subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=CLIENT))
    pid = int(p.stdout.readline())
    p.kill()
    p.wait()
    p.stdout.close()
    assert until(lambda: not is_alive(pid)), "it lives on"


def test_forked_process_has_its_own():
    with cordon.Session("python") as s:
        s.run("x = 1")
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                raises(cordon.ConnectionLost, "forked", s.run, "x")
                with cordon.Session("python") as t:
                    status = 0 if t.run("2") == 2 else 2
                cordon._rpc.hub.close()
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert s.run("x") == 1


def test_a_workspace_that_is_not_saved():
    """Closing warns of what is lost. The server of its own has a home of its own, whose folder goes away."""
    code = """if True:
        import asyncio, os, shutil, sys, warnings
        import cordon, cordon.aio
        def heard(w):
            return [str(x.message) for x in w if x.category is RuntimeWarning and "is not saved" in str(x.message)]
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            s = cordon.Session("sh", workspace="w1")
            shutil.rmtree(os.environ["HOME"] + "/.local")
            assert s.execute("echo 2 > a").success
            s.close()
            assert len(heard(w)) == 1 and "'w1'" in heard(w)[0], w
        async def again():
            async with cordon.aio.Session("sh", workspace="w2") as s:
                shutil.rmtree(os.environ["HOME"] + "/.local")
                await s.execute("echo 2 > a")
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            asyncio.run(again())
            assert len(heard(w)) == 1 and "'w2'" in heard(w)[0], w
        """
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, HOME=home, PYTHONPATH=CLIENT), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_big_and_slow():
    with cordon.Session("python", policy={"stdout_bytes": 4 << 20}) as s:
        got = []
        r = s.execute("print('x' * (3 << 20))", on_stdout=lambda t: (got.append(t), time.sleep(0.001)))
        assert len("".join(got)) == (3 << 20) + 1 == len(r.stdout)
        assert len(s.run("'y' * (4 << 20)")) == 4 << 20
        raises(cordon.CordonError, "at most", s.run, "1", {"x": "z" * (9 << 20)})
        assert s.run("1") == 1
        assert s.execute("print('a')", on_stdout=lambda t: 1 / 0).success  # STR-03


def test_pool():
    with cordon.Pool(size=2) as p:
        assert p.run("1 + 1") == 2
        assert until(lambda: p.status()["idle"] == 2, 30)
        held = [p.acquire() for _ in range(2)]
        assert until(lambda: p.status()["busy"] == 2, 30)
        raises(cordon.LimitExceeded, "All sessions are busy", p.run, "1")
        got = []
        waiting = threading.Thread(target=lambda: got.append(p.run("7", wait=50)))
        waiting.start()
        for s in held:
            s.close()
        waiting.join()
        assert got == [7]
        with p.acquire(wait=5) as s:
            s.run("x = 5")
            assert s.run("x") == 5
    assert p.status() == {"total": 0, "busy": 0, "idle": 0, "dead": 0}
    raises(cordon.StateError, "Pool is closed", p.run, "1")


def test_asyncio():
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0.01)
        return a + b

    async def main():
        async with cordon.aio.Connection() as c:
            sessions = [cordon.aio.Session("python", tools=[add], connection=c) for _ in range(5)]
            await asyncio.gather(*(s.open() for s in sessions))
            got = await asyncio.gather(*(s.run("add(%d, 1)" % i) for i, s in enumerate(sessions)))
            assert got == [1, 2, 3, 4, 5]
            up = asyncio.Event()
            task = asyncio.ensure_future(sessions[0].execute("import time; print(1, flush=True); time.sleep(60)", on_stdout=lambda _: up.set()))
            await up.wait()
            assert await sessions[0].cancel() and (await task).error_kind == "cancelled"
            try:
                await asyncio.wait_for(sessions[1].execute("import time; time.sleep(60)"), 0.3)
                raise AssertionError("not cancelled")
            except asyncio.TimeoutError:
                pass
            for _ in range(100):
                try:
                    assert await sessions[1].run("2") == 2
                    break
                except cordon.StateError:
                    await asyncio.sleep(0.05)
            await sessions[2].files.write("f", "é")
            assert await sessions[2].files.read("f") == "é".encode()
            fork = await sessions[2].fork()
            assert await fork.run("open('f').read() + str(add(1, 1))") == "é2"
            lines = []
            await fork.execute("print('out')", on_stdout=lines.append)
            assert lines == ["out\n"]
            for s in sessions:
                await s.close()
        async with cordon.aio.Session("python") as s:
            assert await s.run("6 * 7") == 42
        async with cordon.aio.Pool(size=2, tools=[add]) as p:
            assert await p.run("add(2, 2)") == 4
    asyncio.run(main())


def test_sandbox():
    def upper(args, stdin):
        return {"stdout": stdin.upper(), "exitCode": 0}

    greet = cordon.Extension("greet", "Greets.", command=lambda args: "hello %s\n" % " ".join(args), category="talk")
    with cordon.Sandbox(mounts=[("/mnt/data", {"a/b.txt": "mounted"})],
                        extensions=[greet, cordon.Extension("upper", "Shouts.", command=upper)]) as sb:
        assert sb.commands.run("cat /mnt/data/a/b.txt").stdout == "mounted"
        assert sb.commands.run("echo x > /mnt/data/a/b.txt").exit_code != 0
        assert sb.commands.run("greet a b | upper").stdout == "HELLO A B\n"
        assert sb.commands.run("extensions list --category talk").stdout.count("greet") == 1
        r = sb.commands.run("while true; do :; done", timeout_ms=300)
        assert (r.exit_code, r.error_class) == (124, "TIMEOUT") and r.stderr.endswith("command timeout\n")
        sb.files.write("/tmp/t.bin", bytes(range(256)))
        assert sb.files.read("/tmp/t.bin") == bytes(range(256)) and sb.files.stat("/tmp/t.bin").size == 256
        assert [e.name for e in sb.files.list("/tmp")] == ["t.bin"]
        raises(cordon.NotFound, "", sb.files.read, "/tmp/none")
        sb.files.write("/home/user/f", "v1")
        sb.set_env("E", "original")
        snap = sb.snapshot()
        sb.files.write("/home/user/f", "v2")
        sb.restore(snap)
        assert sb.commands.run("cat f; printenv E").stdout == "v1original\n"
        child = sb.fork()
        child.files.write("/home/user/f", "child")
        assert sb.files.read("/home/user/f") == b"v1" and child.commands.run("greet fork").stdout == "hello fork\n"
        child.destroy()
        blob = sb.export_state()
        with cordon.Sandbox() as other:
            other.import_state(blob)
            assert other.files.read("/home/user/f") == b"v1"
        sb.mount("/mnt/more", cordon.MemoryFS({"x": b"y"}))
        assert sb.commands.run("cat /mnt/more/x f").stdout == "yv1"
        ref = sb.sandboxes.create("two")
        assert ref.commands.run("ls").stdout == "" and [r.label for r in sb.sandboxes.list()] == ["two"]
        sb.sandboxes.remove(ref.id)
        sb.offload()
        raises(cordon.SandboxError, "offloaded", sb.files.read, "/home/user/f")
        sb.rehydrate()
        sb.rehydrate()
        assert sb.files.read("/home/user/f") == b"v1"
    raises(cordon.SandboxError, "Sandbox has been destroyed", sb.commands.run, "ls")
    sb.destroy()


def test_runner_levels():  # LVL-01, PY-07, PY-09
    for level, seconds, memory, modules in (("strict", 10, 256, 3), ("standard", 30, 512, 4), ("permissive", 60, 1024, 6)):
        c = cordon.SandboxConfig.for_level(level)
        assert (c.timeout_seconds, c.max_memory_mb, len(c.allowed_modules)) == (seconds, memory, modules)
        r = cordon.create_runner(c).execute("result = x + y", {"x": 10, "y": 20})
        assert isinstance(r, cordon.SandboxResult) and r.success and r.result == 30, r
    runner = cordon.create_runner(cordon.SecurityLevel.STRICT, timeout_seconds=0.5)
    assert runner.execute("import math\nmath.sqrt(16)").result == 4.0
    for code in ("import os", "import os.path", "__import__('os')", "import numpy"):
        assert "not allowed" in runner.execute(code).error, code
    assert runner.execute("while True: pass").error_kind == "timeout"
    r = cordon.create_runner("strict", max_output_bytes=20).execute("print('x' * 50)")
    assert r.truncated and r.stdout.startswith("x" * 20) and r.full.assurance["wall"] == "linux"


def test_one_shots():
    assert cordon.run("6 * 7").value == 42
    assert cordon.policy("strict")["timeout_ms"] == 10000
    assert not cordon.check_policy({"timout_ms": 1})["valid"]
    assert cordon.validate("1 +")["valid"] is False
    assert len(cordon.run("eval('1')").warnings) == 1 and cordon.run("1").warnings == []
    assert "[path]" in cordon.sanitize("cannot open '/home/x/y'")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "audit.jsonl")
        with cordon.Session("python", policy={"audit": path}) as s:
            s.run("1")
        assert cordon.verify_audit(path)["whole"]


def test_missing_program_is_told():
    env = {k: v for k, v in os.environ.items() if k != "CORDON"}
    r = subprocess.run([sys.executable, "-B", "-c", "import cordon; cordon.run('1')"], capture_output=True, text=True,
                       env=dict(env, PYTHONPATH=CLIENT, PATH="/nonexistent"), timeout=30)
    assert "ProgramMissing" in r.stderr and "CORDON" in r.stderr, r.stderr


def test_readme():
    with open(os.path.join(CLIENT, "README.md"), encoding="utf-8") as f:
        code = re.search(r"```python\n(.*?)```", f.read(), re.S).group(1)
    r = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60,
                       env=dict(os.environ, PYTHONPATH=CLIENT))
    assert r.stdout == "42\n5\ntimeout True\n2\n", r


def test_pip_install():
    with tempfile.TemporaryDirectory() as folder:
        r = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-index", "--target", folder, CLIENT],
                           capture_output=True, text=True, timeout=120)
        assert r.returncode == 0, r.stderr
        r = subprocess.run(["/usr/bin/python3", "-c", "import cordon; print(cordon.run('6*7').value, cordon.__file__)"],
                           capture_output=True, text=True, timeout=60, cwd="/", env=dict(os.environ, PYTHONPATH=folder))
        assert r.stdout.startswith("42 " + folder), r
        assert os.path.exists(os.path.join(folder, "cordon", "py.typed"))


def test_table_can_fail():
    wrong = {"name": "wrong", "guest": "python", "steps": [{"do": "execute", "code": "1", "expect": {"value": 2}}]}
    raises(AssertionError, "value is 1, want 2", table.run_case, wrong)
    wrong["steps"] = [{"do": "execute", "code": "1", "fails": "state"}]
    raises(AssertionError, "did not fail", table.run_case, wrong)


def test_examples():
    want = {"agent_loop.py": "turn 2: NameError: name 'price' is not defined\nturn 3: [8, 9, 10]\nnotify: 3 of 5 above the mean\nturn 4: True\n",
            "approval.py": "transferred 50 to anna\n", "analysis.py": "('image/png', True)", "shell.py": "BERT\nANNA\n2 1\n"}
    for name, text in want.items():
        r = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "examples", name)], capture_output=True, text=True, timeout=80,
                           env=dict(os.environ, PYTHONPATH=CLIENT))
        assert r.returncode == 0 and text in r.stdout, (name, r)


def test_reprs_are_short():
    with cordon.Session("python") as s:
        r = s.execute("print('x' * 5000); list(range(100000))")
        assert len(repr(r)) < 300 and "success=True" in repr(r) and "value=[0, 1," in repr(r) and "stdout='xxx" in repr(r), repr(r)
        assert "assurance" not in repr(r) and r.assurance
        assert re.match(r"Result\(success=False, error_kind='exception', error=.*ZeroDivisionError.*, exit_code=1, \d+ ms\)$", repr(s.execute("1/0")))
        assert re.match(r"Result\(success=True, value=3, \d+ ms\)$", repr(s.execute("3"))), repr(s.execute("3"))
    assert repr(cordon.Output("image/png", bytes(100000), "p")) == "Output('image/png', 100000 bytes, name='p')"


class Log:
    """What the client logs meanwhile."""

    def __enter__(self):
        self.lines = []
        self.handler = logging.Handler()
        self.handler.emit = lambda record: self.lines.append(record.getMessage() + " " + str(record.exc_info and record.exc_info[1]))
        logging.getLogger("cordon").addHandler(self.handler)
        logging.getLogger("cordon").propagate = False
        return self.lines

    def __exit__(self, *_):
        logging.getLogger("cordon").removeHandler(self.handler)
        logging.getLogger("cordon").propagate = True


def bad(_):
    raise ValueError("of the host")


def test_exceptions_in_callbacks_are_logged():
    pay = cordon.Tool(lambda: 1, name="pay", approval=True)
    with Log() as lines:
        with cordon.Session("python", tools=[pay], on_audit=bad, on_approval=bad, verbose=bad) as s:
            r = s.execute("import sys; print(1, flush=True); print(2, file=sys.stderr, flush=True); pay()", on_stdout=bad, on_stderr=bad)
            assert not r.success and "of the host" in r.error and r.stdout == "1\n", r
            assert s.run("1") == 1
    for what in ("on_stdout failed of the host", "on_stderr failed of the host", "on_approval failed", "of audit failed of the host", "of log failed"):
        assert any(what in line for line in lines), (what, lines)


def test_exceptions_in_callbacks_are_logged_by_aio():
    pay = cordon.Tool(lambda: 1, name="pay", approval=True)

    async def main():
        async with cordon.aio.Session("python", tools=[pay], on_audit=bad, on_approval=bad, verbose=bad) as s:
            r = await s.execute("print(1, flush=True); pay()", on_stdout=bad)
            assert not r.success and "of the host" in r.error, r
            assert await s.run("1") == 1
    with Log() as lines:
        asyncio.run(main())
    for what in ("on_stdout failed of the host", "on_approval failed", "a handler failed of the host"):
        assert any(what in line for line in lines), (what, lines)


def test_async_callbacks_are_awaited():
    def watcher(seen):
        async def watch(what):
            await asyncio.sleep(0)
            seen.append(what)
        return watch
    code = "import sys\nfor i in range(50): print(i, flush=True)\nprint('e', file=sys.stderr)"
    out, err, audit, told = [], [], [], []
    with cordon.Session("python", on_audit=watcher(audit), verbose=watcher(told)) as s:
        s.execute(code, on_stdout=watcher(out), on_stderr=watcher(err))
    assert "".join(out).split() == [str(i) for i in range(50)] and err and audit and told, (out, err, audit, told)

    async def main():
        out, err, audit, told = [], [], [], []
        async with cordon.aio.Session("python", on_audit=watcher(audit), verbose=watcher(told)) as s:
            await s.execute(code, on_stdout=watcher(out), on_stderr=watcher(err))
            assert "".join(out).split() == [str(i) for i in range(50)] and err, (out, err)
        assert audit and told
    asyncio.run(main())


def test_aio_shares_a_server():
    async def main():
        sessions = [cordon.aio.Session("python") for _ in range(6)]
        await asyncio.gather(*(s.open() for s in sessions))
        pid = sessions[0]._c._process.pid
        assert {s._c._process.pid for s in sessions} == {pid}
        async with cordon.aio.Pool(size=1) as p:
            assert p._c._process.pid == pid and await p.run("2") == 2
        assert await asyncio.gather(*(s.run("3") for s in sessions)) == [3] * 6
        for s in sessions[1:]:
            await s.close()
        assert await sessions[0].run("4") == 4 and is_alive(pid)
        await sessions[0].close()
        assert not is_alive(pid)
        async with cordon.aio.Session("python") as s:
            assert await s.run("5") == 5 and s._c._process.pid != pid
        try:
            async with cordon.aio.Session("python", level="none"):  # what fails leaves no server
                raise AssertionError("opened")
        except cordon.CordonError:
            pass
        assert not cordon.aio.servers.get(asyncio.get_running_loop())
    for _ in range(3):
        asyncio.run(main())

"""What only the Python client has: its types, its threads, asyncio, codepod's and SandboxedRunner's names."""
import asyncio
import datetime
import decimal
import gc
import io
import logging
import os
import re
import shutil
import socket
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


def local(fn):
    """A test of the local program: there is nothing of it with a server, or the server refuses it (docs/serve.md)."""
    fn.is_local = True
    return fn


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


def test_transfers_of_every_kind():
    data = os.urandom((20 << 20) + 7)
    with tempfile.TemporaryDirectory() as folder, cordon.Session("sh", policy={"file_bytes": 64 << 20}) as s:
        odd = os.path.join(os.fsencode(folder), b"\xff\xfe")  # a name that is no text
        with open(odd, "wb") as f:
            f.write(data)
        s.files.upload(odd, "a")
        s.files.upload(io.BytesIO(data), "b")
        s.files.upload(io.BytesIO(b""), "empty")
        assert s.files.list() and [f.size for f in s.files.list()] == [len(data), len(data), 0]
        s.files.download("a", odd + b"2")
        with open(odd + b"2", "rb") as f:
            assert f.read() == data
        out = io.BytesIO()
        s.files.download("b", out)
        assert out.getvalue() == data

        def stop(done, total):
            raise KeyError("enough")
        local = os.path.join(folder, "local")
        raises(KeyError, "enough", s.files.download, "a", local, stop)
        raises(KeyError, "enough", s.files.upload, odd, "c", stop)
        raises(FileNotFoundError, "", s.files.upload, odd + b"3", "c")
        raises(cordon.NotFound, "", s.files.upload, local, "c")
        assert [f.name for f in s.files.list()] == ["a", "b", "empty"] and len(os.listdir(folder)) == 2

        async def same():
            async with cordon.aio.Session("sh", policy={"file_bytes": 64 << 20}) as t:
                seen = []
                await t.files.upload(odd, "a", progress=lambda *x: seen.append(x))
                await t.files.download("a", local)
                assert seen[-1] == (len(data), len(data))
                return [f.name for f in await t.files.list()]
        assert asyncio.run(same()) == ["a"]
        with open(local, "rb") as f:
            assert f.read() == data
        os.unlink(local)

        def close(done, total):  # the session ends in the middle
            s.close()
        raises(cordon.CordonError, "", s.files.download, "a", local, close)
        assert not os.path.exists(local) and len(os.listdir(folder)) == 2


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


@local
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


@local
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
    r = cordon.create_runner("strict", policy={"stdout_bytes": 20}).execute("print('x' * 50)")
    assert r.truncated and r.stdout.startswith("x" * 20) and r.full.assurance["wall"] == "linux"


def test_one_shots():
    assert cordon.run("6 * 7").value == 42
    assert cordon.policy("strict")["timeout_ms"] == 10000
    assert not cordon.check_policy({"timout_ms": 1})["valid"]
    assert cordon.validate("1 +")["valid"] is False
    assert len(cordon.run("eval('1')").warnings) == 1 and cordon.run("1").warnings == []
    assert "[path]" in cordon.sanitize("cannot open '/home/x/y'")


@local
def test_an_audit_log_is_whole():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "audit.jsonl")
        with cordon.Session("python", policy={"audit": path}) as s:
            s.run("1")
        assert cordon.verify_audit(path)["whole"]


@local
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
    assert r.stdout == "42\n5\ntimeout False\n2\n", r


def test_pip_install():
    """Of a plain copy of the client's folder, without anything around it."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as away:
        copy = os.path.join(away, "client")
        shutil.copytree(CLIENT, copy, symlinks=True)
        r = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-index", "--target", folder, copy],
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


@local
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


def place():
    return cordon.Sandbox(languages=["python", "sh"])


def test_languages_in_one_sandbox():
    with place() as sb:
        assert sb.run("x = 20; open('/home/user/f', 'w').write('kept')").start_ms > 0
        r = sb.run("x")
        assert r.value == 20 and r.start_ms == 0
        assert sb.run("x", context="other").error_kind == "exception"
        assert sb.run("y + 1", context="other", variables={"y": 1}).value == 2
        assert sb.run("cat f", language="sh").stdout == "kept"
        assert sb.commands.run("cat f; echo $A; pwd", cwd="/home/user", env={"A": "a"}).stdout == "kepta\n/home/user\n"
        assert sb.files.read("/home/user/f") == b"kept"
        s = sb._session()
        other = s.context("python", "other")
        assert other is s.context("python", "other") and other.context("sh") is s
        assert other.files.read("f") == b"kept"
        other.close()
        raises(cordon.StateError, "not running", other.execute, "1")
        assert sb.run("'y' in globals()", context="other").value is False
        fork = sb.fork()
        assert fork.run("open('/home/user/f').read()").value == "kept"
        fork.destroy()
        lasting = s.context("python", "other")
    raises(cordon.StateError, "not running", lasting.execute, "1")


def test_contexts_run_at_the_same_time():
    with place() as sb:
        seen = []
        t = threading.Thread(target=lambda: seen.append(sb.run(
            "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n'went'", context="a").value))
        t.start()
        assert sb.run("1", context="b").value == 1
        assert sb.commands.run("echo on").stdout == "on\n"
        assert not seen
        sb.files.write("/tmp/go", b"")
        t.join(30)
        assert seen == ["went"]


def test_commands_in_the_background():
    with place() as sb:
        p = sb.commands.run("while read -r l; do echo got $l; done; exit 4", background=True)
        p.write("a\n")
        assert until(lambda: p.stdout == "got a\n", 30)
        assert p.is_running and [x["process"] for x in sb.commands.list()] == [p.id]
        big = "b" * 200000
        q = sb.commands.run("wc -c", background=True)
        q.write(big, eof=True)
        assert q.wait(30).stdout.strip() == "200000"
        sb.commands.connect(p.id).close_stdin()
        r = p.wait()
        assert r.exit_code == 4 and r.stdout == "got a\n"
        other = sb.commands.connect(p.id)  # all of it stays readable
        for handle in (p, other, p):
            assert handle.wait() == r and (handle.stdout, handle.stderr, handle.exit_code, handle.is_running) == ("got a\n", "", 4, False)
            handle.kill()
        raises(cordon.NotFound, "no process 9999", sb.commands.connect, 9999)
        q = sb.commands.run("sleep 1000", background=True)
        assert repr(q) == "<cordon.Command %d running>" % q.id, q
        assert raises(cordon.RpcError, "still runs", q.wait, 0).kind == "timeout" and q.exit_code is None
        assert raises(cordon.RpcError, "does not read its stdin", q.write, big, timeout=0).kind == "timeout"
        q.kill()
        r = q.wait()
        assert (r.error_class, r.exit_code, r.stderr, q.exit_code) == ("CANCELLED", 137, "", 137), r
        for _ in range(17):  # the server keeps 16 that were waited for, a handle the last it has seen
            sb.commands.run("true", background=True).wait()
        assert (p.stdout, p.exit_code, p.wait().stdout) == ("got a\n", 4, "got a\n")
        p.kill()
        raises(cordon.NotFound, "no process", sb.commands.connect, p.id)


def test_commands_tell_what_was_refused():
    with cordon.Sandbox(languages="bash", level="standard") as sb:
        sb.files.write("s.sh", "#!/bin/sh\necho no\n")
        r = sb.commands.run("chmod +x s.sh; mkdir -p sub; ./s.sh; exit 1")
        assert r.exit_code == 1 and any("workspace_exec" in (d.remedy or "") for d in r.denials) and r.warnings == [], r
        assert sb.commands.run("pwd", cwd="sub").stdout == "/home/user/sub\n"
        r = sb.commands.run("sleep 1000", timeout=0.2)
        assert (r.exit_code, r.error_class) == (124, "TIMEOUT"), r
        assert sb.run("echo $((1 + 1))").stdout == "2\n"  # the first language
    with cordon.Sandbox(languages=["Python", "JavaScript"]) as sb:
        assert sb.run("1 + 1").value == 2 and sb.run("1 + 1", "js").value == 2 and sb.run("x = 5", "Python 3").success
        assert sb.run("x", "py").value == 5


def test_a_sandbox_has_transfers():
    with cordon.Sandbox(languages=["sh"]) as sb, tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/in")
        with open(folder + "/in/a", "w") as f:
            f.write("a" * 100000)
        sb.files.mkdir("fold")
        sb.files.upload(folder + "/in/a", "fold/")
        sb.files.download("fold/a", folder + "/back")
        assert os.path.getsize(folder + "/back") == 100000
        sb.files.put_tar("more", folder + "/in")  # a folder
        sb.files.get_tar("more", folder + "/more.tar")
        sb.files.put_tar("third", folder + "/more.tar")
        assert sb.commands.run("ls -R third; cat third/a third/more/a 2>/dev/null | wc -c").stdout.split()[-1] == "100000"
        e = raises(cordon.RpcError, "/usr/x", sb.files.upload, folder + "/in/a", "/usr/x")
        assert ".part-" not in str(e) and ".part-" not in e.message


def test_commands_on_a_terminal():
    with place() as sb:
        assert sb.commands.run("tty; stty size", pty=(33, 99)).stdout == "/dev/pts/0\r\n33 99\r\n"
        p = sb.commands.run("read -r l; echo got $l; stty size; echo ready; sleep 1000 & wait", background=True, pty=True)
        p.resize(41, 123)
        p.write("a\n")
        assert until(lambda: b"ready" in p.read(), 30), p.stdout
        assert p.stdout == "a\r\ngot a\r\n41 123\r\nready\r\n", p.stdout
        p.signal("TERM")
        assert p.wait(30).exit_code != 0
    with cordon.Session("sh", languages=["sh"], level="strict") as s:
        raises(cordon.RpcError, "pty=true", s.command, "tty", pty=True)


def test_terminals_with_asyncio():
    async def main():
        async with cordon.aio.Session("sh", languages=["sh"]) as s:
            assert (await s.command("tty", pty=True)).stdout == "/dev/pts/0\r\n"
            p = await s.start("read -r l; stty size; echo got $l", pty=(20, 30))
            await p.resize(21, 31)
            await p.write("a\n")
            assert (await p.wait(30)).stdout == "a\r\n21 31\r\ngot a\r\n"
            p = await s.start("trap 'exit 3' INT; echo ready; sleep 1000 & wait", pty=True)
            while b"ready" not in await p.read():
                await asyncio.sleep(0.01)
            await p.signal("INT")
            assert (await p.wait(30)).exit_code == 3
    asyncio.run(main())


def test_no_background_without_languages():
    with cordon.Sandbox() as sb:
        raises(cordon.RpcError, "one language", sb.commands.run, "true", background=True)


def test_processes_with_asyncio():
    async def main():
        async with cordon.aio.Session("sh", languages="sh") as s:
            assert await s.is_alive()
            p = await s.start("read l; echo got $l; echo e >&2; exit 4")
            assert [x["process"] for x in await s.processes()] == [p.id] and await p.is_running() and await p.exit_code() is None
            await p.write("a\n", eof=True)
            r = await p.wait()
            assert (await p.wait(), await p.exit_code(), await p.is_running()) == (r, 4, False)
            assert (await p.stdout(), await p.stderr()) == ("got a\n", "e\n")
            await p.kill()
            q = await s.start("sleep 1000")
            await q.kill()
            r = await q.wait()
            assert (r.error_kind, r.exit_code, r.stderr) == ("cancelled", 137, ""), r
            try:
                await cordon.aio.Process(s, 9999).read()
                raise AssertionError("there is no such process")
            except cordon.NotFound:
                pass
        assert not await s.is_alive()
    asyncio.run(main())


SERVER = ("exec python3 -uc 'import socket\ns = socket.create_server((\"127.0.0.1\", 8000))\nprint(\"ready\")\n"
          "while True:\n  c = s.accept()[0]; c.sendall(c.recv(100).upper()); c.close()'")


def ask(address, word):
    is_path = address.startswith("/")
    with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as s:
        s.connect(address if is_path else ("127.0.0.1", int(address.rsplit(":", 1)[1])))
        s.sendall(word)
        return s.recv(100)


@local
def test_exposed_ports():
    with cordon.Sandbox(languages=["sh", "python"], policy={"expose": [8000]}) as sb:
        p = sb.commands.run(SERVER, background=True)
        assert until(lambda: p.stdout == "ready\n", 30), p.stderr
        address = sb.expose(8000)
        assert ask(address, b"one") == b"ONE"
        assert [(x["port"], x["address"]) for x in sb.exposed()] == [(8000, address)]
        sb.unexpose(8000)
        assert not os.path.exists(address) and sb.exposed() == []
        assert ask(sb.expose(8000, host_port=0), b"two") == b"TWO"
        raises(cordon.RpcError, "expose+=8001", sb.expose, 8001)
        sb.unexpose(8000)
        with tempfile.TemporaryDirectory() as folder:
            assert ask(sb.expose(8000, path=os.path.join(folder, "s")), b"three") == b"THREE"

    async def main():
        async with cordon.aio.Session("sh", languages=["sh"], policy={"expose": ["8000-8001"]}) as s:
            address = await s.expose(8000)
            assert [x["address"] for x in await s.exposed()] == [address] and os.path.exists(address)
            await s.unexpose(8000)
            assert await s.exposed() == []
    asyncio.run(main())


def test_contexts_with_asyncio():
    async def main():
        async with cordon.aio.Session("python", languages=["python", "sh"]) as s:
            await s.run("x = 1; open('/tmp/f', 'w').write('kept')")
            a, b = await s.context(name="a"), await s.context("sh")
            assert await s.context() is s and await s.context(name="a") is a
            r = await asyncio.gather(a.run("'x' in globals()"), s.run("x"), b.execute("cat /tmp/f"), s.command("cat; exit 3", stdin="in"))
            assert r[0] is False and r[1] == 1 and r[2].stdout == "kept" and (r[3].stdout, r[3].exit_code) == ("in", 3)
            await a.close()
            assert await (await s.context(name="a")).run("2") == 2
    asyncio.run(main())


def wheels(folder):
    """A directory of wheels with one package."""
    import zipfile
    os.chmod(folder, 0o755)  # a sandbox that root starts has another user
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, "tiny-1.0-py3-none-any.whl"), "w") as z:
        z.writestr("tiny.py", "x = 42\n")
        z.writestr(info + "/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        z.writestr(info + "/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "/RECORD", "")
    return {"packages": {"pip": ["tiny"], "pip_index": [folder]}}


def test_packages():
    with tempfile.TemporaryDirectory() as folder:
        policy = wheels(folder)
        with cordon.Session(policy=policy) as s:
            assert s.execute("import tiny").exception["name"] == "ModuleNotFoundError"
            answer = s.packages.install("tiny")
            assert answer == {"manager": "pip", "packages": {"tiny": "1.0"}, "count": 1}, answer
            assert s.run("import tiny; tiny.x") == 42
            for name, kind in (("other", cordon.Denied), ("./tiny", cordon.RpcError)):
                try:
                    s.packages.install([name])
                    raise AssertionError(name)
                except kind as e:
                    assert name != "other" or str(e).endswith("(packages.pip+=other)"), e
        try:
            cordon.Session(policy=policy, packages=["other"])
            raise AssertionError("it is not named")
        except cordon.Denied:
            pass
        with cordon.Sandbox(languages=["python", "sh"], policy=policy, packages=["tiny"]) as sb:
            assert sb.run("import tiny; tiny.x").value == 42
            assert sb.commands.run("python3 -c 'import tiny; print(tiny.x)'").stdout == "42\n"

        async def main():
            async with cordon.aio.Session(policy=policy, packages=["tiny"]) as a:
                assert await a.run("import tiny; tiny.x") == 42
        asyncio.run(main())


def test_watches_are_iterated_until_they_are_closed():
    with cordon.Session("sh") as s:
        seen, watch = [], s.files.watch()

        def follow():
            for change in watch:
                seen.append((change.change, change.path))
                if change.path.endswith("last"):
                    watch.close()
        t = threading.Thread(target=follow)
        t.start()
        s.execute("mkdir d; touch d/last")
        t.join(60)
        assert seen == [("created", "/home/user/d"), ("created", "/home/user/d/last")], seen
        raises(cordon.NotFound, "there is no watch", watch.changes)
        watch.close()
    with cordon.Sandbox(languages=["sh"]) as sb, sb.files.watch("/tmp", recursive=False) as watch:
        sb.commands.run("mkdir /tmp/a; touch /tmp/a/b")
        assert [c.path for c in watch.changes(None)] == ["/tmp/a"]

    async def follow_with_asyncio():
        async with cordon.aio.Session("sh") as s:
            async with await s.files.watch() as watch:
                running = asyncio.ensure_future(s.execute("touch x"))
                async for change in watch:
                    assert (change.path, change.change, change.type) == ("/home/user/x", "created", "file"), change
                    break
                await running
                assert await watch.changes() == []
    asyncio.run(follow_with_asyncio())


def test_the_shape_of_e2b_watches():
    from cordon.e2b import Sandbox
    with Sandbox.create() as sandbox:
        handle = sandbox.files.watch_dir("/home/user")
        sandbox.files.write("a", io.BytesIO(b"x"))
        sandbox.commands.run("mkdir d; rm a")
        assert [(e.name, e.type) for e in handle.get_new_events()] == [("a", "create"), ("d", "create"), ("a", "remove")]
        handle.stop()


def test_the_shape_of_e2b():
    from cordon import e2b
    with e2b.Sandbox.create(envs={"A": "b"}) as sandbox:
        assert sandbox.is_running() and sandbox.sandbox_id
        assert sandbox.files.write("d/a.txt", "hello").path == "/home/user/d/a.txt"
        assert sandbox.files.read("d/a.txt") == "hello" and sandbox.files.read("d/a.txt", format="bytes") == b"hello"
        assert [(e.name, e.type, e.path) for e in sandbox.files.list("d")] == [("a.txt", "file", "/home/user/d/a.txt")]
        assert sandbox.files.exists("d/a.txt") and not sandbox.files.exists("none")
        r = sandbox.commands.run("cat d/a.txt; echo $A >&2")
        assert (r.stdout, r.stderr, r.exit_code) == ("hello", "b\n", 0)
        try:
            sandbox.commands.run("echo out; exit 3")
            raise AssertionError("it has failed")
        except e2b.CommandExitException as e:
            assert (e.exit_code, e.stdout) == (3, "out\n")
        x = sandbox.run_code("print('p'); x = 5; x + 1")
        assert (x.text, x.logs.stdout, x.error) == ("6", ["p\n"], None), x
        assert sandbox.run_code("x").text == "5"
        assert sandbox.run_code("1 + 1", language="bash").error is not None
        c = sandbox.create_code_context()
        assert sandbox.run_code("x", context=c).error.name == "NameError"
        try:
            sandbox.run_code("while True: pass", timeout=1)
            raise AssertionError("it has ended")
        except e2b.TimeoutException:
            pass
        assert sandbox.run_code("x").text == "5"
        try:
            sandbox.files.read("none")
            raise AssertionError("it is not there")
        except e2b.NotFoundException:
            pass
    assert not sandbox.is_running()

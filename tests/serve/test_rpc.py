"""cordon rpc against its contract; ids in brackets are cases of the acceptance list."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from driver import CORDON, HELD, SCHEMA, TSAN, Client, Failure, Need, check, is_alive

ADD = {"name": "add", "description": "adds two numbers", "args": {"a": "number", "b": "number"}}


def until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def test_schema_lists_every_method():
    with Client() as c:
        r = c.call("initialize", protocol=1, client={"name": "test"})
        assert sorted(r["methods"]) == sorted(SCHEMA["methods"]), set(r["methods"]) ^ set(SCHEMA["methods"])
        assert c.call("version")["version"] == r["version"]
        c.fails(-32006, "protocol 9", "initialize", protocol=9)


def test_schema_check_can_fail():
    for value, schema in (({}, {"type": "object", "required": ["a"]}), (True, {"type": "integer"}),
                          ({"b": 1}, {"type": "object", "properties": {}, "additionalProperties": False})):
        try:
            check(value, schema)
        except AssertionError:
            continue
        raise Exception("accepted %r" % (value,))


def test_execute_state_and_errors():
    with Client() as c:
        s = c.open(guest="python")
        assert c.execute(s, "x = 10\ny = 20\nx + y")["result"] == 30
        assert c.execute(s, "x * 2")["result"] == 20
        r = c.execute(s, "raise ValueError('user error')")
        assert not r["success"] and r["error_kind"] == "exception" and "user error" in r["error"]
        assert c.execute(s, "42")["result"] == 42
        r = c.execute(s, "print('hi')")
        assert r["success"] and r["result"] is None and r["stdout"] == "hi\n"
        assert c.execute(s, "a + b", context={"a": 1, "b": 2})["result"] == 3
        assert c.execute(c.open(), "input()", stdin="line\n")["result"] == "line"
        assert c.execute(c.open(), "import sys; len(sys.stdin.buffer.read())",
                         stdin_base64=base64.b64encode(bytes(range(256))).decode())["result"] == 256
        c.call("session.close", session=s)
        c.fails(-32005, "no session", "session.execute", session=s, code="1")


def test_values_are_exact():
    with Client() as c:
        s = c.open(guest="python")
        for v in (0.1, 1e-300, 1.7976931348623157e308, 2**53 + 1, -2**63, "é\u0000x", [1, [2.0, None]], {"k": True}):
            r = c.execute(s, "v", context={"v": v})["result"]
            assert r == v and type(r) is type(v), (v, r)


def test_streaming():
    with Client() as c:
        s = c.open(guest="python")
        n = c.send("session.execute", {"session": s, "stream": True, "code":
                   "import sys,time\nprint('line1', flush=True); time.sleep(0.5); print('é line2', flush=True)\n"
                   "print('bad', file=sys.stderr)"})
        c.wait_note("output")
        first = time.monotonic()
        r = c.wait(n)
        assert time.monotonic() - first > 0.3
        notes = c.notes("output")
        assert all(x["request_id"] == n and x["session"] == s for x in notes)
        assert "".join(x["data"] for x in notes if x["stream"] == "stdout") == "line1\né line2\n" == r["stdout"]
        assert "".join(x["data"] for x in notes if x["stream"] == "stderr") == "bad\n" == r["stderr"]


def test_stream_splits_no_character_and_passes_bytes():
    with Client() as c:
        s = c.open(guest="python")
        c.execute(s, "import os,time\nfor b in 'é€😀'.encode(): os.write(1, bytes([b])); time.sleep(0.02)", stream=True)
        assert "".join(x["data"] for x in c.notes("output")) == "é€😀", c.notes("output")
        c.seen.clear()
        c.execute(s, "os.write(1, bytes(range(256)))", stream="base64")
        got = b"".join(base64.b64decode(x["data"]) for x in c.notes("output"))
        assert got == bytes(range(256))


def test_cancel_at_any_moment():
    with Client() as c:
        s = c.open(guest="python")
        for delay in (0, 0.001, 0.05):
            n = c.send("session.execute", {"session": s, "code": "import time; time.sleep(60)"})
            time.sleep(delay)
            start = time.monotonic()
            assert c.call("session.cancel", session=s)["cancelled"]
            r = c.wait(n)
            assert r["error_kind"] == "cancelled" and time.monotonic() - start < 40  # not when the code ends
        n = c.send("session.execute", {"session": s, "code": "import time; time.sleep(60)"})
        assert c.call("cancel", request_id=n)["cancelled"]
        assert c.wait(n)["error_kind"] == "cancelled"
        assert not c.call("session.cancel", session=s)["cancelled"]
        assert c.execute(s, "1 + 1")["result"] == 2


def test_describe_tells_the_assurance():
    with Client() as c:
        for guest in ("python", "sh"):
            s = c.open(guest=guest)
            told = c.call("session.describe", session=s)["assurance"]
            assert told["wall"] and told["no_new_privs"] is True and told["limits"] and told["seccomp"].startswith("sha256:"), told
            assert told == c.execute(s, {"python": "1", "sh": "true"}[guest])["assurance"] == c.call("session.describe", session=s)["assurance"]
        s = c.open(guest="python")
        n = c.begin(s, HELD["python"])
        assert c.call("session.describe", session=s)["assurance"]["wall"], "also while code runs"
        c.call("files.write", session=s, path="/tmp/go", text="")
        c.wait(n)


def test_second_execute_is_refused():  # SES-10, SES-09
    with Client() as c:
        s = c.open(guest="python")
        n = c.begin(s, HELD["python"] + "'first'")
        c.fails(-32600, "concurrent", "session.execute", session=s, code="1")
        c.fails(-32600, "Cannot restart while an execution is in progress", "session.restart", session=s)
        assert c.call("session.describe", session=s)["state"] == "running"
        c.call("files.write", session=s, path="/tmp/go", text="")
        assert c.wait(n)["result"] == "first"


def test_timeout_and_restart():  # TMO-01, SES-07, SES-08
    with Client() as c:
        s = c.open(guest="python", tools=[ADD], policy={"grace_ms": 60000})
        c.tools = {"add": lambda a, b: a + b}
        c.execute(s, "kept = 100")
        r = c.execute(s, "while True: pass", timeout_ms=300)
        assert r["error_kind"] == "timeout" and not r["restarted"] and "restart_reason" not in r
        assert "KeyboardInterrupt" in r["exception"]["traceback"]
        assert c.execute(s, "kept + 1")["result"] == 101
        deaf = c.open(guest="python", policy={"grace_ms": 100})
        r = c.execute(deaf, "sum(range(1 << 60))", timeout_ms=300)
        assert r["error_kind"] == "timeout" and r["restarted"] and "did not stop within 100 ms" in r["restart_reason"]
        before = c.call("session.describe", session=s)["pid"]
        c.execute(s, "x = 1")
        c.call("session.restart", session=s)
        assert c.call("session.describe", session=s)["pid"] != before
        assert c.execute(s, "x")["error_kind"] == "exception"
        assert c.execute(s, "add(2, 3)")["result"] == 5
        assert c.execute(s, "42", timeout_ms=None)["result"] == 42


def test_tools():  # TOOL-01..09, 15..17, RPC-07
    calls = []

    def add(a, b):
        calls.append((a, b))
        return a + b

    def fail():
        raise Exception("tool failed")

    with Client(tools={"add": add, "fail": fail, "pi": lambda: 3.141592653589793, "nothing": lambda: None}) as c:
        s = c.open(guest="python", tools=[ADD, {"name": "fail"}, {"name": "pi"}, {"name": "nothing"}])
        assert c.execute(s, "add(2, 3)")["result"] == 5
        assert c.execute(s, "add(add(1, 2), 10)")["result"] == 13
        assert c.execute(s, "pi() == 3.141592653589793")["result"] is True
        assert c.execute(s, "nothing() is None")["result"] is True
        r = c.execute(s, "fail()")
        assert not r["success"] and "tool failed" in r["error"]
        r = c.execute(s, "add('hello', 3)")
        assert not r["success"] and "'a'" in r["error"], r["error"]
        calls.clear()
        r = c.execute(s, "add(1, 2, evil=999)")
        assert not r["success"] and not calls
        r = c.execute(s, "add(1, 1); add(1, 1); add(1, 1)", tool_calls=2)
        assert not r["success"] and "Maximum tool calls (2) exceeded" in r["error"], r["error"]
        assert c.execute(s, "1 + 1")["result"] == 2
        assert c.execute(s, "sum(add(i, 1) for i in range(500))")["result"] == 125250
        tools = c.call("session.describe", session=s)["tools"]
        assert [t["name"] for t in tools] == ["add", "fail", "pi", "nothing"]


def test_tool_while_other_requests_go_on():  # RPC-07
    gate = threading.Event()
    with Client(tools={"slow": lambda: gate.wait(10)}) as c:
        s, other = c.open(guest="python", tools=[{"name": "slow"}]), c.open(guest="python")
        n = c.send("session.execute", {"session": s, "code": "slow()"})
        assert c.execute(other, "1 + 1")["result"] == 2
        c.call("files.write", session=s, path="/tmp/a", text="meanwhile")
        assert n not in c.answers
        gate.set()
        assert c.wait(n)["result"] is True


def test_tool_names_are_checked():  # TOOL-11..13
    with Client() as c:
        for name in ('x; system("id")', "my tool", "1tool", "tool$name", ""):
            c.fails(-32602, "", "session.open", tools=[{"name": name}])
        c.fails(-32008, "Duplicate", "session.open", tools=[ADD, ADD])
        c.fails(-32602, "descrption", "session.open", tools=[{"name": "a", "descrption": "x"}])
        for name in ("my_tool", "tool.name", ".hidden"):
            c.open(tools=[{"name": name}])


def test_approval():
    with Client(tools={"pay": lambda amount: "paid %d" % amount}) as c:
        s = c.open(guest="python", tools=[{"name": "pay", "args": {"amount": "integer"}, "approval": True}])
        for i, (decision, want) in enumerate((({"allow": True}, "paid 5"), ({"allow": True, "value": "free"}, "free"),
                                             ({"allow": False, "reason": "too much"}, None))):
            n = c.send("session.execute", {"session": s, "code": "pay(amount=5)"})
            a = c.wait_note("approval", i + 1)
            assert a["kind"] == "tool" and a["what"] == "pay" and a["session"] == s and a["request_id"] == n
            c.call("approval.resolve", session=s, id=a["id"], **decision)
            r = c.wait(n)
            assert r["result"] == want if want else "too much" in r["error"], r
        c.fails(-32005, "", "approval.resolve", session=s, id="nonsense", allow=True)


def test_approvals_do_not_stop_the_clock_for_ever():
    """Who asks again and again gets the time of the policy for that, and no more."""
    with Client(tools={"pay": lambda: 1}) as c:
        s = c.open(guest="python", tools=[{"name": "pay", "approval": True}],
                   policy={"timeout_ms": 1500, "approval_timeout_ms": 50, "approval_total_ms": 500})
        code = "while True:\n    try: pay()\n    except Exception: pass"
        for _ in range(2):
            r = c.call("session.execute", session=s, code=code)
            assert r["error_kind"] == "timeout", r
        # One that is never answered.
        s = c.open(guest="python", tools=[{"name": "pay", "approval": True}],
                   policy={"timeout_ms": 1500, "approval_timeout_ms": None, "approval_total_ms": 500})
        r = c.call("session.execute", session=s, code="pay()")
        assert r["error_kind"] == "timeout", r


def test_files():  # FS-01..03
    with Client() as c:
        s = c.open(guest="python")
        data = bytes(range(256)) * 40
        c.call("files.write", session=s, path="/home/user/d/e.bin", data=base64.b64encode(data).decode())
        c.call("files.append", session=s, path="/home/user/d/e.bin", text="é")
        r = c.call("files.read", session=s, path="/home/user/d/e.bin")
        assert base64.b64decode(r["data"]) == data + "é".encode() and r["eof"]
        r = c.call("files.read", session=s, path="/home/user/d/e.bin", offset=10000, length=100)
        assert base64.b64decode(r["data"]) == (data + "é".encode())[10000:10100] and not r["eof"]
        assert c.call("files.stat", session=s, path="/home/user/d/e.bin")["size"] == len(data) + 2
        assert [e["name"] for e in c.call("files.list", session=s, path="/home/user/d")["entries"]] == ["e.bin"]
        c.call("files.mkdir", session=s, path="/home/user/x/y", parents=True)
        c.call("files.move", session=s, from_="/home/user/d/e.bin", to="/home/user/x/y/z")
        c.call("files.remove", session=s, path="/home/user/d")
        f = c.fails(-32005, "", "files.read", session=s, path="/home/user/d/e.bin")
        assert f.data["code"] == "not_found"
        c.fails(-32602, "Missing required param: path", "files.read", session=s)
        c.fails(-32602, "", "files.write", session=s, path="/tmp/a", data="not base64!")
        for path in ("/etc/x", "/home/user/../../etc/x"):
            try:
                c.call("files.write", session=s, path=path, text="evil")
                raise AssertionError(path)
            except Failure:
                pass


def test_upload_and_download():
    """Pieces of a file between the host and a session, without either in memory."""
    with Client() as c, tempfile.TemporaryDirectory() as folder:
        s = c.open(guest="sh", policy={"fs_bytes": 16 << 20})
        data = os.urandom((8 << 20) + 5)
        host, back = os.path.join(folder, "host"), os.path.join(folder, "back")
        with open(host, "wb") as f:
            f.write(data)
        open(back, "wb").close()
        r = c.call("files.upload", session=s, path="/home/user/d/f", from_=host)
        assert r == {"length": 8 << 20, "eof": False, "size": len(data)}, r
        r = c.call("files.upload", session=s, path="/home/user/d/f", from_=host, offset=8 << 20)
        assert r == {"length": 5, "eof": True, "size": len(data)}, r
        for offset in (0, 8 << 20):
            r = c.call("files.download", session=s, path="/home/user/d/f", to=back, offset=offset, length=8 << 20)
            assert r["eof"] == (offset > 0) and r["size"] == len(data), r
        with open(back, "rb") as f:
            assert f.read() == data
        c.fails(-32003, "ENOSPC", "files.upload", session=s, path="/home/user/d/f", from_=host, offset=1)  # all or nothing
        assert c.call("files.stat", session=s, path="/home/user/d/f")["size"] == len(data)
        os.mkfifo(os.path.join(folder, "fifo"))
        os.symlink(back, os.path.join(folder, "link"))
        for name in (os.path.join(folder, "fifo"), folder, "/dev/zero", "/dev/null"):  # and nothing waits for a writer
            c.fails(-32602, "not a regular file", "files.upload", session=s, path="/home/user/x", from_=name)
        for name in (os.path.join(folder, "fifo"), os.path.join(folder, "link"), os.path.join(folder, "none"), folder, "/dev/full"):
            try:
                c.call("files.download", session=s, path="/home/user/d/f", to=name)
                raise AssertionError(name)
            except Failure:
                pass
        c.fails(-32005, "", "files.upload", session=s, path="/home/user/x", from_=os.path.join(folder, "none"))
        c.fails(-32005, "", "files.download", session=s, path="/home/user/none", to=back)
        c.fails(-32602, "length", "files.upload", session=s, path="/home/user/x", from_=host, length=(8 << 20) + 1)
        c.fails(-32602, "", "files.upload", session=s, path="/home/user/x", from_=host, offset=(1 << 63) - 1)
        c.call("session.execute", session=s, code="mkfifo p; ln -s /etc/passwd out; ln -s d/f in")
        for path in ("/home/user/p", "/home/user/out", "/home/user/d"):
            try:
                c.call("files.download", session=s, path=path, to=back)
                raise AssertionError(path)
            except Failure:
                pass
        assert c.call("files.download", session=s, path="/home/user/in", to=back)["length"] == 8 << 20
        assert [e["name"] for e in c.call("files.list", session=s, path="/home/user")["entries"]] == ["d", "in", "out", "p"]


def test_snapshots_and_forks():  # SNP-01..03, RPC-05
    with Client() as c:
        s = c.open(guest="python")
        c.call("files.write", session=s, path="/home/user/v", text="v1")
        name = c.call("snapshot.create", session=s)["name"]
        c.call("snapshot.create", session=s, name="named")
        c.call("files.write", session=s, path="/home/user/v", text="v2")
        c.call("files.write", session=s, path="/home/user/new", text="n")
        for _ in range(2):
            c.call("snapshot.restore", session=s, name=name)
            assert base64.b64decode(c.call("files.read", session=s, path="/home/user/v")["data"]) == b"v1"
        c.fails(-32005, "", "files.stat", session=s, path="/home/user/new")
        c.fails(-32005, "no such snapshot", "snapshot.restore", session=s, name="nope")
        c.call("snapshot.remove", session=s, name="named")
        assert [x["name"] for x in c.call("snapshot.list", session=s)["snapshots"]] == [name]
        forks = [c.call("session.fork", session=s)["session"] for _ in range(16)]
        c.fails(-32602, "maximum of 16", "session.fork", session=s)
        c.call("files.write", session=forks[0], path="/home/user/v", text="fork")
        assert base64.b64decode(c.call("files.read", session=s, path="/home/user/v")["data"]) == b"v1"
        assert c.execute(forks[1], "open('/home/user/v').read()")["result"] == "v1"
        c.call("session.close", session=forks[2])
        c.call("session.fork", session=s)


def test_export_import():  # SNP-05, SNP-06
    with Client() as c, tempfile.TemporaryDirectory() as folder:
        a, b, d = c.open(), c.open(), c.open()
        c.call("files.write", session=a, path="/home/user/deep/f", text="content")
        blob = c.call("files.export", session=a)["data"]
        c.call("files.import", session=b, data=blob)
        assert base64.b64decode(c.call("files.read", session=b, path="/home/user/deep/f")["data"]) == b"content"
        path = os.path.join(folder, "state")
        c.call("files.export", session=a, to=path)
        assert os.stat(path).st_mode & 0o777 == 0o600
        c.call("files.import", session=d, from_=path)
        assert base64.b64decode(c.call("files.read", session=d, path="/home/user/deep/f")["data"]) == b"content"
        bad = bytearray(base64.b64decode(blob))
        bad[len(bad) // 2] ^= 1
        try:
            c.call("files.import", session=b, data=base64.b64encode(bad).decode())
            raise AssertionError("imported")
        except Failure:
            pass


def test_pool():  # POOL-01..07
    with Client(tools={"add": lambda a, b: a + b}) as c:
        c.fails(-32602, "at least 1", "pool.open", size=0)
        c.fails(-32602, "must not exceed 100", "pool.open", size=101)
        p = c.call("pool.open", guest="python", size=2, tools=[ADD])["pool"]
        for i in range(3):
            assert c.call("pool.execute", pool=p, code="add(%d, 1)" % i)["result"] == i + 1
        assert not c.call("pool.execute", pool=p, code="1/0")["success"]
        assert until(lambda: c.call("pool.status", pool=p)["idle"] == 2, 30), c.call("pool.status", pool=p)
        assert p in c.call("pool.list")["pools"]
        answered = threading.Event()
        c.tools["hold"] = lambda: answered.wait(50)
        q = c.call("pool.open", guest="python", size=2, tools=[{"name": "hold"}])["pool"]
        runs = [c.send("pool.execute", {"pool": q, "code": "hold()"}) for _ in range(2)]
        assert until(lambda: c.call("pool.status", pool=q)["busy"] == 2, 30)
        c.fails(-32003, "All sessions are busy", "pool.execute", pool=q, code="1")
        waiting = c.send("pool.execute", {"pool": q, "code": "7", "wait_ms": 50000})
        answered.set()
        assert c.wait(waiting, 60)["result"] == 7
        for n in runs:
            c.wait(n)
        c.call("pool.close", pool=q)
        s = c.call("pool.acquire", pool=p)["session"]
        assert c.execute(s, "x = 1; x")["result"] == 1
        c.call("session.close", session=s)
        n = c.send("pool.execute", {"pool": p, "code": "import time; time.sleep(60)"})
        assert until(lambda: c.call("pool.status", pool=p)["busy"] == 1, 30)
        assert c.call("cancel", request_id=n)["cancelled"]
        assert c.wait(n)["error_kind"] == "cancelled"
        n = c.send("pool.execute", {"pool": p, "code": "import time; time.sleep(60)"})
        c.call("pool.close", pool=p)
        try:
            assert c.wait(n)["error_kind"] == "cancelled"
        except Failure as f:
            assert f.code == -32600
        c.fails(-32600, "Pool is closed", "pool.execute", pool=p, code="1")


def test_policies():
    with Client("--level", "strict") as c:
        assert c.call("policy.show")["policy"]["level"] == "strict"
        assert c.call("policy.show", level="permissive")["policy"]["timeout_ms"] == 60000
        assert c.call("policy.show", policy={"timeout_ms": 5})["policy"]["timeout_ms"] == 5
        r = c.call("policy.check", policy={"timout_ms": 5})
        assert not r["valid"] and "timeout_ms" in r["error"]
        assert c.call("policy.check", set=["timeout_ms=5s"])["valid"]
        c.fails(-32602, "timeout_ms", "session.open", policy={"timout_ms": 5})
        s = c.open(policy={"max_executions": 1})
        assert c.call("session.describe", session=s)["policy"]["level"] == "strict"
        c.execute(s, "1")
        c.fails(-32003, "Maximum executions (1) reached", "session.execute", session=s, code="1")


def test_env_validate_sanitize_run():
    with Client() as c:
        s = c.open(guest="python", env={"A": "1"})
        c.call("session.setenv", session=s, name="B", value="2")
        assert c.execute(s, "import os; os.environ['A'] + os.environ['B']")["result"] == "12"
        c.fails(-32602, "1x", "session.setenv", session=s, name="1x", value="")
        assert c.call("validate", guest="python", code="1 +")["valid"] is False
        assert c.call("validate", guest="python", code="")["valid"] is True
        warned = "Code contains call to `eval()` which may be restricted by the sandbox"
        assert c.execute(s, "eval('1')")["warnings"] == [warned]
        assert c.execute(s, "eval('1')", validate=False)["warnings"] == []
        assert c.execute(s, "1")["warnings"] == []
        assert c.call("session.run", guest="python", code="eval('1')", set=["validate=false"])["warnings"] == []
        assert "[path]" in c.call("sanitize", message="cannot open '/home/x/y'")["message"]
        assert c.call("session.run", guest="python", code="6 * 7")["result"] == 42
        assert c.call("session.list")["sessions"] == [s]


def test_doctor():
    with Client() as c:
        assert c.call("doctor")


def test_audit():
    with Client() as c, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "audit.jsonl")
        s = c.open(policy={"audit": path}, audit=True)
        c.execute(s, "1")
        c.call("session.close", session=s)
        assert c.call("audit.verify", path=path)["whole"]
        events = [n["event"] for n in c.notes("audit")]
        assert events[0] == "session_start" and events[-1] == "session_close" and "execute_start" in events, events


def test_junk_and_limits():  # RPC-02..04
    with Client() as c:
        c.raw(b"not json\n")
        c.raw(b"[1]\n")
        c.raw(b'{"jsonrpc":"2.0","id":"x"}\n')
        c.fails(-32601, "unknown method 'nope'", "nope")
        c.raw(b'{"jsonrpc":"2.0","id":"p","method":"version","params":[1]}\n')
        for key, code in (("x", -32600), ("p", -32602)):
            try:
                c.wait(key)
                raise Exception("answered")
            except Failure as f:
                assert f.code == code
        with c.changed:
            e = c.answers.pop(None)["error"]
            assert (e["code"], e["data"]["line"]) in ((-32700, 1), (-32600, 2)), e
        c.raw(b'{"a":"' + b"x" * (9 << 20) + b'"}\n')
        try:
            c.wait(None)
        except Failure as f:
            assert f.code == -32700 and f.message == "Request too large"
        assert c.call("version")["name"] == "cordon"


def test_session_limit():
    with Client() as c:
        ids = [c.send("session.open", {"guest": "sh"}) for _ in range(65)]
        outcomes = []
        for n in ids:
            try:
                c.wait(n, 60)
                outcomes.append(0)
            except Failure as f:
                outcomes.append(f.code)
        assert sorted(outcomes) == [-32003] + [0] * 64, sorted(outcomes)


def test_many_at_once():
    with Client() as c:
        sessions = [c.open(guest="python") for _ in range(20)]
        ids = [c.send("session.execute", {"session": s, "code": "%d ** 2" % i}) for i, s in enumerate(sessions)]
        assert [c.wait(n)["result"] for n in ids] == [i * i for i in range(20)]


def test_pods_words():  # RPC-01, 02, 03, 05, 06, 08
    with Client() as c:
        for m, p in (("run", {"command": "ls"}), ("files.read", {"path": "/x"}), ("snapshot.create", {}), ("env.get", {"name": "A"})):
            c.fails(-32600, 'Sandbox not created. Call "create" first.', m, **p)
        c.call("create")
        c.fails(-32600, "Sandbox already created", "create")
        r = c.call("run", command="echo hello; echo bad >&2; exit 3")
        assert (r["stdout"], r["stderr"], r["exitCode"]) == ("hello\n", "bad\n", 3), r
        c.fails(-32602, "Missing required param: command", "run")
        c.fails(-32602, "Command too large", "run", command="x" * 70000)
        c.fails(-32602, "Unknown sandboxId", "run", sandboxId="7", command="ls")
        f = c.fails(1, "ENOENT", "files.read", path="/home/user/nonexistent")
        assert str(f).count("ENOENT") == 1, f
        c.fails(1, "ENOENT: outside", "files.read", path="/nonexistent")
        c.fails(1, "EROFS: ", "files.write", path="/etc/x", data="")
        c.call("files.write", path="/home/user/t", data=base64.b64encode(b"home").decode())
        fork, named = c.call("sandbox.fork")["sandboxId"], c.call("sandbox.create", label="two")["sandboxId"]
        for sandbox, text in ((fork, "fork"), (named, "named")):
            c.call("files.write", sandboxId=sandbox, path="/home/user/t", data=base64.b64encode(text.encode()).decode())
        for sandbox, text in ((fork, "fork"), (named, "named")):
            assert c.call("run", sandboxId=sandbox, command="cat /home/user/t")["stdout"] == text
        assert c.call("run", command="cat /home/user/t")["stdout"] == "home"
        c.call("env.set", name="MY_VAR", value="hello")
        assert c.call("env.get", name="MY_VAR")["value"] == "hello"
        first = c.call("snapshot.create")["id"]
        c.call("env.set", name="MY_VAR", value="changed")
        c.call("env.set", name="LATER", value="x")
        c.call("snapshot.restore", id=first)  # SNP-01
        assert (c.call("env.get", name="MY_VAR")["value"], c.call("env.get", name="LATER")["value"]) == ("hello", None)
        assert c.call("run", command="printenv MY_VAR")["stdout"] == "hello\n"
        c.fails(-32602, "1x", "env.set", name="1x", value="")
        r = c.call("run", command="while true; do :; done", timeoutMs=300)
        assert r["errorClass"] == "TIMEOUT" and r["exitCode"] == 124 and "command timeout\n" in r["stderr"]
        assert c.call("run", command="cat /home/user/t")["stdout"] == "home"
        blob = c.call("persistence.export")["data"]
        c.call("persistence.import", sandboxId=named, data=blob)
        assert c.call("run", sandboxId=named, command="cat /home/user/t")["stdout"] == "home"
        c.call("sandbox.remove", sandboxId=named)
        c.fails(-32602, "Unknown sandboxId", "run", sandboxId=named, command="ls")
        labels = [s["label"] for s in c.call("sandbox.list")["sandboxes"]]
        assert "two" not in labels and len(labels) == 2
        c.call("kill")
        assert c.process.wait(3) == 0


def test_pods_mounts_and_extensions():  # FS-15, EXT-01..03, EXT-07
    def upper(args, stdin="", **_):
        if args == ["fail"]:
            raise Exception("boom")
        return {"stdout": " ".join(args) + stdin.upper(), "stderr": "", "exit_code": 0}

    with Client(tools={"upper": upper}) as c:
        c.call("create", extensions=[{"name": "upper", "description": "shouts"}],
               mounts=[{"path": "/mnt/x", "files": {"lib/a.txt": base64.b64encode(b"mounted").decode()}}])
        assert c.call("run", command="cat /mnt/x/lib/a.txt")["stdout"] == "mounted"
        assert c.call("run", command="echo evil > /mnt/x/lib/a.txt")["exitCode"] != 0
        assert c.call("run", command="echo hello | upper a | cat")["stdout"] == "aHELLO\n"
        r = c.call("run", command="upper fail")
        assert r["exitCode"] == 1 and "upper: boom" in r["stderr"], r


def guests_of(c, count):
    sessions = [c.open(guest="python") for _ in range(count)]
    return [c.call("session.describe", session=s)["pid"] for s in sessions], sessions


def test_closing_the_sandbox_that_needs_no_name():
    with Client() as c:
        c.call("create")
        c.call("session.close")
        c.fails(-32600, "not created", "run", command="ls")
        c.call("create")
        assert c.call("run", command="echo again")["stdout"] == "again\n"


def test_mount_at_run_time():  # FS-15
    with Client() as c:
        c.call("create")
        c.call("files.write", path="/home/user/kept", text="kept")
        c.call("env.set", name="KEPT", value="yes")
        c.call("mount", path="/mnt/a", files={"x.txt": base64.b64encode(b"one").decode(), "d/y": base64.b64encode(b"two").decode()})
        r = c.call("run", command="cat /mnt/a/x.txt /mnt/a/d/y kept; echo $KEPT; echo no > /mnt/a/x.txt")
        assert r["stdout"] == "onetwokeptyes\n" and r["exitCode"] != 0, r
        c.call("mount", path="/mnt/b", files={"z": base64.b64encode(b"three").decode()})
        assert c.call("run", command="cat /mnt/a/x.txt /mnt/b/z")["stdout"] == "onethree"
        c.fails(-32602, "leaves its mount", "mount", path="/mnt/c", files={"../../etc/passwd": ""})
        c.fails(-32602, "path and files", "mount", path="/mnt/c")
        assert c.call("run", command="cat kept")["stdout"] == "kept", "a mount that fails leaves all as it was"
        # By its id, and with tools that know it by the same id.
        s = c.open(guest="python", tools=[ADD])
        c.tools["add"] = lambda a, b: a + b
        c.execute(s, "open('/home/user/f', 'w').write('x')")
        c.call("mount", session=s, path="/mnt/a", files={"v": base64.b64encode(b"7").decode()})
        assert c.execute(s, "int(open('/mnt/a/v').read()) + add(a=1, b=2)")["result"] == 10
        assert s in c.call("session.list")["sessions"]
        slow = c.begin(s, HELD["python"])
        c.fails(-32600, "concurrent", "mount", session=s, path="/mnt/q", files={})
        c.call("files.write", session=s, path="/tmp/go", text="")
        c.wait(slow)


def test_offload_and_rehydrate():
    kept = {}
    with Client() as c:
        c.call("create")
        c.call("files.write", path="/home/user/f", text="here")
        pid = c.call("session.describe")["pid"]
        c.call("offload")
        assert until(lambda: not is_alive(pid), 30)
        c.fails(-32600, "Sandbox is offloaded — call rehydrate() first", "run", command="ls")
        c.fails(-32600, "offloaded", "files.read", path="/home/user/f")
        c.call("offload")
        c.call("rehydrate")
        c.call("rehydrate")
        assert c.call("run", command="cat f")["stdout"] == "here"
        # With a storage of the client's.
        c.tools["storage.save"] = lambda sandboxId, data: kept.update({sandboxId: data}) or {}
        c.tools["storage.load"] = lambda sandboxId: {"data": kept[sandboxId]}
        s = c.open(guest="sh", storage=True)
        c.call("files.write", session=s, path="/home/user/g", text="away")
        c.call("offload", session=s)
        assert list(kept) == [s] and len(kept[s]) > 100
        assert s in c.call("session.list")["sessions"]
        data, kept[s] = kept[s], base64.b64encode(b"junk").decode()
        c.fails(-32602, "too short", "rehydrate", session=s)
        c.tools["storage.load"] = lambda sandboxId: 1 / 0
        c.fails(-32603, "storage.load", "rehydrate", session=s)
        c.tools["storage.load"] = lambda sandboxId: {"data": data}
        c.call("rehydrate", session=s)
        assert c.execute(s, "cat g")["stdout"] == "away"
        c.tools["storage.save"] = lambda sandboxId, data: 1 / 0
        c.fails(-32603, "storage.save", "offload", session=s)
        assert c.execute(s, "cat g")["stdout"] == "away", "what could not be saved stays"
        slow = c.begin(s, HELD["sh"], "sh")
        c.fails(-32600, "", "offload", session=s)
        c.call("files.write", session=s, path="/tmp/go", text="")
        c.wait(slow)
        c.call("sandbox.remove", session=s)
        p = c.call("pool.open", guest="python", size=1)["pool"]
        lent = c.call("pool.acquire", pool=p)["session"]
        c.fails(-32600, "pool", "offload", session=lent)


def test_suspend_and_history():
    with Client() as c:
        c.call("create")
        c.call("run", command="echo 1")
        c.call("sandbox.suspend")
        n = c.send("run", {"command": "echo 2"})
        time.sleep(0.3)
        assert n not in c.answers and c.call("files.list", path="/home/user")["entries"] == []
        c.call("sandbox.resume")
        assert c.wait(n)["stdout"] == "2\n"
        assert [e["command"] for e in c.call("shell.history.list")["entries"]] == ["echo 1", "echo 2"]
        c.call("shell.history.clear")
        assert c.call("shell.history.list")["entries"] == []
        c.call("sandbox.suspend")
        n = c.send("run", {"command": "echo 3"})
        assert until(lambda: c.call("cancel", request_id=n)["cancelled"], 30)
        try:
            c.wait(n)
            raise AssertionError("it ran")
        except Failure as f:
            assert f.code == -32009
        c.send("run", {"command": "echo 4"})  # waits when the client goes


def test_interrupt():
    with Client() as c:
        s = c.open(guest="python")
        c.execute(s, "x = 5")
        n = c.begin(s, "import time\ntime.sleep(50)")
        c.call("session.interrupt", session=s)
        r = c.wait(n)
        assert not r["success"] and "KeyboardInterrupt" in r["error"], r
        assert c.execute(s, "x")["result"] == 5, "its state stays"


def test_inspect():
    with Client() as c:
        s = c.open(guest="python")
        c.execute(s, "name_a = 1; name_b = 2")
        for code, status in (("1 + 1", "complete"), ("if 1:", "incomplete"), ("1 +* 1", "invalid")):
            assert c.call("session.inspect", session=s, code=code, question="is_complete") == {"status": status}, code
        r = c.call("session.inspect", session=s, code="print(name_", question="complete")
        assert r["token"] == "name_" and {"name_a", "name_b"} <= set(r["matches"]), r
        for wrong in ({"code": "1"}, {"question": "complete"}, {"code": "1", "question": "run"}, {"code": 1, "question": "complete"}):
            c.fails(-32602, "", "session.inspect", session=s, **wrong)
        assert c.call("session.describe", session=s)["executions"] == 1


def test_tar_saved_exports_and_projects():
    with Client() as c, tempfile.TemporaryDirectory() as folder:
        s = c.open(guest="sh")
        c.call("files.write", session=s, path="/home/user/d/a", text="A")
        tar = c.call("files.get_tar", session=s, path="/home/user/d")
        c.call("files.put_tar", session=s, path="/home/user/e", data=tar["data"])
        assert c.execute(s, "cat e/a")["stdout"] == "A"
        to = os.path.join(folder, "x.tar")
        assert c.call("files.get_tar", session=s, path="/home/user/d", to=to)["length"] == os.path.getsize(to)
        c.call("files.put_tar", session=s, path="/home/user/f", **{"from_": to})
        assert c.execute(s, "cat f/a")["stdout"] == "A"
        c.fails(-32602, "malformed", "files.put_tar", session=s, path="/home/user/g", data=base64.b64encode(b"junk" * 200).decode())
        one, two = os.path.join(folder, "1.cws"), os.path.join(folder, "2.cws")
        c.call("files.export", session=s, to=one)
        c.call("files.write", session=s, path="/home/user/d/b", text="B")
        c.call("files.export", session=s, to=two)
        assert "b" in "".join(e["path"] for e in c.call("export.list", name=two)["entries"])
        path = [e["path"] for e in c.call("export.list", name=two)["entries"] if e["path"].endswith("d/b")][0]
        assert base64.b64decode(c.call("export.read", name=two, path=path)["data"]) == b"B"
        changes = c.call("export.diff", old=one, new=two)["changes"]
        assert [x["change"] for x in changes if x["path"].endswith("d/b")] == ["added"], changes
        name = "rpc-test-%d" % os.getpid()
        try:
            c.call("saved.import", name=name, **{"from_": two})
            assert name in [x["name"] for x in c.call("saved.list")["saved"]]
            assert c.call("saved.read", name=name)["length"] > 100
        finally:
            c.call("saved.remove", name=name)
        c.fails(-32005, "", "saved.remove", name=name)
        host = os.path.join(folder, "project")
        os.mkdir(host)
        with open(os.path.join(host, "main.py"), "w") as f:
            f.write("x = 1\n")
        c.fails(-32600, "project.open", "project.diff", session=s)
        c.call("project.open", session=s, directory=host)
        c.execute(s, "cd /workspace && echo 'x = 2' > main.py && echo new > new.txt && echo no > no.txt")
        d = c.call("project.diff", session=s)
        assert d["added"] == 2 and d["modified"] == 1, d
        r = c.call("project.apply", session=s, paths=["main.py", "new.txt"])
        assert sorted(r["applied"]) == ["main.py", "new.txt"] and sorted(os.listdir(host)) == ["main.py", "new.txt"], r
        c.call("project.close", session=s)
        assert "timeout_ms" in c.call("policy.diff", a={"level": "standard"}, b={"level": "strict"})["diff"]
        assert c.call("policy.diff")["diff"] == ""


def test_client_death_ends_everything():
    mine, its = socket.socketpair()
    p = subprocess.Popen([CORDON, "rpc"], stdin=its, stdout=its)
    its.close()
    c = Client(sock=mine)
    pids, sessions = guests_of(c, 4)
    c.begin(sessions[0], "while True: pass")
    c.send("session.run", {"guest": "sh", "code": "sleep 1000"})
    c.call("pool.open", guest="python", size=2)
    assert all(map(is_alive, pids))
    mine.shutdown(socket.SHUT_RDWR)  # as the end of its process does
    assert until(lambda: not any(map(is_alive, pids)), 30), "guests live on"
    assert p.wait(30) == 0


def test_killed_server_takes_its_guests_along():
    c = Client()
    pids, sessions = guests_of(c, 2)
    c.begin(sessions[0], "while True: pass")
    c.process.kill()
    c.process.wait()
    assert until(lambda: not any(map(is_alive, pids)), 30), "guests live on"


def test_client_that_stops_reading_is_slowed_and_may_die():
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(n, method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode() + b"\n")
        p.stdin.flush()
    send(1, "session.open", guest="python")
    s = json.loads(p.stdout.readline())["result"]["session"]
    send(2, "session.describe", session=s)
    pid = json.loads(p.stdout.readline())["result"]["pid"]
    send(3, "session.execute", session=s, stream=True, keep_output=False, code="while True: print('x' * 1000)")
    time.sleep(0.5)
    with open("/proc/%d/status" % p.pid) as f:
        rss = int([line for line in f if line.startswith("VmRSS")][0].split()[1])
    assert rss < 60000, "%d kB" % rss
    p.stdin.close()
    p.stdout.close()
    assert until(lambda: not is_alive(pid), 30)
    p.wait(2)


def test_what_was_asked_before_the_end_is_answered():
    ask = [("create", {}), ("run", {"command": "sleep 1; echo done"}), ("version", {}), ("session.run", {"guest": "python", "code": "6 * 7"})]
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": m, "params": p}) + "\n" for i, (m, p) in enumerate(ask))
    for _ in range(5):
        r = subprocess.run([CORDON, "rpc"], input=text, capture_output=True, text=True, timeout=50)
        got = {m["id"]: m for m in map(json.loads, r.stdout.splitlines()) if "id" in m}
        assert r.returncode == 0 and sorted(got) == [0, 1, 2, 3], r
        assert got[1]["result"]["stdout"] == "done\n" and got[3]["result"]["result"] == 42, got


def test_nobody_is_waited_for_after_the_end():
    """A tool that the client has, and a session that is suspended: neither gets an answer any more."""
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(n, method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}) + "\n")
        p.stdin.flush()
    send(1, "session.open", guest="python", tools=[{"name": "slow"}])
    s = json.loads(p.stdout.readline())["result"]["session"]
    send(2, "create")
    assert json.loads(p.stdout.readline())["id"] == 2
    send(3, "sandbox.suspend")
    assert json.loads(p.stdout.readline())["id"] == 3
    send(4, "run", command="echo never", timeoutMs=None)
    send(5, "session.execute", session=s, code="slow()", timeout_ms=None)
    assert json.loads(p.stdout.readline())["method"] == "tool.call"
    p.stdin.close()
    got = {m["id"]: m for m in map(json.loads, p.stdout)}
    assert sorted(got) == [4, 5] and "client is gone" in got[5]["result"]["error"] and "suspended" in got[4]["error"]["message"], got
    assert p.wait(10) == 0
    p.stdout.close()


def test_kill_does_not_wait():
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdin.write('{"jsonrpc":"2.0","id":1,"method":"session.run","params":{"code":"while True: pass","timeout_ms":null}}\n')
    p.stdin.write('{"jsonrpc":"2.0","method":"kill"}\n')
    p.stdin.close()
    p.wait(10)
    p.stdout.close()


def test_reader_that_closes_its_end_is_dead():
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"session.open","params":{}}\n')
    p.stdin.flush()
    p.stdout.readline()
    p.stdout.close()
    assert p.wait(2) == 0
    p.stdin.close()


def connected(path):
    s = socket.socket(socket.AF_UNIX)
    assert until(lambda: s.connect_ex(path) == 0, 30)
    return s


def without_threads(log, *words):
    """`cordon rpc`, which can start no thread the first time that it tries. ThreadSanitizer starts one of its own before."""
    if not shutil.which("strace"):
        raise Need("strace is missing")
    return ["strace", "-D", "-qq", "-o", log, "-e", "trace=clone3", "-e", "inject=clone3:error=EAGAIN:when=%d" % (2 if TSAN else 1), CORDON, "rpc", *words]


def test_no_thread_to_read_with():
    """It is said, on both sides, instead of an end without a word."""
    line, reason = b'{"jsonrpc":"2.0","id":7,"method":"version"}\n', "no thread could be started to read requests"
    with tempfile.TemporaryDirectory() as folder:
        r = subprocess.run(without_threads(folder + "/log"), input=line, capture_output=True, timeout=50)
        m = json.loads(r.stdout)
        assert r.returncode == 125 and reason in r.stderr.decode(), r
        assert m["id"] is None and reason in m["error"]["message"] and m["error"]["data"] == {"line": 1}, m
        path = os.path.join(folder, "rpc.sock")
        p = subprocess.Popen(without_threads(folder + "/log", "--socket", path))
        try:
            assert until(lambda: os.path.exists(path), 30)
            with connected(path) as s, s.makefile("rb") as f:  # the thread of its own that a client gets
                assert reason in json.loads(f.readline())["error"]["message"] and f.read() == b""
            with connected(path) as s, s.makefile("rb") as f:  # the next is served
                s.sendall(line)
                assert json.loads(f.readline())["id"] == 7
        finally:
            p.terminate()
            p.wait(10)


def test_socket():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "private", "rpc.sock")
        p = subprocess.Popen([CORDON, "rpc", "--socket", path])
        try:
            assert until(lambda: os.path.exists(path), 30)
            assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
            clients = []
            for _ in range(2):
                sock = socket.socket(socket.AF_UNIX)
                assert until(lambda: sock.connect_ex(path) == 0, 30)
                clients.append((Client(sock=sock), sock))
            a, b = clients[0][0], clients[1][0]
            s = a.open(guest="python")
            pid = a.call("session.describe", session=s)["pid"]
            assert a.execute(s, "1 + 1")["result"] == 2
            b.fails(-32005, "no session", "session.execute", session=s, code="1")
            clients[0][1].shutdown(socket.SHUT_RDWR)
            assert until(lambda: not is_alive(pid), 30)
            assert b.call("version")["name"] == "cordon"
            r = subprocess.run([CORDON, "rpc", "--socket", path], capture_output=True, timeout=10)
            assert r.returncode == 125 and b"in use" in r.stderr
        finally:
            p.kill()
            p.wait()
        r = subprocess.run([CORDON, "rpc", "--socket", os.path.join(folder, "open.sock")], capture_output=True, timeout=10)
        assert r.returncode == 126 and b"0700" in r.stderr, r


def test_other_users_are_refused():
    if os.getuid() != 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "d", "rpc.sock")
        p = subprocess.Popen([CORDON, "rpc", "--socket", path])
        try:
            assert until(lambda: os.path.exists(path), 30)
            for f in (folder, os.path.dirname(path)):
                os.chmod(f, 0o777)
            os.chmod(path, 0o777)
            code = ("import os,socket,sys\nos.setuid(65534)\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                    "s.settimeout(5)\ntry: s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}\\n')\n"
                    "except BrokenPipeError: pass\n"
                    "try: print(len(s.recv(10)))\nexcept ConnectionError: print(0)\n")
            r = subprocess.run(["/usr/bin/python3", "-c", code, path], capture_output=True, timeout=10)
            assert r.stdout.strip() == b"0", r
        finally:
            p.kill()
            p.wait()

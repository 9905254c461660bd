"""Requests that a client should not send, and clients that leave at bad moments: every answer is the right error, and the
server continues."""
import base64
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time

from driver import CORDON, Client, Failure, is_alive
from test_rpc import ADD, until

MAX = 8 << 20


class Raw:
    """Lines in, lines out, nothing checked."""

    def __init__(self, *args, verb="rpc", sock=None):
        self.process, self.sock = None, sock
        if sock:
            self.out, self.inp = sock.makefile("wb"), sock.makefile("rb")
        else:
            self.process = subprocess.Popen([CORDON, verb, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.out, self.inp = self.process.stdin, self.process.stdout

    def put(self, data):
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        self.out.write(data + b"\n")
        self.out.flush()

    def get(self):
        line = self.inp.readline()
        assert line, "the server ended"
        return json.loads(line)

    def ask(self, data):
        self.put(data)
        return self.get()

    def is_silent(self, seconds=0.2):
        return not select.select([self.inp], [], [], seconds)[0]

    def close(self):
        self.out.close()
        if self.process:
            self.process.wait(10)
        self.inp.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def q(method, id=1, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def code_of(answer):
    assert "error" in answer, answer
    assert set(answer) == {"jsonrpc", "id", "error"} and answer["jsonrpc"] == "2.0" and isinstance(answer["error"]["message"], str), answer
    return answer["error"]["code"]


def test_ids_of_every_type():
    with Raw() as c:
        for good in (0, 1, -1, 2**53 + 1, 2**63 - 1, -2**63, "", "a", "é😀", "x" * 1000, 1.5, "null"):
            a = c.ask(q("version", good))
            assert a["id"] == good and type(a["id"]) is type(good) and "result" in a, (good, a)
        for bad in (None, True, False, [], [1], {}, {"a": 1}):
            a = c.ask(q("version", bad))
            assert code_of(a) == -32600 and a["id"] is None, (bad, a)


def test_versions_and_methods_of_every_type():
    with Raw() as c:
        for version in (None, "1.0", "2", 2.0, 2, [], {}):
            assert code_of(c.ask({"jsonrpc": version, "id": 1, "method": "version"})) == -32600, version
        a = c.ask({"id": 5, "method": "version"})
        assert code_of(a) == -32600 and a["id"] == 5
        for method in (None, 7, True, [], {}):
            a = c.ask({"jsonrpc": "2.0", "id": 6, "method": method})
            assert code_of(a) == -32600 and a["id"] == 6, (method, a)
        for method in ("", "nope", "version ", "VERSION", "session", "rpc.discover", "é" * 90, "x" * 100000, "a\u0000b"):
            a = c.ask(q(method))
            assert code_of(a) == -32601 and a["id"] == 1 and len(a["error"]["message"]) < 500, (method[:20], a)
        assert "result" in c.ask({"jsonrpc": "2.0", "id": 1, "method": "version", "extra": 1})


def test_params_of_every_type():
    with Raw() as c:
        assert "result" in c.ask({"jsonrpc": "2.0", "id": 1, "method": "version"})
        assert "result" in c.ask({"jsonrpc": "2.0", "id": 1, "method": "version", "params": {}})
        for bad in ([], [1], "x", 7, True, 1.5):
            a = c.ask({"jsonrpc": "2.0", "id": 1, "method": "version", "params": bad})
            assert code_of(a) == -32602 and a["id"] == 1, (bad, a)


def test_notifications_have_no_answer():
    with Raw() as c:
        for method, params in (("version", {}), ("nope", {}), ("session.open", {"guest": "cobol"}), ("session.execute", {"session": "x", "code": "1"}),
                               ("version", []), ("files.read", {}), ("cancel", {"request_id": 9}), ("pool.open", {"size": 0})):
            c.put({"jsonrpc": "2.0", "method": method, "params": params})
        assert c.is_silent(0.4), c.get()
        assert c.ask(q("version", 2))["id"] == 2


def test_what_is_no_message():
    with Raw() as c:
        for junk in (b"not json", b"{", b"{}}", b'{"a":1,"a":2}', b"\xff\xfe", b'{"id":"\xc3"}', b"\xef\xbb\xbf{}", b"NaN", b'{"id":NaN}', b"nul", b"'x'",
                     b'{"id":"\\ud800"}', b'{"id":18446744073709551616}', b"[" * 100 + b"]" * 100, b"{} {}", b'{"a":1,}', b"\x00", b'{"id":1e999}'):
            a = c.ask(junk)
            assert code_of(a) == -32700 and a["id"] is None, (junk, a)
        for odd in (b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"version"}]', b"null", b"7", b'"text"', b"true", b"{}", b'{"jsonrpc":"2.0","id":1}',
                    b'{"jsonrpc":"2.0"}'):
            assert code_of(c.ask(odd)) == -32600, odd
        for answer in (b'{"jsonrpc":"2.0","id":"cb_99","result":{}}', b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}',
                       b'{"jsonrpc":"2.0","id":null,"result":null}', b"", b"\r"):
            c.put(answer)
        assert c.is_silent(), c.get()
        assert c.ask(json.dumps(q("version")).encode() + b" \t\r")["id"] == 1


def padded(size, method="version"):
    """A request of exactly so many bytes."""
    text = json.dumps({"jsonrpc": "2.0", "id": size, "method": method}).encode()
    return text[:-1] + b" " * (size - len(text)) + b"}"


def test_lines_at_the_limit_and_above():
    with Raw() as c:
        for size in (MAX - 1, MAX):
            assert c.ask(padded(size))["id"] == size
        for size in (MAX + 1, MAX + 2, MAX + 65536, MAX + 65537, 2 * MAX, 3 * MAX + 5):
            a = c.ask(padded(size))
            assert code_of(a) == -32700 and a["error"]["message"] == "Request too large" and a["id"] is None, (size, a)
            assert c.ask(q("version", "after"))["id"] == "after"
        # A line without an end costs no more than the limit.
        for _ in range(64):
            c.out.write(b"x" * (1 << 20))
        c.out.flush()
        with open("/proc/%d/status" % c.process.pid) as f:
            rss = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
        assert rss < 64 * 1024, rss
        c.put(b"")
        assert code_of(c.get()) == -32700
        assert c.ask(q("version", 3))["id"] == 3


def test_a_file_that_fills_a_line():
    with Client() as c:
        s = c.open(guest="sh")
        room = MAX - len(json.dumps(q("files.write", 10**6, session=s, path="/tmp/f", data=""))) - 8
        data = os.urandom(room // 4 * 3)
        c.call("files.write", session=s, path="/tmp/f", data=base64.b64encode(data).decode())
        assert c.execute(s, "wc -c < /tmp/f")["stdout"].strip() == str(len(data))
        assert base64.b64decode(c.call("files.read", session=s, path="/tmp/f")["data"]) == data


def test_executions_with_wrong_parameters():
    with Client() as c:
        s = c.open(guest="python")
        for bad in ({}, {"code": 7}, {"code": None}, {"code": ["1"]}, {"code": {}}, {"code": "a\u0000b"}, {"code": "1", "timeout_ms": -1},
                    {"code": "1", "timeout_ms": "5"}, {"code": "1", "timeout_ms": 1.5}, {"code": "1", "context": []}, {"code": "1", "context": "x"},
                    {"code": "1", "stdin": 5}, {"code": "1", "stdin_base64": "?"},
                    {"code": "1", "stream": "yes"}, {"code": "1", "stream": 1}, {"code": "1", "tool_calls": -1}, {"code": "1", "validate": "no"},
                    {"code": "1", "keep_output": 0}):
            c.fails(-32602, "", "session.execute", session=s, **bad)
        for bad in (7, None, [], {}, True):
            c.fails(-32602, "", "session.execute", session=bad, code="1")
        for gone in ("", "sess_", "../x", "x" * 10000, "é"):
            c.fails(-32005, "no session", "session.execute", session=gone, code="1")
        assert c.execute(s, "6 * 7")["result"] == 42
        assert c.execute(s, "x", context={"x": 2**63 - 1})["result"] == 2**63 - 1
        assert c.execute(s, "")["success"] and c.execute(s, " \n# nothing\n")["success"]
        assert c.execute(s, "'é😀\\u2028'")["result"] == "é😀\u2028"


def test_openings_with_wrong_parameters():
    with Client() as c:
        for bad in ({"guest": 7}, {"guest": "cobol"}, {"guest": ""}, {"guest": None}, {"level": "paranoid"}, {"level": 3}, {"policy": []},
                    {"policy": "strict"}, {"policy": {"timeout_ms": 0}}, {"policy": {"timeout_ms": -5}}, {"policy": {"timeout_ms": "5"}},
                    {"policy": {"nope": 1}}, {"set": "timeout_ms=5"}, {"set": [5]}, {"set": ["nope=1"]}, {"set": ["timeout_ms"]},
                    {"tools": {}}, {"tools": [7]}, {"tools": [{}]}, {"tools": [{"name": "a", "args": []}]},
                    {"tools": [{"name": "a", "args": {"x": "colour"}}]}, {"tools": [{"name": "a", "max_calls": -1}]},
                    {"tools": [{"name": "a", "approval": "yes"}]}, {"env": []}, {"env": {"A": 1}}, {"env": {"1A": "x"}}, {"env": {"": "x"}},
                    {"env": {"A=B": "x"}}, {"audit": "yes"}, {"cold": 1}, {"directory": 5}, {"workspace": 5}):
            c.fails(-32602, "", "session.open", **bad)
        for bad in ({"size": -1}, {"size": "4"}, {"size": 1.5}, {"size": 0}, {"size": 101}, {"max_size": 101}, {"reuse": 1}):
            c.fails(-32602, "", "pool.open", **bad)
        assert c.call("session.list")["sessions"] == []


def test_files_with_wrong_parameters():
    with Client() as c:
        s = c.open(guest="sh")
        for method, bad in (("files.read", {"path": 5}), ("files.read", {"path": "/tmp/a\u0000"}), ("files.read", {"path": "/tmp/f", "offset": -1}),
                            ("files.read", {"path": "/tmp/f", "length": "5"}), ("files.read", {"path": "/tmp/f", "length": MAX + 1}),
                            ("files.write", {"path": "/tmp/f"}), ("files.write", {"path": "/tmp/f", "data": 5}),
                            ("files.write", {"path": "/tmp/f", "data": "A"}), ("files.write", {"path": "/tmp/f", "data": "A\nA="}),
                            ("files.write", {"path": "/tmp/f", "text": ["x"]}), ("files.move", {"from_": "/tmp/f"}), ("files.mkdir", {}),
                            ("files.mkdir", {"path": "/tmp/d", "parents": "yes"}), ("files.remove", {"path": "/tmp/f", "recursive": 1}),
                            ("files.import", {"data": "!"}), ("files.import", {}), ("snapshot.restore", {}), ("session.setenv", {"name": "A", "value": 5}),
                            ("session.setenv", {"name": "", "value": ""}), ("session.setenv", {"name": "A B", "value": ""})):
            c.fails(-32602, "", method, session=s, **bad)
        c.call("files.mkdir", session=s, path="/tmp/d")
        for method, path in (("files.read", "/tmp/d"), ("files.write", "/tmp/d"), ("files.list", "/tmp/none"), ("files.stat", ""),
                             ("files.mkdir", "/tmp/d"), ("files.remove", "/tmp/none"), ("files.remove", "/"), ("files.write", "/proc/self/mem"),
                             ("files.write", "/tmp/d/../../../etc/x"), ("files.read", "/tmp/" + "x" * 300), ("files.read", "/tmp/" + "d/" * 5000)):
            try:
                c.call(method, session=s, path=path, lawful=False, **({"text": "x"} if method == "files.write" else {}))
                raise AssertionError("%s %s succeeded" % (method, path[:40]))
            except Failure as f:
                assert f.code < 0 and f.data.get("code"), (method, path[:40], f)
        c.call("files.write", session=s, path="/tmp/é 😀\n'\"", text="odd")
        names = [e["name"] for e in c.call("files.list", session=s, path="/tmp")["entries"]]
        assert sorted(names) == ["d", "é 😀\n'\""], names
        assert c.call("files.read", session=s, path="/tmp/é 😀\n'\"", offset=10)["eof"]


def test_answers_of_tools_in_every_shape():
    """What the client says of a call is data too."""
    with Raw() as c:
        s = c.ask(q("session.open", guest="python", tools=[ADD]))["result"]["session"]
        shapes = [({"result": {"value": 5}}, "5"), ({"result": {"value": None}}, "None"), ({"result": {}}, None), ({"result": 5}, None), ({"result": None}, None),
                  ({"result": []}, None), ({"error": "x"}, None), ({"error": {"message": 5}}, None), ({"error": {"code": 1, "message": "said no"}}, None),
                  ({"result": {"value": 5}, "error": {"message": "both"}}, None), ({}, None), ({"result": {"value": {"$": "float", "v": [1]}}}, "any"),
                  ({"result": {"value": "x" * (2 << 20)}}, None)]
        for n, (shape, want) in enumerate(shapes):
            c.put(q("session.execute", "r%d" % n, session=s, code="add(1, 2)"))
            call = c.get()
            assert call["method"] == "tool.call" and call["params"]["request_id"] == "r%d" % n, call
            c.put({"jsonrpc": "2.0", "id": "cb_0", "result": {"value": 99}})  # nobody's
            c.put(dict({"jsonrpc": "2.0", "id": call["id"]}, **shape))
            c.put(dict({"jsonrpc": "2.0", "id": call["id"]}, result={"value": 77}))  # a second answer
            a = c.get()
            assert a["id"] == "r%d" % n and "result" in a, a
            if want is None:
                assert not a["result"]["success"], (shape, a)
            elif want != "any":
                assert a["result"]["success"] and str(a["result"]["result"]) == want, (shape, a)
        assert c.ask(q("session.execute", session=s, code="6 * 7"))["result"]["result"] == 42


def test_cancel_of_what_is_not_there():
    with Client() as c:
        s = c.open(guest="python")
        for request in (0, -1, 10**9, "x", "", 1.5):
            assert c.call("cancel", request_id=request)["cancelled"] is False
        for request in (None, [], {}, True):
            try:
                assert c.call("cancel", lawful=False, request_id=request)["cancelled"] is False
            except Failure as f:
                assert f.code == -32602, f
        c.fails(-32602, "request_id", "cancel")
        n = c.send("session.execute", {"session": s, "code": "import time; time.sleep(30)"})
        assert until(lambda: c.call("cancel", request_id=n)["cancelled"], 30)
        assert c.wait(n)["error_kind"] == "cancelled"
        assert c.call("cancel", request_id=n)["cancelled"] is False, "it is over"


def test_limits_of_a_client():
    with Client() as c:
        sessions = [c.open(guest="sh") for _ in range(64)]
        assert c.fails(-32003, "maximum of 64", "session.open", guest="sh").data["code"] == "limit"
        c.call("session.close", session=sessions.pop())
        sessions.append(c.open(guest="sh"))
        for s in sessions:
            c.send("session.close", {"session": s})
        assert until(lambda: c.call("session.list")["sessions"] == [], 20)
        pools = [c.call("pool.open", guest="sh", size=1)["pool"] for _ in range(16)]
        try:
            c.call("pool.open", guest="sh", size=1)
            raise AssertionError("a 17th pool")
        except Failure as f:
            assert "16" in f.message, f
        for p in pools:
            c.call("pool.close", pool=p)
        c.fails(-32600, "Pool is closed.", "pool.close", pool=pools[0])
        c.fails(-32600, "Pool is closed.", "pool.status", pool=pools[0])


def test_requests_at_once():
    with Client() as c:
        p = c.call("pool.open", guest="sh", size=1)["pool"]
        held = c.call("pool.acquire", pool=p)["session"]
        waiting = [c.send("pool.acquire", {"pool": p, "wait_ms": 20000}) for _ in range(256)]
        c.fails(-32003, "too many requests", "pool.acquire", pool=p, wait_ms=1)
        assert c.call("version")["name"] == "cordon"  # quick ones go on
        c.call("session.describe", session=held)
        c.call("session.close", session=held)  # what they wait for
        assert c.wait(waiting[0])["session"] != held
        c.out.close()
        assert c.process.wait(3) is not None
        assert len(waiting) == 256


def pid_of(c, s):
    return c.ask(q("session.describe", "pid", session=s))["result"]["pid"]


def begin_nothing(c, s):
    pass


def begin_half_a_line(c, s):
    c.out.write(b'{"jsonrpc":"2.0","id":1,"method":"session.exec')
    c.out.flush()


def begin_half_a_huge_line(c, s):
    c.out.write(b'{"jsonrpc":"2.0","id":1,"x":"' + b"y" * (9 << 20))
    c.out.flush()


def begin_opening(c, s):
    for i in range(5):
        c.put(q("session.open", i, guest="r"))


def begin_execution(c, s):
    c.put(q("session.execute", session=s, code="while True: pass"))


def begin_children(c, s):
    c.put(q("session.execute", session=s, code="import subprocess, time\nfor i in range(5): subprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)"))


def begin_tool(c, s):
    c.put(q("session.execute", session=s, code="add(1, 2)"))
    assert c.get()["method"] == "tool.call"


def begin_approval(c, s):
    c.put(q("session.execute", session=s, code="pay()"))
    assert c.get()["method"] == "approval"


def begin_output(c, s):
    c.put(q("session.execute", session=s, code="while True: print('x' * 1000)", stream=True, keep_output=False))
    assert c.get()["method"] == "output"  # and nobody reads what follows


def begin_waiting_for_a_pool(c, s):
    p = c.ask(q("pool.open", guest="sh", size=1))["result"]["pool"]
    c.ask(q("pool.acquire", pool=p))
    c.put(q("pool.acquire", 5, pool=p, wait_ms=60000))


def begin_suspended(c, s):
    c.ask(q("sandbox.suspend", session=s))
    c.put(q("session.execute", session=s, code="1"))


def begin_offload(c, s):
    c.put(q("offload", session=s))


def begin_storage(c, s):
    b = c.ask(q("session.open", guest="sh", storage=True))["result"]["session"]
    c.put(q("offload", session=b))
    assert c.get()["method"] == "storage.save"


def begin_export(c, s):
    c.ask(q("session.execute", session=s, code="open('big', 'wb').write(bytes(20 << 20)) and None"))
    c.put(q("files.export", session=s))


def begin_one_shot(c, s):
    c.put(q("session.run", guest="sh", code="sleep 1000"))


def begin_proof(c, s):
    c.put(q("doctor.prove", guest="sh"))
    assert c.get()["method"] == "progress"


def descendants(pid):
    parents = {}
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name) as f:
                parents[int(name)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            pass
    found, grown = {pid}, True
    while grown:
        more = {p for p, parent in parents.items() if parent in found} | found
        grown, found = len(more) > len(found), more
    return found - {pid}


def die(begin):
    c = Raw()
    s = c.ask(q("session.open", guest="python", tools=[ADD, {"name": "pay", "approval": True}]))["result"]["session"]
    guest = pid_of(c, s)
    begin(c, s)
    time.sleep(0.1)
    left = descendants(c.process.pid) | {guest}
    try:
        c.inp.close()
        c.out.close()
    except OSError:
        pass
    start = time.monotonic()
    assert until(lambda: c.process.poll() is not None, 30), "%s: the server lives" % begin.__name__
    assert until(lambda: not any(map(is_alive, left)), 30), "%s: %s live" % (begin.__name__, [p for p in left if is_alive(p)])
    return time.monotonic() - start


def test_a_client_that_dies_in_any_state():
    for name, begin in list(globals().items()):
        if name.startswith("begin_"):
            die(begin)


test_a_client_that_dies_in_any_state.seconds = 150


def test_two_clients_at_one_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "private", "rpc.sock")
        p = subprocess.Popen([CORDON, "rpc", "--socket", path])
        try:
            assert until(lambda: os.path.exists(path), 30)
            clients = []
            for _ in range(3):
                sock = socket.socket(socket.AF_UNIX)
                assert until(lambda: sock.connect_ex(path) == 0, 30)
                clients.append(Raw(sock=sock))
            a, b, mad = clients
            sa = a.ask(q("session.open", guest="python"))["result"]["session"]
            sb = b.ask(q("session.open", guest="python"))["result"]["session"]
            assert sa != sb
            a.put(q("session.execute", "same id", session=sa, code="import time; time.sleep(0.3); 'a'"))
            b.put(q("session.execute", "same id", session=sb, code="'b'"))
            assert b.get()["result"]["result"] == "b" and a.get()["result"]["result"] == "a"
            assert b.ask(q("cancel", request_id="same id"))["result"]["cancelled"] is False
            assert a.ask(q("create"))["result"]["ok"] and code_of(b.ask(q("run", command="ls"))) == -32600  # homes are their own
            mad.out.write(b"x" * (20 << 20))
            mad.out.flush()
            assert a.ask(q("session.execute", session=sa, code="1"))["result"]["result"] == 1
            pid = pid_of(a, sa)
            assert a.ask(q("kill"))["result"]["ok"]  # ends what is a's, and only that
            assert until(lambda: not is_alive(pid), 30)
            assert b.ask(q("session.execute", session=sb, code="2"))["result"]["result"] == 2
            assert p.poll() is None
        finally:
            p.kill()
            p.wait()


def test_a_socket_with_more_clients_than_descriptors():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "private", "rpc.sock")
        p = subprocess.Popen(["/bin/sh", "-c", 'ulimit -n 24; exec "$0" rpc --socket "$1"', CORDON, path])
        try:
            assert until(lambda: os.path.exists(path), 30)
            socks = []
            for _ in range(40):
                sock = socket.socket(socket.AF_UNIX)
                sock.setblocking(False)
                if sock.connect_ex(path) == 0:
                    socks.append(sock)
            time.sleep(0.3)
            assert p.poll() is None, "the server gave up"
            for sock in socks:
                sock.close()
            sock = socket.socket(socket.AF_UNIX)
            assert until(lambda: sock.connect_ex(path) == 0, 30)
            sock.settimeout(10)
            with Raw(sock=sock) as c:
                assert c.ask(q("version"))["result"]["name"] == "cordon"
        finally:
            p.kill()
            p.wait()


def test_requests_out_of_order():
    with Client() as c:
        for method, params in (("run", {"command": "ls"}), ("files.read", {"path": "/x"}), ("env.get", {"name": "A"}), ("snapshot.create", {}),
                               ("sandbox.fork", {}), ("offload", {}), ("mount", {"path": "/m", "files": {}}), ("session.close", {})):
            c.fails(-32600, "Sandbox not created", method, **params)
        c.call("create")
        c.fails(-32600, "Sandbox already created", "create")
        c.fails(-32602, "Missing required param: command", "run")
        c.fails(-32602, "Command too large", "run", command="x" * (70 << 10))
        c.fails(-32602, "Unknown sandboxId", "run", sandboxId="9", command="ls")
        c.call("offload")
        for method, params in (("run", {"command": "ls"}), ("files.list", {"path": "/"}), ("snapshot.list", {}), ("sandbox.suspend", {})):
            c.fails(-32600, "offloaded", method, **params)
        c.call("rehydrate")
        c.call("sandbox.suspend")
        c.call("sandbox.suspend")
        c.call("sandbox.resume")
        c.call("sandbox.resume")
        assert c.call("run", command="echo on")["stdout"] == "on\n"
        c.call("sandbox.destroy")
        c.fails(-32600, "Sandbox not created", "run", command="ls")
        assert c.call("kill")["ok"] and c.process.wait(3) == 0


def test_a_thousand_requests_in_one_write():
    with Raw() as c:
        c.put(b"\n".join(json.dumps(q("version", i)).encode() for i in range(1000)))
        assert [c.get()["id"] for _ in range(1000)] == list(range(1000))


def test_a_line_that_comes_byte_by_byte():
    with Raw() as c:
        for b in json.dumps(q("version", "slow")).encode() + b"\n":
            c.out.write(bytes([b]))
            c.out.flush()
        assert c.get()["id"] == "slow"


def test_threads_that_share_a_session():
    with Client() as c:
        s, won, refused = c.open(guest="python"), [], []

        def one(i):
            try:
                won.append(c.execute(s, "import time; time.sleep(0.05); %d" % i)["result"])
            except Failure as f:
                assert f.code == -32600 and "concurrent" in f.message, f
                refused.append(i)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert won and len(won) + len(refused) == 20
        assert c.execute(s, "1")["result"] == 1

"""What clients of a busy cordon serve do: each turn uses one protocol from its beginning to its end and checks every answer. Some leave
in the middle, some lose the process of their session. A turn leaves nothing behind."""
import json
import os
import re
import signal
import socket
import sys
import time

from driver import ROOT, is_alive
from holdings import below, until
from serving import Problem
from test_http import Http

sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2b"))
import cordon  # noqa: E402
from cordon._address import find_server  # noqa: E402
from cordon._remote import greeting  # noqa: E402
from server import Box  # noqa: E402

READ = {"python": "print(open('f').read(), end='')", "sh": "cat f"}
ENDLESS = {"python": "print('up', flush=True)\nwhile True: pass", "sh": "echo up; sleep 600"}
SECONDS = 120  # until a turn that waits for a state gives up: a busy machine is no fault


class Failed(Exception):
    """An answer that the death of a process may explain; a wrong value is an AssertionError, which nothing explains."""


def must(good, *what):
    if not good:
        raise Failed(" ".join(str(w)[:400] for w in what))


def kill_below(server_pid, pid, number=signal.SIGKILL):
    """Kills a process of the server's sandboxes, and no other that has got its number meanwhile."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if pid not in below(server_pid):
            return False
        signal.pidfd_send_signal(fd, number)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


class Turn:
    """One client with a connection of its own; rng decides what it does."""

    def __init__(self, server, rng):
        self.server, self.rng, self.token = server, rng, os.urandom(16).hex()
        self.c, self.requests, self.is_killed = server.client(), 0, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.c.c.close()
        self.server.connections.remove(self.c.c)

    def call(self, method, path, body=None, **headers):
        self.requests += 1
        try:
            return self.c.call(method, path, body, **headers)
        except Problem as p:
            raise Failed("%s %s: %d %s" % (method, path, p.status, p.body)) from p
        except (OSError, EOFError, json.JSONDecodeError) as e:  # the server hung up: nothing but its own end explains that
            raise AssertionError("%s %s: %r" % (method, path, e)) from e

    def open(self, **params):
        s = self.call("POST", "/v1/sessions", params)["session"]
        self.path = "/v1/sessions/" + s
        return s

    def close(self):
        """A session can be closed whatever has happened to it."""
        self.call("DELETE", self.path)

    def pid(self):
        return self.call("GET", self.path).get("pid")

    def lose(self):
        """The guest dies. The session must still give answers, and end."""
        pid = self.pid()
        self.is_killed = bool(pid) and kill_below(self.server.p.pid, pid)

    def raw(self, method, path, body=b"", length=None, **headers):
        """A connection on which a request was sent; it ends with the answer."""
        self.requests += 1
        s = socket.create_connection(("127.0.0.1", self.server.port), 60)
        head = {"Host": "127.0.0.1:%d" % self.server.port, "Authorization": "Bearer " + self.server.key, "Connection": "close",
                "Content-Length": str(len(body) if length is None else length), **{k.replace("_", "-"): v for k, v in headers.items()}}
        s.sendall(("%s %s HTTP/1.1\r\n" % (method, path) + "".join("%s: %s\r\n" % kv for kv in head.items()) + "\r\n").encode() + body)
        return s


def executed(t, guest, **headers):
    """The output of one execution, plain or as events."""
    path, body = t.path + "/executions", {"code": READ[guest]}
    if t.rng.random() < 0.5:
        r = t.call("POST", path, body, **headers)
        return r["stdout"], r
    events = t.call("POST", path, body, Accept="text/event-stream", **headers)
    must(events[-1][0] == "result", "the last event is", events[-1])
    return "".join(e["data"] for kind, e in events if kind == "stdout"), events[-1][1]


def session_turn(t):
    """Files and executions, plain and as events; sometimes the guest dies in between."""
    guest = t.rng.choice(["python", "python", "sh"])
    t.open(guest=guest)
    try:
        t.call("PUT", t.path + "/files?path=f", t.token.encode())
        if t.rng.random() < 0.3:
            t.lose()
        out, result = executed(t, guest)
        must(result["success"], result)
        assert out == t.token, (out, t.token, result)
        assert t.call("GET", t.path + "/files?path=f") == t.token.encode()
        assert t.call("GET", t.path + "/files?path=f", Range="bytes=2-5") == t.token[2:6].encode()
    except Failed:
        if not t.is_killed:
            raise
    finally:
        t.close()


def wait_up(s):
    """Until the code has printed. It is a stream of events."""
    data = b""
    while b'"up' not in data:
        piece = s.recv(4096)
        must(piece, "the stream ended:", data)
        data += piece


def leave_turn(t):
    """A client that leaves in the middle of an execution, of sending or of receiving."""
    guest = t.rng.choice(["python", "sh"])
    t.open(guest=guest)
    try:
        t.call("PUT", t.path + "/files?path=f", t.token.encode() * 8192)
        pid, what = t.pid(), t.rng.randrange(4)
        body = json.dumps({"code": ENDLESS[guest]}).encode()
        if what == 0:
            s = t.raw("PUT", t.path + "/files?path=g", b"x" * 5000, 1 << 20)
        elif what == 1:
            s = t.raw("GET", t.path + "/files?path=f")
            s.recv(1000)
        elif what == 2:
            s = t.raw("POST", t.path + "/executions", body[:t.rng.randrange(len(body))], len(body), Content_Type="application/json")
        else:
            s = t.raw("POST", t.path + "/executions", body, Content_Type="application/json", Accept="text/event-stream")
            wait_up(s)
        s.close()
    finally:
        t.close()
    must(not pid or until(lambda: not is_alive(pid), SECONDS), "the guest lives on")


def again_turn(t):
    """With an Idempotency-Key code runs once, whoever leaves."""
    t.open(guest="sh")
    try:
        path, body = t.path + "/executions", {"code": "echo x >>n; cat n"}
        name = "soak-" + t.token
        s = t.raw("POST", path, json.dumps(body).encode(), Content_Type="application/json", Idempotency_Key=name)
        if t.rng.random() < 0.5:
            s.recv(100)
        s.close()
        for _ in range(2):
            r = t.call("POST", path, body, Idempotency_Key=name)
            must(r["success"], r)
            assert r["stdout"] == "x\n", r
    finally:
        t.close()


def parking_turn(t):
    """A session that nobody uses is parked; its files come back."""
    t.open(guest="python")
    try:
        t.call("PUT", t.path + "/files?path=f", t.token.encode())
        pid = t.pid()
        must(not pid or until(lambda: not is_alive(pid), SECONDS), "it is not parked")
        if t.rng.random() < 0.7:
            assert t.call("GET", t.path + "/files?path=f") == t.token.encode()
            out, result = executed(t, "python")
            must(result["success"], result)
            assert out == t.token, (out, t.token)
    finally:
        t.close()


def pool_turn(t):
    pool = "/v1/pools/" + t.call("POST", "/v1/pools", {"guest": "python", "size": 2})["pool"]
    try:
        for _ in range(2):
            n = t.rng.randrange(1000)
            r = t.call("POST", pool + "/executions", {"code": "%d + 1" % n, "wait_ms": SECONDS * 1000})
            must(r["success"], r)
            assert r["result"] == n + 1, (n, r)
        lent = t.call("POST", pool + "/sessions", {"wait_ms": SECONDS * 1000})["session"]
        t.path = "/v1/sessions/" + lent
        if t.rng.random() < 0.5:
            t.lose()
        t.close()
    finally:
        t.call("DELETE", pool)


class Wire:
    """What tests/e2b/server.py needs of a server."""

    def __init__(self, t):
        self.t, self.port, self.key = t, t.server.port, t.server.key

    def request(self, method, path, body=None, headers=None):
        import http.client
        self.t.requests += 1
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            c.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers or {})
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def control(self, method, path, body=None):
        status, _, data = self.request(method, path, body, {"X-API-Key": self.key, "Content-Type": "application/json"})
        return status, json.loads(data) if data else None


def e2b_turn(t):
    """A sandbox of E2B: a command, a file, code; some clients leave while it runs."""
    wire = Wire(t)
    status, made = wire.control("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})
    must(status == 201, status, made)
    box = Box(wire, made)
    try:
        status, _, data = wire.request("POST", "/files?path=/tmp/f", t.token.encode(), {**box.headers, "Content-Type": "application/octet-stream"})
        must(status == 200, status, data)
        out = box.run("cat /tmp/f")
        must(out[2] == 0, out)
        assert out[0] == t.token.encode(), (out, t.token)
        head = {**box.headers, "Content-Type": "application/json"}
        status, _, data = wire.request("POST", "/execute", {"code": "len('%s')" % t.token}, head)
        said = [json.loads(line) for line in data.splitlines() if line]
        must(status == 200 and not any(m["type"] == "error" for m in said), status, said)
        assert [m["text"] for m in said if m["type"] == "result"] == ["32"], said
        if t.rng.random() < 0.4:
            s = box.open_stream("execute", json.dumps({"code": "while True: print('up')"}).encode(), **dict(head, Connection="close"))
            wait_up(s)
            s.close()
    finally:
        status, answer = wire.control("DELETE", "/sandboxes/" + box.id)
        must(status == 204, status, answer)


def mcp_turn(t):
    """A client of /mcp, which may leave in the middle of a call."""
    h = Http.__new__(Http)
    h.host, h.port, h.path, h.token, h.session, h.n = "127.0.0.1", t.server.port, "/mcp", t.server.key, None, 0
    h.initialize()
    t.requests += 4
    try:
        n = t.rng.randrange(1000)
        r = h.tool("run_code", language="python", code="%d + 1" % n)
        must(not r.get("isError"), r)
        assert re.search(r"\b%d\b" % (n + 1), json.dumps(r)), (n, r)
        if t.rng.random() < 0.4:
            s = h.raw({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
                "name": "run_code", "arguments": {"language": "python", "code": "while True: pass"}}})
            s.close()
    finally:
        status = h.request("DELETE")[0]
        assert status in (200, 204), status


def rpc_turn(t):
    """A connection of the clients' protocol."""
    t.requests += 6
    try:
        with cordon.connect(server=t.server.url, key=t.server.key) as c, cordon.Session("python", connection=c) as s:
            s.files.write("f", t.token)
            if t.rng.random() < 0.3:
                t.is_killed = kill_below(t.server.p.pid, s.describe()["pid"])
            assert s.run("open('f').read()") == t.token
            assert s.files.read_text("f") == t.token
    except cordon.CordonError as e:
        if not t.is_killed:
            raise Failed("rpc: %r" % e) from e


CUTS = [{"method": "session.open", "params": {"guest": "python", "tools": [{"name": "t"}]}},
        {"method": "session.run", "params": {"code": "import time; time.sleep(600)"}},
        {"method": "session.run", "params": {"code": "t()", "tools": [{"name": "t"}]}},
        {"method": "session.run", "params": {"stream": True, "code": "while True: print(1)"}},
        {"method": "pool.open", "params": {"size": 2}}]


def cut_turn(t):
    """A connection of the clients' protocol that ends in the middle of something."""
    s = socket.create_connection(("127.0.0.1", t.server.port), 60)
    s.sendall(greeting(find_server(t.server.url, t.server.key)))
    assert s.recv(1000).startswith(b"HTTP/1.1 101")
    t.requests += 2
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, **t.rng.choice(CUTS)}).encode() + b"\n")
    if t.rng.random() < 0.5:
        time.sleep(t.rng.random() * 0.2)  # a moment of any length
    s.close()


ALL = [session_turn, session_turn, session_turn, leave_turn, leave_turn, again_turn, parking_turn, pool_turn, e2b_turn, mcp_turn, rpc_turn,
       cut_turn, cut_turn]

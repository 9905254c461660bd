"""cordon mcp --http with a raw client: authentication, sessions, streams, cancellation, limits, shutdown."""
import http.client
import json
import os
import re
import resource
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from driver import CORDON, Need, is_alive

BUILD = os.environ.get("BUILD") or os.path.dirname(CORDON)
OLD, NEW = "2025-11-25", "2026-07-28"
BOTH = "application/json, text/event-stream"


class Http:
    """A server, and requests to it."""

    def __init__(self, *args, command=None, token=None, **env):
        if not command and not os.path.exists(os.path.join(BUILD, "cordon-http")):
            raise Need("a build with libmicrohttpd")
        environment = dict(os.environ, **env)
        if token:
            environment["CORDON_MCP_TOKEN"] = token
            args = [a for a in args if a not in ("--token-file", "-")]
        self.p = subprocess.Popen(command or [CORDON, "mcp", "--http", "127.0.0.1:0", *args], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        line = self.p.stdout.readline()
        assert line.startswith("listening at "), line + self.p.stderr.read()
        self.url = line.split()[-1]
        self.token = token
        if not command and not token and "--no-token" not in args and "--token-file" not in args:
            self.token = re.match(r"Authorization: Bearer (\w{48})$", self.p.stdout.readline())[1]
        u = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.path = u.hostname, u.port, u.path
        self.session, self.n = None, 0

    def headers(self, extra=None):
        h = {"Content-Type": "application/json", "Accept": BOTH}
        if self.token:
            h["Authorization"] = "Bearer " + self.token
        if self.session:
            h["Mcp-Session-Id"] = self.session
        h.update(extra or {})
        return {k: v for k, v in h.items() if v is not None}

    def request(self, method, body=None, path=None, **headers):
        c = http.client.HTTPConnection(self.host, self.port, timeout=30)
        body = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        c.request(method, path or self.path, body, self.headers({k.replace("_", "-"): v for k, v in headers.items()}))
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, dict(r.getheaders()), data

    def post(self, message, **headers):
        """The status and the messages that came, the answer last."""
        status, h, data = self.request("POST", message, **headers)
        if h.get("Content-Type") == "text/event-stream":
            return status, [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
        return status, [json.loads(data)] if data and h.get("Content-Type") == "application/json" else []

    def ask(self, method, params=None, **headers):
        self.n += 1
        status, messages = self.post({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}}, **headers)
        assert status == 200 and messages[-1]["id"] == self.n, (status, messages)
        return messages[-1]

    def initialize(self):
        status, h, data = self.request("POST", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}, Mcp_Session_Id=None)
        assert status == 200 and json.loads(data)["result"]["protocolVersion"] == OLD, (status, data)
        self.session = h["Mcp-Session-Id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202
        return self.session

    def tool(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def new(self, method, params=None, meta=None, **headers):
        """A request of the stateless generation."""
        self.n += 1
        params = dict(params or {}, _meta=dict({"io.modelcontextprotocol/protocolVersion": NEW,
                                                "io.modelcontextprotocol/clientCapabilities": {}}, **meta or {}))
        h = {"MCP_Protocol_Version": NEW, "Mcp_Method": method, "Mcp_Session_Id": None}
        if "name" in params or "uri" in params:
            h["Mcp_Name"] = params.get("name", params.get("uri"))
        h.update(headers)
        return self.post({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}, **h)

    def new_tool(self, name, **arguments):
        status, messages = self.new("tools/call", {"name": name, "arguments": arguments})
        assert status == 200, messages
        return messages[-1]["result"]

    def raw(self, body, **headers):
        """A connection on which a request was sent."""
        s = socket.create_connection((self.host, self.port), 30)
        data = json.dumps(body).encode()
        h = self.headers({k.replace("_", "-"): v for k, v in headers.items()})
        h.update({"Host": "localhost", "Content-Length": str(len(data))})
        s.sendall(("POST %s HTTP/1.1\r\n" % self.path + "".join("%s: %s\r\n" % kv for kv in h.items()) + "\r\n").encode() + data)
        return s

    def close(self):
        if self.p.poll() is None:
            self.p.stdin.close()
            self.p.terminate()
        self.p.wait(20)
        self.p.stdout.close()
        self.p.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refusals(*args, **env):
    r = subprocess.run([CORDON, "mcp", "--http", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                       env=dict(os.environ, **env))
    return r.returncode, r.stderr


def test_who_is_let_in():
    with Http() as h:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": OLD}}
        assert h.request("POST", ping)[0] == 200
        status, headers, _ = h.request("POST", ping, Authorization=None)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer")
        for bad in ("Bearer wrong", "Bearer " + h.token[:-1], "Bearer " + h.token + "0", "Basic " + h.token, h.token, ""):
            assert h.request("POST", ping, Authorization=bad)[0] == 401, bad
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil", "evil@localhost", "localhost:80:90", "[::1", "*"):
            assert h.request("POST", ping, Host=host)[0] in (400, 403), host
        for origin in ("http://evil.example", "null", "file://", "http://localhost.evil.example", "http://localhost@evil", "localhost"):
            assert h.request("POST", ping, Origin=origin)[0] == 403, origin
        for good in ("localhost", "LOCALHOST:1", "127.0.0.1:%d" % h.port, "[::1]:9"):
            assert h.request("POST", ping, Host=good, Origin="http://" + good)[0] == 200, good
        assert h.request("POST", ping, path="/")[0] == 404 and h.request("POST", ping, path="/mcp/x")[0] == 404
        s = h.raw(ping, **{"X": "y\r\nHost: evil.example"})  # two of them
        assert b" 400 " in s.recv(100)
        s.close()
    with Http("--no-token", "--http-host", "box.example") as h:
        assert h.request("POST", ping, Host="box.example", Origin="https://box.example")[0] == 200


def test_what_is_refused_before_it_listens():
    status, text = refusals("0.0.0.0:0")
    assert status == 126 and "--public" in text, text
    assert refusals("localhost")[0] == 2 and refusals("127.0.0.1:99999")[0] == 2 and refusals("127.0.0.1:x")[0] == 2
    status, text = refusals("127.0.0.1:0", CORDON_MCP_TOKEN="short")
    assert status == 2 and "16" in text
    assert refusals("0.0.0.0:0", "--public", "--no-token")[0] == 2
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("tok tok tok tok tok tok\n")
        f.flush()
        assert refusals("127.0.0.1:0", "--token-file", f.name)[0] == 2
    assert refusals("127.0.0.1:0", "--token-file", "/nonexistent/token")[0] != 0
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("a-token-of-enough-length\n")
        f.flush()
        with Http("--token-file", f.name) as h:
            h.token = "a-token-of-enough-length"
            h.initialize()


def test_sessions():
    with Http() as h:
        assert h.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[0] == 400
        assert h.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, Mcp_Session_Id="0" * 32)[0] == 404
        first = h.initialize()
        assert h.ask("ping", MCP_Protocol_Version=OLD)["result"] == {}
        assert h.tool("run_code", code="x = 41")["isError"] is False
        assert h.tool("run_code", code="x + 1")["structuredContent"]["result"] == "42"
        second = h.initialize()
        assert second != first and len(second) == 32
        assert h.tool("run_code", code="x")["isError"], "another session's variables"
        assert h.tool("list_sandboxes")["structuredContent"]["sandboxes"][0]["language"] == "python"
        status, m = h.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, MCP_Protocol_Version="1999-01-01")
        assert status == 400 and m[0]["error"]["code"] == -32022
        h.session = first
        pid = int(h.tool("run_command", command="echo $PPID")["structuredContent"]["stdout"])
        assert pid >= 0
        assert h.request("DELETE")[0] == 204
        assert h.request("DELETE")[0] == 404
        assert h.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})[0] == 404
        h.session = second
        assert h.ask("tools/list")["result"]["tools"]
        assert h.request("GET")[0] == 405 and h.request("PUT", b"x")[0] == 405


def test_losses_are_told():
    """A log that cannot be written: in the answer that ends the sandbox, on stderr for DELETE, and at the end."""
    with tempfile.TemporaryDirectory() as d:
        log = os.path.join(d, "log")
        options = ["--no-token", "--set", "audit=" + log]
        h = Http(command=[CORDON, "mcp", "--http", "127.0.0.1:0", *options])
        h.token = None
        for ends_itself in (True, False):
            h.initialize()
            sandbox = h.tool("run_code", code="1")["structuredContent"]["sandbox_id"]
            full = os.path.getsize(log)
            resource.prlimit(h.p.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
            if ends_itself:
                r = h.tool("destroy_sandbox", sandbox_id=sandbox)
                assert r["isError"] and log in r["content"][0]["text"], r
            assert h.request("DELETE")[0] == 204
            resource.prlimit(h.p.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        h.p.terminate()
        _, said = h.p.communicate(timeout=60)
        assert h.p.returncode != 0 and said.count(log) == 2, (h.p.returncode, said)


def test_bodies():
    with Http("--tools", "full", "--no-token") as h:
        h.initialize()
        assert h.request("POST", b"junk")[0] == 400
        assert h.request("POST", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}])[0] == 400
        assert h.request("POST", {"jsonrpc": "2.0", "id": [], "method": "ping"})[0] == 400
        for kind in ("text/plain", "text/plain;x=,application/json", "text/plain, application/json", "*/*", "application/jsonx"):
            assert h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Content_Type=kind)[0] == 415, kind
        assert h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Content_Type="application/json;charset=utf-8")[0] != 415
        assert h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Accept="text/html")[0] == 406
        assert h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Accept="*/*")[0] == 200
        try:
            status = h.request("POST", b" " * (9 << 20))[0]
        except (BrokenPipeError, ConnectionResetError):
            status = 413
        assert status == 413
        assert h.ask("ping")["result"] == {}
        try:
            status = h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, X_Long="y" * 100000)[0]
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            status = 431
        assert status in (413, 414, 431), status
        assert h.post({"jsonrpc": "2.0", "id": 9, "result": {}})[0] == 202
        text = "x" * 3000000  # larger than any block
        assert h.tool("write_file", path="/home/user/big", contents=text)["isError"] is False
        assert h.tool("read_file", path="/home/user/big")["content"][0]["text"] == text


def test_stateless():
    with Http() as h:
        status, m = h.new("server/discover")
        assert status == 200 and NEW in m[0]["result"]["supportedVersions"] and m[0]["result"]["resultType"] == "complete"
        assert h.new("initialize")[0] == 404 and h.new("nope")[1][0]["error"]["code"] == -32601
        assert h.new("tools/list", Mcp_Method="tools/call")[1][0]["error"]["code"] == -32020
        assert h.new("tools/call", {"name": "run_code", "arguments": {}}, Mcp_Name="x")[0] == 400
        assert h.new("tools/list", MCP_Protocol_Version=None)[1][0]["error"]["code"] == -32020
        status, m = h.new("tools/list", meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"}, MCP_Protocol_Version="2099-01-01")
        assert status == 400 and m[0]["error"]["code"] == -32022 and m[0]["error"]["data"]["requested"] == "2099-01-01"
        first = h.new_tool("run_code", code="x = 41")["structuredContent"]["sandbox_id"]
        assert h.new_tool("run_code", code="x")["isError"], "no sandbox is shared without being named"
        assert h.new_tool("run_code", code="x + 1", sandbox_id=first)["structuredContent"]["result"] == "42"
        assert h.new_tool("run_command", command="echo beside", sandbox_id=first)["structuredContent"]["stdout"] == "beside\n"  # a second language
        assert "sandbox_id" in h.new("server/discover")[1][0]["result"]["instructions"]
        for _ in range(20):  # those that nobody named make room for others
            h.new_tool("run_command", command="true")
        assert len(h.new_tool("list_sandboxes")["structuredContent"]["sandboxes"]) == 16
        assert h.new_tool("run_code", code="x + 1", sandbox_id=first)["isError"], "the oldest went"


def test_progress_and_logs_on_the_requests_own_stream():
    with Http() as h:
        h.initialize()
        h.tool("run_code", code="1")
        status, m = h.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
            "name": "run_code", "arguments": {"code": "import time\nprint('a', flush=True)\ntime.sleep(0.5)\nprint('b', flush=True)\ntime.sleep(0.5)"},
            "_meta": {"progressToken": 7}}})
        assert status == 200 and m[-1]["id"] == 5
        told = [x["params"] for x in m if x.get("method") == "notifications/progress"]
        assert [t["message"] for t in told][:2] == ["a", "b"] and all(t["progressToken"] == 7 for t in told), told
        assert all(a["progress"] < b["progress"] for a, b in zip(told, told[1:]))
        denied = {"name": "run_code", "arguments": {"code": "open('/etc/shadow')"}}
        m = h.post({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {
            "name": "run_code", "arguments": {"code": "import socket; socket.socket()"}}})[1]
        logs = [x["params"] for x in m if x.get("method") == "notifications/message"]
        assert logs and logs[0]["level"] == "warning" and "socket" in logs[0]["data"], m
        assert h.ask("logging/setLevel", {"level": "error"})["result"] == {}
        m = h.post({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "run_code", "arguments": {"code": "import socket; socket.socket()"}}})[1]
        assert len(m) == 1, m
        status, m = h.post({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": denied}, Accept="application/json")
        assert status == 200 and len(m) == 1 and m[0]["result"]["isError"]
        # The stateless generation says with each request whether it wants to hear.
        assert len(h.new("tools/call", {"name": "run_code", "arguments": {"code": "import socket; socket.socket()"}})[1]) == 1
        m = h.new("tools/call", {"name": "run_code", "arguments": {"code": "import socket; socket.socket()"}},
                  {"io.modelcontextprotocol/logLevel": "warning"})[1]
        assert m[0]["method"] == "notifications/message"


SLEEP = "import os, time\nopen('/home/user/pid', 'w').write('x')\ntime.sleep(25)"


def wait_running(h, new=False):
    """The sandbox that executes."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        r = h.new_tool("list_sandboxes") if new else h.tool("list_sandboxes")
        for s in r["structuredContent"]["sandboxes"]:
            if s["state"] == "running":
                return s["sandbox_id"]
        time.sleep(0.05)
    raise AssertionError("nothing runs")


def wait_idle(h, sandbox, new=False, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        r = h.new_tool("list_sandboxes") if new else h.tool("list_sandboxes")
        if [s["state"] for s in r["structuredContent"]["sandboxes"] if s["sandbox_id"] == sandbox] == ["idle"]:
            return True
        time.sleep(0.05)
    return False


def test_cancellation():
    with Http() as h:
        h.initialize()
        call = {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": SLEEP}}}
        s = h.raw(call)
        sandbox = wait_running(h)
        assert h.tool("run_command", command="echo ok")["structuredContent"]["stdout"] == "ok\n"
        assert h.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})[0] == 202
        assert wait_idle(h, sandbox)
        s.settimeout(5)
        data = s.recv(65536)
        assert b" 200 " in data and b'"result"' not in data, "what was cancelled has no answer"
        s.close()
        # With sessions a connection that breaks is no wish to end.
        s = h.raw(dict(call, params={"name": "run_code", "arguments": {"code": "import time; time.sleep(1.5); done = 5"}}))
        wait_running(h)
        s.close()
        assert not wait_idle(h, sandbox, seconds=0.5) and wait_idle(h, sandbox)
        assert h.tool("run_code", code="done")["structuredContent"]["result"] == "5"
        # Without, it is the only way to say so.
        meta = {"io.modelcontextprotocol/protocolVersion": NEW, "io.modelcontextprotocol/clientCapabilities": {}}
        for accept in (BOTH, "application/json"):
            s = h.raw(dict(call, params=dict(call["params"], _meta=meta)), Mcp_Session_Id=None, MCP_Protocol_Version=NEW,
                      Mcp_Method="tools/call", Mcp_Name="run_code", Accept=accept)
            sandbox = wait_running(h, new=True)
            s.close()
            assert wait_idle(h, sandbox, new=True), accept
            h.new_tool("destroy_sandbox", sandbox_id=sandbox)


def test_calls_on_one_sandbox_take_turns():
    with Http() as h:
        h.initialize()
        h.tool("run_code", code="n = 0")
        seen = []

        def one():
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": "n += 1; n"}}}
            seen.append(h.post(body)[1][-1]["result"]["structuredContent"]["result"])
        threads = [threading.Thread(target=one) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(map(int, seen)) == list(range(1, 9)), seen


def test_a_slow_reader_holds_nobody():
    with Http() as h:
        h.initialize()
        big = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_command", "arguments": {
            "command": "head -c 700000 /dev/zero | tr '\\0' x"}}}
        stuck = [h.raw(big) for _ in range(3)]  # nobody reads these
        assert h.tool("run_code", code="6 * 7")["structuredContent"]["result"] == "42"
        pid = h.p.pid
        h.p.terminate()
        h.p.wait(10)
        assert not is_alive(pid)
        for s in stuck:
            s.close()


def test_connections_are_limited():
    with Http("--no-token") as h:
        idle = []
        for _ in range(80):
            idle.append(socket.create_connection((h.host, h.port), 5))
        for s in idle:
            s.close()
        time.sleep(0.2)
        h.initialize()
        assert h.tool("run_command", command="echo ok")["structuredContent"]["stdout"] == "ok\n"


def test_the_end():
    with Http() as h:
        h.initialize()
        s = h.raw({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": SLEEP}}})
        wait_running(h)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(h.p.pid)], capture_output=True, text=True).stdout.split()
        assert children
        h.p.terminate()
        assert h.p.wait(20) == 0  # and not when the code ends
        end = time.monotonic() + 30
        while any(is_alive(int(c)) for c in children) and time.monotonic() < end:
            time.sleep(0.05)
        assert not any(is_alive(int(c)) for c in children)
        s.close()


def test_half_requests_of_strangers_keep_nobody_out():
    """300 connections without a token, each with half a request: whoever has one is served."""
    with Http() as h:
        half = []
        for i in range(300):
            half.append(socket.create_connection((h.host, h.port), 20))
            half[-1].sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ")
            if i % 60 == 59:
                h.initialize()
                assert h.tool("run_command", command="echo $((6 * 7))")["structuredContent"]["stdout"] == "42\n"
                assert h.request("DELETE")[0] == 204
        first = half[0]
        try:  # the first were put out
            assert first.recv(1000) == b""
        except ConnectionResetError:
            pass
        for s in half:
            s.close()
        h.initialize()


def test_clients_that_leave_without_a_word_give_way():
    with Http() as h:
        kept = h.initialize()
        gone = []
        for i in range(150):  # 64 may be there at once
            gone.append(h.initialize())
            h.session = kept
            assert h.ask("ping")["result"] == {}, i  # who is there stays
        h.session = gone[0]
        assert h.request("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"})[0] == 404
        h.session = gone[-1]
        assert h.ask("ping")["result"] == {}


def test_sandboxes_of_clients_that_left_give_way():
    with Http() as h:
        for _ in range(45):  # 3 of each: 128 may be there at once
            h.initialize()
            for _ in range(3):
                r = h.tool("create_sandbox")
                assert not r.get("isError"), r


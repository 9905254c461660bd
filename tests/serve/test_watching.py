"""cordon serve: metrics, logs, and MCP on the same port with the same keys."""
import json
import os
import re
import subprocess
import sys

import peers
from driver import ROOT
from serving import Server, refused

sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import cordon  # noqa: E402

OLD = "2025-11-25"


def figures(c):
    """name{labels} -> value"""
    text = c.call("GET", "/metrics").decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def test_metrics():
    with Server() as one:
        c = one.client()
        s = c.open(tools=[{"name": "add", "args": {}}])
        c.execute(s, "1 + 1")
        c.execute(s, "1 / 0")
        c.execute(s, "while True: pass", timeout_ms=100)
        refused(404, c.execute, "sess_x", "1")
        n = figures(c)
        assert n['cordon_executions_total{language="python",outcome="success"}'] == 1, n
        assert n['cordon_executions_total{language="python",outcome="exception"}'] == 1
        assert n['cordon_limit_hits_total{limit="timeout"}'] == 1
        assert n['cordon_execution_duration_seconds_count'] == 4 == n['cordon_execution_duration_seconds_bucket{le="+Inf"}']
        assert n['cordon_session_start_seconds_count'] == 1
        assert n['cordon_sessions{state="idle"}'] == 1 and n["cordon_executions_running"] == 0
        assert n['cordon_http_requests_total{code="4xx"}'] == 1
        assert n["cordon_session_memory_bytes"] == 512 << 20
        c.call("DELETE", "/v1/sessions/" + s)
        n = figures(c)
        assert n['cordon_sessions{state="idle"}'] == 0 and n["cordon_session_memory_bytes"] == 0
        text = c.call("GET", "/metrics")
        assert s.encode() not in text and b"sess_" not in text and b"exec_" not in text
        p = subprocess.run([peers.promtool(), "check", "metrics"], input=text, capture_output=True)
        assert p.returncode == 0 and not p.stderr, p


def test_every_execution_has_its_language():
    with Server() as one:
        c = one.client()
        c.call("POST", "/v1/executions", {"code": "1"})
        c.call("POST", "/v1/executions", {"guest": "sh", "code": "true"})
        pool = c.call("POST", "/v1/pools", {"guest": "sh", "size": 1})["pool"]
        c.call("POST", "/v1/pools/%s/executions" % pool, {"code": "true"})
        both = c.open(languages=["python", "sh"])
        c.execute(both, "1")
        c.execute(both, "true", language="bash")
        context = c.call("POST", "/v1/sessions/%s/contexts" % both, {"language": "sh"})["session"]
        c.execute(context, "true")
        with cordon.connect(server=one.url, key=one.key) as remote:
            with cordon.Session("sh", connection=remote) as s:
                s.run("true")
            with cordon.Pool("sh", connection=remote, size=1) as p:
                p.run("true")
            cordon.run("1", connection=remote)
            cordon.run("true", guest="sh", connection=remote)
        n = {k: v for k, v in figures(c).items() if k.startswith("cordon_executions_total")}
        assert n == {'cordon_executions_total{language="python",outcome="success"}': 3,
                     'cordon_executions_total{language="sh",outcome="success"}': 7}, n


def test_logs():
    one = Server("--log")
    c = one.client()
    s = c.open()
    c.raw("GET", "/v1/sessions/%s/files?path=/etc/passwd%%0a%%22" % s)
    c.raw("GET", '/nowhere/"x', headers={"X-Evil": "a\\\"b"})
    c.key = None
    c.raw("GET", "/v1/sessions")
    one.stop()
    lines = [json.loads(line) for line in one.stderr.splitlines()]
    assert [(x["method"], x["route"], x["status"], x["key"]) for x in lines] == [
        ("POST", "/v1/sessions", 201, "admin"), ("GET", "/v1/sessions/{session}/files", 404, "admin"),
        ("", "", 404, ""), ("GET", "/v1/sessions", 401, "")], lines
    assert all(re.match(r"\d{4}-\d\d-\d\dT", x["time"]) and x["ms"] >= 0 for x in lines)
    assert s not in one.stderr


class Mcp:
    def __init__(self, client):
        self.c, self.n, self.session = client, 0, None
        status, headers, body = self.post("initialize", {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        assert status == 200, (status, body)
        self.session = headers["Mcp-Session-Id"]

    def post(self, method, params):
        self.n += 1
        h = {"Accept": "application/json, text/event-stream"}
        if self.session:
            h["Mcp-Session-Id"] = self.session
        status, headers, body = self.c.raw("POST", "/mcp", {"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}, h)
        if body.startswith(b"event:"):
            body = body.split(b"data: ", 1)[1].split(b"\n\n")[0]
        return status, headers, json.loads(body) if body else None

    def tool(self, name, **arguments):
        status, headers, body = self.post("tools/call", {"name": name, "arguments": arguments})
        assert status == 200, (status, body)
        return body["result"]


def test_mcp():
    with Server() as one:
        admin = one.client()
        a = one.client(admin.call("POST", "/v1/keys", {"name": "a", "max_sessions": 2, "policy": {"level": "strict", "processes": 60, "timeout_ms": 4321}})["key"])
        b = one.client(admin.call("POST", "/v1/keys", {"name": "b"})["key"])
        of_a, of_b = Mcp(a), Mcp(b)
        assert of_a.tool("run_code", language="python", code="x = 41\nx + 1")["structuredContent"]["result"] == "42"
        # The policy is that of the key.
        text = of_a.post("resources/read", {"uri": "cordon://policy"})[2]["result"]["contents"][0]["text"]
        assert json.loads(text)["timeout_ms"] == 4321
        # Sessions of others are unknown.
        theirs, of_b.session = of_b.session, of_a.session
        assert of_b.post("tools/list", {})[0] == 404
        of_b.session = theirs
        # Sandboxes count as sessions.
        s = a.open()
        refused(429, a.call, "POST", "/v1/sessions", {})
        a.call("DELETE", "/v1/sessions/" + s)
        assert any(e["event"] == "execute_start" for e in a.call("GET", "/v1/audit")["events"])
        # Without a key, and with one that was revoked.
        key, b.key = b.key, None
        assert b.raw("POST", "/mcp", {})[0] == 401
        b.key = key
        admin.call("DELETE", "/v1/keys/b")
        assert b.raw("POST", "/mcp", {})[0] == 401

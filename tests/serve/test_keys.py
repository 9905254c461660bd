"""cordon serve: keys, tenants, quotas, narrowing, audit."""
import json
import os
import stat
import subprocess
import tempfile
import threading
import time

import serving
from driver import CORDON, HELD
from serving import Client, Server, refused

server = None


def reset():
    global server
    if server:
        server.stop()
    server = None


def admin():
    global server
    server = server or Server()
    return server.client()


def make(name, **options):
    """A new key over HTTP, and a client that uses it."""
    text = admin().call("POST", "/v1/keys", {"name": name, **options})["key"]
    return server.client(text)


def cli(*args, state, status=0):
    p = subprocess.run([CORDON, "serve", "key", *args, "--state", state], capture_output=True, text=True)
    assert p.returncode == status, (args, p)
    return p.stdout.strip() if status == 0 else p.stderr


def test_the_command_line():
    with tempfile.TemporaryDirectory(prefix="cordon-serve-") as folder:
        state = os.path.join(folder, "state")
        alice = cli("add", "alice", "--level", "strict", "--max-sessions", "2", "--rate", "1000/s", state=state)
        assert alice.startswith("cordon_") and len(alice) == 55
        for name in ("serve.db", "serve.db-wal"):
            path = os.path.join(state, name)
            if os.path.exists(path):
                assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, name
                assert alice[7:].encode() not in open(path, "rb").read(), "the key itself is kept"
        assert "already" in cli("add", "alice", state=state, status=125)
        for bad in (["add", "a.b"], ["add", "x" * 48], ["add", "a", "--rate", "fast"], ["add", "a", "--max-sessions", "0"],
                    ["add"], ["list", "x"], ["forget", "alice"], ["add", "b", "--expires", "never"]):
            cli(*bad, state=state, status=2)
        assert cli("list", state=state).split()[:2] == ["alice", "valid"]
        with Server(state=state) as one:
            c = one.client(alice)
            assert c.call("GET", "/v1/sessions") == {"sessions": []}
            # A key from the command line works at once, and so does its end.
            bob = cli("add", "bob", state=state)
            assert one.client(bob).call("GET", "/v1/sessions") == {"sessions": []}
            cli("revoke", "alice", state=state)
            refused(401, c.call, "GET", "/v1/sessions")
            assert "no key" in cli("revoke", "alice", state=state, status=125)
            again = cli("add", "alice", state=state)
            assert again != alice
            refused(401, c.call, "GET", "/v1/sessions")
            assert one.client(again).call("GET", "/v1/sessions") == {"sessions": []}
        os.chmod(state, 0o755)
        assert "0700" in cli("list", state=state, status=126)
        os.chmod(state, 0o700)


def test_the_first_start_prints_a_key():
    with Server(key=None) as one:
        line = one.p.stdout.readline()
        key = line.split()[-1]
        assert key.startswith("cordon_"), line
        assert one.client(key).call("GET", "/v1/keys")["keys"][0]["name"] == "admin"


def test_who_is_let_in():
    c = admin()
    alice = make("let-in")
    for headers in ({"Authorization": "Bearer " + "0" * 48}, {"Authorization": "Basic " + alice.key}, {"X-API-Key": ""},
                    {"Authorization": "Bearer"}, {"X-API-Key": alice.key + "0"}, {"X-API-Key": alice.key[:-1]}, {}):
        stranger = Client(server, None)
        status, answered, body = stranger.raw("GET", "/v1/sessions", headers=headers)
        assert status == 401 and "Bearer" in answered["WWW-Authenticate"], (headers, status)
        assert json.loads(body)["remedy"]
    for headers in ({"X-API-Key": alice.key}, {"Authorization": "bearer " + alice.key}, {"X-API-Key": "e2b_" + alice.key[7:]}):
        assert Client(server, None).raw("GET", "/v1/sessions", headers=headers)[0] == 200, headers
    for method, path in (("GET", "/v1/keys"), ("DELETE", "/v1/keys/let-in"), ("POST", "/v1/doctor/proof"), ("GET", "/metrics")):
        p = refused(403, alice.call, method, path)
        assert p.code == "denied"
    refused(403, alice.call, "POST", "/v1/keys", {"name": "mallory", "admin": True})
    c.call("DELETE", "/v1/keys/let-in")
    refused(401, alice.call, "GET", "/v1/sessions")


def test_the_administrators_name_is_not_for_others():
    p = refused(400, make, "admin", policy={"memory_bytes": 67108864})
    assert "name of the administrator" in p.body["detail"]
    with tempfile.TemporaryDirectory() as state:
        assert "name of the administrator" in cli("add", "admin", "--level", "strict", state=state, status=2)
        assert cli("add", "admin", "--admin", state=state)


def test_tenants_see_only_their_own():
    a, b = make("tenant-a"), make("tenant-b")
    s = a.open()
    a.call("PUT", "/v1/sessions/%s/files?path=mine" % s, b"secret")
    pool = a.call("POST", "/v1/pools", {"size": 1})["pool"]
    ran = a.events(s, "1")[0][1]["execution"]
    assert b.call("GET", "/v1/sessions") == {"sessions": []}
    assert b.call("GET", "/v1/executions") == {"executions": []}
    for c in (b, admin()):
        unknown = refused(404, c.call, "GET", "/v1/sessions/sess_" + "0" * 32).body
        for method, path, body in (("GET", "/v1/sessions/" + s, None), ("DELETE", "/v1/sessions/" + s, None),
                                   ("GET", "/v1/sessions/%s/files?path=mine" % s, None),
                                   ("PUT", "/v1/sessions/%s/files?path=mine" % s, b"x"),
                                   ("POST", "/v1/sessions/%s/executions" % s, {"code": "1"}),
                                   ("POST", "/v1/sessions/%s/fork" % s, None),
                                   ("GET", "/v1/sessions/%s/tar?path=." % s, None),
                                   ("POST", "/v1/sessions/%s/snapshots" % s, {})):
            p = refused(404, c.call, method, path, body)
            assert p.body == dict(unknown, detail=p.body["detail"]), (p.body, unknown)
            assert p.body["detail"].replace(s, "X") == unknown["detail"].replace("sess_" + "0" * 32, "X")
        refused(404, c.call, "DELETE", "/v1/sessions/%s/executions/%s" % (s, ran))
        refused(409, c.call, "GET", "/v1/pools/" + pool)
    assert not any(e["session_id"] == s for e in b.call("GET", "/v1/audit")["events"])
    assert any(e["session_id"] == s for e in a.call("GET", "/v1/audit")["events"])
    # Saved workspaces have the same name and are not the same.
    for c, text in ((a, "of a"), (b, "of b")):
        one = c.open(workspace="shared")
        assert c.execute(one, "import os; os.path.exists('w')")["result"] is False
        c.call("PUT", "/v1/sessions/%s/files?path=w" % one, text.encode())
        c.call("DELETE", "/v1/sessions/" + one)
    one = a.open(workspace="shared")
    assert a.call("GET", "/v1/sessions/%s/files?path=w" % one) == b"of a"
    for name in ("../x", "a/b", "", "x" * 101):
        refused(400, a.call, "POST", "/v1/sessions", {"workspace": name})
    a.call("DELETE", "/v1/sessions/" + one)
    a.call("DELETE", "/v1/pools/" + pool)


def test_sessions_can_only_narrow():
    c = make("narrow", policy={"level": "strict", "timeout_ms": 5000})
    s = c.open()
    assert c.call("GET", "/v1/sessions/" + s)["policy"]["timeout_ms"] == 5000
    for wider in ({"level": "standard"}, {"set": ["timeout_ms=5001"]}, {"set": ["timeout_ms=none"]},
                  {"policy": {"mounts": ["/etc:/data:ro"]}}, {"set": ["network.allow=example.org"]},
                  {"set": ["network.block=example.org"]}, {"policy": {"audit": "/tmp/x"}}, {"set": ["python=/bin/sh"]},
                  {"set": ["env+=HOSTNAME"]}, {"policy": {"require": ["user"]}}, {"set": ["workspace_exec=true"]},
                  {"policy": {"packages": {"pip": "*", "pip_index": ["/root"]}}}):
        p = refused(403, c.call, "POST", "/v1/sessions", wider)
        assert p.code == "denied" and ":" in p.body["detail"], p.body
        refused(403, c.call, "POST", "/v1/pools", wider)
        refused(403, c.call, "POST", "/v1/executions", dict(wider, code="1"))
    narrower = c.open(set=["timeout_ms=1000"], policy={"memory_bytes": 67108864})
    assert c.call("GET", "/v1/sessions/" + narrower)["policy"]["timeout_ms"] == 1000
    refused(400, c.call, "POST", "/v1/sessions", {"policy": {"tmeout_ms": 1}})
    refused(400, admin().call, "POST", "/v1/keys", {"name": "n2", "policy": {"tmeout_ms": 1}})
    refused(400, admin().call, "POST", "/v1/keys",
            {"name": "n2", "policy": {"network": {"allow": ["a.org"]}, "secrets": [{"name": "K", "value": "v", "host": "a.org"}]}})
    for one in (s, narrower):
        c.call("DELETE", "/v1/sessions/" + one)


def test_executions_get_no_more_than_the_policy():
    """Whatever they ask for. Without that, each of these would run for an hour."""
    c = make("brief", policy={"level": "strict", "timeout_ms": 400})
    code = "import time; time.sleep(3600)"
    s = c.open()
    for wish in (None, 3600000, 401):
        for path in ("/v1/executions", "/v1/sessions/%s/executions" % s):
            r = c.call("POST", path, {"code": code, "timeout_ms": wish})
            assert r["error_kind"] == "timeout" and "400 ms" in r["error"], r
    assert c.call("POST", "/v1/executions", {"code": "1", "timeout_ms": 300})["result"] == 1
    place = c.open(languages=["sh"])
    r = c.call("POST", "/v1/sessions/%s/commands" % place, {"command": "while :; do :; done", "timeout_ms": None})
    assert r["error_kind"] == "timeout", r
    rpc = subprocess.run([CORDON, "rpc", "--server", server.url], env=dict(os.environ, CORDON_KEY=c.key), text=True, capture_output=True,
                         input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.run", "params": {"code": code, "timeout_ms": None}}) + "\n")
    assert json.loads(rpc.stdout)["result"]["error_kind"] == "timeout", rpc
    for one in (s, place):
        c.call("DELETE", "/v1/sessions/" + one)


def test_a_model_gets_no_more_than_the_policy():
    c = make("model", policy={"level": "strict", "timeout_ms": 400})
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_code", "arguments": {"code": "import time; time.sleep(3600)", "language": "python", "timeout_ms": 3600000}}}
    head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    start = dict(call, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
    status, headers, _ = c.raw("POST", "/mcp", json.dumps(start).encode(), head)
    assert status == 200
    session = {"Mcp-Session-Id": dict((k.lower(), v) for k, v in dict(headers).items())["mcp-session-id"]}
    status, _, body = c.raw("POST", "/mcp", json.dumps(call).encode(), {**head, **session})
    assert status == 200 and b"400 ms" in body, body
    c.raw("DELETE", "/mcp", None, session)


def test_tool_calls_get_no_more_than_the_policy():
    c = make("few", policy={"level": "strict", "tool_calls": 2})
    s = c.open(tools=[{"name": "add", "args": {"a": "number"}}])
    done = []
    asking = threading.Thread(target=lambda: done.append(
        server.client(c.key).call("POST", "/v1/sessions/%s/executions" % s, {"code": "for i in range(9): add(a=i)", "tool_calls": 50})))
    asking.start()
    answered = 0
    while asking.is_alive():
        for one in c.call("GET", "/v1/sessions/%s/questions" % s)["tool_calls"]:
            try:
                c.call("POST", "/v1/sessions/%s/tool_calls/%s" % (s, one["id"]), {"value": 1})
                answered += 1
            except serving.Problem:  # it was answered in the round before
                pass
    asking.join()
    assert answered == 2 and "(2)" in done[0]["error"], (answered, done)
    c.call("DELETE", "/v1/sessions/" + s)


def test_quotas():
    c = make("quotas", max_sessions=2, max_executions=1, max_memory_bytes=3 * 67108864)
    small = {"policy": {"memory_bytes": 67108864}}
    one, two = c.open(**small), c.open(**small)
    p = refused(429, c.call, "POST", "/v1/sessions", small)
    assert p.code == "limit" and "2 sessions" in p.body["detail"]
    c.call("DELETE", "/v1/sessions/" + two)
    p = refused(429, c.call, "POST", "/v1/sessions", {"policy": {"memory_bytes": 3 * 67108864}})
    assert "memory" in p.body["detail"]
    refused(403, c.call, "POST", "/v1/pools", {"size": 3, **small})
    two = c.open(**small)
    other = server.client(c.key)
    held = threading.Thread(target=lambda: other.execute(one, HELD["python"]))
    held.start()
    while not any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
        pass
    p = refused(429, c.execute, two, "1")
    assert "1 executions" in p.body["detail"]
    c.call("PUT", "/v1/sessions/%s/files?path=/tmp/go" % one, b"")
    held.join()
    assert c.execute(two, "1")["result"] == 1
    for s in (one, two):
        c.call("DELETE", "/v1/sessions/" + s)


def test_rate():
    c = make("rate", rate=2)
    answers = [c.raw("GET", "/v1/version") for _ in range(40)]
    statuses = [a[0] for a in answers]
    assert statuses[:2] == [200, 200] and 429 in statuses, statuses
    limited = next(a for a in answers if a[0] == 429)
    assert limited[1]["Retry-After"] == "1" and json.loads(limited[2])["code"] == "limit"


def test_a_revoked_key_ends_its_sessions():
    c = make("gone")
    s = c.open()
    pid = c.call("GET", "/v1/sessions/" + s)["pid"]
    stream = server.client(c.key)
    result = []
    thread = threading.Thread(target=lambda: result.append(stream.raw("POST", "/v1/sessions/%s/executions" % s, {"code": HELD["python"]})))
    thread.start()
    while not any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
        pass
    admin().call("DELETE", "/v1/keys/gone")
    thread.join(30)
    assert not thread.is_alive()
    while os.path.exists("/proc/%d" % pid):
        time.sleep(0.01)
    refused(404, admin().call, "DELETE", "/v1/keys/gone")


def test_an_expired_key():
    c = make("short", expires_s=1)
    deadline = time.monotonic() + 30
    while c.raw("GET", "/v1/version")[0] == 200:
        assert time.monotonic() < deadline
    refused(401, c.call, "GET", "/v1/version")


def test_audit_of_a_parked_session():
    """It is one session to its client, so one id finds all that it did."""
    with serving.Server("--park", "1ms") as one:
        c = one.client()
        s = c.open()
        for code in ("1", "2"):
            c.execute(s, code)
            while s not in os.listdir(os.path.join(one.state, "parked")):
                pass
        c.execute(s, "3")
        c.call("DELETE", "/v1/sessions/" + s)
        every = c.call("GET", "/v1/audit")["events"]
        events = c.call("GET", "/v1/audit?session=" + s)["events"]
        assert [e.get("code") for e in events if e["event"] == "execute_start"] == ["3", "2", "1"], [e["event"] for e in events]
        assert [e["event"] for e in events].count("session_start") >= 3
        assert {e["session_id"] for e in every} == {s}
        assert c.call("GET", "/v1/audit/verification")["whole"] is True


def test_audit():
    c = make("audited")
    assert c.call("GET", "/v1/audit/verification")["whole"] is True
    s = c.open(level="strict")
    c.execute(s, "6 * 7")
    c.call("DELETE", "/v1/sessions/" + s)
    events = c.call("GET", "/v1/audit?session=" + s)["events"]
    assert [e["event"] for e in events] == ["session_close", "execute_complete", "execute_start", "session_start"], events
    assert len(c.call("GET", "/v1/audit?limit=1")["events"]) == 1
    refused(400, c.call, "GET", "/v1/audit?limit=many")
    report = c.call("GET", "/v1/audit/verification")
    assert report["whole"] and report["lines"] >= 4
    path = os.path.join(server.state, "audit", "audited.jsonl")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    lines = open(path).read().replace("6 * 7", "6 * 8")
    open(path, "w").write(lines)
    assert c.call("GET", "/v1/audit/verification")["whole"] is False

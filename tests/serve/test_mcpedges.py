"""cordon mcp with misbehaving clients."""
import json
import os
import time

from driver import is_alive
from test_edges import MAX, Raw, code_of, descendants, padded, q
from test_mcp import SHORT, Mcp
from test_rpc import until


def mcp():
    return Raw(verb="mcp")


def call(name, id=1, meta=None, **arguments):
    params = {"name": name, "arguments": arguments}
    if meta is not None:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def test_ids_versions_methods_and_params_of_every_type():
    with mcp() as c:
        for good in (0, 1, -1, 2**63 - 1, "", "é😀"):
            a = c.ask(q("ping", good))
            assert a["id"] == good and type(a["id"]) is type(good) and a["result"] == {}, a
        for bad in (None, True, 1.5, [], {}):
            a = c.ask(q("ping", bad))
            assert code_of(a) == -32600 and a["id"] is None, (bad, a)
        for version in (None, "1.0", 2, []):
            assert code_of(c.ask({"jsonrpc": version, "id": 1, "method": "ping"})) == -32600, version
        for method in (None, 7, [], {}):
            a = c.ask({"jsonrpc": "2.0", "id": 6, "method": method})
            assert code_of(a) == -32600 and a["id"] == 6, (method, a)
        for method in ("", "nope", "tools", "tools/", "TOOLS/LIST", "é" * 200, "x" * 100000):
            a = c.ask(q(method))
            assert code_of(a) == -32601 and a["id"] == 1, a
        for bad in ([], "x", 7, True):
            a = c.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": bad})
            assert code_of(a) == -32602 and a["id"] == 1, (bad, a)
        assert code_of(c.ask(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')) == -32600  # no batches since 2025-06-18
        assert code_of(c.ask({"jsonrpc": "2.0", "id": 1})) == -32600


def test_junk_and_sizes():
    with mcp() as c:
        for junk in (b"not json", b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100, b"NaN", b"\x00"):
            a = c.ask(junk)
            assert code_of(a) == -32700 and a["id"] is None, junk
        for size in (MAX - 1, MAX):
            assert c.ask(padded(size, "ping"))["id"] == size
        for size in (MAX + 1, 2 * MAX + 7):
            assert code_of(c.ask(padded(size, "ping"))) == -32700
        for quiet in (b"", b"\r", b"  ", b'{"jsonrpc":"2.0","id":9,"result":{}}', b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}'):
            c.put(quiet)
        assert c.is_silent() and c.ask(q("ping", 2))["id"] == 2


def test_notifications_nobody_asked_for():
    with mcp() as c:
        for method, params in (("notifications/initialized", {}), ("notifications/nope", {}), ("tools/list", {}), ("nope", {}),
                               ("notifications/cancelled", {}), ("notifications/cancelled", {"requestId": 99, "reason": "x"}),
                               ("notifications/cancelled", {"requestId": None}), ("notifications/cancelled", {"requestId": {}}),
                               ("notifications/cancelled", {"requestId": "never"}), ("notifications/progress", {"progressToken": 1, "progress": 1}),
                               ("notifications/roots/list_changed", {})):
            c.put({"jsonrpc": "2.0", "method": method, "params": params})
        assert c.is_silent(0.3), c.get()
        assert c.ask(q("ping"))["result"] == {}


def test_initialize_in_every_shape():
    for version, want in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("2099-12-31", "2025-11-25"),
                          ("1999-01-01", "2025-11-25"), ("", "2025-11-25"), ("draft", "2025-11-25"), ("é", "2025-11-25")):
        with mcp() as c:
            r = c.ask(q("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"}))["result"]
            assert r["protocolVersion"] == want and r["serverInfo"]["name"] == "cordon", (version, r)
    with mcp() as c:
        for bad in ({}, {"protocolVersion": 7}, {"protocolVersion": None}, {"protocolVersion": []}):
            a = c.ask(q("initialize", **bad))
            if "error" in a:
                assert code_of(a) == -32602, a
            else:
                assert a["result"]["protocolVersion"] == "2025-11-25", (bad, a)


def test_calls_before_initialize():
    """The handshake gives nothing that a call needs, and nobody is let in by it: what comes early is answered."""
    with mcp() as c:
        assert {t["name"] for t in c.ask(q("tools/list"))["result"]["tools"]} == SHORT
        assert c.ask(call("run_code", code="6 * 7"))["result"]["structuredContent"]["result"] == "42"
        assert "result" in c.ask(q("initialize", protocolVersion="2025-11-25"))


def test_progress_tokens_of_every_type():
    with mcp() as c:
        for token, is_told in (("a", True), (7, True), (0, True), ("", True), (1.5, True), (None, False), (True, False), ([], False), ({}, False)):
            c.put(call("run_code", "call", {"progressToken": token}, code="import time\nprint('x', flush=True)\ntime.sleep(0.05)"))
            notes = []
            while True:
                m = c.get()
                if "method" not in m:
                    break
                notes.append(m)
            assert m["id"] == "call" and ("error" in m or not m["result"]["isError"]), m
            assert all(n["params"]["progressToken"] == token and type(n["params"]["progressToken"]) is type(token) for n in notes), notes
            assert not notes or is_told, (token, notes)
        a = c.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": "1"}, "_meta": []}})
        assert "result" in a or code_of(a) == -32602, a


def test_calls_with_wrong_arguments():
    with mcp() as c:
        for params in ({}, {"name": 7}, {"name": None}, {"name": "run_code", "arguments": []}, {"name": "run_code", "arguments": "code"}, {"name": ""},
                       {"name": "run_code "}, {"arguments": {}}):
            a = c.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            assert code_of(a) == -32602, (params, a)
        for name, arguments in (("run_code", {}), ("run_code", {"code": 7}), ("run_code", {"code": None}), ("run_code", {"code": "1", "language": "cobol"}),
                                ("run_code", {"code": "1", "language": 7}), ("run_code", {"code": "1", "timeout_ms": -1}),
                                ("run_code", {"code": "1", "timeout_ms": "5"}), ("run_code", {"code": "1", "sandbox_id": "nope"}),
                                ("run_code", {"code": "1", "sandbox_id": 7}), ("run_code", {"code": "1", "evil": 1}), ("run_code", {"code": "a\u0000b"}),
                                ("run_command", {"command": []}), ("run_command", {"command": "ls", "shell": "zsh"}), ("read_file", {}),
                                ("read_file", {"path": "/none"}), ("read_file", {"path": "/tmp"}), ("write_file", {"path": "/tmp/x"}),
                                ("write_file", {"path": "/etc/x", "contents": ""}), ("write_file", {"path": "/tmp/x", "contents": "!", "encoding": "base64"}),
                                ("write_file", {"path": "/tmp/x", "contents": "x", "encoding": "rot13"}), ("list_directory", {"path": "/none"}),
                                ("create_sandbox", {"language": "cobol"}), ("create_sandbox", {"label": 7}), ("destroy_sandbox", {}),
                                ("destroy_sandbox", {"sandbox_id": "nope"}), ("snapshot", {"sandbox_id": "nope"}), ("restore", {}),
                                ("import_state", {"data": "!"}), ("import_state", {}), ("export_state", {"sandbox_id": ""})):
            a = c.ask(call(name, **arguments))
            assert "result" in a and a["result"]["isError"] is True and a["result"]["content"][0]["text"], (name, arguments, a)
        a = c.ask(call("read_file", path="/none"))["result"]["content"][0]["text"]
        assert a.startswith("Error reading file: "), a
        for bad in ({}, {"level": "loud"}, {"level": 7}):
            assert code_of(c.ask(q("logging/setLevel", **bad))) == -32602
        assert code_of(c.ask(q("resources/read", uri="file:///etc/passwd"))) in (-32002, -32602)
        assert code_of(c.ask(q("resources/read"))) == -32602
        assert c.ask(call("run_code", code="6 * 7"))["result"]["structuredContent"]["result"] == "42"


def test_limits_of_sandboxes():
    with Mcp() as m:
        made = [m.tool("create_sandbox", language="sh", label="n%d" % i)["structuredContent"]["sandbox_id"] for i in range(64)]
        assert len(set(made)) == 64
        r = m.tool("create_sandbox", language="sh")
        assert r["isError"] and "64" in r["content"][0]["text"], r
        m.tool("destroy_sandbox", sandbox_id=made[0])
        assert not m.tool("create_sandbox", language="sh")["isError"]
        assert m.tool("run_command", command="ls", sandbox_id=made[0])["isError"]


def test_a_call_that_is_cancelled_has_no_answer():
    with mcp() as c:
        assert not c.ask(call("run_code", code="1"))["result"]["isError"]
        for id in (5, "five"):
            c.put(call("run_code", id, code="import time; time.sleep(60)"))
            states = []
            while "running" not in states:
                states = [s["state"] for s in c.ask(call("list_sandboxes", "list"))["result"]["structuredContent"]["sandboxes"]]
            c.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": str(id) if id == 5 else 5}})  # another id
            c.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            c.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            assert c.ask(q("ping", "p"))["id"] == "p"
            assert c.ask(call("run_code", "next", code="1 + 1"))["id"] == "next"
        assert c.is_silent()


def test_clients_that_die():
    def nothing(c):
        pass

    def running(c):
        c.put(call("run_code", code="while True: pass"))

    def children(c):
        c.put(call("run_command", command="sleep 1000 & sleep 1000 & wait"))

    def queue(c):
        for i in range(10):
            c.put(call("run_code", i, code="import time; time.sleep(1000)"))

    def opening(c):
        for i in range(8):
            c.put(call("create_sandbox", i, language="r"))

    def progress(c):
        c.put(call("run_code", 1, {"progressToken": 1}, code="while True: print('x' * 1000)"))

    def half(c):
        c.out.write(b'{"jsonrpc":"2.0","id":1,"me')
        c.out.flush()

    for begin in (nothing, running, children, queue, opening, progress, half):
        c = mcp()
        assert not c.ask(call("run_code", code="1"))["result"]["isError"]
        begin(c)
        time.sleep(0.2)
        left = descendants(c.process.pid)
        c.out.close()
        c.inp.close()  # the end of input alone would wait for the answers
        assert until(lambda: c.process.poll() is not None, 30), begin.__name__ + ": the server lives"
        assert until(lambda: not any(map(is_alive, left)), 30), begin.__name__


test_clients_that_die.seconds = 120

"""cordon mcp over stdio, in both generations of the protocol."""
import base64
import json
import os
import subprocess
import tempfile
import threading
import time

from driver import CORDON, is_alive

NAMES = {"run_code", "run_command", "read_file", "write_file", "list_directory", "create_sandbox", "list_sandboxes", "destroy_sandbox",
         "snapshot", "restore", "fork", "export_state", "import_state"}
NEW = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}


class Mcp:
    def __init__(self, *args, **env):
        self.p = subprocess.Popen([CORDON, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **env))
        self.n, self.lock = 0, threading.Lock()

    def send(self, message):
        self.p.stdin.write(json.dumps(message).encode() + b"\n")
        self.p.stdin.flush()

    def ask(self, method, params=None):
        self.n += 1
        self.send({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}})
        m = json.loads(self.p.stdout.readline())
        assert m["id"] == self.n, m
        return m

    def tool(self, name, **arguments):
        r = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        assert r["content"][0]["type"] == "text"
        return r

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait(10)
        self.p.stdout.close()


def test_handshake_and_list():  # MCP-01
    with Mcp() as m:
        for version in ("2025-11-25", "2024-11-05"):
            r = m.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})["result"]
            assert r["protocolVersion"] == version and r["serverInfo"]["name"] == "cordon" and "tools" in r["capabilities"]
        assert m.ask("initialize", {"protocolVersion": "1999-01-01"})["result"]["protocolVersion"] == "2025-11-25"
        m.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert m.ask("ping")["result"] == {}
        tools = m.ask("tools/list")["result"]["tools"]
        assert {t["name"] for t in tools} == NAMES
        assert all(t["inputSchema"]["type"] == "object" and t["annotations"]["openWorldHint"] is False for t in tools)
        assert m.ask("nope")["error"]["code"] == -32601
        assert m.ask("tools/call", {"name": "nope"})["error"]["code"] == -32602


def test_stateless_generation():
    with Mcp() as m:
        r = m.ask("server/discover", NEW)["result"]
        assert "2026-07-28" in r["supportedVersions"] and r["resultType"] == "complete" and r["ttlMs"] > 0
        assert m.ask("initialize", NEW)["error"]["code"] == -32601
        assert m.ask("ping", NEW)["error"]["code"] == -32601
        r = m.ask("tools/list", NEW)["result"]
        assert r["resultType"] == "complete" and r["cacheScope"] == "public"
        r = m.ask("tools/call", dict(NEW, name="run_code", arguments={"code": "6 * 7"}))["result"]
        assert r["structuredContent"]["result"] == "42" and r["resultType"] == "complete"
        bad = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}
        e = m.ask("tools/list", bad)["error"]
        assert e["code"] == -32022 and e["data"]["requested"] == "2099-01-01"


def test_code_and_commands():  # MCP-02
    with Mcp() as m:
        assert m.tool("run_code", code="x = 6")["isError"] is False
        r = m.tool("run_code", code="print('hi'); x * 7")
        assert r["structuredContent"]["result"] == "42" and r["structuredContent"]["stdout"] == "hi\n"
        assert "hi" in r["content"][0]["text"] and "42" in r["content"][0]["text"]
        r = m.tool("run_code", code="1 / 0")
        assert r["isError"] and "division" in r["content"][0]["text"]
        assert m.tool("run_code", code="1 + 1", language="r")["structuredContent"]["result"].endswith("2")
        assert m.tool("run_code", code="[1, 2].length", language="node")["structuredContent"]["result"] == "2"
        r = m.tool("run_command", command="echo \"a  b\" 'c  d' > \"f g\"; cat 'f g'; exit 3")
        assert r["structuredContent"]["stdout"] == "a  b c  d\n" and r["structuredContent"]["exit_code"] == 3, r
        r = m.tool("run_code", code="while True: pass", timeout_ms=300)
        assert r["isError"] and r["structuredContent"]["error_kind"] == "timeout"
        assert m.tool("run_code")["isError"]


def test_plots_are_images():
    with Mcp() as m:
        r = m.tool("run_code", code="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", timeout_ms=60000)
        images = [c for c in r["content"] if c["type"] == "image"]
        assert images and images[0]["mimeType"] == "image/png" and base64.b64decode(images[0]["data"])[:4] == b"\x89PNG", r


def test_files_and_sandboxes():  # MCP-03
    with Mcp() as m:
        r = m.tool("read_file", path="/home/user/missing")
        assert r["isError"] and r["content"][0]["text"].startswith("Error reading file"), r
        m.tool("write_file", path="/home/user/d/f.txt", contents="héllo")
        assert m.tool("read_file", path="/home/user/d/f.txt")["content"][0]["text"] == "héllo"
        assert m.tool("run_command", command="cat d/f.txt")["structuredContent"]["stdout"] == "héllo"
        m.tool("write_file", path="/home/user/b", contents=base64.b64encode(bytes(range(256))).decode(), encoding="base64")
        r = m.tool("read_file", path="/home/user/b")["structuredContent"]
        assert r["encoding"] == "base64" and base64.b64decode(r["contents"]) == bytes(range(256))
        assert [e["name"] for e in m.tool("list_directory")["structuredContent"]["entries"]] == ["b", "d"]
        a = m.tool("create_sandbox", label="mine")["structuredContent"]["sandbox_id"]
        assert "mine" in [s["label"] for s in m.tool("list_sandboxes")["structuredContent"]["sandboxes"]]
        m.tool("write_file", sandbox_id=a, path="/home/user/v", contents="v1")
        snap = m.tool("snapshot", sandbox_id=a)["structuredContent"]["snapshot_id"]
        m.tool("write_file", sandbox_id=a, path="/home/user/v", contents="v2")
        b = m.tool("fork", sandbox_id=a)["structuredContent"]["sandbox_id"]
        m.tool("restore", sandbox_id=a, snapshot_id=snap)
        assert m.tool("read_file", sandbox_id=a, path="/home/user/v")["content"][0]["text"] == "v1"
        assert m.tool("read_file", sandbox_id=b, path="/home/user/v")["content"][0]["text"] == "v2"
        data = m.tool("export_state", sandbox_id=a)["structuredContent"]["data"]
        c = m.tool("import_state", data=data)["structuredContent"]["sandbox_id"]
        assert m.tool("read_file", sandbox_id=c, path="/home/user/v")["content"][0]["text"] == "v1"
        assert not m.tool("destroy_sandbox", sandbox_id=b)["isError"]
        assert m.tool("read_file", sandbox_id=b, path="/home/user/v")["isError"]


def test_denials_come_with_a_remedy():
    with Mcp() as m:
        r = m.tool("run_code", code="import socket; socket.socket()")
        assert r["isError"] and "denials" in r["structuredContent"], r


def test_cancellation_while_other_calls_go_on():
    with Mcp() as m:
        m.tool("run_code", code="1")
        m.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call",
                "params": {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)"}}})
        time.sleep(0.3)
        assert m.tool("run_command", command="echo ok")["structuredContent"]["stdout"] == "ok\n"
        m.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
        r = json.loads(m.p.stdout.readline())
        assert r["id"] == "slow" and r["result"]["structuredContent"]["error_kind"] == "cancelled"


def timeout_of(m):
    r = m.tool("run_code", code="import time; time.sleep(20)")
    return r["structuredContent"]["execution_time_ms"] if r["structuredContent"]["error_kind"] == "timeout" else None


def test_configuration():  # MCP-04, MCP-05
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the guest is another user
        config = os.path.join(folder, "config.json")
        with open(config, "w") as f:
            json.dump({"timeout_ms": 400}, f)
        with open(os.path.join(folder, "data"), "w") as f:
            f.write("host")
        with Mcp(CORDON_CONFIG=config) as m:
            assert 350 < timeout_of(m) < 5000
        with Mcp(CORDON_CONFIG=config, CORDON_TIMEOUT_MS="100") as m:
            assert timeout_of(m) < 390
        with Mcp("--timeout", "700ms", CORDON_CONFIG=config, CORDON_TIMEOUT_MS="100") as m:
            assert timeout_of(m) > 650
        with Mcp("--mount", folder + ":/data:ro") as m:
            assert m.tool("run_command", command="cat /data/data")["structuredContent"]["stdout"] == "host"
            assert m.tool("run_command", command="echo x > /data/data")["structuredContent"]["exit_code"] != 0
        for bad in (folder, folder + ":/data:xx"):
            assert subprocess.run([CORDON, "mcp", "--mount", bad], stdin=subprocess.DEVNULL, capture_output=True).returncode == 2


def test_junk_and_the_end():
    with Mcp() as m:
        m.p.stdin.write(b"junk\n")
        m.p.stdin.flush()
        assert json.loads(m.p.stdout.readline())["error"]["code"] == -32700
        m.tool("run_code", code="1")
        pid = int(m.tool("run_command", command="echo $PPID")["structuredContent"]["stdout"])
        m.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": "while True: pass"}}})
        time.sleep(0.2)
        m.p.stdin.close()
        m.p.wait(3)
        assert pid >= 0 and not is_alive(m.p.pid)

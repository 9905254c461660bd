"""cordon mcp over stdio, in both versions of the protocol."""
import base64
import json
import os
import subprocess
import tempfile
import threading
import time

from driver import CORDON, is_alive

NAMES = {"run_code", "run_command", "read_file", "write_file", "list_directory", "create_sandbox", "list_sandboxes", "destroy_sandbox",
         "snapshot", "restore", "fork", "export_state", "import_state", "suspend_sandbox", "resume_sandbox"}
NEW = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}


class Mcp:
    def __init__(self, *args, **env):
        self.p = subprocess.Popen([CORDON, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **env))
        self.n, self.lock, self.seen = 0, threading.Lock(), []

    def send(self, message):
        self.p.stdin.write(json.dumps(message).encode() + b"\n")
        self.p.stdin.flush()

    def ask(self, method, params=None):
        self.n += 1
        self.send({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}})
        return self.answer(self.n)

    def read(self):
        line = self.p.stdout.readline()
        assert line, "the server ended"
        return json.loads(line)

    def answer(self, n):
        """The answer to a request; notifications and other answers that come first are kept."""
        for m in self.seen:
            if m.get("id") == n:
                self.seen.remove(m)
                return m
        while True:
            m = self.read()
            if m.get("id") == n and "method" not in m:
                return m
            self.seen.append(m)

    def runs(self):
        """Waits until an execution runs."""
        end = time.monotonic() + 30
        while "running" not in [s["state"] for s in self.tool("list_sandboxes")["structuredContent"]["sandboxes"]]:
            assert time.monotonic() < end, "nothing runs"
            time.sleep(0.01)

    def notes(self, method):
        return [m["params"] for m in self.seen if m.get("method") == method]

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
        assert r["isError"] is False and "status 3" in r["content"][0]["text"], r
        assert m.tool("run_command", command="grep x /dev/null")["isError"] is False
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
        denials = r["structuredContent"]["denials"]
        assert r["isError"] and denials and denials[0]["remedy"], r
        assert denials[0]["remedy"] in r["content"][0]["text"], r
        assert m.notes("notifications/message")[0]["level"] == "warning"
        # A command that goes on after a denial tells of it too.
        r = m.tool("run_command", command="echo x > /usr/x; echo went on")
        assert r["isError"] is False and "went on" in r["content"][0]["text"], r
        for bad in ({"sandbox_id": "sess_nope", "code": "1"}, {"language": "cobol", "code": "1"}, {"code": 7}):
            r = m.tool("run_code", **bad)
            assert r["isError"] and r["structuredContent"]["error"] == r["content"][0]["text"], r
        a = m.tool("create_sandbox", language="python")["structuredContent"]["sandbox_id"]
        assert "runs python" in m.tool("run_code", sandbox_id=a, language="r", code="1")["content"][0]["text"]
        assert "run_code" in m.tool("run_command", sandbox_id=a, command="ls")["content"][0]["text"]


def test_cancellation_while_other_calls_go_on():
    with Mcp() as m:
        m.tool("run_code", code="1")
        m.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call",
                "params": {"name": "run_code", "arguments": {"code": "import time; time.sleep(50)"}}})
        m.runs()
        assert m.tool("run_command", command="echo ok")["structuredContent"]["stdout"] == "ok\n"
        begun = time.monotonic()
        # Of two that wait for their turn one is cancelled too: neither has an answer.
        m.send({"jsonrpc": "2.0", "id": "waits", "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": "x = 1"}}})
        for n in ("waits", "slow", "unknown", None, {}):
            m.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})
        assert m.tool("run_code", code="6 * 7")["structuredContent"]["result"] == "42"
        assert time.monotonic() - begun < 40
        assert m.tool("run_code", code="x")["isError"], "it was cancelled before its turn"
        assert not [x for x in m.seen if "id" in x], m.seen


def test_progress():
    with Mcp() as m:
        m.tool("run_code", code="import time")
        r = m.ask("tools/call", {"name": "run_code", "_meta": {"progressToken": "p"}, "arguments": {
            "code": "print('one', flush=True); time.sleep(0.4); print('a\\ntwo'); time.sleep(2.3)"}})
        assert r["result"]["isError"] is False
        told = m.notes("notifications/progress")
        assert [t["message"] for t in told][:2] == ["one", "two"] and len(told) >= 4, told
        assert all(t["progressToken"] == "p" for t in told)
        assert all(a["progress"] < b["progress"] for a, b in zip(told, told[1:]))
        m.seen.clear()
        m.tool("run_code", code="print('x', flush=True); time.sleep(1.2)")
        assert not m.seen, "nobody asked"


def test_suspend():  # MCP-06
    with Mcp() as m:
        a = m.tool("create_sandbox")["structuredContent"]["sandbox_id"]
        assert m.tool("suspend_sandbox", sandbox_id=a)["isError"] is False
        m.send({"jsonrpc": "2.0", "id": "later", "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"sandbox_id": a, "command": "echo done"}}})
        time.sleep(0.5)
        assert [s["state"] for s in m.tool("list_sandboxes")["structuredContent"]["sandboxes"]] == ["suspended"]
        assert not m.seen
        assert m.tool("read_file", sandbox_id=a, path="/etc/hostname")["content"]  # files go on
        assert m.tool("resume_sandbox", sandbox_id=a)["isError"] is False
        assert m.answer("later")["result"]["structuredContent"]["stdout"] == "done\n"
        # Cancelled, or ended, while it waits.
        m.tool("suspend_sandbox", sandbox_id=a)
        m.send({"jsonrpc": "2.0", "id": "never", "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"sandbox_id": a, "command": "echo never"}}})
        time.sleep(0.2)
        m.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}})
        m.tool("resume_sandbox", sandbox_id=a)
        assert m.tool("run_command", sandbox_id=a, command="echo on")["structuredContent"]["stdout"] == "on\n"
        m.send({"jsonrpc": "2.0", "id": "runs", "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"sandbox_id": a, "command": "until [ -e /tmp/go ]; do sleep 0.01; done"}}})
        m.runs()
        assert "running" in m.tool("suspend_sandbox", sandbox_id=a)["content"][0]["text"]
        m.tool("write_file", sandbox_id=a, path="/tmp/go", content="")
        m.answer("runs")
        m.tool("suspend_sandbox", sandbox_id=a)
        m.send({"jsonrpc": "2.0", "id": "ends", "method": "tools/call",
                "params": {"name": "run_command", "arguments": {"sandbox_id": a, "command": "echo x"}}})
        time.sleep(0.2)
        assert m.tool("destroy_sandbox", sandbox_id=a)["isError"] is False
        assert m.answer("ends")["result"]["isError"]


def test_resources():
    with Mcp("--level", "strict") as m:
        uris = [r["uri"] for r in m.ask("resources/list")["result"]["resources"]]
        assert uris == ["cordon://policy", "cordon://policy/text"]
        part = m.ask("resources/read", {"uri": uris[0]})["result"]["contents"][0]
        assert part["mimeType"] == "application/json" and json.loads(part["text"])["timeout_ms"] == 10000
        assert "network" in m.ask("resources/read", {"uri": uris[1]})["result"]["contents"][0]["text"]
        assert m.ask("resources/read", {"uri": "file:///etc/passwd"})["error"]["code"] == -32002
        assert m.ask("resources/read", dict(NEW, uri="x"))["error"] == {"code": -32602, "message": "there is no such resource",
                                                                          "data": {"uri": "x"}}
        assert m.ask("prompts/list")["error"]["code"] == -32601  # none are offered, none are promised


def policy_of(*args, **env):
    with Mcp(*args, **env) as m:
        return json.loads(m.ask("resources/read", {"uri": "cordon://policy"})["result"]["contents"][0]["text"])


def test_precedence():  # MCP-05: options > environment > files > default; lists replace
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "config.json")
        with open(file, "w") as f:
            json.dump({"timeout_ms": 111, "memory_bytes": 1 << 28, "fs_bytes": 1 << 20, "network": {"allow": ["file.example"]},
                       "mounts": [{"host": "/usr/share", "guest": "/mnt/file"}]}, f)
        other = os.path.join(folder, "policy.json")
        with open(other, "w") as f:
            json.dump({"timeout_ms": 222}, f)
        env = {"CORDON_CONFIG": file}
        default = policy_of()
        assert default["timeout_ms"] == 30000 and default["network"]["allow"] == [] and default["mounts"] == []
        p = policy_of(**env)
        assert p["timeout_ms"] == 111 and p["network"]["allow"] == ["file.example"] and p["fs_bytes"] == 1 << 20
        assert [m["guest"] for m in p["mounts"]] == ["/mnt/file"]
        assert policy_of("--policy", other, **env)["timeout_ms"] == 222
        env.update(CORDON_TIMEOUT_MS="333", CORDON_NETWORK_ALLOW="env.example,env2.example", CORDON_MOUNT_1="/usr/share:/mnt/env:ro",
                   CORDON_MOUNT_2="/usr/lib:/mnt/env2", CORDON_FS_BYTES="2097152", CORDON_MEMORY_BYTES="300000000",
                   CORDON_NETWORK_BLOCK="bad.example")
        p = policy_of("--policy", other, **env)
        assert p["timeout_ms"] == 333 and p["network"]["allow"] == ["env.example", "env2.example"], p
        assert p["network"]["block"] == ["bad.example"] and p["fs_bytes"] == 2097152 and p["memory_bytes"] == 300000000
        assert [m["guest"] for m in p["mounts"]] == ["/mnt/env", "/mnt/env2"]
        p = policy_of("--timeout", "444ms", "--allow-host", "cli.example", "--mount", "/usr/share:/mnt/cli", "--network-block", "no.example", **env)
        assert p["timeout_ms"] == 444 and p["network"]["allow"] == ["cli.example"] and p["network"]["block"] == ["no.example"], p
        assert [m["guest"] for m in p["mounts"]] == ["/mnt/cli"]
        p = policy_of("--set", "timeout_ms=555", "--network-allow", "a.example", "--network-allow", "b.example", "--memory", "64M", **env)
        assert p["timeout_ms"] == 555 and p["network"]["allow"] == ["a.example", "b.example"] and p["memory_bytes"] == 64 << 20
        bad = subprocess.run([CORDON, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             env=dict(os.environ, CORDON_MOUNT_1="/usr/share:/mnt/x:yy"))
        assert bad.returncode == 2 and "CORDON_MOUNT_1" in bad.stderr, bad


def timeout_of(m):
    r = m.tool("run_code", code="import time; time.sleep(20)")
    assert r["structuredContent"]["error_kind"] == "timeout", r
    return r["structuredContent"]["error"].split("timed out after ")[1]  # the limit, whatever the clock says


def test_configuration():  # MCP-04, MCP-05
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the guest is another user
        config = os.path.join(folder, "config.json")
        with open(config, "w") as f:
            json.dump({"timeout_ms": 400}, f)
        with open(os.path.join(folder, "data"), "w") as f:
            f.write("host")
        with Mcp(CORDON_CONFIG=config) as m:
            assert timeout_of(m).startswith("400 ms"), timeout_of(m)
        with Mcp(CORDON_CONFIG=config, CORDON_TIMEOUT_MS="100") as m:
            assert timeout_of(m).startswith("100 ms"), timeout_of(m)
        with Mcp("--timeout", "700ms", CORDON_CONFIG=config, CORDON_TIMEOUT_MS="100") as m:
            assert timeout_of(m).startswith("700 ms"), timeout_of(m)
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
        m.runs()
        m.p.stdin.close()
        m.p.stdout.close()  # nobody reads: nothing is waited for
        m.p.wait(30)
        assert pid >= 0 and not is_alive(m.p.pid)


def test_what_was_asked_before_the_end_is_answered():
    ask = [("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}), ("tools/list", {}),
           ("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(1); print(6 * 7)"}})]
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": m, "params": p}) + "\n" for i, (m, p) in enumerate(ask))
    for _ in range(5):
        r = subprocess.run([CORDON, "mcp"], input=text, capture_output=True, text=True, timeout=50)
        got = {m["id"]: m for m in map(json.loads, r.stdout.splitlines()) if "id" in m}
        assert r.returncode == 0 and sorted(got) == [0, 1, 2] and "42" in json.dumps(got[2]), r

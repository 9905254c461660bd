"""cordon mcp over stdio, in both versions of the protocol."""
import base64
import json
import os
import subprocess
import tempfile
import threading
import time

from driver import CORDON, ROOT, Need, is_alive

SHORT = {"run_code", "run_command", "read_file", "write_file", "list_files", "manage_sandbox"}
FULL = {"run_code", "run_command", "read_file", "write_file", "list_directory", "create_sandbox", "list_sandboxes", "destroy_sandbox",
         "snapshot", "restore", "fork", "export_state", "import_state", "suspend_sandbox", "resume_sandbox"}
NEW = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}


class Mcp:
    def __init__(self, *args, before=(), **env):
        self.p = subprocess.Popen([*before, CORDON, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **env))
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
        assert {t["name"] for t in tools} == SHORT
        language = tools[0]["inputSchema"]["properties"]["language"]
        assert tools[0]["name"] == "run_code" and language["enum"] == ["python", "r", "javascript", "typescript", "bash"]
        assert len(json.dumps(tools)) < 6000, "every model reads this with every request"
        assert all(t["inputSchema"]["type"] == "object" and t["annotations"]["openWorldHint"] is False for t in tools)
        assert m.ask("nope")["error"]["code"] == -32601
        assert m.ask("tools/call", {"name": "nope"})["error"]["code"] == -32602


def test_full_list():  # MCP-01
    with Mcp("--tools", "full") as m:
        assert {t["name"] for t in m.ask("tools/list")["result"]["tools"]} == FULL
    with Mcp("--tools", "short") as m:
        assert {t["name"] for t in m.ask("tools/list")["result"]["tools"]} == SHORT
        # What is not listed can be called.
        a = m.tool("create_sandbox")["structuredContent"]["sandbox_id"]
        assert [e["name"] for e in m.tool("list_directory", sandbox_id=a, path="/")["structuredContent"]["entries"]].count("tmp") == 1
    r = subprocess.run([CORDON, "mcp", "--tools", "some"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert r.returncode == 2 and "short or full" in r.stderr, r


def test_languages_as_people_write_them():
    with Mcp() as m:
        for name in ("Python", "PY", " python ", "python3", "Python 3.11"):
            assert m.tool("run_code", code="6 * 7", language=name)["structuredContent"]["result"] == "42", name
        for name in ("R", "Rscript", "r"):
            assert m.tool("run_code", code="6 * 7", language=name)["structuredContent"]["result"].endswith("42"), name
        for name in ("js", "JavaScript", "Node.js", "nodejs", "node"):
            assert m.tool("run_code", code="[6 * 7][0]", language=name)["structuredContent"]["result"] == "42", name
        for name in ("bash", "sh", "Shell"):
            assert m.tool("run_code", code="echo $((6 * 7))", language=name)["structuredContent"]["stdout"] == "42\n", name
        for name in ("ts", "TypeScript"):
            r = m.tool("run_code", code="let n: number = 6 * 7; n", language=name)
            assert r["structuredContent"].get("result") == "42" or "Node 22.13" in r["content"][0]["text"], r
        for name in ("", "cobol", "pythonic", "zsh", "javascrip", "c", "py thon"):
            r = m.tool("run_code", code="1", language=name)
            assert r["isError"] and "python, r, javascript" in r["content"][0]["text"], (name, r)
        assert len(m.tool("list_sandboxes")["structuredContent"]["sandboxes"]) == 1


def test_one_sandbox_for_everything():
    with Mcp() as m:
        r = m.tool("write_file", path="data.csv", contents="a\n1\n2\n")
        a = r["structuredContent"]["sandbox_id"]
        assert m.tool("run_command", command="wc -l < data.csv; cd /tmp; x=7")["structuredContent"]["stdout"] == "3\n"
        r = m.tool("run_code", code="n = sum(int(x) for x in open('data.csv').read().split()[1:])\nopen('/tmp/n', 'w').write(str(n))")
        assert r["structuredContent"]["sandbox_id"] == a, r
        assert m.tool("run_code", code="k <- as.integer(readLines('/tmp/n')) + 1L; writeLines(as.character(k), '/tmp/k')", language="R")["isError"] is False
        assert m.tool("run_code", code="require('fs').readFileSync('/tmp/k', 'utf8').trim()", language="js")["structuredContent"]["result"] == "'4'"
        assert m.tool("run_command", command="pwd; echo $x; cat n k")["structuredContent"]["stdout"] == "/tmp\n7\n34\n", "the shell has a state of its own"
        assert m.tool("read_file", path="/tmp/k")["content"][0]["text"] == "4\n"
        s = m.tool("manage_sandbox", action="list")["structuredContent"]["sandboxes"]
        assert [x["sandbox_id"] for x in s] == [a] and s[0]["languages"] == ["python", "r", "node", "sh"], s
        # What ends one interpreter leaves the others.
        r = m.tool("run_code", code="import os; os.kill(os.getpid(), 9)")
        assert r["structuredContent"]["restarted"] and "Other languages keep" in r["content"][0]["text"], r
        assert m.tool("run_code", code="k", language="R")["structuredContent"]["result"].endswith("4")
        assert m.tool("run_command", command="echo $x")["structuredContent"]["stdout"] == "7\n"
        assert "NameError" in m.tool("run_code", code="n")["content"][0]["text"]
        assert not m.tool("manage_sandbox", action="restart", language="r")["isError"]
        assert m.tool("run_code", code="exists('k')", language="R")["structuredContent"]["result"].endswith("FALSE")
        assert m.tool("run_command", command="echo $x")["structuredContent"]["stdout"] == "7\n"
        # Each language has its turns: a command runs beside code, and a cancel ends just its own.
        m.send({"jsonrpc": "2.0", "id": "held", "method": "tools/call", "params": {"name": "run_code", "arguments": {
            "code": "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n'went'"}}})
        m.send({"jsonrpc": "2.0", "id": "cut", "method": "tools/call", "params": {"name": "run_command", "arguments": {"command": "touch /tmp/runs; sleep 100"}}})
        end = time.monotonic() + 60
        while m.tool("read_file", path="/tmp/runs")["isError"]:
            assert time.monotonic() < end
        m.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "cut"}})
        assert m.tool("run_command", command="touch /tmp/go")["isError"] is False
        assert m.answer("held")["result"]["structuredContent"]["result"] == "'went'"
        # A snapshot, a fork and an export are the whole sandbox's.
        snap = m.tool("manage_sandbox", action="snapshot")["structuredContent"]["snapshot_id"]
        m.tool("run_command", command="rm /tmp/k")
        assert not m.tool("manage_sandbox", action="restore", snapshot_id=snap)["isError"]
        b = m.tool("manage_sandbox", action="fork")["structuredContent"]["sandbox_id"]
        assert b != a and m.tool("run_code", code="readLines('/tmp/k')", language="R", sandbox_id=b)["structuredContent"]["result"].endswith('"4"')
        assert m.tool("run_command", command="cat /tmp/k", sandbox_id=b)["structuredContent"]["stdout"] == "4\n"


def test_without_user_namespaces_each_language_has_files_of_its_own():
    before = [os.path.join(ROOT, "tests", "behaviour", "without-userns")]
    if subprocess.run([*before, "/bin/true"], capture_output=True).returncode != 0:
        raise Need("user namespaces, to switch them off in one")
    with Mcp("--set", "require=landlock,seccomp", before=before) as m:
        r = m.tool("write_file", path="f", contents="x")
        assert "sandbox with files of its own" in r["content"][1]["text"], r
        assert m.tool("run_command", command="cat f")["content"] == [{"type": "text", "text": "x"}]
        r = m.tool("run_code", code="import os; os.path.exists('f')")
        assert r["structuredContent"]["result"] == "False" and "of its own" in r["content"][1]["text"], r
        assert "runs python" in m.tool("run_code", code="1", language="r", sandbox_id=r["structuredContent"]["sandbox_id"])["content"][0]["text"]
        assert "use run_code" in m.tool("run_command", command="ls", sandbox_id=r["structuredContent"]["sandbox_id"])["content"][0]["text"]
        assert sorted(s["language"] for s in m.tool("list_sandboxes")["structuredContent"]["sandboxes"]) == ["python", "sh"]


def test_strict_has_room_for_every_language():
    with Mcp("--level", "strict") as m:
        m.tool("write_file", path="f", contents="1")
        for name, code in (("python", "int(open('f').read())"), ("r", "as.integer(readLines('f', warn = FALSE))"), ("js", "+require('fs').readFileSync('f')")):
            r = m.tool("run_code", code=code, language=name)
            assert not r["isError"] and r["structuredContent"]["result"].endswith("1"), (name, r)
        assert m.tool("run_command", command="cat f | sort | tail -1")["structuredContent"]["stdout"] == "1\n"
    assert policy_of("--level", "strict")["processes"] == 50
    assert policy_of("--level", "strict", "--set", "processes=16")["processes"] == 16
    assert policy_of("--set", "processes=20")["processes"] == 20
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write('{"level": "strict"}')
        f.flush()
        assert policy_of("--policy", f.name)["processes"] == 16


def test_suspend_holds_every_language():
    with Mcp() as m:
        a = m.tool("run_command", command="true")["structuredContent"]["sandbox_id"]
        m.send({"jsonrpc": "2.0", "id": "held", "method": "tools/call", "params": {"name": "run_command", "arguments": {
            "command": "until [ -e /tmp/go ]; do sleep 0.01; done"}}})
        m.runs()
        assert "running" in m.tool("manage_sandbox", action="suspend", sandbox_id=a)["content"][0]["text"]
        m.tool("write_file", path="/tmp/go", contents="")
        m.answer("held")
        assert not m.tool("manage_sandbox", action="suspend", sandbox_id=a)["isError"]
        for n, (tool, arguments) in enumerate([("run_command", {"command": "echo 1"}), ("run_code", {"code": "2"}), ("run_code", {"code": "3", "language": "r"})]):
            m.send({"jsonrpc": "2.0", "id": "s%d" % n, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        time.sleep(0.3)
        assert not m.seen
        m.tool("manage_sandbox", action="resume", sandbox_id=a)
        assert all(not m.answer("s%d" % n)["result"]["isError"] for n in range(3))


def test_arguments_as_models_write_them():
    with Mcp() as m:
        a = m.tool("manage_sandbox", action="create", language="Bash")["structuredContent"]["sandbox_id"]
        m.tool("write_file", path="/home/user/f", content="one", sandboxId=a)
        assert m.tool("run_command", cmd="cat f", sandbox_id=a)["structuredContent"]["stdout"] == "one"
        assert m.tool("run_command", command="cat f", sandbox_id=a, timeout_ms=None)["isError"] is False
        r = m.tool("write_file", path="/home/user/f", content="one", contents="two", sandbox_id=a)
        assert r["isError"] and "twice" in r["content"][0]["text"], r
        assert "did you mean 'language'" in m.tool("run_code", code="1", langage="r")["content"][0]["text"]


def test_errors_have_traceback_and_line():
    with Mcp() as m:
        r = m.tool("run_code", code="def f():\n    return 1 / 0\n\nf()")
        text = r["content"][0]["text"]
        assert r["structuredContent"]["line"] == 2 and "line 4" in r["structuredContent"]["traceback"], r
        assert text.startswith("exception in line 2: ZeroDivisionError: division by zero\nTraceback") and "in f\n" in text, text
        r = m.tool("run_code", code="f <- function() stop('no')\nf()", language="R")
        assert "Traceback:\n  1: f()" in r["content"][0]["text"], r
        r = m.tool("run_code", code="\nfunction f() { throw new Error('x') }\nf()", language="js")
        assert "in line 2" in r["content"][0]["text"] and "at f" in r["content"][0]["text"], r
        r = m.tool("run_code", code="raise ValueError('x' * 100000)")
        assert len(json.dumps(r)) < 40000 and "left out here" in r["content"][0]["text"], len(json.dumps(r))


def test_a_value_that_its_guest_cuts_is_not_called_whole():
    with Mcp() as m:
        for language, code in (("python", "'x' * 100000"), ("r", "strrep('x', 100000)")):
            text = m.tool("run_code", code=code, language=language)["content"][0]["text"]
            assert "left out here; the beginning of the result is in" in text, text[-300:]


def test_long_output_is_cut_in_the_middle_and_kept():
    code = "for i in range(9000): print('line', i)\nimport sys\nprint('é' * 20000, file=sys.stderr)\n'x' * 30000"
    whole = "".join("line %d\n" % i for i in range(9000))
    with Mcp() as m:
        r = m.tool("run_code", code=code)
        s, text = r["structuredContent"], r["content"][0]["text"]
        assert len(text) < 60000 and text.startswith("line 0\nline 1\n") and "\nline 8999\n" in text and "\nline 4000\n" not in text
        for key, want in (("stdout", whole), ("stderr", "é" * 20000 + "\n"), ("result", "'" + "x" * 30000 + "'")):
            assert s[key + "_file"] in text and "left out here; the whole %s is in" % key in s[key], s[key][:100]
            assert "\ufffd" not in s[key], "a character is cut in two"
            path = s[key + "_file"]
            got = m.tool("run_code", code="open(%r).read()[%d:][:200]" % (path, len(want) - 200))["structuredContent"]["result"]
            assert eval(got) == want[-200:], (key, got)
            left = int(s[key].split("[... ")[1].split(" of ")[0])
            assert len(s[key].split("\n[... ")[0].encode()) + left <= len(want.encode())
        # Files of old results go; the rest of the workspace is not filled.
        for i in range(20):
            r = m.tool("run_code", code="print('y' * 20000)")
        names = eval(m.tool("run_code", code="import os; sorted(os.listdir('/tmp/cordon-output'))")["structuredContent"]["result"])
        assert len(names) == 16 and r["structuredContent"]["stdout_file"].endswith("/21/stdout.txt"), names
    with Mcp("--set", "fs_bytes=65536") as m:
        r = m.tool("run_code", code="print('y' * 100000)")
        assert not r["isError"] and "could not be kept in a file: " in r["structuredContent"]["stdout"] and "stdout_file" not in r["structuredContent"], r
    with Mcp("--set", "stdout_bytes=30000") as m:
        r = m.tool("run_code", code="print('y' * 50000)")
        text = r["content"][0]["text"]
        assert "the policy keeps no more of stdout (stdout_bytes" in text and "what the policy keeps of stdout is in the file" in text, text[-300:]
    with Mcp("--tools", "full") as m:
        r = m.tool("run_code", code=code)
        assert r["structuredContent"]["stdout"] == whole and "stdout_file" not in r["structuredContent"]


def test_tables_are_text():
    frame = "import pandas as pd\n"
    with Mcp("--timeout", "120s") as m:
        r = m.tool("run_code", code=frame + "pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        assert r["content"][0]["text"] == "   a  b\n0  1  x\n1  2  y" and len(r["content"]) == 1, r
        r = m.tool("run_code", code="display(pd.DataFrame({'a': range(100), 'b': ['p\\nq'] * 100}))\nprint('then')")
        text = r["content"][0]["text"]
        assert "0 | 0 | p q\n" in text and "99 | 99 | p q\n" in text and "60 rows are left out" in text and "50 | 50" not in text, text
        r = m.tool("run_code", code="data.frame(a = 1:2)", language="R")
        assert r["content"][0]["text"] == "  a\n1 1\n2 2", r


def test_images_that_models_can_see():
    with Mcp() as m:
        code = "class V:\n  def __init__(self, t): self.t = t\n  def _repr_svg_(self): return self.t\nV('<svg/>')"
        r = m.tool("run_code", code=code)
        assert [c["type"] for c in r["content"]] == ["text"], r
        path = r["content"][0]["text"].split("in the file ")[1].split("]")[0]
        assert m.tool("run_code", code="open(%r).read()" % path)["structuredContent"]["result"] == "'<svg/>'", r
        png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
        m.tool("write_file", path="p.png", contents=png, encoding="base64")
        r = m.tool("read_file", path="p.png")
        assert r["content"][1] == {"type": "image", "data": png, "mimeType": "image/png"} and "108 bytes" in r["content"][0]["text"], r
    with Mcp("--tools", "full") as m:
        m.tool("write_file", path="p.png", contents=png, encoding="base64")
        assert m.tool("read_file", path="p.png")["structuredContent"]["contents"] == png


def test_lines_of_a_file():
    with Mcp() as m:
        m.tool("write_file", path="f", contents="".join("line %d\n" % i for i in range(1, 20001)))
        r = m.tool("read_file", path="f")
        text = r["content"][0]["text"]
        assert len(text) < 70000 and text.startswith("line 1\n") and text.endswith("line 20000\n") and "offset and limit" in text
        assert m.tool("read_file", path="f", offset=10000, limit=2)["content"][0]["text"] == "line 10000\nline 10001\n"
        assert m.tool("read_file", path="f", offset=20000)["content"][0]["text"] == "line 20000\n"
        assert m.tool("read_file", path="f", limit=1)["structuredContent"]["contents"] == "line 1\n"
        assert m.tool("read_file", path="f", offset=20001)["structuredContent"]["contents"] == ""
        assert "has 20000 lines" in m.tool("read_file", path="f", offset=99999999999)["content"][0]["text"]
        m.tool("write_file", path="g", contents="a\nb")
        assert m.tool("read_file", path="g", offset=2, limit=9)["content"][0]["text"] == "b"
        assert m.tool("run_command", command="mkdir many; cd many; touch $(seq 600)")["isError"] is False
        r = m.tool("list_files", path="many")
        assert r["structuredContent"]["left_out"] == 100 and "100 more" in r["content"][0]["text"], r["content"][0]["text"][-50:]
        assert "many/\n" in m.tool("list_files")["content"][0]["text"] and "g  3 bytes\n" in m.tool("list_files")["content"][0]["text"]


def test_no_text_is_empty_or_bare():
    with Mcp() as m:
        r = m.tool("run_code", code="display(type('P', (), {'_repr_png_': lambda self: b'png'})())")
        assert [p["type"] for p in r["content"]] == ["text", "image"] and r["content"][0]["text"] == "(1 image)", r["content"]
        m.tool("write_file", path="three", contents="a\nb\nc\n")
        m.tool("write_file", path="none", contents="")
        r = m.tool("read_file", path="three", offset=99)
        assert r["content"][0]["text"] == "(there is nothing: the file has 3 lines)" and r["structuredContent"]["contents"] == "", r
        assert m.tool("read_file", path="none")["content"][0]["text"] == "(the file is empty)"
        m.tool("write_file", path="bin", contents="//5iaW4=", encoding="base64")
        r = m.tool("read_file", path="bin")
        assert r["content"][0]["text"] == "(5 bytes that are no text, in base64:)\n//5iaW4=", r
        assert r["structuredContent"]["contents"] == "//5iaW4=" and r["structuredContent"]["encoding"] == "base64", r
        a = m.tool("manage_sandbox", action="create", language="sh")["structuredContent"]["sandbox_id"]
        n = m.tool("manage_sandbox", action="snapshot", sandbox_id=a)["structuredContent"]["snapshot_id"]
        for words, said in (({"action": "restore", "snapshot_id": n}, "those of the snapshot"), ({"action": "suspend"}, "is suspended"),
                            ({"action": "resume"}, "is resumed"), ({"action": "destroy"}, "are gone")):
            r = m.tool("manage_sandbox", sandbox_id=a, **words)
            assert not r["isError"] and said in r["content"][0]["text"], (words, r)


def test_the_text_says_when_state_was_lost():
    with Mcp() as m:
        m.tool("run_code", code="x = 1; open('kept', 'w').write('k')")
        r = m.tool("run_code", code="import os; os.kill(os.getpid(), 9)")
        assert r["structuredContent"]["restarted"] is True and "State lost" in r["content"][0]["text"] and "(crashed)" in r["content"][0]["text"], r
        r = m.tool("run_code", code="open('kept').read()")
        assert r["content"][0]["text"] == "'k'" and r["structuredContent"]["restarted"] is False, r
        r = m.tool("run_code", code="while True: pass", timeout_ms=300)
        lost = r["structuredContent"]["restarted"]
        assert ("State lost: the interpreter was ended (timeout)" if lost else "State kept") in r["content"][0]["text"], r
        r = m.tool("run_code", code="sum(range(1 << 60))", timeout_ms=300)
        why = "the code did not stop within 1 second after its deadline and was killed"
        assert r["structuredContent"]["restart_reason"] == why and "Reason: " + why in r["content"][0]["text"], r
        m.tool("run_code", code="x = 2")
        a = r["structuredContent"]["sandbox_id"]
        r = m.tool("manage_sandbox", action="restart", sandbox_id=a)
        assert not r["isError"] and "files are kept" in r["content"][0]["text"], r
        assert "NameError" in m.tool("run_code", code="x")["content"][0]["text"]
        assert m.tool("run_code", code="open('kept').read()")["content"][0]["text"] == "'k'"
        assert not m.tool("manage_sandbox", action="destroy", sandbox_id=a)["isError"]
        r = m.tool("run_code", code="1")
        assert "State lost: this is a new sandbox" in r["content"][1]["text"] and r["structuredContent"]["is_new_sandbox"], r
        assert len(m.tool("run_code", code="1")["content"]) == 1
        for bad in ({}, {"action": "x"}, {"action": "destroy"}, {"action": "restart", "sandbox_id": "nope"}, {"action": "restore", "sandbox_id": a}):
            assert m.tool("manage_sandbox", **bad)["isError"], bad


def test_manage_sandbox():
    with Mcp() as m:
        def do(action, **more):
            r = m.tool("manage_sandbox", action=action, **more)
            assert not r["isError"], (action, r)
            return r["structuredContent"]
        a = do("create", label="mine", language="sh")["sandbox_id"]
        m.tool("write_file", sandbox_id=a, path="/home/user/v", contents="v1")
        snap = do("snapshot", sandbox_id=a)["snapshot_id"]
        m.tool("write_file", sandbox_id=a, path="/home/user/v", contents="v2")
        b = do("fork", sandbox_id=a)["sandbox_id"]
        do("restore", sandbox_id=a, snapshot_id=snap)
        assert m.tool("read_file", sandbox_id=a, path="v")["content"][0]["text"] == "v1"
        assert m.tool("read_file", sandbox_id=b, path="v")["content"][0]["text"] == "v2"
        c = do("import", data=do("export", sandbox_id=a)["data"])["sandbox_id"]
        assert m.tool("read_file", sandbox_id=c, path="v")["content"][0]["text"] == "v1"
        do("suspend", sandbox_id=c)
        assert [s["state"] for s in do("list")["sandboxes"] if s["sandbox_id"] == c] == ["suspended"]
        do("resume", sandbox_id=c)
        do("destroy", sandbox_id=b)
        assert sorted(s["sandbox_id"] for s in do("list")["sandboxes"]) == sorted([a, c])
        # A label does not make a sandbox the default one.
        d = do("create", label="default python", language="python")["sandbox_id"]
        assert m.tool("run_code", code="1")["structuredContent"]["sandbox_id"] != d


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
        a = m.tool("create_sandbox", language="r")["structuredContent"]["sandbox_id"]
        assert m.tool("run_code", sandbox_id=a, code="1 + 1")["structuredContent"]["result"].endswith("[1] 2"), "its own language"
        assert m.tool("run_code", sandbox_id=a, language="python", code="1 + 1")["structuredContent"]["result"] == "2"


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
        m.tool("write_file", sandbox_id=a, path="/tmp/go", contents="")
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

"""Contexts and commands over RPC: one sandbox with several interpreters and programs."""
import base64
import json
import time

from driver import HELD, Client, Failure, Need


def place(c, **params):
    """A sandbox with Python and a shell."""
    try:
        return c.open(guest="python", languages=["python", "sh"], **params)
    except Failure as f:
        if f.data.get("code") == "unsupported":
            raise Need(f.message)
        raise


def text_of(answer):
    return base64.b64decode(answer["data"]).decode()


def test_contexts_by_name():
    with Client() as c:
        s = place(c)
        c.execute(s, "x = 1; open('/tmp/f', 'w').write('kept')")
        r = c.call("session.execute", session=s, code="cat /tmp/f", language="sh")
        assert r["stdout"] == "kept" and r["start_ms"] > 0, r
        assert "start_ms" not in c.call("session.execute", session=s, code="true", language="sh")
        assert c.call("session.execute", session=s, code="'x' in globals()", context="a")["result"] is False
        assert c.call("session.execute", session=s, code="y", context="a", variables={"y": 5})["result"] == 5
        assert c.call("session.execute", session=s, code="x")["result"] == 1
        a = c.call("session.context", session=s, context="a")["session"]
        assert a != s and c.execute(a, "y")["result"] == 5
        assert c.call("session.context", session=s)["session"] == s
        d = c.call("session.describe", session=s)
        assert d["languages"] == ["python", "sh"]
        assert {(x["language"], x["name"]) for x in d["contexts"]} == {("python", "default"), ("python", "a"), ("sh", "default")}
        assert c.call("session.describe", session=a)["sandbox"] == s
        assert c.call("session.list")["sessions"] == [s]
        c.call("session.close", session=a)
        c.fails(-32005, "no session", "session.execute", session=a, code="1")
        assert c.call("session.execute", session=s, code="'y' in globals()", context="a")["result"] is False
        c.fails(-32600, "without 'r'", "session.execute", session=s, code="1", language="r")
        c.fails(-32602, "a context's name", "session.context", session=s, context="a/b")
        c.call("session.close", session=s)
        c.fails(-32602, "opened for one language", "session.command", session=c.open(), command="true")


def test_contexts_execute_at_the_same_time():
    with Client() as c:
        s = place(c)
        a = c.call("session.context", session=s, context="a")["session"]
        n = c.begin(a, HELD["python"])
        assert c.execute(s, "1")["result"] == 1
        c.fails(-32600, "concurrent", "session.execute", session=s, code="1", context="a")
        c.fails(-32600, "executing", "snapshot.create", session=s)
        m = c.begin(c.call("session.context", session=s, context="b")["session"], HELD["python"])
        assert c.call("cancel", request_id=m)["cancelled"]
        assert c.wait(m)["error_kind"] == "cancelled"
        c.call("files.write", session=a, path="/tmp/go", data="")
        assert c.wait(n)["success"]
        c.call("snapshot.create", session=a, name="one")


def test_commands():
    with Client() as c:
        s = place(c, env={"B": "b"})
        r = c.call("session.command", session=s, command="echo $A $B; pwd; cat; exit 3", cwd="/workspace", env={"A": "a"}, stdin="in")
        assert r["stdout"] == "a b\n/workspace\nin" and r["exit_code"] == 3, r
        assert c.call("session.command", session=s, command="cat")["success"]  # its stdin is empty
        r = c.call("session.command", session=s, command="while :; do :; done", timeout_ms=300)
        assert r["error_kind"] == "timeout"
        c.seen.clear()
        n = c.send("session.command", {"session": s, "command": "echo up; " + HELD["sh"], "stream": True})
        note = c.wait_note("output")
        assert note["data"] == "up\n" and note["request_id"] == n
        assert c.execute(s, "2")["result"] == 2
        assert c.call("cancel", request_id=n)["cancelled"]
        assert c.wait(n)["error_kind"] == "cancelled"
        assert c.call("session.command", session=s, command="pwd", cwd=".")["stdout"].startswith("/home/user")
        c.fails(-32602, "Missing required param: command", "session.command", session=s)


def test_processes():
    with Client() as c:
        s = place(c)
        p = c.call("session.command", session=s, command="while read -r l; do echo got $l; done; exit 4", background=True, stream=True)
        p = p["process"]
        assert c.call("process.write", session=s, process=p, data=base64.b64encode(b"a\n").decode())["written"] == 2
        note = c.wait_note("output")
        assert note["data"] == "got a\n" and note["process"] == p and note["session"] == s
        assert text_of(c.call("process.output", session=s, process=p)) == "got a\n"
        assert text_of(c.call("process.output", session=s, process=p, offset=4)) == "a\n"
        assert text_of(c.call("process.output", session=s, process=p, stream="stderr")) == ""
        (one,) = c.call("process.list", session=s)["processes"]
        assert one["process"] == p and one["state"] == "running" and one["exit_code"] is None
        c.fails(-32004, "still runs", "process.wait", session=s, process=p, wait_ms=0)
        c.fails(-32600, "the command %d runs in the background" % p, "snapshot.create", session=s)
        c.call("process.write", session=s, process=p, eof=True)
        assert c.wait_note("process.ended") == {"session": s, "process": p}
        r = c.call("process.wait", session=s, process=p)
        assert r["exit_code"] == 4 and r["stdout"] == "got a\n"
        again = c.call("process.wait", session=s, process=p)
        assert again == r and text_of(c.call("process.output", session=s, process=p)) == "got a\n", again
        c.call("process.kill", session=s, process=p)
        c.fails(-32005, "no process", "process.wait", session=s, process=9999)
        q = c.call("session.command", session=s, command="sleep 1000", background=True)["process"]
        c.call("process.kill", session=s, process=q)
        r = c.call("process.wait", session=s, process=q)
        assert r["error_kind"] == "cancelled" and r["exit_code"] == 137 and r["stderr"] == "", r


def test_terminals():
    with Client() as c:
        s = place(c)
        r = c.call("session.command", session=s, command="tty; stty size", pty={"rows": 33, "columns": 99})
        assert r["stdout"] == "/dev/pts/0\r\n33 99\r\n" and r["exit_code"] == 0, r
        line = "trap 'stty size' WINCH; trap 'echo int; exit 5' INT; echo ready; while :; do read -r l && echo got $l; done"
        p = c.call("session.command", session=s, command=line, background=True, pty=True)["process"]

        def await_text(text):
            while text not in text_of(c.call("process.output", session=s, process=p)):
                time.sleep(0.01)

        await_text("ready")
        assert c.call("process.write", session=s, process=p, data=base64.b64encode(b"abc\n").decode())["written"] == 4
        await_text("got abc")
        c.call("process.resize", session=s, process=p, rows=41, columns=123)
        c.call("process.write", session=s, process=p, data=base64.b64encode(b"\n").decode())
        await_text("41 123")
        c.call("process.signal", session=s, process=p, signal="SIGINT")
        r = c.call("process.wait", session=s, process=p)
        assert r["exit_code"] == 5 and "int" in r["stdout"], r
        q = c.call("session.command", session=s, command="sleep 1000", background=True)["process"]
        c.fails(-32600, "no terminal", "process.resize", session=s, process=q, rows=41, columns=123)
        c.fails(-32602, "must be INT", "process.signal", session=s, process=q, signal="NONE")
        for wrong in 3, {"rows": 0}, {"width": 3}:
            c.fails(-32602, "", "session.command", session=s, command="true", pty=wrong)
        strict = c.open(guest="sh", languages=["sh"], policy={"level": "strict"})
        c.fails(-32002, "pty=true", "session.command", session=strict, command="true", pty=True)


def test_closing_ends_what_waits():
    with Client() as c:
        s = place(c)
        p = c.call("session.command", session=s, command="sleep 1000", background=True)["process"]
        w = c.send("process.wait", {"session": s, "process": p})
        a = c.call("session.context", session=s, context="a")["session"]
        n = c.begin(a, HELD["python"])
        k = c.send("session.command", {"session": s, "command": "echo up; sleep 1000", "stream": True})
        c.wait_note("output", 2)
        c.call("session.close", session=s)
        assert c.wait(n)["error_kind"] == "cancelled"
        assert c.wait(k)["error_kind"] == "cancelled"
        try:
            c.wait(w)
        except Failure as f:
            assert "still runs" in f.message
        c.fails(-32005, "no session", "session.execute", session=a, code="1")


def test_moving_closes_contexts():
    with Client() as c:
        s = place(c)
        a = c.call("session.context", session=s, context="a")["session"]
        c.execute(a, "open('/tmp/f', 'w').write('kept')")
        c.fails(-32600, "a context cannot be moved", "offload", session=a)
        c.call("offload", session=s)
        c.fails(-32005, "no session", "session.execute", session=a, code="1")
        c.call("rehydrate", session=s)
        assert c.call("session.command", session=s, command="cat /tmp/f")["stdout"] == "kept"
        assert c.call("session.execute", session=s, code="1", context="a")["result"] == 1


def test_tools_and_audit_of_contexts():
    with Client(tools={"add": lambda a, b: a + b}) as c:
        add = {"name": "add", "args": {"a": "number", "b": "number"}}
        s = place(c, tools=[add], audit=True)
        assert c.call("session.execute", session=s, code="add(a=1, b=2)", context="a")["result"] == 3
        assert c.call("session.command", session=s, command="add --a 3 --b 4")["stdout"].strip() == "7"
        events = c.notes("audit")
        (opened,) = [e for e in events if e["event"] == "context_open"]
        assert opened["sandbox_id"] == s and opened["context"] == "a"
        assert {e["session_id"] for e in events if e["event"] == "execute_start"} == {opened["session_id"], s}, json.dumps(events)

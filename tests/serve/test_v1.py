"""API v1 of cordon serve: every resource, every message against docs/openapi.json."""
import io
import json
import os
import re
import socket
import tarfile
import tempfile
import threading
import urllib.parse

import serving
from driver import HELD, ROOT
from serving import API, Client, Server, refused

server = None


def reset():
    global server
    if server:
        server.stop()
    server = None


def client():
    global server
    server = server or Server()
    return server.client()


def quote(path):
    return urllib.parse.quote(path, safe="")


def test_document_and_routes_agree():
    c = client()
    assert c.call("GET", "/v1/openapi.json") == API
    source = open(os.path.join(ROOT, "src/serve/v1/v1_routes.c")).read().replace('SESSION "', '"/v1/sessions/{session}')
    source = source.replace('", SESSION,', '", "/v1/sessions/{session}",')
    routes = set(re.findall(r'(?:CALL|ROUTE|BYTES|ADMIN|AT_END)\("(\w+)", "([^"]+)"', source))
    described = {(m.upper(), p) for p, item in API["paths"].items() for m in item if p.startswith("/v1/")}
    described.discard(("GET", "/v1/openapi.json"))
    passed = {(m, p) for m, p in described if p.endswith("/ports/{port}/{rest}")}  # any method, and any path below
    assert len(passed) == 5 and '"/v1/sessions/{session}/ports/{port}/{rest*}"' in source
    described -= passed
    assert routes == described, (sorted(routes - described), sorted(described - routes))


def test_sessions():
    c = client()
    s = c.open(guest="python")
    assert s in c.call("GET", "/v1/sessions")["sessions"]
    assert c.call("GET", "/v1/sessions/" + s)["guest"] == "python"
    assert c.execute(s, "x = 20\nx + 1")["result"] == 21
    assert c.execute(s, "x")["result"] == 20
    c.call("PUT", "/v1/sessions/%s/environment/COLOUR" % s, {"value": "blue"})
    assert c.execute(s, "import os; os.environ['COLOUR']")["result"] == "blue"
    c.call("DELETE", "/v1/sessions/%s/environment/COLOUR" % s)
    assert c.execute(s, "os.environ.get('COLOUR')")["result"] is None
    c.call("POST", "/v1/sessions/%s/restart" % s)
    assert c.execute(s, "x")["success"] is False
    fork = c.call("POST", "/v1/sessions/%s/fork" % s)["session"]
    assert fork != s and c.execute(fork, "1")["result"] == 1
    for one in (s, fork):
        c.call("DELETE", "/v1/sessions/" + one)
        refused(404, c.call, "GET", "/v1/sessions/" + one)


def test_bad_requests():
    c = client()
    p = refused(400, c.call, "POST", "/v1/sessions", {"gest": "python"}, lawful=False)
    assert "gest" in p.body["detail"] and p.code == "invalid"
    refused(400, c.call, "POST", "/v1/sessions", {"guest": "cobol"}, lawful=False)
    for path in ("/v1", "/v1/nothing", "/v1/sessions/", "/v1/sessions/a/b/c/d", "/v1//sessions"):
        refused(404, c.call, "GET", path)
    p = refused(405, c.call, "PATCH", "/v1/sessions")
    status, headers, body = c.raw("PATCH", "/v1/sessions")
    assert headers["Allow"] == "GET, POST", headers
    for body in (b"{", b"[]", b"1", b'{"guest":"python","guest":"r"}', b"\xff", b'{"a":' * 100):
        status, headers, answer = c.raw("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
        assert status == 400 and json.loads(answer)["code"] == "invalid", (body, status, answer)
    status, headers, answer = c.raw("POST", "/v1/sessions", b"{}", {"Content-Type": "text/plain"})
    assert status == 400, answer
    # Parameters that name files of the server do not exist here.
    for extra in ({"host_tools": []}, {"storage": True}, {"audit": True}):
        refused(400, c.call, "POST", "/v1/sessions", extra, lawful=False)
    for path in ("/v1/sessions/%00", "/v1/sessions/%zz", "/v1/sessions/%ff", "/v1/sessions/%2"):
        status, headers, answer = c.raw("GET", path)
        assert status == 400, (path, status, answer)
    refused(404, c.call, "GET", "/v1/sessions/..%2f..%2fetc")
    s = c.open()
    refused(400, c.call, "GET", "/v1/sessions/%s/processes/abc" % s)
    refused(400, c.call, "GET", "/v1/sessions/%s/files/list" % s)
    c.call("DELETE", "/v1/sessions/" + s)


def test_events():
    c = client()
    s = c.open()
    events = c.events(s, "import sys\nprint('out ä \"')\nprint('err', file=sys.stderr)\n6 * 7")
    assert events[0][0] == "started" and events[-1][0] == "result"
    assert "".join(d["data"] for e, d in events if e == "stdout") == "out ä \"\n"
    assert "".join(d["data"] for e, d in events if e == "stderr") == "err\n"
    assert events[-1][1]["result"] == 42
    shown = c.call("GET", "/v1/sessions/%s/executions/%s" % (s, events[0][1]["execution"]))
    assert shown["state"] == "ended" and shown["outcome"] == "success"
    events = c.events(s, "import sys\nsys.stdout.buffer.write(b'a\\xff\\x00\\x1b\\x7fb')\n1/0")
    assert "".join(d["data"] for e, d in events if e == "stdout") == "a\ufffd\0\x1b\x7fb"
    assert events[-1][1]["error_kind"] == "exception"
    assert c.call("GET", "/v1/executions")["executions"][0]["outcome"] == "exception"
    # A problem after the stream has begun is its last event.
    events = c.events("sess_unknown", "1")
    assert events[-1][0] == "problem" and events[-1][1]["status"] == 404, events
    c.call("DELETE", "/v1/sessions/" + s)


def test_outputs_are_events():
    c = client()
    s = c.open()
    code = ("class Plot:\n def _repr_html_(self): return '<b>x</b>'\nPlot()")
    events = c.events(s, code)
    outputs = [d for e, d in events if e == "output"]
    assert outputs == events[-1][1]["outputs"] and any(o["mime"] == "text/html" for o in outputs), events
    c.call("DELETE", "/v1/sessions/" + s)


class Stream:
    """A request whose events are read while it runs."""

    def __init__(self, server, path, body, key=serving.KEY):
        self.c = server.connect()
        self.c.request("POST", path, json.dumps(body), {"Authorization": "Bearer " + key, "Accept": "text/event-stream",
                                                        "Content-Type": "application/json"})
        self.r = self.c.getresponse()
        assert self.r.status == 200, self.r.read()

    def next(self):
        block = b""
        while not block.endswith(b"\n\n"):
            line = self.r.readline()
            if not line:
                return None
            block += line
        return serving.parse_events(block.decode())[0]

    def until(self, name):
        while True:
            event = self.next()
            assert event, "the stream ended before " + name
            if event[0] == name:
                return event[1]

    def close(self):
        """As a client that is killed."""
        self.c.sock.shutdown(socket.SHUT_RDWR)
        self.r.close()
        self.c.close()


TOOLS = [{"name": "add", "description": "a sum", "args": {"a": "number", "b": "number"}},
         {"name": "buy", "args": {"what": "string"}, "approval": True}]


def test_tools_of_a_remote_client():
    c = client()
    s = c.open(tools=TOOLS)
    path = "/v1/sessions/%s/executions" % s
    stream = Stream(server, path, {"code": "add(a=2, b=3) * 10"})
    call = stream.until("tool_call")
    assert call["tool"] == "add" and call["args"] == {"a": 2, "b": 3} and call["session"] == s
    assert c.call("GET", "/v1/sessions/%s/questions" % s)["tool_calls"] == [call]
    answer = "/v1/sessions/%s/tool_calls/%s" % (s, call["id"])
    refused(400, c.call, "POST", answer, {})
    refused(400, c.call, "POST", answer, {"value": 1, "error": "x"})
    refused(404, c.call, "POST", "/v1/sessions/%s/tool_calls/cb_999" % s, {"value": 1})
    c.call("POST", answer, {"value": 5})
    refused(404, c.call, "POST", answer, {"value": 6})
    assert stream.until("result")["result"] == 50 and stream.next() is None
    # Without a stream the calls are listed, and an error of the tool reaches the code.
    other = server.client()
    result = []
    thread = threading.Thread(target=lambda: result.append(other.execute(s, "add(a=1, b=1)")))
    thread.start()
    calls = []
    while not calls and thread.is_alive():
        calls = c.call("GET", "/v1/questions")["tool_calls"]
    c.call("POST", "/v1/sessions/%s/tool_calls/%s" % (s, calls[0]["id"]), {"error": "no sums today"})
    thread.join()
    assert "no sums today" in result[0]["error"], result
    # Arguments are checked before the client hears of them.
    assert c.execute(s, "add(a='x', b=1)")["success"] is False
    c.call("DELETE", "/v1/sessions/" + s)


def test_approvals():
    c = client()
    s = c.open(tools=TOOLS)
    path = "/v1/sessions/%s/executions" % s
    stream = Stream(server, path, {"code": "buy(what='tea')"})
    approval = stream.until("approval")
    assert approval["session"] == s and approval["execution"], approval
    where = "/v1/sessions/%s/approvals/%s" % (s, approval["id"])
    assert [a["id"] for a in c.call("GET", "/v1/questions")["approvals"]] == [approval["id"]]
    c.call("POST", where, {"allow": True})
    call = stream.until("tool_call")
    c.call("POST", "/v1/sessions/%s/tool_calls/%s" % (s, call["id"]), {"value": "bought"})
    assert stream.until("result")["result"] == "bought"
    stream = Stream(server, path, {"code": "buy(what='coffee')"})
    approval = stream.until("approval")
    c.call("POST", "/v1/sessions/%s/approvals/%s" % (s, approval["id"]), {"allow": False, "reason": "too late"})
    assert stream.until("result")["success"] is False
    assert c.call("GET", "/v1/questions") == {"tool_calls": [], "approvals": []}
    c.call("DELETE", "/v1/sessions/" + s)


def test_cancel_and_leaving():
    c = client()
    s = c.open()
    path = "/v1/sessions/%s/executions" % s
    stream = Stream(server, path, {"code": "print('here', flush=True)\n" + HELD["python"]})
    execution = stream.until("started")["execution"]
    stream.until("stdout")
    refused(409, c.execute, s, "1")
    assert c.call("GET", path + "/" + execution)["state"] == "running"
    assert c.call("DELETE", path + "/" + execution) == {"cancelled": True}
    assert stream.until("result")["error_kind"] == "cancelled"
    # A client that goes away cancels what it has started.
    stream = Stream(server, path, {"code": "print('here', flush=True)\n" + HELD["python"]})
    execution = stream.until("started")["execution"]
    stream.until("stdout")
    stream.close()
    wait_ended(c, path + "/" + execution, "cancelled")
    assert c.execute(s, "1")["result"] == 1
    refused(404, c.call, "DELETE", path + "/exec_0")
    c.call("DELETE", "/v1/sessions/" + s)


def wait_ended(c, path, outcome):
    while c.call("GET", path)["state"] == "running":
        pass
    assert c.call("GET", path)["outcome"] == outcome, c.call("GET", path)


def test_a_plain_client_that_leaves_cancels():
    c = client()
    s = c.open()
    path = "/v1/sessions/%s/executions" % s
    other = server.connect()
    other.request("POST", path, json.dumps({"code": HELD["python"]}),
                  {"Authorization": "Bearer " + serving.KEY, "Content-Type": "application/json"})
    running = []
    while not running:
        running = [e for e in c.call("GET", path)["executions"] if e["state"] == "running"]
    other.sock.shutdown(socket.SHUT_RDWR)
    other.close()
    wait_ended(c, path + "/" + running[0]["execution"], "cancelled")
    c.call("DELETE", "/v1/sessions/" + s)


def test_idempotency():
    c = client()
    s = c.open()
    path = "/v1/sessions/%s/executions" % s
    code = "n = globals().get('n', 0) + 1\nn"
    first = c.call("POST", path, {"code": code}, Idempotency_Key="one")
    again = c.call("POST", path, {"code": code}, Idempotency_Key="one")
    assert first == again and first["result"] == 1
    events = c.call("POST", path, {"code": code}, Idempotency_Key="one", Accept="text/event-stream")
    assert events[-1] == ("result", first)
    assert c.call("POST", path, {"code": code}, Idempotency_Key="two")["result"] == 2
    refused(422, c.call, "POST", path, {"code": "1"}, Idempotency_Key="one")
    # What failed before it began may be sent again.
    refused(404, c.call, "POST", "/v1/sessions/sess_x/executions", {"code": "1"}, Idempotency_Key="three")
    refused(404, c.call, "POST", "/v1/sessions/sess_x/executions", {"code": "1"}, Idempotency_Key="three")
    # The connection is lost, the execution goes on, and the second request gets its result.
    stream = Stream(server, path, {"code": "1"})
    stream.until("result")
    held = {"code": HELD["python"] + "'went on'"}
    lost = server.connect()
    lost.request("POST", path, json.dumps(held), {"Authorization": "Bearer " + serving.KEY, "Idempotency-Key": "four",
                                                  "Content-Type": "application/json"})
    while not any(e["state"] == "running" for e in c.call("GET", path)["executions"]):
        pass
    lost.sock.shutdown(socket.SHUT_RDWR)
    lost.close()
    c.call("PUT", "/v1/sessions/%s/files?path=/tmp/go" % s, b"")
    assert c.call("POST", path, held, Idempotency_Key="four")["result"] == "went on"
    c.call("DELETE", "/v1/sessions/" + s)


def test_files():
    c = client()
    s = c.open()
    base = "/v1/sessions/" + s
    data = os.urandom(3 << 20)
    c.call("PUT", base + "/files?path=" + quote("/home/user/a b/ä.bin"), data)
    assert c.call("GET", base + "/files?path=" + quote("a b/ä.bin")) == data
    entries = c.call("GET", base + "/files/list?path=" + quote("/home/user/a b"))["entries"]
    assert [e["name"] for e in entries] == ["ä.bin"] and entries[0]["size"] == len(data)
    assert c.call("GET", base + "/files/stat?path=" + quote("a b/ä.bin"))["type"] == "file"
    c.call("PUT", base + "/files?path=empty", b"")
    assert c.call("GET", base + "/files?path=empty") == b""
    c.call("POST", base + "/files/directories", {"path": "/home/user/d/e", "parents": True})
    c.call("POST", base + "/files/move", {"from": "empty", "to": "d/e/f"})
    refused(404, c.call, "GET", base + "/files?path=empty")
    c.call("DELETE", base + "/files?path=d&recursive=true")
    refused(404, c.call, "GET", base + "/files/stat?path=d")
    refused(400, c.call, "DELETE", base + "/files?path=d&recursive=maybe")
    refused(400, c.call, "GET", base + "/files?path=" + quote("/home/user"))
    refused(400, c.call, "PUT", base + "/files", b"x")
    c.execute(s, "import os; os.symlink('/etc/passwd', 'link'); os.symlink('a b/ä.bin', 'inside')")
    assert c.call("GET", base + "/files?path=inside") == data
    for path in ("../../etc/passwd", "/etc/passwd", "link", "/home/user/../../../etc/shadow"):
        status, headers, body = c.raw("GET", base + "/files?path=" + quote(path))
        assert status >= 400 and b"root:" not in body, (path, status)
    assert c.raw("GET", base + "/files?path=a%00b")[0] == 400
    c.call("DELETE", base)


def test_ranges():
    c = client()
    s = c.open()
    where = "/v1/sessions/%s/files?path=r" % s
    c.call("PUT", where, b"0123456789")
    for header, status, body in (("bytes=2-4", 206, b"234"), ("bytes=7-", 206, b"789"), ("bytes=-3", 206, b"789"),
                                 ("bytes=0-99", 206, b"0123456789"), ("bytes=-99", 206, b"0123456789"),
                                 ("bytes=4-4", 206, b"4"), ("lines=1-2", 200, b"0123456789"),
                                 ("bytes=1-2,4-5", 200, b"0123456789"), ("bytes=x", 200, b"0123456789")):
        got = c.raw("GET", where, headers={"Range": header})
        assert (got[0], got[2]) == (status, body), (header, got)
    assert c.raw("GET", where, headers={"Range": "bytes=2-4"})[1]["Content-Range"] == "bytes 2-4/10"
    for header in ("bytes=10-", "bytes=5-4", "bytes=-0"):
        assert c.raw("GET", where, headers={"Range": header})[0] == 416, header
    status, headers, body = c.raw("HEAD", where)
    assert status == 200 and headers["Content-Length"] == "10" and body == b""
    c.call("DELETE", "/v1/sessions/" + s)


def tar_of(*entries):
    """A tar of (name, type, link) with a byte in each file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, link in entries:
            one = tarfile.TarInfo(name)
            one.type, one.linkname, one.size = kind, link, kind == tarfile.REGTYPE
            t.addfile(one, io.BytesIO(b"x"))
    return out.getvalue()


def test_tar_report():
    c = client()
    s = c.open()
    where = "/v1/sessions/%s/tar?path=in" % s
    skipped = [("disk", tarfile.BLKTYPE, "", "device"), ("tty", tarfile.CHRTYPE, "", "device"),
               ("pipe", tarfile.FIFOTYPE, "", "neither file, directory nor link"), ("/etc/x", tarfile.REGTYPE, "", "absolute path"),
               ("../y", tarfile.REGTYPE, "", "leads upwards (..)"), ("good", tarfile.REGTYPE, "", "duplicate"),
               ("hard", tarfile.LNKTYPE, "../../etc/passwd", "hard link to what is not a file of this archive"),
               ("out/z", tarfile.REGTYPE, "", "through a link or a file")]
    entries = [("good", tarfile.REGTYPE, ""), ("out", tarfile.SYMTYPE, "/etc")] + [one[:3] for one in skipped]
    report = c.call("PUT", where, tar_of(*entries))["report"]
    assert report["skipped"] == [{"path": n, "reason": why} for n, _, _, why in skipped], report
    assert (report["skipped_count"], report["files"], report["links"], report["bytes"]) == (len(skipped), 1, 1, 1), report
    many = c.call("PUT", where, tar_of(*[("f%d" % i, tarfile.FIFOTYPE, "") for i in range(1500)]))["report"]
    assert many["skipped_count"] == 1500 and len(many["skipped"]) == 1000, many["skipped_count"]
    # and the other way
    assert "Cordon-Skipped" not in c.raw("GET", where)[1]
    code = "import os; os.mkfifo('in/p\\x7f\\n\u00e9')"
    assert c.execute(s, code)["success"]
    status, headers, data = c.raw("GET", where)
    told = json.loads(headers["Cordon-Skipped"])
    assert told == {"skipped_count": 1, "skipped": [{"path": "p?\n\u00e9", "reason": "FIFO"}]}, told
    assert sorted(tarfile.open(fileobj=io.BytesIO(data)).getnames()) == ["good", "out"]
    c.execute(s, "for i in range(200): os.mkfifo('in/' + '\u00e9' * 100 + str(i))")
    header = c.raw("GET", where)[1]["Cordon-Skipped"]
    told = json.loads(header)
    assert told["skipped_count"] == 201 and 0 < len(told["skipped"]) < 201 and len(header) <= 2048, header
    c.call("DELETE", "/v1/sessions/" + s)


def test_tar_and_export():
    c = client()
    s, other = c.open(), c.open()
    for name in ("t/one", "t/two"):
        c.call("PUT", "/v1/sessions/%s/files?path=%s" % (s, name), name.encode())
    data = c.call("GET", "/v1/sessions/%s/tar?path=t" % s)
    names = sorted(os.path.basename(m.name) for m in tarfile.open(fileobj=io.BytesIO(data)).getmembers() if m.isfile())
    assert names == ["one", "two"], names
    c.call("PUT", "/v1/sessions/%s/tar?path=/home/user/u" % other, data)
    found = c.execute(other, "import os; sorted(f for _, _, fs in os.walk('/home/user/u') for f in fs)")["result"]
    assert found == ["one", "two"], found
    refused(400, c.call, "PUT", "/v1/sessions/%s/tar?path=u" % other, b"")
    saved = c.call("GET", "/v1/sessions/%s/export" % s)
    c.call("PUT", "/v1/sessions/%s/export" % other, saved)
    assert c.call("GET", "/v1/sessions/%s/files?path=t/one" % other) == b"t/one"
    status = c.raw("PUT", "/v1/sessions/%s/export" % other, b"no export")[0]
    assert 400 <= status < 500, status
    for one in (s, other):
        c.call("DELETE", "/v1/sessions/" + one)


def test_watches():
    c = client()
    s = c.open()
    base = "/v1/sessions/%s" % s
    watch = c.call("POST", base + "/watches", {"path": "/home/user"})["watch"]
    c.call("PUT", base + "/files?path=seen", b"1")
    changes = c.call("GET", base + "/watches/%d?wait_ms=20000" % watch)["changes"]
    assert any(change["path"].endswith("seen") for change in changes), changes
    c.call("DELETE", base + "/watches/%d" % watch)
    refused(404, c.call, "GET", base + "/watches/%d" % watch)
    c.call("DELETE", base)


def test_snapshots():
    c = client()
    s = c.open()
    base = "/v1/sessions/%s" % s
    c.call("PUT", base + "/files?path=v", b"1")
    assert c.call("POST", base + "/snapshots", {"name": "before"})["name"] == "before"
    c.call("PUT", base + "/files?path=v", b"2")
    c.call("POST", base + "/snapshots/before/restore")
    assert c.call("GET", base + "/files?path=v") == b"1"
    assert len(c.call("GET", base + "/snapshots")["snapshots"]) == 1
    c.call("DELETE", base + "/snapshots/before")
    refused(404, c.call, "POST", base + "/snapshots/before/restore")
    c.call("DELETE", base)


def test_contexts_and_commands():
    c = client()
    s = c.open(guest="python", languages=["python", "sh"])
    base = "/v1/sessions/%s" % s
    context = c.call("POST", base + "/contexts", {"language": "python", "context": "other"})["session"]
    assert c.execute(context, "y = 1\ny")["result"] == 1
    assert c.execute(s, "y")["success"] is False
    assert c.execute(s, "echo $((6*7))", language="sh")["stdout"] == "42\n"
    ran = c.call("POST", base + "/commands", {"command": "echo out; echo err >&2; exit 3"})
    assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 3)
    events = c.call("POST", base + "/commands", {"command": "echo streamed"}, Accept="text/event-stream")
    assert ("stdout", {"data": "streamed\n"}) in events
    process = c.call("POST", base + "/commands", {"command": "read x; echo got $x; sleep 1000", "background": True})["process"]
    assert c.call("POST", base + "/processes/%d/stdin" % process, {"data": "aGkK"})["written"] == 3
    text = ""
    while "got" not in text:
        text = c.call("GET", base + "/processes/%d/output?stream=stdout" % process)["data"]
        text = __import__("base64").b64decode(text).decode()
    assert text == "got hi\n"
    assert [p["state"] for p in c.call("GET", base + "/processes")["processes"]] == ["running"]
    refused(504, c.call, "GET", base + "/processes/%d?wait_ms=1" % process)
    c.call("POST", base + "/processes/%d/signal" % process, {"signal": "TERM"})
    assert c.call("GET", base + "/processes/%d?wait_ms=20000" % process)["exit_code"] == 143
    process = c.call("POST", base + "/commands", {"command": "sleep 1000", "background": True})["process"]
    c.call("DELETE", base + "/processes/%d" % process)
    assert c.call("GET", base + "/processes/%d?wait_ms=20000" % process)["exit_code"] == 137
    c.call("DELETE", base)


def test_run_once_and_pools():
    c = client()
    assert c.call("POST", "/v1/executions", {"guest": "python", "code": "6 * 7"})["result"] == 42
    assert c.call("POST", "/v1/executions", {"guest": "python", "code": "print(1)"}, Accept="text/event-stream")[-1][0] == "result"
    pool = c.call("POST", "/v1/pools", {"guest": "python", "size": 2})["pool"]
    assert c.call("POST", "/v1/pools/%s/executions" % pool, {"code": "1 + 1", "wait_ms": 20000})["result"] == 2
    s = c.call("POST", "/v1/pools/%s/sessions" % pool, {"wait_ms": 20000})["session"]
    assert c.call("GET", "/v1/pools/" + pool)["busy"] == 1
    assert c.call("GET", "/v1/pools") == {"pools": [pool]}
    assert c.execute(s, "3")["result"] == 3
    c.call("DELETE", "/v1/sessions/" + s)
    c.call("DELETE", "/v1/pools/" + pool)
    refused(409, c.call, "GET", "/v1/pools/" + pool)


def test_policies():
    c = client()
    checked = c.call("POST", "/v1/policies/check", {"level": "strict", "set": ["timeout_ms=5000"]})
    assert checked["valid"] and "5 s" in checked["explanation"]
    assert c.call("POST", "/v1/policies/check", {"policy": {"timeout": 1}})["valid"] is False
    assert c.call("POST", "/v1/policies/show", {"level": "strict"})["policy"]["level"] == "strict"
    assert "timeout_ms" in c.call("POST", "/v1/policies/diff", {"a": {"level": "strict"}, "b": {"level": "standard"}})["diff"]
    assert c.call("POST", "/v1/validate", {"guest": "python", "code": "1 +"})["valid"] is False
    assert c.call("GET", "/v1/doctor")
    assert c.call("GET", "/v1/version")["name"] == "cordon"


def test_a_unix_socket():
    folder = tempfile.mkdtemp(prefix="cordon-serve-")
    with Server("--socket", os.path.join(folder, "s", "serve.sock"), listen=False) as one:
        c = one.client()
        s = c.open()
        assert c.execute(s, "1 + 1")["result"] == 2
        stranger = Client(one, "cordon_" + "f" * 48)
        refused(401, stranger.call, "GET", "/v1/sessions")

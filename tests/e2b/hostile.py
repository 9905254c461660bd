"""What no client of theirs would send: each request ends with an answer or a close, and the server goes on."""
import base64
import json
import socket
import time

from server import frame

LIST, STAT, START = "process.Process/List", "filesystem.Filesystem/Stat", "process.Process/Start"


def error_of(messages):
    assert len(messages) == 1, messages
    return messages[0]["error"]["code"]


def test_envelopes_that_are_cut_or_too_long_or_too_many(s):
    with s.create() as b:
        good = json.dumps(b.start("true")).encode()
        for body in (b"", b"\0", b"\0\0\0\0", frame(good, length=len(good) + 1), frame(good, length=len(good) - 1), frame(good, length=0xffffffff),
                     frame(good, length=0), frame(good) + frame(good), frame(good) + b"x", frame(good, flags=2), frame(good, flags=0x80)):
            status, messages = b.stream(START, body)
            assert (status, error_of(messages)) == (200, "invalid_argument"), (body[:20], messages)
        status, messages = b.stream(START, frame(good, flags=1))
        assert error_of(messages) == "unimplemented"


def test_messages_that_are_no_messages(s):
    with s.create() as b:
        for body in (b"{", b"[]", b"1", b'"x"', b'{"a":1,"a":2}', b"\xff\xfe", b'{"process":' * 200, b"null"):
            status, answer = b.unary(STAT, body)
            assert (status, answer["code"]) == (400, "invalid_argument"), (body[:20], answer)
        assert b.unary(LIST, b"")[0] == 200
        assert b.unary(LIST, {}, **{"Content-Type": "text/plain"})[0] == 400
        assert b.unary(LIST, {}, **{"Content-Type": "application/proto"})[0] == 400
        assert b.unary(LIST, {}, **{"Content-Encoding": "gzip"})[0] == 501


def test_unknown_fields_are_left_alone_and_wrong_types_refused(s):
    with s.create() as b:
        assert b.unary(STAT, {"path": "/tmp", "later": {"x": [1]}})[0] == 200
        for message in ({"path": 7}, {"path": ["/tmp"]}, {"path": {}}):
            assert b.unary(STAT, message)[0] == 400
        for process in ({}, {"cmd": 1}, {"cmd": "", "args": []}, {"cmd": "x", "args": "y"}, {"cmd": "x", "args": [1]}, {"cmd": "x", "envs": {"a": 1}},
                        {"cmd": "x", "envs": []}, {"cmd": "x", "envs": {"a=b": "c"}}):
            assert error_of(b.stream(START, {"process": process})[1]) == "invalid_argument", process
        for pid in ({}, {"pid": -1}, {"pid": "1"}, {"pid": 2 ** 40}, {"pid": None}):
            assert b.unary("process.Process/SendSignal", {"process": pid, "signal": "SIGNAL_SIGKILL"})[0] == 400, pid
        assert b.unary("process.Process/SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_SIGKILL"})[0] == 404
        assert b.unary("process.Process/SendInput", {"process": {"tag": "none"}, "input": {"stdin": "eA=="}})[0] == 404


def test_input_that_is_no_base64(s):
    with s.create() as b:
        stream = b.open_stream(START, frame({**b.start("cat"), "stdin": True}))
        pid = read_start(stream)
        for text in ("***", "a", "YQ", 5, None, ["YQ=="]):
            status, answer = b.unary("process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": text}})
            assert (status, answer["code"]) == (400, "invalid_argument"), text
        assert b.unary("process.Process/SendInput", {"process": {"pid": pid}, "input": {"pty": "YQ=="}})[0] == 400
        assert b.unary("process.Process/Update", {"process": {"pid": pid}, "pty": {"size": {"rows": 10, "cols": 10}}})[0] == 400
        assert b.unary("process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "YQo="}})[0] == 200
        stream.close()


def read_start(stream):
    """The pid in the first message of a stream."""
    data = b""
    while b'"pid":' not in data or data.rstrip()[-1:] not in b"}":
        piece = stream.recv(4096)
        assert piece, data
        data += piece
    return int(data.split(b'"pid":', 1)[1].split(b"}", 1)[0])


def test_a_client_that_leaves_does_not_end_its_process(s):
    with s.create() as b:
        stream = b.open_stream(START, frame(b.start("sleep 60")))
        pid = read_start(stream)
        stream.close()
        listed = [p["pid"] for p in b.unary(LIST, {})[1]["processes"]]
        assert listed == [pid]
        assert b.unary("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGTERM"})[0] == 200
        until(lambda: not b.unary(LIST, {})[1]["processes"])


def test_a_client_that_does_not_read_delays_nobody_else(s):
    with s.create() as b:
        streams = [b.open_stream(START, frame(b.start("yes | head -c 50000000"))) for _ in range(4)]
        assert b.run("echo quick") == (b"quick\n", b"", 0)
        assert len(b.unary(LIST, {})[1]["processes"]) == 4
        for stream in streams:
            stream.close()
        until(lambda: not b.unary(LIST, {})[1]["processes"])
    with s.create() as b:  # and a sandbox with such clients can be ended
        stream = b.open_stream(START, frame(b.start("yes")))
        read_start(stream)
        code = b.open_stream("execute", json.dumps({"code": "while True: print('x' * 1000)"}).encode(), **{"Content-Type": "application/json"})
        read_until(code, b"xxx")
    stream.close()
    code.close()


def test_half_closed_streams(s):
    with s.create() as b:
        stream = b.open_stream(START, frame(b.start("echo half")))
        stream.shutdown(socket.SHUT_WR)
        data = b""
        while True:
            piece = stream.recv(4096)
            if not piece:
                break
            data += piece
        stream.close()
        assert b.run("echo on")[0] == b"on\n"


def test_a_body_that_never_comes(s):
    with s.create() as b:
        stream = b.open_stream(START, b"", **{"Content-Length": "1000"})
        assert b.run("echo on")[0] == b"on\n"
        stream.close()


def test_clients_that_leave_while_code_runs(s):
    with s.create() as b:
        head = {**b.headers, "Content-Type": "application/json"}
        for _ in range(3):
            body = json.dumps({"code": "import time; time.sleep(60)"}).encode()
            stream = b.open_stream("execute", body, **{"Content-Type": "application/json"})
            assert b"number_of_executions" in read_until(stream, b"number_of_executions")
            stream.close()
        status, _, data = s.request("POST", "/execute", {"code": "6 * 7"}, head)
        assert status == 200 and b'"text":"42"' in data.replace(b" ", b""), data


def read_until(stream, word):
    data = b""
    while word not in data:
        piece = stream.recv(4096)
        assert piece, data
        data += piece
    return data


def test_tokens_of_others_and_of_nobody(s):
    with s.create() as b, s.create() as other:
        for headers in ({}, {"E2b-Sandbox-Id": b.id}, {"X-Access-Token": b.token}, {**b.headers, "X-Access-Token": other.token},
                        {**b.headers, "X-Access-Token": b.token[:-1]}, {**b.headers, "X-Access-Token": ""}, {"E2b-Sandbox-Id": "i" + "0" * 22, "X-Access-Token": b.token},
                        {"E2b-Sandbox-Id": "x" * 500, "X-Access-Token": b.token}, {"X-API-Key": s.key, "E2b-Sandbox-Id": b.id}):
            for path in ("/health", "/contexts", "/files?path=/tmp/x"):
                assert s.request("GET", path, None, headers)[0] == 401, (path, headers)
        assert s.request("GET", "/health", None, b.headers)[0] == 204
        for path in ("/v2/sandboxes", "/sandboxes", "/sandboxes/" + b.id, "/sandboxes/%s/metrics" % b.id):
            assert s.control("GET", path, key="e2b_0123")[0] == 401
            assert s.request("GET", path, None, b.headers)[0] == 401  # a sandbox's token opens nothing else
    # Of one that is gone the token is still known to be right, of one that never was it is not: both tell nothing about others.
    assert s.request("GET", "/health", None, b.headers)[0] == 502


def test_sandboxes_of_another_key(s):
    with s.create(metadata={"whose": "mine"}) as b:
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/timeout"), ("POST", "/connect"), ("POST", "/pause"), ("POST", "/fork"), ("GET", "/metrics")):
            mine = s.control(method, "/sandboxes/i0000000000000000000000" + path, {"timeout": 5} if method == "POST" else None, key=s.other)
            theirs = s.control(method, "/sandboxes/" + b.id + path, {"timeout": 5} if method == "POST" else None, key=s.other)
            assert mine[0] == theirs[0] == 404, (method, path, mine, theirs)
            assert mine[1]["message"].replace("i0000000000000000000000", b.id) == theirs[1]["message"]
        assert s.control("GET", "/v2/sandboxes", key=s.other)[1] == []
        assert s.request("GET", "/health", None, b.headers)[0] == 204


def test_bodies_of_the_control_plane(s):
    def create(body):
        status, _, data = s.request("POST", "/v2/sandboxes", body, {"X-API-Key": s.key, "Content-Type": "application/json"})
        return status
    for body in (b"", b"{", b"[]", b"{}", b'{"templateID":5}', b'{"templateID":"base","timeout":-1}', b'{"templateID":"base","timeout":1e9}',
                 b'{"templateID":"base","timeout":999999999}', b'{"templateID":"base","metadata":[]}', b'{"templateID":"base","metadata":{"a":1}}',
                 b'{"templateID":"base","envVars":{"A=B":"c"}}', b'{"templateID":"base","envVars":{"":"c"}}'):
        assert create(body) == 400, body
    for name in ("nope", "../narrow", "/etc/passwd", "a/b", ".", "", "narrow.json", "x" * 5000):
        assert create(json.dumps({"templateID": name}).encode()) == 404, name
    assert create(b'{"templateID":"base","metadata":{"a":"' + b"x" * 100000 + b'"}}') == 413
    for query in ("limit=0", "limit=x", "limit=1000", "state=gone", "order=up", "startedAfter=yesterday", "metadata=a%25zz=b"):
        assert s.control("GET", "/v2/sandboxes?" + query)[0] == 400, query


def test_paths_that_lead_out(s):
    with s.create() as b:
        b.run("ln -s /etc/passwd link; ln -s / root; ln -s .. up; mkfifo fifo")
        for path in ("/etc/passwd", "../../etc/passwd", "/home/user/../../etc/passwd", "link", "root/etc/passwd", "up/../etc/passwd", "/proc/self/environ",
                     "/proc/1/root/etc/passwd", "/dev/zero", "fifo", "a%00b", "x" * 20000):
            status, _, data = s.request("GET", "/files?path=" + path, None, b.headers)
            assert 400 <= status < 500, (path, status, data[:100])
            assert b"root:" not in data
        for path in ("/etc/x", "/proc/x", "../../x", "root/tmp2/x", "/usr/bin/x"):
            status, _, data = s.request("POST", "/files?path=" + path, b"x", {**b.headers, "Content-Type": "application/octet-stream"})
            assert 400 <= status < 600, (path, status, data)
            assert status != 200, path
        for method in ("Stat", "ListDir", "Remove", "MakeDir"):
            status, answer = b.unary("filesystem.Filesystem/" + method, {"path": "/etc/../proc/1/cwd/x"})
            assert status in (400, 403, 404, 500) or method == "Remove", (method, status, answer)
        assert b.run("cat /etc/passwd | head -c 5")[2] == 0


def upload(b, body, kind, path="?path=x", **headers):
    return b.server.request("POST", "/files" + path, body, {**b.headers, "Content-Type": kind, **headers})[0]


def test_multipart_that_is_malformed(s):
    with s.create() as b:
        part = b'--B\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\ndata\r\n'
        kind = "multipart/form-data; boundary=B"
        assert upload(b, part + b"--B--\r\n", kind) == 200
        for body in (b"", b"--B", b"--B\r\n", part, part + b"--C--", b"data" + part + b"--B--", part.replace(b"\r\n\r\n", b"\r\n"), b"--B\r\n" + b"a" * 40000):
            assert upload(b, body, kind) == 400, body[:60]
        assert upload(b, b"--B--\r\n", kind) == 200  # no file at all
        for bad in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "x" * 71, "text/plain"):
            assert upload(b, part + b"--B--", bad) == 400, bad
        assert upload(b, part.replace(b'; filename="x"', b"") + b"--B--\r\n", kind, path="") == 400
        many = b"".join(part.replace(b'"x"', b'"m/%d"' % i) for i in range(1200)) + b"--B--\r\n"
        assert upload(b, many, kind, path="") == 429


def test_gzip_that_is_none_or_a_bomb(s):
    import gzip
    with s.create(templateID="narrow") as b:
        kind = "application/octet-stream"
        packed = gzip.compress(b"hello")
        assert upload(b, packed, kind, **{"Content-Encoding": "gzip"}) == 200
        assert s.request("GET", "/files?path=x", None, b.headers)[2] == b"hello"
        for bad in (b"", b"no", packed[:-4], packed + b"more"):
            assert upload(b, bad, kind, **{"Content-Encoding": "gzip"}) == 400, bad
        assert upload(b, packed, kind, **{"Content-Encoding": "br"}) == 501
        bomb = gzip.compress(bytes(200 << 20))
        assert upload(b, bomb, kind, **{"Content-Encoding": "gzip"}) in (429, 507)
        assert s.request("GET", "/files?path=x", None, b.headers)[2] == b"hello"


def test_bodies_that_are_huge(s):
    with s.create() as b:
        for path, size in ((STAT, 9 << 20), (START, 1 << 31), ("execute", 9 << 20), ("files?path=x", 1 << 40)):
            stream = b.open_stream(path, b"x", **{"Content-Length": str(size), "Content-Type": "application/json"})
            assert b" 413 " in read_until(stream, b"\r\n").split(b"\r\n")[0] + b" ", path
            stream.close()
        assert b.run("echo on")[0] == b"on\n"


def test_watchers(s):
    with s.create() as b:
        create, events, remove = ("filesystem.Filesystem/" + m for m in ("CreateWatcher", "GetWatcherEvents", "RemoveWatcher"))
        assert b.unary(create, {"path": "nowhere"})[0] == 404
        status, w = b.unary(create, {"path": ".", "recursive": True})
        assert status == 200
        assert b.unary(events, {"watcherId": w["watcherId"]}) == (200, {"events": []})
        b.run("echo 1 > f; mkdir d; rm f")
        seen = []
        until(lambda: seen.extend(b.unary(events, {"watcherId": w["watcherId"]})[1]["events"]) or
              any(e["type"] == "EVENT_TYPE_REMOVE" for e in seen))
        assert {(e["name"], e["type"]) for e in seen} >= {("f", "EVENT_TYPE_CREATE"), ("f", "EVENT_TYPE_WRITE"), ("d", "EVENT_TYPE_CREATE")}, seen
        assert b.unary(remove, {"watcherId": w["watcherId"]}) == (200, {})
        for call in (events, remove):
            assert b.unary(call, {"watcherId": w["watcherId"]})[0] == 404
            assert b.unary(call, {"watcherId": 1})[0] == 404
        opened = [b.unary(create, {"path": "."})[0] for _ in range(20)]
        assert opened.count(200) == 16 and opened[-1] == 429, opened


def test_streamed_input(s):
    with s.create() as b:
        stream = b.open_stream(START, frame({**b.start("cat; echo over"), "stdin": True, "tag": "t"}))
        read_start(stream)
        data = lambda text: frame({"data": {"input": {"stdin": base64.b64encode(text).decode()}}})
        body = frame({"start": {"process": {"tag": "t"}}}) + data(b"one ") + frame({"keepalive": {}}) + data(b"two\n")
        assert b.stream("process.Process/StreamInput", body) == (200, [{}, {}])
        assert error_of(b.stream("process.Process/StreamInput", data(b"first"))[1]) == "invalid_argument"
        assert b.unary("process.Process/CloseStdin", {"process": {"tag": "t"}})[0] == 200
        seen = b"".join(base64.b64decode(p.split(b'"')[0]) for p in read_until(stream, b'"exitCode"').split(b'"stdout":"')[1:])
        assert seen == b"one two\nover\n", seen
        stream.close()


def test_contexts_and_executions(s):
    with s.create() as b:
        head = {**b.headers, "Content-Type": "application/json"}
        post = lambda path, body: s.request("POST", path, body, head)[0]
        for body in (b"", b"{", b"[]", b"{}", b'{"code":1}', b'{"code":"1","context_id":5}', b'{"code":"1","env_vars":{"A":1}}', b'{"code":"1","env_vars":{"A B":"1"}}',
                     b'{"code":"1","language":"r","context_id":"x"}'):
            assert post("/execute", body) == 400, body
        assert post("/execute", b'{"code":"1","context_id":"none"}') == 404
        assert post("/execute", b'{"code":"1","language":"cobol"}') == 501
        for body in (b'{"cwd":"/nowhere"}', b'{"cwd":7}', b'{"language":[]}'):
            assert post("/contexts", body) == 400, body
        assert s.request("DELETE", "/contexts/none", None, head)[0] == 404
        made = [post("/contexts", b"{}") for _ in range(40)]
        assert made.count(200) <= 32 and made[-1] == 429, made


def test_many_at_once(s):
    import threading
    wrong = []

    def one(i):
        try:
            with s.create(metadata={"n": str(i)}) as b:
                assert b.run("echo %d" % i) == (b"%d\n" % i, b"", 0)
        except Exception as e:
            wrong.append(repr(e))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong


def test_kill_at_any_moment(s):
    for i in range(6):
        b = s.create()
        last = {"Connection": "close"}  # what comes too late is answered, and then the connection ends too
        streams = [b.open_stream(START, frame(b.start("yes | head -c 1000000; sleep 5")), **last),
                   b.open_stream("execute", json.dumps({"code": "while True: pass"}).encode(), **{"Content-Type": "application/json", **last}),
                   b.open_stream("filesystem.Filesystem/WatchDir", frame({"path": "."}), **last)]
        if i % 2:
            read_start(streams[0])
        assert s.control("DELETE", "/sandboxes/" + b.id)[0] == 204
        for stream in streams:  # each ends
            stream.settimeout(30)
            while stream.recv(65536):
                pass
            stream.close()
        assert s.request("GET", "/health", None, b.headers)[0] == 502


def until(fn):
    for _ in range(1500):
        if fn():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


ECHO = """exec python3 -uc 'import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"inside " + self.path.encode())
http.server.HTTPServer(("127.0.0.1", 3000), H).serve_forever()' """


def test_names_of_ports(s):
    """A name of a port leads to its sandbox or nowhere; its origin is foreign to everything else."""
    with s.create(templateID="web") as b, s.create(templateID="web") as other:
        stream = b.open_stream(START, frame(b.start(ECHO)))
        name = "3000-%s.localhost" % b.id
        token = {"X-Access-Token": b.token}

        def ask(path, host=name, **headers):
            return s.request("GET", path, None, {"Host": host, **token, **{k.replace("_", "-"): v for k, v in headers.items()}})

        until(lambda: ask("/")[0] == 200)
        for path in ("/", "/v1/sessions", "/console/api.js", "/health", "/v1/openapi.json", "/sandboxes", "/mcp"):
            assert ask(path, Authorization="Bearer " + s.key)[2] == b"inside " + path.encode()
            assert ask(path, name + ":8123")[2] == b"inside " + path.encode()
        # Names that are none of ours, or of nobody.
        for host in ("3000-%s.evil.example" % b.id, "3000-%s" % b.id, "3000-%s.localhost.evil.example" % b.id, "a.3000-%s.localhost" % b.id,
                     "-%s.localhost" % b.id, "03000-%s.localhost" % b.id, "3000-.localhost", "3000-%s.localhost:x" % b.id):
            assert ask("/v1/version", host, X_API_Key=s.key)[0] == 403, host
        for host in ("3000-i%s.localhost" % ("0" * 22), "3000-%s.localhost" % other.id, "3000-%s.localhost" % b.id.upper(), "3000-%s.localhost" % ("x" * 60)):
            assert ask("/", host)[0] in (401, 403, 404), host
        assert ask("/", "49983-%s.localhost" % b.id)[0] == ask("/health", "49999-%s.localhost" % b.id)[0] == 404
        assert ask("/", "80-%s.localhost" % b.id)[0] == 403
        # Origins.
        own = "http://" + name
        assert ask("/", Origin=own)[0] == 200
        for origin in ("http://evil.example", "http://3000-%s.localhost" % other.id, "http://3001-%s.localhost" % b.id, "null", own + ".evil.example"):
            assert ask("/", Origin=origin)[0] == 403, origin
        for path in ("/v1/version", "/", "/v2/sandboxes", "/mcp"):
            assert s.request("GET", path, None, {"X-API-Key": s.key, "Origin": own})[0] == 403, path
        # Tokens, and headers instead of a name.
        for wrong in ("", "x", other.token, b.token + "0"):
            assert s.request("GET", "/", None, {"Host": name, "X-Access-Token": wrong})[0] == 401
        assert s.request("GET", "/", None, {"Host": name, "X-API-Key": s.key})[0] == 401
        assert s.request("GET", "/health", None, {**b.headers, "E2b-Sandbox-Port": "3000"})[2] == b"inside /health"
        assert s.request("GET", "/health", None, {**b.headers, "E2b-Sandbox-Port": "49983"})[0] == 204
        assert s.request("GET", "/", None, {**b.headers, "E2b-Sandbox-Port": "3000", "Sec-Fetch-Dest": "document"})[0] == 403
        for port in ("0", "65536", "99999999999", "-1", "x", "3000 "):
            assert s.request("GET", "/health", None, {**b.headers, "E2b-Sandbox-Port": port})[0] in (200, 204, 403), port
        stream.close()


# Accepts connections, answers none, and says how many it holds.
KEEPER = """exec python3 -uc 'import os, socket
l, held = socket.create_server(("", 3000)), []
while True:
    open("/tmp/new", "w").write(str(len(held)))
    os.rename("/tmp/new", "/tmp/held")
    held.append(l.accept())' """


def test_connections_to_ports_end_with_the_sandbox(s):
    with s.create(templateID="web") as b:
        stream = b.open_stream(START, frame(b.start(KEEPER)))
        until(lambda: b.run("cat /tmp/held")[0] == b"0")
        name = "3000-%s.localhost" % b.id
        held = []
        for _ in range(8):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=60)
            c.sendall(("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nX-Access-Token: %s\r\n\r\n" % (name, b.token)).encode())
            held.append(c)
        until(lambda: b.run("cat /tmp/held")[0] == b"8")  # what comes after the end is answered in another way
        assert s.control("DELETE", "/sandboxes/" + b.id)[0] == 204
        for c in held:
            assert c.recv(100).startswith(b"HTTP/1.1 502")
            c.close()
        stream.close()

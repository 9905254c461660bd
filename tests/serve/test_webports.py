"""Ports of a sandbox through the server: /v1/sessions/{session}/ports, and what a hostile server there may do."""
import base64
import contextlib
import hashlib
import http.client
import os
import socket
import ssl
import tempfile

from driver import ROOT
from serving import KEY, Server, refused
from test_remote import certificate

GUEST = open(os.path.join(ROOT, "tests", "serve", "hostile_server.py"), "rb").read()
_server = None


def server():
    global _server
    if _server is None or _server.p.poll() is not None:
        _server = Server()
    return _server


def reset():
    global _server
    if _server:
        _server.stop()
    _server = None


def output(c, s, p):
    data = c.call("GET", "/v1/sessions/%s/processes/%d/output?stream=stdout" % (s, p))["data"]
    return base64.b64decode(data).decode()


def wait_output(c, s, p, word):
    """Each look is a request, so this does not spin; the test has a time limit."""
    while word not in output(c, s, p):
        refused(504, c.call, "GET", "/v1/sessions/%s/processes/%d?wait_ms=20" % (s, p))  # it still runs


class Guest:
    """A session in which the hostile server runs."""

    def __init__(self, of, ports=(8000, "8001-8010")):
        self.server, self.c = of, of.client()
        self.session = self.c.open(guest="python", languages=["python", "sh"],
                                   policy={"expose": list(ports), "timeout_ms": None, "processes": 200})
        self.at = "/v1/sessions/%s" % self.session
        self.port = self.at + "/ports/8000"
        self.c.call("PUT", self.at + "/files?path=server.py", GUEST)
        self.p = self.c.call("POST", self.at + "/commands", {"command": "exec python3 -u server.py", "background": True})["process"]
        self.wait("ready")

    def wait(self, word):
        wait_output(self.c, self.session, self.p, word)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers as a list, body; on a connection of its own."""
        c = self.server.connect()
        c.request(method, self.port + path, body, {"Authorization": "Bearer " + KEY, **(headers or {})})
        r = c.getresponse()
        return r.status, r.getheaders(), r.read()

    def open(self, request):
        """A socket on which these bytes were sent."""
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        s.sendall(request)
        return s

    def head(self, method, path, *fields):
        return "\r\n".join(["%s %s%s HTTP/1.1" % (method, self.port, path), "Host: 127.0.0.1", "Authorization: Bearer " + KEY,
                            *fields, "", ""]).encode()


@contextlib.contextmanager
def running(of=None, **options):
    g = Guest(of or server(), **options)
    try:
        yield g
    finally:
        g.c.call("DELETE", g.at)


def raw(text):
    return "/raw?" + base64.urlsafe_b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def read_all(s):
    data = b""
    while True:
        try:
            more = s.recv(1 << 16)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def test_resources():
    with running() as g:
        c = g.c
        assert c.call("GET", g.at + "/ports") == {"ports": []}
        a = c.call("PUT", g.at + "/ports/8000")
        assert a == {"port": 8000, "path": g.port + "/", "connections": 0}, a
        assert c.call("PUT", g.at + "/ports/8000") == a
        assert c.call("GET", g.at + "/ports") == {"ports": [a]}
        assert g.ask("GET", "/x")[0] == 200
        c.call("DELETE", g.at + "/ports/8000")
        assert c.call("GET", g.at + "/ports") == {"ports": []}
        assert g.ask("GET", "/x")[0] == 200  # a request opens it, too
        assert [p["port"] for p in c.call("GET", g.at + "/ports")["ports"]] == [8000]
        refused(404, c.call, "DELETE", g.at + "/ports/8001")
        assert "expose+=9000" in refused(403, c.call, "PUT", g.at + "/ports/9000").body["detail"]
        assert "expose+=9000" in refused(403, c.call, "GET", g.at + "/ports/9000/").body["detail"]
        for bad in ("0", "65536", "x", "-1", "8000x"):
            refused(400, c.call, "GET", g.at + "/ports/%s/" % bad)
        refused(405, c.call, "GET", g.at + "/ports/8000")
        assert "nothing listens" in refused(502, c.call, "GET", g.at + "/ports/8001/").body["detail"]


def test_who_may():
    with running() as g:
        c = g.c
        other = c.call("POST", "/v1/keys", {"name": "ports"})["key"]
        with contextlib.ExitStack() as end:
            end.callback(c.call, "DELETE", "/v1/keys/ports")
            for method, path in (("GET", "/ports"), ("PUT", "/ports/8000"), ("DELETE", "/ports/8000"), ("GET", "/ports/8000/")):
                refused(404, server().client(other).call, method, g.at + path)
                assert server().client("cordon_" + "0" * 48).raw(method, g.at + path)[0] == 401
            # The only key that a browser could send by itself is none.
            s = g.open(g.head("GET", "/x").replace(b"Authorization", b"X-Nothing"))
            assert s.recv(100).startswith(b"HTTP/1.1 401")
            s.close()


def test_what_the_server_in_the_sandbox_sees():
    secret = {"X-API-Key": KEY, "Cookie": "session=1", "X-Access-Token": "t", "E2B-Traffic-Access-Token": "t", "Referer": "http://127.0.0.1/",
              "Proxy-Authorization": "Basic eA==", "X-Forwarded-For": "1.2.3.4", "TE": "trailers", "X-Hop": "1",
              "Connection": "x-hop", "Keep-Alive": "1", "Cordon-Timeout": "9"}
    with running() as g:
        status, _, seen = g.ask("GET", "/a%20b/%2e%2e/c?x=1&y=a+b%2B&&z=&w&=v", headers={"X-One": "one", "Accept": "text/html", **secret})
        lines = seen.decode().split("\r\n")
        assert status == 200 and lines[0] == "GET /a%20b/%2e%2e/c?x=1&y=a+b%2B&&z=&w&=v HTTP/1.1", lines
        names = [line.split(":")[0] for line in lines[1:]]
        assert sorted(names) == ["Accept", "Accept-Encoding", "Connection", "Host", "X-Forwarded-Prefix", "X-Forwarded-Proto", "X-One"], lines
        assert "Host: localhost:8000" in lines and "Connection: close" in lines and "X-Forwarded-Prefix: " + g.port in lines, lines
        assert KEY not in seen.decode() and "1.2.3.4" not in seen.decode()
        assert g.ask("GET", "")[0] == 405 and g.ask("GET", "/")[2].startswith(b"GET / HTTP/1.1\r\n")
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
            assert g.ask(method, "/x", b"")[2].startswith(method.encode() + b" /x HTTP/1.1\r\n")
        assert g.ask("TRACE", "/x")[0] == 501
        # What no client sends: none of it becomes a line of its own.
        for field in ("X-Odd\x01: 1", "X-Odd: a\x01b", "X Odd: 1", "X(Odd): 1"):
            s = g.open(g.head("GET", "/x", field, "Connection: close"))
            got = read_all(s)
            assert got.startswith(b"HTTP/1.1 4") or b"X-Odd" not in got, got
            s.close()


def test_what_a_client_gets():
    fields = ["Content-Type: text/html", "Set-Cookie: a=b", "Set-Cookie2: a=b", "Service-Worker-Allowed: /", "Clear-Site-Data: *",
              "Strict-Transport-Security: max-age=1", "Access-Control-Allow-Origin: *", "WWW-Authenticate: Basic realm=x", "Alt-Svc: h2=\"x\"",
              "Content-Security-Policy: script-src *", "X-Content-Type-Options: off", "X-Frame-Options: ALLOW", "Refresh: 0;url=/", "Link: </x>; rel=preload",
              "Cache-Control: public, max-age=99999", "Cordon-Notice: lie", "Cordon-Execution: lie", "X-Accel-Redirect: /etc/passwd", "Keep-Alive: x",
              "Connection: X-Gone", "X-Gone: 1", "Server: guest", "Content-Location: /v1/keys", "Report-To: {}", "SourceMap: /x", "Via: 1.1 x",
              "ETag: \"1\"", "X-Total: 7", "Vary: Accept", "Content-Language: en", "Retry-After: 3"]
    with running() as g:
        status, headers, body = g.ask("GET", raw("HTTP/1.1 203 Fine\r\n%s\r\nContent-Length: 2\r\n\r\nhi" % "\r\n".join(fields)))
        got = {}
        for k, v in headers:
            assert k.lower() not in got, "%s twice" % k
            got[k.lower()] = v
        got.pop("date"), got.pop("connection", None)
        assert status == 203 and body == b"hi" and got == {
            "content-type": "text/html", "etag": "\"1\"", "x-total": "7", "vary": "Accept", "content-language": "en", "retry-after": "3",
            "content-length": "2", "cache-control": "no-store", "x-content-type-options": "nosniff", "x-frame-options": "DENY",
            "content-security-policy": "sandbox; default-src 'none'", "referrer-policy": "no-referrer",
            "cross-origin-resource-policy": "same-origin"}, got


def test_redirections_stay_in_the_port():
    rows = {"/a?b=c#d": "/a?b=c#d", "http://localhost:8000/a": "/a", "http://127.0.0.1:8000": "/", "/": "/",
            "//evil.example/": None, "http://evil.example/": None, "http://localhost:8000@evil.example/": None, "/../../../keys": None,
            "/%2e%2e/%2E%2e/x": None, "/a/..": None, "\\\\evil": None, "/\\evil": None, "javascript:alert(1)": None, "a": None, "?x": None,
            "/a?x=../..": "/a?x=../..", "/..%2f": None, "http://localhost:80000/": None, "": None}
    with running() as g:
        for location, want in rows.items():
            status, headers, _ = g.ask("GET", raw("HTTP/1.1 307 Go\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % location))
            got = dict(headers).get("Location")
            assert status == 307 and got == (None if want is None else g.port + want), (location, got)


def test_pages_are_not_shown():
    with running() as g:
        for use in ("document", "iframe", "script", "style", "worker", "serviceworker", "object", "embed", "image"):
            status, _, body = g.ask("GET", "/x", headers={"Sec-Fetch-Dest": use})
            assert status == 403 and b"name of the port" in body, body
        assert g.ask("GET", "/x", headers={"Service-Worker": "script"})[0] == 403
        assert g.ask("GET", "/x", headers={"Sec-Fetch-Dest": "empty"})[0] == 200
        assert g.ask("GET", "/x", headers={"Origin": "http://evil.example"})[0] == 403
        assert g.ask("GET", "/x", headers={"Origin": "null"})[0] == 403


def test_bodies():
    data = os.urandom(1 << 20) * 24
    want = b"%d %s" % (len(data), hashlib.sha256(data).hexdigest().encode())
    with running() as g:
        assert g.ask("POST", "/digest", data)[2] == want
        assert g.ask("POST", "/digest", (data[i:i + 999983] for i in range(0, len(data), 999983)))[2] == want  # in chunks
        assert g.ask("PUT", "/digest", b"x")[2].startswith(b"1 ")
        # An answer before the body was read, and one that is as long as the request.
        assert g.ask("POST", raw("HTTP/1.1 413 No\r\nContent-Length: 5\r\n\r\nearly"), data)[::2] == (413, b"early")
        big = "x" * 3000
        assert g.ask("POST", raw("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n" + big), data)[::2] == (200, big.encode())
        # Nothing of a body that must not be there.
        for status in (204, 304):
            code, headers, body = g.ask("GET", raw("HTTP/1.1 %d X\r\nETag: \"1\"\r\n\r\nbody" % status))
            assert (code, body) == (status, b"") and dict(headers)["ETag"] == '"1"'
        code, headers, body = g.ask("HEAD", raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"))
        assert (code, body) == (200, b"") and dict(headers)["Content-Length"] == "7", headers
        assert g.ask("GET", raw("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nto the end"))[2] == b"to the end"
        chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"
        code, headers, body = g.ask("GET", raw(chunks))
        assert body == b"abcde" and "X-Trailer" not in dict(headers)


def test_answers_arrive_while_they_are_made():
    with running() as g:
        c = server().connect()
        c.request("GET", g.port + "/steps", headers={"Authorization": "Bearer " + KEY})
        r = c.getresponse()
        for i in range(3):
            assert r.read1(1000) == b"data: %d\n\n" % i
            assert g.ask("GET", "/turn")[0] == 200
        assert r.read() == b""


def test_hostile_answers():
    broken = ["\n", "\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 99 X\r\n\r\n", "HTTP/1.1 600 X\r\n\r\n",
              "HTTP/1.1 200 OK\nX: y\n\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
              "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
              "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
              "HTTP/1.1 200 OK\r\n" + "X: y\r\n" * 101 + "\r\n", "HTTP/1.1 200 OK\r\nX: " + "y" * 20000 + "\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
              "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n" * 20]
    cut = ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"]
    with running() as g:
        for text in broken:
            # A target that long is refused before: let it be made there.
            path = raw(text) if len(text) < 15000 else "/headers"
            status, headers, body = g.ask("GET", path)
            assert status == 502 and dict(headers)["Content-Type"] == "application/problem+json", (text[:80], status, body)
        for text in cut:
            try:
                _, _, body = g.ask("GET", raw(text))
                raise AssertionError("%r passed for a whole answer: %r" % (text, body))
            except (http.client.IncompleteRead, ConnectionError, ValueError):
                pass
        assert g.ask("GET", "/interim")[0] == 502
        for path in ("/silent", "/deaf"):
            assert g.ask("GET", path, headers={"Cordon-Timeout": "1"})[0] == 504
        assert g.ask("POST", "/deaf", b"x" * (4 << 20), headers={"Cordon-Timeout": "1"})[0] == 504
        assert g.ask("GET", raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi, and what comes after it"))[2] == b"hi"
        assert g.ask("GET", "/x")[0] == 200


def test_clients_that_leave():
    with running() as g:
        s = g.open(g.head("GET", "/silent"))
        g.wait("got /silent")
        s.close()
        g.wait("let go")
    with running() as g:
        s = g.open(g.head("GET", "/endless"))
        got = 0
        while got < 1 << 20:
            got += len(s.recv(1 << 16))
        s.close()
        g.wait("let go")
    with running() as g:  # in the middle of its body
        s = g.open(g.head("POST", "/silent", "Content-Length: 100000") + b"x" * 1000)
        g.wait("got /silent")
        s.close()
        g.wait("let go")


def test_the_session_ends_first():
    g = Guest(server())
    streams = [g.open(g.head("GET", path, "Connection: close")) for path in ("/endless", "/silent", "/steps")]
    g.wait("got /silent")
    assert all(streams[i].recv(10).startswith(b"HTTP/1.1 2") for i in (0, 2))
    g.c.call("DELETE", g.at)
    ends = [read_all(s) for s in streams]
    assert not ends[0].endswith(b"\r\n0\r\n\r\n") and b" 502 " in ends[1][:20], (ends[0][-20:], ends[1][:100])
    for s in streams:
        s.close()


def talk(g, s):
    """A WebSocket's handshake and a few bytes, on a connection."""
    s.sendall(g.head("GET", "/socket", "Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
    data = b""
    while not data.endswith(b"\r\n\r\nhello"):
        more = s.recv(1000)
        assert more, data
        data += more
    head = data.decode()
    assert head.startswith("HTTP/1.1 101 ") and "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head and "Set-Cookie" not in head, head
    for piece in (b"abc", os.urandom(100000)):
        s.sendall(piece)
        got = b""
        while len(got) < len(piece):
            got += s.recv(1 << 16)
        assert sorted(got) == sorted(piece)


def test_websockets():
    with running() as g:
        s = socket.create_connection(("127.0.0.1", server().port), timeout=60)
        talk(g, s)
        assert g.c.call("GET", g.at + "/ports")["ports"][0]["connections"] == 1
        s.close()
        g.wait("left")
        # The server says no.
        status, _, body = g.ask("GET", "/x", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
        assert status == 200 and b"Upgrade: websocket" in body
        # Other protocols are not asked for.
        assert b"Upgrade" not in g.ask("GET", "/x", headers={"Connection": "Upgrade", "Upgrade": "h2c"})[2]
        many = [socket.create_connection(("127.0.0.1", server().port), timeout=60) for _ in range(20)]
        for m in many:
            talk(g, m)
        g.c.call("DELETE", g.at + "/ports/8000")
        assert all(read_all(m) == b"" for m in many)
        for m in many:
            m.close()


def test_with_tls():
    with tempfile.TemporaryDirectory() as folder:
        cert, private = certificate(folder)
        with Server("--tls-cert", cert, "--tls-key", private) as of:
            trust = ssl.create_default_context(cafile=cert)
            of.connect = lambda: http.client.HTTPSConnection("127.0.0.1", of.port, timeout=60, context=trust)
            g = Guest(of)
            assert b"X-Forwarded-Proto: https" in g.ask("GET", "/x")[2]
            data = os.urandom(5 << 20)
            assert g.ask("POST", "/digest", data)[2].split()[1].decode() == hashlib.sha256(data).hexdigest()
            s = trust.wrap_socket(socket.create_connection(("127.0.0.1", of.port), timeout=60), server_hostname="localhost")
            talk(g, s)
            s.close()
            g.wait("left")


def test_websockets_end_with_the_server():
    with Server() as of:
        g = Guest(of)
        s = socket.create_connection(("127.0.0.1", of.port), timeout=60)
        talk(g, s)
        assert of.stop() == 0
        assert read_all(s) == b""
        s.close()

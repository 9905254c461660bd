"""cordon serve: ten thousand requests of a fuzzer. Each ends with an answer or a close, and nothing is left."""
import json
import os
import random
import socket

from serving import API, KEY, Server

COUNT, BATCH = 10000, 20
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "", "get", "G\0T", "A" * 300]
TEXTS = ["", "..", "../../etc/passwd", "%2e%2e%2f", "%00", "%", "%zz", "a" * 5000, "é", "\x00", "sess_" + "0" * 32, "{session}", "null",
         "-1", "1e999", "18446744073709551616", "//", "?", "#", "a?path=%00&path=b", "\u202e", "'\"<script>"]


def valid_paths():
    return [p for p in API["paths"] if not p.endswith("/proof")]


def make_path(r, session):
    path = r.choice(valid_paths())
    while "{" in path:
        start, rest = path.split("{", 1)
        name, rest = rest.split("}", 1)
        path = start + (session if name == "session" and r.random() < 0.7 else r.choice(TEXTS)) + rest
    if r.random() < 0.5:
        path += "?" + "&".join("%s=%s" % (r.choice(["path", "recursive", "wait_ms", "limit", "stream", "offset", r.choice(TEXTS)]), r.choice(TEXTS))
                               for _ in range(r.randrange(4)))
    return path.replace(" ", "%20")


def make_value(r, depth=0):
    kind = r.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return r.choice([None, True, False])
    if kind == 1:
        return r.choice([0, -1, 1, 1 << 31, 1 << 62, 0.5, -1e300])
    if kind < 6:
        return r.choice(TEXTS + ["python", "1+1", "strict", "sh", "/tmp/x"])
    if kind == 6:
        return [make_value(r, depth + 1) for _ in range(r.randrange(4))]
    keys = ["guest", "level", "policy", "set", "tools", "env", "workspace", "code", "name", "path", "from", "to", "value", "error", "allow",
            "language", "context", "timeout_ms", "size", "a", "b", "command", "mounts", "network", "policy"]
    return {r.choice(keys): make_value(r, depth + 1) for _ in range(r.randrange(5))}


def make_body(r):
    kind = r.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return bytes(r.randrange(256) for _ in range(r.randrange(200)))
    text = json.dumps(make_value(r)).encode()
    if kind == 2 and text:
        at = r.randrange(len(text))
        text = text[:at] + bytes([r.randrange(256)]) + text[at + 1:]
    return text


def make_request(r, session):
    body = make_body(r)
    lines = ["%s %s HTTP/1.1" % (r.choice(METHODS[:6]) if r.random() < 0.9 else r.choice(METHODS), make_path(r, session)), "Host: localhost"]
    if r.random() < 0.95:
        lines.append(r.choice(["Authorization: Bearer " + KEY] * 8 + ["X-API-Key: " + KEY, "Authorization: Bearer x"]))
    if r.random() < 0.9:
        lines.append("Content-Type: " + r.choice(["application/json"] * 6 + ["text/plain", "application/octet-stream", "multipart/form-data; boundary=x"]))
    if r.random() < 0.2:
        lines.append(r.choice(["Accept: text/event-stream", "Range: bytes=5-2", "Range: bytes=-", "Idempotency-Key: " + r.choice(TEXTS[:6]),
                               "Origin: http://evil", "Upgrade: websocket", "Expect: 100-continue", "Transfer-Encoding: gzip",
                               "Connection: close", "X: " + "y" * 3000]))
    length = len(body) if r.random() < 0.95 else r.choice([len(body) + 5, 0, -1, 10 ** 12])
    lines.append("Content-Length: %d" % length)
    text = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + body
    if r.random() < 0.05:
        text = text[:r.randrange(len(text))]
    return text


def open_descriptors(pid):
    """Sockets and pipes. Control groups are kept for the next session."""
    found = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found += os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith(("socket:", "pipe:"))
        except OSError:
            pass
    return found


def test_ten_thousand_requests():
    r = random.Random(18)
    with Server("--level", "strict", "--park", "none") as one:
        c = one.client()
        session = c.open()
        c.call("GET", "/v1/sessions")
        before = open_descriptors(one.p.pid)
        for n in range(0, COUNT, BATCH):
            s = socket.create_connection(("127.0.0.1", one.port), 60)
            for _ in range(BATCH):
                data = make_request(r, session)
                try:
                    s.sendall(data)
                    s.settimeout(0 if r.random() < 0.1 else 0.001)
                    s.recv(65536)
                except (BlockingIOError, TimeoutError):
                    pass
                except OSError:
                    s.close()
                    s = socket.create_connection(("127.0.0.1", one.port), 60)
                s.settimeout(60)
            s.close()
            if n % 1000 == 0:
                assert c.call("GET", "/healthz") == b"ok\n"
                for other in c.call("GET", "/v1/sessions")["sessions"]:
                    if other != session:
                        c.raw("DELETE", "/v1/sessions/" + other)
                for pool in c.call("GET", "/v1/pools")["pools"]:
                    c.raw("DELETE", "/v1/pools/" + pool)
        while any(e["state"] == "running" for e in c.call("GET", "/v1/executions")["executions"]):
            pass
        for other in c.call("GET", "/v1/sessions")["sessions"]:
            c.raw("DELETE", "/v1/sessions/" + other)
        for pool in c.call("GET", "/v1/pools")["pools"]:
            c.raw("DELETE", "/v1/pools/" + pool)
        assert one.p.poll() is None
        fresh = c.open()
        assert c.execute(fresh, "6 * 7")["result"] == 42
        c.call("DELETE", "/v1/sessions/" + fresh)
        assert c.call("GET", "/v1/audit/verification")["whole"] is True
        while open_descriptors(one.p.pid) > before + 20:
            c.call("GET", "/v1/version")
        assert one.stop() == 0
        assert "Sanitizer" not in one.stderr, one.stderr[-3000:]


test_ten_thousand_requests.seconds = 900

"""Ports through the server: odd requests and odd answers, from eight threads. Each ends with an answer or a close, and
nothing is left in the server."""
import base64
import contextlib
import os
import random
import socket
import threading
import time

from serving import KEY, Server
from test_fuzz import open_descriptors
from test_webports import Guest

COUNT = int(os.environ.get("CORDON_ODD", "1200"))  # 10000 in `make soak`
THREADS, WARM = 8, 400
SPARE = 8  # descriptors and threads that come and go: workers, the sweeper's
STATUS = ["HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204 No", "HTTP/1.1 304 No", "HTTP/1.1 101 Up", "HTTP/1.1 100 On", "HTTP/1.1 500 \u00e9",
          "HTTP/1.1 307 Go", "HTTP/9.9 200 OK", "HTTP/1.1 999 X", "HTTP/1.1 20", "ICY 200 OK", "", "\0"]
FIELDS = ["Content-Length: 5", "Content-Length: 0", "Content-Length: 99999999999", "Content-Length: x", "Content-Length: 5, 5", "Transfer-Encoding: chunked",
          "Transfer-Encoding: x", "Connection: close", "Connection: Upgrade", "Upgrade: websocket", "Set-Cookie: a=b", "Location: //e", "Location: /x",
          "X: " + "y" * 500, "X:", ":", "X", " folded", "X: \x01", "Content-Type: \u202e", "Date: now", "Server: x", "Trailer: X", "Content-Encoding: gzip"]
BODIES = [b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhel", b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"0\r\nX: y\r\n\r\nmore", b"\r\n" * 9, b"\0" * 3000]
ASKED = ["Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Connection: x-one, close", "Connection: close",
         "X-One: 1", "Expect: 100-continue", "Cookie: a=b", "Sec-Fetch-Dest: script", "TE: trailers", "X: " + "y" * 3000, "Origin: null", "Cordon-Timeout: 0",
         "Cordon-Timeout: 99999999999999", "Upgrade: h2c", "X\x01: y", "Range: bytes=0-1", "Content-Length: 5", "Transfer-Encoding: chunked"]


def make_answer(r):
    lines = [r.choice(STATUS[:8] if r.random() < 0.8 else STATUS)] + [r.choice(FIELDS) for _ in range(r.randrange(4))]
    text = "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + r.choice(BODIES)
    if r.random() < 0.1:
        text = text[:r.randrange(len(text) + 1)]
    if r.random() < 0.1:
        at = r.randrange(len(text) + 1)
        text = text[:at] + bytes(r.randrange(256) for _ in range(4)) + text[at:]
    return "/raw?" + base64.urlsafe_b64encode(text).decode()


def make_request(r, g):
    path = make_answer(r) if r.random() < 0.8 else r.choice(["/socket", "/digest", "/endless", "/interim", "/headers", "/x", "/%zz", "/a b", "//x/..", "/?&&=%00"])
    body = r.choice([b"", b"hello", b"x" * 70000, b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\nzz"])
    lines = ["%s %s%s HTTP/1.1" % (r.choice(["GET"] * 5 + ["POST", "PUT", "HEAD", "DELETE", "OPTIONS", "get", "TRACE", "A" * 99]), g.port, path), "Host: localhost",
             "Authorization: Bearer " + KEY, "Cordon-Timeout: 1", *(r.choice(ASKED) for _ in range(r.randrange(3)))]
    if body and r.random() < 0.9:
        lines.append(r.choice(["Content-Length: %d" % len(body)] * 5 + ["Transfer-Encoding: chunked"] * 2 + ["Content-Length: %d" % (len(body) + 9)]))
    text = "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body
    return text[:r.randrange(len(text))] if r.random() < 0.05 else text


def attack(g, seed, count, problems):
    r = random.Random(seed)
    try:
        for _ in range(count):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", g.server.port), 30) as s:
                s.sendall(make_request(r, g))
                if r.random() < 0.1:
                    continue
                s.shutdown(socket.SHUT_WR) if r.random() < 0.1 else s.settimeout(0.05)
                for _ in range(r.randrange(1, 6)):
                    if not s.recv(65536):
                        break
    except Exception as e:  # a thread's own
        problems.append(repr(e))


def attack_all(g, count, seed):
    problems = []
    threads = [threading.Thread(target=attack, args=(g, seed * 100 + i, count // THREADS, problems)) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems, problems


def measure(pid):
    with open("/proc/%d/status" % pid) as f:
        fields = dict(line.split(":", 1) for line in f)
    return open_descriptors(pid), int(fields["Threads"]), int(fields["VmRSS"].split()[0])


def settle(g, most):
    """What the server has when nothing goes on any more; its threads end when they were idle for some seconds."""
    deadline = time.monotonic() + 100
    while True:
        now = measure(g.server.p.pid)
        if (now[0] <= most[0] and now[1] <= most[1]) or time.monotonic() > deadline:
            return now
        g.c.call("GET", g.at + "/processes/%d/output?stream=stdout" % g.p)


def test_odd_requests_and_answers():
    with Server("--park", "none") as one:
        g = Guest(one)
        assert g.ask("GET", "/x")[0] == 200
        start = measure(one.p.pid)
        attack_all(g, WARM, 1)
        g.c = one.client()  # the connection was idle for too long
        warm = settle(g, (start[0] + SPARE, start[1] + SPARE))
        attack_all(g, COUNT, 2)
        assert one.p.poll() is None, one.p.stderr.read()[-6000:]
        g.c = one.client()
        after = settle(g, (start[0] + SPARE, start[1] + SPARE))
        note = "start %s, warm %s, after %s" % (start, warm, after)
        print("# descriptors, threads, KiB: " + note)
        assert after[0] <= start[0] + SPARE and after[1] <= start[1] + SPARE, note
        if "ASAN_OPTIONS" not in os.environ:
            assert after[2] < warm[2] + 40960, note
        assert g.ask("GET", "/x")[0] == 200
        g.c.call("DELETE", g.at)
        assert one.stop() == 0, one.stderr[-3000:]


test_odd_requests_and_answers.seconds = 900

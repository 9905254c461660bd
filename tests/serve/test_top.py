"""`cordon top`: the sessions of a server, printed once or shown again and again on a terminal."""
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

from driver import CORDON
from serving import Server
from test_remote import add_key, certificate

SECONDS = 120


def top(*words, key="", **env):
    return subprocess.run([CORDON, "top", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"PATH": "/usr/bin:/bin", "CORDON_KEY": key, **env}, text=True, timeout=SECONDS)


def lines(text):
    """The rows of the table, by their session."""
    return {line.split()[0]: line for line in text.splitlines() if line.startswith("sess_")}


class Screen:
    """It on a terminal, with that many lines."""

    def __init__(self, server, rows=24, **env):
        self.text = b""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.p = subprocess.Popen([CORDON, "top", "--server", server.url], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                  env={"PATH": "/usr/bin:/bin", "TERM": "xterm", "CORDON_KEY": server.key, **env})

    def wait(self, judge):
        end = time.monotonic() + SECONDS
        while not judge(self.text):
            assert time.monotonic() < end, self.text[-2000:]
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536)
            else:
                assert self.p.poll() is None, self.text[-2000:]

    def pages(self):
        return [p for p in self.text.split(b"\x1b[H\x1b[2J")[1:] if p.endswith(b"q leaves")]

    def end(self):
        status = self.p.wait(SECONDS)
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536)
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        assert after == self.before, "the terminal is not as before"
        assert b"\x1b[?1049h" in self.text and b"\x1b[?1049l" in self.text, self.text
        return status


def test_once():
    with Server() as server:
        r = top("--server", server.url, key=server.key)
        assert r.returncode == 0 and r.stdout.startswith("0 sessions, 0 running, 0 parked") and "SESSION" in r.stdout, r
        c = server.client()
        ids = [c.open(guest="python"), c.open(guest="sh")]
        c.execute(ids[0], "sum(range(3000000))")
        r = top("--server", server.url, key=server.key)
        rows = lines(r.stdout)
        assert r.returncode == 0 and sorted(rows) == sorted(ids) and "\x1b" not in r.stdout, r
        assert r.stdout.startswith("2 sessions, 0 running, 0 parked; "), r
        assert rows[ids[0]].split()[1:3] == ["idle", "python"] and rows[ids[1]].split()[1:3] == ["idle", "sh"], rows
        assert "MiB" in rows[ids[0]] and " s " in rows[ids[0]], rows
        r = top("--json", key=server.key, CORDON_SERVER=server.url)
        got = {s["session"]: s for s in json.loads(r.stdout)}
        assert sorted(got) == sorted(ids) and got[ids[0]]["cpu_ms"] > 0 and got[ids[0]]["processes"] > 0, r


def test_keys_see_their_own():
    with Server() as server:
        other = add_key(server, "other")
        mine, theirs = server.client().open(guest="sh"), server.client(other).open(guest="sh")
        assert list(lines(top("--server", server.url, key=other).stdout)) == [theirs]
        everything = lines(top("--server", server.url, key=server.key).stdout)
        assert sorted(everything) == sorted([mine, theirs]) and everything[theirs].endswith(" other"), everything


def test_live():
    with Server() as server:
        c = server.client()
        first = c.open(guest="sh")
        t = Screen(server)
        t.wait(lambda _: any(first.encode() in p for p in t.pages()))
        second = c.open(guest="sh")
        t.wait(lambda _: any(second.encode() in p for p in t.pages()))
        os.write(t.master, b"xyz")  # other keys do nothing
        shown = len(t.pages())
        t.wait(lambda _: len(t.pages()) > shown + 1)
        os.write(t.master, b"q")
        assert t.end() == 0, t.text
        for what in b"\x03", b"\x04":
            t = Screen(server, rows=5)
            t.wait(lambda _: t.pages())
            assert b"and 1 more" in t.pages()[0], t.pages()
            os.write(t.master, what)
            assert t.end() == 0, t.text
        t = Screen(server)
        t.wait(lambda _: t.pages())
        t.p.send_signal(signal.SIGTERM)
        assert t.end() == 0, t.text
        t = Screen(server)
        t.wait(lambda _: t.pages())
        server.stop()
        assert t.end() != 0 and b"cordon: top: " in t.text, t.text


def test_failures():
    with Server() as server:
        for words, key, env, status, want in (
                ([], "", {}, 2, "name the server"), (["--server", ""], "", {}, 2, "name the server"),
                (["--server", server.url], "cordon_" + "0" * 48, {}, 125, "knows no such key"),
                (["--server", server.url], "", {}, 125, "knows no such key"),
                (["--server", "ftp://x"], "", {}, 125, "only http and https"), (["--server", "unix:/nowhere"], "", {}, 125, "/nowhere"),
                (["--server", "--get"], "", {}, 125, "URL"), (["extra"], "", {}, 2, "too many")):
            r = top(*words, key=key, **env)
            assert r.returncode == status and want in r.stderr and r.stdout == "", (words, r)


def test_tls():
    with tempfile.TemporaryDirectory() as folder:
        cert, key = certificate(folder)
        with Server("--tls-cert", cert, "--tls-key", key) as server:
            url = "https://localhost:%d" % server.port
            r = top("--server", url, key=server.key)
            assert r.returncode == 125 and "--ca" in r.stderr, r
            r = top("--server", url, "--ca", cert, key=server.key)
            assert r.returncode == 0 and r.stdout.startswith("0 sessions"), r


def test_hostile_server():
    """What answers may be anybody."""
    name = "sess_\x1b]0;evil\x07\u202e"
    rows = [{"session": name, "guest": "\x1b[31m", "tenant": "t" * 100000, "cpu_ms": 1 << 62, "memory_peak_bytes": (1 << 63) - 1, "age_ms": -5,
             "processes": "many", "running": 1, "parked": []}, {"memory_peak_bytes": (1 << 63) - 1}, 7, None, []]
    good = json.dumps({"sessions": rows}).encode()
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    for answer, status, want in ((head + good, 0, "sess_\\x1b]0;evil\\x07\\xe2\\x80\\xae"), (head + b"{", 125, "the server's answer"),
                                 (head + b'{"sessions": 3}', 125, "has no sessions"), (head, 125, "the server's answer"),
                                 (head + b"x" * (17 << 20), 125, "too long"), (b"HTTP/1.1 500 \x1b[31m\r\n\r\n", 125, "no cordon serve"),
                                 (b"HTTP/1.1 101 x\r\nUpgrade: cordon-rpc/1\r\n\r\n", 125, "no cordon serve"), (b"", 125, "closed the connection")):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                peer, _ = listener.accept()
                with peer:
                    peer.recv(65536)
                    try:
                        peer.sendall(answer)
                    except OSError:
                        pass
            thread = threading.Thread(target=serve)
            thread.start()
            r = top("--server", "http://127.0.0.1:%d" % listener.getsockname()[1])
            thread.join()
        assert r.returncode == status and want in r.stdout + r.stderr, (answer[:80], r.returncode, r.stdout[:500], r.stderr[:500])
        assert "\x1b" not in r.stdout + r.stderr and len(r.stdout) < 5000, (r.stdout[:500], r.stderr[:500])

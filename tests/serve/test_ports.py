"""Ports of a sandbox that the host connects to, over RPC."""
import os
import socket

from driver import Client
from test_contexts import place

SERVER = ("exec python3 -uc 'import socket\ns = socket.create_server((\"127.0.0.1\", 8000))\nprint(\"ready\")\n"
          "while True:\n  c = s.accept()[0]; c.sendall(c.recv(100).upper()); c.close()'")


def ask(address, word):
    """What the server answers."""
    is_path = address.startswith("/")
    with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as s:
        s.connect(address if is_path else ("127.0.0.1", int(address.rsplit(":", 1)[1])))
        s.sendall(word)
        return s.recv(100)


def test_ports():
    with Client() as c:
        s = place(c, policy={"expose": [8000, "8001-8002"]})
        c.call("session.command", session=s, command=SERVER, background=True, stream=True)
        pieces = 1
        while "".join(x["data"] for x in c.notes("output")) != "ready\n":  # it may come in pieces
            c.wait_note("output", pieces)
            pieces += 1
        a = c.call("session.expose", session=s, port=8000)
        assert a["port"] == 8000 and os.stat(a["address"]).st_mode & 0o777 == 0o600, a
        assert ask(a["address"], b"one") == b"ONE"
        assert c.call("session.expose", session=s, port=8000) == a
        c.call("session.unexpose", session=s, port=8000)
        assert not os.path.exists(a["address"])
        b = c.call("session.expose", session=s, port=8000, host_port=0)["address"]
        assert b.startswith("127.0.0.1:") and ask(b, b"two") == b"TWO", b
        (row,) = c.call("session.exposed", session=s)["ports"]
        assert row["port"] == 8000 and row["address"] == b, row
        c.fails(-32002, "expose+=9000", "session.expose", session=s, port=9000)
        c.fails(-32005, "not exposed", "session.unexpose", session=s, port=8001)
        c.fails(-32602, "Missing required param: port", "session.expose", session=s)
        c.fails(-32602, "1 to 65535", "session.expose", session=s, port=0)
        c.fails(-32602, "at most 65535", "session.expose", session=s, port=8001, host_port=70000)
        c.call("session.close", session=s)
        try:
            ask(b, b"three")
            raise AssertionError("the port outlives its session")
        except ConnectionRefusedError:
            pass

"""Packages over RPC: an installation ends when its client wishes."""
import socket

from driver import Client, Failure


def begin(c, s, index):
    """Sends the request, and returns when pip waits for an answer that does not come."""
    n = c.send("session.install", {"session": s, "names": ["never"]})
    return n, index.accept()[0]


def test_an_installation_is_cancelled_and_closed():
    with Client() as c, socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(120)
        where = "http://127.0.0.1:%d/simple" % index.getsockname()[1]
        s = c.open(guest="python", set=["packages.pip=*", "packages.pip_index=" + where])
        n, asked = begin(c, s, index)
        assert c.call("session.cancel", session=s)["cancelled"]
        try:
            raise AssertionError("it was not cancelled: %r" % c.wait(n))
        except Failure as f:
            assert "cancelled" in f.message, f
        asked.close()
        n, asked = begin(c, s, index)
        c.call("session.close", session=s)
        asked.close()

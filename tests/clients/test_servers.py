"""Whatever opens something uses the server that was named, by an option or by CORDON_SERVER, or says why not: code never runs here instead."""
import asyncio
import contextlib
import os
import socket

import cordon
import cordon.aio as aio

KEY = "cordon_" + "0" * 48


@contextlib.contextmanager
def nobody():
    """An address where nobody listens. What still succeeds has used the local program."""
    with socket.socket() as s, contextlib.ExitStack() as stack:
        s.bind(("127.0.0.1", 0))
        for name in ("CORDON_SERVER", "CORDON_KEY"):
            if name in os.environ:
                stack.callback(os.environ.__setitem__, name, os.environ.pop(name))
            else:
                stack.callback(os.environ.pop, name, None)
        yield "http://127.0.0.1:%d" % s.getsockname()[1]


async def enter(thing):
    async with thing:
        pass


# name: a function of the options
OPENERS = {
    "connect": lambda **o: cordon.connect(**o).close(),
    "Session": lambda **o: cordon.Session("sh", **o).close(),
    "Pool": lambda **o: cordon.Pool("sh", 1, **o).close(),
    "run": lambda **o: cordon.run("true", guest="sh", **o),
    "Sandbox": lambda **o: cordon.Sandbox(**o).close(),
    "aio.Connection.open": lambda **o: asyncio.run(aio.Connection.open(**o)),
    "aio.Session": lambda **o: asyncio.run(enter(aio.Session("sh", **o))),
    "aio.Pool": lambda **o: asyncio.run(enter(aio.Pool("sh", 1, **o))),
}
WITHOUT_OPTION = {
    "policy": lambda: cordon.policy("strict"),
    "check_policy": lambda: cordon.check_policy({}),
    "validate": lambda: cordon.validate("1"),
    "sanitize": lambda: cordon.sanitize("x"),
    "create_runner": lambda: cordon.create_runner("strict").execute("1"),
}


def fails(kinds, name, fn, **options):
    try:
        value = fn(**options)
    except kinds as e:
        return str(e)
    raise AssertionError("%s(%s) succeeded: %r" % (name, ", ".join(options), value))


def test_a_named_server_is_used():
    with nobody() as server:
        for name, fn in OPENERS.items():
            fails(cordon.ServerUnreachable, name, fn, server=server, key=KEY)
        os.environ["CORDON_SERVER"], os.environ["CORDON_KEY"] = server, KEY
        for name, fn in {**OPENERS, **WITHOUT_OPTION}.items():
            if name != "create_runner":
                fails(cordon.ServerUnreachable, name, fn)
        r = WITHOUT_OPTION["create_runner"]()  # its errors are in its results
        assert not r.success and "127.0.0.1" in str(r.error), r


def test_a_server_that_would_be_ignored_is_refused():
    with nobody() as server:
        with cordon.connect() as c:
            for name in ("Session", "Pool", "run", "Sandbox"):
                for options in ({"server": server}, {"key": KEY}):
                    assert "connection= excludes" in fails(ValueError, name, OPENERS[name], connection=c, **options)
        for name in ("aio.Session", "aio.Pool"):
            assert "connection= excludes" in fails(ValueError, name, OPENERS[name], connection=object(), server=server)
        for name in ("connect", "aio.Connection.open"):
            assert "exclude" in fails(ValueError, name, OPENERS[name], server=server, program="/bin/cordon")
        for name, fn in OPENERS.items():
            fails(cordon.ConnectFailed, name, fn, key=KEY)
            fails(cordon.ConnectFailed, name, fn, server="")

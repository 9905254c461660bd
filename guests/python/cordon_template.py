# cordon_template.py - a warm interpreter that becomes a session for every spawn request
# (docs/wire.md, Templates). It runs no foreign code, has one thread, and holds no secrets.
import gc
import os
import sys

_WARM = ("ast", "base64", "collections", "contextlib", "copy", "csv", "dataclasses",
         "datetime", "decimal", "functools", "inspect", "io", "itertools", "json", "keyword",
         "linecache", "math", "random", "re", "statistics", "string", "tempfile", "textwrap",
         "traceback", "typing", "atexit")
_WARM_CODE = "x = [i for i in range(9)]\nimport math\nprint(math.sqrt(2), len(x))\n{'a': x}"


def serve(session, session_type, wire_type):
    """Returns in each session, never in the template."""
    session.hello(template=True)
    session.welcome(_welcome())
    for name in _WARM:
        _import(name)
    for name in session.options.get("preload") or ():
        _import(name)
    warm(session_type(session.wire, ""))
    # The session itself is made here, once for all: what it does before its first execution is
    # little, because all that it touches is copied, page by page.
    made = session_type(wire_type(), "")
    made.options = session.options
    made.prepare()
    lib = _Library(made)
    gc.collect()
    gc.freeze()
    lib.serve()
    made.wire.pid = os.getpid()
    renew()
    made.welcome(made.wire.next())
    made.adapt()
    if made.options.get("ahead") and made.wire.idle(3):
        warm(session_type(made.wire, ""))  # take the page faults before anyone waits
    return made


def _welcome():
    """The host's first line and not a byte more: what follows brings descriptors, which a plain
    read would throw away."""
    import _socket
    import json
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, 3)
    line = b""
    while not line.endswith(b"\n"):
        data = sock.recv(65536, _socket.MSG_PEEK)
        if not data:
            os._exit(0)
        line += sock.recv(data.find(b"\n") + 1 or len(data))
    sock.detach()  # or the object's end would close descriptor 3
    return json.loads(line)


def _import(name):
    try:
        __import__(name)
    except Exception as e:
        sys.stderr.write("cordon: preload of %s failed: %s: %s\n" % (name, type(e).__name__, e))


def warm(session):
    """One execution that touches what every execution touches; its output goes nowhere."""
    null = open(os.devnull, "w")
    keep, sys.stdout = sys.stdout, null
    try:
        session.evaluate({"code": _WARM_CODE, "validate": True})
        session.evaluate({"code": "exec('')", "validate": True})
        try:
            session.evaluate({"code": "1/0"})
        except ZeroDivisionError as e:
            session.describe(e)
        session.result_name = "result"
    finally:
        sys.stdout = keep
        null.close()
    sys.modules["linecache"].cache.clear()


class _Library:
    """cordon_guest_serve() of libguest, called with the interpreter's lock held and its own at-fork
    hooks around it (they renew `random` and forget other threads). A template stays before the fork
    for ever."""

    def __init__(self, session):
        import ctypes
        path = os.environ.get("CORDON_LIBGUEST") or "/run/cordon/libguest.so"
        self.wait = ctypes.PyDLL(path).cordon_guest_serve
        self.wait.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        self.wait.restype = None
        self.before = ctypes.pythonapi.PyOS_BeforeFork
        self.after = ctypes.pythonapi.PyOS_AfterFork_Child
        self.before.restype = self.after.restype = None
        self.hello = session.hello_line("@").split(b"@")

    def serve(self):
        head, tail = self.hello
        self.before()
        self.wait(head, tail)
        self.after()


def renew():
    """Randomness of this session's own; `random` itself was renewed by its at-fork hook."""
    mods = sys.modules
    if "numpy.random" in mods:
        mods["numpy.random"].seed()
    if "tempfile" in mods:
        mods["tempfile"]._name_sequence = None
    if "uuid" in mods:
        mods["uuid"]._last_timestamp = None
    if "_ssl" in mods:
        mods["_ssl"].RAND_add(os.urandom(32), 32.0)

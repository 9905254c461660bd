# cordon_template.py - a warm interpreter that becomes a session for every spawn request
# (docs/wire.md, Templates). It runs no foreign code, has one thread, and holds no secrets.
import gc
import os
import sys

SPAWN_FDS = 9  # docs/wire.md
_WARM = ("ast", "base64", "collections", "contextlib", "copy", "csv", "dataclasses",
         "datetime", "decimal", "functools", "inspect", "io", "itertools", "json", "keyword",
         "linecache", "math", "random", "re", "statistics", "string", "tempfile", "textwrap",
         "traceback", "typing", "atexit")
_WARM_CODE = "x = [i for i in range(9)]\nimport math\nprint(math.sqrt(2), len(x))\n{'a': x}"


def serve(session, session_type, wire_type):
    """Returns in each session, never in the template."""
    session.hello(template=True)
    requests = _Requests()
    session.welcome(requests.next())
    options = session.options
    lib = _Library()
    for name in _WARM:
        _import(name)
    for name in options.get("preload") or ():
        _import(name)
    warm(session_type(session.wire, ""))
    gc.collect()
    gc.freeze()
    while True:
        token, fds = requests.spawn()
        if lib.fork(fds) == 0:
            requests.sock.detach()  # or the object's end would close descriptor 3
            return _become(session_type, wire_type, token, fds)
        for fd in fds:
            os.close(fd)


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


class _Requests:
    """Lines from the host and the descriptors that came with them. Nothing else may read the
    socket: a plain read would throw descriptors away."""

    def __init__(self):
        import _socket
        self.sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, 3)
        self.rest, self.fds = b"", []

    def next(self):
        import json
        import struct
        while b"\n" not in self.rest:
            data, ancillary, _, _ = self.sock.recvmsg(65536, 256)
            for level, kind, raw in ancillary:
                if (level, kind) == (1, 1):  # SOL_SOCKET, SCM_RIGHTS
                    self.fds += struct.unpack("%di" % (len(raw) // 4), raw[:len(raw) // 4 * 4])
            if not data:
                os._exit(0)
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def spawn(self):
        while True:
            m = self.next()
            if m.get("type") == "exit":
                os._exit(0)
            if m.get("type") == "spawn" and len(self.fds) >= SPAWN_FDS:
                fds, self.fds = self.fds[:SPAWN_FDS], self.fds[SPAWN_FDS:]
                return m["token"], fds


class _Library:
    """cordon_guest_fork() of libguest, called with the interpreter's lock held and its own at-fork
    hooks around it (they renew `random` and forget other threads)."""

    def __init__(self):
        import ctypes
        path = os.environ.get("CORDON_LIBGUEST") or "/run/cordon/libguest.so"
        self.lib = ctypes.PyDLL(path)
        self.array = ctypes.c_int * SPAWN_FDS
        self.lib.cordon_guest_fork.argtypes = [self.array]
        self.lib.cordon_guest_fork.restype = ctypes.c_int
        self.api = ctypes.pythonapi
        for f in ("PyOS_BeforeFork", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent"):
            getattr(self.api, f).restype = None

    def fork(self, fds):
        numbers = self.array(*fds)
        self.api.PyOS_BeforeFork()
        pid = self.lib.cordon_guest_fork(numbers)
        if pid == 0:
            self.api.PyOS_AfterFork_Child()
        else:
            self.api.PyOS_AfterFork_Parent()
        return pid


def _become(session_type, wire_type, token, fds):
    """The new session: its own descriptors, its own randomness."""
    os.dup2(fds[0], 3, False)
    for i in (0, 1, 2):
        os.dup2(fds[i + 1], i, True)
    for fd in fds:
        if fd > 3:
            try:
                os.close(fd)
            except OSError:  # the library has closed its own four
                pass
    renew()
    session = session_type(wire_type(), token)
    session.hello()
    session.welcome(session.wire.next())
    if session.wire.idle(3):  # made ahead of time: take the page faults before anyone waits
        warm(session_type(session.wire, ""))
    return session


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

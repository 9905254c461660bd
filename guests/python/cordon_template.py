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
    # The session itself is made here, once for all: what it does before its first execution is
    # little, because all that it touches is copied, page by page.
    made = session_type(wire_type(), "")
    made.options = session.options
    made.prepare()
    lib = _Library(made)
    # The interpreter writes into byte code until it has run often enough to be specialised.
    for _ in range(20):
        rehearse(made, "1+1", _WARM_CODE)
    rehearse(made, "exec('')", "1/0", "1/0")
    gc.collect()
    gc.freeze()
    renewed = lib.serve()
    made.wire.pid = os.getpid()
    renew(renewed)
    made.welcome(made.wire.next())
    made.adapt()
    if made.options.get("ahead") and made.wire.idle(3):
        rehearse(made, "1+1", _WARM_CODE)  # take the page faults before anyone waits
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


def rehearse(session, *codes):
    """Executions that touch what every execution touches; what they say goes nowhere."""
    import _socket
    null = open(os.devnull, "w")
    ours, theirs = _socket.socketpair()
    wire, names, keep = session.wire, list(session.globals), sys.stdout
    wire.fd, sys.stdout = ours.fileno(), null
    try:
        for code in codes:
            theirs.send(b'{"type":"execute","id":1,"validate":true,"code":"%s"}\n'
                        % code.replace("\n", "\\n").encode())
            session.execute(wire.next())
    finally:
        wire.fd, sys.stdout = 3, keep
        for f in (null, ours, theirs):
            f.close()
    for name in [n for n in session.globals if n not in names]:
        del session.globals[name]
    session.count = 0
    sys.modules["linecache"].cache.clear()


class _Library:
    """cordon_guest_serve() of libguest, called with the interpreter's lock held and its own at-fork
    hooks around it (they renew `random`, and whatever else was imported may have some). A template
    stays before the fork for ever."""

    def __init__(self, session):
        import ctypes
        path = os.environ.get("CORDON_LIBGUEST") or "/run/cordon/libguest.so"
        self.wait = ctypes.PyDLL(path).cordon_guest_serve
        self.wait.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
        self.wait.restype = None
        self.before = ctypes.pythonapi.PyOS_BeforeFork
        self.after = ctypes.pythonapi.PyOS_AfterFork_Child
        self.before.restype = self.after.restype = None
        self.hello = session.hello_line("@").split(b"@")
        self.string_at = ctypes.string_at

    def serve(self):
        """Returns in each session: whether numpy's generator was renewed by the library."""
        head, tail = self.hello
        state, size = self.generator()
        hook = getattr(sys.modules.get("threading"), "_after_fork", None)
        code = getattr(hook, "__code__", None)
        self.before()
        if code is not None:
            # It forgets threads; a template has but one, which the session goes on with under the
            # same number. It would touch a hundred pages.
            hook.__code__ = _nothing.__code__
        self.wait(head, tail, state, size)
        self.after()
        if code is not None:
            hook.__code__ = code
        return size > 0

    def generator(self):
        """Where numpy's global generator has its state, freshly seeded, and how many bytes of it may
        be any; (None, 0) where it is not what is expected."""
        if "numpy.random" not in sys.modules:
            return None, 0
        try:
            random = sys.modules["numpy.random"]
            random.seed()
            generator = random.mtrand._rand._bit_generator
            state = generator.state["state"]
            key = state["key"].tobytes()
            address = generator.ctypes.state_address
            if generator.state["bit_generator"] == "MT19937" and state["pos"] == 624 and \
                    len(key) == 2496 and self.string_at(address, 2496) == key:
                return address, 2496
        except Exception:
            pass
        return None, 0


def _nothing():
    pass


def renew(numpy_done):
    """Randomness of this session's own; `random` itself was renewed by its at-fork hook."""
    mods = sys.modules
    if not numpy_done and "numpy.random" in mods:
        mods["numpy.random"].seed()
    if "tempfile" in mods:
        mods["tempfile"]._name_sequence = None
    if "uuid" in mods:
        mods["uuid"]._last_timestamp = None
    if "_ssl" in mods:
        mods["_ssl"].RAND_add(os.urandom(32), 32.0)

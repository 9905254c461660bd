# cordon_template.py - a warm interpreter that forks a session for every spawn request
# (docs/wire.md, Templates). It runs no untrusted code, has one thread, and holds no secrets.
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
    from json import loads
    session.hello(template=True)
    known = _welcome()
    session.welcome(loads(known))
    library = _load_library()
    os.environ.pop("LD_BIND_NOW", None)
    for name in _WARM:
        _import(name)
    for name in session.options.get("preload") or ():
        _import(name)
    # The session object is made here, once for all sessions. A session does little before its first
    # execution, because every page that it touches must be copied.
    made = session_type(wire_type(), "")
    made.options = session.options
    made.prepare()
    is_open = made.options.get("modules", "*") in ("*", ["*"])
    if is_open:
        made.adapt()
    lib = _Library(made, library)
    # The interpreter modifies byte code until it has run often enough to be specialised.
    for _ in range(20):
        rehearse(made, "1+1", _WARM_CODE)
        made.streams.keep()
    rehearse(made, "exec('')", "1/0", "1/0")
    gc.collect()
    # Kept alive with the session: freeing any of them would touch, and so copy, all its parts.
    made.kept = _plugs(), session, library, lib, known
    gc.freeze()
    renewed = lib.serve(known + b'\n{"type":"execute","id":1,"validate":true,"code":"1"}\n')
    made.wire.pid = os.getpid()
    made.streams.keep()
    renew(renewed)
    line = made.wire.line()
    # Most sessions get the same welcome as the template, which has already applied it.
    if line != known or not is_open:
        made.welcome(None if line is None else loads(line))
        made.adapt()
    if made.options.get("ahead") and made.wire.idle(3):
        rehearse(made, "1+1", _WARM_CODE)  # so that page faults happen before anyone waits
    return made


def _welcome():
    """The host's first line and not a byte more: what follows brings descriptors, which a plain
    read would throw away."""
    import _socket
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, 3)
    line, seen = b"", bytearray(65536)
    while not line.endswith(b"\n"):
        n = sock.recv_into(seen, 0, _socket.MSG_PEEK)
        if not n:
            os._exit(0)
        line += sock.recv(seen.find(b"\n", 0, n) + 1 or n)
    seen[:] = bytes(len(seen))  # the token of a session may have come already
    sock.detach()  # otherwise freeing the object would close descriptor 3
    return line[:-1]


def _import(name):
    try:
        __import__(name)
    except Exception as e:
        sys.stderr.write("cordon: preload of %s failed: %s: %s\n" % (name, type(e).__name__, e))


def rehearse(session, *codes):
    """Runs typical executions, to touch the usual pages; their replies are discarded."""
    import _socket
    null = open(os.devnull, "w")
    ours, theirs = _socket.socketpair()
    wire, names, streams = session.wire, list(session.globals), session.streams
    keep = streams.out
    wire.fd, streams.out = ours.fileno(), null
    try:
        for code in codes:
            theirs.send(b'{"type":"execute","id":1,"validate":true,"code":"%s"}\n'
                        % code.replace("\n", "\\n").encode())
            session.execute(wire.next())
    finally:
        wire.fd, streams.out = 3, keep
        sys.stdout = keep
        for f in (null, ours, theirs):
            f.close()
    for name in [n for n in session.globals if n not in names]:
        del session.globals[name]
    session.count = 0
    streams.is_new = True
    sys.modules["linecache"].cache.clear()


def _plugs():
    """Objects that fill the holes between others, of each size: what a session makes then lies together, in
    pools of its own, instead of on one shared page each, which would be copied for it."""
    pool = (16384 if sys.version_info >= (3, 10) else 4096) - 1
    kept = []
    for size in range(34, 513, 16):
        while len(kept) < 65536:
            kept.append(bytes(size - 33))
            if id(kept[-1]) & pool == 48:  # the first of its pool
                break
    return kept


def _load_library():
    """Loads libguest, which from now on keeps the memory of imported modules together."""
    import ctypes
    lib = ctypes.PyDLL(os.environ.get("CORDON_LIBGUEST") or "/run/cordon/libguest.so")
    lib.cordon_guest_arenas(ctypes.pythonapi.PyObject_SetArenaAllocator)
    return lib


class _Library:
    """cordon_guest_serve() of libguest, called with the interpreter's lock held and its own at-fork
    hooks around it (whatever was imported may have some). A template stays before the fork for
    ever."""

    def __init__(self, session, lib):
        import ctypes
        self.wait, self.note = lib.cordon_guest_serve, lib.cordon_guest_renew
        self.wait.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
        self.note.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.wait.restype = None
        self.before = ctypes.pythonapi.PyOS_BeforeFork
        self.before.restype = None
        lib.cordon_guest_after(ctypes.pythonapi.PyOS_AfterFork_Child)
        self.hello = session.hello_line("@").split(b"@")
        self.string_at = ctypes.string_at
        self.rehearse = lib.cordon_guest_rehearse

    def serve(self, lines):
        """Returns in each session: whether numpy's generator was renewed by the library. lines: what most are
        sent first."""
        self.rehearse(lines)
        head, tail = self.hello
        numpy_done = self.renew(self.of_numpy)
        # Hooks that need not run: a template has but one thread, which the session goes on with under the
        # same number; and its generator is renewed already. They would touch a hundred pages.
        idle = [(getattr(sys.modules.get("threading"), "_after_fork", None), _nothing)]
        if self.renew(self.of_random):
            idle.append((sys.modules["random"].Random.seed, _unseeded()))
        idle = [(hook, hook.__code__, other.__code__) for hook, other in idle if hook is not None]
        self.before()
        for hook, _, code in idle:
            hook.__code__ = code
        self.wait(head, tail, None, 0)
        for hook, code, _ in idle:
            hook.__code__ = code
        return numpy_done

    def renew(self, find):
        """Makes the library refill a generator's state in every session, if it has the expected layout."""
        try:
            address, state = find()
            return self.string_at(address, len(state)) == state and bool(self.note(address, len(state)))
        except Exception:
            return False

    def of_numpy(self):
        random = sys.modules["numpy.random"]
        random.seed()
        generator = random.mtrand._rand._bit_generator
        if generator.state["bit_generator"] != "MT19937":
            raise ValueError
        return generator.ctypes.state_address, generator.state["state"]["key"].tobytes()

    def of_random(self):
        from array import array
        one = sys.modules["random"]._inst
        one.seed()
        version, state, gauss = one.getstate()
        if version != 3 or len(state) != 625 or state[624] != 624 or gauss is not None:
            raise ValueError
        return id(one) + object.__basicsize__ + 4, array("I", state[:624]).tobytes()


def _nothing():
    pass


def _unseeded():
    __class__ = None  # as many free variables as the method has

    def seed(self, a=None, version=2):
        return __class__
    return seed


def renew(numpy_done):
    """New random state for this session; the at-fork hook of `random` has already renewed that module."""
    mods = sys.modules
    if not numpy_done and "numpy.random" in mods:
        mods["numpy.random"].seed()
    if "tempfile" in mods:
        mods["tempfile"]._name_sequence = None
    if "uuid" in mods:
        mods["uuid"]._last_timestamp = None
    if "_ssl" in mods:
        mods["_ssl"].RAND_add(os.urandom(32), 32.0)

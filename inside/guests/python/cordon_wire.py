# cordon_wire.py - descriptor 3: reads and writes lines, and waits for a tool's answer.
import os
import select
from _thread import allocate_lock, get_ident

from cordon_tools import ToolError

WIRE = 3
_system = os.system


def _make_json():
    """The C scanner and encoder alone, because the json package would load re at every start."""
    from _json import encode_basestring, make_encoder, make_scanner

    class Context:
        strict = False
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float
        memo = {}

    scan = make_scanner(Context())

    def default(o):
        raise TypeError("no JSON form: %s" % type(o).__name__)

    enc = make_encoder(None, default, encode_basestring, None, ":", ",", False, False, True)

    def dumps(o):
        return "".join(enc(o, 0))

    def loads(s):
        return scan(s, 0)[0]

    return dumps, loads


dumps, loads = _make_json()


def to_bytes(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


# A signal handler may run between any two byte codes, so KeyboardInterrupt may only be raised where it
# cannot cut a message in two: `armed` says where. Elsewhere it is noted and raised later. A
# signal before an execution has begun may be meant for it: the message sent before the signal says so.

class Wire:
    __slots__ = ("fd", "rest", "lines", "armed", "active", "pending", "rung", "lock", "writing", "poll",
                 "pid", "main")

    def __init__(self):
        self.fd = WIRE
        self.rest = b""
        self.lines = []  # complete lines not read yet
        self.armed = self.active = self.pending = self.rung = False
        self.lock = allocate_lock()  # a tool call, from its line to its answer
        self.writing = allocate_lock()
        self.main = get_ident()
        self.poll = select.poll()
        self.poll.register(WIRE, select.POLLIN)
        self.pid = os.getpid()

    def on_sigint(self, signum, frame):
        if self.armed:
            raise KeyboardInterrupt
        if self.active:
            self.pending = True
        else:
            self.rung = True

    def begin(self, ident):
        """An execution: from here on a signal is for it. One that came before may have been, too."""
        self.pending, self.active = False, True
        if self.rung:
            self.rung = False
            with self.lock:
                self.pending = self.pending or self._is_named(ident)

    def _is_named(self, ident):
        """Whether the message has come that interrupts this execution. Waits for nothing."""
        while self.poll.poll(0) and self._fill():
            pass
        return any(b'"interrupt"' in line and loads(line.decode("utf-8", "replace")) == {"type": "interrupt", "id": ident}
                   for line in self.lines)

    def system(self, command, ident):
        """os.system(). The C library ignores SIGINT meanwhile: only the program gets it, and the wire says so."""
        status = _system(command)
        if self.armed and get_ident() == self.main and os.getpid() == self.pid and self.lock.acquire(False):
            self.armed = False
            try:
                self.pending = self.pending or self._is_named(ident)
            finally:
                self.lock.release()
                self.arm()
        return status

    def arm(self):
        self.armed = True
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt

    def send(self, message):
        self.send_bytes(to_bytes(dumps(message)) + b"\n")

    def send_bytes(self, data):
        main = get_ident() == self.main
        armed = self.armed
        if main:
            self.armed = False
        try:
            with self.writing:
                n = os.write(self.fd, data)
                while n < len(data):
                    data = memoryview(data)[n:]
                    n = os.write(self.fd, data)
        finally:
            if main:
                self.armed = armed
        if main and armed and self.pending:
            self.arm()

    def _fill(self):
        """Reads once; False at the end of the stream."""
        data = os.read(self.fd, 65536)
        if not data:
            return False
        end = data.find(b"\n")
        if end == len(data) - 1 and not self.rest:  # one line, as nearly always
            self.lines.append(data[:-1])
            return True
        if end < 0:
            parts = [self.rest, data]
            while True:
                data = os.read(self.fd, 1 << 20)
                if not data:
                    return False
                parts.append(data)
                if b"\n" in data:
                    break
            data = b"".join(parts)
        elif self.rest:
            data = self.rest + data
        lines = data.split(b"\n")
        self.rest = lines.pop()
        self.lines.extend(lines)
        return True

    def line(self):
        """The next message as received; None at the end of the stream."""
        while not self.lines:
            if not self._fill():
                return None
        return self.lines.pop(0)

    def next(self):
        """The next message; None at the end of the stream."""
        line = self.line()
        return None if line is None else loads(line.decode("utf-8", "replace"))

    def idle(self, ms):
        """Whether nothing arrives for this long."""
        return not self.lines and not self.poll.poll(ms)

    def answer(self, ident, call, timeout_ms, still):
        """Waits for the answer to one tool call. still() returns whether the caller still waits for it."""
        kept = []
        try:
            while True:
                while self.lines:
                    line = self.lines.pop(0)
                    m = loads(line.decode("utf-8", "replace"))
                    if m.get("type") == "tool_result":
                        if m.get("id") == ident and m.get("call") == call:
                            return m
                    else:
                        kept.append(line)
                self._wait(timeout_ms, still)
                if not self._fill():
                    os._exit(0)  # the host is gone
        finally:
            self.lines[:0] = kept

    def buffer(self, ident, size=0):
        """A descriptor from the host: of a file for so many bytes, or (0) of the file with the variables' columns."""
        from _socket import CMSG_LEN, SCM_RIGHTS, socket
        armed, self.armed = self.armed, False
        try:
            request = {"type": "buffer", "id": ident}
            if size:
                request["bytes"] = size
            self.send(request)
            end, fds = socket(fileno=self.fd), []
            try:
                while True:
                    data, control, _, _ = end.recvmsg(65536, CMSG_LEN(16))
                    for _, kind, raw in control:
                        if kind == SCM_RIGHTS:
                            fds += memoryview(raw).cast("i").tolist()
                    if not data:
                        os._exit(0)  # the host is gone
                    lines = (self.rest + data).split(b"\n")
                    self.rest = lines.pop()
                    self.lines.extend(lines)
                    found = next((x for x in self.lines if x.startswith(b'{"type":"buffer"')), None)
                    if found is not None:
                        break
            finally:
                end.detach()
            self.lines.remove(found)
            if not fds:
                raise ValueError(loads(found.decode("utf-8", "replace")).get("error", "the host has no buffer"))
            return fds[0]
        finally:
            self.armed = armed
            if armed and self.pending:
                self.arm()

    def _wait(self, timeout_ms, still):
        main = timeout_ms is None
        while True:
            if main:
                try:
                    self.arm()
                    ready = self.poll.poll()
                finally:
                    self.armed = False
            else:
                ready = self.poll.poll(timeout_ms)
            if ready:
                return
            if not still():
                raise ToolError("the execution that made this call has ended")

"""The connection to `cordon rpc`, or to a `cordon serve`: whoever waits for an answer reads, so that no thread stands between.

A thread that waits reads lines and hands to others what is theirs. A tool call is carried out by the thread whose execution
asked for it, which gives up reading meanwhile."""
import collections
import fcntl
import json
import os
import re
import socket
import subprocess
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

from ._address import Address, find_server
from ._errors import ConnectionLost, CordonError, ProgramMissing, error_text, rpc_error
from ._program import carried_program

if TYPE_CHECKING:
    from ._remote import Plain

LINE_MAX = 8 << 20
SESSIONS_MAX = 64
EARLY_MAX = 1000
EVENTS = ("audit", "log")
_SURROGATES = re.compile("[\ud800-\udfff]")


def find_program() -> str:
    """$CORDON, or the one that came with this package, or `cordon` on the PATH."""
    path = os.environ.get("CORDON") or carried_program()
    if not path:
        import shutil
        path = shutil.which("cordon")
    if not path:
        raise ProgramMissing("the program 'cordon' was not found: install it, or name it in the environment variable CORDON")
    return path


def to_line(message: Any) -> bytes:
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        line = text.encode()
    except UnicodeEncodeError:
        line = _SURROGATES.sub("\ufffd", text).encode()
    if len(line) > LINE_MAX:
        raise CordonError("the request has %d bytes; at most %d can be sent at once" % (len(line), LINE_MAX))
    return line + b"\n"


def file_parts(attached: Any) -> Any:
    """The bytes of an open file, mapped; none of an empty one."""
    import mmap
    size = os.fstat(attached.fileno()).st_size
    return size, [memoryview(mmap.mmap(attached.fileno(), size, access=mmap.ACCESS_READ))] if size else []


def request_line(number: int, method: str, params: Dict[str, Any], attached: Any = None) -> Any:
    """The line, and the binary columns or the file that follow it."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    if attached is not None:
        message["attachment"], parts = file_parts(attached)
        return to_line(message), parts
    buffer = params.get("buffer")
    if not isinstance(buffer, Table):
        return to_line(message), ()
    message["attachment"] = buffer["bytes"]
    return to_line(message), buffer.parts


def widen(fd: int) -> None:
    """Lets a pipe hold more, as far as that is allowed: large values then cross in fewer steps."""
    try:
        fcntl.fcntl(fd, 1031, 1 << 20)  # F_SETPIPE_SZ
    except OSError:
        pass


class Table(Dict[str, Any]):
    """The table of the binary columns of a request, with the columns."""
    parts: Sequence[memoryview] = ()


class Pending:
    """One request on its way."""
    __slots__ = ("answer", "done", "session", "on_note", "inbox", "line", "is_given_up")

    def __init__(self, session: Optional[str], on_note: Optional[Callable[[str, Dict[str, Any]], None]]) -> None:
        self.answer: Dict[str, Any] = {}
        self.done = False
        self.session, self.on_note = session, on_note
        self.line = 0
        self.is_given_up = False
        self.inbox: "collections.deque[Dict[str, Any]]" = collections.deque()


class Pipes:
    """The standard streams of a program; as _remote.Plain."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin and process.stdout
        self._out, self._in = process.stdin.fileno(), process.stdout.fileno()

    def read(self, most: int) -> bytes:
        return os.read(self._in, most)

    def read_into(self, view: memoryview) -> int:
        return os.readv(self._in, [view])

    def write(self, data: Any) -> int:
        return os.write(self._out, data)

    def widen(self) -> None:
        widen(self._out)


class Connection:
    """A server of one's own (the default), the one that listens at `socket`, or a `cordon serve` at an address.

    args: further arguments of `cordon rpc`, such as ["--level", "strict"]."""

    def __init__(self, program: Optional[str] = None, args: Sequence[str] = (), socket_path: Optional[str] = None,
                 address: Optional[Address] = None) -> None:
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self._socket: "Optional[Plain]" = None
        self._address = address
        early = b""
        if address:
            from ._remote import open_link
            self._socket, early = open_link(address)
        elif socket_path:
            from ._remote import Plain
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(socket_path)
            self._socket = Plain(sock)
        else:
            self._process = subprocess.Popen([program or find_program(), "rpc", *args], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, bufsize=0)
        self._link: Any = Pipes(self._process) if self._process else self._socket
        self.pid = os.getpid()
        self.sessions = 0
        self.tools: Dict[str, Callable[[str, Dict[str, Any]], Any]] = {}  # by session or pool
        self.watchers: Dict[str, Callable[[str, Dict[str, Any]], None]] = {}  # notes by session
        self.early: List[Any] = []  # events of sessions whose id is not known yet
        self._last = 0
        self._sent = 0  # lines
        self._pending: Dict[Any, Pending] = {}
        self._send_lock = threading.Lock()
        self._state = threading.Condition()
        self._has_reader = False
        self._chunks: List[bytes] = []  # the beginning of a line
        self._data, self._at = early, 0  # what was read, and how much of it was used
        self._dropped: "collections.deque[str]" = collections.deque()
        self._closed = False
        self._lost: Optional[str] = None

    # Sending.
    def _write(self, line: bytes, pending: Optional[Pending] = None, parts: Sequence[memoryview] = ()) -> None:
        with self._send_lock:
            if self._closed:
                raise ConnectionLost("the connection is closed")
            self._sent += 1
            if pending:
                pending.line = self._sent
            try:
                view = memoryview(line)
                while view:
                    view = view[self._link.write(view):]
                if parts:
                    self._write_parts(parts)
                self._flush_dropped()
            except OSError as e:
                raise ConnectionLost("the server is gone: %s" % e) from e

    def _write_parts(self, parts: Sequence[memoryview]) -> None:
        """The binary columns that the line announced."""
        if self._process:
            self._link.widen()
        for part in parts:
            while part:
                part = part[self._link.write(part):]

    def _flush_dropped(self) -> None:
        while self._dropped:
            line = to_line({"jsonrpc": "2.0", "method": "session.close", "params": {"session": self._dropped.popleft()}})
            self._sent += 1
            while line:
                line = line[self._link.write(line):]

    def drop(self, session: str) -> None:
        """Closes a session without waiting; safe in a finalizer, which may run in the middle of anything."""
        self._dropped.append(session)
        if self._send_lock.acquire(blocking=False):
            try:
                if not self._closed and os.getpid() == self.pid:
                    self._flush_dropped()
            except OSError:
                pass
            finally:
                self._send_lock.release()

    def notify(self, method: str, params: Dict[str, Any]) -> None:
        self._write(to_line({"jsonrpc": "2.0", "method": method, "params": params}))

    def request(self, method: str, params: Optional[Dict[str, Any]] = None, session: Optional[str] = None,
                on_note: Optional[Callable[[str, Dict[str, Any]], None]] = None) -> Any:
        """Sends a request and waits for its result, or raises what went wrong."""
        if not self._address:
            return self._request(method, params, session, on_note)
        from ._remote import by_value
        steps = by_value(method, params or {})
        if steps is None:
            return self._request(method, params, session, on_note)
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._request(step[0], step[1], session, None, step[2])
                except BaseException as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return done.value

    def _request(self, method: str, params: Optional[Dict[str, Any]], session: Optional[str],
                 on_note: Optional[Callable[[str, Dict[str, Any]], None]], attached: Any = None) -> Any:
        if self.pid != os.getpid():
            raise ConnectionLost("the connection belongs to another process: this one was forked from it")
        pending = Pending(session, on_note)
        with self._state:
            self._last += 1
            number = self._last
        line, parts = request_line(number, method, params or {}, attached)
        with self._state:
            self._pending[number] = pending
        try:
            self._write(line, pending, parts)
            try:
                self._wait(pending)
            except BaseException:
                if not pending.done and not self._lost and method.endswith((".execute", ".run")):
                    self._give_up(number, pending)
                raise
        finally:
            with self._state:
                self._pending.pop(number, None)
        if "error" in pending.answer:
            raise rpc_error(pending.answer["error"])
        return pending.answer.get("result")

    def _give_up(self, number: int, pending: Pending) -> None:
        """Cancels the execution and waits for its end, so that the next one may begin at once."""
        pending.is_given_up = True
        try:
            self.notify("cancel", {"request_id": number})
            self._wait(pending)
        except CordonError:
            pass

    # Receiving.
    def _wait(self, pending: Pending) -> None:
        while True:
            with self._state:
                while self._has_reader and not pending.done and not pending.inbox and not self._lost:
                    self._state.wait()
                if pending.inbox:
                    message = pending.inbox.popleft()
                elif pending.done:
                    return
                elif self._lost:
                    raise ConnectionLost(self._lost)
                else:
                    message = None
                    self._has_reader = True
            if message is not None:
                self._serve(pending, message)
                continue
            try:
                self._read_for(pending)
            finally:
                with self._state:
                    self._has_reader = False
                    self._state.notify_all()

    def _read_for(self, pending: Pending) -> None:
        while not pending.done and not pending.inbox:
            line = self._next_line()
            if line is None:
                with self._state:
                    self._lost = "the server is gone%s" % self._exit_text()
                return
            message = json.loads(line)
            if "attachment" in message:
                message["result"]["buffer"]["data"] = self._read_bytes(message["attachment"])
            self._take(message, pending)

    def _exit_text(self) -> str:
        if not self._process:
            return ""
        try:
            return " (exit status %d)" % self._process.wait(1)
        except subprocess.TimeoutExpired:
            return ""

    def _next_line(self) -> Optional[bytes]:
        while True:
            end = self._data.find(b"\n", self._at)
            if end >= 0:
                line, self._at = self._data[self._at:end], end + 1
                if self._chunks:
                    line = b"".join([*self._chunks, line])
                    self._chunks = []
                return line
            if self._at < len(self._data):
                self._chunks.append(self._data[self._at:])
            self._data, self._at = b"", 0
            try:
                self._data = self._link.read(1 << 16)
            except OSError:
                return None
            if not self._data:
                return None

    def _read_bytes(self, size: int) -> Any:
        """The binary columns that follow a line."""
        from ._columns import room
        buffer = room(size)
        with memoryview(buffer) as view:
            ready = self._data[self._at:self._at + size]
            view[:len(ready)] = ready
            self._at += len(ready)
            at = len(ready)
            while at < size:
                n = self._link.read_into(view[at:])
                if n == 0:
                    raise ConnectionLost("the server is gone")
                at += n
        return buffer

    def _take(self, message: Dict[str, Any], reader: Pending) -> None:
        with self._state:
            if "method" not in message:
                pending = self._pending.get(message.get("id")) or self._find_unread(message)
                if pending:
                    pending.answer, pending.done = message, True
                    self._state.notify_all()
                return
            pending = self._find(message) or (reader if message["method"] in EVENTS else None)
            if pending:
                pending.inbox.append(message)
                self._state.notify_all()
                return
        threading.Thread(target=self._serve, args=(None, message), daemon=True).start()

    def _find_unread(self, message: Dict[str, Any]) -> Optional[Pending]:
        """The request that the server could not read (a number beyond 64 bits, say): its answer has no id, but the line."""
        line = ((message.get("error") or {}).get("data") or {}).get("line")
        return next((p for p in self._pending.values() if p.line == line), None) if line else None

    def _find(self, message: Dict[str, Any]) -> Optional[Pending]:
        """Whose message it is: by request, then by session."""
        params = message["params"]
        pending = self._pending.get(params.get("request_id"))
        if pending:
            return pending
        session = params.get("session") or params.get("session_id")
        for pending in self._pending.values():
            if session is not None and pending.session == session:
                return pending
        return None

    def _serve(self, pending: Optional[Pending], message: Dict[str, Any]) -> None:
        method, params = message["method"], message["params"]
        if pending and pending.is_given_up and method not in EVENTS:
            if method == "tool.call":
                self._refuse(message)
            return
        if method == "tool.call":
            self._call_tool(pending, message)
            return
        watch = pending.on_note if pending and pending.on_note else None
        if method != "output":
            session = params.get("session") or params.get("session_id") or ""
            watch = self.watchers.get(session) or (self.watchers.get(pending.session or "") if pending else None)
            if watch is None and method == "approval":  # nobody decides: a no
                self.notify("approval.resolve", {"session": session, "id": params["id"], "allow": False})
            if watch is None and method in EVENTS and len(self.early) < EARLY_MAX:
                self.early.append((session, method, params))  # it is being opened
        if watch:
            watch(method, params)

    def _call_tool(self, pending: Optional[Pending], message: Dict[str, Any]) -> None:
        params = message["params"]
        reply: Dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        call = self.tools.get(params["session"]) or (self.tools.get(pending.session or "") if pending else None)
        try:
            if call is None:  # a session of a pool: any pool's table that has the tool
                call = next((t for t in self.tools.values() if params["tool"] in getattr(t, "names", ())), None)
            if call is None:
                raise CordonError("no such tool here")
            reply["result"] = {"value": call(params["tool"], params["args"])}
            line = to_line(reply)
        except Exception as e:
            reply.pop("result", None)
            reply["error"] = {"code": 1, "message": error_text(e)}
            line = to_line(reply)
        except BaseException:
            self._refuse(message)
            raise
        self._write(line)

    def _refuse(self, message: Dict[str, Any]) -> None:
        """The server keeps a call until it is answered, also one that nobody waits for any more."""
        self._write(to_line({"jsonrpc": "2.0", "id": message["id"], "error": {"code": 1, "message": "the execution was given up"}}))

    # Ending.
    def close(self) -> None:
        """Ends the server and all that it owns."""
        with self._send_lock:
            if self._closed:
                return
            self._closed = True
        if self.pid != os.getpid():
            return
        if self._socket:
            if self._address and not self._lost:
                try:  # what still runs is not waited for
                    self._socket.write(to_line({"jsonrpc": "2.0", "method": "kill"}))
                except OSError:
                    pass
            self._socket.close()
            with self._state:
                self._lost = self._lost or "the connection is closed"
                self._state.notify_all()
        if self._process:
            assert self._process.stdin and self._process.stdout
            try:  # what still runs is not waited for
                self._process.stdin.write(to_line({"jsonrpc": "2.0", "method": "kill"}))
                self._process.stdin.close()
            except (OSError, ValueError):
                pass
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            with self._state:
                self._lost = self._lost or "the connection is closed"
                self._state.notify_all()
            self._process.stdout.close()

    @property
    def share_name(self) -> Any:
        return self._address.share_name if self._address else None

    @property
    def is_alive(self) -> bool:
        return not self._closed and not self._lost and self.pid == os.getpid()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Hub:
    """The connections of this process; one more whenever all have as many sessions as they may."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: List[Connection] = []

    def get(self, sessions: int = 0, server: Optional[str] = None, key: Optional[str] = None) -> Connection:
        """One with room for so many more sessions, which are counted at once. Without a server: $CORDON_SERVER, or the program."""
        address = find_server(server, key)
        name = address.share_name if address else None
        with self._lock:
            self._connections = [c for c in self._connections if c.is_alive]
            c = next((c for c in self._connections if c.share_name == name and c.sessions < SESSIONS_MAX), None)
            if c is None:
                c = Connection(address=address)
                self._connections.append(c)
            c.sessions += sessions
            return c

    def close(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for c in connections:
            c.close()


hub = Hub()  # closed at the end by what __init__.py registers
os.register_at_fork(after_in_child=lambda: hub.__init__())  # type: ignore[misc]


def check_link(connection: Any, server: Optional[str], key: Optional[str]) -> None:
    """A server beside a connection would be ignored."""
    if connection is not None and (server is not None or key is not None):
        raise ValueError("connection= excludes server= and key=: name the server where the connection is made")


def connect(socket_path: Optional[str] = None, program: Optional[str] = None, args: Sequence[str] = (), *, server: Optional[str] = None,
            key: Optional[str] = None, ca_file: Optional[str] = None) -> Connection:
    """A server of one's own, the one at a socket, or a `cordon serve` (https://HOST, http://HOST on the loopback, unix:PATH; default
    $CORDON_SERVER) with its key ($CORDON_KEY) and, if the system does not know it, the certificate of its authority ($CORDON_CA).
    Sessions that name no connection share one per process and server."""
    if socket_path or program or args:
        if server is not None or key is not None:
            raise ValueError("server= and key= exclude socket_path, program and args")
        return Connection(program, args, socket_path)
    return Connection(address=find_server(server, key, ca_file))


def finalizer(owner: Any, connection: Connection, session: str) -> Any:
    """Closes the session when its owner is collected."""
    return weakref.finalize(owner, _drop, weakref.ref(connection), session)


def _drop(connection: "weakref.ref[Connection]", session: str) -> None:
    c = connection()
    if c is not None and c.is_alive:
        c.sessions -= 1
        c.tools.pop(session, None)
        c.watchers.pop(session, None)
        c.drop(session)

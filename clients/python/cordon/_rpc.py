"""The connection to `cordon rpc`: whoever waits for an answer reads, so that no thread stands between.

A thread that waits reads lines and hands to others what is theirs. A tool call is carried out by the thread whose execution
asked for it, which gives up reading meanwhile."""
import atexit
import collections
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence

from ._errors import ConnectionLost, CordonError, ProgramMissing, error_text, rpc_error

LINE_MAX = 8 << 20
SESSIONS_MAX = 64
EARLY_MAX = 1000
EVENTS = ("audit", "log")
_SURROGATES = re.compile("[\ud800-\udfff]")


def find_program() -> str:
    """$CORDON, or `cordon` on the PATH."""
    path = os.environ.get("CORDON") or shutil.which("cordon")
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


class Connection:
    """A server of one's own (the default), or the one that listens at `socket`.

    args: further arguments of `cordon rpc`, such as ["--level", "strict"]."""

    def __init__(self, program: Optional[str] = None, args: Sequence[str] = (), socket_path: Optional[str] = None) -> None:
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self._socket: Optional[socket.socket] = None
        if socket_path:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(socket_path)
            self._in = self._out = self._socket.fileno()
        else:
            self._process = subprocess.Popen([program or find_program(), "rpc", *args], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, bufsize=0)
            assert self._process.stdin and self._process.stdout
            self._out, self._in = self._process.stdin.fileno(), self._process.stdout.fileno()
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
        self._chunks: List[bytes] = []
        self._lines: "collections.deque[bytes]" = collections.deque()
        self._dropped: "collections.deque[str]" = collections.deque()
        self._closed = False
        self._lost: Optional[str] = None

    # Sending.
    def _write(self, line: bytes, pending: Optional[Pending] = None) -> None:
        with self._send_lock:
            if self._closed:
                raise ConnectionLost("the connection is closed")
            self._sent += 1
            if pending:
                pending.line = self._sent
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._out, view):]
                self._flush_dropped()
            except OSError as e:
                raise ConnectionLost("the server is gone: %s" % e) from e

    def _flush_dropped(self) -> None:
        while self._dropped:
            line = to_line({"jsonrpc": "2.0", "method": "session.close", "params": {"session": self._dropped.popleft()}})
            self._sent += 1
            os.write(self._out, line)

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
        if self.pid != os.getpid():
            raise ConnectionLost("the connection belongs to another process: this one was forked from it")
        pending = Pending(session, on_note)
        with self._state:
            self._last += 1
            number = self._last
        line = to_line({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        with self._state:
            self._pending[number] = pending
        try:
            self._write(line, pending)
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
            self._take(json.loads(line), pending)

    def _exit_text(self) -> str:
        if not self._process:
            return ""
        try:
            return " (exit status %d)" % self._process.wait(1)
        except subprocess.TimeoutExpired:
            return ""

    def _next_line(self) -> Optional[bytes]:
        while not self._lines:
            try:
                data = os.read(self._in, 1 << 16)
            except OSError:
                return None
            if not data:
                return None
            end = data.rfind(b"\n")
            if end < 0:
                self._chunks.append(data)
                continue
            self._chunks.append(data[:end])
            self._lines.extend(b"".join(self._chunks).split(b"\n"))
            self._chunks = [data[end + 1:]]
        return self._lines.popleft()

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
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self._socket.close()
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

    def get(self, sessions: int = 0) -> Connection:
        """One with room for so many more sessions, which are counted at once."""
        with self._lock:
            self._connections = [c for c in self._connections if c.is_alive]
            c = next((c for c in self._connections if c.sessions < SESSIONS_MAX), None)
            if c is None:
                c = Connection()
                self._connections.append(c)
            c.sessions += sessions
            return c

    def close(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for c in connections:
            c.close()


hub = Hub()
atexit.register(hub.close)
os.register_at_fork(after_in_child=lambda: hub.__init__())  # type: ignore[misc]


def connect(socket_path: Optional[str] = None, program: Optional[str] = None, args: Sequence[str] = ()) -> Connection:
    """A server of one's own, or the one at a socket. Sessions that name no connection share one per process."""
    return Connection(program, args, socket_path)


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

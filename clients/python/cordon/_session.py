"""Sessions, their files, and pools."""
import base64
import json
import logging
import numbers
import os
import sys
import tempfile
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Union

from ._errors import CordonError, LimitExceeded, RpcError, StateError, error_text
from ._result import Result
from ._rpc import Connection, finalizer, hub
from ._tools import Table, Tools, awaited, to_tools
from ._values import encode

PIECE = 4 << 20
CONTEXT_MAX = 64 << 20
MS_MAX = 1 << 40
Bytes = Union[bytes, bytearray, memoryview, str]
Guest = Literal["python", "r", "node", "sh", "pod"]
if TYPE_CHECKING:
    from ._runner import SecurityLevel
Level = Union[Literal["permissive", "standard", "strict"], "SecurityLevel", None]
log = logging.getLogger("cordon")


@dataclass(frozen=True)
class FileInfo:
    name: str
    type: str  # "file", "directory", "symlink", "other"
    size: int
    mode: int = 0
    mtime: float = 0.0


@dataclass(frozen=True)
class Approval:
    """A call that waits for what `on_approval` says: True allows it, a text denies it and says why, {"value": x} answers in its
    place; everything else is a no."""
    id: str
    session: str
    kind: str
    what: str
    detail: Any = None


def open_params(guest: Optional[str], level: Level, policy: Optional[Mapping[str, Any]], tools: List[Any],
                env: Optional[Mapping[str, str]], options: Mapping[str, Any]) -> Dict[str, Any]:
    params: Dict[str, Any] = {k: v for k, v in options.items() if v is not None}
    if guest:
        params["guest"] = guest
    if level:
        params["level"] = str(getattr(level, "value", level))
    if policy:
        params["policy"] = dict(policy)
    if tools:
        params["tools"] = [t.to_json() for t in tools]
    if env:
        params["env"] = dict(env)
    return params


Verbose = Union[bool, Callable[[str], Any]]


def told(verbose: Verbose, event: Dict[str, Any]) -> Any:
    """One line for what a session did: [cordon] sess_… tool_call tool=add call=1."""
    rest = ("%s=%s" % (k, v if isinstance(v, str) else json.dumps(v)) for k, v in event.items()
            if k not in ("timestamp", "event", "session_id"))
    line = " ".join(("[cordon]", str(event.get("session_id")), str(event.get("event")), *rest))
    line = "".join(c if c.isprintable() else "?" for c in line)  # a name could steer the terminal
    if callable(verbose):
        return verbose(line)  # may be awaited
    if verbose:
        print(line, file=sys.stderr, flush=True)
    return None


def milliseconds(name: str, seconds: Any, least: int) -> int:
    value = float(seconds) if isinstance(seconds, numbers.Real) and not isinstance(seconds, bool) else -1.0
    if not (value > 0 or least == value == 0):
        raise ValueError("%s must be a %snumber of seconds, not %r" % (name, "positive " if least else "", seconds))
    return int(min(max(least, value * 1000), MS_MAX))


def approval_reply(a: Approval, verdict: Any) -> Dict[str, Any]:
    reply: Dict[str, Any] = {"session": a.session, "id": a.id, "allow": verdict is True}
    if isinstance(verdict, dict) and "value" in verdict:
        reply.update(allow=True, value=encode(verdict["value"], CONTEXT_MAX))
    elif isinstance(verdict, str) and verdict:
        reply["reason"] = verdict
    elif verdict is not None and not isinstance(verdict, (bool, str)):
        reply["reason"] = "what on_approval returned is no verdict (%s)" % type(verdict).__name__
    return reply


def execute_params(code: str, context: Optional[Mapping[str, Any]], stdin: Optional[Bytes], timeout: Optional[float],
                   options: Mapping[str, Any], streams: bool) -> Dict[str, Any]:
    """timeout: seconds; None: the policy's; float("inf"): none."""
    params: Dict[str, Any] = {"code": code}
    params.update((k, v) for k, v in options.items() if v is not None)
    if context:
        params["context"] = {str(k): encode(v, CONTEXT_MAX) for k, v in context.items()}
    if isinstance(stdin, str):
        params["stdin"] = stdin
    elif stdin is not None:
        params["stdin_base64"] = base64.b64encode(stdin).decode()
    if timeout is not None:
        params["timeout_ms"] = None if timeout == float("inf") else milliseconds("timeout", timeout, 1)
    if streams:
        params["stream"] = True
    return params


def output_watch(on_stdout: Optional[Callable[[str], Any]], on_stderr: Optional[Callable[[str], Any]]) -> Any:
    if not on_stdout and not on_stderr:
        return None

    def watch(method: str, params: Dict[str, Any]) -> None:
        fn = on_stdout if params["stream"] == "stdout" else on_stderr
        if fn:
            try:
                awaited(fn(params["data"]))
            except Exception:  # what a handler does is no concern of the code that runs
                log.exception("on_%s failed", params["stream"])
    return watch


def decide(connection: Connection, on_approval: Optional[Callable[[Approval], Any]], a: Approval) -> None:
    """Asks the host's function and tells the server; whatever goes wrong is a no."""
    try:
        reply = approval_reply(a, awaited(on_approval(a)) if on_approval else False)
    except Exception as e:
        log.exception("on_approval failed: the answer is no")
        reply = approval_reply(a, error_text(e))
    try:
        connection.request("approval.resolve", reply)
    except RpcError:
        pass  # it is no longer waited for


def weak_note(session: "Session") -> Callable[[str, Dict[str, Any]], None]:
    """Notes for a session, without keeping it alive."""
    ref = weakref.ref(session)

    def note(method: str, params: Dict[str, Any]) -> None:
        s = ref()
        try:
            if s is not None:
                s._note(method, params)
        except CordonError:
            raise
        except Exception:
            log.exception("what was told of %s failed", method)
    return note


class Files:
    """A session's files, also while it is busy. Paths are absolute, or beneath /home/user."""

    def __init__(self, connection: Connection, session: str) -> None:
        self._c, self._session = connection, session
        self._finalizer: Any = None  # of the session

    def _call(self, method: str, path: str, **params: Any) -> Any:
        if self._finalizer is not None and not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        params.update(session=self._session, path=absolute(path))
        return self._c.request("files." + method, params)

    def read(self, path: str) -> bytes:
        parts, offset = [], 0
        while True:
            r = self._call("read", path, offset=offset, length=PIECE)
            parts.append(base64.b64decode(r["data"]))
            offset += r["length"]
            if r["eof"]:
                return b"".join(parts)

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return self.read(path).decode(encoding)

    def write(self, path: str, data: Bytes) -> None:
        """Replaces the file as a whole, whatever its size; parents are made."""
        raw = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        if len(raw) <= PIECE:
            self._put("write", path, raw)
            return
        part = absolute(path) + ".part-" + os.urandom(4).hex()
        try:
            self._put("write", part, raw[:PIECE])
            for i in range(PIECE, len(raw), PIECE):
                self._put("append", part, raw[i:i + PIECE])
            self.move(part, path)
        except CordonError:
            try:
                self.remove(part)
            except CordonError:
                pass
            raise

    def append(self, path: str, data: Bytes) -> None:
        raw = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        for i in range(0, max(1, len(raw)), PIECE):
            self._put("append", path, raw[i:i + PIECE])

    def _put(self, method: str, path: str, data: memoryview) -> None:
        self._call(method, path, data=base64.b64encode(data).decode())

    def list(self, path: str = "/home/user") -> List[FileInfo]:
        return [FileInfo(**e) for e in self._call("list", path)["entries"]]

    def stat(self, path: str) -> FileInfo:
        return FileInfo(name=path.rstrip("/").rsplit("/", 1)[-1], **self._call("stat", path))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
            return True
        except RpcError as e:
            if e.kind == "not_found":
                return False
            raise

    def mkdir(self, path: str, parents: bool = False) -> None:
        self._call("mkdir", path, parents=parents)

    def move(self, source: str, target: str) -> None:
        self._c.request("files.move", {"session": self._session, "from": absolute(source), "to": absolute(target)})

    def remove(self, path: str, recursive: bool = False) -> None:
        self._call("remove", path, recursive=recursive)

    rm = remove


def absolute(path: str) -> str:
    path = os.fspath(path)
    return path if path.startswith("/") else "/home/user/" + path


class Session:
    """One isolated place with state.

    guest: "python", "r", "node", "sh" or "pod". level: "permissive", "standard" or "strict". policy: a dict as in
    docs/policy.md. tools: functions. on_approval(Approval): True, False, a text (why not), or {"value": x} to answer in the tool's place.
    on_audit(event): every audit event. verbose: True tells on standard error what happens, a line each; a function gets the lines
    instead. Further options: set=["key=value"], workspace="name", cold=True."""

    def __init__(self, guest: Guest = "python", *, level: Level = None, policy: Optional[Mapping[str, Any]] = None, tools: Tools = None,
                 env: Optional[Mapping[str, str]] = None, on_approval: Optional[Callable[[Approval], Any]] = None,
                 on_audit: Optional[Callable[[Dict[str, Any]], Any]] = None, verbose: Verbose = False,
                 connection: Optional[Connection] = None, set: Optional[Sequence[str]] = None, workspace: Optional[str] = None,
                 cold: Optional[bool] = None) -> None:
        options: Dict[str, Any] = {"set": set, "workspace": workspace, "cold": cold}
        listed = to_tools(tools)
        self._c = connection or hub.get(sessions=1)
        if connection:
            connection.sessions += 1
        self._on_approval, self._on_audit, self._verbose = on_approval, on_audit, verbose
        if on_audit:
            options["audit"] = True
        if verbose:
            options["verbose"] = True
        self._table = Table(listed)
        self.guest = guest
        self._attach("session.open", open_params(guest, level, policy, listed, env, options))

    def _attach(self, method: str, params: Dict[str, Any]) -> None:
        try:
            session = self._c.request(method, params)["session"]
        except BaseException:
            self._c.sessions -= 1
            raise
        self.id = session
        self.files = Files(self._c, session)
        self._c.tools[session] = self._table
        self._c.watchers[session] = watch = weak_note(self)
        early, self._c.early = self._c.early, []
        for of, what, event in early:
            if of == session:
                watch(what, event)
            else:
                self._c.early.append((of, what, event))
        self._finalizer = self.files._finalizer = finalizer(self, self._c, session)

    def _note(self, method: str, params: Dict[str, Any]) -> None:
        if method == "audit" and self._on_audit:
            awaited(self._on_audit(params))
        elif method == "log":
            awaited(told(self._verbose, params))
        elif method == "approval":
            self._approve(params)

    def _approve(self, params: Dict[str, Any]) -> None:
        params.pop("request_id", None)
        a = Approval(**params)
        decide(self._c, self._on_approval, a)

    def _call(self, method: str, /, **params: Any) -> Any:
        if not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        return self._c.request(method, dict(params, session=self.id), session=self.id)

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, *, stdin: Optional[Bytes] = None,
                timeout: Optional[float] = None, on_stdout: Optional[Callable[[str], Any]] = None,
                on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False, tool_calls: Optional[int] = None,
                validate: Optional[bool] = None) -> Result:
        """Runs the code and returns its Result; check=True raises ExecutionError where it failed."""
        if not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        watch = output_watch(on_stdout, on_stderr)
        params = execute_params(code, context, stdin, timeout, {"tool_calls": tool_calls, "validate": validate}, bool(watch))
        params["session"] = self.id
        result = Result.from_json(self._c.request("session.execute", params, session=self.id, on_note=watch))
        return result.check() if check else result

    def run(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        """The value of the code, or ExecutionError."""
        return self.execute(code, context, check=True, **options).value

    def suspend(self) -> None:
        """Executions wait until resume(); refused while one runs."""
        self._call("sandbox.suspend")

    def resume(self) -> None:
        self._call("sandbox.resume")

    def interrupt(self) -> None:
        """From another thread: asks the running code to give up (^C); the session and its state stay."""
        self._call("session.interrupt")

    def cancel(self) -> bool:
        """From another thread: ends the running execution. False: none ran."""
        return bool(self._call("session.cancel")["cancelled"])

    def restart(self) -> None:
        self._call("session.restart")

    def describe(self) -> Dict[str, Any]:
        return self._call("session.describe")  # type: ignore[no-any-return]

    def setenv(self, name: str, value: Optional[str]) -> None:
        self._call("session.setenv", name=name, value=value)

    def snapshot(self, name: Optional[str] = None) -> str:
        """A named copy of files and environment; returns its name."""
        return str(self._call("snapshot.create", **({"name": name} if name else {}))["name"])

    def restore(self, name: str) -> None:
        self._call("snapshot.restore", name=name)

    def remove_snapshot(self, name: str) -> None:
        self._call("snapshot.remove", name=name)

    def snapshots(self) -> List[Dict[str, Any]]:
        return self._call("snapshot.list")["snapshots"]  # type: ignore[no-any-return]

    def fork(self) -> "Session":
        """An independent session with the same files, policy and tools."""
        child = object.__new__(type(self))
        child._c, child.guest, child._table = self._c, self.guest, self._table
        child._on_approval, child._on_audit, child._verbose = self._on_approval, self._on_audit, self._verbose
        if not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        self._c.sessions += 1
        child._attach("session.fork", {"session": self.id})
        return child

    def export(self) -> bytes:
        """The workspace as one blob, whatever its size."""
        try:
            return base64.b64decode(self._call("files.export")["data"])
        except LimitExceeded:  # more than fits into an answer
            with tempfile.TemporaryDirectory(prefix="cordon-") as folder:
                self.export_to(os.path.join(folder, "state"))
                with open(os.path.join(folder, "state"), "rb") as f:
                    return f.read()

    def export_to(self, path: str) -> None:
        self._call("files.export", to=os.path.abspath(path))

    def import_(self, blob: bytes) -> Any:
        """Merges an exported blob; returns what was skipped and why."""
        if len(blob) > PIECE:  # more than fits into a request
            with tempfile.NamedTemporaryFile(prefix="cordon-") as f:
                f.write(blob)
                f.flush()
                return self.import_from(f.name)
        return self._call("files.import", data=base64.b64encode(blob).decode())["report"]

    def import_from(self, path: str) -> Any:
        return self._call("files.import", **{"from": os.path.abspath(path)})["report"]

    @property
    def is_alive(self) -> bool:
        try:
            return bool(self._finalizer.alive and self._c.is_alive and self.describe()["state"] == "running")
        except CordonError:
            return False

    def close(self) -> None:
        """Ends everything in it; more than once is harmless."""
        if self._finalizer.detach() is None:
            return
        self._c.sessions -= 1
        if self._c.is_alive:
            try:
                answer = self._c.request("session.close", {"session": self.id}, session=self.id)
                for lost in answer.get("warnings", ()):  # the workspace was not saved, or the audit log lacks lines
                    warnings.warn(lost, RuntimeWarning, stacklevel=2)
            except RpcError:
                pass
        self._c.tools.pop(self.id, None)
        self._c.watchers.pop(self.id, None)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state, pid = "stopped", "NA"
        if self._finalizer.alive:
            try:
                state, pid = "running", str(self.describe()["pid"])
            except CordonError:
                pass
        return "<cordon.Session %s %s [%s] pid=%s tools=%d>" % (self.guest, self.id, state, pid, len(self._table.names))


class Pool:
    """Sessions made ahead of time: execute() takes any idle one, which is replaced by a clean one afterwards."""

    def __init__(self, guest: Guest = "python", size: int = 4, *, max_size: Optional[int] = None, reuse: bool = False, level: Level = None,
                 policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, env: Optional[Mapping[str, str]] = None,
                 on_approval: Optional[Callable[[Approval], Any]] = None, connection: Optional[Connection] = None,
                 set: Optional[Sequence[str]] = None, cold: Optional[bool] = None) -> None:
        options: Dict[str, Any] = {"set": set, "cold": cold}
        listed = to_tools(tools)
        self._c = connection or hub.get()
        self._guest, self._on_approval = guest, on_approval
        options.update(size=size, max_size=max_size, reuse=reuse)
        self.id: str = self._c.request("pool.open", open_params(guest, level, policy, listed, env, options))["pool"]
        self._c.tools[self.id] = self._table = Table(listed)
        self._c.watchers[self.id] = self._note
        self._closed = False

    def _note(self, method: str, params: Dict[str, Any]) -> None:
        if method == "approval":
            params.pop("request_id", None)
            decide(self._c, self._on_approval, Approval(**params))

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, *, stdin: Optional[Bytes] = None,
                timeout: Optional[float] = None, wait: float = 0, on_stdout: Optional[Callable[[str], Any]] = None,
                on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False) -> Result:
        """wait: seconds to wait for an idle session; 0: LimitExceeded "All sessions are busy." at once."""
        watch = output_watch(on_stdout, on_stderr)
        params = execute_params(code, context, stdin, timeout, {"wait_ms": milliseconds("wait", wait, 0)}, bool(watch))
        params["pool"] = self.id
        result = Result.from_json(self._c.request("pool.execute", params, session=self.id, on_note=watch))
        return result.check() if check else result

    def run(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        return self.execute(code, context, check=True, **options).value

    def __repr__(self) -> str:
        try:
            now = self.status()
        except CordonError:
            now = {}
        if self._closed or not now:
            return "<cordon.Pool %s [closed]>" % self._guest
        return "<cordon.Pool %s size=%d idle=%d busy=%d>" % (self._guest, now["total"], now["idle"], now["busy"])

    def acquire(self, wait: float = 0) -> Session:
        """A session that goes back to the pool when it is closed."""
        s = object.__new__(Session)
        s._c, s.guest, s._table = self._c, self._guest, self._table
        s._on_approval, s._on_audit, s._verbose = self._on_approval, None, False
        wait_ms = milliseconds("wait", wait, 0)
        self._c.sessions += 1
        s._attach("pool.acquire", {"pool": self.id, "wait_ms": wait_ms})
        return s

    def status(self) -> Dict[str, int]:
        if self._closed:
            return {"total": 0, "busy": 0, "idle": 0, "dead": 0}
        return self._c.request("pool.status", {"pool": self.id})  # type: ignore[no-any-return]

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._c.is_alive:
            self._c.request("pool.close", {"pool": self.id})
        self._c.tools.pop(self.id, None)
        self._c.watchers.pop(self.id, None)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def run(code: str, context: Optional[Mapping[str, Any]] = None, *, guest: Guest = "python", level: Level = None,
        policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None, connection: Optional[Connection] = None, **options: Any) -> Result:
    """One shot: a fresh session, executed, and nothing left of it."""
    with Session(guest, level=level, policy=policy, tools=tools, env=env, connection=connection) as s:
        return s.execute(code, context, timeout=timeout, **options)


def policy(level: Level = None, policy: Optional[Mapping[str, Any]] = None, *, connection: Optional[Connection] = None) -> Dict[str, Any]:
    """The whole policy that these describe."""
    return (connection or hub.get()).request("policy.show", open_params(None, level, policy, [], None, {}))["policy"]  # type: ignore


def check_policy(policy: Mapping[str, Any], level: Level = None, *, connection: Optional[Connection] = None) -> Dict[str, Any]:
    """{"valid", "error", "explanation"}"""
    return (connection or hub.get()).request("policy.check", open_params(None, level, policy, [], None, {}))  # type: ignore


def validate(code: str, guest: Guest = "python", *, connection: Optional[Connection] = None) -> Dict[str, Any]:
    """Syntax and advice without running anything: {"valid", "error", "line", "column", "warnings"}."""
    return (connection or hub.get()).request("validate", {"code": code, "guest": guest})  # type: ignore[no-any-return]


def sanitize(message: str, max: int = 0, *, connection: Optional[Connection] = None) -> str:
    """The message without paths, pids, hosts and traces."""
    return (connection or hub.get()).request("sanitize", {"message": message, "max": max})["message"]  # type: ignore[no-any-return]


def verify_audit(path: str, prev: Optional[str] = None, *, connection: Optional[Connection] = None) -> Dict[str, Any]:
    params = {"path": os.path.abspath(path)}
    if prev:
        params["prev"] = prev
    return (connection or hub.get()).request("audit.verify", params)  # type: ignore[no-any-return]

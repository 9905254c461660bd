"""Sessions, their files, and pools."""
import base64
import contextlib
import json
import numbers
import os
import sys
import time
import warnings
import weakref
from dataclasses import dataclass
from typing import (TYPE_CHECKING, Any, BinaryIO, Callable, Dict, Generator, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple,
                    Union)

from ._errors import CordonError, LimitExceeded, NotFound, RpcError, StateError, error_text
from ._result import Result
from ._rpc import Connection, Table as BufferTable, check_link, finalizer, hub
from ._tools import Table, Tools, awaited, to_tools
from ._values import encode
from ._watch import Watch

PIECE = 4 << 20
BLOCK = 8 << 20  # of a file that the server opens itself
CONTEXT_MAX = 64 << 20
COLUMN_GUESTS = ("python", "r", "node") if sys.byteorder == "little" else ()  # they take binary columns
MS_MAX = 1 << 40
Bytes = Union[bytes, bytearray, memoryview, str]
# Transfers are written once, as generators of requests that get the answers, for the client that waits and the one that awaits.
Progress = Optional[Callable[[int, int], Any]]  # bytes so far, bytes in all
Steps = Generator[Tuple[str, Dict[str, Any]], Any, None]
Guest = Literal["python", "r", "node", "sh", "pod"]
if TYPE_CHECKING:
    import logging

    from ._runner import SecurityLevel
Level = Union[Literal["permissive", "standard", "strict"], "SecurityLevel", None]


def logger() -> "logging.Logger":
    """Only what goes wrong is logged."""
    import logging
    return logging.getLogger("cordon")


@dataclass(frozen=True)
class FileInfo:
    name: str
    type: str  # "file", "directory" ("dir" under codepod's names), "symlink", "other"
    size: int
    mode: int = 0
    mtime: float = 0.0

    @property
    def permissions(self) -> int:
        return self.mode


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


def language_list(languages: Union[str, Sequence[str], None]) -> Optional[List[str]]:
    """One name needs no list around it."""
    return [languages] if isinstance(languages, str) else list(languages) if languages else None


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
                   options: Mapping[str, Any], streams: bool, guest: Optional[str] = None) -> Dict[str, Any]:
    """timeout: seconds; None: the policy's; float("inf"): none. guest: whether large values go as binary columns."""
    params: Dict[str, Any] = {"code": code}
    params.update((k, v) for k, v in options.items() if v is not None)
    if context:
        from ._columns import Writer
        columns = Writer(None) if guest in COLUMN_GUESTS else None
        params["context"] = {str(k): encode(v, CONTEXT_MAX, columns) for k, v in context.items()}
        if columns is not None and columns.table:
            params["buffer"] = table = BufferTable(columns.header())
            table.parts = columns.parts
    if guest in COLUMN_GUESTS:
        params["buffers"] = True
    if isinstance(stdin, str):
        params["stdin"] = stdin
    elif stdin is not None:
        params["stdin_base64"] = base64.b64encode(stdin).decode()
    if timeout is not None:
        params["timeout_ms"] = None if timeout == float("inf") else milliseconds("timeout", timeout, 1)
    if streams:
        params["stream"] = True
    return params


Pty = Union[None, bool, Tuple[int, int]]


def command_params(command: str, cwd: Optional[str], env: Optional[Mapping[str, str]], stdin: Optional[Bytes],
                   timeout: Optional[float], streams: bool, pty: Pty = None) -> Dict[str, Any]:
    more: Dict[str, Any] = {"command": command, "cwd": cwd, "env": dict(env) if env else None, "pty": pty or None}
    if isinstance(pty, (tuple, list)):
        rows, columns = pty
        more["pty"] = {"rows": rows, "columns": columns}
    params = execute_params("", None, stdin, timeout, more, streams)
    del params["code"]
    return params


def expose_params(port: int, host_port: Optional[int], path: Any) -> Dict[str, Any]:
    params: Dict[str, Any] = {"port": port}
    if host_port is not None:
        params["host_port"] = host_port
    if path is not None:
        params["path"] = os.fspath(path)
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
                logger().exception("on_%s failed", params["stream"])
    return watch


def decide(connection: Connection, on_approval: Optional[Callable[[Approval], Any]], a: Approval) -> None:
    """Asks the host's function and tells the server; whatever goes wrong is a no."""
    try:
        reply = approval_reply(a, awaited(on_approval(a)) if on_approval else False)
    except Exception as e:
        logger().exception("on_approval failed: the answer is no")
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
            logger().exception("what was told of %s failed", method)
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

    def upload(self, local: Any, path: str, progress: Progress = None) -> None:
        """Copies a file of the host (a path, or an open binary file) into the session, in constant memory. progress(done, total) is
        called for each piece. The file appears under its name when it is complete."""
        run_steps(upload_steps(local, path, progress), self._step)

    def download(self, path: str, local: Any, progress: Progress = None) -> None:
        """Copies a file of the session to the host (a path, or an open binary file), in constant memory."""
        run_steps(download_steps(path, local, progress), self._step)

    def _step(self, method: str, params: Dict[str, Any]) -> Any:
        if self._finalizer is not None and not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        return self._c.request("files." + method, dict(params, session=self._session))

    def put_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Unpacks a tar file of the host, or copies what is in a folder of the host, into a directory of the session.
        Returns what was skipped and why."""
        with tar_file(tar) as name:
            return self._call("put_tar", path, **{"from": name})["report"]  # type: ignore[no-any-return]

    def get_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Packs a directory of the session into a new tar file of the host. Returns what was skipped and why."""
        return self._call("get_tar", path, to=os.path.abspath(tar))["report"]  # type: ignore[no-any-return]

    def watch(self, path: str = "/home/user", recursive: bool = True) -> Watch:
        """Watches a directory, also while code runs: `for change in watch`, or `watch.changes(timeout)`."""
        return Watch(self._step, absolute(path), recursive)


def absolute(path: str) -> str:
    path = os.fspath(path)
    return path if path.startswith("/") else "/home/user/" + path


@contextlib.contextmanager
def tar_file(tar: Any) -> Iterator[str]:
    """The absolute name of a tar file; of a folder, that of a temporary one with what is in it."""
    if not os.path.isdir(tar):
        yield os.path.abspath(tar)
        return
    import tarfile
    import tempfile
    with tempfile.TemporaryDirectory(prefix="cordon-") as folder:
        name = os.path.join(folder, "folder.tar")
        with tarfile.open(name, "w") as out:
            for entry in sorted(os.listdir(tar)):
                out.add(os.path.join(tar, entry), entry)
        yield name


def upload_target(local: Any, path: str) -> str:
    """A name with a slash at its end is a directory, as for cp."""
    target = absolute(path)
    if target.endswith("/") and not hasattr(local, "read"):
        target += os.path.basename(os.fsdecode(local))
    return target


def host_name(local: Any) -> Optional[str]:
    """A path that the server can open; None: a file object, or a name that is no text."""
    if hasattr(local, "read") or hasattr(local, "write"):
        return None
    name = os.path.abspath(os.fsdecode(local))
    try:
        name.encode()
        return name
    except UnicodeEncodeError:
        return None


def upload_pieces(source: BinaryIO, part: str, progress: Progress) -> Steps:
    """For what only this process can read."""
    done, method = 0, "write"
    while True:
        data = source.read(PIECE)
        if data or not done:
            yield method, {"path": part, "data": base64.b64encode(data).decode()}
        if not data:
            return
        done, method = done + len(data), "append"
        if progress:
            progress(done, done)


def upload_host(name: str, part: str, progress: Progress) -> Steps:
    """The server reads the file itself."""
    done, is_over = 0, False
    while not is_over:
        r = yield "upload", {"path": part, "from": name, "offset": done, "length": BLOCK}
        done, is_over = done + r["length"], r["eof"]
        if progress:
            progress(done, max(done, r["size"]))


def upload_steps(local: Any, path: str, progress: Progress) -> Steps:
    """Beside the file first, so that a transfer that fails leaves no half of it."""
    name, target = host_name(local), upload_target(local, path)
    part = target + ".part-" + os.urandom(4).hex()
    try:
        if name is not None:
            yield from upload_host(name, part, progress)
        elif hasattr(local, "read"):
            yield from upload_pieces(local, part, progress)
        else:
            with open(local, "rb") as f:
                yield from upload_pieces(f, part, progress)
        yield "move", {"from": part, "to": target}
    except GeneratorExit:
        raise
    except BaseException as e:
        try:
            yield "remove", {"path": part}
        except CordonError:
            pass
        if isinstance(e, RpcError):  # in terms of the name that was asked for
            e.message = e.message.replace(part, target)
            e.args = (e.message,)
        raise


def download_pieces(path: str, out: BinaryIO, progress: Progress) -> Steps:
    done, is_over = 0, False
    while not is_over:
        r = yield "read", {"path": absolute(path), "offset": done, "length": PIECE}
        out.write(base64.b64decode(r["data"]))
        done, is_over = done + r["length"], r["eof"]
        if progress:
            progress(done, done)


def download_host(path: str, name: str, progress: Progress) -> Steps:
    done, is_over = 0, False
    while not is_over:
        r = yield "download", {"path": absolute(path), "to": name, "offset": done, "length": BLOCK}
        done, is_over = done + r["length"], r["eof"]
        if progress:
            progress(done, max(done, r["size"]))


def download_steps(path: str, local: Any, progress: Progress) -> Steps:
    if hasattr(local, "write"):
        yield from download_pieces(path, local, progress)
        return
    target = os.path.abspath(os.fsdecode(local))
    part = target + ".part-" + os.urandom(4).hex()
    with open(part, "xb") as f:
        try:
            if host_name(part) is None:
                yield from download_pieces(path, f, progress)
                f.flush()
            else:
                yield from download_host(path, part, progress)
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise


def run_steps(steps: Steps, call: Callable[[str, Dict[str, Any]], Any]) -> None:
    try:
        method, params = next(steps)
        while True:
            try:
                answer = call(method, params)
            except BaseException as e:
                method, params = steps.throw(e)
            else:
                method, params = steps.send(answer)
    except StopIteration:
        pass


PackageNames = Union[Sequence[str], Mapping[str, Sequence[str]], None]


def by_language(packages: PackageNames, guest: str) -> List[Tuple[str, List[str]]]:
    """A list is of the guest's language, and of Python for a shell; a dict says which."""
    if not packages:
        return []
    if isinstance(packages, str):
        raise TypeError("packages must be a list of names, or a dict of them by language")
    if isinstance(packages, Mapping):
        return [(language, list(names)) for language, names in packages.items()]
    return [("python" if guest == "sh" else guest, list(packages))]


def install_params(names: Union[str, Sequence[str]], language: Optional[str], guest: str, timeout: Optional[float]) -> Dict[str, Any]:
    params: Dict[str, Any] = {"names": [names] if isinstance(names, str) else list(names),
                              "language": language or ("python" if guest == "sh" else guest)}
    if timeout is not None:
        params["timeout_ms"] = max(1, int(timeout * 1000))
    return params


class Packages:
    """What can be installed into the workspace, as far as the policy names it (docs/packages.md)."""

    def __init__(self, session: "Session") -> None:
        self._session = weakref.proxy(session)

    def install(self, names: Union[str, Sequence[str]], language: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """{"manager", "packages": {name: version}, "count"}. Raises Denied for a name that the policy does not have, NotFound,
        LimitExceeded, or another RpcError."""
        s = self._session
        answer: Dict[str, Any] = s._call("session.install", **install_params(names, language, s.guest, timeout))
        return answer


class Session:
    """One isolated place with state.

    guest: "python", "r", "node", "sh" or "pod". level: "permissive", "standard" or "strict". policy: a dict as in
    docs/policy.md. tools: functions. on_approval(Approval): True, False, a text (why not), or {"value": x} to answer in the tool's place.
    on_audit(event): every audit event. verbose: True tells on standard error what happens, a line each; a function gets the lines
    instead. languages: ["python", "r", "node", "sh"] for context() and command(). packages: names to install first
    (docs/packages.md), of the guest's language, or {"r": [...]}. server, key: a `cordon serve` instead of the local program, as
    "https://HOST" or "unix:PATH" (default: $CORDON_SERVER and $CORDON_KEY). Further options: set=["key=value"], workspace="name",
    cold=True."""

    _contexts: Dict[Any, "Context"]

    def __init__(self, guest: Guest = "python", *, level: Level = None, policy: Optional[Mapping[str, Any]] = None, tools: Tools = None,
                 env: Optional[Mapping[str, str]] = None, on_approval: Optional[Callable[[Approval], Any]] = None,
                 on_audit: Optional[Callable[[Dict[str, Any]], Any]] = None, verbose: Verbose = False,
                 connection: Optional[Connection] = None, set: Optional[Sequence[str]] = None, workspace: Optional[str] = None,
                 cold: Optional[bool] = None, languages: Union[str, Sequence[str], None] = None, packages: PackageNames = None,
                 server: Optional[str] = None, key: Optional[str] = None) -> None:
        wanted = by_language(packages, guest)
        options: Dict[str, Any] = {"set": set, "workspace": workspace, "cold": cold, "languages": language_list(languages)}
        listed = to_tools(tools)
        check_link(connection, server, key)
        self._c = connection or hub.get(1, server, key)
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
        try:
            for language, names in wanted:
                self.packages.install(names, language)
        except BaseException:
            self.close()
            raise

    def _attach(self, method: str, params: Dict[str, Any]) -> None:
        try:
            session = self._c.request(method, params)["session"]
        except BaseException:
            self._c.sessions -= 1
            raise
        self.id = session
        self._contexts = {}
        self.files = Files(self._c, session)
        self.packages = Packages(self)
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
        params = execute_params(code, context, stdin, timeout, {"tool_calls": tool_calls, "validate": validate}, bool(watch),
                                self.guest)
        params["session"] = self.id
        result = Result.from_json(self._c.request("session.execute", params, session=self.id, on_note=watch))
        return result.check() if check else result

    def run(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        """The value of the code, or ExecutionError."""
        return self.execute(code, context, check=True, **options).value

    def context(self, language: Optional[str] = None, name: str = "default") -> "Session":
        """A further interpreter in this sandbox: same files, processes and limits, a state of its own. The same language and name
        give the same one. It can execute at the same time as others. None: the session's own language."""
        key = (language or self.guest, name)
        if key not in self._contexts:
            params = {"language": language or self.guest, "context": name}
            id = self._call("session.context", **params)["session"]
            if id == self.id:
                return self
            for known in list(self._contexts.values()):  # by another name of its language
                if known.id == id:
                    return known
            self._contexts.setdefault(key, Context(self, id, key))
        return self._contexts[key]

    def command(self, command: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                stdin: Optional[Bytes] = None, timeout: Optional[float] = None, on_stdout: Optional[Callable[[str], Any]] = None,
                on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False, pty: Pty = None) -> Result:
        """Runs a command line for bash beside everything else; any number at once. pty: on a terminal; True or (rows, columns)."""
        watch = output_watch(on_stdout, on_stderr)
        params = command_params(command, cwd, env, stdin, timeout, bool(watch), pty)
        if not self._finalizer.alive:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        params["session"] = self.id
        result = Result.from_json(self._c.request("session.command", params, session=self.id, on_note=watch))
        return result.check() if check else result

    def start(self, command: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
              stdin: Optional[Bytes] = None, timeout: Optional[float] = None, pty: Pty = None) -> "Process":
        """The same in the background. Without stdin, Process.write() gives it."""
        params = command_params(command, cwd, env, stdin, timeout, False, pty)
        return Process(self, self._call("session.command", background=True, **params)["process"])

    def processes(self) -> List[Dict[str, Any]]:
        """The commands in the background: process, command, state and exit_code of each."""
        return self._call("process.list")["processes"]  # type: ignore[no-any-return]

    def expose(self, port: int, *, host_port: Optional[int] = None, path: Any = None) -> str:
        """Lets the host connect to a port that the code listens on; the policy's `expose` must name it. Returns the path of a Unix
        socket of this user's, or with host_port (0: any free one) "127.0.0.1:PORT", which every user of the machine can use. It lasts
        until unexpose() or the end of the session."""
        return self._call("session.expose", **expose_params(port, host_port, path))["address"]  # type: ignore[no-any-return]

    def unexpose(self, port: int) -> None:
        self._call("session.unexpose", port=port)

    def exposed(self) -> List[Dict[str, Any]]:
        """port, address and connections of each."""
        return self._call("session.exposed")["ports"]  # type: ignore[no-any-return]

    def suspend(self) -> None:
        """Executions wait until resume(); refused while one runs."""
        self._call("sandbox.suspend")

    def resume(self) -> None:
        self._call("sandbox.resume")

    def interrupt(self) -> None:
        """From another thread: asks the running code to give up (^C); the session and its state stay."""
        self._call("session.interrupt")

    def is_complete(self, code: str) -> str:
        """Whether the code can run: "complete", "incomplete" (more lines may make it so), "invalid" or "unknown". Nothing runs."""
        return str(self._call("session.inspect", code=code, question="is_complete").get("status", "unknown"))

    def complete(self, code: str) -> Tuple[str, List[str]]:
        """How the word at the end of the code may go on: the end of the code that is replaced, and what may replace it."""
        answer = self._call("session.inspect", code=code, question="complete")
        return answer.get("token", ""), answer.get("matches", [])

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
            import tempfile
            with tempfile.TemporaryDirectory(prefix="cordon-") as folder:
                self.export_to(os.path.join(folder, "state"))
                with open(os.path.join(folder, "state"), "rb") as f:
                    return f.read()

    def export_to(self, path: str) -> None:
        self._call("files.export", to=os.path.abspath(path))

    def import_(self, blob: bytes) -> Any:
        """Merges an exported blob; returns what was skipped and why."""
        if len(blob) > PIECE:  # more than fits into a request
            import tempfile
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
        for context in list(self._contexts.values()):
            context._forget()
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


class _Part:
    """A context lives as long as its session, and until it is closed."""

    def __init__(self, whole: Any) -> None:
        self._whole, self._is_open = whole, True

    @property
    def alive(self) -> bool:
        return bool(self._is_open and self._whole.alive)

    def detach(self) -> Any:
        was, self._is_open = self.alive, False
        return was or None


class Context(Session):
    """One of session.context()."""

    def __init__(self, owner: Session, id: str, key: Any) -> None:
        self._c, self._table, self.id = owner._c, owner._table, id
        self.guest, self.name = key
        self._on_approval, self._on_audit, self._verbose = owner._on_approval, owner._on_audit, owner._verbose
        self._owner, self._key, self._contexts = owner, key, {}
        self._finalizer = _Part(owner._finalizer)
        self.files = Files(self._c, owner.id)
        self.files._finalizer = self._finalizer
        self._c.tools[id] = self._table
        self._c.watchers[id] = weak_note(self)

    def context(self, language: Optional[str] = None, name: str = "default") -> Session:
        return self._owner.context(language or self._owner.guest, name)

    def _forget(self) -> None:
        self._finalizer.detach()
        self._owner._contexts.pop(self._key, None)
        self._c.tools.pop(self.id, None)
        self._c.watchers.pop(self.id, None)

    def close(self) -> None:
        """Ends this interpreter; the session goes on."""
        if not self._finalizer.alive:
            return
        try:
            self._call("session.close")
        except RpcError:
            pass
        self._forget()


def check_write_time(process: int, end: Optional[float], left: int) -> None:
    if end is not None and time.monotonic() >= end:
        raise RpcError(-32004, "process %d does not read its stdin: %d bytes were not written" % (process, left), {"code": "timeout"})


def kept_output(result: Result, stream: str, offset: int) -> bytes:
    """Of a process that the server has forgotten."""
    return (result.stderr if stream == "stderr" else result.stdout).encode()[offset:]


class Process:
    """A command in the background; see Session.start(). It stays readable after its end."""

    def __init__(self, session: Session, id: int) -> None:
        self._session, self.id = session, id
        self._result: Optional[Result] = None  # the server keeps only the last ones

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Its result, as often as it is asked for. timeout: in seconds; if it still runs then, RpcError of kind "timeout"."""
        params = {} if timeout is None else {"wait_ms": milliseconds("timeout", timeout, 0)}
        if self._result is None:
            self._result = Result.from_json(self._session._call("process.wait", process=self.id, **params))
        return self._result

    def kill(self) -> None:
        """Ends it and what it started; nothing happens if it has ended. Its exit code is then 137."""
        if self._result is None:
            self._session._call("process.kill", process=self.id)

    def write(self, data: Bytes, eof: bool = False, timeout: Optional[float] = None) -> None:
        """Writes to its stdin, as fast as it reads. timeout: in seconds; if it has not read everything then, RpcError of kind
        "timeout". Without one, this waits until the command reads or ends."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        end = None if timeout is None else time.monotonic() + milliseconds("timeout", timeout, 0) / 1000
        while True:
            piece = raw[:32768]
            last = eof and len(piece) == len(raw)
            done = self._session._call("process.write", process=self.id, data=base64.b64encode(piece).decode(), eof=last)["written"]
            raw = raw[done:]
            if not raw:
                return
            if done == 0:
                check_write_time(self.id, end, len(raw))
                time.sleep(0.01)

    def close_stdin(self) -> None:
        """On a terminal: types ^D."""
        self._session._call("process.write", process=self.id, eof=True)

    def resize(self, rows: int, columns: int) -> None:
        """Of a command on a terminal."""
        self._session._call("process.resize", process=self.id, rows=rows, columns=columns)

    def signal(self, name: str) -> None:
        """"INT", "TERM", "HUP", ... to its process group; on a terminal INT, QUIT and TSTP go to what is in the foreground."""
        self._session._call("process.signal", process=self.id, signal=name)

    def read(self, stream: str = "stdout", offset: int = 0) -> bytes:
        """What it has written so far, from this offset on; the last 256 KiB are kept."""
        try:
            r = self._session._call("process.output", process=self.id, stream=stream, offset=offset)
        except NotFound:
            if self._result is None:
                raise
            return kept_output(self._result, stream, offset)
        return base64.b64decode(r["data"])

    @property
    def stdout(self) -> str:
        return self.read().decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.read("stderr").decode(errors="replace")

    @property
    def exit_code(self) -> Optional[int]:
        """None: it still runs."""
        try:
            return self.wait(0).exit_code
        except RpcError as e:
            if e.kind != "timeout":
                raise
            return None

    @property
    def is_running(self) -> bool:
        return self._result is None and any(p["process"] == self.id and p["state"] == "running" for p in self._session.processes())


class Pool:
    """Sessions made ahead of time: execute() takes any idle one, which is replaced by a clean one afterwards."""

    def __init__(self, guest: Guest = "python", size: int = 4, *, max_size: Optional[int] = None, reuse: bool = False, level: Level = None,
                 policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, env: Optional[Mapping[str, str]] = None,
                 on_approval: Optional[Callable[[Approval], Any]] = None, connection: Optional[Connection] = None,
                 set: Optional[Sequence[str]] = None, cold: Optional[bool] = None, server: Optional[str] = None,
                 key: Optional[str] = None) -> None:
        options: Dict[str, Any] = {"set": set, "cold": cold}
        listed = to_tools(tools)
        check_link(connection, server, key)
        self._c = connection or hub.get(0, server, key)
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
        params = execute_params(code, context, stdin, timeout, {"wait_ms": milliseconds("wait", wait, 0)}, bool(watch),
                                self._guest)
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
        timeout: Optional[float] = None, connection: Optional[Connection] = None, server: Optional[str] = None,
        key: Optional[str] = None, **options: Any) -> Result:
    """One shot: a fresh session, executed, and nothing left of it."""
    with Session(guest, level=level, policy=policy, tools=tools, env=env, connection=connection, server=server, key=key) as s:
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

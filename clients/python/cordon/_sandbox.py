"""A shell with files, snapshots, forks, mounts and extensions, under codepod's names."""
import base64
import contextlib
import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

from ._errors import LimitExceeded, RpcError, SandboxError
from ._extension import BRIDGE, PACKAGES, Extension
from ._rpc import Connection
from ._result import Denial, Result
from ._session import Bytes, FileInfo, Guest, Level, PackageNames, Process, Progress, Pty, Session, language_list
from ._vfs import VirtualFileSystem, to_bytes
from ._watch import Watch

_CLASSES = {"timeout": "TIMEOUT", "cancelled": "CANCELLED", "denied": "CAPABILITY_DENIED", "memory": "LIMIT_EXCEEDED",
            "cpu": "LIMIT_EXCEEDED", "processes": "LIMIT_EXCEEDED", "file_size": "LIMIT_EXCEEDED", "disk": "LIMIT_EXCEEDED",
            "output": "LIMIT_EXCEEDED"}
_ERRNO = re.compile(r"E[A-Z0-9]+: ")
_STATUS = {"timeout": 124, "cancelled": 125, "denied": 126, "memory": 137, "cpu": 137}


@dataclass
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int
    execution_time_ms: float = 0.0
    truncated: Optional[Dict[str, bool]] = None
    error_class: Optional[str] = None
    denials: List[Denial] = field(default_factory=list)
    warnings: List[Any] = field(default_factory=list)


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    """What is wrong with a file has codepod's code: 1. Its class and kind stay."""
    try:
        yield
    except RpcError as e:
        if e.errno or _ERRNO.match(e.message):
            e.code = 1
        raise


def _to_command_result(r: Result, background: bool = False) -> CommandResult:
    kind = r.error_kind or ""
    stderr = r.stderr
    if background and kind == "cancelled":  # by kill()
        return CommandResult(r.stdout, stderr, r.exit_code, r.execution_time_ms, r.truncated, _CLASSES[kind], r.denials, r.warnings)
    if kind == "timeout":
        stderr += "command timeout\n"
    elif kind == "cancelled":
        stderr += "command cancelled\n"
    elif kind == "internal":  # it never ran
        stderr += "%s\n" % r.error
    return CommandResult(r.stdout, stderr, _STATUS.get(kind, r.exit_code), r.execution_time_ms, r.truncated, _CLASSES.get(kind),
                         r.denials, r.warnings)


class Command:
    """A command in the background: wait(), kill(), signal(), write(), close_stdin(), read(), stdout, stderr, exit_code, is_running,
    and resize() of one on a terminal. It stays readable after its end."""

    def __init__(self, process: Process) -> None:
        self._process, self.id = process, process.id
        self.kill, self.write, self.close_stdin, self.read = process.kill, process.write, process.close_stdin, process.read
        self.resize, self.signal = process.resize, process.signal

    def __repr__(self) -> str:
        return "<cordon.Command %d %s>" % (self.id, "running" if self.is_running else "exit_code=%s" % self.exit_code)

    def wait(self, timeout: Optional[float] = None) -> CommandResult:
        return _to_command_result(self._process.wait(timeout), background=True)

    @property
    def stdout(self) -> str:
        return self._process.stdout

    @property
    def stderr(self) -> str:
        return self._process.stderr

    @property
    def exit_code(self) -> Optional[int]:
        """None: it still runs."""
        return None if self._process.exit_code is None else self.wait().exit_code

    @property
    def is_running(self) -> bool:
        return self._process.is_running


class _Commands:
    def __init__(self, owner: "_Shell") -> None:
        self._owner = owner

    @overload
    def run(self, command: str, stream: bool = False, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None, timeout_ms: Optional[int] = None, stdin: Optional[Bytes] = None, *,
            background: Literal[False] = False, cwd: Optional[str] = None,
            env: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None, pty: Pty = None) -> CommandResult: ...

    @overload
    def run(self, command: str, stream: bool = False, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None, timeout_ms: Optional[int] = None, stdin: Optional[Bytes] = None, *,
            background: Literal[True], cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            timeout: Optional[float] = None, pty: Pty = None) -> "Command": ...

    def run(self, command: str, stream: bool = False, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None, timeout_ms: Optional[int] = None, stdin: Optional[Bytes] = None, *,
            background: bool = False, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
            timeout: Optional[float] = None, pty: Pty = None) -> Any:
        """In a sandbox with `languages` each command runs by itself, any number at once. In one without, they share a shell one
        after the other, and there is no background, cwd, env and pty. timeout: in seconds; timeout_ms is the same under codepod's
        name. pty: on a terminal of its own; True or (rows, columns)."""
        s = self._owner._session()
        if timeout_ms is not None:
            timeout = timeout_ms / 1000
        own = background or cwd is not None or env is not None or bool(pty)
        try:
            if background:
                return Command(s.start(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, pty=pty))
            if own or self._owner._is_place:
                return _to_command_result(s.command(command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, on_stdout=on_stdout,
                                                    on_stderr=on_stderr, pty=pty))
            return _to_command_result(s.execute(command, on_stdout=on_stdout, on_stderr=on_stderr, stdin=stdin, timeout=timeout))
        except LimitExceeded as e:
            if not str(e).startswith("Command too large"):
                raise
            return CommandResult("", "command too large\n", 1, 0.0, {"stdout": False, "stderr": False}, "LIMIT_EXCEEDED")

    def list(self) -> List[Dict[str, Any]]:
        """The commands in the background."""
        return self._owner._session().processes()

    def connect(self, id: int) -> "Command":
        """A command in the background by its number; NotFound if there is none."""
        process = Process(self._owner._session(), id)
        process.read(offset=1 << 53)
        return Command(process)


def _named_as_codepod(i: FileInfo) -> FileInfo:
    return replace(i, type="dir") if i.type == "directory" else i


class SandboxFiles:
    """The files of a sandbox, under codepod's names. Paths are absolute, or beneath /home/user."""

    def __init__(self, owner: "_Shell") -> None:
        self._owner = owner

    def read(self, path: str) -> bytes:
        with _file_errors():
            return self._owner._session().files.read(path)

    def write(self, path: str, data: Bytes) -> None:
        with _file_errors():
            self._owner._session().files.write(path, data)

    def list(self, path: str = "/home/user") -> List[FileInfo]:
        with _file_errors():
            return [_named_as_codepod(e) for e in self._owner._session().files.list(path)]

    def stat(self, path: str) -> FileInfo:
        with _file_errors():
            return _named_as_codepod(self._owner._session().files.stat(path))

    def mkdir(self, path: str) -> None:
        with _file_errors():
            self._owner._session().files.mkdir(path)

    def rm(self, path: str, recursive: bool = False) -> None:
        with _file_errors():
            self._owner._session().files.remove(path, recursive)

    def upload(self, local: Any, path: str, progress: Progress = None) -> None:
        """Copies a file of the host (a path, or an open binary file) into the sandbox, in constant memory."""
        with _file_errors():
            self._owner._session().files.upload(local, path, progress)

    def download(self, path: str, local: Any, progress: Progress = None) -> None:
        """Copies a file of the sandbox to the host (a path, or an open binary file), in constant memory."""
        with _file_errors():
            self._owner._session().files.download(path, local, progress)

    def put_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Unpacks a tar file of the host, or copies what is in a folder of the host, into a directory of the sandbox.
        Returns what was skipped and why."""
        with _file_errors():
            return self._owner._session().files.put_tar(path, tar)

    def get_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Packs a directory of the sandbox into a new tar file of the host. Returns what was skipped and why."""
        with _file_errors():
            return self._owner._session().files.get_tar(path, tar)

    def watch(self, path: str = "/home/user", recursive: bool = True) -> Watch:
        """Watches a directory, also while code runs: `for change in watch`, or `watch.changes(timeout)`."""
        return self._owner._session().files.watch(path, recursive)


class _Packages:
    def __init__(self, owner: "_Shell") -> None:
        self._owner = owner

    def install(self, names: Union[str, Sequence[str]], language: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Into the workspace, as far as the policy names them (docs/packages.md). language: "python" (default), "node" or "r"."""
        return self._owner._session().packages.install(names, language, timeout)


class _Shell:
    _s: Optional[Session]
    _is_place = False

    def _init(self, session: Session) -> None:
        self._s = session
        self.commands, self.files, self.packages = _Commands(self), SandboxFiles(self), _Packages(self)

    def _session(self) -> Session:
        if self._s is None:
            raise SandboxError("Sandbox has been destroyed")
        return self._s

    def expose(self, port: int, *, host_port: Optional[int] = None, path: Any = None) -> str:
        """Lets the host connect to a port that the code listens on; see Session.expose()."""
        return self._session().expose(port, host_port=host_port, path=path)

    def unexpose(self, port: int) -> None:
        self._session().unexpose(port)

    def exposed(self) -> List[Dict[str, Any]]:
        """port, address and connections of each."""
        return self._session().exposed()

    @property
    def id(self) -> str:
        return str(self._session().id)

    def destroy(self) -> None:
        s, self._s = self._s, None
        if s:
            s.close()


class SandboxRef(_Shell):
    """One of `sandbox.sandboxes`: commands, files, sandbox_id, label and created_at (ISO 8601, UTC)."""

    def __init__(self, session: Session, label: Optional[str] = None) -> None:
        import datetime
        self.label, self.sandbox_id = label, str(session.id)
        self.created_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._init(session)

    def __repr__(self) -> str:
        return "SandboxRef(sandbox_id=%r, label=%r, created_at=%r)" % (self.sandbox_id, self.label, self.created_at)


SandboxInfo = SandboxRef  # what codepod lists has its first three fields


class SandboxManager:
    """The further sandboxes of one: all with the options that it was made with."""

    def __init__(self, owner: "Sandbox") -> None:
        self._owner = owner
        self._refs: Dict[str, SandboxRef] = {}

    def create(self, label: Optional[str] = None) -> SandboxRef:
        ref = SandboxRef(self._owner._open(), label)
        self._refs[ref.sandbox_id] = ref
        return ref

    def list(self) -> List[SandboxRef]:
        return list(self._refs.values())

    def remove(self, id: Union[str, SandboxRef]) -> None:
        key = id.sandbox_id if isinstance(id, SandboxRef) else id
        if key not in self._refs:
            raise SandboxError("Unknown sandboxId: %s" % key)
        self._refs.pop(key).destroy()


Mounts = Iterable[Tuple[str, Union[Mapping[str, Bytes], VirtualFileSystem]]]


class Sandbox(_Shell):
    """with Sandbox() as sb: sb.commands.run("echo hello").stdout

    guest: "sh" (the machine's bash and commands behind the wall) or "pod" (a WebAssembly userland, twice walled).
    languages: for run() in Python, R and Node on the same files, and for commands in the background.
    packages: names of Python packages to install first, or {"python": [...], "r": [...]} (docs/packages.md)."""

    def __init__(self, *, guest: Guest = "sh", timeout_ms: int = 30000, fs_limit_bytes: int = 256 << 20, mounts: Mounts = (),
                 python_path: Sequence[str] = (), extensions: Iterable[Extension] = (), storage: Optional[Mapping[str, Any]] = None,
                 env: Optional[Mapping[str, str]] = None, policy: Optional[Mapping[str, Any]] = None, level: Level = None,
                 connection: Optional[Connection] = None, engine: str = "auto", nice: int = 0,
                 languages: Union[str, Sequence[str], None] = None, packages: PackageNames = None, server: Optional[str] = None,
                 key: Optional[str] = None) -> None:
        if engine not in ("auto", "wasmtime", "deno"):
            raise ValueError("engine must be 'auto', 'wasmtime' or 'deno' (all mean the same wall here), not %r" % (engine,))
        nice = max(0, min(19, int(nice)))
        self._guest, self._level, self._connection = guest, level, connection
        self._server, self._key = server, key
        self._languages, self._is_place = language_list(languages), bool(languages)
        extensions = list(extensions)
        bundled = [e for e in extensions if e.python_package and guest == "sh"]  # a pod brings them itself
        self._tools = [e.to_tool() for e in extensions]
        self._env = dict(env or {})
        if python_path or bundled:
            self._env["PYTHONPATH"] = ":".join([*python_path, PACKAGES if guest == "sh" else "/usr/lib/python"])
        self._policy: Dict[str, Any] = {"timeout_ms": timeout_ms, "fs_bytes": fs_limit_bytes, **(policy or {})}
        if nice:  # as codepod's share of time: a quantum of 10 - nice / 2 in ten
            self._policy.setdefault("cpu_percent", max(10, 100 - 5 * nice))
        self._mounts: List[Dict[str, Any]] = list(self._policy.pop("mounts", []))
        self._writable: List[Tuple[str, Bytes]] = []
        self._storage = storage
        self._blob: Optional[bytes] = None
        for path, files in mounts:
            self._add_mount(path, files)
        for e in bundled:
            self._add_mount(PACKAGES, e.to_mount())
        if bundled:
            self._add_mount(PACKAGES, {"codepod_ext.py": BRIDGE})
        self._init(self._open(packages))
        self.sandboxes = SandboxManager(self)

    def _open(self, packages: PackageNames = None) -> Session:
        s = Session(self._guest, level=self._level, policy=dict(self._policy, mounts=self._mounts), tools=self._tools,
                    env=self._env, connection=self._connection, languages=self._languages, packages=packages, server=self._server,
                    key=self._key)
        for path, data in self._writable:
            s.files.write(path, data)
        return s

    def _session(self) -> Session:
        if self._blob is not None:
            raise SandboxError("Sandbox is offloaded — call rehydrate() first")
        return super()._session()

    def _add_mount(self, path: str, files: Union[Mapping[str, Bytes], VirtualFileSystem]) -> List[Tuple[str, Bytes]]:
        """Read-only ones are mounted by value; writable ones are files of the workspace."""
        writable = isinstance(files, VirtualFileSystem) and files.writable
        entries: Mapping[str, Bytes] = files._to_flat_files() if isinstance(files, VirtualFileSystem) else files
        added: List[Tuple[str, Bytes]] = []
        for name, data in entries.items():
            full = posixpath.normpath(posixpath.join(path, name))
            if not full.startswith(posixpath.normpath(path) + "/"):
                raise SandboxError("'%s' leaves its mount" % name)
            raw = to_bytes(data)
            if writable:
                added.append((full, raw))
            else:
                self._mounts.append({"guest": full, "bytes_base64": base64.b64encode(raw).decode()})
        self._writable += added
        return added

    def mount(self, path: str, files: Union[Mapping[str, Bytes], VirtualFileSystem]) -> None:
        """Files and environment stay; what runs in it is started afresh, for mounts belong to the wall."""
        old = self._session()
        blob = old.export()
        mounts, writable = list(self._mounts), list(self._writable)
        try:
            self._add_mount(path, files)
            self._s = self._reopen(blob)
        except BaseException:  # what cannot be mounted now must not be tried again later
            self._mounts, self._writable = mounts, writable
            raise
        old.close()

    def _reopen(self, blob: bytes) -> Session:
        new = self._open()
        try:
            new.import_(blob)
        except BaseException:
            new.close()
            raise
        return new

    def run(self, code: str, language: Optional[str] = None, context: str = "default", *, variables: Optional[Mapping[str, Any]] = None,
            timeout: Optional[float] = None, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False) -> Result:
        """Runs code in an interpreter that keeps its state, one for each language and context; all see the same files. Without a
        language it is the first of `languages`."""
        s = self._session().context(language or (self._languages or ["python"])[0], context)
        return s.execute(code, variables, timeout=timeout, on_stdout=on_stdout, on_stderr=on_stderr, check=check)

    def snapshot(self) -> str:
        return self._session().snapshot()

    def restore(self, id: str) -> None:
        try:
            self._session().restore(id)
        except RpcError as e:
            raise SandboxError(str(e)) from e

    def export_state(self) -> bytes:
        return self._session().export()

    def import_state(self, blob: bytes) -> Any:
        return self._session().import_(blob)

    def offload(self) -> None:
        """Saves the files (with storage["save"], where there is one) and frees everything; idempotent."""
        if self._blob is not None:
            return
        s = self._session()
        blob = s.export()
        if self._storage:
            self._storage["save"](s.id, blob)
        self._offloaded_id, self._blob, self._s = s.id, blob if not self._storage else b"", None
        s.close()

    def rehydrate(self) -> None:
        if self._blob is None:
            return
        blob = self._storage["load"](self._offloaded_id) if self._storage else self._blob
        self._s = self._reopen(blob)
        self._blob = None

    def set_env(self, name: str, value: str) -> None:
        self._session().setenv(name, value)
        self._env[name] = value

    def get_env(self, name: str) -> Optional[str]:
        """A variable that was set, as it is now: restore() brings back those of the snapshot."""
        value: Optional[str] = self._session()._call("env.get", name=name)["value"]
        return value

    def fork(self) -> "Sandbox":
        child = object.__new__(Sandbox)
        child.__dict__.update(self.__dict__)
        child._env, child._mounts, child._writable = dict(self._env), list(self._mounts), []
        child._init(self._session().fork())
        child.sandboxes = SandboxManager(child)
        return child

    def cancel(self) -> bool:
        return self._session().cancel()

    def suspend(self) -> None:
        self._session().suspend()

    def resume(self) -> None:
        self._session().resume()

    def destroy(self) -> None:
        for ref in self.sandboxes.list():
            ref.destroy()
        self._blob = None
        super().destroy()

    kill = destroy

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.destroy()

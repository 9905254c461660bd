"""A shell with files, snapshots, forks, mounts and extensions, under codepod's names."""
import abc
import base64
import inspect
import posixpath
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import LimitExceeded, RpcError, SandboxError
from ._rpc import Connection
from ._session import Bytes, Guest, Level, Session
from ._tools import Tool, awaited

_CLASSES = {"timeout": "TIMEOUT", "cancelled": "CANCELLED", "denied": "CAPABILITY_DENIED", "memory": "LIMIT_EXCEEDED",
            "cpu": "LIMIT_EXCEEDED", "processes": "LIMIT_EXCEEDED", "file_size": "LIMIT_EXCEEDED", "disk": "LIMIT_EXCEEDED",
            "output": "LIMIT_EXCEEDED"}
_STATUS = {"timeout": 124, "cancelled": 125, "denied": 126, "memory": 137, "cpu": 137}


_PACKAGES = "/opt/python"  # of extensions
_SHIM = """import subprocess


def run(*args, stdin=""):
    r = subprocess.run(["%s", *map(str, args)], input=stdin, capture_output=True, text=True, close_fds=False)
    return {"stdout": r.stdout, "stderr": r.stderr, "exit_code": r.returncode}
"""


@dataclass
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int
    execution_time_ms: float = 0.0
    truncated: Optional[Dict[str, bool]] = None
    error_class: Optional[str] = None


@dataclass(frozen=True)
class FileStat:
    type: str
    size: int
    permissions: int = 0
    mtime: float = 0.0


@dataclass(frozen=True)
class DirEntry:
    name: str
    type: str
    size: int = 0


class VirtualFileSystem(abc.ABC):
    """Files to mount by value: what it lists when the sandbox is made."""

    @abc.abstractmethod
    def files(self) -> Mapping[str, Bytes]:
        """Relative path to content."""

    writable: bool = False


class MemoryFS(VirtualFileSystem):
    def __init__(self, files: Mapping[str, Bytes], writable: bool = False) -> None:
        self._files, self.writable = dict(files), writable

    def files(self) -> Mapping[str, Bytes]:
        return self._files


@dataclass
class PythonPackage:
    version: str = "1.0.0"
    summary: str = ""
    files: Dict[str, str] = field(default_factory=dict)

    def to_files(self) -> Dict[str, str]:
        """The files, with what the package says of itself: __version__ and __doc__."""
        init = self.files.get("__init__.py", "")
        if "__version__" not in init:
            init += "\n__version__ = %r\n" % self.version
        if self.summary and "__doc__" not in init and not init.lstrip().startswith(('"', "'", "r\"")):
            init += "__doc__ = %r\n" % self.summary
        return dict(self.files, **{"__init__.py": init})


@dataclass
class Extension:
    """A command of the host's: command(args=[...], stdin="...", env={...}, cwd="...") returns text, or a dict with stdout,
    stderr and exitCode. It is given those that it takes."""
    name: str
    description: str = ""
    command: Optional[Callable[..., Any]] = None
    async_command: Optional[Callable[..., Any]] = None
    usage: str = ""
    examples: Sequence[str] = ()
    category: Optional[str] = None
    python_package: Optional[PythonPackage] = None

    def to_tool(self) -> "Tool[..., Any]":
        package = self.python_package.to_files() if self.python_package else None
        return Tool(self._run, name=self.name, description=self.description, category=self.category, command=True,
                    usage=self.usage, examples=list(self.examples), python_package=package)

    def _run(self, args: Sequence[str] = (), stdin: str = "", **more: Any) -> Dict[str, Any]:
        fn = self.command or self.async_command
        if fn is None:
            raise SandboxError("%s has no command" % self.name)
        given = dict(more, args=list(args), stdin=stdin)
        given.setdefault("env", {})
        given.setdefault("cwd", "/home/user")
        names = inspect.signature(fn).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in names.values()):
            given = {k: v for k, v in given.items() if k in names}
        r = awaited(fn(**given))
        if isinstance(r, str):
            r = {"stdout": r}
        r = r or {}
        return {"stdout": r.get("stdout", ""), "stderr": r.get("stderr", ""), "exit_code": r.get("exit_code", r.get("exitCode", 0))}


class _Commands:
    def __init__(self, owner: "_Shell") -> None:
        self._owner = owner

    def run(self, command: str, stream: bool = False, on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None, timeout_ms: Optional[int] = None,
            stdin: Optional[Bytes] = None) -> CommandResult:
        s = self._owner._session()
        try:
            r = s.execute(command, on_stdout=on_stdout, on_stderr=on_stderr, stdin=stdin,
                          timeout=None if timeout_ms is None else timeout_ms / 1000)
        except LimitExceeded as e:
            if not str(e).startswith("Command too large"):
                raise
            return CommandResult("", "command too large\n", 1, 0.0, {"stdout": False, "stderr": False}, "LIMIT_EXCEEDED")
        kind = r.error_kind or ""
        stderr = r.stderr
        if kind == "timeout":
            stderr += "command timeout\n"
        elif kind == "cancelled":
            stderr += "command cancelled\n"
        return CommandResult(r.stdout, stderr, _STATUS.get(kind, r.exit_code), r.execution_time_ms, r.truncated, _CLASSES.get(kind))


class _Files:
    def __init__(self, owner: "_Shell") -> None:
        self._owner = owner

    def read(self, path: str) -> bytes:
        return self._owner._session().files.read(path)

    def write(self, path: str, data: Bytes) -> None:
        self._owner._session().files.write(path, data)

    def list(self, path: str = "/home/user") -> List[DirEntry]:
        return [DirEntry(e.name, "dir" if e.type == "directory" else e.type, e.size)
                for e in self._owner._session().files.list(path)]

    def stat(self, path: str) -> FileStat:
        i = self._owner._session().files.stat(path)
        return FileStat("dir" if i.type == "directory" else i.type, i.size, i.mode, i.mtime)

    def mkdir(self, path: str) -> None:
        self._owner._session().files.mkdir(path)

    def rm(self, path: str, recursive: bool = False) -> None:
        self._owner._session().files.remove(path, recursive)


class _Shell:
    _s: Optional[Session]

    def _init(self, session: Session) -> None:
        self._s = session
        self.commands, self.files = _Commands(self), _Files(self)

    def _session(self) -> Session:
        if self._s is None:
            raise SandboxError("Sandbox has been destroyed")
        return self._s

    @property
    def id(self) -> str:
        return str(self._session().id)

    def destroy(self) -> None:
        s, self._s = self._s, None
        if s:
            s.close()


class SandboxRef(_Shell):
    """One of `sandbox.sandboxes`."""

    def __init__(self, session: Session, label: Optional[str] = None) -> None:
        self.label = label
        self._init(session)


class _Sandboxes:
    def __init__(self, owner: "Sandbox") -> None:
        self._owner = owner
        self._refs: Dict[str, SandboxRef] = {}

    def create(self, label: Optional[str] = None) -> SandboxRef:
        ref = SandboxRef(self._owner._open(), label)
        self._refs[ref.id] = ref
        return ref

    def list(self) -> List[SandboxRef]:
        return list(self._refs.values())

    def remove(self, id: Union[str, SandboxRef]) -> None:
        key = id.id if isinstance(id, SandboxRef) else id
        if key not in self._refs:
            raise SandboxError("Unknown sandboxId: %s" % key)
        self._refs.pop(key).destroy()


Mounts = Iterable[Tuple[str, Union[Mapping[str, Bytes], VirtualFileSystem]]]


class Sandbox(_Shell):
    """with Sandbox() as sb: sb.commands.run("echo hello").stdout

    guest: "sh" (the machine's bash and commands behind the wall) or "pod" (a WebAssembly userland, twice walled)."""

    def __init__(self, *, guest: Guest = "sh", timeout_ms: int = 30000, fs_limit_bytes: int = 256 << 20, mounts: Mounts = (),
                 python_path: Sequence[str] = (), extensions: Iterable[Extension] = (), storage: Optional[Mapping[str, Any]] = None,
                 env: Optional[Mapping[str, str]] = None, policy: Optional[Mapping[str, Any]] = None, level: Level = None,
                 connection: Optional[Connection] = None, engine: str = "auto", nice: int = 0) -> None:
        if engine not in ("auto", "wasmtime", "deno"):
            raise ValueError("engine must be 'auto', 'wasmtime' or 'deno' (all mean the same wall here), not %r" % (engine,))
        if not isinstance(nice, int) or not 0 <= nice <= 19:
            raise ValueError("nice must be an integer from 0 to 19, not %r" % (nice,))
        self._guest, self._level, self._connection = guest, level, connection
        extensions = list(extensions)
        packages = [e for e in extensions if e.python_package and guest == "sh"]  # a pod brings them itself
        self._tools = [e.to_tool() for e in extensions]
        self._env = dict(env or {})
        if python_path or packages:
            self._env["PYTHONPATH"] = ":".join([*python_path, *([_PACKAGES] if packages else [])])
        self._policy: Dict[str, Any] = {"timeout_ms": timeout_ms, "fs_bytes": fs_limit_bytes, **(policy or {})}
        if nice:  # as codepod's share of time: a quantum of 10 - nice / 2 in ten
            self._policy.setdefault("cpu_percent", max(10, 100 - 5 * nice))
        self._mounts: List[Dict[str, Any]] = list(self._policy.pop("mounts", []))
        self._writable: List[Tuple[str, Bytes]] = []
        self._storage = storage
        self._blob: Optional[bytes] = None
        for path, files in mounts:
            self._add_mount(path, files)
        for e in packages:
            assert e.python_package
            self._add_mount("%s/%s" % (_PACKAGES, e.name), {"_shim.py": _SHIM % e.name, **e.python_package.to_files()})
        self._init(self._open())
        self.sandboxes = _Sandboxes(self)

    def _open(self) -> Session:
        s = Session(self._guest, level=self._level, policy=dict(self._policy, mounts=self._mounts), tools=self._tools,
                    env=self._env, connection=self._connection)
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
        entries = files.files() if isinstance(files, VirtualFileSystem) else files
        added: List[Tuple[str, Bytes]] = []
        for name, data in entries.items():
            full = posixpath.normpath(posixpath.join(path, name))
            if not full.startswith(posixpath.normpath(path) + "/"):
                raise SandboxError("'%s' leaves its mount" % name)
            raw = data.encode() if isinstance(data, str) else bytes(data)
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
        child.sandboxes = _Sandboxes(child)
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

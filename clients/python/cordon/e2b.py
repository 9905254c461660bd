"""Sandboxes in the shape of E2B's Python SDK (e2b_code_interpreter), so that a program written for it runs here:

>>> from cordon.e2b import Sandbox  # instead of: from e2b_code_interpreter import Sandbox
>>> with Sandbox.create() as sandbox:
...     sandbox.files.write("a.txt", "hello")
...     sandbox.commands.run("cat a.txt").stdout
...     sandbox.run_code("1 + 1").text

It has files, commands, run_code, contexts and kill. It is local: there is no account, template or API key, and such options are
ignored. Code gets no network unless the policy opens it. Beyond E2B: policy, level and packages of cordon.Sandbox, and
sandbox.packages.install()."""
import base64
import posixpath
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import CordonError, NotFound, RpcError
from ._result import Result as _Outcome
from ._sandbox import Sandbox as _Place
from ._session import Bytes, Level, PackageNames
from ._watch import Watch

HOME = "/home/user"
LANGUAGES = {"python": "python", "r": "r", "javascript": "node", "js": "node", "node": "node", "bash": "sh", "sh": "sh", None: "python"}
FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/svg+xml": "svg", "text/html": "html", "text/markdown": "markdown",
           "text/latex": "latex", "application/json": "json", "application/pdf": "pdf"}
COMMAND_SECONDS = 60.0
CODE_SECONDS = 300.0

Handler = Optional[Callable[[str], Any]]


class SandboxException(CordonError):
    """All of them."""


class TimeoutException(SandboxException):
    """It took longer than its timeout; the sandbox is still there."""


class NotFoundException(SandboxException):
    """There is no such file."""


@dataclass
class CommandResult:
    stdout: str
    stderr: str
    exit_code: int
    error: Optional[str] = None


class CommandExitException(SandboxException):
    """A command ended with another status than 0."""

    def __init__(self, result: CommandResult) -> None:
        super().__init__("Command exited with code %d and error:\n%s" % (result.exit_code, result.stderr))
        self.stdout, self.stderr, self.exit_code, self.error = result.stdout, result.stderr, result.exit_code, result.error


@dataclass
class EntryInfo:
    name: str
    type: str  # "file" or "dir"
    path: str
    size: int = 0


@dataclass
class Logs:
    stdout: List[str] = field(default_factory=list)
    stderr: List[str] = field(default_factory=list)


@dataclass
class ExecutionError:
    name: str
    value: str
    traceback: str


@dataclass
class Result:
    """One output of code: a value (is_main_result), a figure, a table. png and jpeg are base64, as in E2B."""
    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    json: Optional[Any] = None
    is_main_result: bool = False

    def formats(self) -> List[str]:
        return [n for n in ("text", "html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json") if getattr(self, n) is not None]


@dataclass
class Execution:
    results: List[Result] = field(default_factory=list)
    logs: Logs = field(default_factory=Logs)
    error: Optional[ExecutionError] = None
    execution_count: Optional[int] = None

    @property
    def text(self) -> Optional[str]:
        """The value of the last expression."""
        return next((r.text for r in self.results if r.is_main_result), None)


@dataclass
class Context:
    id: str
    language: str
    cwd: str = HOME


def _results(r: _Outcome) -> List[Result]:
    results = []
    for o in r.raw.get("outputs") or []:
        name = FORMATS.get(o.get("mime", ""))
        if name:
            data = o.get("data", "")
            if o.get("encoding") == "base64" and name in ("svg", "html", "markdown", "latex", "json"):
                data = base64.b64decode(data).decode("utf-8", "replace")
            one = Result()
            setattr(one, name, data)
            results.append(one)
    if r.success and r.value is not None:
        results.append(Result(text=r.text, is_main_result=True))
    return results


def _error(r: _Outcome) -> Optional[ExecutionError]:
    if r.success:
        return None
    e = r.exception or {}
    return ExecutionError(str(e.get("name") or r.error_kind), str(e.get("message") or r.error), str(e.get("traceback") or r.error))


class _Commands:
    def __init__(self, place: _Place) -> None:
        self._place = place

    def run(self, cmd: str, background: Optional[bool] = None, envs: Optional[Mapping[str, str]] = None, user: Optional[str] = None,
            cwd: Optional[str] = None, on_stdout: Handler = None, on_stderr: Handler = None, stdin: Optional[Bytes] = None,
            timeout: Optional[float] = COMMAND_SECONDS, request_timeout: Optional[float] = None) -> Any:
        """A CommandResult; in the background a cordon.Command. There is one user: `user` is ignored."""
        ms = None if not timeout else max(1, int(timeout * 1000))
        if background:
            return self._place.commands.run(cmd, background=True, cwd=cwd, env=envs, stdin=stdin, timeout_ms=ms)
        s = self._place._session()
        r = s.command(cmd, cwd=cwd, env=envs, stdin=stdin, timeout=timeout or float("inf"), on_stdout=on_stdout, on_stderr=on_stderr)
        if r.error_kind == "timeout":
            raise TimeoutException("the command took longer than %s s" % timeout)
        result = CommandResult(r.stdout, r.stderr, r.exit_code, r.error if r.exit_code else None)
        if r.exit_code:
            raise CommandExitException(result)
        return result

    def list(self) -> List[Dict[str, Any]]:
        return list(self._place.commands.list())

    def kill(self, pid: int) -> bool:
        self._place.commands.connect(pid).kill()
        return True


class _Files:
    def __init__(self, place: _Place) -> None:
        self._files = place._session().files

    @staticmethod
    def _entry(path: str, type: str, size: int) -> EntryInfo:
        full = posixpath.join(HOME, path)
        return EntryInfo(posixpath.basename(full.rstrip("/")), "dir" if type == "directory" else "file", full, size)

    def write(self, path: str, data: Union[str, bytes], user: Optional[str] = None, request_timeout: Optional[float] = None) -> EntryInfo:
        data = data.read() if hasattr(data, "read") else data
        raw = data.encode() if isinstance(data, str) else bytes(data)
        self._files.write(path, raw)
        return self._entry(path, "file", len(raw))

    def read(self, path: str, format: str = "text", user: Optional[str] = None, request_timeout: Optional[float] = None) -> Any:
        try:
            data = self._files.read(path)
        except (NotFound, RpcError) as e:
            raise NotFoundException(str(e)) from e
        return data.decode("utf-8", "replace") if format == "text" else bytearray(data) if format == "bytes" else iter([data])

    def list(self, path: str = HOME, depth: int = 1, user: Optional[str] = None) -> List[EntryInfo]:
        found = []
        for e in self._files.list(path):
            entry = self._entry(posixpath.join(path, e.name), e.type, e.size)
            found.append(entry)
            if depth > 1 and entry.type == "dir":
                found += self.list(entry.path, depth - 1)
        return found

    def exists(self, path: str, user: Optional[str] = None) -> bool:
        try:
            self._files.stat(path)
            return True
        except RpcError:
            return False

    def make_dir(self, path: str, user: Optional[str] = None) -> bool:
        if self.exists(path):
            return False
        self._files.mkdir(path)
        return True

    def remove(self, path: str, user: Optional[str] = None) -> None:
        self._files.remove(path, True)

    def watch_dir(self, path: str, user: Optional[str] = None, request_timeout: Optional[float] = None, recursive: bool = False) -> "WatchHandle":
        return WatchHandle(self._files.watch(path, recursive), posixpath.join(HOME, path))


@dataclass(frozen=True)
class FilesystemEvent:
    """type: create, write or remove; a move is remove and create. name: relative to the watched directory."""
    name: str
    type: str


class WatchHandle:
    def __init__(self, watch: Watch, path: str) -> None:
        self._watch, self._path = watch, path

    def get_new_events(self) -> List[FilesystemEvent]:
        kinds = {"created": "create", "modified": "write", "removed": "remove"}
        return [FilesystemEvent(posixpath.relpath(c.path, self._path), kinds[c.change]) for c in self._watch.changes() if c.change in kinds]

    def stop(self) -> None:
        self._watch.close()


class Sandbox:
    """One place with Python, R, JavaScript and bash on the same files."""

    def __init__(self, template: Optional[str] = None, timeout: Optional[float] = None, metadata: Optional[Mapping[str, str]] = None,
                 envs: Optional[Mapping[str, str]] = None, *, policy: Optional[Mapping[str, Any]] = None, level: Level = None,
                 packages: PackageNames = None, **ignored: Any) -> None:
        self._place = _Place(languages=["python", "r", "node", "sh"], env=envs, policy=policy, level=level, packages=packages)
        self._metadata, self._count, self._contexts = dict(metadata or {}), 0, 0
        self.commands, self.files, self.packages = _Commands(self._place), _Files(self._place), self._place.packages

    @classmethod
    def create(cls, *args: Any, **options: Any) -> "Sandbox":
        return cls(*args, **options)

    @property
    def sandbox_id(self) -> str:
        return self._place.id

    def run_code(self, code: str, language: Optional[str] = None, context: Optional[Context] = None, on_stdout: Handler = None,
                 on_stderr: Handler = None, on_result: Optional[Callable[[Result], Any]] = None,
                 on_error: Optional[Callable[[ExecutionError], Any]] = None, envs: Optional[Mapping[str, str]] = None,
                 timeout: Optional[float] = CODE_SECONDS, request_timeout: Optional[float] = None) -> Execution:
        """Variables stay, for each language and context. After a timeout, too: the code is interrupted (TimeoutException)."""
        name = (context.language if context else language) or "python"
        if name.lower() not in LANGUAGES:
            raise SandboxException("there is no language '%s'; there are: python, r, javascript, bash" % name)
        r = self._place.run(code, LANGUAGES[name.lower()], context.id if context else "default", timeout=timeout or float("inf"),
                            on_stdout=on_stdout, on_stderr=on_stderr)
        if r.error_kind == "timeout":
            raise TimeoutException("the code took longer than %s s%s" % (timeout, "; its variables are lost" if r.restarted else ""))
        self._count += 1
        e = Execution(_results(r), Logs([r.stdout] if r.stdout else [], [r.stderr] if r.stderr else []), _error(r), self._count)
        for one in e.results if on_result else []:
            assert on_result
            on_result(one)
        if e.error and on_error:
            on_error(e.error)
        return e

    def create_code_context(self, cwd: Optional[str] = None, language: Optional[str] = None, request_timeout: Optional[float] = None) -> Context:
        self._contexts += 1
        return Context("context-%d" % self._contexts, language or "python", cwd or HOME)

    def is_running(self, request_timeout: Optional[float] = None) -> bool:
        return self._place._s is not None

    def set_timeout(self, timeout: float, request_timeout: Optional[float] = None) -> None:
        """Nothing: a sandbox lives as long as this process wants it."""

    def kill(self, request_timeout: Optional[float] = None) -> bool:
        was = self.is_running()
        self._place.destroy()
        return was

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()


__all__: Sequence[str] = ("CommandExitException", "CommandResult", "Context", "EntryInfo", "Execution", "ExecutionError", "Logs",
                          "NotFoundException", "Result", "Sandbox", "SandboxException", "TimeoutException")

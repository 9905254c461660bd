"""codepod's extensions: commands of the host's that the shell of a sandbox has, and Python packages that go with them."""
import inspect
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Optional

from ._errors import SandboxError
from ._tools import Tool

if TYPE_CHECKING:
    import asyncio

ARGUMENTS = {"args": {"type": "array", "required": False}, "stdin": {"type": ["string", "bytes"], "required": False},
             "cwd": {"type": "string", "required": False}, "env": {"type": "object", "required": False}}
PACKAGES = "/opt/extensions"  # where the packages of extensions are
ASYNC_SECONDS = 30  # of an async_command
_SHIM = """import subprocess


def run(*args, stdin=""):
    r = subprocess.run([%r, *map(str, args)], input=stdin, capture_output=True, text=True, close_fds=False)
    return {"stdout": r.stdout, "stderr": r.stderr, "exit_code": r.returncode}
"""
BRIDGE = '''"""Calls the host's extensions, as in a pod: call("name", args=["a"], stdin="") returns {"stdout", "stderr", "exit_code"}."""
import os
import subprocess


def is_extension(name):
    return "/" not in name and os.path.exists("/run/cordon/bin/" + name)


def call(name, *words, args=(), stdin="", **options):
    line = [name, *map(str, words), *map(str, args)]
    for key, value in options.items():
        line += ["--" + key, str(value)]
    r = subprocess.run(line, input=stdin, capture_output=True, text=True, close_fds=False)
    return {"stdout": r.stdout, "stderr": r.stderr, "exit_code": r.returncode}
'''


class _Loop:
    """One event loop in a thread of its own for all async handlers, so that what they open in one call works in the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: "Optional[asyncio.AbstractEventLoop]" = None
        self._thread: Optional[threading.Thread] = None

    def _get(self) -> "asyncio.AbstractEventLoop":
        import asyncio
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():  # also after fork()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="cordon-async")
                self._thread.start()
            return self._loop

    def wait(self, value: Any, name: str) -> Any:
        import asyncio
        import concurrent.futures

        async def result() -> Any:
            return await value
        future = asyncio.run_coroutine_threadsafe(result(), self._get())
        try:
            return future.result(ASYNC_SECONDS)
        except concurrent.futures.TimeoutError:
            if future.done():  # it is the handler's own
                raise
            future.cancel()
            raise SandboxError("%s took longer than %d s" % (name, ASYNC_SECONDS)) from None


_loop = _Loop()


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


def one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass
class Extension:
    """A command of the host's: command(args=[...], stdin="...", env={...}, cwd="...") returns text, or a dict with stdout,
    stderr and exitCode. It is given those that it takes. Of command and async_command the latter goes first; it has 30 seconds."""
    name: str
    description: str = ""
    command: Optional[Callable[..., Any]] = None
    async_command: Optional[Callable[..., Awaitable[Any]]] = None
    usage: str = ""
    examples: List[str] = field(default_factory=list)
    category: str = ""
    python_package: Optional[PythonPackage] = None

    def to_tool(self) -> "Tool[..., Any]":
        package = self.python_package.to_files() if self.python_package else None
        return Tool(self._run, name=self.name, description=self.description, category=self.category or None, command=True,
                    args=ARGUMENTS, usage=self.usage, examples=list(self.examples), python_package=package)

    def to_mount(self) -> Dict[str, str]:
        """What its package is made of, by path under PACKAGES: the files, a shim for the command, and what pip reads."""
        if not self.python_package:
            return {}
        package = self.python_package
        files = {"_shim.py": _SHIM % self.name, **package.to_files()}
        mount = {"%s/%s" % (self.name, path): text for path, text in files.items()}
        info = "%s-%s.dist-info/" % (self.name, package.version)
        mount[info + "METADATA"] = "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\n" % (
            self.name, package.version, one_line(package.summary))
        mount[info + "INSTALLER"] = "cordon\n"
        mount[info + "RECORD"] = "".join("%s,,\n" % path for path in [*mount, info + "RECORD"])
        return mount

    def _run(self, args: Any = (), stdin: Any = "", env: Any = None, cwd: str = "/home/user") -> Dict[str, Any]:
        fn = self.async_command or self.command
        if fn is None:
            raise SandboxError("%s has no command" % self.name)
        given = {"args": list(args), "stdin": stdin, "env": dict(env or {}), "cwd": cwd}
        names = inspect.signature(fn).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in names.values()):
            given = {k: v for k, v in given.items() if k in names}
        r: Any = fn(**given)
        if inspect.isawaitable(r):
            r = _loop.wait(r, self.name)
        if isinstance(r, str):
            r = {"stdout": r}
        r = r or {}
        return {"stdout": r.get("stdout", ""), "stderr": r.get("stderr", ""), "exit_code": r.get("exit_code", r.get("exitCode", 0))}

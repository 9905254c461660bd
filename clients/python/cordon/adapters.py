"""A session as a tool of LangChain, LlamaIndex or smolagents, and a sandbox of Inspect. None of them is imported before it is asked for."""
import asyncio
import importlib
import json
import shlex
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from . import aio
from ._errors import RpcError
from ._modeltext import MAX_CHARS, model_text
from ._result import Result
from ._session import Session, absolute

__all__ = ["inspect_environment", "langchain_tool", "llamaindex_tool", "model_text", "smolagents_tool", "tool_function"]

CLOSED = " The network and other files are closed unless its policy opens them; the answer says what was denied."
OUTPUT_MAX = 1 << 20  # of each stream that Inspect takes
READ_MAX = 100 << 20


def load(module: str, name: str, package: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as e:
        raise ImportError("%s of %s is needed: install %s, or pass it in (%s)" % (name, module, package, e)) from e


def tool_function(session: Session, *, kind: str = "code", name: Optional[str] = None, description: Optional[str] = None,
                  language: Optional[str] = None, timeout: Optional[float] = None, max_chars: int = MAX_CHARS,
                  on_result: Optional[Callable[[Result], Any]] = None) -> Callable[[str], str]:
    """run_code(code) → the text for a model, with name and description as a function has them: whatever takes a plain function takes
    it. kind="command": run_command(command), in a session with languages. on_result gets each whole result, with its plots."""
    def answer(r: Result) -> str:
        if on_result:
            on_result(r)
        return model_text(r, max_chars)

    def run_code(code: str) -> str:
        if not isinstance(code, str):
            raise TypeError("the code must be a text, not %s" % type(code).__name__)
        return answer((session.context(language) if language else session).execute(code, timeout=timeout))

    def run_command(command: str) -> str:
        if not isinstance(command, str):
            raise TypeError("the command must be a text, not %s" % type(command).__name__)
        return answer(session.command(command, timeout=timeout))

    if kind not in ("code", "command"):
        raise ValueError("a tool's kind is 'code' or 'command', not %r" % kind)
    function: Callable[[str], str] = run_code if kind == "code" else run_command
    about = "Run %s code in a sandbox. Variables and files stay between calls; the value of the last expression is returned." % (
        language or session.guest) if kind == "code" else "Run a command line in a sandbox with bash. Files stay between calls."
    function.__name__ = function.__qualname__ = name or function.__name__
    function.__doc__ = description or about + CLOSED
    return function


def langchain_tool(session: Session, structured_tool: Any = None, **options: Any) -> Any:
    """A StructuredTool of LangChain. structured_tool: that class, if it is at hand. options: those of tool_function()."""
    f = tool_function(session, **options)
    made = structured_tool or load("langchain_core.tools", "StructuredTool", "langchain-core")
    return made.from_function(func=f, name=f.__name__, description=f.__doc__)


def llamaindex_tool(session: Session, function_tool: Any = None, **options: Any) -> Any:
    """A FunctionTool of LlamaIndex."""
    f = tool_function(session, **options)
    made = function_tool or load("llama_index.core.tools", "FunctionTool", "llama-index-core")
    return made.from_defaults(fn=f, name=f.__name__, description=f.__doc__)


def smolagents_tool(session: Session, tool: Any = None, **options: Any) -> Any:
    """An instance of a class derived from smolagents' Tool."""
    f = tool_function(session, **options)
    base = tool or load("smolagents", "Tool", "smolagents")
    is_command = options.get("kind") == "command"

    def run_code(self: Any, code: str) -> str:
        return f(code)

    def run_command(self: Any, command: str) -> str:
        return f(command)

    inputs = {"command": {"type": "string", "description": "a command line for bash"}} if is_command else {
        "code": {"type": "string", "description": "the code to run"}}
    made = type("CordonTool", (base,), {"name": f.__name__, "description": f.__doc__, "inputs": inputs, "output_type": "string",
                                        "forward": run_command if is_command else run_code})
    return made()


@dataclass
class ExecResult:
    """As Inspect's, where that is not at hand."""
    success: bool
    returncode: int
    stdout: str
    stderr: str


def file_error(e: RpcError, path: str) -> Exception:
    """Inspect tells errors apart by Python's own classes."""
    if e.errno == "EISDIR":
        return IsADirectoryError(path)
    if e.kind == "not_found" or e.errno == "ENOENT":
        return FileNotFoundError(path)
    return PermissionError("%s: %s" % (path, e)) if e.kind == "denied" or e.errno in ("EACCES", "EPERM", "EROFS") else e


def session_options(config: Any) -> Dict[str, Any]:
    """What a task's sandbox=("cordon", config) says: nothing, the name of a policy file, or an object with Session's options."""
    if config is None:
        return {}
    if isinstance(config, str):
        with open(config, encoding="utf-8") as f:
            return {"policy": json.load(f)}
    dump = getattr(config, "model_dump", None)  # pydantic's
    options = dict(dump(exclude_none=True) if dump else config)
    if unknown := set(options) - {"level", "policy", "set", "env", "languages", "server", "key"}:
        raise ValueError("unknown options of the sandbox: %s" % ", ".join(sorted(map(str, unknown))))
    return options


class InspectMethods:
    """The methods of Inspect's SandboxEnvironment. One session with bash for each sample."""
    result_class: Any = ExecResult
    limit_error: Any = None  # OutputLimitExceededError(limit, text)

    def __init__(self, session: "aio.Session") -> None:
        self.session = session

    @classmethod
    def config_files(cls) -> List[str]:
        return ["cordon.json"]

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:
        session_options(config)  # a mistake in it is told before the first sample

    @classmethod
    async def task_cleanup(cls, task_name: str, config: Any, cleanup: bool) -> None:
        """Sessions end with their samples, and with this process."""

    @classmethod
    async def cli_cleanup(cls, id: Optional[str]) -> None:
        """There is nothing left of a process that has ended."""

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: Mapping[str, str]) -> Dict[str, Any]:
        options = session_options(config)
        options.setdefault("languages", ["sh"])
        guest = options["languages"][0]
        return {"default": cls(await aio.Session(guest, **options).open())}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: Mapping[str, Any], interrupted: bool) -> None:
        await asyncio.gather(*(e.session.close() for e in environments.values()))

    def _limit(self, what: str, text: Optional[str]) -> Exception:
        return self.limit_error(what, text) if self.limit_error else RuntimeError("more than %s" % what)  # type: ignore[no-any-return]

    async def exec(self, cmd: List[str], input: Union[str, bytes, None] = None, cwd: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, user: Optional[str] = None, timeout: Optional[int] = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> Any:
        """user is ignored: the sandbox has one. A retry of what may have run half would be a second run, so there is none."""
        line = cmd if isinstance(cmd, str) else shlex.join(cmd)
        r = await self.session.command(line, cwd=absolute(cwd) if cwd else None, env=env or None, stdin=input, timeout=timeout)
        if r.error_kind == "timeout":
            raise TimeoutError("the command took longer than allowed")
        if any(r.truncated.values()) or max(len(r.stdout), len(r.stderr)) > OUTPUT_MAX:
            raise self._limit("1 MiB", r.stdout[:OUTPUT_MAX])
        if r.exit_code == 126:
            raise PermissionError(r.stderr.strip() or r.error)
        if r.error_kind not in (None, "exception", "denied"):  # a limit, or the sandbox itself
            return self.result_class(False, r.exit_code or 1, r.stdout, model_text(r))
        return self.result_class(r.exit_code == 0, r.exit_code, r.stdout, r.stderr)

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        try:
            await self.session.files.write(file, contents)
        except RpcError as e:
            raise file_error(e, file) from e

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        try:
            if (await self.session.files.stat(file)).size > READ_MAX:
                raise self._limit("100 MiB", None)
            data = await self.session.files.read(file)
        except RpcError as e:
            raise file_error(e, file) from e
        return data.decode() if text else data

    async def connection(self, *, user: Optional[str] = None) -> Any:
        raise NotImplementedError("nobody can log in to this sandbox; cordon shell opens one of its own")


def inspect_environment(base: Optional[type] = None, exec_result: Any = None, limit_error: Any = None) -> Any:
    """A class derived from Inspect's SandboxEnvironment, for its decorator: sandboxenv(name="cordon")(inspect_environment()). The
    arguments are Inspect's classes (SandboxEnvironment, ExecResult, OutputLimitExceededError), if they are at hand."""
    if base is None:
        base = load("inspect_ai.util", "SandboxEnvironment", "inspect-ai")
        exec_result = exec_result or load("inspect_ai.util", "ExecResult", "inspect-ai")
        limit_error = limit_error or load("inspect_ai.util", "OutputLimitExceededError", "inspect-ai")
    members = {"result_class": exec_result or ExecResult, "limit_error": limit_error}
    return type("CordonSandboxEnvironment", (InspectMethods, base), members)

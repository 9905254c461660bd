"""Host functions that the code may call: an ordinary function with type hints becomes a checked tool."""
import inspect
import sys
import typing
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Generic, Iterable, List, Mapping, Optional, TypeVar, Union, overload

from ._values import decode, encode

if sys.version_info >= (3, 10):
    from typing import ParamSpec
    P = ParamSpec("P")
else:  # only a type checker looks at it
    P = TypeVar("P")
R = TypeVar("R")

RESULT_MAX = 64 << 20  # the server has the real limit
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", list: "array", tuple: "array", set: "array",
          dict: "object", type(None): "null"}


def type_schema(hint: Any) -> Dict[str, Any]:
    """JSON Schema of a type hint; what has none is any value."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is Union or type(hint).__name__ == "UnionType":
        types = [type_schema(a).get("type") for a in args]
        if all(isinstance(t, str) for t in types):
            return {"type": types}
        return {}
    if origin in (list, tuple, set, frozenset) or getattr(origin, "__name__", "") in ("Sequence", "Iterable"):
        schema: Dict[str, Any] = {"type": "array"}
        if origin is list and args and type_schema(args[0]):
            schema["items"] = type_schema(args[0])
        return schema
    if origin is dict or getattr(origin, "__name__", "") == "Mapping":
        return {"type": "object"}
    return {}


def function_schema(fn: Callable[..., Any]) -> Dict[str, Any]:
    try:
        hints = typing.get_type_hints(fn)
    except Exception:
        hints = {}
    properties, required = {}, []
    for name, p in inspect.signature(fn).parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise TypeError("a tool takes arguments by name: '%s' of %s cannot be" % (name, fn.__name__))
        properties[name] = type_schema(hints.get(name, Any))
        if p.default is p.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def awaited(value: Any) -> Any:
    """The value itself, or what it comes to where it is a coroutine."""
    if not inspect.isawaitable(value):
        return value
    import asyncio
    import concurrent.futures

    async def wait() -> Any:
        return await value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # this thread's loop waits for us: another one's
        return pool.submit(asyncio.run, wait()).result()


@dataclass
class Tool(Generic[P, R]):
    """fn: called with the checked arguments by name; it may be a coroutine function. approval: every call waits for `Session(on_approval=...)`."""
    fn: "Callable[P, R]"
    name: str = ""
    description: str = ""
    args: Optional[Dict[str, Any]] = None
    category: Optional[str] = None
    max_calls: int = 0
    timeout_ms: int = 0
    result_bytes: int = 0
    approval: bool = False
    command: bool = False
    python_package: Optional[Dict[str, str]] = None
    argument_bytes: int = 0
    usage: str = ""
    examples: List[str] = field(default_factory=list)
    __wrapped__: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.name = self.name or self.fn.__name__
        doc = inspect.getdoc(self.fn) or ""
        self.description = self.description or doc.split("\n\n")[0].replace("\n", " ")
        if self.args is None:
            self.args = function_schema(self.fn) if not self.command else None
        self.__wrapped__ = self.fn

    def __call__(self, *args: "P.args", **kwargs: "P.kwargs") -> R:
        return self.fn(*args, **kwargs)

    def to_json(self) -> Dict[str, Any]:
        j: Dict[str, Any] = {"name": self.name, "description": self.description}
        for key in ("args", "category", "max_calls", "timeout_ms", "result_bytes", "approval", "command", "python_package",
                    "argument_bytes", "usage", "examples"):
            if getattr(self, key):
                j[key] = getattr(self, key)
        return j


@overload
def tool(fn: "Callable[P, R]") -> "Tool[P, R]": ...
@overload
def tool(*, name: str = ..., description: str = ..., args: Optional[Dict[str, Any]] = ..., category: Optional[str] = ...,
         max_calls: int = ..., timeout_ms: int = ..., result_bytes: int = ..., argument_bytes: int = ..., approval: bool = ...,
         command: bool = ..., usage: str = ..., examples: List[str] = ...) -> "Callable[[Callable[P, R]], Tool[P, R]]": ...


def tool(fn: Any = None, **options: Any) -> Any:
    """Makes a tool of a function: @tool, or @tool(approval=True, max_calls=10)."""
    if fn is not None:
        return Tool(fn, **options)
    return lambda f: Tool(f, **options)


Tools = Union[None, Iterable[Union["Tool[..., Any]", Callable[..., Any]]], Mapping[str, Callable[..., Any]]]


def to_tools(tools: Tools) -> "List[Tool[..., Any]]":
    if not tools:
        return []
    if isinstance(tools, Mapping):
        return [t if isinstance(t, Tool) else Tool(t, name=n) for n, t in tools.items()]
    return [t if isinstance(t, Tool) else Tool(t) for t in tools]


class Table:
    """What a session's tool calls are answered from."""

    def __init__(self, tools: "List[Tool[..., Any]]") -> None:
        self.names = {t.name: t for t in tools}

    def __call__(self, name: str, args: Dict[str, Any]) -> Any:
        return encode(awaited(self.names[name].fn(**{k: decode(v) for k, v in args.items()})), RESULT_MAX)

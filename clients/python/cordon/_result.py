"""The result of an execution, as docs/result.md has it, with the value in Python's own types."""
import base64
import reprlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from ._errors import CordonError, ExecutionError, ExecutionTimeout
from ._values import decode


def value_of(raw: Dict[str, Any]) -> Any:
    """The value of a result; its binary columns are no longer needed then. The guest wrote it, so it may be nonsense."""
    form, header = raw.get("result"), raw.pop("buffer", None)
    if not header:
        return decode(form)
    from ._columns import resolve
    try:
        return decode(resolve(form, header, header.pop("data")))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise CordonError("the guest sent a value that cannot be read: %s" % e) from e


def short(value: Any, most: int = 60) -> str:
    """How a value looks, on one line of bounded length."""
    text = " ".join(reprlib.repr(value).split()) if not isinstance(value, str) else repr(value if len(value) <= most else value[:most])
    return text if len(text) <= most + 2 and (not isinstance(value, str) or len(value) <= most) else text[:most] + "..."


@dataclass(frozen=True)
class Output:
    """A plot, a table, HTML: what the code showed."""
    mime: str
    data: bytes
    name: Optional[str] = None

    def __repr__(self) -> str:
        return "Output(%r, %d bytes%s)" % (self.mime, len(self.data), ", name=%r" % self.name if self.name else "")

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Denial:
    """What was tried, which layer refused, and the smallest change of the policy that would allow it."""
    operation: str
    target: Optional[str] = None
    layer: Optional[str] = None
    rule: Optional[str] = None
    remedy: Optional[str] = None
    count: int = 1
    claimed: bool = False  # only the guest says so


@dataclass(repr=False)
class Result:
    success: bool
    value: Any = None
    text: Optional[str] = None
    stdout: str = ""
    stderr: str = ""
    error: Optional[str] = None
    error_kind: Optional[str] = None
    exit_code: int = 0
    execution_time_ms: float = 0.0
    cpu_time_ms: float = 0.0
    memory_used_mb: float = 0.0
    truncated: Dict[str, bool] = field(default_factory=dict)
    outputs: List[Output] = field(default_factory=list)
    tool_calls: int = 0
    denials: List[Denial] = field(default_factory=list)
    warnings: List[Any] = field(default_factory=list)
    restarted: bool = False
    assurance: Optional[Dict[str, Any]] = None
    exception: Optional[Dict[str, Any]] = None
    restart_reason: Optional[str] = None
    start_ms: float = 0.0  # an interpreter was started for this execution
    raw: Dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        """What there is to tell, in a line: all of it is in the fields."""
        said = ["success=%s" % self.success]
        for name in ("error_kind", "error", "value", "stdout", "stderr"):
            what = getattr(self, name)
            if what not in (None, "") if isinstance(what, (str, type(None))) else True:
                said.append("%s=%s" % (name, short(what)))
        if self.exit_code:
            said.append("exit_code=%d" % self.exit_code)
        said += ["%s=%d" % (name, len(getattr(self, name))) for name in ("outputs", "denials", "warnings") if getattr(self, name)]
        said += ["truncated"] * any(self.truncated.values()) + ["restarted"] * self.restarted
        return "Result(%s, %.0f ms)" % (", ".join(said), self.execution_time_ms)

    @property
    def traceback(self) -> Optional[str]:
        return (self.exception or {}).get("traceback")

    def check(self) -> "Result":
        """Itself, or the ExecutionError when the code failed."""
        if self.success:
            return self
        raise (ExecutionTimeout if self.error_kind == "timeout" else ExecutionError)(self)

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> "Result":
        r = raw.get
        value = value_of(raw)
        outputs = [Output(o["mime"], base64.b64decode(o["data"]) if o.get("encoding") == "base64" else o["data"].encode(),
                          o.get("name")) for o in r("outputs") or ()]
        known = Denial.__dataclass_fields__
        denials = [Denial(**{k: v for k, v in d.items() if k in known}) for d in r("denials") or ()]
        return cls(success=raw["success"], value=value, text=r("result_text"), stdout=raw["stdout"],
                   stderr=raw["stderr"], error=r("error"), error_kind=r("error_kind"), exit_code=r("exit_code", 0),
                   execution_time_ms=r("execution_time_ms", 0.0), cpu_time_ms=r("cpu_time_ms", 0.0),
                   memory_used_mb=r("memory_used_mb", 0.0), truncated=r("truncated") or {}, outputs=outputs,
                   tool_calls=r("tool_calls", 0), denials=denials, warnings=r("warnings") or [],
                   restarted=r("restarted", False), assurance=r("assurance"), exception=r("exception"),
                   restart_reason=r("restart_reason"), start_ms=r("start_ms", 0.0), raw=raw)

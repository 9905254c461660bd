"""Levels: each with its own limits, its own list of modules, and a real wall."""
import enum
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Union

from ._errors import CordonError
from ._result import Result
from ._session import Session
from ._tools import Tools


class SecurityLevel(str, enum.Enum):
    PERMISSIVE = "permissive"
    STANDARD = "standard"
    STRICT = "strict"


_MODULES = {
    SecurityLevel.STRICT: ["math", "statistics", "json"],
    SecurityLevel.STANDARD: ["pandas", "math", "statistics", "json"],
    SecurityLevel.PERMISSIVE: ["pandas", "math", "statistics", "json", "numpy", "datetime"],
}
_SECONDS = {SecurityLevel.STRICT: 10, SecurityLevel.STANDARD: 30, SecurityLevel.PERMISSIVE: 60}
_MEGABYTES = {SecurityLevel.STRICT: 256, SecurityLevel.STANDARD: 512, SecurityLevel.PERMISSIVE: 1024}


@dataclass
class SandboxConfig:
    """What a runner may use. allowed_modules ["*"]: all of them."""
    level: SecurityLevel = SecurityLevel.STANDARD
    timeout_seconds: float = 30
    max_memory_mb: int = 512
    allowed_modules: List[str] = field(default_factory=lambda: list(_MODULES[SecurityLevel.STANDARD]))
    max_output_bytes: int = 1 << 20
    result_name: str = "result"
    policy: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def for_level(cls, level: Union[str, SecurityLevel] = SecurityLevel.STANDARD, **changes: Any) -> "SandboxConfig":
        level = SecurityLevel(level)
        config = cls(level=level, timeout_seconds=_SECONDS[level], max_memory_mb=_MEGABYTES[level],
                     allowed_modules=list(_MODULES[level]))
        return replace(config, **changes)

    def to_policy(self) -> Dict[str, Any]:
        modules: Any = "*" if self.allowed_modules == ["*"] else list(self.allowed_modules)
        return {"timeout_ms": max(1, int(self.timeout_seconds * 1000)), "memory_bytes": self.max_memory_mb << 20,
                "modules": modules, "stdout_bytes": self.max_output_bytes, "stderr_bytes": self.max_output_bytes,
                "result_name": self.result_name, **self.policy}


@dataclass
class SandboxResult:
    success: bool
    result: Any = None
    stdout: str = ""
    stderr: str = ""
    error: Optional[str] = None
    error_kind: Optional[str] = None
    execution_time_ms: float = 0.0
    memory_used_mb: float = 0.0
    truncated: bool = False
    full: Optional[Result] = field(default=None, repr=False)

    @property
    def output(self) -> str:
        return self.stdout

    @classmethod
    def from_result(cls, r: Result) -> "SandboxResult":
        return cls(r.success, r.value, r.stdout, r.stderr, r.error, r.error_kind, r.execution_time_ms, r.memory_used_mb,
                   any(r.truncated.values()), r)


class SandboxedRunner:
    """Every execution in a fresh sandbox of its own; it never raises for what the code does."""

    def __init__(self, config: SandboxConfig, tools: Tools = None, connection: Any = None) -> None:
        self.config, self._tools, self._connection = config, tools, connection

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None) -> SandboxResult:
        """context: names that become variables. The value is that of `result`, or of the last expression."""
        try:
            with Session("python", level=self.config.level, policy=self.config.to_policy(), tools=self._tools,
                         connection=self._connection) as s:
                return SandboxResult.from_result(s.execute(code, context))
        except CordonError as e:
            return SandboxResult(False, error=str(e), error_kind="internal")

    def is_available(self) -> bool:
        """Whether the wall can be built here: an execution that does nothing succeeds."""
        return self.execute("").success

    def close(self) -> None:
        """There is nothing to close: no sandbox outlives its execution."""

    def __enter__(self) -> "SandboxedRunner":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def create_runner(config: Union[None, str, SecurityLevel, SandboxConfig] = None, *, tools: Tools = None, connection: Any = None,
                  **changes: Any) -> SandboxedRunner:
    """create_runner("strict"), create_runner(SandboxConfig.for_level("strict", timeout_seconds=2))"""
    if not isinstance(config, SandboxConfig):
        config = SandboxConfig.for_level(config or SecurityLevel.STANDARD, **changes)
    elif changes:
        config = replace(config, **changes)
    return SandboxedRunner(config, tools, connection)

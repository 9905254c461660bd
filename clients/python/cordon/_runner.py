"""SandboxedRunner's names: levels, each with its own limits and its own list of modules, behind a real wall."""
import abc
import enum
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._errors import CordonError
from ._result import Denial, Result
from ._session import Session
from ._tools import Tools


class SecurityLevel(str, enum.Enum):
    PERMISSIVE = "permissive"
    STANDARD = "standard"
    STRICT = "strict"


_LEVELS: Dict[SecurityLevel, Tuple[float, int, Tuple[str, ...]]] = {
    SecurityLevel.PERMISSIVE: (60.0, 1024, ("pandas", "math", "statistics", "json", "numpy", "datetime")),
    SecurityLevel.STANDARD: (30.0, 512, ("pandas", "math", "statistics", "json")),
    SecurityLevel.STRICT: (10.0, 256, ("math", "statistics", "json")),
}


@dataclass(frozen=True)
class SandboxConfig:
    """What a runner may use. allowed_modules ("*",): all of them."""
    security_level: SecurityLevel = SecurityLevel.STANDARD
    timeout_seconds: float = 30.0
    max_memory_mb: int = 512
    allowed_modules: Tuple[str, ...] = ("pandas", "math", "statistics", "json")

    def __post_init__(self) -> None:
        """A level may be its name, and modules a list: both become what they are above, so that every config can be hashed."""
        object.__setattr__(self, "security_level", SecurityLevel(self.security_level))
        if isinstance(self.allowed_modules, str):
            raise TypeError("allowed_modules must be names, not one text: (%r,)" % self.allowed_modules)
        object.__setattr__(self, "allowed_modules", tuple(self.allowed_modules))

    @classmethod
    def for_level(cls, level: Union[str, SecurityLevel] = SecurityLevel.STANDARD, **changes: Any) -> "SandboxConfig":
        level = SecurityLevel(level)
        return replace(cls(level, *_LEVELS[level]), **changes)

    def to_policy(self) -> Dict[str, Any]:
        """The fields of a policy (docs/policy.md) that say the same."""
        modules: Any = "*" if self.allowed_modules == ("*",) else list(self.allowed_modules)
        return {"timeout_ms": max(1, int(self.timeout_seconds * 1000)), "memory_bytes": int(self.max_memory_mb * (1 << 20)),
                "modules": modules, "result_name": "result"}


@dataclass(frozen=True)
class SandboxResult:
    """What became of the code. Beyond its fields: error_kind, truncated, denials, and `full`, which has everything."""
    success: bool
    result: Any
    stdout: str
    stderr: str
    error: Optional[str]
    execution_time_ms: float
    memory_used_mb: Optional[float]

    @property
    def full(self) -> Optional[Result]:
        """The whole Result (docs/result.md); None: Cordon could not run the code."""
        known: Optional[Result] = self.__dict__.get("_full")
        return known

    @property
    def error_kind(self) -> Optional[str]:
        """Why it failed: "exception", "timeout", "memory", ...; None: it did not."""
        if self.success:
            return None
        return self.full.error_kind if self.full else "internal"

    @property
    def truncated(self) -> bool:
        return bool(self.full and any(self.full.truncated.values()))

    @property
    def denials(self) -> List[Denial]:
        return self.full.denials if self.full else []

    @property
    def output(self) -> str:
        return self.stdout

    @classmethod
    def from_result(cls, r: Result) -> "SandboxResult":
        made = cls(r.success, r.value, r.stdout, r.stderr, r.error, r.execution_time_ms, r.memory_used_mb)
        object.__setattr__(made, "_full", r)
        return made


class SandboxedRunner(abc.ABC):
    """What runs code. Those of this package run every execution in a fresh sandbox of its own; others may be derived from it."""

    @abc.abstractmethod
    def __init__(self, config: SandboxConfig) -> None:
        self.config = config

    @abc.abstractmethod
    def execute(self, code: str, context: Mapping[str, Any]) -> SandboxResult:
        """context: names that become variables. The value is that of `result`, or of the last expression. What the code does never
        raises."""

    @abc.abstractmethod
    def cleanup(self) -> None:
        """Releases what the runner holds."""

    def __enter__(self) -> "SandboxedRunner":
        return self

    def __exit__(self, *_: Any) -> None:
        self.cleanup()


class SubprocessRunner(SandboxedRunner):
    """A fresh sandbox of the config's level for every execution: namespaces, seccomp, Landlock and cgroups, not just a subprocess.

    policy: further fields of a policy (docs/policy.md). tools: functions that the code may call."""
    _at_least = SecurityLevel.PERMISSIVE
    _fixed: Dict[str, Any] = {}

    def __init__(self, config: Optional[SandboxConfig] = None, *, policy: Optional[Mapping[str, Any]] = None, tools: Tools = None,
                 connection: Any = None) -> None:
        super().__init__(config or SandboxConfig())
        self._policy: Dict[str, Any] = {**self._fixed, **self.config.to_policy(), **(policy or {})}
        self._tools, self._connection = tools, connection

    @property
    def level(self) -> SecurityLevel:
        """Of the wall: the config's, or the runner's own where that is stricter."""
        return stricter(self.config.security_level, self._at_least)

    def execute(self, code: str, context: Optional[Mapping[str, Any]] = None) -> SandboxResult:
        try:
            with Session("python", level=self.level, policy=self._policy, tools=self._tools, connection=self._connection) as s:
                return SandboxResult.from_result(s.execute(code, context))
        except CordonError as e:
            return SandboxResult(False, None, "", "", str(e), 0.0, None)

    def is_available(self) -> bool:
        """Whether the wall can be built here: an execution that does nothing succeeds."""
        return self.execute("").success

    def cleanup(self) -> None:
        """There is nothing to release: no sandbox outlives its execution. The runner can be used again."""

    close = cleanup


class DockerRunner(SubprocessRunner):
    """The same at the level "strict", whatever the config says, and half of one processor. It needs no Docker: the wall has what
    SandboxedRunner asks of a container (own namespaces, no network, read-only system, no capabilities, seccomp)."""
    _at_least = SecurityLevel.STRICT
    _fixed = {"cpu_percent": 50}


class InProcessRunner(SubprocessRunner):
    """The same wall as SubprocessRunner: nothing is ever run in this process. With create_runner() it has the level "permissive"."""


_ORDER = list(SecurityLevel)
_RUNNERS = {SecurityLevel.PERMISSIVE: InProcessRunner, SecurityLevel.STANDARD: SubprocessRunner, SecurityLevel.STRICT: DockerRunner}


def stricter(a: SecurityLevel, b: SecurityLevel) -> SecurityLevel:
    return max(a, b, key=_ORDER.index)


def create_runner(level: Union[str, SecurityLevel, SandboxConfig] = SecurityLevel.STANDARD, config: Optional[SandboxConfig] = None, *,
                  policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, connection: Any = None,
                  **changes: Any) -> SubprocessRunner:
    """create_runner("strict"), create_runner(config=SandboxConfig(timeout_seconds=2)). The stricter of `level` and the config's level
    decides which runner it is. changes: fields of the config. There is no fallback to something weaker: where the wall cannot be
    built, an execution fails and says so."""
    if isinstance(level, SandboxConfig):
        config, level = level, level.security_level
    least = SecurityLevel(level)
    config = replace(config or SandboxConfig.for_level(least), **changes)
    return _RUNNERS[stricter(least, config.security_level)](config, policy=policy, tools=tools, connection=connection)

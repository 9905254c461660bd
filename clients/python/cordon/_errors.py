"""What can go wrong: with Cordon (RpcError and its kinds), or with the code (ExecutionError, which carries the result)."""
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from ._result import Result


class CordonError(Exception):
    """All of them."""


class ProgramMissing(CordonError, RuntimeError):
    """The program `cordon` was not found."""


class ConnectionLost(CordonError):
    """The server is gone, and all its sessions with it."""


class ConnectFailed(CordonError):
    """There is no connection to a `cordon serve`. status: of HTTP, if it answered."""

    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status


class ServerUnreachable(ConnectFailed):
    """Nothing answers there, its certificate is not good, or it is no `cordon serve`."""


class KeyRefused(ConnectFailed):
    """The server knows no such key, or it may not do that."""


class ServerBusy(ConnectFailed):
    """Too many connections or requests, or the server is stopping."""


class RpcError(CordonError):
    """Cordon could not do what it was asked to. code: of JSON-RPC, and 1 for what a Sandbox says of a file; kind: its name ("denied",
    "limit", ...)."""

    def __init__(self, code: int, message: str, data: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data or {}
        self.kind: str = self.data.get("code", "")
        self.errno: Optional[str] = self.data.get("errno")


class Denied(RpcError):
    """Policy said no."""


class LimitExceeded(RpcError):
    """A ceiling was reached."""


class NotFound(RpcError):
    """There is no such session, file, snapshot."""


class StateError(RpcError):
    """Right call, wrong moment: closed, or busy."""


class SandboxError(CordonError):
    """A sandbox that is gone, or offloaded."""


class ExecutionError(CordonError):
    """The code failed. `result` has everything that is known about it."""

    def __init__(self, result: "Result") -> None:
        text = result.error or "failed"
        super().__init__("%s: %s" % (result.error_kind, text))
        self.result = result
        self.kind = result.error_kind


class ExecutionTimeout(ExecutionError, TimeoutError):
    """It took longer than allowed."""


def error_text(e: BaseException) -> str:
    """What an exception says, even one that cannot say it."""
    try:
        return str(e) or type(e).__name__
    except Exception:
        return type(e).__name__


KINDS = {"denied": Denied, "limit": LimitExceeded, "not_found": NotFound, "state": StateError}


def rpc_error(error: Dict[str, Any]) -> RpcError:
    data = error.get("data") or {}
    return KINDS.get(data.get("code", ""), RpcError)(error.get("code", 0), error.get("message", ""), data)

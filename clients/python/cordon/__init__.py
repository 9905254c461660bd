"""Run untrusted code in a sandbox.

>>> import cordon
>>> with cordon.Session("python") as s:
...     s.run("6 * 7")
42
"""
import atexit
import importlib
import sys

TYPE_CHECKING = False  # set by type checkers; a program that only may use us should not wait for typing
if TYPE_CHECKING:
    from ._errors import (ConnectFailed, ConnectionLost, CordonError, Denied, ExecutionError, ExecutionTimeout, KeyRefused, LimitExceeded, NotFound,
                          ProgramMissing, RpcError, SandboxError, ServerBusy, ServerUnreachable, StateError)
    from ._result import Denial, Output, Result
    from ._rpc import Connection, connect
    from ._session import Approval, Context, FileInfo, Files, Pool, Process, Session, check_policy, policy, run, sanitize, validate, verify_audit
    from ._tools import Tool, tool
    from ._values import Handle, Record
    from ._watch import Change, Watch
    from ._vfs import DirEntry, FileStat, MemoryFS, VirtualFileSystem
    from ._extension import Extension, PythonPackage
    from ._sandbox import Command, CommandResult, Sandbox, SandboxInfo, SandboxManager, SandboxRef
    from ._runner import (DockerRunner, InProcessRunner, SandboxConfig, SandboxedRunner, SandboxResult, SecurityLevel, SubprocessRunner,
                          create_runner)

__version__ = "0.1.0"
__all__ = [
    "Approval", "Change", "Command", "CommandResult", "ConnectFailed", "Connection", "ConnectionLost", "Context", "CordonError", "Denial", "Denied",
    "DirEntry", "DockerRunner", "ExecutionError", "ExecutionTimeout", "Extension", "FileInfo", "FileStat", "Files", "Handle", "InProcessRunner",
    "KeyRefused", "LimitExceeded", "MemoryFS", "NotFound", "Output", "Pool", "Process", "ProgramMissing", "PythonPackage", "Record", "Result", "RpcError",
    "Sandbox", "SandboxConfig", "SandboxError", "SandboxInfo", "SandboxManager", "SandboxRef", "SandboxResult", "SandboxedRunner",
    "SecurityLevel", "ServerBusy", "ServerUnreachable", "Session", "StateError", "SubprocessRunner", "Tool", "VirtualFileSystem", "Watch", "check_policy", "connect",
    "create_runner", "policy", "run", "sanitize", "tool", "validate", "verify_audit",
]

# Where each name is from. A module is imported when one of its names is first used: most programs need few of them.
_MODULES = {
    "_errors": "ConnectFailed ConnectionLost CordonError Denied ExecutionError ExecutionTimeout KeyRefused LimitExceeded NotFound ProgramMissing "
               "RpcError SandboxError ServerBusy ServerUnreachable StateError",
    "_result": "Denial Output Result",
    "_rpc": "Connection connect",
    "_session": "Approval Context FileInfo Files Pool Process Session check_policy policy run sanitize validate verify_audit",
    "_tools": "Tool tool",
    "_values": "Handle Record",
    "_watch": "Change Watch",
    "_vfs": "DirEntry FileStat MemoryFS VirtualFileSystem",
    "_extension": "Extension PythonPackage",
    "_sandbox": "Command CommandResult Sandbox SandboxInfo SandboxManager SandboxRef",
    "_runner": "DockerRunner InProcessRunner SandboxConfig SandboxResult SandboxedRunner SecurityLevel SubprocessRunner create_runner",
    "_columns": "", "_program": "", "_remote": "",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # which would take every name for one of ours
    def __getattr__(name):
        if name in _MODULES:
            return importlib.import_module("." + name, __name__)
        if name not in _HOMES:
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        value = globals()[name] = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
        return value

    def __dir__():
        return sorted((globals().keys() | _HOMES.keys() | _MODULES.keys()) - {"TYPE_CHECKING", "atexit", "importlib", "sys"})


def _close() -> None:
    """Ends the shared servers: registered here, so that what a program registers after `import cordon` still finds them."""
    rpc = sys.modules.get(__name__ + "._rpc")
    if rpc is not None:
        rpc.hub.close()


atexit.register(_close)

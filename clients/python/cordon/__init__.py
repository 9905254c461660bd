"""Run untrusted code in a sandbox.

>>> import cordon
>>> with cordon.Session("python") as s:
...     s.run("6 * 7")
42
"""
from ._errors import (CordonError, ConnectionLost, Denied, ExecutionError, ExecutionTimeout, LimitExceeded, NotFound, ProgramMissing,
                      RpcError, SandboxError, StateError)
from ._result import Denial, Output, Result
from ._rpc import Connection, connect
from ._session import Approval, FileInfo, Files, Pool, Session, check_policy, policy, run, sanitize, validate, verify_audit
from ._tools import Tool, tool
from ._sandbox import (CommandResult, DirEntry, Extension, FileStat, MemoryFS, PythonPackage, Sandbox, SandboxRef,
                       VirtualFileSystem)
from ._runner import SandboxConfig, SandboxedRunner, SandboxResult, SecurityLevel, create_runner

__version__ = "0.1.0"
__all__ = [
    "Approval", "CommandResult", "Connection", "ConnectionLost", "CordonError", "Denial", "Denied", "DirEntry", "ExecutionError",
    "ExecutionTimeout", "Extension", "FileInfo", "FileStat", "Files", "LimitExceeded", "MemoryFS", "NotFound", "Output", "Pool",
    "ProgramMissing", "PythonPackage", "Result", "RpcError", "Sandbox", "SandboxConfig", "SandboxError", "SandboxRef",
    "SandboxResult", "SandboxedRunner", "SecurityLevel", "Session", "StateError", "Tool", "VirtualFileSystem", "check_policy",
    "connect", "create_runner", "policy", "run", "sanitize", "tool", "validate", "verify_audit",
]

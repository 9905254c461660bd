"""Run untrusted code in a sandbox.

>>> import cordon
>>> with cordon.Session("python") as s:
...     s.run("6 * 7")
42
"""
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

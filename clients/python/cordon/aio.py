"""The same for asyncio: async with cordon.aio.Session("python") as s: await s.run("6 * 7")

Tools may be coroutine functions; other tools run in the loop's thread pool, so that they may block."""
import asyncio
import base64
import inspect
import json
import os
import tempfile
import warnings
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

from ._errors import ConnectionLost, CordonError, LimitExceeded, RpcError, StateError, error_text, rpc_error
from ._result import Result
from ._rpc import EARLY_MAX, EVENTS, SESSIONS_MAX, find_program, to_line
from ._session import (PIECE, Approval, Bytes, FileInfo, Guest, Level, Verbose, absolute, approval_reply, execute_params, log,
                       milliseconds, open_params, told)
from ._tools import RESULT_MAX, Table, Tools, to_tools
from ._values import decode, encode

READ_MAX = 1 << 30
CANCEL_SECONDS = 10


def output_watch(on_stdout: Optional[Callable[[str], Any]], on_stderr: Optional[Callable[[str], Any]]) -> Any:
    """What takes the notes of output; the functions may be coroutine functions."""
    async def watch(params: Dict[str, Any]) -> None:
        fn = on_stdout if params["stream"] == "stdout" else on_stderr
        said = fn(params["data"]) if fn else None
        if inspect.isawaitable(said):
            await said
    return watch if on_stdout or on_stderr else None


async def consume(notes: "asyncio.Queue[Any]", watch: Any) -> None:
    """Gives the notes to watch, one after the other, up to None. What a handler does is no concern of the code that runs."""
    while True:
        params = await notes.get()
        if params is None:
            return
        try:
            await watch(params)
        except Exception:
            log.exception("on_%s failed", params["stream"])


class Connection:
    """A server of one's own: async with Connection() as c, or await Connection.open()."""

    def __init__(self) -> None:
        self._pending: Dict[int, "asyncio.Future[Any]"] = {}
        self._watches: Dict[int, Any] = {}
        self._last = 0
        self._sent = 0  # lines
        self._lines: Dict[int, int] = {}  # by the number of the line, the request
        self._tasks: Set["asyncio.Task[Any]"] = set()
        self.tools: Dict[str, Table] = {}
        self.owners: Dict[str, Any] = {}  # sessions, and pools by the request that executes
        self.early: List[Any] = []  # events of sessions whose id is not known yet
        self.is_alive = False

    @classmethod
    async def open(cls, program: Optional[str] = None, args: Any = ()) -> "Connection":
        return await cls()._begin(program or find_program(), args)

    async def _begin(self, program: str, args: Any) -> "Connection":
        self._process = await asyncio.create_subprocess_exec(
            program, "rpc", *args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=READ_MAX)
        self.is_alive = True
        self._reader = asyncio.ensure_future(self._read())
        return self

    async def request(self, method: str, params: Dict[str, Any], watch: Any = None) -> Any:
        if not self.is_alive:
            raise ConnectionLost("the connection is closed")
        self._last += 1
        number = self._last
        line = to_line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer: "asyncio.Future[Any]" = asyncio.get_running_loop().create_future()
        at = 0
        self._pending[number] = answer
        notes: "asyncio.Queue[Any]" = asyncio.Queue()
        if watch:
            self._watches[number] = notes
        watcher = asyncio.ensure_future(consume(notes, watch)) if watch else None
        try:
            at = self._write(line)
            self._lines[at] = number
            await self._process.stdin.drain()  # type: ignore[union-attr]
            return await asyncio.shield(answer)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise ConnectionLost("the server is gone") from e
        except asyncio.CancelledError:
            if self.is_alive and not answer.done() and method.endswith((".execute", ".run")):
                # The next one may begin when this one has ended.
                self._send({"jsonrpc": "2.0", "method": "cancel", "params": {"request_id": number}})
                await asyncio.wait({answer}, timeout=CANCEL_SECONDS)
            raise
        finally:
            self._pending.pop(number, None)
            self._watches.pop(number, None)
            if watcher:  # all that was printed has been told when the result is there
                notes.put_nowait(None)
                await watcher
            self._lines.pop(at, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # it is known of

    def _write(self, line: bytes) -> int:
        self._sent += 1
        self._process.stdin.write(line)  # type: ignore[union-attr]
        return self._sent

    def _send(self, message: Dict[str, Any]) -> None:
        self._write(to_line(message))

    async def _read(self) -> None:
        assert self._process.stdout
        while True:
            line = await self._process.stdout.readline()
            if not line.endswith(b"\n"):
                break
            self._take(json.loads(line))
        self.is_alive = False
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLost("the server is gone"))

    def _take(self, message: Dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            number = message.get("id")
            if number is None:  # the server could not read it: a number beyond 64 bits, say
                number = self._lines.get(((message.get("error") or {}).get("data") or {}).get("line", 0))
            answer = self._pending.get(number)  # type: ignore[arg-type]
            if answer and not answer.done():
                if "error" in message:
                    answer.set_exception(rpc_error(message["error"]))
                else:
                    answer.set_result(message["result"])
        elif method == "tool.call":
            self._start(self._call_tool(message))
        elif method == "output":
            notes = self._watches.get(message["params"].get("request_id"))
            if notes:
                notes.put_nowait(message["params"])
        else:
            params = message["params"]
            session = params.get("session") or params.get("session_id") or ""
            owner = self.owners.get(session) or self.owners.get("request %s" % params.get("request_id"))
            if owner:
                self._start(owner._note(method, params))
            elif method == "approval":  # nobody decides: a no
                self._send({"jsonrpc": "2.0", "method": "approval.resolve",
                            "params": {"session": session, "id": params["id"], "allow": False}})
            elif method in EVENTS and len(self.early) < EARLY_MAX:
                self.early.append((method, params))

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(self._log(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _log(work: Any) -> None:
        try:
            await work
        except Exception:
            log.exception("a handler failed")

    async def _call_tool(self, message: Dict[str, Any]) -> None:
        params = message["params"]
        reply: Dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            table = self.tools.get(params["session"]) or self.tools.get("request %s" % params.get("request_id"))
            if table is None:
                raise CordonError("no such tool here")
            fn = table.names[params["tool"]].fn
            args = {k: decode(v) for k, v in params["args"].items()}
            if inspect.iscoroutinefunction(fn):
                value = await fn(**args)
            else:
                value = await asyncio.get_running_loop().run_in_executor(None, lambda: fn(**args))
            if inspect.isawaitable(value):  # of a partial, or an object that is called
                value = await value
            reply["result"] = {"value": encode(value, RESULT_MAX)}
            to_line(reply)
        except Exception as e:
            reply.pop("result", None)
            reply["error"] = {"code": 1, "message": error_text(e)}
        if self.is_alive:
            self._send(reply)

    async def close(self) -> None:
        if not self.is_alive and self._process.returncode is not None:
            return
        self.is_alive = False
        assert self._process.stdin
        self._process.stdin.write(to_line({"jsonrpc": "2.0", "method": "kill"}))  # what still runs is not waited for
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def __aenter__(self) -> "Connection":
        return self if self.is_alive else await self._begin(find_program(), ())

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


class Server:
    """One that sessions share."""

    def __init__(self) -> None:
        self.users = 0
        self.opening = asyncio.ensure_future(Connection.open())

    def has_room(self) -> bool:
        is_usable = not self.opening.done() or (self.opening.exception() is None and self.opening.result().is_alive)
        return is_usable and self.users < SESSIONS_MAX


servers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, List[Server]]" = weakref.WeakKeyDictionary()


async def share() -> Connection:
    """The connection of this loop, with one user more."""
    all_of = servers.setdefault(asyncio.get_running_loop(), [])
    server = next((s for s in all_of if s.has_room()), None)
    if server is None:
        server = Server()
        all_of.append(server)
    server.users += 1
    try:
        return await asyncio.shield(server.opening)
    except BaseException:
        server.users -= 1
        if server.opening.done() and server in all_of:
            all_of.remove(server)
        raise


async def unshare(connection: Connection) -> None:
    """The last one to leave ends it."""
    all_of = servers.get(asyncio.get_running_loop(), [])
    for server in all_of:
        if server.opening.done() and not server.opening.cancelled() and server.opening.exception() is None \
                and server.opening.result() is connection:
            server.users -= 1
            if server.users > 0:
                return
            all_of.remove(server)
            break
    await connection.close()


class Files:
    def __init__(self, connection: Connection, session: str) -> None:
        self._c, self._session = connection, session

    async def _call(self, method: str, path: str, **params: Any) -> Any:
        return await self._c.request("files." + method, dict(params, session=self._session, path=absolute(path)))

    async def read(self, path: str) -> bytes:
        parts, offset = [], 0
        while True:
            r = await self._call("read", path, offset=offset, length=PIECE)
            parts.append(base64.b64decode(r["data"]))
            offset += r["length"]
            if r["eof"]:
                return b"".join(parts)

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return (await self.read(path)).decode(encoding)

    async def write(self, path: str, data: Bytes) -> None:
        """Replaces the file as a whole, whatever its size; parents are made."""
        raw = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        target = absolute(path) if len(raw) <= PIECE else absolute(path) + ".part-" + os.urandom(4).hex()
        try:
            for i in range(0, max(1, len(raw)), PIECE):
                await self._call("append" if i else "write", target, data=base64.b64encode(raw[i:i + PIECE]).decode())
            if target != absolute(path):
                await self.move(target, path)
        except CordonError:
            if target != absolute(path):
                try:
                    await self.remove(target)
                except CordonError:
                    pass
            raise

    async def append(self, path: str, data: Bytes) -> None:
        raw = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        for i in range(0, max(1, len(raw)), PIECE):
            await self._call("append", path, data=base64.b64encode(raw[i:i + PIECE]).decode())

    async def list(self, path: str = "/home/user") -> List[FileInfo]:
        return [FileInfo(**e) for e in (await self._call("list", path))["entries"]]

    async def stat(self, path: str) -> FileInfo:
        return FileInfo(name=path.rstrip("/").rsplit("/", 1)[-1], **await self._call("stat", path))

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
            return True
        except RpcError as e:
            if e.kind == "not_found":
                return False
            raise

    async def mkdir(self, path: str, parents: bool = False) -> None:
        await self._call("mkdir", path, parents=parents)

    async def move(self, source: str, target: str) -> None:
        await self._c.request("files.move", {"session": self._session, "from": absolute(source), "to": absolute(target)})

    async def remove(self, path: str, recursive: bool = False) -> None:
        await self._call("remove", path, recursive=recursive)

    rm = remove


async def decide(connection: Connection, on_approval: Optional[Callable[[Approval], Any]], params: Dict[str, Any]) -> None:
    """Asks the host's function, which may be a coroutine function, and tells the server; whatever goes wrong is a no."""
    params.pop("request_id", None)
    a = Approval(**params)
    try:
        verdict = on_approval(a) if on_approval else False
        reply = approval_reply(a, await verdict if inspect.isawaitable(verdict) else verdict)
    except Exception as e:
        log.exception("on_approval failed: the answer is no")
        reply = approval_reply(a, error_text(e))
    try:
        await connection.request("approval.resolve", reply)
    except CordonError:
        pass  # it is no longer waited for


class Session:
    """As cordon.Session. Those without a connection share the server of their loop, which ends with the last of them."""

    def __init__(self, guest: Guest = "python", *, level: Level = None, policy: Optional[Mapping[str, Any]] = None, tools: Tools = None,
                 env: Optional[Mapping[str, str]] = None, on_approval: Optional[Callable[[Approval], Any]] = None,
                 on_audit: Optional[Callable[[Dict[str, Any]], Any]] = None, verbose: Verbose = False,
                 connection: Optional[Connection] = None, set: Optional[Sequence[str]] = None, workspace: Optional[str] = None,
                 cold: Optional[bool] = None) -> None:
        options: Dict[str, Any] = {"set": set, "workspace": workspace, "cold": cold}
        listed = to_tools(tools)
        if on_audit:
            options["audit"] = True
        if verbose:
            options["verbose"] = True
        self._params = open_params(guest, level, policy, listed, env, options)
        self._table = Table(listed)
        self._on_approval, self._on_audit, self._verbose = on_approval, on_audit, verbose
        self._own = connection is None
        self._c: Any = connection
        self.guest, self.id = guest, ""

    async def open(self) -> "Session":
        if self._c is None:
            self._c = await share()
        try:
            self._attach((await self._c.request("session.open", self._params))["session"])
        except BaseException:
            if self._own:
                await unshare(self._c)
                self._c = None
            raise
        return self

    def _attach(self, session: str) -> None:
        self.id = session
        self.files = Files(self._c, session)
        self._c.tools[session] = self._table
        self._c.owners[session] = self
        early, self._c.early = self._c.early, []
        for method, params in early:
            if params.get("session_id") == session:
                self._c._start(self._note(method, params))
            else:
                self._c.early.append((method, params))

    async def _note(self, method: str, params: Dict[str, Any]) -> None:
        if method == "audit" and self._on_audit:
            said = self._on_audit(params)
            if inspect.isawaitable(said):
                await said
        elif method == "log":
            said = told(self._verbose, params)
            if inspect.isawaitable(said):
                await said
        elif method == "approval":
            await decide(self._c, self._on_approval, params)

    async def _call(self, method: str, /, **params: Any) -> Any:
        if not self.id:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        return await self._c.request(method, dict(params, session=self.id))

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, *, stdin: Optional[Bytes] = None,
                      timeout: Optional[float] = None, on_stdout: Optional[Callable[[str], Any]] = None,
                      on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False, tool_calls: Optional[int] = None,
                      validate: Optional[bool] = None) -> Result:
        if not self.id:
            raise StateError(-32600, "Session is not running.", {"code": "state"})
        watch = output_watch(on_stdout, on_stderr)
        params = execute_params(code, context, stdin, timeout, {"tool_calls": tool_calls, "validate": validate}, bool(watch))
        params["session"] = self.id
        result = Result.from_json(await self._c.request("session.execute", params, watch))
        return result.check() if check else result

    async def run(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        return (await self.execute(code, context, check=True, **options)).value

    async def suspend(self) -> None:
        await self._call("sandbox.suspend")

    async def resume(self) -> None:
        await self._call("sandbox.resume")

    async def interrupt(self) -> None:
        await self._call("session.interrupt")

    async def cancel(self) -> bool:
        return bool((await self._call("session.cancel"))["cancelled"])

    async def restart(self) -> None:
        await self._call("session.restart")

    async def describe(self) -> Dict[str, Any]:
        return await self._call("session.describe")  # type: ignore[no-any-return]

    async def setenv(self, name: str, value: Optional[str]) -> None:
        await self._call("session.setenv", name=name, value=value)

    async def snapshot(self, name: Optional[str] = None) -> str:
        return str((await self._call("snapshot.create", **({"name": name} if name else {})))["name"])

    async def restore(self, name: str) -> None:
        await self._call("snapshot.restore", name=name)

    async def remove_snapshot(self, name: str) -> None:
        await self._call("snapshot.remove", name=name)

    async def snapshots(self) -> List[Dict[str, Any]]:
        return (await self._call("snapshot.list"))["snapshots"]  # type: ignore[no-any-return]

    async def fork(self) -> "Session":
        child = Session(self.guest, connection=self._c)
        child._table, child._on_approval, child._on_audit = self._table, self._on_approval, self._on_audit
        child._verbose = self._verbose
        child._attach((await self._call("session.fork"))["session"])
        return child

    async def export(self) -> bytes:
        try:
            return base64.b64decode((await self._call("files.export"))["data"])
        except LimitExceeded:  # more than fits into an answer
            with tempfile.TemporaryDirectory(prefix="cordon-") as folder:
                await self.export_to(os.path.join(folder, "state"))
                with open(os.path.join(folder, "state"), "rb") as f:
                    return f.read()

    async def export_to(self, path: str) -> None:
        await self._call("files.export", to=os.path.abspath(path))

    async def import_from(self, path: str) -> Any:
        return (await self._call("files.import", **{"from": os.path.abspath(path)}))["report"]

    async def import_(self, blob: bytes) -> Any:
        if len(blob) > PIECE:  # more than fits into a request
            with tempfile.NamedTemporaryFile(prefix="cordon-") as f:
                f.write(blob)
                f.flush()
                return await self.import_from(f.name)
        return (await self._call("files.import", data=base64.b64encode(blob).decode()))["report"]

    async def close(self) -> None:
        session, self.id = self.id, ""
        if session and self._c.is_alive:
            try:
                answer = await self._c.request("session.close", {"session": session})
                for lost in answer.get("warnings", ()):  # the workspace was not saved, or the audit log lacks lines
                    warnings.warn(lost, RuntimeWarning, stacklevel=2)
            except RpcError:
                pass
            self._c.tools.pop(session, None)
            self._c.owners.pop(session, None)
        if self._own and self._c:
            await unshare(self._c)
            self._c = None

    async def __aenter__(self) -> "Session":
        return await self.open()

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


class Pool:
    """As cordon.Pool."""

    def __init__(self, guest: Guest = "python", size: int = 4, *, max_size: Optional[int] = None, reuse: bool = False, level: Level = None,
                 policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, env: Optional[Mapping[str, str]] = None,
                 on_approval: Optional[Callable[[Approval], Any]] = None, connection: Optional[Connection] = None,
                 set: Optional[Sequence[str]] = None, cold: Optional[bool] = None) -> None:
        options: Dict[str, Any] = {"set": set, "cold": cold}
        listed = to_tools(tools)
        options.update(size=size, max_size=max_size, reuse=reuse)
        self._params, self._table = open_params(guest, level, policy, listed, env, options), Table(listed)
        self._own, self._c, self.id = connection is None, connection, ""
        self._guest, self._on_approval = guest, on_approval

    async def __aenter__(self) -> "Pool":
        if self._c is None:
            self._c = await share()
        try:
            self.id = (await self._c.request("pool.open", self._params))["pool"]
        except BaseException:
            if self._own:
                await unshare(self._c)
                self._c = None
            raise
        return self

    async def _note(self, method: str, params: Dict[str, Any]) -> None:
        if method == "approval":
            assert self._c
            await decide(self._c, self._on_approval, params)

    async def acquire(self, wait: float = 0) -> Session:
        """A session that goes back to the pool when it is closed."""
        assert self._c
        s = Session(self._guest, on_approval=self._on_approval, connection=self._c)
        s._table = self._table
        s._attach((await self._c.request("pool.acquire", {"pool": self.id, "wait_ms": milliseconds("wait", wait, 0)}))["session"])
        return s

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None, *, stdin: Optional[Bytes] = None,
                      timeout: Optional[float] = None, wait: float = 0, on_stdout: Optional[Callable[[str], Any]] = None,
                      on_stderr: Optional[Callable[[str], Any]] = None, check: bool = False) -> Result:
        assert self._c
        watch = output_watch(on_stdout, on_stderr)
        params = execute_params(code, context, stdin, timeout, {"wait_ms": milliseconds("wait", wait, 0)}, bool(watch))
        params["pool"] = self.id
        key = "request %d" % (self._c._last + 1)
        self._c.tools[key] = self._table
        self._c.owners[key] = self
        try:
            result = Result.from_json(await self._c.request("pool.execute", params, watch))
        finally:
            self._c.tools.pop(key, None)
            self._c.owners.pop(key, None)
        return result.check() if check else result

    async def run(self, code: str, context: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        return (await self.execute(code, context, check=True, **options)).value

    async def status(self) -> Dict[str, int]:
        assert self._c
        return await self._c.request("pool.status", {"pool": self.id})  # type: ignore[no-any-return]

    async def __aexit__(self, *_: Any) -> None:
        assert self._c
        if self._c.is_alive:
            await self._c.request("pool.close", {"pool": self.id})
        if self._own:
            await unshare(self._c)
            self._c = None

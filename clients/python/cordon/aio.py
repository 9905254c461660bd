"""The same for asyncio: async with cordon.aio.Session("python") as s: await s.run("6 * 7")

Tools may be coroutine functions; other tools run in the loop's thread pool, so that they may block."""
import asyncio
import base64
import inspect
import json
import os
import tempfile
import time
import warnings
import weakref
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ._address import Address, find_server
from ._errors import ConnectionLost, CordonError, LimitExceeded, NotFound, RpcError, StateError, error_text, rpc_error
from ._remote import GREETING_SECONDS, HEAD_MAX, by_value, check_answer, greeting, tls_context, unreachable
from ._result import Result
from ._rpc import EARLY_MAX, EVENTS, SESSIONS_MAX, check_link, find_program, request_line, to_line
from ._session import (PIECE, Approval, Bytes, FileInfo, Guest, Level, PackageNames, Progress, Pty, Steps, Verbose, absolute,
                       approval_reply, by_language, check_write_time, command_params, download_steps, execute_params, expose_params, install_params,
                       kept_output, language_list, logger, milliseconds, open_params, tar_file, told, upload_steps)
from ._tools import RESULT_MAX, Table, Tools, to_tools
from ._values import decode, encode
from ._watch import SLICE, Change, wait_params

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
            logger().exception("on_%s failed", params["stream"])


async def open_remote(address: Address) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Streams to a `cordon serve`, after the greeting."""
    options: Dict[str, Any] = {"limit": READ_MAX}
    if address.scheme == "https":
        options.update(ssl=tls_context(address), server_hostname=address.host)
    if address.scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(address.host, **options)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port, **options)
    try:
        writer.write(greeting(address))
        head = await reader.readuntil(b"\r\n\r\n")
        body = b"" if head.startswith(b"HTTP/1.1 101") else await reader.read(HEAD_MAX)
        check_answer(address, head, body)
        return reader, writer
    except BaseException:
        writer.close()
        raise


class Connection:
    """A server of one's own: async with Connection() as c, or await Connection.open(). Or a `cordon serve`:
    await Connection.open(server="https://HOST", key=KEY)."""

    def __init__(self) -> None:
        self._process: "Optional[asyncio.subprocess.Process]" = None
        self._address: Optional[Address] = None
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
    async def open(cls, program: Optional[str] = None, args: Any = (), *, server: Optional[str] = None, key: Optional[str] = None,
                   ca_file: Optional[str] = None) -> "Connection":
        if (program or args) and (server is not None or key is not None):
            raise ValueError("server= and key= exclude program and args")
        return await cls()._begin(program, args, None if program or args else find_server(server, key, ca_file))

    async def _begin(self, program: Optional[str], args: Any, address: Optional[Address]) -> "Connection":
        self._address = address
        if address:
            try:
                self._in, self._out = await asyncio.wait_for(open_remote(address), GREETING_SECONDS)
            except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError) as e:
                raise unreachable(address, TimeoutError() if isinstance(e, asyncio.TimeoutError) else e) from None
        else:
            self._process = await asyncio.create_subprocess_exec(
                program or find_program(), "rpc", *args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=READ_MAX)
            assert self._process.stdin and self._process.stdout
            self._in, self._out = self._process.stdout, self._process.stdin
        self.is_alive = True
        self._reader = asyncio.ensure_future(self._read())
        return self

    async def request(self, method: str, params: Dict[str, Any], watch: Any = None) -> Any:
        steps = by_value(method, params) if self._address else None
        if steps is None:
            return await self._request(method, params, watch)
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._request(step[0], step[1], None, step[2])
                except BaseException as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return done.value

    async def _request(self, method: str, params: Dict[str, Any], watch: Any, attached: Any = None) -> Any:
        if not self.is_alive:
            raise ConnectionLost("the connection is closed")
        self._last += 1
        number = self._last
        line, parts = request_line(number, method, params, attached)
        answer: "asyncio.Future[Any]" = asyncio.get_running_loop().create_future()
        at = 0
        self._pending[number] = answer
        notes: "asyncio.Queue[Any]" = asyncio.Queue()
        if watch:
            self._watches[number] = notes
        watcher = asyncio.ensure_future(consume(notes, watch)) if watch else None
        try:
            at = self._write(line, parts)
            self._lines[at] = number
            await self._out.drain()
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

    def _write(self, line: bytes, parts: Any = ()) -> int:
        self._sent += 1
        self._out.write(line)
        for part in parts:
            self._out.write(part)
        return self._sent

    def _send(self, message: Dict[str, Any]) -> None:
        self._write(to_line(message))

    async def _read(self) -> None:
        while True:
            try:
                line = await self._in.readline()
            except OSError:
                break
            if not line.endswith(b"\n"):
                break
            message = json.loads(line)
            if "attachment" in message:
                try:
                    data = await self._in.readexactly(message["attachment"])
                except (OSError, EOFError):
                    break
                message["result"]["buffer"]["data"] = bytearray(data)
            self._take(message)
        self.is_alive = False
        self._lose("the server is gone")

    def _lose(self, why: str) -> None:
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(why))

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
            logger().exception("a handler failed")

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
        if not self.is_alive and (self._process is None or self._process.returncode is not None):
            return
        self.is_alive = False
        self._out.write(to_line({"jsonrpc": "2.0", "method": "kill"}))  # what still runs is not waited for
        if self._process is None:
            self._out.close()
            self._reader.cancel()
            await asyncio.wait({self._reader})
            self._lose("the connection is closed")
            return
        self._out.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def __aenter__(self) -> "Connection":
        return self if self.is_alive else await self._begin(None, (), find_server())

    async def __aexit__(self, *_: Any) -> None:
        await self.close()


class Server:
    """One that sessions share."""

    def __init__(self, address: Optional[Address]) -> None:
        self.users = 0
        self.name = address.share_name if address else None
        self.opening = asyncio.ensure_future(Connection()._begin(None, (), address))

    def has_room(self) -> bool:
        is_usable = not self.opening.done() or (self.opening.exception() is None and self.opening.result().is_alive)
        return is_usable and self.users < SESSIONS_MAX


servers: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, List[Server]]" = weakref.WeakKeyDictionary()


async def share(where: Optional[str] = None, key: Optional[str] = None) -> Connection:
    """The connection of this loop to this server, with one user more."""
    address = find_server(where, key)
    name = address.share_name if address else None
    all_of = servers.setdefault(asyncio.get_running_loop(), [])
    server = next((s for s in all_of if s.name == name and s.has_room()), None)
    if server is None:
        server = Server(address)
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

    async def upload(self, local: Any, path: str, progress: Progress = None) -> None:
        """Copies a file of the host (a path, or an open binary file) into the session, in constant memory."""
        await self._run(upload_steps(local, path, progress))

    async def download(self, path: str, local: Any, progress: Progress = None) -> None:
        """Copies a file of the session to the host (a path, or an open binary file), in constant memory."""
        await self._run(download_steps(path, local, progress))

    async def _run(self, steps: Steps) -> None:
        try:
            method, params = next(steps)
            while True:
                try:
                    answer = await self._c.request("files." + method, dict(params, session=self._session))
                except BaseException as e:
                    method, params = steps.throw(e)
                else:
                    method, params = steps.send(answer)
        except StopIteration:
            pass

    async def put_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Unpacks a tar file of the host, or copies what is in a folder of the host, into a directory of the session.
        Returns what was skipped and why."""
        with tar_file(tar) as name:
            return (await self._call("put_tar", path, **{"from": name}))["report"]  # type: ignore[no-any-return]

    async def get_tar(self, path: str, tar: str) -> Dict[str, Any]:
        """Packs a directory of the session into a new tar file of the host. Returns what was skipped and why."""
        return (await self._call("get_tar", path, to=os.path.abspath(tar)))["report"]  # type: ignore[no-any-return]

    async def watch(self, path: str = "/home/user", recursive: bool = True) -> "Watch":
        """Watches a directory, also while code runs: `async for change in watch`, or `await watch.changes(timeout)`."""
        return Watch(self._c, self._session, (await self._call("watch", path, recursive=recursive))["watch"])


class Watch:
    """A watched directory: an async context manager, and an async iterator of changes that waits for the next one until close()."""

    def __init__(self, connection: Connection, session: str, number: int) -> None:
        self._c, self._session, self._number, self._is_closed = connection, session, number, False

    async def changes(self, timeout: Optional[float] = 0) -> List[Change]:
        """What has changed since the last call. Waits for it, for at most so many seconds; None: until there is something."""
        while True:
            params = wait_params(self._number, SLICE if timeout is None else timeout)
            found = (await self._c.request("files.changes", dict(params, session=self._session)))["changes"]
            if found or timeout is not None:
                return [Change(**c) for c in found]

    async def __aiter__(self) -> AsyncIterator[Change]:
        while not self._is_closed:
            try:
                found = await self.changes(SLICE)
            except (NotFound, StateError):
                if self._is_closed:
                    return
                raise
            for change in found:
                yield change

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                await self._c.request("files.unwatch", {"session": self._session, "watch": self._number})
            except (NotFound, StateError):
                pass  # the session has ended

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.close()


async def decide(connection: Connection, on_approval: Optional[Callable[[Approval], Any]], params: Dict[str, Any]) -> None:
    """Asks the host's function, which may be a coroutine function, and tells the server; whatever goes wrong is a no."""
    params.pop("request_id", None)
    a = Approval(**params)
    try:
        verdict = on_approval(a) if on_approval else False
        reply = approval_reply(a, await verdict if inspect.isawaitable(verdict) else verdict)
    except Exception as e:
        logger().exception("on_approval failed: the answer is no")
        reply = approval_reply(a, error_text(e))
    try:
        await connection.request("approval.resolve", reply)
    except CordonError:
        pass  # it is no longer waited for


class Packages:
    """As cordon.Session.packages."""

    def __init__(self, session: "Session") -> None:
        self._session = weakref.proxy(session)

    async def install(self, names: Union[str, Sequence[str]], language: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        s = self._session
        answer: Dict[str, Any] = await s._call("session.install", **install_params(names, language, s.guest, timeout))
        return answer


class Session:
    """As cordon.Session. Those without a connection share the server of their loop, which ends with the last of them."""

    def __init__(self, guest: Guest = "python", *, level: Level = None, policy: Optional[Mapping[str, Any]] = None, tools: Tools = None,
                 env: Optional[Mapping[str, str]] = None, on_approval: Optional[Callable[[Approval], Any]] = None,
                 on_audit: Optional[Callable[[Dict[str, Any]], Any]] = None, verbose: Verbose = False,
                 connection: Optional[Connection] = None, set: Optional[Sequence[str]] = None, workspace: Optional[str] = None,
                 cold: Optional[bool] = None, languages: Union[str, Sequence[str], None] = None, packages: PackageNames = None,
                 server: Optional[str] = None, key: Optional[str] = None) -> None:
        check_link(connection, server, key)
        self._server, self._key = server, key
        self._wanted = by_language(packages, guest)
        options: Dict[str, Any] = {"set": set, "workspace": workspace, "cold": cold, "languages": language_list(languages)}
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
        self._parts: Dict[str, Session] = {}  # contexts

    async def open(self) -> "Session":
        if self._c is None:
            self._c = await share(self._server, self._key)
        try:
            self._attach((await self._c.request("session.open", self._params))["session"])
        except BaseException:
            if self._own:
                await unshare(self._c)
                self._c = None
            raise
        try:
            for language, names in self._wanted:
                await self.packages.install(names, language)
        except BaseException:
            await self.close()
            raise
        return self

    def _attach(self, session: str) -> None:
        self.id = session
        self.files = Files(self._c, session)
        self.packages = Packages(self)
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
        params = execute_params(code, context, stdin, timeout, {"tool_calls": tool_calls, "validate": validate}, bool(watch),
                                self.guest)
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

    async def is_complete(self, code: str) -> str:
        return str((await self._call("session.inspect", code=code, question="is_complete")).get("status", "unknown"))

    async def complete(self, code: str) -> Tuple[str, List[str]]:
        answer = await self._call("session.inspect", code=code, question="complete")
        return answer.get("token", ""), answer.get("matches", [])

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

    async def _child(self, guest: Any, session: str) -> "Session":
        child = Session(guest, connection=self._c)
        child._table, child._on_approval, child._on_audit = self._table, self._on_approval, self._on_audit
        child._verbose = self._verbose
        child._attach(session)
        return child

    async def fork(self) -> "Session":
        return await self._child(self.guest, (await self._call("session.fork"))["session"])

    async def context(self, language: Optional[str] = None, name: str = "default") -> "Session":
        """As cordon.Session.context(). It ends with its session, or when it is closed."""
        language = language or self.guest
        session = (await self._call("session.context", language=language, context=name))["session"]
        if session == self.id:
            return self
        known: Optional[Session] = self._parts.get(session)
        if known is None:
            known = self._parts[session] = await self._child(language, session)
        return known

    async def command(self, command: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                      stdin: Optional[Bytes] = None, timeout: Optional[float] = None, check: bool = False, pty: Pty = None) -> Result:
        """Runs a command line for bash beside everything else; any number at once. pty: as cordon.Session.command()."""
        result = Result.from_json(await self._call("session.command", **command_params(command, cwd, env, stdin, timeout, False, pty)))
        return result.check() if check else result

    async def start(self, command: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                    stdin: Optional[Bytes] = None, timeout: Optional[float] = None, pty: Pty = None) -> "Process":
        """The same in the background. Without stdin, Process.write() gives it."""
        params = command_params(command, cwd, env, stdin, timeout, False, pty)
        return Process(self, (await self._call("session.command", background=True, **params))["process"])

    async def processes(self) -> List[Dict[str, Any]]:
        """The commands in the background: process, command, state and exit_code of each."""
        return (await self._call("process.list"))["processes"]  # type: ignore[no-any-return]

    async def is_alive(self) -> bool:
        try:
            return bool(self.id and self._c.is_alive and (await self.describe())["state"] == "running")
        except CordonError:
            return False

    async def expose(self, port: int, *, host_port: Optional[int] = None, path: Any = None) -> str:
        """As cordon.Session.expose()."""
        return (await self._call("session.expose", **expose_params(port, host_port, path)))["address"]  # type: ignore[no-any-return]

    async def unexpose(self, port: int) -> None:
        await self._call("session.unexpose", port=port)

    async def exposed(self) -> List[Dict[str, Any]]:
        return (await self._call("session.exposed"))["ports"]  # type: ignore[no-any-return]

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
        for part in self._parts.values():  # they end with it
            self._c.tools.pop(part.id, None)
            self._c.owners.pop(part.id, None)
            part.id = ""
        self._parts = {}
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


class Process:
    """A command in the background, as cordon.Process; see Session.start(). It stays readable after its end."""

    def __init__(self, session: Session, id: int) -> None:
        self._session, self.id = session, id
        self._result: Optional[Result] = None

    async def wait(self, timeout: Optional[float] = None) -> Result:
        """Its result, as often as it is asked for. timeout: in seconds; if it still runs then, RpcError of kind "timeout"."""
        params = {} if timeout is None else {"wait_ms": milliseconds("timeout", timeout, 0)}
        if self._result is None:
            self._result = Result.from_json(await self._session._call("process.wait", process=self.id, **params))
        return self._result

    async def kill(self) -> None:
        """Ends it and what it started; nothing happens if it has ended. Its exit code is then 137."""
        if self._result is None:
            await self._session._call("process.kill", process=self.id)

    async def write(self, data: Bytes, eof: bool = False, timeout: Optional[float] = None) -> None:
        """Writes to its stdin, as fast as it reads. timeout: as cordon.Process.write()."""
        raw = data.encode() if isinstance(data, str) else bytes(data)
        end = None if timeout is None else time.monotonic() + milliseconds("timeout", timeout, 0) / 1000
        while True:
            piece = raw[:32768]
            params = {"data": base64.b64encode(piece).decode(), "eof": eof and len(piece) == len(raw)}
            done = (await self._session._call("process.write", process=self.id, **params))["written"]
            raw = raw[done:]
            if not raw:
                return
            if done == 0:
                check_write_time(self.id, end, len(raw))
                await asyncio.sleep(0.01)

    async def close_stdin(self) -> None:
        """On a terminal: types ^D."""
        await self._session._call("process.write", process=self.id, eof=True)

    async def resize(self, rows: int, columns: int) -> None:
        """Of a command on a terminal."""
        await self._session._call("process.resize", process=self.id, rows=rows, columns=columns)

    async def signal(self, name: str) -> None:
        """As cordon.Process.signal()."""
        await self._session._call("process.signal", process=self.id, signal=name)

    async def read(self, stream: str = "stdout", offset: int = 0) -> bytes:
        """What it has written so far, from this offset on; the last 256 KiB are kept."""
        try:
            r = await self._session._call("process.output", process=self.id, stream=stream, offset=offset)
        except NotFound:
            if self._result is None:
                raise
            return kept_output(self._result, stream, offset)
        return base64.b64decode(r["data"])

    async def stdout(self) -> str:
        return (await self.read()).decode(errors="replace")

    async def stderr(self) -> str:
        return (await self.read("stderr")).decode(errors="replace")

    async def exit_code(self) -> Optional[int]:
        """None: it still runs."""
        try:
            return (await self.wait(0)).exit_code
        except RpcError as e:
            if e.kind != "timeout":
                raise
            return None

    async def is_running(self) -> bool:
        return self._result is None and any(p["process"] == self.id and p["state"] == "running"
                                            for p in await self._session.processes())


class Pool:
    """As cordon.Pool."""

    def __init__(self, guest: Guest = "python", size: int = 4, *, max_size: Optional[int] = None, reuse: bool = False, level: Level = None,
                 policy: Optional[Mapping[str, Any]] = None, tools: Tools = None, env: Optional[Mapping[str, str]] = None,
                 on_approval: Optional[Callable[[Approval], Any]] = None, connection: Optional[Connection] = None,
                 set: Optional[Sequence[str]] = None, cold: Optional[bool] = None, server: Optional[str] = None,
                 key: Optional[str] = None) -> None:
        check_link(connection, server, key)
        self._server, self._key = server, key
        options: Dict[str, Any] = {"set": set, "cold": cold}
        listed = to_tools(tools)
        options.update(size=size, max_size=max_size, reuse=reuse)
        self._params, self._table = open_params(guest, level, policy, listed, env, options), Table(listed)
        self._own, self._c, self.id = connection is None, connection, ""
        self._guest, self._on_approval = guest, on_approval

    async def __aenter__(self) -> "Pool":
        if self._c is None:
            self._c = await share(self._server, self._key)
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
        params = execute_params(code, context, stdin, timeout, {"wait_ms": milliseconds("wait", wait, 0)}, bool(watch),
                                self._guest)
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

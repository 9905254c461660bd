"""The way to a `cordon serve`: the greeting over HTTP, and what a server far away cannot do: use files of this machine. Imported only for one."""
import base64
import errno
import json
import os
import socket
import ssl
import threading
from typing import Any, Dict, Generator, Optional, Tuple

from ._address import Address
from ._errors import KeyRefused, RpcError, ServerBusy, ServerUnreachable, rpc_error

PROTOCOL = "cordon-rpc/1"
PIECE = 4 << 20
GREETING_SECONDS = 30
HEAD_MAX = 64 << 10
REASONS = {401: "the server knows no such key", 403: "this key may not do that, or the server does not know this host name",
           404: "no such path: is it a cordon serve?", 429: "too many requests or connections with this key",
           503: "the server is busy or stopping"}
REMEDIES = {401: "give key=, or set CORDON_KEY", 403: "ask who runs the server; --host names further host names",
            404: "check the address", 429: "close connections that are not used, or try again later", 503: "try again later"}


def tls_context(address: Address) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca_file)
    except (OSError, ssl.SSLError) as e:
        raise ServerUnreachable("the authorities in '%s' cannot be read (%s): name a file with certificates in PEM" % (address.ca_file, e)) from e
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def greeting(address: Address) -> bytes:
    name = "[%s]" % address.host if ":" in address.host else address.host
    lines = ["GET /v1/rpc HTTP/1.1", "Host: " + ("localhost" if address.scheme == "unix" else "%s:%d" % (name, address.port)),
             "Connection: Upgrade", "Upgrade: " + PROTOCOL, "User-Agent: cordon-python"]
    if address.key:
        lines.append("Authorization: Bearer " + address.key)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def head_size(data: bytes) -> int:
    """How long the head of the answer is; 0: not all of it is there."""
    end = data.find(b"\r\n\r\n")
    if end < 0 and len(data) > HEAD_MAX:
        raise ServerUnreachable("what listens there is no cordon serve")
    return end + 4 if end >= 0 else 0


def check_answer(address: Address, head: bytes, body: bytes) -> None:
    """Raises what the server said instead of a welcome."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise ServerUnreachable("what listens at %s is no cordon serve" % address.text)
    status = int(words[1])
    headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
    if status == 101 and headers.get("upgrade") == PROTOCOL:
        return
    if status == 101:
        raise ServerUnreachable("what listens at %s speaks another protocol" % address.text)
    said = {}
    try:
        said = json.loads(body)
    except ValueError:
        pass
    text = REASONS.get(status) or (said.get("detail") if isinstance(said, dict) else None) or "it answered with status %d" % status
    remedy = REMEDIES.get(status) or (said.get("remedy") if isinstance(said, dict) else None)
    kind = KeyRefused if status in (401, 403) else ServerBusy if status in (429, 503) else ServerUnreachable
    raise kind("%s: %s%s" % (address.text, text, "; " + str(remedy) if remedy else ""), status)


def unreachable(address: Address, e: BaseException) -> ServerUnreachable:
    if isinstance(e, ssl.SSLCertVerificationError):
        why = "its certificate is not good: %s; name its authority with ca_file=, or CORDON_CA" % e.verify_message
    elif isinstance(e, ssl.SSLError):
        why = "TLS failed (%s): does it speak https?" % (e.reason or "no answer")
    elif isinstance(e, (socket.timeout, TimeoutError)):
        why = "it did not answer within %d s" % GREETING_SECONDS
    elif isinstance(e, (ConnectionResetError, BrokenPipeError, EOFError)):
        why = "it closed the connection: is it stopping, or not a cordon serve?"
    else:
        why = "%s: is `cordon serve` running there?" % (getattr(e, "strerror", None) or e)
    return ServerUnreachable("cannot connect to %s: %s" % (address.text, why))


class Plain:
    """The connection, once it has been greeted. One thread may read while another writes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def read(self, most: int) -> bytes:
        return self.sock.recv(most)

    def read_into(self, view: memoryview) -> int:
        return self.sock.recv_into(view)

    def write(self, data: Any) -> int:
        return self.sock.send(data)

    def close(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


class Tls(Plain):
    """OpenSSL's object is used by one thread at a time, but nobody waits for the network meanwhile."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        super().__init__(sock)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        self._lock = threading.Lock()  # of the object
        self._sending = threading.Lock()  # of the order on the network; taken first
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            finally:
                self._flush()

    def _flush(self) -> None:
        data = self._out.read()
        if data:
            self.sock.sendall(data)

    def _receive(self) -> None:
        data = self.sock.recv(1 << 18)
        if data:
            with self._lock:
                self._in.write(data)
        else:
            self._in.write_eof()

    def _decrypt(self, most: int, view: Optional[memoryview]) -> Any:
        while True:
            try:
                with self._lock:
                    return self._tls.read(most, view) if view is not None else self._tls.read(most)  # type: ignore[arg-type]
            except ssl.SSLWantReadError:
                if self._out.pending and self._sending.acquire(blocking=False):  # or who sends does it
                    try:
                        with self._lock:
                            data = self._out.read()
                        self.sock.sendall(data)
                    finally:
                        self._sending.release()
                self._receive()
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return 0 if view is not None else b""
            except ssl.SSLError as e:
                raise OSError("TLS: %s" % (e.reason or e)) from e

    def read(self, most: int) -> bytes:
        return self._decrypt(most, None)  # type: ignore[no-any-return]

    def read_into(self, view: memoryview) -> int:
        return self._decrypt(len(view), view)  # type: ignore[no-any-return]

    def write(self, data: Any) -> int:
        part = memoryview(data)[:1 << 18]
        with self._sending:
            with self._lock:
                sent = self._tls.write(part)
                out = self._out.read()
            self.sock.sendall(out)
        return sent


def dial(address: Address) -> socket.socket:
    if address.scheme != "unix":
        sock = socket.create_connection((address.host, address.port), GREETING_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(GREETING_SECONDS)
    try:
        sock.connect(address.host)
    except OSError:
        sock.close()
        raise
    return sock


def greet(address: Address, link: Plain) -> bytes:
    """Exchanges the greeting; returns what came after it."""
    data, todo = b"", greeting(address)
    while todo:
        todo = todo[link.write(todo):]
    while not head_size(data):
        more = link.read(1 << 16)
        if not more:
            raise EOFError
        data += more
    n = head_size(data)
    body = data[n:]
    if not data.startswith(b"HTTP/1.1 101"):
        wanted = [int(line[15:]) for line in data[:n].lower().split(b"\r\n") if line.startswith(b"content-length:") and line[15:].strip().isdigit()]
        while wanted and len(body) < min(wanted[0], HEAD_MAX):
            more = link.read(1 << 16)
            if not more:
                break
            body += more
    check_answer(address, data[:n], body)
    return body


def open_link(address: Address) -> Tuple[Plain, bytes]:
    """A connection that speaks the protocol of `cordon rpc`, and what was read of it already."""
    sock = None
    try:
        sock = dial(address)
        link = Tls(sock, tls_context(address), address.host) if address.scheme == "https" else Plain(sock)
        early = greet(address, link)
        sock.settimeout(None)
        sock = None
        return link, early
    except (OSError, EOFError) as e:
        raise unreachable(address, e) from None
    finally:
        if sock is not None:
            sock.close()


# What names a file of this machine goes by value. A step is a request (method, params, what is attached) and gets its result.
ByValue = Generator[Tuple[str, Dict[str, Any], Any], Any, Any]


def _missing(e: OSError, verb: str, path: str) -> RpcError:
    """As the server would say it."""
    kind = {errno.ENOENT: "not_found", errno.EEXIST: "exists", errno.EACCES: "denied", errno.EPERM: "denied"}.get(e.errno or 0, "os")
    return rpc_error({"code": -32000, "message": "%s '%s': %s" % (verb, path, e.strerror),
                      "data": {"code": kind, "errno": errno.errorcode.get(e.errno or 0)}})


def _upload(params: Dict[str, Any]) -> ByValue:
    name, offset = params.pop("from"), params.pop("offset", 0)
    length = min(params.pop("length", PIECE), PIECE)
    try:
        with open(name, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            f.seek(offset)
            data = f.read(length)
    except OSError as e:
        raise _missing(e, "open", name) from None
    yield "files.append" if offset else "files.write", dict(params, data=base64.b64encode(data).decode()), None
    return {"length": len(data), "eof": offset + len(data) >= size, "size": size}


def _download(params: Dict[str, Any]) -> ByValue:
    name, offset = params.pop("to"), params.get("offset", 0)
    params["length"] = min(params.get("length", PIECE), PIECE)
    r = yield "files.read", params, None
    data = base64.b64decode(r["data"])
    with open(name, "r+b") as f:
        f.seek(offset)
        f.write(data)
    end = offset + len(data)
    return {"length": len(data), "eof": r["eof"], "size": max(r.get("size", end), end)}


def _send_file(method: str, params: Dict[str, Any]) -> ByValue:
    name = params.pop("from")
    try:
        f = open(name, "rb")
    except OSError as e:
        raise _missing(e, "open", name) from None
    with f:
        return (yield method, dict(params, attached=True), f)


def _receive_file(method: str, params: Dict[str, Any]) -> ByValue:
    name = params.pop("to")
    try:
        f = open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
    except OSError as e:
        raise _missing(e, "create", name) from None
    try:
        with f:
            r = yield method, dict(params, attach=True), None
            f.write(r["buffer"].get("data", b""))
        return {"length": r["length"], "report": r.get("report")}
    except BaseException:
        os.unlink(name)
        raise


def by_value(method: str, params: Dict[str, Any]) -> Optional[ByValue]:
    """The steps that take the place of a request about files of this machine; None: it is sent as it is."""
    if method == "files.upload":
        return _upload(dict(params))
    if method == "files.download":
        return _download(dict(params))
    if method in ("files.put_tar", "files.import") and "from" in params:
        return _send_file(method, dict(params))
    if method in ("files.get_tar", "files.export") and "to" in params:
        return _receive_file(method, dict(params))
    return None

"""A Jupyter kernel whose code runs in a sandbox: python3 -m cordon.kernel -f CONNECTION_FILE [--guest GUEST] [--policy FILE].

Jupyter's messaging protocol 5.3 over ZeroMQ; `cordon kernel install` writes the kernel.json that starts it. Only the host's side is
here: code, its completions and its results come from the sandbox and are data."""
import argparse
import base64
import hashlib
import hmac
import html
import importlib
import json
import os
import signal
import sys
import threading
import uuid
from collections import OrderedDict
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._errors import CordonError, error_text
from ._modeltext import denial_lines, lost, state_lines
from ._result import Result
from ._session import Session

PROTOCOL = "5.3"
DELIMITER = b"<IDS|MSG>"
SEEN_MAX = 65536  # signatures that are remembered, so that a message is not taken twice
PARENT_MS = 1000  # how often the end of Jupyter is looked for
LANGUAGES: Dict[str, Dict[str, Any]] = {
    "python": {"name": "python", "mimetype": "text/x-python", "file_extension": ".py", "pygments_lexer": "ipython3",
               "codemirror_mode": {"name": "ipython", "version": 3}},
    "r": {"name": "R", "mimetype": "text/x-r-source", "file_extension": ".r", "pygments_lexer": "r", "codemirror_mode": "r"},
    "node": {"name": "javascript", "mimetype": "application/javascript", "file_extension": ".js", "pygments_lexer": "javascript",
             "codemirror_mode": "javascript"},
    "sh": {"name": "bash", "mimetype": "text/x-sh", "file_extension": ".sh", "pygments_lexer": "bash", "codemirror_mode": "shell"},
}
Message = Dict[str, Any]


class Wire:
    """Signed messages. What is not signed with the connection file's key is nobody's: it is dropped."""

    def __init__(self, key: str, scheme: str) -> None:
        kind, _, digest = scheme.partition("-")
        if kind != "hmac" or digest not in hashlib.algorithms_available:
            raise ValueError("the connection file's signature_scheme is %r; there is hmac-sha256" % scheme)
        self._key, self._digest, self._session = key.encode(), digest, uuid.uuid4().hex
        self._seen: "OrderedDict[bytes, None]" = OrderedDict()

    def _sign(self, parts: List[bytes]) -> bytes:
        if not self._key:
            return b""
        return hmac.new(self._key, b"".join(parts), self._digest).hexdigest().encode()

    def pack(self, kind: str, content: Message, parent: Message, ids: List[bytes]) -> List[bytes]:
        header = {"msg_id": uuid.uuid4().hex, "session": self._session, "username": "cordon", "msg_type": kind, "version": PROTOCOL,
                  "date": datetime.now(timezone.utc).isoformat()}
        parts = [json.dumps(x).encode() for x in (header, parent.get("header", {}), {}, content)]
        return ids + [DELIMITER, self._sign(parts)] + parts

    def unpack(self, frames: List[bytes]) -> Optional[Message]:
        try:
            at = frames.index(DELIMITER)
            signature, parts = frames[at + 1], frames[at + 2:at + 6]
            if len(parts) != 4 or not hmac.compare_digest(signature, self._sign(parts)) or self._is_again(signature):
                return None
            header, parent, metadata, content = (json.loads(p) for p in parts)
            if not isinstance(header["msg_type"], str) or not isinstance(content, dict):
                return None
            return {"header": header, "content": content, "ids": frames[:at]}
        except (ValueError, LookupError, TypeError):
            return None

    def _is_again(self, signature: bytes) -> bool:
        if not signature:
            return False
        if signature in self._seen:
            return True
        self._seen[signature] = None
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)
        return False


# Jupyter's page runs what HTML, JavaScript and many other forms tell it, with the rights of the whole server. So only these cross,
# and tables as HTML of our own.
IMAGES = ("image/png", "image/jpeg", "image/gif")


def cells(tag: str, row: Any) -> str:
    return "".join("<%s>%s</%s>" % (tag, html.escape("" if x is None else str(x)), tag) for x in row)


def table_html(data: str) -> Optional[str]:
    """A table as our own HTML, of what the code says about it; None: it is no table."""
    try:
        t = json.loads(data)
        rows = ["<tr>%s%s</tr>" % (cells("th", [name]), cells("td", row)) for name, row in zip(t["index"], t["data"])]
        return "<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (cells("th", ["", *t["columns"]]), "".join(rows))
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def passive(o: Dict[str, Any], before: Optional[str]) -> Dict[str, Any]:
    """The form of one output that the page only shows; empty: it has none."""
    mime, data, is_bytes = o["mime"], o["data"], o.get("encoding") == "base64"
    if mime in IMAGES:
        return {mime: data} if is_bytes else {}
    if mime == "text/plain":
        return {mime: base64.b64decode(data).decode("utf-8", "replace") if is_bytes else data}
    if mime == "application/json" and before == "text/html":  # how a table comes: as HTML, and then as JSON
        table = table_html(data)
        return {"text/html": table} if table else {}
    return {}


def bundles(result: Result) -> Tuple[Dict[str, Any], List[Dict[str, Any]]]:
    """The forms of the value by MIME type, and those of what the code displayed."""
    value: Dict[str, Any] = {} if result.text is None else {"text/plain": result.text}
    shown: List[Dict[str, Any]] = []
    before = None
    outputs = result.raw.get("outputs") or []
    for o, after in zip(outputs, outputs[1:] + [{}]):
        form = passive(o, before)
        before = o["mime"]
        if o.get("value"):
            value.update(form)
        elif form:
            shown.append(form if "text/plain" in form else {**form, "text/plain": "<%s>" % before})
        elif not (before == "text/html" and after.get("mime") == "application/json"):
            shown.append({"text/plain": "<%s, which is not shown: the page would run it>" % before})
    if value and "text/plain" not in value:
        value["text/plain"] = ""
    return value, shown


def error_content(r: Result) -> Message:
    e = r.exception or {}
    name, message = str(e.get("name") or r.error_kind or "error"), str(e.get("message") or r.error or "")
    if r.error_kind not in ("exception", "syntax", None):
        name, message = str(r.error_kind), r.error or message
    trace = (r.traceback or "%s: %s" % (name, message)).rstrip("\n").split("\n")
    if r.error and r.error_kind not in ("exception", "syntax"):
        trace.append("%s: %s" % (r.error_kind, r.error))
    return {"ename": name, "evalue": message, "traceback": trace}


def is_fatal(request: Message) -> bool:
    return request["header"]["msg_type"] == "execute_request" and bool(request["content"].get("stop_on_error", True))


class Kernel:
    """Shell requests are handled in the main thread, control requests in one of their own: an interrupt comes while code runs."""

    def __init__(self, connection: Message, guest: str, policy: Optional[Message]) -> None:
        self._zmq: Any = importlib.import_module("zmq")
        key, transport = connection.get("key") or "", connection.get("transport", "tcp")
        if not key and transport != "ipc":
            raise ValueError("the connection file has no key: anybody on this machine could run code")
        self._wire = Wire(key, connection.get("signature_scheme", "hmac-sha256"))
        self._guest, self._count, self._lock, self._is_over = guest, 0, threading.Lock(), threading.Event()
        self._parent_pid = os.getppid()
        # A sandbox that cannot be made is told before Jupyter counts on it.
        self.session = Session(guest, policy=policy)  # type: ignore[arg-type]
        self._context = self._zmq.Context()
        zmq, self._sockets = self._zmq, {}
        for name, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER), ("iopub", zmq.PUB), ("hb", zmq.REP)):
            self._sockets[name] = self._bind(kind, transport, connection, name)

    def _bind(self, kind: Any, transport: str, connection: Message, name: str) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 1000
        separator = "-" if transport == "ipc" else ":"
        socket.bind("%s://%s%s%d" % (transport, connection["ip"], separator, connection[name + "_port"]))
        return socket

    def run(self) -> None:
        threads = [threading.Thread(target=work, daemon=True) for work in (self._beat, self._control)]
        for t in threads:
            t.start()
        self._publish("status", {"execution_state": "starting"}, {})
        shell = self._sockets["shell"]
        while not self._is_over.is_set():
            if shell.poll(100):
                self._take(shell)
        threads[1].join()
        self.session.close()
        for name in ("shell", "control", "stdin", "iopub"):
            self._sockets[name].close()
        self._context.term()  # waits until the last reply is sent, for a second at most

    def _beat(self) -> None:
        heart = self._sockets["hb"]
        try:
            while True:
                heart.send(heart.recv())
        except self._zmq.ContextTerminated:
            heart.close(0)

    def _control(self) -> None:
        control = self._sockets["control"]
        while not self._is_over.is_set():
            if control.poll(PARENT_MS):
                self._take(control)
            elif os.getppid() != self._parent_pid:  # nobody is left who could ask
                os._exit(0)

    def _publish(self, kind: str, content: Message, parent: Message) -> None:
        with self._lock:
            self._sockets["iopub"].send_multipart(self._wire.pack(kind, content, parent, [kind.encode()]))

    def _reply(self, socket: Any, message: Message, content: Message) -> None:
        kind = message["header"]["msg_type"].replace("_request", "_reply")
        socket.send_multipart(self._wire.pack(kind, content, message, message["ids"]))

    def _take(self, socket: Any) -> None:
        message = self._wire.unpack(socket.recv_multipart())
        if message:
            self._handle(socket, message)

    def _handle(self, socket: Any, message: Message) -> None:
        answer = getattr(self, "_on_" + message["header"]["msg_type"], None)
        if not answer:
            return  # what is not known is not answered, as the protocol has it
        self._publish("status", {"execution_state": "busy"}, message)
        try:
            content = answer(message)
        except Exception as e:
            content = {"status": "error", "ename": type(e).__name__, "evalue": error_text(e), "traceback": [error_text(e)]}
        # Cells that were sent before this one failed do not run. Those that answer its failure do: they come after the reply.
        waiting = self._waiting(socket) if content["status"] == "error" and is_fatal(message) else []
        self._reply(socket, message, content)
        self._publish("status", {"execution_state": "idle"}, message)
        if message["header"]["msg_type"] == "shutdown_request":
            self._end()
        for other in waiting:
            if other["header"]["msg_type"] == "execute_request":
                self._publish("status", {"execution_state": "busy"}, other)
                self._reply(socket, other, {"status": "aborted", "execution_count": self._count})
                self._publish("status", {"execution_state": "idle"}, other)
            else:
                self._handle(socket, other)

    def _waiting(self, socket: Any) -> List[Message]:
        frames = []
        while socket.poll(0):
            frames.append(socket.recv_multipart())
        return [m for m in map(self._wire.unpack, frames) if m]

    def _end(self) -> None:
        self._is_over.set()
        try:
            self.session.cancel()
        except CordonError:
            pass  # nothing runs, or it is gone

    def _on_kernel_info_request(self, message: Message) -> Message:
        info = dict(LANGUAGES[self._guest], version=str(self.session.describe().get("language") or ""))
        return {"status": "ok", "protocol_version": PROTOCOL, "implementation": "cordon", "implementation_version": "0.1.0",
                "language_info": info, "banner": "%s in a sandbox of cordon" % info["name"], "help_links": []}

    def _on_shutdown_request(self, message: Message) -> Message:
        content = {"status": "ok", "restart": bool(message["content"].get("restart"))}
        self._publish("shutdown_reply", content, message)
        return content

    def _on_interrupt_request(self, message: Message) -> Message:
        self.session.interrupt()
        return {"status": "ok"}

    def _on_comm_info_request(self, message: Message) -> Message:
        return {"status": "ok", "comms": {}}

    def _on_history_request(self, message: Message) -> Message:
        return {"status": "ok", "history": []}

    def _on_inspect_request(self, message: Message) -> Message:
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}

    def _on_is_complete_request(self, message: Message) -> Message:
        status = self.session.is_complete(str(message["content"]["code"]))
        return {"status": status, "indent": ""} if status == "incomplete" else {"status": status}

    def _on_complete_request(self, message: Message) -> Message:
        code = str(message["content"]["code"])
        end = min(max(0, int(message["content"]["cursor_pos"])), len(code))
        token, matches = self.session.complete(code[:end])
        start = end - len(token) if code[:end].endswith(token) else end
        return {"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": end, "metadata": {}}

    def _pieces(self, code: str) -> Iterator[str]:
        """R shows the value of each of its expressions, the other languages that of the last one."""
        if self._guest != "r":
            yield code
            return
        piece = ""
        for line in code.splitlines(True):
            piece += line
            if piece.strip() and self.session.is_complete(piece) != "incomplete":
                yield piece
                piece = ""
        if piece.strip():
            yield piece

    def _on_execute_request(self, message: Message) -> Message:
        request = message["content"]
        code, is_silent = str(request["code"]), bool(request.get("silent"))
        if not is_silent and request.get("store_history", True):
            self._count += 1
        if not is_silent:
            self._publish("execute_input", {"code": code, "execution_count": self._count}, message)
        answer: Message = {"status": "ok", "execution_count": self._count, "payload": [], "user_expressions": {}}
        last: Dict[str, Any] = {}
        for piece in self._pieces(code) if code.strip() else ():
            if last:
                self._publish("display_data", {"data": last, "metadata": {}, "transient": {}}, message)
            r, last = self._execute(piece, message, is_silent)
            if not r.success:
                error = error_content(r)
                if not is_silent:
                    self._publish("error", error, message)
                return dict(answer, status="error", **error)
        if last:
            self._publish("execute_result", {"execution_count": self._count, "data": last, "metadata": {}}, message)
        return answer

    def _execute(self, code: str, message: Message, is_silent: bool) -> Tuple[Result, Dict[str, Any]]:
        """Runs the code and shows what it printed and displayed; the forms of its value."""
        def tell(name: str, text: str) -> None:
            if not is_silent and text:
                self._publish("stream", {"name": name, "text": text}, message)

        r = self.session.execute(code, on_stdout=lambda t: tell("stdout", t), on_stderr=lambda t: tell("stderr", t))
        value, shown = bundles(r)
        for data in () if is_silent else shown:
            self._publish("display_data", {"data": data, "metadata": {}, "transient": {}}, message)
        notes = [lost(r, "stdout"), lost(r, "stderr")] + denial_lines(r) + state_lines(r)
        tell("stderr", "".join(line + "\n" for line in notes if line))
        return r, {} if is_silent or not r.success else value


def load(path: str) -> Message:
    with open(path, encoding="utf-8") as f:
        found = json.load(f)
    if not isinstance(found, dict):
        raise ValueError("%s has no JSON object" % path)
    return found


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m cordon.kernel", description="A Jupyter kernel whose code runs in a sandbox.")
    parser.add_argument("-f", dest="connection", metavar="FILE", required=True, help="Jupyter's connection file")
    parser.add_argument("--guest", choices=sorted(LANGUAGES), default="python")
    parser.add_argument("--policy", metavar="FILE", help="a policy file")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a ^C at Jupyter's terminal is Jupyter's: it sends an interrupt_request
    try:
        Kernel(load(options.connection), options.guest, load(options.policy) if options.policy else None).run()
    except ModuleNotFoundError as e:
        print("cordon.kernel: %s; Debian's package is python3-zmq" % e, file=sys.stderr)
        return 1
    except (CordonError, OSError, ValueError, KeyError) as e:
        print("cordon.kernel: %s" % error_text(e), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs in a sandbox: a server whose answers are what the path asks for. "/raw?BASE64" is answered with these bytes."""
import base64
import hashlib
import socketserver
import threading


def serve_digest(request, head, rest):
    """Reads the body, and answers with its length and hash."""
    left = [rest]

    def need(n):
        while len(left[0]) < n:
            data = request.recv(65536)
            if not data:
                raise EOFError
            left[0] += data

    def read(n):
        need(n)
        data, left[0] = left[0][:n], left[0][n:]
        return data

    def line():
        n = 1
        while b"\n" not in left[0]:
            n = len(left[0]) + 1
            need(n)
        return read(left[0].index(b"\n") + 1)

    total, digest = 0, hashlib.sha256()
    fields = dict(f.lower().split(b": ", 1) for f in head.split(b"\r\n")[1:])
    if fields.get(b"transfer-encoding") == b"chunked":
        sizes = iter(lambda: int(line(), 16), 0)
        for n in sizes:
            digest.update(read(n))
            read(2)
            total += n
    else:
        want = int(fields[b"content-length"])
        while total < want:
            data = read(min(65536, want - total))
            digest.update(data)
            total += len(data)
    answer(request, b"%d %s" % (total, digest.hexdigest().encode()))


def answer(request, body):
    request.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def serve_websocket(request, head, rest):
    """Greets, and sends back what comes, reversed."""
    key = [f.split(b": ")[1] for f in head.split(b"\r\n") if f.lower().startswith(b"sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=b\r\n"
                    b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\nhello")
    while True:
        data, rest = rest or request.recv(65536), b""
        if not data:
            print("left", flush=True)
            return
        request.sendall(data[::-1])


def repeat(request, first, piece):
    try:
        request.sendall(first)
        while True:
            request.sendall(piece)
    except OSError:
        print("let go", flush=True)


def serve_steps(request):
    """Three pieces; the second and third when the client has asked for them, on another connection."""
    request.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for i in range(3):
        request.sendall(b"data: %d\n\n" % i)
        turn.acquire()


turn = threading.Semaphore(0)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.request.recv(65536)
            if not more:
                return
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        target = head.split()[1].decode()
        if target.startswith("/raw?"):
            self.request.sendall(base64.urlsafe_b64decode(target[5:]))
        elif target == "/digest":
            serve_digest(self.request, head, rest)
        elif target == "/silent":
            print("got /silent", flush=True)
            while self.request.recv(65536):
                pass
            print("let go", flush=True)
        elif target == "/deaf":
            threading.Event().wait()
        elif target == "/steps":
            serve_steps(self.request)
        elif target == "/turn":
            turn.release()
            answer(self.request, b"")
        elif target == "/endless":
            repeat(self.request, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n")
        elif target == "/interim":
            repeat(self.request, b"", b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n")
        elif target == "/headers":
            repeat(self.request, b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n")
        elif target == "/socket":
            serve_websocket(self.request, head, rest)
        else:
            answer(self.request, head)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128


with Server(("127.0.0.1", 8000), Handler) as s:
    print("ready", flush=True)
    s.serve_forever()

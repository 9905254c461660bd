"""The hosts in the small Internet of world.py: a resolver's table, and servers that do what the URL's path says."""
import base64
import json
import time

import world
from world import OTHER, PRIVATE, PUBLIC, PUBLIC6, Resolver, Server, field, read_body, reply

world.enter()


def pattern(n):
    return b"".join(i.to_bytes(4, "big") for i in range(n // 4))


def handle(server, sock, head, data):
    """One server for everything: the path says what it does."""
    method, target, _ = head.split("\r\n")[0].split(" ")
    body, data = read_body(sock, head, data)
    where = target.split("?")[0]
    if where == "/echo":
        reply(sock, json.dumps({"method": method, "target": target, "head": head, "body": body.decode("latin-1")}))
    elif where == "/redirect":
        reply(sock, "", "302 Found", "Location: %s\r\n" % target.partition("to=")[2])
    elif where.startswith("/status/"):
        code, _, to = where[8:].partition("/")
        reply(sock, "", code + " X", "Location: /%s\r\n" % to)
    elif where.startswith("/bytes/"):
        n = int(where[7:])
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
        block = b"x" * 65536
        while n > 0:
            sock.sendall(block[:min(n, len(block))])
            n -= len(block)
    elif where.startswith("/pattern/"):
        reply(sock, pattern(int(where[9:])))
    elif where == "/endless":
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            sock.sendall(b"10000\r\n" + b"y" * 65536 + b"\r\n")
    elif where == "/endless-close":
        sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while True:
            sock.sendall(b"z" * 65536)
    elif where == "/slow":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            sock.sendall(b".")
            time.sleep(0.1)
    elif where == "/silent":
        time.sleep(30)
    elif where == "/close":
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
        return None
    elif where == "/torn":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        return None
    elif where == "/bad":
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
        return None
    elif where == "/echo-chunked":
        text = head.encode("latin-1")
        sock.sendall(b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\nTransfer-Encoding: chunked\r\n\r\n" %
                     (field(head, "Authorization") or "").encode("latin-1"))
        for i in range(0, len(text), 3):  # the secret is spread over many chunks
            piece = text[i:i + 3]
            sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        sock.sendall(b"0\r\n\r\n")
    elif where == "/echo-base64":
        reply(sock, base64.b64encode(("x:" + (field(head, "Authorization") or "")).encode()))
    elif where == "/remember":
        server.remembered = field(head, "Authorization") or ""
        reply(sock, "yes")
    elif where == "/recall":
        reply(sock, "I remember " + getattr(server, "remembered", ""))
    elif where == "/encoded":
        reply(sock, "?", headers="Content-Encoding: gzip\r\n")
    else:
        reply(sock, "hello from %s %s" % (field(head, "Host"), where))
    return data


resolver = Resolver()
resolver.table.update({"a.test": PUBLIC, "b.test": OTHER, "six.test": PUBLIC6, "x.wild.test": PUBLIC,
                       "private.test": PRIVATE, "local.test": "127.0.0.1", "meta.test": "169.254.169.254",
                       "mixed.test": (PUBLIC, PRIVATE), "secret.test": PUBLIC, "untrusted.test": PUBLIC,
                       "rebind.test": [PUBLIC, "127.0.0.1"], "mapped.test": "::ffff:10.9.9.9"})
resolver.start()
web = Server(PUBLIC, 80, handle)
other = Server(OTHER, 80, handle)
six = Server(PUBLIC6, 80, handle)
tls = Server(PUBLIC, 443, handle, tls=True)
high = Server(PUBLIC, 8080, handle)
inside = [Server(a, 80, handle) for a in (PRIVATE, "127.0.0.1", "169.254.169.254")]

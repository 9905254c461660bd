#!/usr/bin/python3
"""The cost of an exposed port: a request on a new connection and on a kept one, to the same server on the host's own loopback and in a
sandbox; and how fast bytes pass.

    CORDON=build/cordon bench/expose.py"""
import os
import socket
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("CORDON", os.path.join(ROOT, "build", "cordon"))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import cordon  # noqa: E402

# Gives back what it gets, a client at a time.
SERVER = """import socket
s = socket.create_server(("127.0.0.1", %d))
print(s.getsockname()[1], flush=True)
while True:
    c = s.accept()[0]
    while d := c.recv(1 << 16): c.sendall(d)
    c.close()
"""
REQUESTS, MEGABYTES = 2000, 256


def dial(address):
    is_path = address.startswith("/")
    s = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
    s.connect(address if is_path else ("127.0.0.1", int(address.rsplit(":", 1)[1])))
    return s


def ask(s):
    s.sendall(b"x" * 100)
    got = 0
    while got < 100:
        got += len(s.recv(100))


def new(address):
    with dial(address) as s:
        ask(s)


def line(name, fn):
    seconds = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        fn()
        seconds.append(time.perf_counter() - start)
    q = statistics.quantiles(seconds, n=100)
    print("%-44s p50 %6.0f us   p99 %6.0f us" % (name, q[49] * 1e6, q[98] * 1e6), flush=True)


def throughput(name, address):
    """There and back, in pieces, one after the other."""
    piece, start = bytes(1 << 16), time.perf_counter()
    with dial(address) as s:
        for _ in range(MEGABYTES << 4):
            s.sendall(piece)
            got = 0
            while got < len(piece):
                got += len(s.recv(1 << 16))
    print("%-44s %.0f MB/s each way" % (name, MEGABYTES / (time.perf_counter() - start)), flush=True)


def measure(name, address):
    line("new connection, " + name, lambda: new(address))
    with dial(address) as s:
        line("kept connection, " + name, lambda: ask(s))
    throughput("64 KiB pieces, " + name, address)


def main():
    own = subprocess.Popen([sys.executable, "-c", SERVER % 0], stdout=subprocess.PIPE, text=True)
    try:
        measure("the host's own server", "127.0.0.1:" + own.stdout.readline().strip())
    finally:
        own.kill()
        own.wait()
    policy = {"expose": [8000], "cpu_seconds": 600, "cpu_percent": None}
    with cordon.Sandbox(languages=["sh"], policy=policy) as sb:
        p = sb.commands.run('exec python3 -c "$S"', background=True, env={"S": SERVER % 8000})
        while p.stdout != "8000\n":
            time.sleep(0.01)
        measure("Unix socket", sb.expose(8000))
        sb.unexpose(8000)
        measure("port of 127.0.0.1", sb.expose(8000, host_port=0))


main()

#!/usr/bin/python3
"""What the way to the library costs: execute `1+1` on a live session by raw RPC and by the Python client; start-up times.

    CORDON=build/cordon bench/clients.py"""
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORDON = os.environ.setdefault("CORDON", os.path.join(ROOT, "build", "cordon"))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))


def line(name, seconds):
    q = statistics.quantiles(seconds, n=100)
    print("%-34s p50 %7.3f ms   p99 %7.3f ms   n %d" % (name, q[49] * 1e3, q[98] * 1e3, len(seconds)), flush=True)


def timed(fn, n):
    out = []
    for _ in range(n):
        start = time.perf_counter()
        fn()
        out.append(time.perf_counter() - start)
    return out


def raw():
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def call(method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        return p.stdout.readline()
    session = json.loads(call("session.open", guest="python"))["result"]["session"]
    line("execute 1+1, raw RPC", timed(lambda: call("session.execute", session=session, code="1+1"), 1000))
    inner = [json.loads(call("session.execute", session=session, code="1+1"))["result"]["execution_time_ms"] / 1e3 for _ in range(1000)]
    line("  of which in the library", inner)
    line("version, raw RPC", timed(lambda: call("version"), 1000))
    p.stdin.close()
    p.wait()


def python():
    import cordon
    with cordon.Session("python") as s:
        line("execute 1+1, Python client", timed(lambda: s.execute("1+1"), 1000))
        line("open and close, Python client", timed(lambda: cordon.Session("python").close(), 50))
    start = [sys.executable, "-c", "import time; a = time.perf_counter(); import cordon; print(time.perf_counter() - a)"]
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "clients", "python"))
    line("import cordon", [float(subprocess.run(start, env=env, capture_output=True).stdout) for _ in range(10)])


def mcp():
    request = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'

    def start():
        p = subprocess.Popen([CORDON, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        p.stdin.write(request)
        p.stdout.readline()
        p.stdin.close()
        p.wait()
    line("cordon mcp to its first answer", timed(start, 30))


if __name__ == "__main__":
    raw()
    python()
    mcp()

#!/usr/bin/python3
"""cordon serve: what HTTP costs, against the same through cordon rpc and against a handler that answers at once."""
import json
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

CORDON = os.environ.get("CORDON") or "build/cordon"
KEY = "cordon_" + "0123456789abcdef" * 3
ROUNDS = int(os.environ.get("ROUNDS") or 2000)


def request(method, path, body=None, accept="application/json", key=KEY):
    data = json.dumps(body).encode() if body is not None else b""
    return (b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % (method.encode(), path.encode(), key.encode(), accept.encode(), len(data))) + data


class Connection:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer(self):
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.s.recv(65536)
        head, body = got.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.s.recv(65536)
        return int(head[9:12]), body

    def ask(self, data):
        self.s.sendall(data)
        return self.answer()


def call(c, method, path, body=None, key=KEY):
    status, data = c.ask(request(method, path, body, key=key))
    assert status < 300, data
    return json.loads(data) if data else None


def quantiles(times):
    times = sorted(times)
    return times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3


def measure(fn, rounds=ROUNDS):
    for _ in range(rounds // 10):
        fn()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return quantiles(times)


def report(what, value, unit, goal=None, good=None):
    mark = "" if goal is None else "   goal %s %s: %s" % (goal, unit, "met" if good else "MISSED")
    print("%-72s %10.3f %s%s" % (what, value, unit, mark))
    sys.stdout.flush()


class Rpc:
    def __init__(self):
        self.p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n = 0

    def ask(self, method, **params):
        self.n += 1
        self.p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}).encode() + b"\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())["result"]

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def bench_latency(port):
    c = Connection(port)
    for path in ("/healthz", "/v1/version"):
        data = request("GET", path)
        p50, p99 = measure(lambda: c.ask(data))
        report("%s, %s: p50" % (path, "answered in the thread of the connections" if path == "/healthz" else "by a worker"), p50, "ms")
    rpc = Rpc()
    s = rpc.ask("session.open", guest="python")["session"]
    p50, p99 = measure(lambda: rpc.ask("session.execute", session=s, code="1+1"))
    report("execute 1+1 through cordon rpc: p50", p50, "ms")
    report("execute 1+1 through cordon rpc: p99", p99, "ms")
    rpc.close()
    s = call(c, "POST", "/v1/sessions", {"guest": "python"})["session"]
    data = request("POST", "/v1/sessions/%s/executions" % s, {"code": "1+1"})
    p50, p99 = measure(lambda: c.ask(data))
    report("execute 1+1 over HTTP keep-alive: p50", p50, "ms", "<= 0.35", p50 <= 0.35)
    report("execute 1+1 over HTTP keep-alive: p99", p99, "ms")
    call(c, "DELETE", "/v1/sessions/" + s)


def bench_rate(port, connections=32, seconds=5):
    c = Connection(port)
    pool = call(c, "POST", "/v1/pools", {"guest": "python", "size": connections, "reuse": True})["pool"]
    while call(c, "GET", "/v1/pools/" + pool)["idle"] < connections:
        pass
    data = request("POST", "/v1/pools/%s/executions" % pool, {"code": "1+1", "wait_ms": 60000})
    poll, many, parts = select.epoll(), {}, {}
    for _ in range(connections):
        k = Connection(port)
        k.s.setblocking(False)
        many[k.s.fileno()], parts[k.s.fileno()] = k, b""
        poll.register(k.s, select.EPOLLIN)
        k.s.send(data)
    done, bad, start = 0, 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for fd, _ in poll.poll(1):
            parts[fd] += many[fd].s.recv(65536)
            head, _, body = parts[fd].partition(b"\r\n\r\n")
            if not body or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
                continue
            done += 1
            bad += not head.startswith(b"HTTP/1.1 200")
            parts[fd] = b""
            many[fd].s.send(data)
    rate = done / (time.perf_counter() - start)
    report("executions a second, %d connections, pooled Python" % connections, rate, "/s", ">= 2000", rate >= 2000)
    if bad:
        report("... of which failed", bad, "")
    for k in many.values():
        k.s.close()


def bench_stream(port, megabytes=512):
    c = Connection(port)
    s = call(c, "POST", "/v1/sessions", {"policy": {"stdout_bytes": None, "timeout_ms": None, "cpu_seconds": None}})["session"]
    code = "import sys\nblock = b'x' * (1 << 20)\nfor i in range(%d): sys.stdout.buffer.write(block)" % megabytes
    c.s.sendall(request("POST", "/v1/sessions/%s/executions" % s, {"code": code, "keep_output": False}, "text/event-stream"))
    total, start, tail, room = 0, time.perf_counter(), b"", bytearray(1 << 20)
    while b"\r\n0\r\n\r\n" not in tail:
        n = c.s.recv_into(room)
        assert n > 0
        total += n
        tail = (tail + bytes(room[max(0, n - 64):n]))[-64:]
    rate = total / 1e6 / (time.perf_counter() - start)
    report("streamed stdout to a client", rate, "MB/s", ">= 300", rate >= 300)


def bench_idle(server, port, connections=1000, sessions=200):
    idle = [Connection(port) for _ in range(connections)]
    for k in idle:
        k.ask(request("GET", "/v1/version"))
    c = idle[0]
    key = call(c, "POST", "/v1/keys", {"name": "idle", "max_sessions": sessions})["key"]
    for _ in range(sessions):
        call(c, "POST", "/v1/sessions", {"guest": "python"}, key)
    with open("/proc/%d/status" % server.pid) as f:
        status = dict(line.split(":", 1) for line in f)
    memory = int(status["VmRSS"].split()[0]) / 1024
    report("%d idle connections and %d idle sessions: memory of the server" % (connections, sessions), memory, "MB", "<= 60", memory <= 60)
    time.sleep(11)
    report("... and its threads", len(os.listdir("/proc/%d/task" % server.pid)), "")


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    state = tempfile.mkdtemp(prefix="cordon-bench-")
    server = subprocess.Popen([CORDON, "serve", "--listen", "127.0.0.1:0", "--state", state, "--set", "memory_bytes=64M", "--park", "none"],
                              stdout=subprocess.PIPE, text=True, env=dict(os.environ, CORDON_SERVE_KEY=KEY))
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        bench_latency(port)
        bench_rate(port)
        bench_stream(port)
        bench_idle(server, port)
    finally:
        server.terminate()
        server.wait(120)
        shutil.rmtree(state, ignore_errors=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""The cost of the clients: execute `1+1` on a live session by raw RPC and by each client; start-up times.

    CORDON=build/cordon bench/clients.py"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
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
    # Buffered: an unbuffered readline() makes a system call for every byte of the answer.
    p = subprocess.Popen([CORDON, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(method, **params):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        p.stdin.flush()
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


NODE = """
import { performance } from 'node:perf_hooks';
const before = performance.now();
const { Session } = await import(process.argv[1]);
const loaded = performance.now() - before;
const s = await Session.open({ guest: 'python' });
const times = [];
for (let i = 0; i < 1100; i++) {
  const t = performance.now();
  await s.execute('1+1');
  if (i >= 100) times.push(performance.now() - t);
}
await s.close();
console.log(JSON.stringify({ loaded, times }));
process.exit(0);
"""

R = """
before <- proc.time()[["elapsed"]]
suppressMessages(library(cordon))
loaded <- (proc.time()[["elapsed"]] - before) * 1000
s <- SecureSession$new(sandbox = TRUE, guest = "python")
times <- numeric()
for (i in 1:1100) {
  t <- Sys.time()
  s$execute("1+1")
  if (i > 100) times <- c(times, as.numeric(Sys.time() - t, units = "secs") * 1000)
}
s$close()
cat(sprintf('{"loaded": %f, "times": [%s]}', loaded, paste(times, collapse = ",")))
"""


def show_other(name, load, command, env):
    r = subprocess.run(command, env=env, capture_output=True, text=True)
    if r.returncode != 0:
        print("%-34s failed: %s" % (name, r.stderr.strip()[-200:]))
        return
    seen = json.loads(r.stdout)
    line("execute 1+1, %s client" % name, [t / 1e3 for t in seen["times"]])
    loads = [json.loads(subprocess.run(command, env=env, capture_output=True, text=True).stdout)["loaded"] / 1e3 for _ in range(5)]
    print("%-34s min %7.3f ms   n %d" % (load, min(loads + [seen["loaded"] / 1e3]) * 1e3, len(loads) + 1), flush=True)


def node():
    if shutil.which("node"):
        show_other("Node", "import of the Node client", ["node", "--input-type=module", "-e", NODE, os.path.join(ROOT, "clients/node/index.js")], dict(os.environ))


def r():
    if not shutil.which("R"):
        return
    with tempfile.TemporaryDirectory() as folder:  # built from a copy, the sources stay clean
        shutil.copytree(os.path.join(ROOT, "clients/r"), os.path.join(folder, "cordon"))
        os.mkdir(os.path.join(folder, "library"))
        built = subprocess.run(["R", "CMD", "INSTALL", "-l", os.path.join(folder, "library"), os.path.join(folder, "cordon")], capture_output=True, text=True)
        if built.returncode != 0:
            print("R client: " + built.stderr.strip()[-200:])
            return
        show_other("R", "library(cordon)", ["Rscript", "-e", R], dict(os.environ, R_LIBS=os.path.join(folder, "library")))


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
    node()
    r()
    mcp()

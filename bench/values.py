#!/usr/bin/python3
"""values.py [ROUNDS] - large values both ways (docs/values.md): a data frame of 1,000,000 x 10 doubles into a session and back,
from Python and from R, beside what the same bytes cost without a sandbox: a copy, and pickle protocol 5 or
serialize(xdr = FALSE) through a pipe. Rounds are interleaved and figures are medians, because the machine is shared."""
import fcntl
import os
import pickle
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import cordon  # noqa: E402

POLICY = {"memory_bytes": 2 << 30, "timeout_ms": 120000}
LIMIT_MS = {"python": 250, "r": 400}
RATIO = 3

R = r"""
.libPaths(c(Sys.getenv("BENCH_LIB"), .libPaths())); library(cordon)
rounds <- as.integer(commandArgs(TRUE)[1]); now <- function() proc.time()[["elapsed"]]
df <- as.data.frame(matrix(runif(1e7), ncol = 10))
s <- SecureSession$new(guest = "r", policy = list(memory_bytes = 2^31, timeout_ms = 120000))
invisible(s$evaluate("1"))
child <- tempfile(); writeLines('p <- file("stdin", "rb"); x <- unserialize(p); stopifnot(nrow(x) == 1e6)', child)
# A copy, and its way to a process that makes the data frame of it; without the start of that process.
yardstick <- function() {
  empty <- function(what) { p <- pipe(paste("Rscript --vanilla", child), "wb"); t <- now(); serialize(what, p, xdr = FALSE); close(p); now() - t }
  small <- df[1, ]; attr(small, "row.names") <- .set_row_names(1e6L) # the same child, but few bytes
  copy <- function() { d <- df; for (i in seq_along(d)) d[[i]] <- d[[i]] + 0; d }
  t <- now(); d <- copy(); copied <- now() - t
  max(copied + empty(d) - empty(small), copied)
}
for (i in seq_len(rounds)) {
  t0 <- now(); a <- s$evaluate("NULL", context = list(df = df)); t1 <- now(); v <- s$evaluate("df"); t2 <- now()
  if (i == 1) stopifnot(identical(v$value, df))
  cat(1000 * (t1 - t0), 1000 * (t2 - t1), 1000 * yardstick(), a$cpu_time_ms, v$cpu_time_ms, "\n")
}
"""


def through_a_pipe(frame):
    """Milliseconds for a copy of the frame, and its way to another process by pickle protocol 5."""
    take, give = os.pipe()
    done, tell = os.pipe()
    fcntl.fcntl(give, 1031, 1 << 20)  # F_SETPIPE_SZ
    child = os.fork()
    if child == 0:
        with os.fdopen(take, "rb", 0) as f:
            head = read_exactly(f)
            buffers = [read_exactly(f) for _ in range(int.from_bytes(read_exactly(f), "little"))]
        pickle.loads(head, buffers=buffers)
        os.write(tell, b".")
        os._exit(0)
    begin = time.perf_counter()
    buffers = []
    head = pickle.dumps(frame.copy(), protocol=5, buffer_callback=buffers.append)
    for part in (memoryview(head), memoryview(len(buffers).to_bytes(8, "little")), *(b.raw() for b in buffers)):
        os.write(give, len(part).to_bytes(8, "little"))
        while part:
            part = part[os.write(give, part):]
    os.read(done, 1)
    ms = (time.perf_counter() - begin) * 1000
    os.waitpid(child, 0)
    for fd in (take, give, done, tell):
        os.close(fd)
    return ms


def read_exactly(f):
    size = int.from_bytes(f.read(8), "little")
    data, at = bytearray(size), 0
    view = memoryview(data)
    while at < size:
        at += f.readinto(view[at:])
    return data


def of_python(rounds):
    frame = pd.DataFrame(np.random.rand(1000000, 10), columns=list("abcdefghij"))
    rows = []
    with cordon.Session("python", policy=POLICY) as s:
        s.run("import pandas")
        for i in range(rounds):
            begin = time.perf_counter()
            a = s.execute("None", {"df": frame}, check=True)
            middle = time.perf_counter()
            b = s.execute("df", check=True)
            end = time.perf_counter()
            assert i or b.value.equals(frame)
            rows.append(((middle - begin) * 1000, (end - middle) * 1000, through_a_pipe(frame), a.cpu_time_ms, b.cpu_time_ms))
    return rows


def of_r(rounds):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(ROOT, "clients", "r"), folder + "/source/cordon")
        subprocess.run(["R", "CMD", "INSTALL", "--no-docs", "--library=" + folder, folder + "/source/cordon"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(folder + "/values.R", "w") as f:
            f.write(R)
        out = subprocess.run(["Rscript", "--vanilla", folder + "/values.R", str(rounds)], check=True, stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, BENCH_LIB=folder)).stdout
    return [tuple(map(float, line.split())) for line in out.splitlines() if line]


def main(argv):
    rounds = int(argv[1]) if len(argv) > 1 else 7
    os.environ.setdefault("CORDON", os.path.join(ROOT, "build", "cordon"))
    print("%-36s %6s %7s" % ("1,000,000 x 10 doubles (80 MB)", "ms", "target"))
    for name, measure in (("python", of_python), ("r", of_r)):
        if name == "r" and not shutil.which("R"):
            continue
        into, back, pipe, cpu_in, cpu_back = (statistics.median(x) for x in zip(*measure(rounds)))
        for way, ms, cpu in (("in", into, cpu_in), ("back", back, cpu_back)):
            print("%-36s %6.0f %7d   %.1f x the pipe (target %d); CPU time inside %.0f ms" % (
                "%s, %s" % (name, way), ms, LIMIT_MS[name], ms / pipe, RATIO, cpu), flush=True)
        print("%-36s %6.0f" % ("%s, a copy and a pipe alone" % name, pipe), flush=True)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print("CPU time of the Python client: %.0f ms in all; load: %.1f on %d processors" % (
        (used.ru_utime + used.ru_stime) * 1000, os.getloadavg()[0], os.cpu_count() or 1))


if __name__ == "__main__":
    main(sys.argv)

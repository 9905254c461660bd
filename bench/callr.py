#!/usr/bin/python3
"""R in Cordon and in callr, which runs R code in another R process without a sandbox: `1 + 1` on a live session, in a new
session, and in the bare interpreter started cold. Rounds are interleaved, figures are medians; Cordon's go through
`cordon rpc` and the Python client, callr's through the R that calls it.

    CORDON=build/cordon bench/callr.py [ROUNDS]"""
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

# One word on stdin is one measurement; its answer is milliseconds.
PEER = """
suppressMessages(library(callr))
live <- r_session$new(wait = TRUE, wait_timeout = 60000)
code <- function() 1 + 1
run <- list(live = function() stopifnot(live$run(code) == 2),
	fresh = function() { s <- r_session$new(wait = TRUE, wait_timeout = 60000); stopifnot(s$run(code) == 2); s$close() },
	once = function() stopifnot(r(code) == 2))
cat("ready\\n")
input <- file("stdin")
open(input)
while (length(word <- readLines(input, 1))) {
	start <- Sys.time()
	run[[word]]()
	cat(sprintf("%.4f\\n", as.numeric(Sys.time() - start, units = "secs") * 1000))
}
live$close()
"""


class Callr:
    def __init__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".R") as script:
            script.write(PEER)
            script.flush()
            self.p = subprocess.Popen(["Rscript", script.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.started = self.p.stdout.readline()
        assert self.started == "ready\n", "callr did not start"

    def ask(self, word):
        self.p.stdin.write(word + "\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline())


def timed(fn):
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1e3


def has_callr():
    return subprocess.run(["Rscript", "-e", "library(callr)"], capture_output=True).returncode == 0


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    if not shutil.which("Rscript"):
        print("R is not here (Debian package: r-base-core)")
        return
    import cordon

    def fresh():
        with cordon.Session("r") as s:
            assert s.execute("1 + 1").value == 2
    peer = Callr() if has_callr() else None
    if not peer:
        print("callr is not here (Debian package: r-cran-callr)")
    with cordon.Session("r") as live, cordon.Pool("r", size=2) as pool:
        rows = [("Cordon live", lambda: timed(lambda: live.execute("1 + 1")), 10),
                ("Cordon pooled", lambda: timed(lambda: pool.execute("1 + 1")), 1),
                ("Cordon fresh from a template", lambda: timed(fresh), 1)]
        if peer:
            rows += [("callr live: r_session$run()", lambda: peer.ask("live"), 10), ("callr fresh: r_session$new()", lambda: peer.ask("fresh"), 1),
                     ("callr once: callr::r()", lambda: peer.ask("once"), 1)]
        rows.append(("bare Rscript -e 1+1", lambda: timed(lambda: subprocess.run(["Rscript", "-e", "1+1"], stdout=subprocess.DEVNULL)), 1))
        times = {name: [] for name, _, _ in rows}
        for _ in range(rounds):
            for name, measure, count in rows:
                times[name].extend(measure() for _ in range(count))
                time.sleep(0.01)
    print("%-34s %9s %9s %9s" % ("R, 1 + 1", "median ms", "p10", "p90"))
    for name, _, _ in rows:
        t = sorted(times[name])
        print("%-34s %9.3f %9.3f %9.3f" % (name, statistics.median(t), t[len(t) // 10], t[len(t) * 9 // 10]))
    if peer:
        peer.p.stdin.close()
        peer.p.wait()


main()

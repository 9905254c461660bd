#!/usr/bin/python3
# bench/pod.py - the pod's speed beside native bash and Python, in one run, interleaved.
"""usage: bench/pod.py [IMAGE] [ROUNDS]

Every pair is measured in turn, ROUNDS times; medians are printed as a table.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "pod"))
from agent_client import Session  # noqa: E402

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
PYTHON = """
import json, re
def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)
fib(22)
s = 0
for i in range(300000): s += i * i % 7
d = {str(i): i for i in range(60000)}
sorted(d, key=d.get, reverse=True)
json.loads(json.dumps(d))
re.sub(r'[0-9]+', 'x', ' '.join(d))
"""


def timed(argv, cwd="/"):
    start = time.perf_counter()
    subprocess.run(argv, cwd=cwd, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def row(what, pod_ms, native_ms, target):
    ratio = "%.2f" % (pod_ms / native_ms) if native_ms else ""
    native = "%.2f" % native_ms if native_ms else ""
    print("| %s | %.2f | %s | %s | %s |" % (what, pod_ms, native, ratio, target))
    sys.stdout.flush()


def pair(what, pod, native, rounds, target):
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(timed(pod))
        theirs.append(timed(native))
    row(what, statistics.median(mine), statistics.median(theirs), target)


def data(path):
    words = [("w%d" % (i * 7919 % 100003)) for i in range(2000)]
    with open(path, "w") as f:
        size = i = 0
        while size < 20_000_000:
            line = "%d %s %s %d\n" % (i * 2654435761 % 4294967296, words[i % 2000], words[i * 31 % 2000], i)
            f.write(line)
            size += len(line)
            i += 1


def sessions(pod, root, rounds):
    for options, what, target in (((), "session from nothing", "≤ 12"), (("--warm",), "session with warm Python", "")):
        starts = []
        for _ in range(rounds):
            start = time.perf_counter()
            session = Session(pod, root, *options)
            starts.append((time.perf_counter() - start) * 1e3)
            session.close()
        row(what, statistics.median(starts), 0, target)
    session = Session(pod, root, "--warm")
    for command, what, target in (
        (":", "builtin on a live session", "≤ 0.15"),
        ("/usr/bin/true", "external command on a live session", ""),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)', warm", "≤ 2"),
    ):
        times = []
        for _ in range(100):
            start = time.perf_counter()
            session.run(command)
            times.append((time.perf_counter() - start) * 1e3)
        row(what, statistics.median(times), 0, target)
    pid = int(open("/proc/%d/task/%d/children" % (session.process.pid, session.process.pid)).read().split()[0])
    for name, number in (("agent", session.process.pid), ("idle shell", pid)):
        with open("/proc/%d/smaps_rollup" % number) as f:
            private = sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty"))
        print("| private memory of the %s, MB | %.2f | | | ≤ 2 |" % (name, private / 1024))
    session.close()


def main():
    image = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "build", "pod")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    pod = os.path.abspath(os.path.join(image, "bin/cordon-pod"))
    temp = tempfile.mkdtemp()
    root = temp + "/root"
    shutil.copytree(os.path.join(image, "root"), root, symlinks=True)
    data(root + "/tmp/data")
    data("/tmp/pod-bench-data")
    subprocess.run(["gzip", "-kf", root + "/tmp/data"], check=True)
    inside = [pod, "--root", root]
    print("| | pod, ms | native, ms | ratio | target |\n|---|---|---|---|---|")
    sessions(pod, root, rounds)

    def shell(what, script, target):
        pair(what, inside + ["bash", "-c", script.replace("DATA", "/tmp/data")],
             ["bash", "-c", script.replace("DATA", "/tmp/pod-bench-data")], rounds, target)

    shell("bash: start and exit", ":", "")
    shell("bash: 100 × /usr/bin/true", "for i in {1..100}; do /usr/bin/true; done", "≤ 1")
    shell("bash: 100,000 loop iterations", "for ((i=0;i<100000;i++)); do x=$i; done", "≤ 1.5")
    shell("bash: 200 × $(echo hi | tr h j)", "for i in {1..200}; do x=$(echo hi | tr h j); done", "")
    shell("sort, 20 MB", "LC_ALL=C sort DATA > /dev/null", "≤ 1.6")
    # Through a pipe: with /dev/null as its output GNU grep ends at the first match.
    shell("grep, 20 MB", "grep -c 'w1.*9$' DATA | cat", "≤ 1.6")
    shell("sed, 20 MB", "sed 's/w1/X/g' DATA > /dev/null", "≤ 1.6")
    shell("gawk, 20 MB", "gawk '{s[$2]+=$4} END {for (k in s) print k, s[k]}' DATA > /dev/null", "≤ 1.6")
    shell("jq, 2 MB", "head -c 2000000 DATA | jq -R -c 'split(\" \")' > /dev/null", "≤ 1.6")
    shell("gzip, 20 MB", "gzip -c DATA > /dev/null", "≤ 1.6")
    pair("python3 -c 'print(1)', cold", inside + ["python3", "-c", "print(1)"],
         ["/usr/bin/python3", "-c", "print(1)"], rounds, "≤ 20 ms")
    pair("python3, mixed work", inside + ["python3", "-c", PYTHON], ["/usr/bin/python3", "-c", PYTHON], rounds, "≤ 2.5")
    shutil.rmtree(temp)
    os.unlink("/tmp/pod-bench-data")


main()

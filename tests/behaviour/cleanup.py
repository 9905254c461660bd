#!/usr/bin/python3
"""After a run, however it ended, no process, control group, mount or file of it remains."""
import ctypes
import os
import signal
import subprocess
import tempfile
import time
import time

from oneshot import CORDON, become, main
from leftovers import gone, groups, mounts, new_mark, processes

NAME = "import ctypes; ctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\n"
SPIN = "import os\nfor _ in range(60):\n  if os.fork() == 0:\n    while True: pass\n"
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(100)\n"

# name, options, code (Python after it has given itself the mark as its name), allowed exit statuses
ENDINGS = [
    ("a plain end", [], "1", {0}),
    ("an exception", [], "1 / 0", {1}),
    ("a timeout", ["--timeout", "300ms"], SLEEP, {124}),
    ("a crash", [], "import os; os.kill(os.getpid(), 11)", {139}),
    ("no memory", ["--memory", "64M"], "x = []\nwhile True: x.append(bytearray(1 << 20))", {137}),
    ("no memory, not even for small objects", ["--memory", "64M"], "x, y = [], None\nfor size in 1 << 20, 1 << 16, 4096, 200, 40:\n"
     "  try:\n    while True: x.append(bytearray(size))\n  except MemoryError: pass\nwhile True: y = (y, 1.5 * len(x))", {137}),
    ("setsid", [], "import os\nif os.fork() == 0:\n  os.setsid()\n  import time; time.sleep(100)\n", {0}),
    ("a double fork", [], "import os\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    import time; time.sleep(100)\n"
     "  os._exit(0)\n", {0}),
    ("children deaf to signals", [], "import os, signal, time\nfor _ in range(5):\n  if os.fork() == 0:\n    for s in range(1, 65):\n"
     "      try: signal.signal(s, signal.SIG_IGN)\n      except (OSError, ValueError): pass\n    time.sleep(100)\n", {0}),
    ("stopped children", [], "import os, signal\nfor _ in range(5):\n  if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n",
     {0}),
    ("60 spinning children", ["--set", "processes=64", "--timeout", "110s"], SPIN, {0}),
    ("60 spinning children and a timeout", ["--set", "processes=64", "--timeout", "2s"], SPIN + "import time; time.sleep(100)",
     {124}),
    ("children that hold the pipes", [], "import os, time\nif os.fork() == 0:\n  time.sleep(100)\nprint('said')", {0}),
    ("a forking chain", ["--timeout", "1s"], "import os\nwhile True:\n  if os.fork() > 0: os._exit(0)\n", {0, 1, 124}),
]


def start(words, uid, folder, **more):
    return subprocess.Popen([CORDON, "run", *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
                            stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "TMPDIR": folder},
                            preexec_fn=become(uid), **more)


def endings(tap, who, uid):
    before = mounts()
    folder = tempfile.mkdtemp(prefix="left-")
    os.chmod(folder, 0o1777)
    for name, options, code, statuses in ENDINGS:
        mark, since = new_mark(), time.time()
        child = start([*options, "-e", NAME.format(mark=mark) + code], uid, folder)
        out, err = child.communicate(timeout=120)
        # At once: nothing may be left when it returns.
        left = processes(mark) + groups(child.pid, since)
        tap.check(child.returncode in statuses, f"{who}: {name}: status", child.returncode, out, err)
        tap.check(not left, f"{who}: {name}: nothing left", left)
    tap.check(mounts() <= before, f"{who}: no mounts left", mounts() - before)
    tap.check(not os.listdir(folder), f"{who}: no files left", os.listdir(folder))
    os.rmdir(folder)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def kills(tap, who, uid):
    """The host program is killed; nobody is left to clean up but the supervisor."""
    for signo in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        mark, since = new_mark(), time.time()
        code = NAME.format(mark=mark) + SPIN.replace("60", "10") + SLEEP
        child = start(["--timeout", "100s", "-e", code], uid, "/tmp")
        child.stdout.readline()
        running = processes(mark)
        child.send_signal(signo)
        child.communicate(timeout=60)
        left = gone(mark, child.pid, 15, since)
        tap.check(len(running) > 5 and not left, f"{who}: {signal.Signals(signo).name} to cordon: nothing left", running, left)


def supervisor(tap, who, uid):
    """The supervisor is killed: the sandbox dies with it and the host tells."""
    mark, since = new_mark(), time.time()
    child = start(["--timeout", "100s", "-e", NAME.format(mark=mark) + SLEEP], uid, "/tmp")
    child.stdout.readline()
    os.kill(children_of(child.pid)[0], signal.SIGKILL)
    _, err = child.communicate(timeout=60)
    left = gone(mark, child.pid, 15, since)
    tap.check(child.returncode not in (0, -9) and err and not left, f"{who}: SIGKILL to the supervisor: an error, nothing left",
              child.returncode, err, left)


def closed_reader(tap, who, uid):
    """Whoever reads our output goes away: the code still ends, and so do we."""
    mark, since = new_mark(), time.time()
    child = start(["--timeout", "20s", "-e", NAME.format(mark=mark) + "for i in range(100000): print('x' * 100)"], uid, "/tmp")
    child.stdout.read(10)
    child.stdout.close()
    child.wait(timeout=60)
    tap.check(not gone(mark, child.pid, 5, since), f"{who}: the reader of the output goes away: nothing left", child.returncode)


def left_behind():
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None


def early_ends(tap, who, uid):
    """However a run ends, nothing of it is left: no supervisor that nobody needed, and no other process."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: whatever is left becomes our child
    while left_behind():  # what the tests before have killed
        time.sleep(0.1)
    for name, words, status in (("an unknown option", ["--nosuch"], 2), ("help", ["--help"], 0), ("no file", ["/nonexistent.py"], 2),
                                ("bad policy", ["--set", "timeout=x", "-e", "1"], 2), ("a plain end", ["-e", "1"], 0),
                                ("no namespaces required", ["--set", "require=seccomp,landlock", "-e", "1"], 0),
                                ("with a network", ["--set", "network.allow=localhost:1", "-e", "1"], 0)):
        for closed in (False, True):
            done = subprocess.run([CORDON, "run", *words], stdin=subprocess.DEVNULL, capture_output=not closed, check=False, cwd="/",
                                  env={"PATH": "/usr/bin:/bin"}, preexec_fn=closes(uid) if closed else become(uid))
            left = left_behind()
            good = left is None and (closed or done.returncode == status)
            tap.check(good, f"{who}: {name}{', standard streams closed' if closed else ''}: nothing left", left, done)


def closes(uid):
    """Without standard output and error, whose numbers nobody else may get."""
    change = become(uid)

    def prepare():
        if change:
            change()
        os.closerange(0, 3)
    return prepare


main([], endings, kills, supervisor, closed_reader, early_ends)

#!/usr/bin/python3
"""Properties of the host process that must not reach the sandbox: its umask and ignored signals. Also: nobody can change the
supervisor's program while it runs. As root and as an ordinary user (TAP)."""
import fcntl
import os
import signal
import subprocess

from oneshot import CORDON, Tap, become, run, users

SEALS = 1 | 2 | 4 | 8  # F_SEAL_SEAL, SHRINK, GROW, WRITE
F_GET_SEALS = 1034


def odd(uid, mask=None, ignored=()):
    """A host with this file mask that ignores these signals."""
    def change():
        if uid:
            become(uid)()
        if mask is not None:
            os.umask(mask)
        for signo in ignored:
            signal.signal(signo, signal.SIG_IGN)
    return change


def masks(tap, who, uid):
    code = "import os; print(oct(os.umask(0))); open('/tmp/a', 'w').write('x'); print(open('/tmp/a').read())"
    for mask in (0o777, 0o077, 0):
        status, out, err, _ = run(["run", "-e", code], preexec_fn=odd(uid, mask=mask))
        tap.check(status == 0 and out == b"0o22\nx\n", f"{who}: a file mask of {mask:03o} stays outside", status, out, err)


def signals(tap, who, uid):
    pipe = [signal.SIGPIPE]
    status, out, err, _ = run(["run", "-g", "sh", "-e", "yes | head -1; echo ${PIPESTATUS[0]}"], restore_signals=False,
                              preexec_fn=odd(uid, ignored=pipe))
    tap.check(status == 0 and out == b"y\n141\n", f"{who}: an ignored SIGPIPE stays outside", status, out, err)
    everything = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
    status, out, err, _ = run(["run", "-g", "sh", "-e", "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"],
                              restore_signals=False, preexec_fn=odd(uid, ignored=everything))
    tap.check(status == 0 and out.split() == [b"SigIgn:", b"0" * 16, b"SigBlk:", b"0" * 16],
              f"{who}: no ignored signal comes in", status, out, err)


def supervisors(parent):
    """Processes below this one that run from a memory file."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
                is_child = int(f.read().rpartition(")")[2].split()[1]) == parent
            if is_child and "memfd:" in os.readlink(f"/proc/{pid}/exe"):
                found.append(f"/proc/{pid}/exe")
        except OSError:
            continue
    return found


def sealed(tap, who, uid):
    with subprocess.Popen([CORDON, "run", "-g", "sh", "-e", "echo here; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                          env={"PATH": "/usr/bin:/bin"}, preexec_fn=become(uid)) as host:
        host.stdout.readline()
        programs = supervisors(host.pid)
        tap.check(programs, f"{who}: the supervisor runs from memory")
        for path in programs:
            fd = os.open(path, os.O_RDONLY)
            has = fcntl.fcntl(fd, F_GET_SEALS)
            os.close(fd)
            tap.check(has & SEALS == SEALS, f"{who}: its program is sealed", hex(has))
            try:
                os.close(os.open(path, os.O_WRONLY))
                tap.check(False, f"{who}: and cannot be opened to write")
            except OSError:
                tap.check(True, f"{who}: and cannot be opened to write")
        host.stdin.close()
        host.stdout.read()


def main():
    tap = Tap()
    for who, uid in users():
        masks(tap, who, uid)
        signals(tap, who, uid)
        sealed(tap, who, uid)
    tap.done()


main()

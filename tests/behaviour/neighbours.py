#!/usr/bin/python3
"""Resources that the kernel counts per user: a sandbox that takes all it can get affects neither other sandboxes of that user nor
the user's own programs. As root, whose sandboxes each have a uid, and as an ordinary user (TAP)."""
import os
import subprocess
import sys

from oneshot import CORDON, Tap, become, run, users

LIBC = "import ctypes, os, signal, socket, array, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"

# Each takes until it is refused and then waits for the end of its standard input.
HOGS = {
    "descriptors in flight": """
a, b = socket.socketpair()
n = 0
try:
    while n < 20000:
        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 250))])
        n += 250
except OSError: pass
""",
    "inotify instances": """
n = 0
while n < 1000 and libc.inotify_init() >= 0: n += 1
""",
    "queued signals": """
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
n = 0
while n < 200000 and libc.sigqueue(os.getpid(), 40, None) == 0: n += 1
""",
    "timers": """
t = ctypes.c_void_p()
n = 0
while n < 200000 and libc.timer_create(0, None, ctypes.byref(t)) == 0: n += 1
""",
}

# What somebody else wants of the same.
WANTS = {
    "descriptors in flight": """
a, b = socket.socketpair()
a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 3))])
print('good')
""",
    "inotify instances": "print('good' if libc.inotify_init() >= 0 else 'refused')\n",
    "queued signals": """
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
print('good' if libc.sigqueue(os.getpid(), 40, None) == 0 else 'refused')
""",
    "timers": "print('good' if libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p())) == 0 else 'refused')\n",
}


def hog(what, uid):
    code = LIBC + HOGS[what] + "print(n, flush=True)\nsys.stdin.read()\n"
    return subprocess.Popen([CORDON, "run", "--timeout", "60s", "-e", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, cwd="/", env={"PATH": "/usr/bin:/bin"}, preexec_fn=become(uid))


def attack(tap, who, uid, what):
    want = LIBC + WANTS[what]
    with hog(what, uid) as h:
        taken = h.stdout.readline().strip()
        tap.check(taken.isdigit() and int(taken) > 0, f"{who}: {what}: some are there", taken)
        status, out, err, _ = run(["run", "-e", "print('good')"], uid)
        tap.check(status == 0 and out == b"good\n", f"{who}: {what}: another sandbox starts", taken, out, err)
        if uid is None or what != "descriptors in flight":  # an ordinary user's guests share those, the host does not
            status, out, err, _ = run(["run", "-e", want], uid)
            tap.check(status == 0 and out == b"good\n", f"{who}: {what}: and has some", taken, out, err)
        done = subprocess.run([sys.executable, "-c", want], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              preexec_fn=become(uid), cwd="/")
        tap.check(done.stdout == b"good\n", f"{who}: {what}: the user's own program has some", taken, done.stdout)
        h.stdin.close()
        h.stdout.read()


def uids(tap, who, uid):
    """The outer id of two sandboxes at once, of which root's are none that anything else has."""
    if uid is not None or os.getuid() != 0:
        return
    code = "import sys; print(open('/proc/self/uid_map').read().split()[1], flush=True); sys.stdin.read()"
    both = [subprocess.Popen([CORDON, "run", "-e", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                             env={"PATH": "/usr/bin:/bin"}) for _ in range(2)]
    ids = [int(p.stdout.readline()) for p in both]
    for p in both:
        p.communicate()
    tap.check(ids[0] != ids[1], f"{who}: two sandboxes have two uids", ids)
    # systemd's DynamicUser= 61184-65519, containers 524288-1879048191, foreign ids from 2147352576.
    tap.check(all(2000200000 < i < 2147352576 for i in ids), f"{who}: in nobody's range", ids)


def main():
    tap = Tap()
    for who, uid in users():
        uids(tap, who, uid)
        for what in HOGS:
            attack(tap, who, uid, what)
    tap.done()


main()

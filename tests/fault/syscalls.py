#!/usr/bin/python3
"""The n-th system call fails, for every n (TAP): first in the program itself, then in the processes that set up the sandbox.

Whichever call fails, the program does not crash or hang, reports why in one line, and leaves nothing behind. And code never runs
with fewer layers: if it ran, then with every layer that an undisturbed run verifies."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "behaviour"))
from oneshot import CORDON, Tap, become, users  # noqa: E402
from leftovers import gone, mounts, new_mark  # noqa: E402

# Not failed: what the loader does before main, what cannot fail in the kernel, and the last word.
NEVER = {"execve", "exit_group", "exit", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "rt_sigreturn", "brk", "mmap",
         "munmap", "mprotect", "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "setfsuid", "setfsgid",
         "clock_gettime", "rt_sigprocmask", "close", "futex", "restart_syscall",
         "getrandom"}  # libsodium ends the program rather than let it go on without randomness
# The calls that make the wall; each tracee counts its own, so that the n-th of one process fails alone.
WALL = ["mount", "mount_setattr", "pivot_root", "umount2", "unshare", "sethostname", "capset", "prctl", "prlimit64", "seccomp",
        "setresuid", "setresgid", "setgroups", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
        "mkdir", "mknod", "setns", "pidfd_open", "symlink", "chmod", "socketpair", "sendmsg", "recvmsg", "fork", "dup3",
        "close_range", "execveat"]
ERRORS = {"clone3": "EAGAIN", "fork": "EAGAIN", "openat": "EMFILE", "open": "EMFILE", "mkdir": "ENOSPC", "mkdirat": "ENOSPC",
          "write": "ENOSPC", "pipe2": "EMFILE", "socketpair": "EMFILE", "memfd_create": "EMFILE"}
SECONDS = 300


class Bench:
    """Where the runs of one user happen."""

    def __init__(self, uid):
        self.uid = uid
        self.folder = tempfile.mkdtemp(prefix="fault-")
        os.chmod(self.folder, 0o1777)
        self.log = os.path.join(self.folder, "log")
        self.marker = new_mark()
        self.require = []
        self.code = f"import ctypes; ctypes.CDLL(None).prctl(15, b'{self.marker}', 0, 0, 0); print('ran')"

    def run(self, options):
        if os.path.exists(self.log):
            os.unlink(self.log)
        words = ["strace", "-D", "-qq", "-o", self.log, *options, CORDON, "run", "--json", *self.require, "-e", self.code]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                 env={"PATH": "/usr/bin:/bin", "TMPDIR": self.folder}, preexec_fn=become(self.uid))
        try:
            out, err = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return child, None, b""
        return child, out, err

    def traced(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()


def calls(text, first):
    """How often each call was made, by the process that made most of them; without -f there is only one."""
    counts = {}
    for line in text.splitlines():
        pid, rest = line.split(None, 1) if not first else ("", line)
        name = rest.split("(", 1)[0]
        if name.isidentifier() and "(" in rest:
            counts.setdefault(name, {}).setdefault(pid, 0)
            counts[name][pid] += 1
    return {name: max(by.values()) for name, by in counts.items()}


def layers(result):
    assurance = dict(result.get("assurance") or {})
    return json.dumps(assurance, sort_keys=True)


def judge(child, out, err, whole):
    """What is wrong with this ending, or None."""
    if out is None:
        return "it hangs"
    if child.returncode < 0 or child.returncode in (134, 139):
        return f"it crashed: {child.returncode}"
    try:
        result = json.loads(out) if out.strip() else None
    except ValueError:
        return f"half a result: {out[-200:]!r}"
    if result is None:
        # Its own words may be what failed to be written.
        return None if child.returncode else "no result, and status 0"
    if result["stdout"] and layers(result) != whole:
        return f"code ran behind less: {layers(result)} instead of {whole}"
    if not result["success"] and not result["error"]:
        return "a failure without a reason"
    return None


def fail_each(tap, bench, who, name, count, follow, whole):
    wrong = []
    for n in range(1, count + 1):
        error = ERRORS.get(name, "EIO")
        since = time.time() - 0.1
        child, out, err = bench.run([*follow, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={n}"])
        why = judge(child, out, err, whole)
        left = gone(bench.marker, child.pid, 5, since)
        if why or left:
            wrong.append((n, why, left, err[-300:]))
    tap.check(not wrong, f"{who}: {'wall' if follow else 'program'}: {name} fails, each of {count}", *wrong)


def main():
    tap = Tap()
    for who, uid in users():
        before, bench = mounts(), Bench(uid)
        _, out, _ = bench.run(["-e", "trace=all"])
        # Control groups are not required by default: where they can be had, they are required here.
        if json.loads(out)["assurance"]["cgroups"]:
            bench.require = ["--set", "require=*"]
            _, out, _ = bench.run(["-e", "trace=all"])
        whole = layers(json.loads(out))
        for name, count in sorted(calls(bench.traced(), True).items()):
            if name not in NEVER:
                fail_each(tap, bench, who, name, count, [], whole)
        bench.run(["-f", "-e", "trace=all"])
        counts = calls(bench.traced(), False)
        for name in WALL:
            if name in counts:
                fail_each(tap, bench, who, name, counts[name], ["-f"], whole)
        tap.check(mounts() <= before, f"{who}: no mounts left")
        os.unlink(bench.log)
        tap.check(not os.listdir(bench.folder), f"{who}: no files left", os.listdir(bench.folder))
        os.rmdir(bench.folder)
    tap.done()


main()

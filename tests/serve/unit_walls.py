#!/usr/bin/python3
"""unit_walls.py UNIT STATE COMMAND... - runs a command as systemd/cordon-serve.service would, without systemd (as root).

Emulates what could break sandboxes: ProtectSystem=strict, ProtectHome=, PrivateTmp=, PrivateDevices=, ProtectKernelModules=,
User=, NoNewPrivileges=, CapabilityBoundingSet=, SystemCallFilter=, RestrictSUIDSGID=, LockPersonality=, ProtectHostname=,
RestrictRealtime=, RestrictAddressFamilies=, in a mount namespace and with libseccomp. What it does not know, it refuses.
The folder CORDON_TEST_BIN is also at CORDON_TEST_AT there."""
import ctypes
import os
import subprocess
import sys

EPERM, EAFNOSUPPORT, ENOSYS = 1, 97, 38
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
HARMLESS = {"Type", "ExecStart", "StateDirectory", "StateDirectoryMode", "Environment", "UMask", "Restart", "TimeoutStopSec", "KillMode",
            "Delegate", "TasksMax", "LimitNOFILE", "ProtectClock", "RemoveIPC", "SystemCallArchitectures", "SystemCallErrorNumber",
            "AmbientCapabilities"}
NOBODY = 65534
libc = ctypes.CDLL(None, use_errno=True)


def read_unit(path):
    """name -> list of values, of [Service]"""
    options, section = {}, None
    for line in open(path):
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            name, value = line.split("=", 1)
            options.setdefault(name, []).append(value)
    return options


def calls_of(word):
    if not word.startswith("@"):
        return {word}
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in text.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(calls_of, words)) if words else set()


def allowed_calls(lines):
    allowed = set()
    for line in lines:
        is_not = line.startswith("~")
        found = set().union(*map(calls_of, line.lstrip("~").split()))
        allowed = allowed - found if is_not else allowed | found
    return allowed


class Arg(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    """One filter of libseccomp; a rule may compare one argument."""

    def __init__(self, default):
        self.lib = ctypes.CDLL("libseccomp.so.2")
        self.lib.seccomp_init.restype = ctypes.c_void_p
        self.lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Arg)]
        self.lib.seccomp_load.argtypes = [ctypes.c_void_p]
        self.ctx = self.lib.seccomp_init(ctypes.c_uint32(default))

    def add(self, action, name, *arg):
        number = self.lib.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            assert self.lib.seccomp_rule_add_array(self.ctx, action, number, len(arg), (Arg * 1)(*arg)) == 0, name

    def load(self):
        assert self.lib.seccomp_load(self.ctx) == 0


def refuse_sxid(mask):
    """As systemd does: no new files with these bits, and no openat2, whose mode cannot be seen."""
    f = Filter(ALLOW)
    for name, at in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2), ("mknod", 1), ("mknodat", 2), ("creat", 1)):
        f.add(ERRNO | EPERM, name, Arg(at, 7, mask, mask))  # SCMP_CMP_MASKED_EQ
    f.add(ERRNO | ENOSYS, "openat2")
    f.load()


def restrict(o):
    f = Filter(ALLOW)
    if "ProtectHostname" in o:
        for name in ("sethostname", "setdomainname"):
            f.add(ERRNO | EPERM, name)
    if "LockPersonality" in o:
        f.add(ERRNO | EPERM, "personality", Arg(0, 1, 0, 0))  # SCMP_CMP_NE
    if "RestrictRealtime" in o:
        for policy in (1, 2, 6):
            f.add(ERRNO | EPERM, "sched_setscheduler", Arg(1, 4, policy, 0))
    known = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
    for family in set(range(46)) - {known[w] for w in o.get("RestrictAddressFamilies", [" ".join(known)])[0].split()}:
        f.add(ERRNO | EAFNOSUPPORT, "socket", Arg(0, 4, family, 0))
    f.load()
    if "RestrictSUIDSGID" in o:
        refuse_sxid(0o4000)
        refuse_sxid(0o2000)
    if "SystemCallFilter" in o:
        f = Filter(ERRNO | EPERM)
        for name in o["SystemCallFilter names"]:
            f.add(ALLOW, name)
        f.load()


def mount(*args):
    subprocess.run(["mount", *args], check=True)


def make_mounts(o, state):
    """In a mount namespace of our own."""
    mount("--make-rslave", "/")
    mount("--bind", os.environ["CORDON_TEST_BIN"], os.environ["CORDON_TEST_AT"])
    mount("--bind", state, state)
    held = [state]
    if "PrivateDevices" in o:
        dev = os.path.join(state, "dev")
        os.makedirs(dev, exist_ok=True)
        mount("-t", "tmpfs", "-o", "mode=755,size=1m,noexec,nosuid", "dev", dev)
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            open(os.path.join(dev, name), "w").close()
            mount("--bind", "/dev/" + name, os.path.join(dev, name))
        os.mkdir(dev + "/shm", 0o1777)
        os.mkdir(dev + "/pts")
        mount("--bind", "/dev/shm", dev + "/shm")
        mount("--bind", "/dev/pts", dev + "/pts")
        os.symlink("/proc/self/fd", dev + "/fd")
        os.symlink("pts/ptmx", dev + "/ptmx")
        mount("--rbind", dev, "/dev")
        held.append("/dev")
    hidden = (["/usr/lib/modules"] if "ProtectKernelModules" in o else []) + (["/home", "/root", "/run/user"] if "ProtectHome" in o else [])
    if "PrivateTmp" in o:
        inside = [p for p in (state, os.environ["CORDON_TEST_AT"]) if p.startswith(("/tmp/", "/var/tmp/"))]
        assert not inside, "PrivateTmp hides " + " ".join(inside)
        for path in ("/tmp", "/var/tmp"):
            mount("-t", "tmpfs", "-o", "mode=1777,nosuid,nodev", "tmp", path)
            held.append(path)
    for path in hidden:
        if os.path.isdir(path):
            mount("-t", "tmpfs", "-o", "ro,mode=000,size=4k", "inaccessible", path)
    if o.get("ProtectSystem") == ["strict"]:
        tops = [line.split()[4] for line in open("/proc/self/mountinfo")]
        for top in dict.fromkeys(tops):
            if not any(top == h or top.startswith(h + "/") for h in held + ["/proc", "/sys", "/dev"] + hidden):
                subprocess.run(["mount", "-o", "remount,bind,ro", top], check=top == "/", stderr=subprocess.DEVNULL)  # some are covered


def become_nobody():
    PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
    for cap in range(64):
        libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def main(unit, state, *command):
    o = read_unit(unit)
    known = HARMLESS | {"User", "NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices",
                        "ProtectHostname", "ProtectKernelModules", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality",
                        "RestrictAddressFamilies", "SystemCallFilter"}
    assert set(o) <= known, "unknown: %s" % (set(o) - known)
    for name in os.environ.get("CORDON_TEST_WITHOUT", "").split():
        del o[name]
    if "SystemCallFilter" in o:
        o["SystemCallFilter names"] = allowed_calls(o["SystemCallFilter"])
    assert libc.unshare(0x20000) == 0, "unshare"  # CLONE_NEWNS
    make_mounts(o, state)
    os.environ.update(HOME=state, STATE_DIRECTORY=state)
    os.chdir("/")
    become_nobody()
    restrict(o)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])

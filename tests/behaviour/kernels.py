#!/usr/bin/python3
"""Older kernels: each Landlock ABI, with and without namespaces, and a filter without a listener. Checks the plan, the system
calls, the result, and what `require` refuses, as root and as an ordinary user (TAP).

Runs on this machine's kernel: strace changes the ABI version that it reports, and a filter (older-kernel) refuses what an older
kernel does not support."""
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

from oneshot import CORDON, become, main

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ("without-userns", "older-kernel", "with-listener")
RUNG = ["--set", "require=landlock,seccomp,rlimits"]
NEWEST = 6  # that this kernel surely has and the tables know
SECONDS = 600


class Machine:
    """Copies of the programs that any user can reach, in front of which kernels are put."""

    def __init__(self, uid):
        self.uid, self.folder = uid, tempfile.mkdtemp(prefix="kernels-")
        os.chmod(self.folder, 0o1777)
        for path in [CORDON] + [os.path.join(HERE, name) for name in TOOLS]:
            shutil.copy(path, self.folder)

    def tool(self, name):
        return os.path.join(self.folder, name)

    def env(self):
        # The sanitizers' search for leaks traces the program, which only one can.
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": self.folder,
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}

    def run(self, front, *words):
        """The exit status and all that was said."""
        done = subprocess.run([*front, self.tool("cordon"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              cwd="/", env=self.env(), preexec_fn=become(self.uid), timeout=SECONDS, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def older(self, abi, spaced=True):
        front = [] if spaced else [self.tool("without-userns")]
        return front + [self.tool("older-kernel"), "--landlock", str(abi), "/usr/bin/strace", "-qq", "-o", "/dev/null", "-e",
                        f"inject=landlock_create_ruleset:retval={abi}"]

    def close(self):
        left = sorted(set(os.listdir(self.folder)) - {"cordon", *TOOLS})
        shutil.rmtree(self.folder)
        return left


def said(out):
    """The result among the lines."""
    for line in out.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    return {}


# What is missing below an ABI, with namespaces and without; and the layer that a policy can require.
LACKS = [(3, "no Landlock rule for truncation"), (4, "no Landlock rules for TCP"), (5, "no Landlock rule for device ioctls"), (6, "no Landlock scopes")]
RUNG_LACKS = [(4, "the filter alone refuses sockets"), (5, "no Landlock rule for device ioctls"), (6, "no signal scope")]
REQUIRED = [("landlock-net", 4, "use Linux 6.7"), ("landlock-scope", 6, "use Linux 6.12")]


def lacking(table, abi, lacks):
    """Sentences that are there and should not, or the other way round."""
    return [words for below, words in table if (abi < below) != any(words in sentence for sentence in lacks)]


def requires(tap, who, machine, abi, spaced):
    for layer, since, remedy in REQUIRED:
        words = ["--set", "require+=" + layer] if spaced else ["--set", "require=landlock,seccomp,rlimits," + layer]
        status, out = machine.run(machine.older(abi, spaced), "run", *words, "-e", "print('r' + 'an')")
        if abi >= since:
            good = status == 0 and "ran" in out
        else:
            good = status == 125 and f"requires the layer '{layer}'" in out and "remedy: " + remedy in out and "ran" not in out
        tap.check(good, f"{who}: {layer} is required", status, out)


def spaced(tap, who, machine, abi):
    """With namespaces: every ABI will do."""
    who = f"{who}: Landlock ABI {abi}"
    status, out = machine.run(machine.older(abi), "run", "--json", "-e", "6 * 7")
    found = said(out).get("assurance", {})
    tap.check(status == 0 and said(out).get("result") == 42, f"{who}: it runs", status, out)
    tap.check(found.get("landlock") == abi and len(found.get("namespaces", [])) == 7, f"{who}: it is told", found)
    wrong = lacking(LACKS, abi, found.get("lacks", []))
    tap.check(not wrong, f"{who}: what it lacks is told", wrong, found)
    requires(tap, who, machine, abi, True)


# A child cannot be signalled without scopes, the one that started us can never be.
SIGNALS = """
import os, signal
def tried(pid):
    try: os.kill(pid, 0)
    except PermissionError: return False
    return True
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.close(w)
    os.read(r, 1)
    os._exit(0)
out = [tried(os.getpid()), tried(child), tried(os.getppid())]
os.close(w)
os.wait()
out
"""
OUTSIDE = """
import os
def tried(f, *a):
    try: f(*a)
    except PermissionError: return "refused"
    return "worked"
[tried(os.truncate, OTHER, 0), tried(open, OTHER, "a"), tried(open, "/etc/passwd"), tried(os.listdir, "/etc")]
"""


def below(tap, who, machine, abi):
    """Without namespaces: from ABI 3 on."""
    who = f"{who}: no namespaces, Landlock ABI {abi}"
    front = machine.older(abi, False)
    status, out = machine.run(front, "run", "--json", *RUNG, "-e", "6 * 7")
    _, ladder = machine.run(front, "doctor")
    if abi < 3:
        tap.check(status == 125 and f"needs Landlock ABI 3 (this kernel has {abi}); remedy: Linux 6.2 or newer" in out, f"{who}: it is not enough", status, out)
        tap.check("Rung: none." in ladder and "Nothing can run here: user namespaces are not available here" in ladder, f"{who}: doctor says so", ladder)
        return
    found = said(out).get("assurance", {})
    tap.check(status == 0 and said(out).get("result") == 42, f"{who}: it runs", status, out)
    tap.check(found.get("landlock") == abi and found.get("namespaces") == [], f"{who}: it is told", found)
    wrong = lacking(RUNG_LACKS, abi, found.get("lacks", []))
    tap.check(not wrong, f"{who}: what it lacks is told", wrong, found)
    tap.check(f"Rung: without namespaces. Landlock ABI {abi}." in ladder and all(words in ladder for words in found.get("lacks", ["none"])),
              f"{who}: doctor says the same", ladder)
    requires(tap, who, machine, abi, False)
    _, out = machine.run(front, "run", "--json", *RUNG, "-e", SIGNALS)
    tap.check(said(out).get("result") == [True, abi >= 6, False], f"{who}: signals", out)
    other = machine.tool("everybodys")
    with open(other, "w", encoding="ascii") as f:
        f.write("text")
    os.chmod(other, 0o666)
    _, out = machine.run(front, "run", "--json", *RUNG, "-e", f"OTHER = {other!r}" + OUTSIDE)
    tap.check(said(out).get("result") == ["refused"] * 4 and os.path.getsize(other) == 4, f"{who}: files outside", out)
    os.unlink(other)


def proves(tap, who, machine, front):
    status, out = machine.run(front, "doctor", "--prove", "--quick")
    telling = [line for line in out.splitlines() if not line.startswith("held")]
    tap.check(status == 0 and " 0 open, 0 broken" in out, f"{who}: every attack is held or said to be lacking", status, *telling)


def landlock(tap, who, uid):
    machine = Machine(uid)
    for abi in range(1, NEWEST + 1):
        spaced(tap, who, machine, abi)
        below(tap, who, machine, abi)
    proves(tap, f"{who}: no namespaces, Landlock ABI 3", machine, machine.older(3, False))
    if not uid:
        proves(tap, f"{who}: Landlock ABI 1", machine, machine.older(1))
    left = machine.close()
    tap.check(not left, f"{who}: nothing is left", left)


INSTRUCTION = re.compile(r"BPF_(?:STMT|JUMP)\(([0-9a-fx|]+), ([0-9a-fx|]+)(?:, ([0-9a-fx]+), ([0-9a-fx]+))?\)")


def number(text):
    return sum(int(part, 16) for part in text.split("|")) if text else 0


def programs(trace):
    """The filters that the kernel took, in their order, as bytes."""
    found = []
    for line in trace.splitlines():
        if "seccomp(0x1," not in line or re.search(r"= -1 E[A-Z]+ ", line):
            continue
        packed = b""
        for code, k, jt, jf in INSTRUCTION.findall(line):
            packed += struct.pack("HBBI", number(code), number(jt), number(jf), number(k))
        assert len(packed) == 8 * int(re.search(r"len=(\d+)", line)[1]), line[:200]
        found.append(packed)
    return found


def tracer(path):
    return ["/usr/bin/strace", "-f", "-v", "-Xraw", "-qq", "-e", "trace=seccomp", "-e", "signal=none", "-o", path]


def loaded(machine, front):
    """What a run says of its filter, and the filters that the kernel took for it."""
    path = machine.tool("trace")
    _, out = machine.run(tracer(path) + front, "run", "--json", "-e", "1")
    with open(path, encoding="ascii") as f:
        took = programs(f.read())
    os.unlink(path)
    return said(out).get("assurance", {}).get("seccomp"), took


def session_loaded(machine, front):
    """The same of a session that a template forks."""
    path = machine.tool("trace")
    child = subprocess.Popen([*tracer(path), *front, machine.tool("cordon"), "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd="/", preexec_fn=become(machine.uid), env=machine.env())

    def ask(method, **params):
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        child.stdin.flush()
        while True:
            answer = json.loads(child.stdout.readline())
            if answer.get("id") == 1:
                return answer["result"]
    told = ask("session.execute", session=ask("session.open", guest="python")["session"], code="1")["assurance"]["seccomp"]
    child.stdin.close()
    child.wait(timeout=SECONDS)
    with open(path, encoding="ascii") as f:
        took = programs(f.read())
    os.unlink(path)
    return told, took


# Filters of a few instructions that only forbid more are loaded besides, where the machine lacks something.
SMALL = 800


def digest(*filters):
    return "sha256:" + hashlib.sha256(b"".join(filters)).hexdigest()


def listener(tap, who, uid):
    """Nobody can listen: the kernel has no such thing, or another has it. The result names the filter that was loaded."""
    machine = Machine(uid)
    hashes = set()
    for name, front in (("a listener", []), ("no listener to be had", [machine.tool("with-listener")]),
                        ("no listener in this kernel", [machine.tool("older-kernel"), "--no-listener"])):
        status, out = machine.run(front, "run", "--json", "-e", "import socket; socket.socket()")
        result = said(out)
        tap.check(status == 126 and result.get("error_kind") == "denied", f"{who}: {name}: a socket is refused", status, out)
        tells = any("the filter has no listener" in words and "file locks are not counted" in words for words in result.get("assurance", {}).get("lacks", []))
        named = any(d["layer"] == "seccomp" for d in result.get("denials", []))  # otherwise only that something was refused
        tap.check(tells == bool(front) and named != bool(front), f"{who}: {name}: whether it is explained is told", result)
        told, took = loaded(machine, front)
        tap.check(took and told == digest(took[-1]), f"{who}: {name}: the hash is of the filter that was loaded", told, [digest(f) for f in took])
        hashes.add((bool(front), told))
        told, took = session_loaded(machine, front)
        took = [f for f in took if len(f) > SMALL]
        tap.check(len(took) == 2 and told == digest(*took), f"{who}: {name}: a session's is of its template's and its own", told, [digest(f) for f in took])
    tap.check(len(hashes) == 2, f"{who}: with and without listener it is another filter", hashes)
    if not uid:
        proves(tap, f"{who}: no listener in this kernel", machine, [machine.tool("older-kernel"), "--no-listener"])
    left = machine.close()
    tap.check(not left, f"{who}: nothing is left of it", left)


# The ids of the process itself, by posix_spawn; then each other call, each argument, to ids that it does not have.
IDS = """
import ctypes, os
pid = os.posix_spawn("/usr/bin/python3", ["python3", "-c", ""], {}, resetids=True)
assert os.waitpid(pid, 0)[1] == 0
libc, u, g = ctypes.CDLL(None), os.getuid(), os.getgid()
def ids():
    return os.getresuid(), os.getresgid(), libc.setfsuid(-1), libc.setfsgid(-1), os.getgroups()
had, went = ids(), []
for name, own, count in (("uid", u, 1), ("gid", g, 1), ("reuid", u, 2), ("regid", g, 2), ("resuid", u, 3), ("resgid", g, 3)):
    call = getattr(libc, "set" + name)
    for mask in range(1 << count):
        if call(*(own if mask >> i & 1 or count == 1 else -1 for i in range(count))) != 0:
            went.append(("own", name, mask))
        if mask and call(*(own + 1 if mask >> i & 1 else -1 for i in range(count))) == 0:
            went.append(("other", name, mask))
libc.setfsuid(u), libc.setfsgid(g), libc.setfsuid(u + 1), libc.setfsgid(g + 1)
[went, had == ids()]
"""


def ids(tap, who, uid):
    """Calls that change nothing work on every rung, and those that would do not."""
    machine = Machine(uid)
    for name, front, words in (("namespaces", [], []), ("no namespaces", [machine.tool("without-userns")], RUNG),
                               ("no listener", [machine.tool("with-listener")], [])):
        _, out = machine.run(front, "run", "--json", "--set", "commands=python3", *words, "-e", IDS)
        tap.check(said(out).get("result") == [[], True], f"{who}: {name}: ids are set to what they are, and to nothing else", out)
    left = machine.close()
    tap.check(not left, f"{who}: nothing is left of that", left)


main([], ids, listener, landlock)

#!/usr/bin/python3
"""No loss is silent: workspaces, audit logs, exports and applied changes, on a full disk and in directories that were removed.

The full disk is a small tmpfs in a mount namespace of its own if root runs the tests; an ordinary user gets a limit on file sizes
instead."""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

from oneshot import CORDON, SECONDS, become, main

BIG = "for i in 1 2 3 4; do head -c 2000000 /dev/urandom > big$i; done"
DEEP = 'd=$(printf "x%.0s" $(seq 200)); for i in $(seq 60); do mkdir $d && cd $d; done; echo deep > f'


def go(words, home, **more):
    return subprocess.run([CORDON, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home, timeout=SECONDS,
                          env={"PATH": "/usr/bin:/bin", "HOME": home}, check=False, **more)


def save(home, code, *options):
    return go(["run", "-g", "sh", "-w", "w1", *options, "-e", code], home)


def fill(home):
    """Takes all the room that is left; what it was taken with goes away with the name."""
    with open(os.path.join(home, "fill"), "wb", buffering=0) as f:
        for size in (65536, 1024, 1):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                pass


def steps(home):
    """On a disk that is small. Each: what happened, whether it is as it should be, and what was seen."""
    kept = save(home, "echo old > a")
    yield "a workspace is saved", kept.returncode == 0, kept
    for options in ([], ["--json"]):
        done = save(home, BIG, *options)
        yield (f"one that has no room is told {options}", done.returncode == 125 and b"the workspace 'w1' is not saved" in done.stderr, done)
    done = save(home, BIG + "; exit 3")
    yield "the code's own status stays", done.returncode == 3 and b"is not saved" in done.stderr, done
    done = save(home, DEEP)
    yield ("a path that is too long is told", done.returncode == 125 and b"more than 4095 characters" in done.stderr, done)
    done = save(home, "ls; cat a")
    yield "what was saved before is as it was", (done.returncode, done.stdout) == (0, b"a\nold\n"), done
    yield from kept_variables(home)


def kept_variables(home):
    """What a shell exports belongs to its saved workspace, however the code ended."""
    for code in ("export A=1 B='two words'; C=3", "export A=1 B='two words'; exit 0", "export B='two words'; export A=1; (exit 5); true"):
        done = save(home, code)
        yield f"saved: {code}", done.returncode == 0, done
        done = save(home, 'echo "$A/$B/$C"; unset A; export B=changed')
        yield f"exported variables are there after {code}", done.stdout == b"1/two words/\n", done
        done = save(home, 'echo "$A/$B"; unset B')
        yield "and so are their changes", done.stdout == b"/changed\n", done


def full_steps(home):
    yield from steps(home)
    log = os.path.join(home, "log")
    done = go(["files", "export", "w1", "good.cws"], home)
    yield "an export", done.returncode == 0, done
    done = go(["run", "-g", "sh", "--audit", log, "-e", "echo 1"], home)
    yield "an audit log", (done.returncode, done.stderr) == (0, b""), done
    with open(os.path.join(home, "good.cws"), "rb") as f:
        good = f.read()
    fill(home)
    done = go(["files", "export", "-f", "w1", "good.cws"], home)
    with open(os.path.join(home, "good.cws"), "rb") as f:
        yield "an export that finds no room leaves the earlier one", done.returncode == 125 and f.read() == good, done
    yield "and nothing beside it", not [n for n in os.listdir(home) if n.startswith(".good")], os.listdir(home)
    for guest in ("sh", "python"):
        done = go(["run", "-g", guest, "--audit", log, "-e", "2"] if guest == "python" else ["run", "-g", "sh", "--audit", log, "-e", "echo 2"], home)
        yield (f"{guest}: lost audit lines are told", done.returncode == 125 and b"of the audit log w" in done.stderr and done.stdout == b"2\n", done)
    done = go(["audit", "verify", log], home)
    yield "verify tells of them", done.returncode == 1 and b"events were lost" in done.stdout and b"whole" not in done.stdout, done
    os.unlink(os.path.join(home, "fill"))
    done = go(["run", "-g", "sh", "--audit", log, "-e", "echo 3"], home)
    yield "with room there is nothing to tell", (done.returncode, done.stderr) == (0, b""), done
    done = go(["audit", "show", "--json", "-e", "audit_lost", log], home)
    lost = [json.loads(line)["lines"] for line in done.stdout.splitlines()]
    yield "the log tells of them itself", sum(lost) >= 4 and not os.path.exists(log + ".lost"), done
    done = go(["audit", "verify", "--json", log], home)
    report = json.loads(done.stdout)
    yield "its chain is good, and it is not whole", (done.returncode, report["whole"], report["reason"], report["lost"]) == (1, False, None, sum(lost)), done


def inside(home, limited):
    for name, good, seen in steps(home) if limited else full_steps(home):
        print(json.dumps([name, bool(good), "" if good else repr(seen)]), flush=True)


def small(tap, who, uid):
    home = tempfile.mkdtemp(prefix="losses-")
    os.chmod(home, 0o777)
    words = [sys.executable, os.path.abspath(__file__), "--inside", home]
    if os.getuid() == 0:
        owner = f"setpriv --reuid {uid} --regid {uid} --clear-groups" if uid else ""
        words = ["unshare", "-m", "--propagation", "private", "sh", "-c",
                 f'mount -t tmpfs -o size=1m,mode=777 none "$1" && shift && exec {owner} "$@"', "sh", home, *words]
    else:
        words.append("--limited")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=os.environ, timeout=SECONDS * 4, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    tap.check(done.returncode == 0 and len(lines) >= 5, f"{who}: a small disk", done)
    for name, good, seen in lines:
        tap.check(good, f"{who}: {name}", seen)
    shutil.rmtree(home)


class Rpc:
    def __init__(self, uid, home, words=("rpc",), under=(), **env):
        self.child = subprocess.Popen([*under, CORDON, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                      env={"PATH": "/usr/bin:/bin", "HOME": home, **env}, preexec_fn=become(uid))
        self.count = 0

    def call(self, method, **params):
        self.count += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.count:
                return answer.get("result", answer)


def vanished(tap, who, uid):
    """The folder of the log goes away under a session; so does that of the saved workspaces."""
    place = tempfile.mkdtemp(prefix="losses-")
    home = os.path.join(place, "home")
    os.mkdir(home)
    for path in (place, home):
        os.chmod(path, 0o777)
    logs = os.path.join(home, "logs")
    rpc = Rpc(uid, home)
    session = rpc.call("session.open", guest="sh", workspace="w2", policy={"audit": os.path.join(logs, "log")})["session"]
    result = rpc.call("session.execute", session=session, code="echo 1 > a")
    tap.check(result["success"] and not result["warnings"], f"{who}: nothing to tell at first", result)
    shutil.rmtree(logs)
    result = rpc.call("session.execute", session=session, code="echo 2")
    tap.check(result["success"] and "of the audit log were lost" in str(result["warnings"]) and "vanished" in str(result["warnings"]),
              f"{who}: a log that is gone is told in the result", result)
    shutil.rmtree(os.path.join(home, ".local"))  # before the change, so that no save can be in time
    rpc.call("session.execute", session=session, code="echo 3 > a")
    answer = rpc.call("session.close", session=session)
    tap.check("the workspace 'w2' is not saved" in str(answer.get("warnings")), f"{who}: so is a workspace, at its close", answer)
    session = rpc.call("session.open", guest="sh", workspace="w3")["session"]
    shutil.rmtree(os.path.join(home, ".local"))
    rpc.call("session.execute", session=session, code="echo 3 > a")
    _, err = rpc.child.communicate(timeout=SECONDS)
    tap.check(rpc.child.returncode == 125 and b"the workspace 'w3' is not saved" in err, f"{who}: and when the client just leaves",
              rpc.child.returncode, err)
    shutil.rmtree(place)


def slow(tap, who, uid):
    """A save that takes a slow disk its time is waited for when the client leaves."""
    home = tempfile.mkdtemp(prefix="losses-")
    os.chmod(home, 0o777)
    rpc = Rpc(uid, home, ("rpc",), ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:delay_enter=1500000"],
              ASAN_OPTIONS="detect_leaks=0")  # it cannot look for them under strace
    session = rpc.call("session.open", guest="sh", workspace="w4")["session"]
    rpc.call("session.execute", session=session, code="echo 4 > a")
    _, err = rpc.child.communicate(timeout=SECONDS)
    done = go(["files", "cat", "w4", "a"], home, preexec_fn=become(uid))
    tap.check(rpc.child.returncode == 0 and done.stdout == b"4\n", f"{who}: a slow save is waited for", rpc.child.returncode, err, done)
    shutil.rmtree(home)


def models(tap, who, uid):
    """`cordon mcp`: what the log lost while a sandbox ended is told by who ends it, and at the end of all."""
    for way in ("a sandbox is ended", "the client leaves"):
        home = tempfile.mkdtemp(prefix="losses-")
        os.chmod(home, 0o777)
        logs = os.path.join(home, "logs")
        mcp = Rpc(uid, home, ("mcp", "--set", "audit=" + os.path.join(logs, "log")))
        mcp.call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        made = mcp.call("tools/call", name="create_sandbox", arguments={"language": "sh"})
        name = made.get("structuredContent", {}).get("sandbox_id")
        tap.check(name and not made.get("isError"), f"{who}: mcp: a sandbox", made)
        shutil.rmtree(logs)
        told = ""
        if way == "a sandbox is ended":
            answer = mcp.call("tools/call", name="destroy_sandbox", arguments={"sandbox_id": name})
            told = str(answer) if answer.get("isError") else ""
        _, err = mcp.child.communicate(timeout=SECONDS)
        if way == "the client leaves":
            told = err.decode() if mcp.child.returncode == 125 else ""
        tap.check("of the audit log" in told, f"{who}: mcp: {way}: lost lines are told", mcp.child.returncode, err, told)
        shutil.rmtree(home)


def applied(tap, who, uid):
    """A change that is not taken over is no success."""
    place = tempfile.mkdtemp(prefix="losses-")
    project = os.path.join(place, "p")
    os.makedirs(os.path.join(project, ".git", "hooks"))
    for top, _, _ in os.walk(place):
        os.chmod(top, 0o777)
    words = ["run", "-g", "sh", "--project", project, "--apply"]
    done = go([*words, "-e", "echo x > plain"], place, preexec_fn=become(uid))
    tap.check(done.returncode == 0 and os.path.exists(os.path.join(project, "plain")), f"{who}: changes that are applied", done)
    done = go([*words, "-e", "echo x > .git/hooks/post-commit; echo y > other"], place, preexec_fn=become(uid))
    tap.check(done.returncode == 125 and b"1 change of the project was not applied" in done.stderr and
              os.path.exists(os.path.join(project, "other")) and not os.path.exists(os.path.join(project, ".git/hooks/post-commit")),
              f"{who}: one that is refused", done)
    shutil.rmtree(place)


if "--inside" in sys.argv:
    if "--limited" in sys.argv:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, 6 << 20))
    inside(sys.argv[sys.argv.index("--inside") + 1], "--limited" in sys.argv)
else:
    main([], small, vanished, slow, models, applied)

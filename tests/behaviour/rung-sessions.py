#!/usr/bin/python3
"""Sessions without namespaces: every guest keeps its state between executions, in a process of its own; pools contain such
sessions; what needs namespaces returns an error. Driven over `cordon rpc`, as root and as an ordinary user (TAP)."""
import json
import os
import shutil
import subprocess
import tempfile

from oneshot import CORDON, become, main

HERE = os.path.dirname(os.path.abspath(__file__))
POLICY = {"require": ["landlock", "seccomp", "rlimits"]}
# guest, an execution, a second one that needs the first, what it gives or prints
GUESTS = [
    ("python", "x = 6", "x * 7", 42),
    ("r", "x <- 6", "x * 7", 42),
    ("node", "globalThis.x = 6", "x * 7", 42),
    ("sh", "x=6", "echo $((x * 7))", "42\n"),
]


class Server:
    def __init__(self, uid, folder):
        program, wrapper = os.path.join(folder, "cordon"), os.path.join(folder, "without-userns")
        self.child = subprocess.Popen([wrapper, program, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                                      env={"PATH": "/usr/bin:/bin", "TMPDIR": folder, "LANG": "C.UTF-8"}, preexec_fn=become(uid))
        self.count = 0

    def ask(self, method, **params):
        """The result, or the error's message."""
        self.count += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.count:
                return answer.get("result") or answer.get("error", {}).get("message")

    def close(self):
        self.child.stdin.close()
        return self.child.wait(timeout=60)


def state(tap, who, server):
    for guest, first, second, want in GUESTS:
        opened = server.ask("session.open", guest=guest, policy=POLICY)
        if not tap.check(isinstance(opened, dict), f"{who}: {guest}: a session opens", opened):
            continue
        name = opened["session"]
        server.ask("session.execute", session=name, code=first)
        got = server.ask("session.execute", session=name, code=second)
        said = got.get("stdout") if guest == "sh" else got.get("result")
        tap.check(said == want, f"{who}: {guest}: what was there is there again", got)
        tap.check(got.get("assurance", {}).get("namespaces") == [] and "lacks" in got["assurance"], f"{who}: {guest}: it says what it lacks", got)
        server.ask("session.close", session=name)


def strangers(tap, who, server):
    """Two sessions at once see nothing of each other."""
    one, two = (server.ask("session.open", guest="python", policy=POLICY)["session"] for _ in range(2))
    home = server.ask("session.execute", session=one, code="open('mine', 'w').write('secret'); import os; os.getcwd()")["result"]
    got = server.ask("session.execute", session=two, code=f"open({home!r} + '/mine').read()")
    tap.check("Permission denied" in got["error"], f"{who}: another session's files are closed", got)
    refusal = got["denials"][0] if got["denials"] else {}
    tap.check(got["error_kind"] == "denied" and refusal.get("target") == home + "/mine" and refusal.get("layer") == "landlock" and refusal.get("remedy"),
              f"{who}: and that is told as a refusal", got)
    got = server.ask("session.execute", session=two, code="import os\nos.mkdir('locked', 0)\nopen('locked/x', 'w')")
    tap.check(got["error_kind"] == "exception" and not got["denials"], f"{who}: an own directory without rights is not", got)
    got = server.ask("session.execute", session=two, code=f"import os; os.listdir({home!r})")
    tap.check("Permission denied" in got["error"], f"{who}: and not to be listed", got)
    for name in (one, two):
        server.ask("session.close", session=name)
    tap.check(not os.path.exists(home), f"{who}: and gone with their session", home)


def pooled(tap, who, server):
    opened = server.ask("pool.open", guest="python", policy=POLICY, size=2)
    if tap.check(isinstance(opened, dict), f"{who}: a pool opens", opened):
        got = server.ask("pool.execute", pool=opened["pool"], code="6 * 7")
        tap.check(isinstance(got, dict) and got.get("result") == 42, f"{who}: a pool's member runs code", got)
        server.ask("pool.close", pool=opened["pool"])


def refused(tap, who, server):
    got = server.ask("session.open", guest="pod", policy=POLICY)
    tap.check("no pod image" in str(got) or all(words in str(got) for words in ("needs a mount namespace", "user namespaces are not available here", "remedy: ")),
              f"{who}: no pod, and why", got)
    got = server.ask("session.open", guest="python", policy=dict(POLICY, network={"allow": ["example.org"]}))
    tap.check(all(words in str(got) for words in ("needs a network namespace", "user namespaces are not available here", "remedy: ")) or
              "cordon-gateway is not installed" in str(got), f"{who}: no gateway, and why", got)


def sessions(tap, who, uid):
    folder = tempfile.mkdtemp(prefix="rung-")
    os.chmod(folder, 0o1777)
    for path in (CORDON, os.path.join(HERE, "without-userns")):
        shutil.copy(path, folder)
    server = Server(uid, folder)
    for part in (state, strangers, pooled, refused):
        part(tap, who, server)
    tap.check(server.close() == 0, f"{who}: the server ends")
    left = sorted(set(os.listdir(folder)) - {"cordon", "without-userns"})
    tap.check(not left, f"{who}: nothing is left", left)
    shutil.rmtree(folder)


main([], sessions)

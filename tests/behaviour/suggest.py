#!/usr/bin/python3
"""`cordon policy suggest`: a suggestion is followed to the letter, as a policy file and as options, and the code succeeds."""
import json
import os
import shlex
import shutil
import tempfile

from oneshot import Tap, run, users

ROUNDS = 5
STRICT = ["--level", "strict"]
CASES = (
    ("programs", "python", "import subprocess\nfor p in ('git', 'tar'): subprocess.run([p, '--version'], check=True, stdout=-3)", STRICT),
    ("a script", "sh", "printf '#!/bin/sh\\nexit 0' > s; chmod +x s; ./s", STRICT),
    ("time", "python", "import time; time.sleep(0.7)", ["--set", "timeout_ms=300"]),
    ("memory and a program", "python", "import subprocess; subprocess.run(['true'], check=True); x = b'a' * (90 << 20)",
     [*STRICT, "--memory", "64M"]),
    ("a large file in a full workspace", "node", "require('fs').writeFileSync('f', Buffer.alloc(3 << 20))",
     ["--profile", "grader", "--set", "file_bytes=1M", "--set", "fs_bytes=1M"]),
    ("a module", "python", "import math, json", ["--set", "modules=math"]),
)


def suggest(options, result, uid, *more):
    return run(["policy", "suggest", *options, *more, "-"], uid, stdin=result)


def as_file(options, result, uid, folder):
    path = folder + "/policy.json"
    status, _, err, _ = suggest(options, result, uid, "-o", path, "-f")
    assert status == 0, err
    return ["--policy", path]


def as_options(options, result, uid, _):
    _, out, _, _ = suggest(options, result, uid)
    lines = [line for line in out.decode().splitlines() if line.startswith("As options: ")]
    return [*options, *shlex.split(lines[0].removeprefix("As options: "))] if lines else options


def follow(tap, name, uid, folder, guest, code, options, how):
    first = True
    for _ in range(ROUNDS):
        status, out, err, _ = run(["run", "--json", "-g", guest, *options, "-e", code], uid)
        if json.loads(out)["success"]:
            return tap.check(not first, name, "nothing was denied")
        first = False
        options = how(options, out, uid, folder)
    return tap.check(False, name, status, options, out, err)


def words(tap, who, uid, folder):
    """What it says, and how it fails."""
    def says(name, text, *want, options=(), status=0, never=None):
        got, out, err, _ = suggest([*STRICT, *options], text.encode(), uid)
        said = (out + err).decode()
        tap.check(got == status and all(w in said for w in want) and not (never and never in said), f"{who}: {name}", got, said)

    denial = {"operation": "execute", "target": "g\x1b[31m\u202eit", "remedy": "commands: name it (commands+=git)", "claimed": True}
    says("a claim is marked, and controls no terminal", json.dumps({"denials": [denial]}), "claimed: only the code itself says so",
         "\\x1b[31m", "The code may start these programs: sh:*, git.", never="\x1b")
    says("nothing", '{"denials": []}', "Nothing was denied.")
    says("a result on each line", '{"denials": []}\n\n' + json.dumps({"denials": [denial]}) + "\n", "--set 'commands+=git'")
    says("what no policy allows", '{"denials": [{"operation": "ptrace", "remedy": "none"}]}', "No policy allows this:", "ptrace")
    says("what is to be decided", '{"denials": [{"operation": "open", "target": "/x", "remedy": "mounts: name the directory in the policy"}]}',
         "To decide yourself:", "open /x; remedy: mounts")
    says("another policy", json.dumps({"denials": [denial]}), "allows it already", options=["--set", "commands=*"])
    says("JSON", json.dumps({"denials": [denial]}), '"assignments":["commands+=git"]', '"claimed":true', options=["--json"])
    says("no result", "{}", "it has no denials", status=2)
    says("no JSON", "{\n", "line 1", status=2)
    path = folder + "/there.json"
    for name, more, status in (("writes", [], 0), ("does not overwrite", [], 125), ("but with -f", ["-f"], 0)):
        got, _, err, _ = suggest(STRICT, json.dumps({"denials": [denial]}).encode(), uid, "-o", path, *more)
        tap.check(got == status and (status == 0 or b"-f replaces it" in err), f"{who}: {name}", got, err)
    got, out, err, _ = run(["policy", "check", path], uid)
    tap.check(got == 0 and b"Level strict, changed in commands." in out, f"{who}: what it writes is a policy", out, err)
    secret = ["--allow-host", "h.org", "--set", 'secrets=[{"name": "K", "value": "hunter2", "host": "h.org"}]']
    got, out, err, _ = suggest([*STRICT, *secret], json.dumps({"denials": [denial]}).encode(), uid, "-o", folder + "/none.json")
    tap.check(got == 2 and b"secrets" in err and b"hunter2" not in out + err and not os.path.exists(folder + "/none.json"),
              f"{who}: secrets are not written", got, out, err)


def main():
    tap = Tap()
    for who, uid in users():
        folder = tempfile.mkdtemp(prefix="suggest-")
        try:
            if uid:
                os.chown(folder, uid, uid)
            for name, guest, code, options in CASES:
                for how in (as_file, as_options):
                    follow(tap, f"{who}: {name}, {how.__name__}", uid, folder, guest, code, options, how)
            words(tap, who, uid, folder)
        finally:
            shutil.rmtree(folder)
    tap.done()


main()

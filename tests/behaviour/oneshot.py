"""Tables of one-shot runs against the built program, as root and as an ordinary user (TAP).

A suite makes a list of case(...) and ends with main(cases). What a case expects is compared with the JSON result of
`cordon run --json`, field by field ("truncated.stdout" reaches inside); a value may be a function that returns whether it is right."""

import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORDON = os.environ.get("CORDON", os.path.join(ROOT, "build", "cordon"))
ORDINARY = 64812  # a uid that owns nothing here
# Sanitizers and a busy machine take their time; a hang is still found.
SECONDS = 300


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, good, name, *why):
        self.count += 1
        self.failed += not good
        print("ok" if good else "not ok", self.count, "-", name, flush=True)
        if not good:
            for line in why:
                print("#", str(line)[:2000], flush=True)
        return good

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def users():
    """Whom to run as: root runs everything twice."""
    return [("root", None), ("user", ORDINARY)] if os.getuid() == 0 else [("user", None)]


def become(uid):
    def change():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return change if uid else None


def run(words, uid=None, stdin=None, env=None, seconds=SECONDS, **more):
    """The program's exit status, stdout, stderr and how long it took."""
    start = time.monotonic()
    done = subprocess.run([CORDON, *words], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, cwd="/",
                          env=dict({"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, **(env or {})),
                          preexec_fn=more.pop("preexec_fn", become(uid)), **more)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start


def has(*texts):
    """The value contains all of these."""
    def judge(value):
        return value is not None and all(t in (value if isinstance(value, str) else json.dumps(value)) for t in texts)
    judge.__doc__ = f"has {texts}"
    return judge


def below(limit):
    def judge(value):
        return value < limit
    judge.__doc__ = f"below {limit}"
    return judge


def case(name, code, guest="python", options=(), stdin=None, env=None, status=0, **want):
    return {"name": name, "code": code, "guest": guest, "options": list(options), "stdin": stdin, "env": env,
            "status": status, "want": {k.replace("__", "."): v for k, v in want.items()}}


def field(result, path):
    for key in path.split("."):
        result = result.get(key) if isinstance(result, dict) else None
    return result


def judge(c, status, result):
    """What is not as expected, one line each."""
    wrong = [] if c["status"] in (None, status) else [f"exit status {status}, want {c['status']}"]
    for path, want in c["want"].items():
        got = field(result, path)
        good = want(got) if callable(want) else got == want and isinstance(got, bool) == isinstance(want, bool)
        if not good:
            wrong.append(f"{path} is {got!r}, want {want.__doc__ if callable(want) else repr(want)}")
    return wrong


def run_case(tap, who, uid, c):
    words = ["run", "--json", "-g", c["guest"], *c["options"], "-e", c["code"]]
    try:
        status, out, err, took = run(words, uid, c["stdin"], c["env"])
        result = json.loads(out)
    except subprocess.TimeoutExpired:
        tap.check(False, f"{who}: {c['name']}", "it never came back")
        return
    except ValueError:
        tap.check(False, f"{who}: {c['name']}", f"status {status}, no JSON: {out!r} {err!r}")
        return
    wrong = judge(c, status, result)
    tap.check(not wrong, f"{who}: {c['name']}", *wrong, result if wrong else "", f"{took:.2f} s")


def main(cases, *more):
    """Runs the table for each user, then each function of more(tap, who, uid)."""
    tap = Tap()
    for who, uid in users():
        for c in cases:
            run_case(tap, who, uid, c)
        for function in more:
            function(tap, who, uid)
    tap.done()

#!/usr/bin/python3
"""`cordon run --ask`: what was denied, which change allows it, and what is kept of the answers (TAP)."""

import glob
import json
import os
import shutil
import sys
import tempfile

from oneshot import Tap, run, users
from terminal import Terminal

ASKS = "[N]o: "
AGAIN = "running it again"
STARTS = "import subprocess\nfor p in {}:\n    subprocess.run([p, '--version'], check=True, stdout=-3)\nprint('all' + ' done')\n"
TRIES = ("import subprocess\nfor p in {}:\n    try: subprocess.run([p, '--version'], stdout=-3); print('ran ' + p)\n"
         "    except OSError: print('not ' + p)\n")
HOSTILE = ("import os, subprocess\nn = 'x\\x1b]0;evil\\x07\\u202e'\nopen(n, 'w').write('#!/bin/sh\\nexit 0')\nos.chmod(n, 0o755)\n"
           "try: subprocess.run(['./' + n])\nexcept OSError: pass\nprint('\\x1bP' + 'hidden')\n")


class Asking:
    """One user with a file of code and a configuration of their own."""

    def __init__(self, tap, who, uid):
        self.tap, self.who, self.uid = tap, who, uid
        self.home = tempfile.mkdtemp(prefix="ask-")
        self.file = self.home + "/code.py"
        if uid:
            os.chown(self.home, uid, uid)

    def write(self, code):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(code)

    def start(self, *options, typed=""):
        t = Terminal(self.file, self.home, "--level", "strict", "--ask", *options, verb="run", uid=self.uid)
        os.write(t.fd, typed.encode())
        return t

    def end(self, t):
        """The exit status, or None if it asks once more; what was shown until then stays in t.text."""
        if t.wait(ASKS):
            os.write(t.fd, b"\x04")
            os.waitpid(t.pid, 0)
            return None
        return os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1])

    def check(self, good, name, *why):
        return self.tap.check(good, f"{self.who}: {name}", *why)

    def kept(self):
        return glob.glob(self.home + "/.config/cordon/asked/*")


def refusals(x):
    x.write("1\n")
    for name, words, want in (("no terminal", [x.file], "--ask needs a terminal to ask on: standard input is none"),
                              ("a notebook", ["x.ipynb"], "--ask is not for notebooks"),
                              ("with --json", ["--json", x.file], "--ask and --json exclude each other"),
                              ("with -it", ["-it", x.file], "--ask and --tty exclude each other")):
        status, _, err, _ = run(["run", "--ask", *words], x.uid)
        x.check(status == 2 and want in err.decode(), name, status, err)


def answers(x):
    x.write(STARTS.format("['git']"))
    for keys, status in (("o\r", 0), ("once\r", 0), ("\r", 126), ("n\r", 126), ("\x04", 126)):
        t = x.start()
        good = t.wait(ASKS) and 'commands: ["sh:*"] -> ["sh:*","git"]' in t.shown() and \
            "The code may start these programs: sh:*, git." in t.shown() and "denied: execute git" in t.shown()
        x.check(good, f"{keys!r}: the question", t.text[-900:])
        t.type(keys)
        got = x.end(t)
        x.check(got == status and ((AGAIN in t.shown() and "all done" in t.shown()) if status == 0 else AGAIN not in t.shown()) and
                ASKS not in t.shown(), f"{keys!r}: the answer", got, t.text[-900:])
    x.check(not os.path.exists(x.home + "/.config"), "nothing was kept")
    t = x.start(typed="f\r")
    x.check(t.wait(ASKS), "what was typed before the question", t.text[-900:])
    t.type("yes\r")
    x.check(t.wait(ASKS), "another word is asked again", t.text[-900:])
    for line in "o" * 2000, "f o":
        t.type(line + "\r")
        x.check(t.wait(ASKS), f"so is a line that only begins like an answer, of {len(line)} bytes", t.text[-900:])
    t.type("n\r")
    x.check(x.end(t) == 126 and not x.kept(), "is no answer to it", t.text[-900:])


def several(x):
    x.write(TRIES.format("['git', 'tar']"))
    t = x.start()
    x.check(t.wait(ASKS) and "execute git" in t.shown(), "two denials: the first", t.text[-900:])
    t.type("o\r")
    x.check(t.wait(ASKS) and "denied: execute tar" in t.shown() and '["sh:*","git","tar"]' in t.shown(), "the second", t.text[-900:])
    t.type("\r")
    got = x.end(t)
    x.check(got == 0 and "ran git" in t.shown() and "not tar" in t.shown() and ASKS not in t.shown(),
            "only the one runs, and what was refused is not asked again", got, t.text[-900:])


def code_itself(x):
    """Without a file there is nothing to keep an answer for."""
    t = Terminal(STARTS.format("['git']"), x.home, "--level", "strict", "--ask", "-e", verb="run", uid=x.uid)
    x.check(t.wait(ASKS) and "[f]ile" not in t.shown(), "-e: no file is offered", t.text[-900:])
    t.type("f\r")
    x.check(t.wait(ASKS), "-e: nor taken", t.text[-900:])
    t.type("o\r")
    x.check(x.end(t) == 0 and not x.kept(), "-e: once", t.text[-900:])


def for_this_file(x):
    x.write(STARTS.format("['git']"))
    t = x.start()
    t.wait(ASKS)
    t.type("f\r")
    got = x.end(t)
    x.check(got == 0 and "all done" in t.shown(), "for this file: it runs again", got, t.text[-900:])
    modes = [os.stat(p).st_mode & 0o777 for p in x.kept() + [x.home + "/.config/cordon/asked"]]
    x.check(modes == [0o600, 0o700], "the answer is kept for the user alone", modes)
    os.chdir(os.path.dirname(x.file))
    for name, path in (("the next time", x.file), ("by another path", x.home + "/../" + os.path.basename(x.home) + "/code.py")):
        t = Terminal(path, x.home, "--level", "strict", "--ask", verb="run", uid=x.uid)
        got = x.end(t)
        x.check(got == 0 and "you allowed this for this file: commands+=git (kept in " in t.shown() and ASKS not in t.shown(),
                f"{name} it is used, and said", got, t.text[-900:])
    t = x.start("--set", "commands=*")
    x.check(x.end(t) == 0 and "you allowed" not in t.shown(), "a policy that allows it needs no answer", t.text[-900:])
    got, _, err, _ = run(["run", "--level", "strict", x.file], x.uid, env={"HOME": x.home})
    x.check(got == 126 and b"you allowed" not in err, "without --ask it is not used", got, err)
    shutil.copy(x.file, x.home + "/other.py")
    t = Terminal(x.home + "/other.py", x.home, "--level", "strict", "--ask", verb="run", uid=x.uid)
    x.check(t.wait(ASKS), "another file with the same content is asked about", t.text[-900:])
    t.type("\r")
    x.end(t)
    x.write(STARTS.format("['git']") + "#\n")
    t = x.start()
    x.check(t.wait(ASKS) and "this file has changed" in t.shown(), "so is another content", t.text[-900:])
    t.type("\r")
    x.check(x.end(t) == 126, "which is not allowed it", t.text[-900:])


def never(x):
    x.write(STARTS.format("['tar']"))
    t = x.start()
    t.wait(ASKS)
    t.type("v\r")
    x.check(x.end(t) == 126 and AGAIN not in t.shown(), "never", t.text[-900:])
    t = x.start()
    got = x.end(t)
    x.check(got == 126 and ASKS not in t.shown() and "denied: execute tar" in t.shown(), "is not asked again", got, t.text[-900:])
    x.check(not run(["run", "--level", "strict", "-e", "1"], x.uid, env={"HOME": x.home})[0], "and no other run knows of it")


def hostile(x):
    x.write(HOSTILE)
    t = x.start("--set", "commands=*")
    good = t.wait(ASKS)
    question = t.text[t.text.rfind(b"hidden"):]
    x.check(good and b"\\x1b]0;evil\\x07\\xe2\\x80\\xae" in question and b"\x1b]0" not in question and b"\x07" not in question and
            "\u202e".encode() not in question, "the code's words are escaped", t.text[-900:])
    x.check(0 < question.find(b"\x18\x1b\\") < question.find(b"workspace_exec: false -> true"),
            "what the code left unfinished on the terminal is ended first", question)
    t.type("f\r")
    x.check(x.end(t) == 0, "and kept as they are", t.text[-900:])
    t = x.start("--set", "commands=*")
    x.check(x.end(t) == 0 and "for this file: workspace_exec=true" in t.shown(), "the answer counts", t.text[-900:])
    x.write("import ctypes, shutil, glob\nshutil.copy(glob.glob('/usr/lib/*/libm.so.6')[0], 'a.so')\nctypes.CDLL('./a.so')\n")
    t = x.start()
    x.check(t.wait(ASKS) and "claimed: only the code itself says so" in t.shown(), "a claim is marked", t.text[-900:])
    t.type("\r")
    x.end(t)


def kept_files(x):
    x.write(STARTS.format("['git']"))
    t = x.start()
    t.wait(ASKS)
    t.type("f\r")
    x.end(t)
    paths = [p for p in x.kept() if json.load(open(p, encoding="utf-8"))["path"].endswith("/code.py")]
    with open(paths[0], encoding="utf-8") as f:
        good = json.load(f)

    def put(text, mode=0o600):
        with open(paths[0], "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(paths[0], mode)

    def denial(remedy):
        return json.dumps(dict(good, allowed=[{"operation": "execute", "target": "git", "remedy": remedy, "claimed": False}]))

    for name, text, mode, want in (("others may read it", json.dumps(good), 0o644, "chmod 600"),
                                   ("others may write to it", json.dumps(good), 0o620, "chmod go-w"),
                                   ("no JSON", "{", 0o600, "earlier answers in"), ("no object", "[]", 0o600, "is not a JSON object"),
                                   ("an unknown member", json.dumps(dict(good, more=1)), 0o600, "more"),
                                   ("no list", json.dumps(dict(good, never={})), 0o600, "never"),
                                   ("no denial", json.dumps(dict(good, allowed=[1])), 0o600, "has no operation"),
                                   ("too many", json.dumps(dict(good, never=good["allowed"] * 1001)), 0o600, "more than 1000"),
                                   ("too large", " " * (1 << 20) + "{}", 0o600, "earlier answers in")):
        put(text, mode)
        t = x.start()
        got = x.end(t)
        x.check(got == 2 and want in t.shown() and "all done" not in t.shown(), f"a kept file: {name}", got, t.text[-900:])
    for name, remedy in (("a level", "level: change it (level=permissive)"), ("a mount", "mounts: add it (mounts+=/:/data:rw)"),
                         ("two fields", "timeout_ms: raise it (commands=*)"), ("less", "timeout_ms: raise it (timeout_ms=1)")):
        put(denial(remedy))
        t = x.start()
        x.check(t.wait(ASKS) and "you allowed" not in t.shown(), f"a kept file cannot change {name}", t.text[-900:])
        t.type("\r")
        x.check(x.end(t) == 126, f"{name}: and the denial stays")
    os.unlink(paths[0])
    t = x.start()
    x.check(t.wait(ASKS), "a deleted file is forgotten", t.text[-900:])
    t.type("\r")
    x.end(t)
    os.chmod(os.path.dirname(paths[0]), 0o777)
    t = x.start()
    t.wait(ASKS)
    t.type("f\r")
    got = x.end(t)
    x.check(got == 0 and "the answer is not kept: others may write to" in t.shown() and not os.path.exists(paths[0]),
            "a folder that anybody may write to is not used", got, t.text[-900:])


def main():
    tap = Tap()
    tests = [t for t in (refusals, answers, several, code_itself, for_this_file, never, hostile, kept_files)
             if not sys.argv[1:] or t.__name__ in sys.argv]
    for who, uid in users():
        for test in tests:
            x = Asking(tap, who, uid)
            try:
                test(x)
            finally:
                os.chdir("/")
                shutil.rmtree(x.home)
    tap.done()


main()

#!/usr/bin/python3
"""How `cordon run` behaves on a terminal: a line for silent work, colours for denials, and neither elsewhere (TAP)."""

import os
import re
import shutil
import tempfile

from oneshot import Tap, run, users
from terminal import Terminal

# The code is silent until the file is there, so that nobody has to guess how long that takes.
WAITS = "import os, sys, time\nwhile not os.path.exists('/data/go'): time.sleep(0.01)\n"
DENIED = "import subprocess\ntry: subprocess.run(['git'])\nexcept OSError: pass\n"
LINE = re.compile(rb"\r\x1b\[K[|/\\-] running: [0-9]+ s")


class Silent:
    """Code that waits for a sign of ours."""

    def __init__(self, uid, *options, code="print('first'); print('second')\n", **env):
        self.home = tempfile.mkdtemp(prefix="manners-")
        os.chmod(self.home, 0o755)
        if uid:
            os.chown(self.home, uid, uid)
        self.file = self.home + "/code.py"
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(WAITS + code)
        self.t = Terminal(self.file, self.home, "--mount", self.home + ":/data:ro", *options, verb="run", uid=uid, **env)

    def go(self):
        with open(self.home + "/go", "w", encoding="ascii"):
            pass

    def end(self):
        self.go()
        self.t.wait("this is never shown")
        status = os.waitstatus_to_exitcode(os.waitpid(self.t.pid, 0)[1])
        shutil.rmtree(self.home)
        return status


def spins(tap, who, uid):
    for name, options, code, shown in (
            ("output", [], "print('first'); print('second')\n", b"first\r\nsecond\r\n"),
            ("an error", [], "sys.stderr.write('first\\n')\n", b"first\r\n"),
            ("the value", [], "40 + 2\n", b"42\r\n"),
            ("in a session", ["--validate"], "print('first')\n", b"first\r\n"),
            ("a result in JSON", ["--json"], "1\n", b'{"success":')):
        x = Silent(uid, *options, code=code)
        good = x.t.wait("running: ")
        status = x.end()
        lines = list(LINE.finditer(x.t.text))
        rest = x.t.text[lines[-1].end():] if lines else b""
        tap.check(good and status == 0 and rest.startswith(b"\r\x1b[K" + shown) and b"running:" not in rest,
                  f"{who}: silent code is shown to run, and the line is gone before {name}", status, x.t.text[-300:])
    x = Silent(uid, code="print('never')\n", NO_COLOR="1")
    good = x.t.wait("running: ")
    tap.check(good and x.end() == 0 and not re.search(rb"\x1b\[[0-9;]*m", x.t.text), f"{who}: the line has no colours that NO_COLOR could forbid", x.t.text[-300:])


def is_silent(tap, who, uid):
    """Code that takes twice as long as the line waits, where no line belongs."""
    code = "import time; time.sleep(2); print('done')"
    for name, options, env in (("--quiet", ["--quiet"], {}), ("-v", ["-v"], {}), ("a dumb terminal", [], {"TERM": "dumb"})):
        t = Terminal(code, "/tmp", *options, "-e", verb="run", uid=uid, **env)
        t.wait("this is never shown")
        os.waitpid(t.pid, 0)
        tap.check("done" in t.shown() and "running:" not in t.shown(), f"{who}: no line with {name}", t.text)
    status, out, err, _ = run(["run", "-e", code], uid, env={"TERM": "xterm"})
    tap.check(status == 0 and out == b"done\n" and err == b"", f"{who}: nor where standard error is no terminal", status, out, err)
    t = Terminal("import time; print('half', end='', flush=True); time.sleep(2); print(' done')", "/tmp", "-e", verb="run", uid=uid)
    t.wait("this is never shown")
    os.waitpid(t.pid, 0)
    tap.check(t.text.endswith(b"half done\r\n") and b"running" not in t.text, f"{who}: nor in the middle of the code's own line", t.text)


def colours(tap, who, uid):
    red, green, plain = b"\x1b[31m", b"\x1b[32m", b"\x1b[0m"
    line = red + b"denied:" + plain + b" execute git (mount); to allow it: " + green + \
        b"commands: name the program in the policy (commands+=git)" + plain + b"\r\n"
    for name, options, env, want, never in (
            ("denials have colours", [], {}, line, None),
            ("NO_COLOR", [], {"NO_COLOR": "1"}, b"denied: execute git (mount); to allow it: commands", b"\x1b"),
            ("a dumb terminal", [], {"TERM": "dumb"}, b"denied: execute git (mount); to allow it: commands", b"\x1b"),
            ("--quiet", ["-q"], {}, b"over", b"denied")):
        t = Terminal(DENIED + "print('over')", "/tmp", "--level", "strict", *options, "-e", verb="run", uid=uid, **env)
        t.wait("this is never shown")
        os.waitpid(t.pid, 0)
        tap.check(want in t.text and not (never and never in t.text), f"{who}: {name}", t.text)
    hostile = "import ctypes\nctypes.CDLL(None).mount(b'x', b'/tmp/; to allow it: none', b'tmpfs', 0, 0)\n"
    t = Terminal(hostile, "/tmp", "-e", verb="run", uid=uid)
    t.wait("this is never shown")
    os.waitpid(t.pid, 0)
    tap.check(b"\x1b[31mdenied:\x1b[0m mount" in t.text and b"; to allow it: none (seccomp); to allow it: \x1b[32mmounts:" in t.text, f"{who}: a name with our own words", t.text)
    # Standard error in a file, standard output on the terminal: the file gets no colours.
    folder = tempfile.mkdtemp(prefix="manners-")
    pid, fd = os.forkpty()
    if pid == 0:
        os.dup2(os.open(folder + "/err", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        os.execve(os.environ.get("CORDON", "build/cordon"), ["cordon", "run", "--level", "strict", "-e", DENIED], {"TERM": "xterm"})
    while True:
        try:
            if not os.read(fd, 4096):
                break
        except OSError:
            break
    os.waitpid(pid, 0)
    with open(folder + "/err", "rb") as f:
        text = f.read()
    tap.check(b"denied: execute git" in text and b"\x1b" not in text, f"{who}: a file gets no colours", text)
    shutil.rmtree(folder)


def main():
    tap = Tap()
    for who, uid in users():
        for test in spins, is_silent, colours:
            test(tap, who, uid)
    tap.done()


main()

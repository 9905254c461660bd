#!/usr/bin/python3
"""How `cordon run` behaves on a terminal: a line for silent work, colours for denials, plots; and elsewhere (TAP)."""

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


PLOT = "class P:\n    def _repr_png_(self): return bytes.fromhex('{}') + b'rest'\nP()"
PNG = "89504e470d0a1a0a"
DATA = b"iVBORw0KGgpyZXN0"  # what it shows
KITTY = b"\x1b_Gf=100,a=T,q=2,m=0;" + DATA + b"\x1b\\\r\n"
ITERM = b"\x1b]1337;File=inline=1:" + DATA + b"\a\r\n"


def plots(tap, who, uid):
    for name, head, options, env, want, files in (
            ("kitty", PNG, [], {"TERM": "xterm-kitty"}, KITTY, 0),
            ("iTerm2", PNG, [], {"TERM_PROGRAM": "iTerm.app"}, ITERM, 0),
            ("mintty", PNG, [], {"TERM_PROGRAM": "mintty"}, ITERM, 0),
            ("kitty, and saved", PNG, ["--out-dir", "OUT"], {"TERM": "xterm-kitty"}, KITTY, 1),
            ("another terminal", PNG, [], {}, None, 1),
            ("another terminal, and where", PNG, ["--out-dir", "OUT"], {}, None, 1),
            ("tmux", PNG, [], {"TERM": "xterm-kitty", "TMUX": "x"}, None, 1),
            ("what is no PNG", "1b5d303b65766907", [], {"TERM": "xterm-kitty"}, None, 1)):
        home = tempfile.mkdtemp(prefix="manners-")
        os.chmod(home, 0o755)
        if uid:
            os.chown(home, uid, uid)
        t = Terminal(PLOT.format(head), home, "--show", *[o.replace("OUT", home + "/out") for o in options], "-e", verb="run", uid=uid, **env)
        t.wait("this is never shown")
        status = os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1])
        found = [os.path.join(d, f) for d, _, names in os.walk(home) for f in names]
        named = re.findall(r"saved (\S+) \(image/png\)", t.shown())
        good = status == 0 and "not shown" not in t.shown() and len(found) == files and sorted(named) == found and \
            (want in t.text if want else b"\x1b_G" not in t.text and b"\x1b]" not in t.text)
        tap.check(good, f"{who}: a plot: {name}", status, found, t.text)
        for path in found:
            with open(path, "rb") as f:
                tap.check(f.read() == bytes.fromhex(head) + b"rest", f"{who}: the file of {name}", path)
        shutil.rmtree(home)
    home = tempfile.mkdtemp(prefix="manners-")
    os.chmod(home, 0o777)
    status, out, err, _ = run(["run", "--show", "-e", PLOT.format(PNG)], uid, env={"TERM": "xterm-kitty", "TMPDIR": home})
    tap.check(status == 0 and b"\x1b" not in out + err and b"saved " + home.encode() in err, f"{who}: a plot where there is no terminal", out, err)
    shutil.rmtree(home)
    for name, words in (("--json", ["--json", "-e", "1"]), ("a notebook", ["x.ipynb"]), ("-it", ["-it", "-e", "1"])):
        status, _, err, _ = run(["run", "--show", *words], uid)
        tap.check(status == 2 and b"--show" in err, f"{who}: --show is not for {name}", status, err)


def main():
    tap = Tap()
    for who, uid in users():
        for test in spins, is_silent, colours, plots:
            test(tap, who, uid)
    tap.done()


main()

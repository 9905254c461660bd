#!/usr/bin/python3
"""`cordon shell` on a terminal, for every guest: editing, history, ^C that keeps the session, ^D (TAP)."""

import os
import shutil
import sys
import tempfile

from oneshot import Tap
from terminal import POD, Terminal

# guest: what must be installed, set, get, what that prints, a loop without end
GUESTS = {
    "python": ("/usr/bin/python3", "x = 20", "x + 1", "21", "print('go', flush=True); exec('while True: pass')"),
    "r": ("/usr/lib/R/bin/exec/R", "x <- 20", "x + 1", "[1] 21", "cat('go\\n'); repeat {}"),
    "node": ("/usr/bin/node", "var x = 20", "x + 1", "21", "console.log('go'); while (true) {}"),
    "sh": ("/bin/bash", "x=20", "echo $((x + 1))", "21", "echo go; while :; do :; done"),
    "pod": (POD + "/bin/cordon-pod", "x=20", "echo $((x + 1))", "21", "echo go; while :; do :; done"),
}
# A shell has more than loops to be stopped in: each says when it is there, and none of them ends by itself.
WAITS = (
    ("a program in front", "bash -c 'echo go; exec sleep 100000'; echo never"),
    ("a function with a pipe", "f() { echo go; sleep 100000 | cat; echo never; }; f"),
    ("a builtin that waits", "mkfifo /tmp/f; echo go; read line <> /tmp/f; echo never"),
    ("a substitution", "echo go; y=$(sleep 100000); echo never"),
)
PYTHON = (
    ("Python that computes", "python3 -c 'print(\"go\", flush=True); exec(\"while True: pass\")'; echo never"),
    ("Python that sleeps", "python3 -c 'import time; print(\"go\", flush=True); time.sleep(100000)'; echo never"),
)
MORE = {"sh": WAITS, "pod": WAITS + PYTHON}


def shell(tap, guest, set_x, get_x, value, forever):
    home = tempfile.mkdtemp(prefix="shell-")
    prompt = guest + " ~> "

    def check(good, name):
        return tap.check(good, guest + ": " + name, t.text[-600:])

    t = Terminal(guest, home)
    check(t.wait(prompt), "it asks")
    t.type(set_x + "\r")
    check(t.wait(prompt), "a line is taken")
    t.type(get_x + "\r")
    check(t.wait("\n" + value + "\n" + prompt), "state persists")
    t.type(get_x[:-1] + "9\x7f" + get_x[-1] + "\r")
    check(t.wait("\n" + value + "\n" + prompt), "a character is taken back")
    t.type(get_x[1:] + "\x01" + get_x[0] + "\r")
    check(t.wait("\n" + value + "\n" + prompt), "the cursor goes to the start")
    t.type("\x1b[A\r")
    check(t.wait("\n" + value + "\n" + prompt), "the arrow brings the last line back")
    t.type(forever + "\r")
    check(t.wait("\ngo"), "a loop without end runs")
    t.type("\x03")
    check(t.wait(prompt), "^C ends it")
    t.type(get_x + "\r")
    check(t.wait("\n" + value + "\n" + prompt), "and the session is as it was")
    for what, code in MORE.get(guest, ()):
        t.type(code + "\r")
        check(t.wait("\ngo"), what + " runs")
        t.type("\x03")
        check(t.wait(prompt) and b"\nnever" not in t.text.replace(b"\r", b""), "^C ends " + what)
        t.type(get_x + "\r")
        check(t.wait("\n" + value + "\n" + prompt), "and the shell is as it was")
    t.type("echo never\x03")
    check(t.wait(prompt), "^C drops a line that was not finished")
    t.type("\x03")
    check(t.wait(prompt), "and at an empty one only asks again")
    t.type("(\r")
    check(t.wait("... "), "an open bracket asks for more")
    t.type("\x03")
    check(t.wait(prompt), "^C drops the whole block")
    t.type(get_x + "\r")
    check(t.wait("\n" + value + "\n" + prompt), "and all is as it was")
    check(t.leave() == 0, "^D leaves")
    t = Terminal(guest, home)
    check(t.wait(prompt), "another one asks")
    t.type("\x1b[A")
    check(t.wait(get_x), "and has the history of the one before")
    t.type("\x03")
    check(t.wait(prompt), "^C drops the line")
    check(t.leave() == 0, "^D leaves again")
    shutil.rmtree(home)


def main():
    tap = Tap()
    for guest, (program, *words) in GUESTS.items():
        if os.access(program, os.X_OK):
            shell(tap, guest, *words)
        else:
            tap.check(os.environ.get("CORDON_NEEDS") != "strict", f"{guest} # SKIP {program} is missing")
    tap.done()


sys.exit(main())

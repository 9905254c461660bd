#!/usr/bin/python3
"""What `cordon shell` offers at its prompt: lines that belong together, paste, search, completion, commands, questions of the code (TAP)."""

import os
import shutil
import sys
import tempfile

from oneshot import Tap
from terminal import POD, Terminal

# guest: program, banner, blocks (lines, what they print), a pasted block, a word and its completion, a directory change,
# output without a newline
GUESTS = {
    "python": ("/usr/bin/python3", "Python 3.", [
        (["s = '''a", "b'''", "len(s)"], "3"),
        (["@staticmethod", "def f():", "    return 40 + 2", "", "f()"], "42"),
        (["if s:", "    print('y' + 'es')", "else:", "    pass", ""], "yes"),
        (["sum([1,", "2])"], "3")],
        "def g():\n    a = 5\n\n    return a + 1\ng()", "6",
        "a_long_name = 77", "a_lo\t", "77", "import os; os.makedirs('sub'); os.chdir('sub')",
        "print('no new' + 'line', end='')", "exit(3)", 3),
    "r": ("/usr/lib/R/bin/exec/R", "R 4.", [
        (["x <- c(1, 2) |>", "  sum()", "x"], "[1] 3"),
        (["s <- 'a", "b'", "nchar(s)"], "[1] 3"),
        (["f <- function(a) {", "  a + 1", "}", "f(41)"], "[1] 42")],
        "g <- function() {\n  5\n}\n\ng() + 1", "[1] 6",
        "a_long_name <- 77", "a_lo\t", "[1] 77", "dir.create('sub'); setwd('sub')",
        "cat(paste0('no new', 'line'))", "q()", 0),
    "node": ("/usr/bin/node", "Node ", [
        (["const s = `a", "b`", "s.length"], "3"),
        (["function f(x) {", "  return x + 1", "}", "f(", "41)"], "42"),
        (["const y = await Promise.resolve(", "9)", "y"], "9"),
        (["/* a", "comment */ 3 + 4"], "7")],
        "function g() {\n  const a = 5\n\n  return a + 1\n}\ng()", "6",
        "let a_long_name = 77", "a_lo\t", "77", "fs = require('fs'); fs.mkdirSync('sub'); process.chdir('sub')",
        "process.stdout.write('no new' + 'line'); undefined", ".exit", 0),
    "sh": ("/bin/bash", "bash 5.", [
        (["for i in 4 2; do", "printf %s $i", "done; echo"], "42"),
        (["cat <<E", "he''llo", "E"], "he''llo"),
        (["echo 'a", "b' | wc -l"], "2"),
        (["echo 4\\", "2"], "42"),
        (["if true; then", "echo $((6*7))", "fi"], "42")],
        "f() {\n  x=5\n\n  echo $((x + 1))\n}\nf", "6",
        "a_long_name() { echo 77; }", "a_lo\t", "77", "mkdir sub; cd sub",
        "printf 'no new''line'", "exit 4", 4),
    "pod": (POD + "/bin/cordon-pod", "Pod ", [
        (["for i in 4 2; do", "printf %s $i", "done; echo"], "42"),
        (["cat <<E", "he''llo", "E"], "he''llo")],
        "f() {\n  x=5\n\n  echo $((x + 1))\n}\nf", "6",
        None, None, None, "mkdir sub; cd sub", "printf 'no new''line'", "exit 4", 4),
}


def blocks(check, t, prompt, table):
    for lines, value in table:
        good = True
        for i, line in enumerate(lines):
            t.type(line + "\r")
            # A line that ends a piece of code shows the prompt, every other one asks for more.
            last = i == len(lines) - 1
            good = good and (t.wait("\n" + value + "\n" + prompt) if last else t.wait("\n... ", "\n" + prompt))
        check(good, "lines that belong together: " + lines[0])


def prompt_test(tap, guest, banner, table, pasted, pasted_value, set_name, word, value, cd, unended, leave, status):
    home = tempfile.mkdtemp(prefix="prompt-")
    prompt = guest + " ~> "

    def check(good, name):
        return tap.check(good, guest + ": " + name, t.text[-600:])

    t = Terminal(guest, home)
    check(t.wait(prompt) and banner in t.shown() and "level standard" in t.shown(), "a banner with version and level")
    blocks(check, t, prompt, table)
    t.type("\x1b[200~" + pasted.replace("\n", "\r") + "\x1b[201~")
    check(t.wait(pasted.split("\n")[-1]) and prompt not in t.shown().partition("... ")[2], "a pasted text waits for Enter")
    t.type("\r")
    check(t.wait("\n" + pasted_value + "\n" + prompt), "and runs as one")
    t.type("\x1b[A\r")
    check(t.wait("\n" + pasted_value + "\n" + prompt), "the arrow brings all its lines back")
    if set_name:
        t.type(set_name + "\r")
        check(t.wait(prompt), "a name is set")
        t.type(word)
        check(t.wait("a_long_name"), "Tab completes it")
        t.type("\r")
        check(t.wait("\n" + value + "\n" + prompt), "and it runs")
    t.type("\x12" + pasted.split("\n")[0][:4])
    check(t.wait("search '" + pasted.split("\n")[0][:4] + "': " + pasted.split("\n")[0][:4]), "^R searches")
    t.type("\r")
    check(t.wait("\n" + pasted_value + "\n" + prompt), "and Enter runs what it found")
    t.type(unended + "\r")
    check(t.wait("\nno newline\n" + prompt), "output without a newline stays visible")
    t.type(cd + "\r")
    check(t.wait(guest + " ~/sub> "), "the prompt has the directory")
    t.type(":files ..\r")
    check(t.wait("\nsub/\n" + guest), ":files")
    t.type(":reset\r")
    check(t.wait("variables are gone") and t.wait(prompt), ":reset")
    t.type(":policy\r")
    check(t.wait("etwork"), ":policy")
    t.type(":help\r")
    check(t.wait(":reset        start again") and t.wait(prompt), ":help")
    t.type(":hepl\r")
    check(t.wait("unknown command ':hepl'") and t.wait(prompt), "an unknown command is named")
    check(t.leave(leave + "\r") == status, leave + " leaves")
    shutil.rmtree(home)


RL = "rl = require('readline/promises').createInterface({ input: process.stdin, output: process.stdout }); "
# A signal that comes between the question and the read waits for another one, in any Python: the timer's.
FOREVER = ("import signal; signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1); "
           "[input('again' + '? ') for _ in iter(int, 1)]")
# guest: code that asks "who?" and keeps the answer, code that shows it, how the answer is shown, what it says at the end of
# input, code that asks "again?" all the time, code that runs for a while after "busy"
ASKING = {
    "python": ("a = input('who' + '? ')", "a * 2", "'bobbob'", "EOFError", FOREVER, "import time; print('bu' + 'sy', flush=True); time.sleep(1)"),
    "r": ("a <- readline(paste0('who', '? '))", "paste0(a, a)", '[1] "bobbob"', "\nr ~> ", "repeat readline(paste0('again', '? '))",
          "cat(paste0('bu', 'sy')); flush(stdout()); Sys.sleep(1)"),
    "node": (RL + "a = await rl.question('who' + '? '); rl.close()", "a + a", "'bobbob'", "\nnode ~> ",
             RL + "for (;;) await rl.question('again' + '? ')", "console.log('bu' + 'sy'); await new Promise((r) => setTimeout(r, 1000))"),
    "sh": ("printf 'who''? '; read a", "echo $a$a", "bobbob", "\nsh ~> ", "while :; do printf 'again''? '; read b; done", "echo 'bu''sy'; sleep 1"),
}


def asking(tap, guest, ask, show, answer, at_end, forever, busy):
    """Code asks the user, and takes no key that is for the prompt."""
    home = tempfile.mkdtemp(prefix="prompt-")
    prompt = guest + " ~> "

    def check(good, name):
        return tap.check(good, guest + " asks: " + name, t.text[-600:])

    t = Terminal(guest, home)
    check(t.wait(prompt), "the prompt")
    t.type(ask + "\r")
    check(t.wait("who? "), "the question is shown")
    t.type("bob\r")
    check(t.wait(prompt) and "\n\n" not in t.shown(), "the answer is taken")
    t.type(show + "\r")
    check(t.wait("\n" + answer + "\n" + prompt), "and is there")
    t.type(busy + "\r")
    check(t.wait("\nbusy"), "code runs that does not ask")
    t.type(show + "\r")
    check(t.wait("\n" + answer + "\n" + prompt), "what was typed meanwhile runs next")
    t.type(ask + "\r")
    check(t.wait("who? "), "the question once more")
    t.type("\x04")
    check(t.wait(at_end) and t.wait(prompt), "^D is the end of input, and no more")
    t.type(forever + "\r")
    check(t.wait("again? "), "a question again and again")
    t.type("x\r")
    check(t.wait("again? "), "an answer to it")
    t.type("\x03")
    check(t.wait(prompt), "^C ends it")
    t.type(ask + "\r")
    check(t.wait("who? "), "another question")
    t.type("al\r")
    t.wait(prompt)
    t.type(show + "\r")
    check(t.wait(answer.replace("bob", "al") + "\n" + prompt), "and its answer")
    check(t.leave() == 0, "^D leaves")
    shutil.rmtree(home)


def hostile(tap):
    """What the guest names must not control the terminal, and a guest that does not answer must not hold it."""
    home = tempfile.mkdtemp(prefix="prompt-")
    t = Terminal("python", home)

    def check(good, name):
        return tap.check(good, "hostile: " + name, t.text[-600:])

    check(t.wait("python ~> "), "it asks")
    t.type("import os; os.mkdir('d\\x1b]0;evil\\x07'); os.chdir('d\\x1b]0;evil\\x07')\r")
    check(t.wait("python ~/d\\x1b]0;evil\\x07> ") and b"\x1b]0" not in t.text, "a directory's name in the prompt")
    t.type(":files ..\r")
    check(t.wait("\nd\\x1b]0;evil\\x07/\n") and b"\x1b]0" not in t.text, "a file's name in a list")
    t.type("os.chdir('/home/user'); open('xy1', 'w'); open('xy2', 'w'); open('xy\\x1b]0;evil', 'w'); 0\r")
    check(t.wait("\n0\npython ~> "), "files are made")
    t.type("open('x\t")
    check(t.wait("open('xy"), "the common part of two names")
    t.type("\t")
    check(t.wait("xy1  xy2  \npython ~> open('xy") and b"\x1b]0" not in t.text and "evil" not in t.shown(), "names that cannot be typed are left out")
    t.type("\x03")
    check(t.wait("python ~> "), "^C drops the line")
    t.type("globals()['zz\\x1b]0;evil'] = globals()['zza'] = globals()['zzb'] = 1\r")
    check(t.wait("python ~> "), "names are made")
    t.type("zz\t")
    check(t.wait("zza  zzb  \npython ~> zz") and b"\x1b]0" not in t.text, "a variable's name in a list")
    t.type("\x03")
    check(t.wait("python ~> "), "^C drops the line again")
    t.type("\x1b[200~print('pa\x1b]0;evil\x07sted')\x1b[201~\r")
    check(t.wait("\npa]0;evilsted\npython ~> ") and b"\x1b]0" not in t.text, "a pasted control character is left out")
    t.type("import codeop; codeop.CommandCompiler.__call__ = lambda *a: [print('stuck', flush=True), exec('while True: pass')]\r")
    check(t.wait("python ~> "), "the parser is replaced by one that never answers")
    t.type("20 + 3\r")
    check(t.wait("stuck"), "it is asked")
    t.type("\x03")
    check(t.wait("\n23\npython ~> "), "^C ends the question, and the code runs")
    check(t.leave() == 0, "^D leaves")
    shutil.rmtree(home)


PLOT = "class P:\r    def _repr_png_(self): return bytes.fromhex('89504e470d0a1a0a') + b'rest'\r\r0\r"
DATA = "iVBORw0KGgpyZXN0"  # what P() shows


def pictures(tap):
    for env, wanted, what in (
            ({}, ".png", "is saved, and its file named, where the terminal says nothing"),
            ({"TERM": "xterm-kitty"}, "\x1b_Gf=100,a=T,q=2,m=0;" + DATA + "\x1b\\", "is shown by kitty's protocol"),
            ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]1337;File=inline=1:" + DATA + "\a", "is shown by iTerm's"),
            ({"TERM": "xterm-kitty", "TMUX": "x"}, ".png", "is saved inside tmux")):
        home = tempfile.mkdtemp(prefix="prompt-")
        t = Terminal("python", home, **env)
        t.wait("python ~> ")
        t.type(PLOT)
        t.wait("\n0\npython ~> ")
        t.type("P()\r")
        tap.check(t.wait(wanted + "\npython ~> "), "a plot " + what, t.text[-600:])
        if wanted == ".png":
            path = t.shown().partition("saved ")[2].partition("\n")[0]
            tap.check(os.path.isfile(path) and open(path, "rb").read().startswith(b"\x89PNG"), "the file is there", path)
        tap.check(t.leave() == 0, "^D leaves")
        shutil.rmtree(home)


def main():
    tap = Tap()
    for guest, (program, *words) in GUESTS.items():
        if os.access(program, os.X_OK):
            prompt_test(tap, guest, *words)
            if guest in ASKING:
                asking(tap, guest, *ASKING[guest])
        else:
            tap.check(os.environ.get("CORDON_NEEDS") != "strict", f"{guest} # SKIP {program} is missing")
    if os.access("/usr/bin/python3", os.X_OK):
        hostile(tap)
        pictures(tap)
    tap.done()


sys.exit(main())

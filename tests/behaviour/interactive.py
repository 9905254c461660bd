#!/usr/bin/python3
"""`cordon run -it`: programs on a terminal that is connected to the user's (TAP)."""

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

import registry
from oneshot import CORDON, Tap, become, users

SECONDS = 300  # a busy machine takes its time; a hang is still found


class Run:
    """`cordon run` on a terminal of ours, which we keep open."""
    uid = None

    def __init__(self, *args):
        self.text = b""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        if self.uid:
            os.fchown(self.slave, self.uid, -1)  # as a login does
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in 0, 1, 2:
                os.dup2(self.slave, fd)
            if self.uid:
                become(self.uid)()
            os.chdir("/")
            env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm"}
            os.execve(CORDON, [CORDON, "run", *args], env)

    def wait(self, text):
        end = time.monotonic() + SECONDS
        has_ended = False
        while text.encode() not in self.text:
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536)
            elif has_ended or time.monotonic() > end:
                raise AssertionError("no %r in %r" % (text, self.text))
            else:
                has_ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def type(self, text):
        os.write(self.master, text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def status(self):
        """Its exit status, once our terminal is as it was."""
        end = time.monotonic() + SECONDS
        pid = 0
        while not pid:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError("it did not end: %r" % self.text)
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536)
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        assert after == self.before, "the terminal is not as before: %r, was %r" % (after, self.before)
        return os.waitstatus_to_exitcode(status)


ASK = {
    "python": ("python3", "print('hi ' + input('name? '), __import__('sys').stdin.isatty())", "hi bob True"),
    "r": ("R", "x <- readline('name? '); cat('hi', x, interactive(), '\\n')", "hi bob TRUE"),
    "node": ("node", "const r = require('readline').createInterface({ input: process.stdin, output: process.stdout });"
             "r.question('name? ', (x) => { console.log('hi ' + x + ' ' + process.stdin.isTTY); r.close(); })", "hi bob true"),
    "sh": ("bash", "read -p 'name? ' x; test -t 0 && echo hi $x yes", "hi bob yes"),
}


def asks(guest):
    def test():
        x = Run("-it", "-g", guest, "-e", ASK[guest][1])
        x.wait("name? ")
        x.type("bob\r")
        assert x.status() == 0, x.text
        assert ASK[guest][2].encode() in x.text, x.text
    return test


def prompts():
    for guest, keys, status in ("python", "import sys\rsys.exit(3)\r", 3), ("sh", "exit 4\r", 4):
        x = Run("-it", "-g", guest)
        x.wait(">>> " if guest == "python" else "$ ")
        x.type(keys)
        assert x.status() == status, x.text


def size_and_resize():
    x = Run("-it", "-g", "sh", "-e", "trap 'stty size' WINCH; trap 'exit 9' INT; stty size; echo ready; sleep 1000 & while :; do wait; done")
    x.wait("ready")
    assert b"30 100" in x.text, x.text
    x.resize(41, 123)
    x.wait("41 123")
    x.type("\x03")  # without a trap, bash would go on if stty still ran and ended by itself
    assert x.status() == 9, x.text


def signals_end_it():
    for number in signal.SIGTERM, signal.SIGHUP:
        x = Run("-it", "-g", "sh", "-e", "trap '' TERM HUP INT; stty raw; echo ready; sleep 1000")
        x.wait("ready")
        os.kill(x.pid, number)
        assert x.status() == 128 + number, x.text


def ctrl_c_is_the_programs():
    x = Run("-it", "-e", "import time\ntry:\n    print('ready'); time.sleep(1000)\nexcept KeyboardInterrupt:\n    exit(9)")
    x.wait("ready")
    x.type("\x03")
    assert x.status() == 9, x.text


def a_flood_can_be_stopped():
    x = Run("-it", "-g", "sh", "-e", "yes")
    x.wait("y\r\ny\r\n")
    x.type("\x03")
    assert x.status() == 130, x.text[-200:]


def arguments_and_status():
    x = Run("-it", "-g", "sh", "-e", "printf '<%s>' \"$@\"; exit 7", "a b", "it's")
    assert x.status() == 7 and b"<a b><it's>" in x.text, x.text


def refusals():
    r = subprocess.run([CORDON, "run", "-it", "-e", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert r.returncode == 2 and "needs a terminal" in r.stderr, r
    x = Run("-it", "--level", "strict", "-g", "sh")
    assert x.status() == 126 and b"pty=true" in x.text, x.text
    x = Run("-it", "--json", "-e", "1")
    assert x.status() == 2 and b"--json" in x.text, x.text


def judge(tap, name, test):
    try:
        test()
    except AssertionError as e:
        tap.check(False, name, e)
    else:
        tap.check(True, name)


def nobody_reads():
    """The terminal is full: neither the time limit nor a signal may wait for somebody to read it."""
    for options, signo, status in (["--timeout", "1"], 0, 124), ([], signal.SIGTERM, 143):
        x = Run("-it", *options, "-g", "sh", "-e", "yes")
        assert select.select([x.master], [], [], SECONDS)[0], "it prints nothing"
        if signo:
            os.kill(x.pid, signo)
        end = time.monotonic() + SECONDS
        while os.waitid(os.P_PID, x.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < end:
            time.sleep(0.05)
        assert os.waitid(os.P_PID, x.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "it waits for a reader"
        got = x.status()
        assert got == status, (got, x.text[-200:])


def nothing_stays_typed():
    """What the program did not read, answers of the terminal to its questions among it, is not left for the next one."""
    x = Run("-it", "-g", "sh", "-e", "trap '' INT QUIT HUP; stty raw -echo; echo ready; sleep 1000")
    x.wait("ready")
    os.set_blocking(x.master, False)
    while select.select([], [x.master], [], 1)[1]:  # until nobody takes more
        try:
            os.write(x.master, b"x" * 512)
        except BlockingIOError:
            time.sleep(0.01)
    os.kill(x.pid, signal.SIGTERM)
    os.waitid(os.P_PID, x.pid, os.WEXITED | os.WNOWAIT)
    mode = termios.tcgetattr(x.slave)
    mode[3] &= ~termios.ICANON
    termios.tcsetattr(x.slave, termios.TCSANOW, mode)
    left = struct.unpack("i", fcntl.ioctl(x.slave, termios.FIONREAD, b"\0" * 4))[0]
    termios.tcsetattr(x.slave, termios.TCSANOW, x.before)
    assert x.status() == 143, x.text
    assert left == 0, "%d bytes are left" % left


def a_name_is_no_command_for_the_terminal():
    """A file's name is the guest's word, and the line that shows how far a copy is has it."""
    with tempfile.TemporaryDirectory() as folder:
        if Run.uid:
            os.chown(folder, Run.uid, -1)
        env = {"PATH": "/usr/bin:/bin", "HOME": folder, "XDG_DATA_HOME": folder, "LANG": "C.UTF-8"}
        options = {"env": env, "preexec_fn": become(Run.uid) if Run.uid else None}
        subprocess.run([CORDON, "run", "--workspace", "w", "-e", "open('/tmp/a\\x1b]0;evil\\x07', 'w').write('x' * 300000)"],
                       check=True, stdout=subprocess.DEVNULL, **options)
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        os.chmod(pipe, 0o666)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # nobody reads: the copy waits
        master, slave = pty.openpty()
        p = subprocess.Popen([CORDON, "cp", "w:/tmp/a\x1b]0;evil\x07", pipe], stderr=slave, **options)
        text = b""
        while b" s" not in text:
            assert select.select([master], [], [], SECONDS)[0], text
            text += os.read(master, 65536)
        for fd in reader, slave, master:
            os.close(fd)
        p.wait()
        assert b"evil" in text and b"\x1b]" not in text, text


def packages_and_environments():
    if not registry.has_pip():
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "tiny-1.0-py3-none-any.whl"), "wb") as f:
            f.write(registry.wheel("tiny", "1.0", {"tiny.py": "x = 5\n"}))
        x = Run("-it", "-g", "python", "--set", "packages.pip=tiny", "--set", "packages.pip_index=" + folder, "--with", "tiny",
                "-e", "import tiny; print('has', tiny.x)")
        assert x.status() == 0 and b"has 5" in x.text, x.text
        x = Run("-it", "-g", "python", "--set", "python=" + folder + "/python", "-e", "1")
        assert x.status() == 125, x.text


def main():
    tap = Tap()
    here = [guest for guest in ASK if shutil.which(ASK[guest][0])]
    for who, Run.uid in users():
        for guest in here:
            judge(tap, "%s: %s asks" % (who, guest), asks(guest))
        for f in (prompts, size_and_resize, signals_end_it, ctrl_c_is_the_programs, a_flood_can_be_stopped, arguments_and_status,
                  nobody_reads, nothing_stays_typed, a_name_is_no_command_for_the_terminal, packages_and_environments,
                  refusals):
            judge(tap, "%s: %s" % (who, f.__name__.replace("_", " ")), f)
    tap.done()


main()

"""`cordon shell`, or another verb, on a pseudo-terminal, for tests."""

import os
import pty
import re
import select
import signal
import time

from oneshot import CORDON, become

POD = os.environ.get("CORDON_POD") or os.path.join(os.path.dirname(CORDON), "pod")
SECONDS = 300  # a busy machine takes its time; a hang is still found
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    def __init__(self, guest, home, *options, verb="shell", uid=None, **env):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if uid:
                become(uid)()
            os.chdir("/")
            os.execve(CORDON, [CORDON, verb, *options, guest], dict({
                "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm", "HOME": home, "XDG_STATE_HOME": home,
                "TMPDIR": home, "CORDON_POD": POD}, **env))

    def type(self, text):
        self.text = b""
        os.write(self.fd, text.encode())

    def wait(self, *words):
        """Until the screen has shown one of the words since the last typing."""
        end = time.monotonic() + SECONDS
        while not any(word.encode() in ESCAPES.sub(b"", self.text) for word in words):
            left = end - time.monotonic()
            if left < 0 or not select.select([self.fd], [], [], left)[0]:
                return False
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.text += data
        return True

    def shown(self):
        """What the screen has shown since the last typing, as text."""
        return ESCAPES.sub(b"", self.text).decode("utf-8", "replace")

    def leave(self, text="\x04"):
        """Types it and waits for the end of the program: its exit status."""
        self.type(text)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None

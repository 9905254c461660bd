"""A `cordon serve` of the test's own, on a free port of the loopback, at a Unix socket, or behind TLS."""
import os
import re
import secrets
import subprocess
import tempfile

CORDON = os.environ.get("CORDON") or os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "build", "cordon")


class Server:
    """with Server() as s: s.address, s.key, s.pid. args: further ones of `cordon serve`."""

    def __init__(self, *args, unix=False, env=None, sessions=0):
        self.key = "cordon_" + secrets.token_hex(24)
        self._folder = tempfile.TemporaryDirectory(prefix="cordon-serve-")
        self.state = os.path.join(self._folder.name, "state")
        args = ("--state", self.state, "--grace", "2s") + args
        admin = self.key
        if sessions:
            self.key = self.add_key("tests", "--admin", "--max-sessions", str(sessions), "--max-executions", str(sessions))
        self.path = os.path.join(self._folder.name, "private", "serve.sock")
        where = ["--socket", self.path] if unix else ["--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen([CORDON, "serve", *where, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, CORDON_SERVE_KEY=admin, **(env or {})))
        line = self.process.stdout.readline()
        if not line.startswith("listening at"):
            raise AssertionError("no server: %s%s" % (line, self.process.stderr.read()))
        self.pid = self.process.pid  # cordon becomes cordon-http by exec
        self.address = "unix:" + self.path if unix else re.search(r"https?://\S+", line).group(0)

    def add_key(self, name, *options):
        """The key that was made."""
        out = subprocess.run([CORDON, "serve", "key", "add", name, "--state", self.state, *options], stdout=subprocess.PIPE, check=True, text=True)
        return re.search(r"cordon_[0-9a-f]+", out.stdout).group(0)

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def stop(self):
        """Its exit status, after SIGTERM."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.errors = self.process.stderr.read()
            self.process.stdout.close()
            self.process.stderr.close()
            self._folder.cleanup()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

# driver.py - the host's end of docs/wire.md in a few lines: runs a guest's runtime over a socketpair,
# without a sandbox, and checks its messages. The tests in tests/guests use only this.
import array
import atexit
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(TOP, "build"))
DEADLINE = 120  # seconds for any one message: only a guest that hangs takes so long, also under load


class Gone(Exception):
    """The guest ended."""


class Result(dict):
    """A result message with what was printed meanwhile."""
    stdout = stderr = ""
    outputs = calls = ()

    @property
    def error(self):
        return self.get("error") or {}


class Stock:
    """How the tests of one guest get theirs: a new one, or one shared by those that leave nothing behind."""

    def __init__(self, argv, env=None):
        self.argv, self.env, self.kept = argv, env, None

    def guest(self, **k):
        return Guest(self.argv, **dict({"env": self.env}, **k))

    def shared(self):
        if self.kept is None:
            self.kept = self.guest()
        return self.kept

    def reset(self):
        if self.kept is not None:
            self.kept.close()
        self.kept = None


def adder(number="number"):
    """The tool that most tests call."""
    return {"name": "add", "description": "Adds two numbers.",
            "args": {"a": {"type": number, "required": True}, "b": {"type": number, "required": True}}}


class Guest:
    def __init__(self, argv, tools=(), handlers=None, options=None, env=None, hello=True):
        self.home = tempfile.mkdtemp(prefix="guest-")
        self.token = secrets.token_hex(32)
        self.handlers = handlers or {}
        self.next_id = 0
        mine, theirs = socket.socketpair()
        self.sock, self.buffer = mine, b""
        self.pipes = [os.pipe(), os.pipe(), os.pipe()]  # the guest's 0, 1, 2
        fds = [self.pipes[0][0], self.pipes[1][1], self.pipes[2][1], theirs.fileno()]
        environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8",
                   "TMPDIR": self.home, "CORDON_TOKEN": self.token}
        environ.update(env or {})

        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.chdir(self.home)
                high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
                for i, fd in enumerate(high):
                    os.dup2(fd, i, True)
                os.closerange(4, 256)
                os.setpgid(0, 0)
                os.execve(argv[0], argv, environ)
            finally:
                os._exit(127)
        theirs.close()
        for fd in fds[:3]:
            os.close(fd)
        self.out = {self.pipes[1][0]: [], self.pipes[2][0]: []}
        self.alive = True
        self.options = {"result_name": "result", "modules": "*", "tools": list(tools),
                        "message_bytes": 1 << 20, "rpc_bytes": 8 << 20}
        self.options.update(options or {})
        if hello:
            self.hello = self.recv()
            assert self.hello["type"] == "hello" and self.hello["token"] == self.token, self.hello
            self.send({"type": "welcome", "version": 1, "guest_options": self.options})

    # -- messages

    def send(self, m):
        self.sock.sendall(json.dumps(m).encode() + b"\n")

    def pump(self, timeout):
        """Waits for anything; collects output. Returns False when nothing came in time."""
        fds = [f for f in self.out if self.out[f] is not None and f in self.open_out()]
        ready, _, _ = select.select([self.sock] + fds, [], [], timeout)
        for f in ready:
            if f is self.sock:
                data = self.sock.recv(1 << 20)
                if not data:
                    raise Gone("the guest closed its wire")
                self.buffer += data
            else:
                data = os.read(f, 1 << 20)
                if data:
                    self.out[f].append(data)
                else:
                    self.closed.add(f)
        return bool(ready)

    closed = frozenset()

    def open_out(self):
        if not self.closed:
            self.closed = set()
        return [f for f in self.out if f not in self.closed]

    def recv(self):
        end = time.monotonic() + DEADLINE
        while b"\n" not in self.buffer:
            if not self.pump(max(0, end - time.monotonic())) and time.monotonic() > end:
                raise TimeoutError("no message within %d s" % DEADLINE)
        line, self.buffer = self.buffer.split(b"\n", 1)
        self.last_line = line
        return json.loads(line)

    def start(self, code, context=None, env=None, validate=False, show=False):
        self.next_id += 1
        m = {"type": "execute", "id": self.next_id, "code": code}
        if context is not None:
            m["context"] = context
        if env is not None:
            m["env"] = env
        if validate:
            m["validate"] = True
        if show:
            m["show"] = True
        for f in self.out:
            self.out[f] = []
        self.send(m)

    def ask(self, question, code="", **more):
        """The value of the answer to an inspect."""
        self.next_id += 1
        for f in self.out:
            self.out[f] = []
        self.send(dict(more, type="inspect", id=self.next_id, question=question, code=code))
        r = self.finish()
        assert r["ok"], r
        return r["value"]

    def finish(self):
        outputs, calls = [], []
        while True:
            m = self.recv()
            if m["type"] == "tool_call":
                assert m["id"] == self.next_id, m
                calls.append(m)
                self.send(self.answer(m))
            elif m["type"] == "output":
                assert m["id"] == self.next_id, m
                outputs.append(m)
            elif m["type"] == "result":
                assert m["id"] == self.next_id, m
                break
        try:
            while self.pump(0):  # what was flushed before the result is here by now
                if not self.open_out() and b"" == self.buffer:
                    break
        except Gone:
            pass  # it ended after its result; whoever asks it again is told
        r = Result(m)
        r.outputs, r.calls = outputs, calls
        r.stdout, r.stderr = [b"".join(self.out[f]).decode("utf-8", "replace")
                              for f in (self.pipes[1][0], self.pipes[2][0])]
        return r

    def answer(self, m):
        base = {"type": "tool_result", "id": m["id"], "call": m["call"]}
        fn = self.handlers.get(m["tool"])
        if fn is None:
            base["error"] = "Unknown tool: %s" % m["tool"]
            return base
        try:
            base["value"] = fn(**m["args"])
        except Exception as e:
            base["error"] = str(e)
        return base

    def run(self, code, context=None, env=None, validate=False, show=False):
        self.start(code, context, env, validate, show)
        return self.finish()

    def advised(self, cases, clean):
        """Each code of cases names what its result warns of; clean code gives no warning, nor does any without asking."""
        text = "Code contains call to `%s()` which may be restricted by the sandbox"
        for code, names in cases:
            r = self.run(code, validate=True)
            assert r.get("warnings") == [text % n for n in names], (code, r)
            assert "warnings" not in self.run(code), code
        for code in clean:
            assert "warnings" not in self.run(code, validate=True), code

    def interrupt(self, code, pid=None):
        """Runs code that first prints something, and interrupts it once it has."""
        self.start(code)
        end = time.monotonic() + DEADLINE
        while not self.out[self.pipes[1][0]]:
            assert time.monotonic() < end, "no output to wait for"
            self.pump(1)
        self.interrupt_now(pid)
        return self.finish()

    def interrupt_now(self, pid=None):
        """As the host does: the message names the execution, the signal says that there is one. An agent reads it anyway."""
        self.send({"type": "interrupt", "id": self.next_id})
        if self.hello["guest"] != "sh":
            os.kill(pid or self.pid, signal.SIGINT)

    def last_words(self):
        """What a guest that ends before its hello says on stderr, and its exit status."""
        try:
            raise AssertionError("it says %r" % self.recv())
        except Gone:
            pass
        said = b"".join(self.out[self.pipes[2][0]])
        while more := os.read(self.pipes[2][0], 1 << 16):
            said += more
        return said.decode(), os.waitstatus_to_exitcode(self.close())

    def value(self, code, context=None):
        r = self.run(code, context)
        assert r["ok"], r
        return r.get("value")

    def signal(self, number=signal.SIGINT):
        os.kill(self.pid, number)

    def feed(self, data):
        """Writes the execution's stdin in the background, then leaves it open."""
        fd = os.dup(self.pipes[0][1])  # of its own: the guest may be closed before the thread runs

        def write():
            try:
                os.write(fd, data)
            except BrokenPipeError:
                pass  # the guest has ended
            finally:
                os.close(fd)
        threading.Thread(target=write, daemon=True).start()

    def close(self):
        if not self.alive:
            return None
        self.alive = False
        self.sock.close()
        for i, fd in enumerate((self.pipes[0][1], self.pipes[1][0], self.pipes[2][0])):
            os.close(fd)
        status = None
        for _ in range(200):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.01)
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        shutil.rmtree(self.home, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Template(Guest):
    """A guest in template mode, over a libguest whose cordon_guest_fork() is a plain fork."""

    def spawn(self, tools=(), handlers=None, options=None):
        g = object.__new__(Guest)
        g.home, g.token = tempfile.mkdtemp(prefix="guest-"), secrets.token_hex(32)
        g.handlers, g.next_id, g.buffer = handlers or {}, 0, b""
        mine, theirs = socket.socketpair()
        g.sock, g.alive, g.pid = mine, True, 0
        g.pipes = [os.pipe(), os.pipe(), os.pipe()]
        null = os.open("/dev/null", os.O_RDWR)
        fds = [theirs.fileno(), g.pipes[0][0], g.pipes[1][1], g.pipes[2][1]] + [null] * 7
        line = b'{"type":"spawn","token":"%s"}\n' % g.token.encode()
        self.sock.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        theirs.close()
        for fd in (null, g.pipes[0][0], g.pipes[1][1], g.pipes[2][1]):
            os.close(fd)
        g.out = {g.pipes[1][0]: [], g.pipes[2][0]: []}
        g.options = dict(self.options, tools=list(tools))
        g.options.update(options or {})
        g.hello = g.recv()
        assert g.hello["type"] == "hello" and g.hello["token"] == g.token, g.hello
        g.send({"type": "welcome", "version": 1, "guest_options": g.options})
        g.close = lambda: close_spawned(g)
        return g


def close_spawned(g):
    if g.alive:
        g.alive = False
        g.sock.close()
        for fd in (g.pipes[0][1], g.pipes[1][0], g.pipes[2][0]):
            os.close(fd)
        shutil.rmtree(g.home, ignore_errors=True)


def validate(argv, code):
    p = subprocess.run(argv, input=code.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=DEADLINE)
    assert p.returncode == 0, (p.returncode, p.stderr)
    return json.loads(p.stdout)


_built = {}


def library(name, *more):
    """The path of name.c, built as a shared library."""
    if not _built:
        _built[""] = tempfile.mkdtemp(prefix="lib-")
        atexit.register(shutil.rmtree, _built[""], True)
    if name not in _built:
        path = os.path.join(_built[""], name + ".so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path,
                        "-D_GNU_SOURCE", "-I", TOP, os.path.join(TOP, "tests/guests", name + ".c"),
                        *(os.path.join(TOP, "inside/lib", f) for f in more)], check=True)
        _built[name] = path
    return _built[name]


def forklib():
    return library("forklib", "spawn_requests.c", "pages.c", "prefault.c")

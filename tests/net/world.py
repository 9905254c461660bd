"""A small Internet of its own: a network namespace in which public addresses are on the loopback, with a resolver
that records its queries, web servers that record their requests, and guests in namespaces behind the gateway."""
import atexit
import json
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ.get("BUILD", os.path.join(os.path.dirname(__file__), "..", "..", "build"))
GATEWAY = os.path.realpath(os.path.join(BUILD, "src/net/cordon-gateway"))
RELAY = os.path.realpath(os.path.join(BUILD, "src/net/cordon-relay"))
PUBLIC, PUBLIC6, OTHER = "93.184.216.34", "2606:2800:220:1::1", "93.184.216.35"
PRIVATE = "10.9.9.9"
GUEST_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"

tmp = None


def enter():
    """Re-executes the program in namespaces of its own, and builds the world there."""
    global tmp
    if os.environ.get("CORDON_WORLD") != "1":
        if os.geteuid() != 0 and subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode:
            strict = os.environ.get("CORDON_NEEDS") == "strict"
            print("1..1\nnot ok 1 - needs root or user namespaces" if strict else "1..0 # SKIP needs root or user namespaces")
            sys.exit(strict)
        env = dict(os.environ, CORDON_WORLD="1")
        args = ["unshare"] + ([] if os.geteuid() == 0 else ["-Ur"]) + ["-n", "-m", "-p", "-f", "--kill-child"]
        os.execvpe("unshare", args + ["/usr/bin/python3"] + sys.argv, env)
    tmp = tempfile.mkdtemp(prefix="cordon-net-")
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "none", tmp)
    run("mount", "-t", "proc", "none", "/proc")
    run("ip", "link", "set", "lo", "up")
    for a in (PUBLIC, OTHER, PRIVATE, "169.254.169.254"):
        run("ip", "addr", "add", a + "/32", "dev", "lo")
    run("ip", "-6", "addr", "add", PUBLIC6 + "/128", "dev", "lo")
    write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    write("guest-resolv.conf", "nameserver 127.0.0.1\noptions use-vc timeout:5 attempts:1\n")
    write("hosts", "127.0.0.1 localhost\n")
    run("mount", "--bind", path("resolv.conf"), os.path.realpath("/etc/resolv.conf"))
    if os.path.exists("/etc/hosts"):  # a bare root has none
        run("mount", "--bind", path("hosts"), "/etc/hosts")
    make_certificates()
    atexit.register(leave)


def leave():
    """The folder is the machine's, what is in it is ours alone."""
    subprocess.run(["umount", "-l", tmp], check=False)
    try:
        os.rmdir(tmp)
    except OSError:
        pass


def run(*args):
    subprocess.run(args, check=True)


def path(name):
    return os.path.join(tmp, name)


def write(name, text):
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def make_certificates():
    def openssl(*args):
        subprocess.run(("openssl",) + args, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=Test Authority", "-keyout", path("ca.key"), "-out", path("ca.pem"))
    names = "DNS:a.test,DNS:b.test,DNS:*.wild.test,DNS:secret.test,IP:" + PUBLIC
    write("ext", "subjectAltName=" + names + "\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a.test",
            "-keyout", path("server.key"), "-out", path("server.csr"))
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"),
            "-CAcreateserial", "-days", "2", "-extfile", path("ext"), "-out", path("server.pem"))


class Resolver(threading.Thread):
    """Answers from a table ("mute": never); a list is gone through one answer at a time. Notes every question."""

    def __init__(self):
        super().__init__(daemon=True)
        self.table, self.asked = {}, []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 53))

    def run(self):
        while True:
            query, peer = self.sock.recvfrom(512)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind = struct.unpack(">H", query[at + 1:at + 3])[0]
            name = ".".join(labels).lower()
            self.asked.append(name)
            found = self.table.get(name)
            if found == "mute":
                continue
            if isinstance(found, list) and kind == 1:
                found = found.pop(0) if len(found) > 1 else found[0]
            addresses = [a for a in (found if isinstance(found, tuple) else (found,))
                         if a and not isinstance(a, list) and (":" in a) == (kind == 28)]
            answer = query[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, len(addresses), 0, 0)
            answer += query[12:at + 5]
            for a in addresses:
                raw = socket.inet_pton(socket.AF_INET6 if ":" in a else socket.AF_INET, a)
                answer += struct.pack(">HHHIH", 0xc00c, kind, 1, 1, len(raw)) + raw
            self.sock.sendto(answer, peer)


class Server(threading.Thread):
    """Accepts, reads a head, and calls handle(self, sock, head, rest). Notes every head."""

    def __init__(self, address, port, handle, tls=False):
        super().__init__(daemon=True)
        self.heads, self.handle, self.connections = [], handle, 0
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sock = socket.socket(family)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, port))
        self.sock.listen(512)
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(path("server.pem"), path("server.key"))
        self.start()

    def run(self):
        while True:
            sock, _ = self.sock.accept()
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def settle(self):
        """Counts whoever came before, as connections are accepted in the order of coming: one that says nothing is
        closed when its turn has come."""
        with socket.create_connection(self.sock.getsockname()[:2]) as c:
            c.shutdown(socket.SHUT_WR)
            c.recv(1)

    def serve(self, sock):
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    piece = sock.recv(65536)
                    if not piece:
                        return
                    data += piece
                head, _, data = data.partition(b"\r\n\r\n")
                self.heads.append(head.decode("latin-1"))
                data = self.handle(self, sock, self.heads[-1], data)
                if data is None:
                    return
        except (OSError, ssl.SSLError):
            pass
        finally:
            try:
                sock.close()
            except OSError:
                pass


def field(head, name):
    for line in head.split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    return None


def read_body(sock, head, data):
    length = int(field(head, "Content-Length") or 0)
    if (field(head, "Transfer-Encoding") or "").lower() == "chunked":
        while b"0\r\n\r\n" not in data:
            data += sock.recv(65536)
        body, out = data, b""
        while True:
            size, _, body = body.partition(b"\r\n")
            n = int(size, 16)
            if n == 0:
                return out, b""
            out, body = out + body[:n], body[n + 2:]
    while len(data) < length:
        data += sock.recv(65536)
    return data[:length], data[length:]


def reply(sock, body, status="200 OK", headers=""):
    if isinstance(body, str):
        body = body.encode("latin-1")
    sock.sendall(("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), headers)).encode("latin-1")
                 + body)


class Gateway:
    """cordon-gateway with a configuration, and guests behind it."""

    def __init__(self, decide=None, **config):
        self.events, self.messages, self.decide, self.thread = [], [], decide, None
        config.setdefault("ca_file", path("ca.pem"))
        control, control_far = socket.socketpair()
        self.relay, relay_far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config_r, config_w = os.pipe()
        os.write(config_w, json.dumps(config).encode())
        os.close(config_w)
        fds = [config_r, control_far.fileno(), relay_far.fileno()]
        # The leak checker of sanitized builds traces its process, which the gateway forbids.
        self.process = subprocess.Popen([GATEWAY] + [str(fd) for fd in fds], pass_fds=fds,
                                        env={"ASAN_OPTIONS": "detect_leaks=0"})
        os.close(config_r)
        control_far.close()
        relay_far.close()
        self.control = control
        self.file = control.makefile("rb")
        self.ready = self.read_line()
        if self.ready and self.ready.get("type") == "ready":
            self.thread = threading.Thread(target=self.listen, daemon=True)
            self.thread.start()

    def read_line(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def listen(self):
        while True:
            try:
                m = self.read_line()
            except (OSError, ValueError):
                return
            if m is None:
                return
            self.messages.append(m)
            if m["type"] == "event":
                self.events.append(m)
            elif m["type"] == "ask":
                answer = self.decide(m) if self.decide else None
                if answer is not None:
                    self.send({"type": "answer", "id": m["id"], "allow": answer})

    def send(self, message):
        self.control.sendall(json.dumps(message).encode() + b"\n")

    def guest(self, *command, env=None, timeout=30, popen=False, proxy=True):
        """Runs a command in a network namespace that has nothing but the relay."""
        ports = [str(p) for p in self.ready["ports"]]
        script = ("mount --make-rprivate / && mount --bind %s %s && exec %s %d %s -- \"$@\"" %
                  (path("guest-resolv.conf"), os.path.realpath("/etc/resolv.conf"), RELAY, self.relay.fileno(),
                   " ".join(ports)))
        environment = {"PATH": GUEST_PATH, "HOME": tmp, "LC_ALL": "C.UTF-8", "TMPDIR": tmp}
        if proxy:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                environment[name] = environment[name.lower()] = "http://127.0.0.1:3128"
            environment["NO_PROXY"] = environment["no_proxy"] = "localhost,127.0.0.1,::1"
        bundle = path("ca.pem")
        if self.ready.get("authority"):
            bundle = write("bundle.pem", open(path("ca.pem")).read() + self.ready["authority"])
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
            environment[name] = bundle
        environment.update(env or {})
        args = ["unshare", "-n", "-m", "sh", "-c", script, "guest"] + list(command)
        p = subprocess.Popen(args, env=environment, pass_fds=[self.relay.fileno()], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if popen:
            return p
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            err += b" (killed: timeout)"
        time.sleep(0.02)  # the last event is on its way
        return Result(p.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    def python(self, code, **kw):
        return self.guest("/usr/bin/python3", "-c", code, **kw)

    def curl(self, *args, **kw):
        return self.guest("curl", "-sS", "--max-time", "20", *args, **kw)

    def denials(self):
        return [e for e in self.events if e["event"] == "network.denied"]

    def requests(self):
        return [e for e in self.events if e["event"] == "network.request"]

    def stop(self):
        try:
            self.control.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.relay.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.thread:
            self.thread.join(5)
        self.control.close()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "exit %d\nstdout: %s\nstderr: %s" % (self.code, self.out[:2000], self.err[:2000])


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.01)


tests = []


def test(f):
    tests.append(f)
    return f


def main():
    import traceback

    def too_long(*_):
        raise TimeoutError("the test took too long")
    signal.signal(signal.SIGALRM, too_long)  # as pid 1 of its namespace it has no default action
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [t for t in tests if wanted in t.__name__]
    failed = 0
    print("1..%d" % len(chosen), flush=True)
    for i, t in enumerate(chosen):
        signal.alarm(60)
        try:
            why = t()
            print("ok %d - %s%s" % (i + 1, t.__name__, " # SKIP " + why if why else ""), flush=True)
        except Exception:
            failed += 1
            print("not ok %d - %s" % (i + 1, t.__name__), flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    sys.exit(failed > 0)

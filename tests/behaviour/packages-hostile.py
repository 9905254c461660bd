#!/usr/bin/python3
"""Hostile packages and registries: what a build step, a registry's answer or an archive tries beyond its sandbox is held, what is too
much or too slow ends with the limit's name, and the host neither waits nor grows. Registries of our own on loopback."""
import base64
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zlib

from oneshot import CORDON, Tap, users
import registry
from registry import Registry, has_pip, has_program

SECONDS, HOST_MIB = 300, 64
# How many directories a build step can make for the host to look at.
COUNTS = """
import os, shutil
def tries():
    made = 0
    os.mkdir("/tmp/many")
    try:
        for made in range(100000):
            os.mkdir(f"/tmp/many/{made}")
    except OSError:
        pass
    shutil.rmtree("/tmp/many")
    return made
"""
# Directories in the results: many, and with the longest paths.
DEEP = """
import os
def tries():
    top = os.path.expanduser("~/.local/") + "/".join(c * 250 for c in "abcde")
    os.makedirs(top)
    os.chdir(top)
    for i in range(12000):
        os.mkdir("%05d" % i + "z" * 240)
"""
WIDE = """
import os
def tries():
    top = os.path.expanduser("~/.local/") + "a" * 250
    os.makedirs(top)
    for i in range(5000):
        os.mkdir(f"{top}/{i}")
"""
# What is no file in the results, links to the host, set-id bits, and a process that goes on and turns the results into a link.
THINGS = """
import os, subprocess, sys
def tries():
    top, done = os.path.expanduser("~/.local/evil"), []
    os.makedirs(top)
    def attempt(function, *args):
        try:
            function(*args)
            done.append(function.__name__)
        except OSError:
            pass
    os.symlink(%(secret)r, top + "/link")
    os.symlink("../" * 20 + %(secret)r, top + "/climb")
    os.symlink("/proc/self/root", top + "/root")
    os.mkfifo(top + "/fifo")
    attempt(os.mknod, top + "/null", 0o20666, os.makedev(1, 3))
    with open(top + "/setuid", "w") as f:
        os.fchmod(f.fileno(), 0o6755)
    subprocess.Popen([sys.executable, "-c", "import os, time\\nwhile True:\\n try:\\n  os.rename('/home/user/.local', '/tmp/old')\\n"
                      "  os.symlink('/', '/home/user/.local')\\n except OSError: time.sleep(.01)"],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    return done
"""
LOOK = """
import os, stat, things
top = '/home/user/.local/evil'
print(things.done, sorted(os.listdir(top)) if os.path.isdir(top) else [])
for name in os.listdir(top) if os.path.isdir(top) else []:
    mode = os.lstat(top + '/' + name).st_mode
    assert stat.S_ISREG(mode) or stat.S_ISLNK(mode), name
    assert not mode & 0o6000, name
for name in 'link', 'climb':
    try:
        print('read', open(top + '/' + name).read())
    except OSError:
        pass
"""


class Raw:
    """A server that answers every connection with what a function of its socket sends."""

    def __init__(self, answer):
        self.answer, self.socket = answer, socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.over, self.threads = threading.Event(), []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.one, args=(client,), daemon=True))
            self.threads[-1].start()

    def one(self, client):
        with client:
            try:
                client.recv(65536)
                self.answer(client, self.over)
            except OSError:
                pass

    def close(self):
        self.over.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for thread in [self.thread, *self.threads]:
            thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def slow_head(client, over):
    client.sendall(HEAD)
    while not over.wait(.5):
        client.sendall(b"X: y\r\n")


def slow_body(client, over):
    client.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
    while not over.wait(.5):
        client.sendall(b"<")


def endless_head(client, over):
    client.sendall(HEAD)
    while not over.is_set():
        client.sendall(b"X: " + b"y" * 60000 + b"\r\n")


def endless_body(client, over):
    client.sendall(HEAD + b"\r\n")
    while not over.is_set():
        client.sendall(b"<a href='x'>y</a>\n" * 4000)


def endless_chunks(client, over):
    client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not over.is_set():
        client.sendall(b"10000\r\n" + b"z" * 65536 + b"\r\n")


def two_lengths(client, _):
    client.sendall(HEAD + b"Content-Length: 5\r\nContent-Length: 500\r\nTransfer-Encoding: chunked\r\n\r\nhello")


def bomb(client, _):
    squeeze = zlib.compressobj(9, wbits=31)
    data = b"".join(squeeze.compress(b"\0" * (1 << 20)) for _ in range(1000)) + squeeze.flush()
    client.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)


ANSWERS = (slow_head, slow_body, endless_head, endless_body, endless_chunks, two_lengths, bomb)


def without_leak_check(text):
    """LeakSanitizer cannot look into the gateway, which is not dumpable, and says so in a build with it."""
    words = "LeakSanitizer has encountered a fatal error", "HINT: For debugging, try", "HINT: LeakSanitizer does not work"
    return "".join(line for line in text.splitlines(keepends=True) if not any(w in line for w in words))


def peak_mib(pid, before):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return next((int(line.split()[1]) >> 10 for line in f if line.startswith("VmHWM:")), before)
    except OSError:
        return before


class Hostile:
    def __init__(self, tap):
        self.tap, self.registry = tap, Registry()
        self.who = self.uid = None

    def run(self, guest, name, code, *settings, url=None):
        """(exit status, stdout, stderr, the host's peak in MiB)"""
        manager, field, path = {"python": ("pip", "pip_index", "/simple"), "node": ("npm", "npm_registry", "/npm"),
                                "r": ("cran", "cran_repo", "/cran")}[guest]
        words = [f"packages.{manager}=*", f"packages.{field}={url or self.registry.url}{path}", *settings]
        identity = {"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid else {}
        p = subprocess.Popen([CORDON, "run", "-g", guest, *(w for s in words for w in ("--set", s)), "--with", name, "-e", code],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                             env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, **identity)
        peak, end, out, err = 0, time.monotonic() + SECONDS, b"", b""
        while time.monotonic() < end:
            peak = peak_mib(p.pid, peak)
            try:
                out, err = p.communicate(timeout=.1)
                break
            except subprocess.TimeoutExpired:
                pass
        else:
            p.kill()
            out, err = p.communicate()
            err += b" it never came back"
        return p.returncode, out.decode(), without_leak_check(err.decode()), peak

    def refuses(self, name, guest, package, wants, *settings, url=None, status=None):
        """Fails before the code runs, with one of these words, and the host stays small."""
        got, out, err, peak = self.run(guest, package, "1", *settings, url=url)
        good = got != 0 and out == "" and any(w in err for w in wants) and (status is None or got == status)
        self.tap.check(good and (peak < HOST_MIB or "asan" in CORDON), f"{self.who}: {name}", got, out, err, f"{peak} MiB")
        self.tap.check(not any(c < " " for c in err.rstrip("\n")), f"{self.who}: {name}: the text is printable", repr(err))


def check_pip(h):
    r, build = h.registry, ("workspace_exec=true", "file_count=2000", "packages.bytes=16M")
    for name, code in (("counts", COUNTS), ("deep", DEEP), ("wide", WIDE), ("things", THINGS % {"secret": os.path.abspath(__file__)})):
        r.pages.pop(f"/simple/{name}/", None)
        r.add_file(name, f"{name}-1.0.tar.gz", registry.built(name, code))
    status, out, err, _ = h.run("python", "counts", "import counts; print(counts.done)", *build)
    h.tap.check(status == 0 and 2000 < int(out) < 25000, f"{h.who}: pip: a build step makes a limited number of files", status, out, err)
    h.refuses("pip: results with long paths", "python", "deep", ["file_count="], *build)
    h.refuses("pip: results with more files than the workspace holds", "python", "wide", ["file_count="], *build)
    status, out, err, _ = h.run("python", "things", LOOK, "workspace_exec=true")
    h.tap.check(status in (0, 1) and "read" not in out and "AssertionError" not in err and "mknod" not in out,
                f"{h.who}: pip: results are files and links that lead nowhere", status, out, err)
    r.add_wheel("wrong", "1.0", {"wrong.py": ""})
    r.pages["/files/wrong-1.0-py3-none-any.whl"] += b"\0"
    h.refuses("pip: a file with another hash than the index says", "python", "wrong", ["hash", "HASH"])
    r.add_file("nowhere", "nowhere-1.0-py3-none-any.whl", b"", "http://169.254.169.254/nowhere-1.0-py3-none-any.whl")
    h.refuses("pip: an index that leads to the address of a cloud's metadata", "python", "nowhere", ["'169.254.169.254:80'"], status=126)
    for answer in ANSWERS:
        server = Raw(answer)
        h.refuses(f"pip: {answer.__name__}", "python", "x", ["packages.timeout_ms", "packages.bytes", "memory_bytes", "cannot be reached", "pip failed"],
                  "packages.timeout_ms=8s", "packages.bytes=16M", url=server.url)
        server.close()


def archive(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, data, more in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for key, value in more.items():
                setattr(member, key, value)
            t.addfile(member, io.BytesIO(data))
    return out.getvalue()


def check_npm(h):
    def add(name, data, **more):
        file = f"/npm/{name}/-/x.tgz"
        h.registry.pages[file] = data
        one = {"name": name, "version": "1.0.0", **more, "dist": {
            "tarball": h.registry.url + file, "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}
        h.registry.pages[f"/npm/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": one}}).encode()

    own = ("package/package.json", b'{"name":"climbs","version":"1.0.0"}', {}), ("package/index.js", b"module.exports = 1", {})
    add("climbs", archive([*own, ("package/../../../evil", b"x", {}), ("/tmp/evil", b"x", {}), ("/home/user/evil", b"x", {}),
                           ("package/link", b"", {"type": tarfile.SYMTYPE, "linkname": os.path.abspath(__file__)}),
                           ("package/hard", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
                           ("package/node", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})]))
    code = "const fs = require('fs'); ['/tmp/evil', '/home/user/evil', 'node_modules/climbs/link', 'node_modules/climbs/hard', " \
        "'node_modules/climbs/node', 'node_modules/evil'].filter((p) => fs.existsSync(p)).join() || 'none'"
    status, out, err, _ = h.run("node", "climbs", code)
    h.tap.check(status != 0 or out == "'none'\n", f"{h.who}: npm: names and links that lead out", status, out, err)
    plain = archive(own)
    add("dots", plain, dependencies={"../../x": "1"}, bin={"../../../../evil": "index.js"})
    h.refuses("npm: names with dots", "node", "dots", ["npm failed"])
    add("clouds", plain, dependencies={"m": "http://169.254.169.254/m.tgz"})
    h.refuses("npm: a dependency at the address of a cloud's metadata", "node", "clouds", ["'169.254.169.254:80'"], status=126)
    add("local", plain, dependencies={"m": f"http://127.0.0.2:{h.registry.port}/m.tgz"})
    h.refuses("npm: a dependency on another loopback address", "node", "local", [f"'127.0.0.2:{h.registry.port}'"], status=126)
    add("wrong", plain)
    h.registry.pages["/npm/wrong/-/x.tgz"] += b"\0"
    h.refuses("npm: a file with another hash than the registry says", "node", "wrong", ["hash"], status=126)
    for answer in (slow_body, endless_body):
        server = Raw(answer)
        h.refuses(f"npm: {answer.__name__}", "node", "x", ["packages.timeout_ms", "packages.bytes", "memory_bytes", "cannot be reached", "npm failed"],
                  "packages.timeout_ms=8s", "packages.bytes=16M", url=server.url)
        server.close()


def check_cran(h):
    configure = "#!/bin/sh\nfor p in %s /etc/evil /usr/lib/evil; do (echo x > $p) 2>/dev/null && echo $p >> ~/R/done; done\n" \
        "cat %s >> ~/R/done 2>/dev/null\nexit 0\n" % (os.path.dirname(os.path.abspath(__file__)) + "/evil", os.path.abspath(__file__))
    code = "system('python3 -c \"import os\nfor i in range(5000): os.makedirs(os.path.expanduser(\\'~/R/wide/\\') + str(i))\"')\nx <- 1\n"
    h.registry.add_cran({"widerr": ("1.0", registry.source("widerr", "1.0", code), ()),
                         "confr": ("1.0", registry.source("confr", "1.0", "x <- 1\n", configure=configure), ())})
    h.refuses("cran: results with more files than the workspace holds", "r", "widerr", ["file_count="], "file_count=2000")
    status, out, err, _ = h.run("r", "confr", "cat(file.exists('~/R/done'), '\\n')", "workspace_exec=true")
    h.tap.check(status != 0 or out == "FALSE \n", f"{h.who}: cran: what a configure script can do", status, out, err)
    server = Raw(slow_body)
    h.refuses("cran: slow_body", "r", "x", ["packages.timeout_ms", "cannot be reached"], "packages.timeout_ms=8s", url=server.url)
    server.close()


def main():
    tap = Tap()
    h = Hostile(tap)
    needs, check = {"pip": (has_pip(), check_pip), "npm": (has_program("node", "npm"), check_npm), "cran": (has_program("R"), check_cran)}[sys.argv[1]]
    try:
        for h.who, h.uid in users():
            if needs:
                check(h)
            else:
                tap.check(True, f"{h.who}: {check.__name__} # SKIP the package manager is not installed")
    finally:
        h.registry.close()
    tap.done()


main()

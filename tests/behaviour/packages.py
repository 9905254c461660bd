#!/usr/bin/python3
"""Packages: what the policy names is installed from the registry that it names, by pip, npm and R, in a sandbox; nothing else
is, and what a package does while it is installed is held. Registries of our own on loopback."""
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from oneshot import Tap, run, users
import registry
from registry import Registry, has_pip, has_program

# Tries the host while a package is installed; what it could do is in the package.
ATTACK = """
import json, os, socket
def tries():
    done = []
    for host, port in (("127.0.0.1", %(canary)d), ("127.0.0.2", %(canary)d), ("localhost", %(canary)d)):
        try:
            socket.create_connection((host, port), 2).send(b"GET /reached HTTP/1.0\\r\\n\\r\\n")
            done.append("connect " + host)
        except OSError:
            pass
    import urllib.request
    for method, url in (("GET", "http://127.0.0.1:%(canary)d/proxied"), ("POST", "%(url)s/published")):
        try:
            urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"})).open(
                urllib.request.Request(url, data=b"x" if method == "POST" else None, method=method), timeout=5)
            done.append(method)
        except OSError:
            pass
    for path in (%(outside)r, "/usr/lib/python3/dist-packages/evil.py", "/etc/evil", "/run/cordon/evil", "/mnt/registry/evil"):
        try:
            open(path, "w").close()
            done.append("write " + path)
        except OSError:
            pass
    try:
        open(%(secret)r).read()
        done.append("read")
    except OSError:
        pass
    if os.path.exists("/home/user/private.txt"):
        done.append("session's files")
    return done
"""
BACKEND = ATTACK + """
import zipfile
def build_wheel(where, *_):
    name = "%(name)s-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(where, name), "w") as z:
        z.writestr("%(name)s.py", "done = " + repr(tries()))
        z.writestr("%(name)s-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: %(name)s\\nVersion: 1.0\\n")
        z.writestr("%(name)s-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr("%(name)s-1.0.dist-info/RECORD", "")
    return name
"""


def identity(uid):
    """Whom to run as. This process has threads, so no code of Python may run between fork and exec."""
    return {"user": uid, "group": uid, "extra_groups": []} if uid else {}


class Canary:
    """A service of the host that no package may reach. It notes every connection."""

    def __init__(self):
        self.reached = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.reached.append(client.recv(100))
            client.close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


class World:
    """What all checks use."""

    def __init__(self, tap):
        self.tap, self.registry, self.canary = tap, Registry(), Canary()
        self.folder = tempfile.mkdtemp(prefix="packages-")
        os.chmod(self.folder, 0o755)
        self.outside = os.path.join(self.folder, "writable", "evil")
        os.mkdir(os.path.dirname(self.outside))
        os.chmod(os.path.dirname(self.outside), 0o777)
        self.secret = os.path.join(self.folder, "secret")
        with open(self.secret, "w", encoding="ascii") as f:
            f.write("secret")
        self.who = self.uid = None

    def close(self):
        self.registry.close()
        self.canary.close()
        shutil.rmtree(self.folder)

    def attack(self, name):
        return {"canary": self.canary.port, "url": self.registry.url, "outside": self.outside, "secret": self.secret, "name": name}

    def run(self, code, names, *settings, guest="python", level="standard", more=()):
        words = ["run", "--level", level, "-g", guest, *(w for s in settings for w in ("--set", s)), *more]
        if names is not None:
            words += ["--with", names]
        status, out, err, _ = run([*words, "-e", code], **identity(self.uid))
        return status, out.decode(), err.decode()

    def gives(self, name, want, code, names, *settings, **more):
        status, out, err = self.run(code, names, *settings, **more)
        self.tap.check(status == 0 and out == want, f"{self.who}: {name}", status, out, err)

    def refuses(self, name, want_status, want, code, names, *settings, **more):
        """Fails before the code runs, with this status and these words. Returns the error's text."""
        status, out, err = self.run(code, names, *settings, **more)
        words = [want] if isinstance(want, str) else want
        self.tap.check(status == want_status and out == "" and all(w in err for w in words), f"{self.who}: {name}", status, out, err)
        return err


def pip_world(w):
    r = w.registry
    r.add_wheel("tiny", "1.0", {"tiny.py": "x = 1\n"})
    r.add_wheel("tiny", "2.0", {"tiny.py": "x = 2\n"})
    r.add_wheel("upper", "1.0", {"upper.py": "import lower\nx = lower.x + 1\n"}, ["lower>=1"])
    r.add_wheel("lower", "1.0", {"lower.py": "import bottom\nx = bottom.x\n"}, ["bottom"])
    r.add_wheel("bottom", "1.0", {"bottom.py": "x = 40\n"})
    r.add_wheel("tool_kit", "1.0", {"tool_kit/__init__.py": "x = 'kit'\n"})
    r.pages["/simple/tool-kit/"] = r.pages["/simple/tool_kit/"]
    r.add_wheel("foreign", "1.0", {"foreign.py": ""}, tag="cp27-cp27m-win32")
    r.add_file("sourced", "sourced-1.0.tar.gz", registry.sdist("sourced", "1.0", BACKEND % w.attack("sourced")))
    r.add_file("elsewhere", "elsewhere-1.0-py3-none-any.whl", b"", f"http://127.0.0.1:{w.canary.port}/elsewhere-1.0-py3-none-any.whl")
    r.add_file("moved", "moved-1.0-py3-none-any.whl", b"")
    r.pages["/files/moved-1.0-py3-none-any.whl"] = ("redirect", f"http://127.0.0.1:{w.canary.port}/moved-1.0-py3-none-any.whl")
    r.add_wheel("climber", "1.0", {"climber.py": "x = 1\n", "../../../../../climbed.py": "x = 1\n"})
    r.add_wheel("bomb", "1.0", {"bomb.bin": b"\0" * (64 << 20)})
    r.add_wheel("ninety", "1.0", {"ninety.py": ""}, ["tiny", "bottom", "upper"])
    r.pages["/simple/silent/"] = "never"


def check_pip(w):
    index = f"packages.pip_index={w.registry.url}/simple"
    every = "packages.pip=*"
    w.gives("pip: a package", "2\n", "import tiny; print(tiny.x)", "tiny", "packages.pip=tiny", index)
    w.gives("pip: in strict, if it is named", "2\n", "import tiny; print(tiny.x)", "tiny", "packages.pip=tiny", index, level="strict")
    w.gives("pip: a version", "1\n", "import tiny; print(tiny.x)", "tiny>=0.5,<2", "packages.pip=tiny", index)
    w.gives("pip: what it depends on comes along", "41\n", "import upper; print(upper.x)", "upper", "packages.pip=upper", index)
    w.gives("pip: another spelling of the name", "kit\n", "import tool_kit; print(tool_kit.x)", "Tool.Kit", "packages.pip=tool-kit", index)
    w.gives("pip: two names, and programs see them too", "2 40\n",
            "import subprocess; print(subprocess.run(['python3', '-c', 'import tiny, bottom; print(tiny.x, bottom.x)'], capture_output=True, text=True).stdout, end='')",
            "tiny,bottom", every, index)
    # Refusals. A remedy is followed to the letter.
    said = w.refuses("pip: a name that the policy does not have", 126, "does not name the package 'tiny'", "1", "tiny", "packages.pip=upper", index)
    remedy = re.search(r"\((packages[^()]*)\)\s*$", said)
    w.gives("pip: and the remedy helps", "2\n", "import tiny; print(tiny.x)", "tiny", "packages.pip=upper", index, remedy[1] if remedy else "")
    for level in ("permissive", "standard", "strict"):
        w.refuses(f"pip: nothing in {level} unless it is named", 126, "packages.pip+=tiny", "1", "tiny", index, level=level)
    w.refuses("pip: no index", 126, "packages.pip_index", "1", "tiny", every)
    for bad in ("-r/etc/passwd", "./tiny", "https://example.com/x.whl", "tiny @ file:///etc", "--index-url=http://x", "", "a b", "tiny;x"):
        w.refuses(f"pip: no package: {bad!r}", 2, "is not a package of pip", "1", bad, every, index)
    w.refuses("pip: a package that is not there", 2, "has no package 'nothing'", "1", "nothing", every, index)
    w.gives("pip: a registry on a port that is exposed", "2\n", "import tiny; print(tiny.x)", "tiny", "packages.pip=tiny", index,
            f"expose={w.registry.port}")
    w.refuses("pip: a version that is not there", 2, "no such version", "1", "tiny==9.9", every, index)
    w.refuses("pip: a wheel for others only", 125, "has no wheel of 'foreign'", "1", "foreign", every, index)
    said = w.refuses("pip: a source package needs a build", 125, "workspace_exec=true", "1", "sourced", every, index)
    with socket.socket() as closed:  # bound, so that nobody else listens there meanwhile
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        w.refuses("pip: an index that cannot be reached", 125, "cannot be reached", "1", "tiny", every, f"packages.pip_index=http://127.0.0.1:{port}/simple")
    w.refuses("pip: too many packages", 2, "packages.count", "1", "ninety", every, index, "packages.count=2")
    w.refuses("pip: too large", 2, "packages.bytes", "1", "bomb", every, index, "packages.bytes=16M")
    w.refuses("pip: no room in the workspace", 2, "fs_bytes", "1", "bomb", every, index, "fs_bytes=8M")
    w.refuses("pip: too slow", 124, "packages.timeout_ms", "1", "silent", every, index, "packages.timeout_ms=3s")
    # Attacks.
    for name in ("elsewhere", "moved"):
        w.refuses(f"pip: an index that leads to another service: {name}", 126, ["packages.pip_index", str(w.canary.port)], "1", name, every, index)
    status, out, err = w.run("import os; print(os.path.exists('/home/user/climbed.py'), os.listdir('/home/user'))", "climber", every, index)
    w.tap.check(status != 0 or out.startswith("False"), f"{w.who}: pip: a wheel with .. in it", status, out, err)
    w.gives("pip: what a build step can do", "[]\n", "import sourced; print(sourced.done)", "sourced", every, index, "workspace_exec=true")
    w.gives("pip: the code itself has no network", "no\n",
            f"import socket, tiny\ntry:\n  socket.create_connection(('127.0.0.1', {w.registry.port}), 2); print('yes')\nexcept OSError: print('no')",
            "tiny", every, index)
    w.tap.check(not w.canary.reached and not os.path.exists(w.outside), f"{w.who}: pip: nothing of the host was reached", w.canary.reached)


def check_pip_offline(w):
    folder = os.path.join(w.folder, "wheels")
    os.makedirs(folder, exist_ok=True)
    for name, files, needs in (("tiny", {"tiny.py": "x = 3\n"}, []), ("upper", {"upper.py": "import tiny\nx = tiny.x\n"}, ["tiny"])):
        with open(os.path.join(folder, f"{name}-3.0-py3-none-any.whl"), "wb") as f:
            f.write(registry.wheel(name, "3.0", files, needs))
    with open(os.path.join(folder, "tiny-3.0-py3-none-any.whl"), "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    before = len(w.registry.seen)
    w.gives("pip: from a directory", "3\n", "import upper; print(upper.x)", "upper", "packages.pip=upper", f"packages.pip_index={folder}")
    w.refuses("pip: not in the directory", 2, "has no package 'other'", "1", "other", "packages.pip=*", f"packages.pip_index={folder}")
    lock = os.path.join(w.folder, "requirements.txt")
    with open(lock, "w", encoding="ascii") as f:
        f.write(f"tiny==3.0 --hash=sha256:{digest}\n")
    w.gives("pip: from a lockfile", "3\n", "import tiny; print(tiny.x)", "requirements.txt", f"packages.pip_lock={lock}", f"packages.pip_index={folder}")
    w.refuses("pip: a lockfile that the policy does not name", 126, "packages.pip_lock", "1", "requirements.txt", "packages.pip=*", f"packages.pip_index={folder}")
    with open(lock, "w", encoding="ascii") as f:
        f.write(f"tiny==3.0 --hash=sha256:{'0' * 64}\n")
    w.refuses("pip: a lockfile with another hash", 126, "hash", "1", "requirements.txt", f"packages.pip_lock={lock}", f"packages.pip_index={folder}")
    w.tap.check(len(w.registry.seen) == before, f"{w.who}: pip: offline is offline", w.registry.seen[before:])


def npm_world(w):
    r = w.registry
    attack = "const fs = require('fs'), net = require('net'); const done = [];\n" \
        "for (const p of [%r, '/usr/lib/evil', '/etc/evil']) try { fs.writeFileSync(p, ''); done.push(p) } catch {}\n" \
        "try { fs.readFileSync(%r); done.push('read') } catch {}\n" \
        "const s = net.connect(%d, '127.0.0.1', () => { done.push('connect'); s.destroy() });\n" \
        "s.on('error', () => {}); s.on('close', () => fs.writeFileSync('done.json', JSON.stringify(done)));\n" % (w.outside, w.secret, w.canary.port)
    r.add_npm("tinyjs", "1.0.0", {"index.js": "module.exports = 5\n"})
    r.add_npm("upperjs", "1.0.0", {"index.js": "module.exports = require('tinyjs') + 1\n"}, dependencies={"tinyjs": "^1.0.0"})
    r.add_npm("scripted", "1.0.0", {"index.js": "try { module.exports = require('./done.json') } catch { module.exports = 'none' }\n", "attack.js": attack},
              scripts={"postinstall": "node attack.js"})
    r.add_npm("movedjs", "1.0.0", {"index.js": ""}, tarball_at=f"http://127.0.0.1:{w.canary.port}/movedjs.tgz")
    # Not so small that npm itself sees the trick.
    r.add_npm("bombjs", "1.0.0", {"index.js": "", "big": b"".join(os.urandom(4096) + b"\0" * (1 << 20) for _ in range(64))})


def check_npm(w):
    place, every = f"packages.npm_registry={w.registry.url}/npm", "packages.npm=*"
    node = {"guest": "node"}
    w.gives("npm: a package", "5\n", "require('tinyjs')", "tinyjs", "packages.npm=tinyjs", place, **node)
    w.gives("npm: what it depends on, in strict", "6\n", "require('upperjs')", "upperjs@^1.0.0", "packages.npm=upperjs", place, level="strict", **node)
    w.gives("npm: import", "5\n", "(await import('tinyjs')).default", "tinyjs", "packages.npm=tinyjs", place, **node)
    said = w.refuses("npm: a name that the policy does not have", 126, "packages.npm+=tinyjs", "1", "tinyjs", "packages.npm=upperjs", place, **node)
    remedy = re.search(r"\((packages[^()]*)\)\s*$", said)
    w.gives("npm: and the remedy helps", "5\n", "require('tinyjs')", "tinyjs", place, remedy[1] if remedy else "", **node)
    for bad in ("https://example.com/x.tgz", "../x", "x@npm:tinyjs", "x@..", "x@y.tgz", "user/repo", "--registry=http://x", "x@file:/etc"):
        w.refuses(f"npm: no package: {bad!r}", 2, "is not a package of npm", "1", bad, every, place, **node)
    w.refuses("npm: a package that is not there", 2, "has no package 'nothing'", "1", "nothing", every, place, **node)
    w.refuses("npm: a version that is not there", 2, "no such version", "1", "tinyjs@9.9.9", every, place, **node)
    w.refuses("npm: too many packages", 2, "packages.count", "1", "upperjs", every, place, "packages.count=1", **node)
    w.refuses("npm: too large", 2, "packages.bytes", "1", "bombjs", every, place, "packages.bytes=16M", **node)
    w.refuses("npm: a registry that leads to another service", 126, "packages.npm_registry", "1", "movedjs", every, place, **node)
    w.gives("npm: scripts do not run", "none\n", "console.log(require('scripted'))", "scripted", every, place, **node)
    w.gives("npm: what a script can do", "[]\n", "console.log(JSON.stringify(require('scripted')))", "scripted", every, place, "workspace_exec=true", **node)
    w.tap.check(not w.canary.reached and not os.path.exists(w.outside), f"{w.who}: npm: nothing of the host was reached", w.canary.reached)
    folder = os.path.join(w.folder, "tarballs")
    os.makedirs(folder, exist_ok=True)
    for name in ("tinyjs", "upperjs"):
        with open(os.path.join(folder, f"{name}-1.0.0.tgz"), "wb") as f:
            f.write(w.registry.pages[f"/npm/{name}/-/{name}-1.0.0.tgz"])
    before = len(w.registry.seen)
    w.gives("npm: from a directory", "6\n", "require('upperjs')", "upperjs", "packages.npm=upperjs", f"packages.npm_registry={folder}", **node)
    w.refuses("npm: not in the directory", 2, "has no package 'other'", "1", "other", every, f"packages.npm_registry={folder}", **node)
    with open(os.path.join(folder, "tinyjs-2.0.0.tgz"), "wb") as f:
        f.write(registry.npm("tinyjs", "2.0.0", {"index.js": "module.exports = 7\n"}))
    w.gives("npm: the newest of a directory", "7\n", "require('tinyjs')", "tinyjs", every, f"packages.npm_registry={folder}", **node)
    w.gives("npm: the version that was asked for", "5\n", "require('tinyjs')", "tinyjs@^1.0.0", every, f"packages.npm_registry={folder}", **node)
    w.gives("npm: the version that a package needs", "6\n", "require('upperjs')", "upperjs", every, f"packages.npm_registry={folder}", **node)
    w.refuses("npm: a version that the directory does not have", 2, "no such version", "1", "tinyjs@9.9.9", every, f"packages.npm_registry={folder}", **node)
    lock = os.path.join(w.folder, "package-lock.json")
    packages = json.loads(w.registry.pages["/npm/tinyjs"])["versions"]["1.0.0"]["dist"]

    def write(integrity):
        with open(lock, "w", encoding="ascii") as f:
            json.dump({"name": "work", "lockfileVersion": 3, "requires": True, "packages": {
                "": {"name": "work", "dependencies": {"tinyjs": "^1.0.0"}},
                "node_modules/tinyjs": {"version": "1.0.0", "resolved": "file:/mnt/registry/tinyjs-1.0.0.tgz", "integrity": integrity}}}, f)
    write(packages["integrity"])
    w.gives("npm: from a lockfile", "5\n", "require('tinyjs')", "package-lock.json", f"packages.npm_lock={lock}", f"packages.npm_registry={folder}", **node)
    w.gives("npm: a lockfile and a name", "11\n", "require('tinyjs') + require('upperjs')", "package-lock.json,upperjs", every,
            f"packages.npm_lock={lock}", f"packages.npm_registry={folder}", **node)
    write("sha512-" + "A" * 86 + "==")
    w.refuses("npm: a lockfile with another hash", 126, "hash", "1", "package-lock.json", f"packages.npm_lock={lock}", f"packages.npm_registry={folder}", **node)
    w.tap.check(len(w.registry.seen) == before, f"{w.who}: npm: offline is offline", w.registry.seen[before:])


def cran_world(w):
    attack = "done <- character()\nfor (p in c(%r, '/usr/lib/evil', '/etc/evil')) tryCatch({ writeLines('', p); done <- c(done, p) }, error = identity, warning = identity)\n" \
        "tryCatch({ readLines(%r); done <- c(done, 'read') }, error = identity, warning = identity)\n" \
        "tryCatch({ close(socketConnection('127.0.0.1', %d, open = 'r+', timeout = 2)); done <- c(done, 'connect') }, error = identity, warning = identity)\n" \
        % (w.outside, w.secret, w.canary.port)
    w.packages = {"tinyr": ("1.0", registry.source("tinyr", "1.0", "seven <- function() 7\n"), ()),
                  "upperr": ("1.0", registry.source("upperr", "1.0", "eight <- function() tinyr::seven() + 1\n", ["tinyr"]), ["tinyr"]),
                  "attackr": ("1.0", registry.source("attackr", "1.0", attack), ())}
    w.registry.add_cran(w.packages)


def check_cran(w):
    place, every = f"packages.cran_repo={w.registry.url}/cran", "packages.cran=*"
    r = {"guest": "r"}
    w.gives("cran: a package and what it depends on", "[1] 8\n", "upperr::eight()", "upperr", "packages.cran=upperr", place, **r)
    w.gives("cran: in strict", "[1] 7\n", "library(tinyr); seven()", "tinyr", "packages.cran=tinyr", place, level="strict", **r)
    said = w.refuses("cran: a name that the policy does not have", 126, "packages.cran+=tinyr", "1", "tinyr", "packages.cran=upperr", place, **r)
    remedy = re.search(r"\((packages[^()]*)\)\s*$", said)
    w.gives("cran: and the remedy helps", "[1] 7\n", "tinyr::seven()", "tinyr", place, remedy[1] if remedy else "", **r)
    for bad in ("http://example.com/x.tar.gz", "../x", "tinyr@1.0", "-x"):
        w.refuses(f"cran: no package: {bad!r}", 2, "is not a package of cran", "1", bad, every, place, **r)
    w.refuses("cran: a package that is not there", 2, "has no package 'nothing'", "1", "nothing", every, place, **r)
    w.refuses("cran: too many packages", 2, "packages.count", "1", "upperr", every, place, "packages.count=1", **r)
    with socket.socket() as closed:  # bound, so that nobody else listens there meanwhile
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        w.refuses("cran: a repository that cannot be reached", 125, "cannot be reached", "1", "tinyr", every, f"packages.cran_repo=http://127.0.0.1:{port}/cran", **r)
    w.gives("cran: what a package can do while it is built", "character(0)\n", "attackr::done", "attackr", every, place, **r)
    w.tap.check(not w.canary.reached and not os.path.exists(w.outside), f"{w.who}: cran: nothing of the host was reached", w.canary.reached)
    folder = os.path.join(w.folder, "cran")
    registry.fill_cran(folder, w.packages)
    before = len(w.registry.seen)
    w.gives("cran: from a directory", "[1] 8\n", "upperr::eight()", "upperr", "packages.cran=upperr", f"packages.cran_repo={folder}", **r)
    w.tap.check(len(w.registry.seen) == before, f"{w.who}: cran: offline is offline", w.registry.seen[before:])


def check_bases(w):
    """--venv: what the host has installed, read-only."""
    project = os.path.join(w.folder, "project")
    os.makedirs(os.path.join(project, "node_modules", "local"), exist_ok=True)
    with open(os.path.join(project, "node_modules", "local", "index.js"), "w", encoding="ascii") as f:
        f.write("module.exports = 9\n")
    w.gives("--venv with node_modules", "9\n", "require('local')", None, guest="node", more=["--venv", project])
    w.refuses("--venv without either", 2, "neither bin/python nor node_modules", "1", None, more=["--venv", w.folder])
    w.refuses("--venv that is not there", 2, "--venv", "1", None, more=["--venv", w.folder + "/none"])
    venv = os.path.join(w.folder, "venv")
    if not os.path.exists(venv):
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
        site = subprocess.run([venv + "/bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True,
                              capture_output=True, text=True).stdout.strip()
        with open(os.path.join(site, "based.py"), "w", encoding="ascii") as f:
            f.write("x = 'base'\n")
    w.gives("--venv with a virtual environment", "base\n", "import based; print(based.x)", None, more=["--venv", venv])
    w.gives("a package on top of a virtual environment", "base 2\n", "import based, tiny; print(based.x, tiny.x)", "tiny", "packages.pip=tiny",
            f"packages.pip_index={w.registry.url}/simple", more=["--venv", venv])


def check_controls(w):
    """What the attacks try works outside the wall."""
    # A process of its own: this one has threads, and a fork of it could hang.
    p = subprocess.run(["/usr/bin/python3", "-c", ATTACK % w.attack("control") + "print(json.dumps(tries()))"], cwd="/",
                       stdout=subprocess.PIPE, timeout=100, check=False, **identity(w.uid))
    done = json.loads(p.stdout or "[]")
    w.tap.check({"connect 127.0.0.1", "write " + w.outside, "read"} <= set(done), f"{w.who}: outside the wall the attack works", done)
    os.unlink(w.outside)
    w.canary.reached.clear()


def main():
    tap = Tap()
    w = World(tap)
    try:
        pip_world(w)
        npm_world(w)
        cran_world(w)
        needs, checks = {"pip": (has_pip(), (check_pip, check_pip_offline, check_bases)), "npm": (has_program("node", "npm"), (check_npm,)),
                         "cran": (has_program("R"), (check_cran,))}[sys.argv[1]]
        for w.who, w.uid in users():
            check_controls(w)
            for check in checks:
                if needs:
                    check(w)
                else:
                    tap.check(True, f"{w.who}: {check.__name__} # SKIP the package manager is not installed")
    finally:
        w.close()
    tap.done()


main()

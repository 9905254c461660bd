"""Registries of our own on loopback, for the tests of packages: an index of wheels, a registry of npm, a repository of R. Their
packages are made here, and are tiny."""

import base64
import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import tarfile
import threading
import zipfile

ANY = "py3-none-any"


def wheel(name, version, files, requires=(), tag=ANY):
    """The bytes of a wheel."""
    info = f"{name}-{version}.dist-info"
    every = dict(files)
    every[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    every[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
    every[f"{info}/RECORD"] = "".join(f"{n},,\n" for n in [*every, f"{info}/RECORD"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for n, text in every.items():
            z.writestr(n, text)
    return out.getvalue()


def tarball(folder, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            t.addfile(member, io.BytesIO(data))
    return out.getvalue()


def sdist(name, version, backend):
    """A source package with a build backend of its own: it needs no other package to be built."""
    return tarball(f"{name}-{version}", {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
        "backend.py": backend})


BUILD = """
import os, zipfile
def build_wheel(where, *_):
    name = "%(name)s-1.0-py3-none-any.whl"
    done = tries()
    with zipfile.ZipFile(os.path.join(where, name), "w") as z:
        z.writestr("%(name)s.py", "done = " + repr(done))
        z.writestr("%(name)s-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: %(name)s\\nVersion: 1.0\\n")
        z.writestr("%(name)s-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr("%(name)s-1.0.dist-info/RECORD", "")
    return name
"""


def built(name, code):
    """A source package whose build step calls tries() of this code; what that returns is `done` in the module."""
    return sdist(name, "1.0", code + BUILD % {"name": name})


def npm(name, version, files, **more):
    return tarball("package", {"package.json": json.dumps({"name": name, "version": version, "main": "index.js", **more}), **files})


def source(name, version, code, imports=(), configure=None):
    """A source package of R."""
    files = {"DESCRIPTION": f"Package: {name}\nVersion: {version}\nTitle: A Test\nDescription: A test.\nLicense: GPL-2\n"
                            "Author: Nobody\nMaintainer: Nobody <nobody@example.com>\nBuilt-By: test\n" +
                            (f"Imports: {', '.join(imports)}\n" if imports else ""),
             "NAMESPACE": 'exportPattern("^[a-z]")\n', "R/code.R": code}
    if configure:
        files["configure"] = configure
    return tarball(name, files)


def fill_cran(folder, packages):
    """src/contrib with its list: {name: (version, bytes, imports)}."""
    contrib = os.path.join(folder, "src", "contrib")
    os.makedirs(contrib, exist_ok=True)
    with open(os.path.join(contrib, "PACKAGES"), "w", encoding="ascii") as f:
        for name, (version, data, imports) in packages.items():
            f.write(f"Package: {name}\nVersion: {version}\n" + (f"Imports: {', '.join(imports)}\n" if imports else "") +
                    f"MD5sum: {hashlib.md5(data).hexdigest()}\nNeedsCompilation: no\n\n")
            with open(os.path.join(contrib, f"{name}_{version}.tar.gz"), "wb") as p:
                p.write(data)


class Registry:
    """One server for all three. /simple is an index, /npm a registry, /cran a repository; `pages` has every answer: bytes, or
    ("redirect", URL), or "never" for one that never comes."""

    def __init__(self):
        self.pages, self.seen = {}, []
        self.over = threading.Event()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.seen.append(self.path)
                page = registry.pages.get(self.path.split("?")[0])
                if page == "never":
                    registry.over.wait()
                    return
                if isinstance(page, tuple):
                    self.send_response(302)
                    self.send_header("Location", page[1])
                    page = b""
                else:
                    self.send_response(200 if page is not None else 404)
                    self.send_header("Content-Type", "application/json" if self.path.startswith("/npm/") and not self.path.endswith(".tgz") else "text/html")
                page = page or b""
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(page)

            do_HEAD = do_GET

            def do_POST(self):
                registry.seen.append("POST " + self.path)
                self.send_error(405)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def add_file(self, project, name, data, link=None):
        """A file of an index, and its line on the project's page."""
        self.pages[f"/files/{name}"] = data
        page = self.pages.get(f"/simple/{project}/", b"")
        digest = f"#sha256={hashlib.sha256(data).hexdigest()}" if data else ""
        self.pages[f"/simple/{project}/"] = page + f'<a href="{link or "/files/" + name}{digest}">{name}</a>\n'.encode()

    def add_wheel(self, name, version, files, requires=(), tag=ANY):
        data = wheel(name, version, files, requires, tag)
        self.add_file(name, f"{name}-{version}-{tag}.whl", data)
        return data

    def add_npm(self, name, version, files, tarball_at=None, **more):
        data = npm(name, version, files, **more)
        file = f"{name}-{version}.tgz"
        self.pages[f"/npm/{name}/-/{file}"] = data
        one = {"name": name, "version": version, "main": "index.js", **more,
               "dist": {"tarball": tarball_at or f"{self.url}/npm/{name}/-/{file}",
                        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}
        if more.get("scripts"):
            one["hasInstallScript"] = True
        self.pages[f"/npm/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: one}}).encode()
        return data

    def add_cran(self, packages):
        listed = b""
        for name, (version, data, imports) in packages.items():
            listed += (f"Package: {name}\nVersion: {version}\n" + (f"Imports: {', '.join(imports)}\n" if imports else "") +
                       "NeedsCompilation: no\n\n").encode()
            self.pages[f"/cran/src/contrib/{name}_{version}.tar.gz"] = data
        self.pages["/cran/src/contrib/PACKAGES"] = listed


def has_program(*names):
    return all(shutil.which(n, path="/usr/bin:/bin") for n in names)


def has_pip():
    return subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0

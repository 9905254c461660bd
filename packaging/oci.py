"""An OCI image layout, made without a daemon: files of this machine's Debian packages, as they were installed, and the program.

It has two layers: Debian's files, which stay the same between releases, and ours. Every file of Debian is compared with its package's
sum, so that the bytes depend on the packages' versions and not on this machine."""

import glob
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import time

from . import archive, product
from .product import Failure, run

# What `cordon serve` and guests of Python and sh need; what these depend on comes along.
PACKAGES = ("base-files", "bash", "ca-certificates", "coreutils", "dash", "findutils", "grep", "gzip", "libc6", "python3", "sed", "tar")
# What is for installing packages, not for running them.
LEFT_OUT = {"adduser", "debconf", "debianutils", "dpkg", "gcc-12-base", "init-system-helpers", "install-info", "media-types", "openssl", "passwd",
            "perl-base", "readline-common", "tzdata", "netbase", "libc-bin", "libdebconfclient0"}
UNREAD = re.compile(r"^/usr/share/(doc(?!/[^/]+/copyright$)|man|info|locale|lintian|bug|menu|bash-completion|applications|pixmaps|doc-base|perl5)(/|$)")
MERGED = ("bin", "sbin", "lib", "lib64")
UID = 1000
ACCOUNT = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/bash\ncordon:x:{UID}:{UID}:Cordon:/home/cordon:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": f"root:x:0:\ncordon:x:{UID}:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
OWN = ("home/cordon", "var/lib/cordon-serve")  # of the image's user
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


def closure(names=PACKAGES):
    """The packages and what they depend on, of those that are installed here."""
    found, wanted = set(), list(names)
    while wanted:
        name = wanted.pop()
        if name in found or name in LEFT_OUT:
            continue
        try:
            said = run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}|${Pre-Depends}, ${Depends}", name])
        except Failure as error:
            if name in names:
                raise Failure(f"the image needs the package {name}: {error}") from error
            continue  # provided by another package of the same alternative
        status, depends = said.split("|", 1)
        if not status.startswith("ii"):
            continue
        found.add(name)
        wanted += [re.split(r"[ (:]", word.strip())[0] for part in depends.split(",") for word in part.split("|") if word.strip()]
    return sorted(found)


def info_of(package, suffix):
    arch = run(["dpkg", "--print-architecture"]).strip()
    for name in (f"{package}:{arch}", package):
        path = f"/var/lib/dpkg/info/{name}.{suffix}"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read().splitlines()
    return []


def place_of(path):
    """Where a file of a package is in the image: /bin is a link to /usr/bin."""
    first = path.split("/")[1]
    return f"usr{path}" if first in MERGED else path.lstrip("/")


def take_package(package, top):
    """Copies the files of a package, without settings: those may be this machine's own."""
    sums = {"/" + name: value for value, name in (line.split(None, 1) for line in info_of(package, "md5sums"))}
    for path in info_of(package, "list"):
        to = os.path.join(top, place_of(path))
        if UNREAD.match(path) or path.startswith("/etc") or path in ("/.", *(f"/{name}" for name in MERGED)):
            continue
        if os.path.islink(path):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.lexists(to):
                os.symlink(os.readlink(path), to)
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                data = file.read()
            if hashlib.md5(data, usedforsecurity=False).hexdigest() != sums.get(path):
                raise Failure(f"{path} is not as {package} has it")
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as file:
                file.write(data)
            os.chmod(to, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)


def fill_debian(top):
    for name in MERGED:
        os.makedirs(os.path.join(top, "usr", name))
        os.symlink(f"usr/{name}", os.path.join(top, name))
    for package in closure():
        take_package(package, top)
    for name in ("dev", "proc", "sys", "run", "tmp", "root", *OWN):
        os.makedirs(os.path.join(top, name), exist_ok=True)
    for name, text in ACCOUNT.items():
        write(os.path.join(top, name), text)
    authorities = sorted(glob.glob(os.path.join(top, "usr/share/ca-certificates/**/*.crt"), recursive=True))
    write(os.path.join(top, "etc/ssl/certs/ca-certificates.crt"), "".join(product.text_of(path) for path in authorities))


def fill_own(top, portable_top):
    shutil.copytree(portable_top, os.path.join(top, "usr/libexec/cordon"))
    os.makedirs(os.path.join(top, "usr/bin"))
    os.rename(os.path.join(top, "usr/libexec/cordon/cordon"), os.path.join(top, "usr/bin/cordon"))
    os.makedirs(os.path.join(top, "usr/share/doc"))
    os.rename(os.path.join(top, "usr/libexec/cordon/licenses"), os.path.join(top, "usr/share/doc/cordon"))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def layer(top):
    """The folder as an uncompressed archive."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, inside in archive.walk(top):
            if not inside:
                continue
            info = archive.entry(path, inside)
            info.mode = 0o1777 if inside == "tmp" else info.mode
            info.uname = info.gname = ""
            if inside in OWN:
                info.uid = info.gid = UID
            if info.isreg():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return data.getvalue()


class Layout:
    """What goes into the layout's archive: {name: bytes}."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def add(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def write(self, path):
        with tarfile.open(path, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(self.files):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.mode = len(self.files[name]), product.epoch(), 0o644
                tar.addfile(info, io.BytesIO(self.files[name]))


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def config(diff_ids, names):
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(product.epoch()))
    return {"architecture": ARCH[os.uname().machine], "os": "linux", "created": when,
            "config": {"User": f"{UID}:{UID}", "WorkingDir": "/home/cordon", "Env": ["PATH=/usr/bin:/bin", "HOME=/home/cordon", "LANG=C.UTF-8"],
                       "Entrypoint": ["/usr/bin/cordon"], "Cmd": ["help"],
                       "Labels": {"org.opencontainers.image.title": "cordon", "org.opencontainers.image.version": product.version(),
                                  "org.opencontainers.image.licenses": "Apache-2.0"}},
            "rootfs": {"type": "layers", "diff_ids": diff_ids}, "history": [{"created": when, "created_by": name} for name in names]}


def make(portable_top, out, work):
    layout, layers, diff_ids = Layout(), [], []
    steps = {"files of Debian packages": fill_debian, "cordon": lambda top: fill_own(top, portable_top)}
    for at, fill in enumerate(steps.values()):
        top = os.path.join(work, "oci", str(at))
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(top)
        fill(top)
        data = layer(top)
        diff_ids.append(f"sha256:{hashlib.sha256(data).hexdigest()}")
        layers.append(layout.add(archive.gzip_bytes(data), "layer.v1.tar+gzip"))
    about = layout.add(text(config(diff_ids, list(steps))), "config.v1+json")
    manifest = layout.add(text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": about, "layers": layers}),
                          "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": product.version()}
    manifest["platform"] = {"architecture": ARCH[os.uname().machine], "os": "linux"}
    layout.files["index.json"] = text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]})
    path = os.path.join(out, f"cordon-{product.version()}-oci.tar")
    layout.write(path)
    return [path]

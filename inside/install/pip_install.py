# pip_install.py - installs packages with pip, in the sandbox of one installation (docs/packages.md). The host sends it as
# code, with `request`; its value says what happened. The host believes none of it: it counts and copies the files itself.
import glob
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request


def find_pip():
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    try:
        import ensurepip
        beside = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
    except ImportError:
        beside = "/usr/share/python-wheels"
    for folder in (beside, "/usr/share/python-wheels"):
        wheels = sorted(glob.glob(os.path.join(folder, "pip-*.whl")))
        if wheels:
            return [sys.executable, os.path.join(wheels[-1], "pip")]
    return None


def options(request):
    """Where the packages come from, and where they go."""
    yield from ("--no-input", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar=off", "--no-color")
    yield from ("--no-warn-script-location", "--retries=1", "--timeout=20")
    if os.environ.get("SSL_CERT_FILE") and os.path.getsize(os.environ["SSL_CERT_FILE"]):
        yield "--cert=" + os.environ["SSL_CERT_FILE"]
    if request["folder"]:
        yield from ("--no-index", "--find-links=" + request["folder"])
    elif request["url"]:
        yield "--index-url=" + request["url"]
        for host in request["plain"]:
            yield "--trusted-host=" + host
    else:
        yield "--no-index"
    if sys.prefix != sys.base_prefix:
        yield "--prefix=" + os.path.expanduser("~/.local")
        return
    yield "--user"
    import sysconfig
    if os.path.exists(os.path.join(sysconfig.get_path("stdlib", sysconfig.get_default_scheme()
                                                      if hasattr(sysconfig, "get_default_scheme") else None), "EXTERNALLY-MANAGED")):
        yield "--break-system-packages"


def canonical(name):
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9_.+-]*", name)[0]).lower()


def look(request, name):
    """Why a package could not be found: the index is asked for it once more."""
    if request["folder"]:
        found = any(canonical(f.split("-")[0]) == name or canonical(re.sub(r"-[0-9].*", "", f)) == name for f in os.listdir(request["folder"]))
        return "no_wheel" if found else "not_found"
    if not request["url"]:
        return "not_found"
    try:
        with urllib.request.urlopen(request["url"].rstrip("/") + "/" + name + "/", timeout=20) as r:
            return "no_wheel" if r.read(1 << 20).strip() else "not_found"
    except urllib.error.HTTPError as e:
        return {404: "not_found", 403: "denied", 410: "not_found"}.get(e.code, "unreachable")
    except OSError:
        return "unreachable"


def explain(request, text):
    """The status for what pip has printed, and the package that it is about."""
    if "No space left on device" in text or "File too large" in text or "413 Client Error" in text:
        return "full", ""
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in text or "--require-hashes mode" in text:
        return "mismatch", ""
    m = re.search(r"No matching distribution found for ([^\s(]+)|satisfies the requirement ([^\s(]+)", text)
    if m:
        name = canonical(m[1] or m[2])
        other = re.search(r"\(from versions: (?!none)[^)]", text)  # there are wheels, of other versions
        return "no_version" if other else look(request, name), name
    if re.search(r"Retrying \(Retry|Connection refused|Max retries exceeded|ProxyError|ConnectionError|Read timed out", text):
        return "unreachable", ""
    return "failed", ""


def site():
    return glob.glob(os.path.expanduser("~/.local/lib/python3.*/site-packages"))


def installed():
    found = {}
    for folder in site():
        for info in glob.glob(os.path.join(folder, "*.dist-info")):
            name, _, version = os.path.basename(info)[:-len(".dist-info")].partition("-")
            found[name] = version
    return found


def last(text):
    lines = [line for line in text.splitlines() if line.startswith("ERROR")] or text.splitlines()[-3:]
    return " ".join(lines)[-500:]


def run(request):
    pip = find_pip()
    if not pip:
        return {"status": "missing", "detail": "pip (Debian packages: python3-pip, python3-venv)"}
    what = ["--require-hashes", "-r", request["lock"]] if request["lock"] else []
    text = ""
    # Wheels first: they need no code to run.
    for how in (["--only-binary=:all:"], ["--prefer-binary"]) if request["build"] else (["--only-binary=:all:"],):
        shutil.rmtree(os.path.expanduser("~/.local"), ignore_errors=True)
        p = subprocess.run([*pip, "install", *options(request), *how, *what, *request["names"]],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = p.stdout.decode("utf-8", "replace")
        print(text, end="")
        if p.returncode == 0:
            return {"status": "ok", "packages": installed()}
        status, name = explain(request, text)
        if status != "no_wheel":
            break
    return {"status": status, "name": name, "detail": last(text)}


run(request)  # noqa: F821

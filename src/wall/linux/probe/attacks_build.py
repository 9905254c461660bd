"""Attacks by build steps of packages (build_*) and by forged binary columns. The build puts this text before attacks.py, whose
functions it uses."""
import mmap
import os
import sys
import time


def forge_columns(columns, stays_mapped):
    """Answers for the guest, with these columns in a file of 128 bytes."""
    import json
    f = sys._getframe()
    while "m" not in f.f_locals or not hasattr(f.f_locals.get("self"), "wire"):
        f = f.f_back
    ident = f.f_locals["m"]["id"]
    fd = f.f_locals["self"].wire.buffer(ident, 128)
    if stays_mapped:
        kept.append(mmap.mmap(fd, 128))
    table = {"type": "result", "id": ident, "ok": True, "value": 1, "buffer": {"bytes": 128, "columns": columns}}
    os.write(3, json.dumps(table, separators=(",", ":")).encode() + b"\n")
    time.sleep(60)


def attack_py_columns_mapped(bait):
    """keep the file of the binary columns mapped"""
    if bait.get("control"):
        fd = os.memfd_create("columns")
        os.ftruncate(fd, 128)
        page = mmap.mmap(fd, 128)
        checked = os.pread(fd, 1, 0)
        page[0] = 7
        return must(os.pread(fd, 1, 0) != checked)
    forge_columns([{"type": "bool8", "count": 1, "values": 0}], True)


def attack_py_columns_overlap(bait):
    """a table whose numbers overflow"""
    if bait.get("control"):
        return must((2 ** 61 * 8) % 2 ** 64 < 128)
    forge_columns([{"type": "float64", "count": 2 ** 61, "values": 0}, {"type": "int8", "count": 128, "values": 0}], False)


def attack_build_host_file(bait):
    attack_py_host_file(bait)


def attack_build_session_file(bait):
    with open(bait["file"] if bait.get("control") else "/home/user/cordon-private", encoding="utf-8") as f:
        must(bait["secret"] in f.read())


def fetch(url, proxies, data=None):
    import urllib.request
    for name in "no_proxy", "NO_PROXY":  # it would keep this from asking the gateway for an address of loopback
        os.environ.pop(name, None)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))
    with opener.open(urllib.request.Request(url, data=data), timeout=10) as answer:
        return answer.read(100)


def fetch_somehow(bait, url, data=None):
    """Directly, and through the gateway, which carries requests to the registry for this very code."""
    why = Refused("no way")
    for proxies in ({},) if bait.get("control") else ({}, {"http": "http://127.0.0.1:3128"}):
        try:
            return must(fetch(url, proxies, data) == b"reached")
        except OSError as error:
            why = Refused(str(error)[:50])
    raise why


def attack_build_connect(bait):
    must(fetch(bait["elsewhere"], {}) == b"reached")


def attack_build_proxy(bait):
    if not bait.get("control") and b"href" not in fetch(bait["registry"] + "/simple/cordonprobe/", {"http": "http://127.0.0.1:3128"}):
        raise RuntimeError("the gateway does not carry what it should")
    fetch_somehow(bait, bait["elsewhere"])


def attack_build_redirect(bait):
    fetch_somehow(bait, bait["registry"] + "/elsewhere")


def attack_build_publish(bait):
    fetch_somehow(bait, bait["registry"] + "/simple", b"something")


def attack_build_survive(bait):
    attack_py_survive(bait)


def attack_build_bytes(bait):
    path = os.environ.get("TMPDIR", "/tmp") + f"/cordon-bytes.{os.getpid()}"
    try:
        with open(path, "wb") as f:
            for _ in range(48):
                f.write(b"x" * (1 << 20))
    finally:
        os.unlink(path)


def attack_build_files(bait):
    import shutil
    folder = os.environ.get("TMPDIR", "/tmp") + f"/cordon-files.{os.getpid()}"
    os.mkdir(folder)
    try:
        for i in range(20000):
            os.mkdir(f"{folder}/{i}")
    finally:
        shutil.rmtree(folder)


def common_places(bait):
    folders = dict.fromkeys([os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm", *map(os.path.expanduser, ("~/.cache", "~/.local"))])
    return [os.path.join(folder, "cordon-left-" + bait["secret"]) for folder in folders if folder.startswith("/")]


def attack_build_cache(bait):
    left = 0
    for path in common_places(bait):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii"):
                left += 1
        except OSError:
            pass
    must(left)


def sibling_build_cache(bait):
    found = [path for path in common_places(bait) if os.path.exists(path)]
    for path in found:
        os.unlink(path)
    must(found)

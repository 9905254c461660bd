#!/usr/bin/python3
"""Interpreters other than those of /usr/bin, in any directory: virtual environments, pyenv builds, Nodes; a shell there is refused (TAP)."""

import glob
import json
import os
import shutil
import subprocess
import tempfile

from oneshot import Tap, run, users

CODE = "import sys, site_of_test\n[sys.prefix != sys.base_prefix, site_of_test.word, sys.version_info[1]]"


def make_venv(below, *options):
    """One with a module of its own, where anybody can read it."""
    folder = tempfile.mkdtemp(prefix="interpreters-", dir=below)
    os.chmod(folder, 0o755)
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", *options, folder + "/venv"], check=True)
    site = glob.glob(folder + "/venv/lib/python3.*/site-packages")[0]
    with open(site + "/site_of_test.py", "w", encoding="ascii") as f:
        f.write("word = 'found'\n")
    return folder


def ask(tap, name, program, uid, code, want):
    status, out, err, _ = run(["run", "--json", "--set", "python=" + program, "-e", code], uid)
    got = json.loads(out)["result"] if out else None
    tap.check(status == 0 and want(got), f"{name}, once", out, err)
    status, out, err, _ = run(["shell", "--set", "python=" + program, "python"], uid, code.encode() + b"\n")
    tap.check(status == 0 and str(got).encode() in out, f"{name}, in a session", out, err)


def copy_of(program, below):
    """The program itself, and a link to the machine's, where anybody can read them."""
    folder = tempfile.mkdtemp(prefix="interpreters-", dir=below)
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/bin")
    shutil.copy(program, folder + "/bin/copy")
    os.symlink(program, folder + "/bin/link")
    return folder


def ask_node(tap, who, uid, place):
    node = os.path.realpath(shutil.which("node") or "/usr/bin/node")
    if not os.path.exists(node):
        tap.check(True, f"{who}: Node below {place} # SKIP there is no Node")
        return
    folder = copy_of(node, place)
    for name in ("copy", "link"):
        for options in ([], ["--set", "commands=true"], ["--level", "strict"]):
            status, out, err, _ = run(["run", *options, "-g", "node", "--set", f"node={folder}/bin/{name}", "-e", "6 * 7"], uid)
            tap.check(status == 0 and out == b"42\n", f"{who}: Node, a {name} below {place}, {' '.join(options)}", out, err)
    shutil.rmtree(folder)


def ask_shell(tap, who, uid):
    folder = copy_of("/usr/bin/bash", "/tmp")
    for options in ([], ["--set", "commands=true"]):
        status, out, err, _ = run(["run", *options, "-g", "sh", "--set", f"shell={folder}/bin/copy", "-e", "echo 1"], uid)
        tap.check(status != 0 and b"cannot be seen in the sandbox" in err, f"{who}: a shell below /tmp is refused, {' '.join(options)}", out, err)
    shutil.rmtree(folder)


def main():
    tap = Tap()
    places = [p for p in ("/tmp", "/opt", "/home") if os.access(p, os.W_OK)]
    for who, uid in users():
        for place in places:
            folder = make_venv(place)
            ask(tap, f"{who}: an environment below {place}", folder + "/venv/bin/python3", uid, CODE,
                lambda v: v and v[:2] == [True, "found"])
            shutil.rmtree(folder)
            ask_node(tap, who, uid, place)
        ask_shell(tap, who, uid)
        folder = make_venv("/tmp", "--system-site-packages")
        ask(tap, f"{who}: an environment with the machine's numpy", folder + "/venv/bin/python3", uid,
            "import numpy, site_of_test\n[int(numpy.arange(5).sum()), site_of_test.word]", lambda v: v == [10, "found"])
        shutil.rmtree(folder)
    for program in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        minor = int(program.split("/versions/3.")[1].split(".")[0])
        if minor >= 9:
            ask(tap, program, program, None, "import sys\n[sys.version_info[1]]", lambda v, minor=minor: v == [minor])
    tap.done()


main()

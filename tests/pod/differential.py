# tests/pod/differential.py - the same scripts in the pod and in native bash must do the same.
"""usage: differential.py CORDON_POD ROOT LIST...

Every line of a list is a script of its own (⏎ stands for a newline). It runs in an empty directory
of the same name on both sides; standard output, exit status and the files it leaves are compared.
Prints TAP.
"""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC0", "TERM": "dumb"}
ENV.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def scripts(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                yield number, line.replace("⏎", "\n")


def run(argv, cwd):
    # A session of its own, ended whole: a script that forks on must not outlive its test.
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        env=ENV,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
    )
    try:
        out, err = child.communicate(timeout=20)
        status = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        status = "timeout"
    return out, status, err


def tree(top):
    found = {}
    for directory, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(directory, name)
            key = os.path.relpath(path, top)
            if os.path.islink(path):
                found[key] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    # Archives carry times and owners.
                    data = f.read() if not key.endswith((".tar", "gz", "bz2", "xz", "zst", "tbz", "txz", "db")) else b""
                found[key] = (oct(os.stat(path).st_mode & 0o777), data)
            else:
                found[key] = ("other", oct(os.stat(path).st_mode))
    return found


def fresh(path):
    subprocess.run(["chmod", "-R", "u+rwx", path], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)


def compare(pod, root, work, script):
    inside = root + work
    fresh(work)
    fresh(inside)
    native = run(["/bin/bash", "-c", script], work)
    mine = run([pod, "--root", root, "bash", "-c", 'cd "$1" && eval "$2"', "bash", work, script], "/")
    # Through the same eval on both sides where that is what differs.
    if native[:2] != mine[:2]:
        fresh(work)
        fresh(inside)
        native = run(["/bin/bash", "-c", 'cd "$1" && eval "$2"', "bash", work, script], "/")
        mine = run([pod, "--root", root, "bash", "-c", 'cd "$1" && eval "$2"', "bash", work, script], "/")
    files = tree(work), tree(inside)
    return native, mine, files


def explain(native, mine, files):
    out = []
    if native[0] != mine[0]:
        out.append("native stdout %r" % native[0][:600])
        out.append("pod    stdout %r" % mine[0][:600])
    if "timeout" in (native[1], mine[1]):
        # Two that never end are not two that do the same.
        out.append("does not end: native %s, pod %s" % (native[1], mine[1]))
    elif native[1] != mine[1]:
        out.append("status: native %s, pod %s" % (native[1], mine[1]))
    if files[0] != files[1]:
        differ = [k for k in set(files[0]) | set(files[1]) if files[0].get(k) != files[1].get(k)]
        out.append("files differ: %s" % sorted(differ)[:5])
    if out and mine[2]:
        out.append("pod stderr %r" % mine[2][-300:])
    return out


def main():
    pod, root = sys.argv[1:3]
    work = tempfile.mkdtemp(prefix="pod-diff-", dir="/tmp") + "/w"
    known = {}
    with open(os.path.join(os.path.dirname(__file__), "differences"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                where, why = line.rstrip("\n").split(" ", 1)
                known[where] = why
    number = failed = 0
    for path in sys.argv[3:]:
        for line, script in scripts(path):
            number += 1
            where = "%s:%d" % (os.path.basename(path), line)
            faults = explain(*compare(pod, root, work, script))
            todo = " # TODO " + known[where] if where in known else ""
            if not faults:
                print("ok %d - %s" % (number, where))
                continue
            failed += not todo
            print("not ok %d - %s%s" % (number, where, todo))
            print("# " + script.replace("\n", "\n# "))
            for fault in faults:
                print("#   " + fault)
            sys.stdout.flush()
    shutil.rmtree(os.path.dirname(work), ignore_errors=True)
    print("1..%d" % number)
    print("# %d scripts, %d differ" % (number, failed))
    sys.exit(bool(failed))


main()

# tests/pod/differential.py - the same scripts in the pod and in native bash must do the same.
"""usage: differential.py [--record] BUILD CORDON_POD ROOT LIST...

Every line of a list is a script of its own (⏎ stands for a newline). It runs in an empty directory
of the same name on both sides; standard output, exit status and the files it leaves are compared.
Where a native program is missing or of another version than the image's (natives.py, by BUILD, which is
inside/pod/image), what the pod does is compared with the file `expected` beside this one, whatever the machine's
own program says. Prints TAP.

The file `differences` names what is known to differ, by content: the script, what the pod does with it, and why.
A line whose script is gone, does as bash does now, or does something else, is a failure. A new line is printed with
the failure that it would excuse.

--record writes that file: the digest of what the native programs did with each script. It leaves out scripts
whose programs are not of the pinned versions, and marks with - those that gave something else before: run it
as root and as an ordinary user, on machines as `tools/fresh plain` makes them.
"""
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from natives import Natives

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC0", "TERM": "dumb"}
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected")
EVAL = 'cd "$1" && eval "$2"'
ENV.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})


def scripts(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                yield number, line.replace("⏎", "\n")


def begin():
    """As if nobody had started us: a shell's background ignores signals, and so would every script."""
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)


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
        preexec_fn=begin,
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
    mine = run([pod, "--root", root, "bash", "-c", EVAL, "bash", work, script], "/")
    # Through the same eval on both sides where that is what differs.
    if native[:2] != mine[:2]:
        fresh(work)
        fresh(inside)
        native = run(["/bin/bash", "-c", EVAL, "bash", work, script], "/")
        mine = run([pod, "--root", root, "bash", "-c", EVAL, "bash", work, script], "/")
    files = tree(work), tree(inside)
    return native, mine, files


def digest(result, files, work):
    """What a script did, without the name of the folder that it ran in."""
    place = os.path.dirname(work)

    def bare(value):
        return value.replace(place.encode(), b"@") if isinstance(value, bytes) else value.replace(place, "@")

    whole = [bare(result[0]), result[1]] + [[key, *map(bare, files[key])] for key in sorted(files)]
    return hashlib.sha256(repr(whole).encode()).hexdigest()[:24]


def natively(script, work):
    """The digests of a script's native run, as a script of its own and through eval."""
    found = []
    for argv, cwd in ((["/bin/bash", "-c", script], work), (["/bin/bash", "-c", EVAL, "bash", work, script], "/")):
        fresh(work)
        result = run(argv, cwd)
        found.append(digest(result, tree(work), work))
    return found[:1] if found[0] == found[1] else found


def name_of(script):
    return hashlib.sha256(script.encode()).hexdigest()[:16]


def expectations():
    """Script -> the digests that are right, or none where they depend on the machine."""
    known = {}
    if os.path.exists(EXPECTED):
        with open(EXPECTED, encoding="ascii") as f:
            for line in f:
                if not line.startswith("#"):
                    name, *digests = line.split()
                    known[name] = [] if digests == ["-"] else digests
    return known


def record(natives, work, lists):
    known, found = expectations(), {}
    for path in lists:
        for line, script in scripts(path):
            name = name_of(script)
            others = natives.others(script)
            if others:
                print("# %s:%d: not recorded: %s" % (os.path.basename(path), line, "; ".join(others)))
                if name in known:
                    found[name] = known[name]
                continue
            now = natively(script, work)
            found[name] = now if known.get(name, now) == now else []
    with open(EXPECTED, "w", encoding="ascii") as f:
        f.write("# Generated by differential.py --record: a script, and what it does; - where that depends on the machine.\n")
        for name in sorted(found):
            f.write(" ".join([name, *(found[name] or "-")]) + "\n")
    print("# %d scripts, %d depend on the machine" % (len(found), sum(not d for d in found.values())))


def expect(pod, root, work, script, right):
    """Compares what the pod does with what is written down."""
    inside = root + work
    fresh(inside)
    mine = run([pod, "--root", root, "bash", "-c", EVAL, "bash", work, script], "/")
    did = digest(mine, tree(inside), work)
    if did in right:
        return [], did
    return ["not as it is written down in %s" % os.path.basename(EXPECTED), "pod status %s, stdout %r" % (mine[1], mine[0][:600]),
            "pod stderr %r" % mine[2][-300:]], did


def judge(natives, known, pod, root, work, script):
    """The faults of a script, what the pod did with it, and why it could not be judged."""
    others, right = natives.others(script), known.get(name_of(script))
    if others and right:
        return *expect(pod, root, work, script, right), ""
    native, mine, files = compare(pod, root, work, script)
    faults, did = explain(native, mine, files), digest(mine, files[1], work)
    if others and faults and right == []:
        return [], did, "what it does depends on the machine, which has %s" % "; ".join(others)
    return faults, did, ""


class Differences:
    """What is known to differ: script -> (what the pod does, why)."""

    def __init__(self, path):
        self.rows, self.unseen = {}, set()
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    name, did, why = line.rstrip("\n").split(" ", 2)
                    self.rows[name] = did, why
        self.unseen.update(self.rows)

    def look(self, script, faults, did):
        """Why this script may differ; and what is wrong with it or with its line."""
        name = name_of(script)
        if name not in self.rows:
            return "", faults + ["to be known: %s %s WHY" % (name, did)] if faults else []
        self.unseen.discard(name)
        if not faults:
            return "", ["it does as bash does now: its line in differences is stale"]
        if self.rows[name][0] != did:
            return "", faults + ["it differs in another way than its line in differences says: now %s" % did]
        return self.rows[name][1], []


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
    words = [w for w in sys.argv[1:] if w != "--record"]
    build, pod, root, lists = words[0], words[1], words[2], words[3:]
    natives = Natives(build, os.path.join(os.path.dirname(root), "programs"))
    work = tempfile.mkdtemp(prefix="pod-diff-", dir="/tmp") + "/w"
    if "--record" in sys.argv:
        record(natives, work, lists)
        shutil.rmtree(os.path.dirname(work), ignore_errors=True)
        return
    known, right = Differences(os.path.join(os.path.dirname(__file__), "differences")), expectations()
    number = failed = 0
    for path in lists:
        for line, script in scripts(path):
            number += 1
            where = "%s:%d" % (os.path.basename(path), line)
            faults, did, unjudged = judge(natives, right, pod, root, work, script)
            why, faults = known.look(script, faults, did) if not unjudged else ("", [])
            if not faults:
                note = " # SKIP " + unjudged if unjudged else ": differs as it is known to: " + why if why else ""
                print("ok %d - %s%s" % (number, where, note))
                continue
            failed += 1
            print("not ok %d - %s" % (number, where))
            print("# " + script.replace("\n", "\n# "))
            for fault in faults:
                print("#   " + fault)
            sys.stdout.flush()
    shutil.rmtree(os.path.dirname(work), ignore_errors=True)
    for name in sorted(known.unseen):
        number, failed = number + 1, failed + 1
        print("not ok %d - differences: there is no script %s" % (number, name))
    print("1..%d" % number)
    print("# %d scripts, %d differ" % (number, failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Bad input, and machines that lack something: one clear error line, the right exit status, nothing left behind."""
import os
import resource
import shutil
import subprocess
import tempfile

from oneshot import CORDON, SECONDS, become, main, run

# name, words of `cordon run`, files to make {name: bytes, None: a directory}, status, text of the message
ROWS = [
    ("a missing file", ["{dir}/none.py"], {}, 2, "No such file"),
    ("a directory", ["{dir}"], {}, 2, "is a directory"),
    ("a device", ["/dev/zero"], {}, 2, "not a regular file"),
    ("an unreadable policy", ["--policy", "{dir}/none.json", "-e", "1"], {}, 2, "No such file"),
    ("no code", [], {}, 2, "name a file"),
    ("a NUL byte", ["{dir}/a.py"], {"a.py": b"1\0"}, 2, "NUL"),
    ("invalid UTF-8", ["{dir}/a.py"], {"a.py": b"x = '\xff\xfe'"}, 2, "UTF-8"),
    ("invalid UTF-8 in a script", ["{dir}/a.sh"], {"a.sh": b"echo \xff"}, 2, "UTF-8"),
    ("code over the limit", ["{dir}/a.py"], {"a.py": b"#" * (2 << 20)}, 2, "Code too long"),
    ("a command over the limit", ["{dir}/a.sh"], {"a.sh": b"#" * (80 << 10)}, 2, "Command too large"),
    ("an unknown field", ["--set", "memory=1", "-e", "1"], {}, 2, "memory"),
    ("a wrong value", ["--set", "cpu_seconds=ten", "-e", "1"], {}, 2, "cpu_seconds"),
    ("LIM-01: an unknown limit", ["--policy", "{dir}/p.json", "-e", "1"], {"p.json": b'{"limits": {"bogus": 10}}'}, 2,
     "Unknown limit name(s): bogus"),
    ("LIM-02: a list for a number", ["--policy", "{dir}/p.json", "-e", "1"], {"p.json": b'{"limits": {"cpu": [10, 20]}}'}, 2,
     "must be a single positive number"),
    ("a policy that is no JSON", ["--policy", "{dir}/p.json", "-e", "1"], {"p.json": b"{"}, 2, "p.json"),
    ("a policy that contradicts itself", ["--memory", "32M", "--set", "stack_bytes=64M", "-e", "1"], {}, 2,
     "is more than memory_bytes"),
    ("modules against preload", ["--set", "modules=math", "--set", "preload=json", "-e", "1"], {}, 2, "preload names json"),
    ("mounts over each other", ["--mount", "/usr:/data:ro", "--mount", "/etc:/data/x:ro", "-e", "1"], {}, 2, "overlap"),
    ("a mount over the wall's own", ["--mount", "/usr:/proc", "-e", "1"], {}, 2, "/proc"),
    ("a mount of nothing", ["--mount", "{dir}/none:/data:ro", "-e", "1"], {}, 2, "No such file"),
    ("a Python that is not there", ["--set", "python=/nonexistent/python", "-e", "1"], {}, 2, "/nonexistent/python"),
    ("a Python that is no program", ["--set", "python=/etc/passwd", "-e", "1"], {}, 2, "not an executable file"),
    ("a shell that is not there", ["-g", "sh", "--set", "shell=/nonexistent/sh", "--set", "commands=ls", "-e", ":"], {}, 2,
     "/nonexistent/sh"),
    ("an unknown guest", ["-g", "cobol", "-e", "1"], {}, 2, "unknown guest 'cobol'"),
    ("an unknown option", ["--bogus", "-e", "1"], {}, 2, "--bogus"),
    ("a context that is no JSON", ["--context", "{bad", "-e", "1"], {}, 2, "--context"),
    ("a context that is no object", ["--context", "[1]", "-e", "1"], {}, 2, "object"),
]


def empty(tap, who, uid):
    """A file of nothing is a program that does nothing."""
    folder = tempfile.mkdtemp(prefix="bad-")
    os.chmod(folder, 0o755)
    for file in ("a.py", "a.sh", "a.js", "a.R"):
        with open(os.path.join(folder, file), "wb"):
            pass
        status, out, err, _ = run(["run", os.path.join(folder, file)], uid)
        tap.check((status, out, err) == (0, b"", b""), f"{who}: an empty {file}", status, out, err)
    shutil.rmtree(folder)


def rows(tap, who, uid):
    for name, words, files, want, text in ROWS:
        folder = tempfile.mkdtemp(prefix="bad-")
        os.chmod(folder, 0o755)
        for file, content in files.items():
            with open(os.path.join(folder, file), "wb") as f:
                f.write(content)
        status, out, err, _ = run(["run", *[w.replace("{dir}", folder) for w in words]], uid)
        message = err.decode(errors="replace")
        tap.check(status == want and text in message and message.startswith("cordon: ") and not out and
                  len(message.splitlines()) <= 2, f"{who}: {name}", f"status {status}, want {want}", out, message)
        shutil.rmtree(folder)


def limited(uid, what, value):
    def change():
        resource.setrlimit(what, (value, value))
        become(uid)() if uid else None
    return change


# A sanitizer's leak check starts a process of its own, which these tests do not allow.
NO_LEAK_CHECK = {"ASAN_OPTIONS": "detect_leaks=0"}


def machine(tap, who, uid):
    """Descriptors, processes and space run out in the host."""
    for count in (6, 12, 24):
        status, out, err, _ = run(["run", "-e", "1"], preexec_fn=limited(uid, resource.RLIMIT_NOFILE, count))
        tap.check(status == 125 and b"Too many open files" in err and not out, f"{who}: EMFILE at {count} descriptors", status,
                  out, err)
    status, out, err, _ = run(["run", "-e", "import resource; resource.getrlimit(resource.RLIMIT_NOFILE)[1]"],
                              preexec_fn=limited(uid, resource.RLIMIT_NOFILE, 100))
    tap.check((status, out) == (0, b"100\n"), f"{who}: a stricter limit of the host is kept", status, out, err)
    if uid:
        # The kernel does not count root's processes; and it counts by user, so that this one has to be nobody else's.
        alone = limited(uid + 1 + os.getpid() % 700, resource.RLIMIT_NPROC, 1)
        status, out, err, _ = run(["run", "-e", "1"], env=NO_LEAK_CHECK, preexec_fn=alone)
        tap.check(status == 125 and b"temporarily unavailable" in err and not out, f"{who}: no process left", status, out, err)
        status, out, err, _ = run(["run", "--audit", "/root/log", "-e", "1"], uid)
        tap.check(status == 125 and b"Permission denied" in err, f"{who}: a file of the host's is no denial of the policy", status, out, err)
    status, out, err, _ = run(["run", "-e", "1 + 1"], uid, env={"TMPDIR": "/nonexistent"})
    tap.check((status, out) == (0, b"2\n"), f"{who}: no temporary directory is needed", status, out, err)


def full_group(tap, who, uid):
    """A control group that allows no further process."""
    parent = "/sys/fs/cgroup/pids"
    if uid or os.getuid() != 0 or not os.path.exists(os.path.join(parent, "cordon")) or not os.access(parent, os.W_OK):
        return
    group = os.path.join(parent, f"cordon-test-{os.getpid()}")
    os.mkdir(group)

    def enter():
        with open(os.path.join(group, "pids.max"), "w", encoding="ascii") as f:
            f.write("1")
        with open(os.path.join(group, "tasks"), "w", encoding="ascii") as f:
            f.write("0")
    try:
        status, out, err, _ = run(["run", "-e", "1"], env=NO_LEAK_CHECK, preexec_fn=enter)
        tap.check(status == 125 and b"temporarily unavailable" in err and not out, f"{who}: a full pids group", status, out, err)
        left = [d for d, _, _ in os.walk(group) if d != group and os.path.basename(d) != "cordon"]
        tap.check(not left, f"{who}: a full pids group: nothing left", left)
    finally:
        for folder in (os.path.join(group, "cordon"), group):
            if os.path.isdir(folder):
                os.rmdir(folder)


# Where there are no namespaces, the workspace is a directory of the host's: no such place, no space in it, no file more.
SCRIPT = """d=$(mktemp -d); mount -t tmpfs -o size=64k,nr_inodes=$1,mode=1777 none "$d"; head -c 70000 /dev/zero > "$d/fill" 2>/dev/null
TMPDIR=$d "$2" "$3" run --set require=landlock,seccomp,rlimits -e 'print("ran")'; status=$?
rm "$d/fill"; ls -A "$d"; umount "$d"; rmdir "$d"; exit $status"""


def full_place(tap, who, uid):
    below = os.path.join(os.path.dirname(os.path.abspath(__file__)), "without-userns")
    if uid or os.getuid() != 0:
        return
    for name, inodes in (("no space", "100"), ("no file more", "4")):
        done = subprocess.run(["unshare", "-m", "sh", "-c", SCRIPT, "sh", inodes, below, CORDON], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, timeout=SECONDS, env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"})
        tap.check(done.returncode == 125 and b"No space left on device" in done.stderr and done.stderr.count(b"\n") == 1 and not done.stdout,
                  f"{who}: {name} in the temporary directory: one line, and nothing is left", done)
    done = subprocess.run([below, CORDON, "run", "--set", "require=landlock,seccomp,rlimits", "-e", "1"], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, timeout=SECONDS, env={"PATH": "/usr/bin:/bin", "TMPDIR": "/nonexistent"})
    tap.check(done.returncode == 2 and b"in '/nonexistent': No such file" in done.stderr and not done.stdout, f"{who}: no temporary directory", done)


main([], empty, rows, machine, full_group, full_place)

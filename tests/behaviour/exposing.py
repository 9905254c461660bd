#!/usr/bin/python3
"""`cordon run --expose`: the address is on standard error before the code runs, and the host reaches the code's server there."""
import os
import re
import shutil
import socket
import subprocess
import tempfile

from oneshot import CORDON, Tap, become, run, users

# Answers one client, and ends when that has the answer.
SERVER = """import socket
s = socket.create_server(("127.0.0.1", 8000))
print("ready", flush=True)
c = s.accept()[0]
c.sendall(c.recv(100).upper())
c.recv(1)
"""


def ask(address, word):
    is_path = address.startswith("/")
    with socket.socket(socket.AF_UNIX if is_path else socket.AF_INET) as s:
        s.settimeout(60)
        s.connect(address if is_path else ("127.0.0.1", int(address.rsplit(":", 1)[1])))
        s.sendall(word)
        return s.recv(100)


def serve(tap, who, uid, name, where, pattern, env=None):
    words = [CORDON, "run", "--timeout", "none", "--expose", "8000" + where, "-g", "python", "-e", SERVER]
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
                         env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(env or {})}, preexec_fn=become(uid))
    told = p.stderr.readline()
    address = re.fullmatch(r"cordon: run: port 8000: (%s)\n" % pattern, told)
    if not address:
        p.kill()
        return tap.check(False, f"{who}: {name}", told, *p.communicate())
    first = p.stdout.readline()
    answer = ask(address.group(1), b"hello") if first == "ready\n" else first
    out, err = p.communicate(timeout=120)
    tap.check(answer == b"HELLO" and p.returncode == 0, f"{who}: {name}", answer, p.returncode, out, err)
    tap.check(not os.path.exists(address.group(1)), f"{who}: {name}: nothing is left", address.group(1))


def ended(tap, who, uid):
    """A signal that ends the program leaves no socket behind."""
    p = subprocess.Popen([CORDON, "run", "--timeout", "none", "--expose", "8000", "-g", "python", "-e", SERVER], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", preexec_fn=become(uid))
    address = p.stderr.readline().rsplit(" ", 1)[-1].strip()
    was_there = os.path.exists(address)
    p.terminate()
    out, err = p.communicate(timeout=120)
    tap.check(p.returncode == -15 and was_there and not os.path.exists(os.path.dirname(address)), f"{who}: ended by a signal", address, p.returncode, out, err)


def refused(tap, who, uid, name, words, status, text):
    got, out, err, _ = run(["run", *words], uid)
    tap.check(got == status and text in err.decode(), f"{who}: {name}", got, out, err)


def main():
    tap = Tap()
    for who, uid in users():
        folder = tempfile.mkdtemp(prefix="exposing-")
        if uid:
            os.chown(folder, uid, uid)
        try:
            serve(tap, who, uid, "a Unix socket", "", r"/tmp/cordon-ports-\w+/8000\.sock")
            ended(tap, who, uid)
            serve(tap, who, uid, "below XDG_RUNTIME_DIR", "", folder + r"/cordon-ports-\w+/8000\.sock", {"XDG_RUNTIME_DIR": folder})
            serve(tap, who, uid, "a path", f":{folder}/s", f"{folder}/s")
            serve(tap, who, uid, "any port of the loopback", ":0", r"127\.0\.0\.1:\d+")
        finally:
            shutil.rmtree(folder)
        refused(tap, who, uid, "no port", ["--expose", "x", "-e", "1"], 2, "--expose takes PORT")
        refused(tap, who, uid, "nothing after the colon", ["--expose", "8000:", "-e", "1"], 2, "--expose takes PORT")
        refused(tap, who, uid, "a port that needs privileges", ["--expose", "80", "-e", "1"], 2, "from 1024 to 65535")
        refused(tap, who, uid, "a directory of others", ["--expose", "8000:/tmp/exposing.sock", "-e", "1"], 2, "no one else can write")
    tap.done()


main()

#!/usr/bin/python3
"""Every remedy of a refused program, file, library or limit works: it is followed to the letter, and the code succeeds.

A remedy ends with an assignment in parentheses, which is passed with --set, or says which mode a mount needs."""
import glob
import json
import os
import re
import shutil
import tempfile

from oneshot import ORDINARY, Tap, run, users

ROUNDS = 6
GUESTS = ("python", "r", "node", "sh")
LIBRARY = "/usr/lib/x86_64-linux-gnu/libm.so.6"
# A program that is in no directory of programs.
INNER = next((p for p in sorted(glob.glob("/usr/lib/*/*")) if os.access(p, os.X_OK) and os.path.isfile(p) and
              open(p, "rb").read(4) == b"\x7fELF" and not p.endswith(".so") and ".so." not in p), None)
STARTS = {"python": "import subprocess\nsubprocess.run([{!r}, {!r}], check=True)",
          "r": "stopifnot(system2({!r}, {!r}) == 0)",
          "node": "require('child_process').execFileSync({!r}, [{!r}], {{ stdio: 'ignore' }})",
          "sh": "{} {}"}
SCRIPT = {"python": "import os, subprocess\nopen('s', 'w').write('#!/bin/sh\\nexit 0')\nos.chmod('s', 0o755)\nsubprocess.run(['./s'], check=True)",
          "r": "writeLines(c('#!/bin/sh', 'exit 0'), 's'); Sys.chmod('s', '755'); stopifnot(system('./s') == 0)",
          "node": "require('fs').writeFileSync('s', '#!/bin/sh\\nexit 0', { mode: 0o755 }); require('child_process').execFileSync('./s')",
          "sh": "printf '#!/bin/sh\\nexit 0' > s; chmod +x s; ./s"}
LOADS = {"python": f"import ctypes, shutil\nshutil.copy({LIBRARY!r}, 'a.so')\nctypes.CDLL('./a.so')",
         "r": f"file.copy({LIBRARY!r}, 'a.so'); dyn.load('a.so')",
         "node": f"require('fs').copyFileSync({LIBRARY!r}, 'a.so'); try {{ process.dlopen({{ exports: {{}} }}, '/home/user/a.so') }} catch (e) {{\n"
                 "  if (!/self-register/.test(e.message)) throw e }"}
INSIDE = {"python": f"import subprocess\nsubprocess.run([{INNER!r}], stdin=-3, stdout=-3, stderr=-3)",
         "node": f"const r = require('child_process').spawnSync({INNER!r}, {{ stdio: 'ignore' }}); if (r.error) throw r.error"}
WRITES = {"python": "open('/data/x', 'w').write('x')", "r": "writeLines('x', '/data/x')",
          "node": "require('fs').writeFileSync('/data/x', 'x')", "sh": "echo x > /data/x"}
FILLS = {"python": "open('f', 'wb').write(b'x' * (3 << 20))", "r": "writeBin(raw(3 * 2^20), 'f'); stopifnot(file.size('f') == 3 * 2^20)",
         "node": "require('fs').writeFileSync('f', Buffer.alloc(3 << 20))", "sh": "head -c 3145728 /dev/zero > f"}
WAITS = {"python": "import time; time.sleep(0.7)", "r": "Sys.sleep(0.7)", "node": "await new Promise((r) => setTimeout(r, 700))",
         "sh": "sleep 0.7"}
MANY = {"python": "for i in range(40): open(str(i), 'w').close()", "node": "for (let i = 0; i < 40; i++) require('fs').writeFileSync(String(i), '')",
        "sh": "for i in $(seq 40); do : > f$i || exit 1; done"}

LISTENS = {"python": "import socket; socket.create_server(('127.0.0.1', 8000)).close()", "r": "close(serverSocket(8000))",
           "node": "await new Promise((ok, no) => require('net').createServer().on('error', no)"
                   ".listen(8000, '127.0.0.1', function () { this.close(ok) }))"}


def cases():
    for guest in GUESTS:
        strict = ["--level", "strict"]
        if guest != "sh":
            yield guest, "a program in strict", STARTS[guest].format("printenv", "HOME"), strict
        yield guest, "a program that is not listed", STARTS[guest].format("printenv", "HOME"), ["--set", "commands=cat"]
        if INNER and guest in ("python", "node"):
            yield guest, "a program outside the directories of programs", INSIDE[guest], ["--set", "commands=cat"]
        yield guest, "a script of the workspace", SCRIPT[guest], []
        yield guest, "a script of the workspace in strict", SCRIPT[guest], strict
        if guest in LOADS:
            yield guest, "a library of the workspace", LOADS[guest], []
        yield guest, "a mount that is read-only", WRITES[guest], ["--mount", "FOLDER:/data:ro"]
        if guest != "r":  # it only warns
            yield guest, "a full workspace", FILLS[guest], ["--set", "fs_bytes=1M"]
            yield guest, "a large file", FILLS[guest], ["--set", "file_bytes=1M"]
        if guest in LISTENS:
            yield guest, "a server", LISTENS[guest], []
            yield guest, "a server in strict", LISTENS[guest], strict
        yield guest, "a slow one", WAITS[guest], ["--set", "timeout_ms=300"]
        if guest in MANY:
            yield guest, "many files", MANY[guest], ["--set", "file_count=16"]
    yield "python", "a module", "import math, json", ["--set", "modules=math"]
    yield "python", "open files", "x = [open('/dev/null') for _ in range(100)]", ["--set", "open_files=64"]
    yield "node", "open files", "for (let i = 0; i < 100; i++) require('fs').openSync('/dev/null')", ["--set", "open_files=64"]
    yield "r", "a snapshot that is read-only", "stopifnot(file.remove('/data/keep'))", ["--mount", "FOLDER:/data:snapshot"]
    yield "python", "memory", "x = b'a' * (90 << 20)", ["--set", "memory_bytes=64M"]
    yield "python", "processes", "import os, time\nfor _ in range(20):\n  if not os.fork():\n    time.sleep(0.5)\n    os._exit(0)\n" \
        "while True:\n  try: os.wait()\n  except ChildProcessError: break", ["--set", "processes=8"]


def follow(options, remedy):
    """The options with the remedy applied; None: it says no change."""
    assignment = re.search(r"\(([a-z_.]+\+?=[^()]+)\)$", remedy)
    if assignment:
        return [*options, "--set", assignment.group(1)]
    if remedy.endswith("the mode rw"):
        return [re.sub(":/data:(ro|snapshot)$", ":/data:rw", o) for o in options]
    return None


def check(tap, who, uid, guest, name, code, options):
    told = []
    for _ in range(ROUNDS):
        status, out, err, _ = run(["run", "--json", "-g", guest, *options, "-e", code], uid)
        try:
            result = json.loads(out)
        except ValueError:
            return tap.check(False, f"{who}: {guest}: {name}", status, out, err)
        if result["success"]:
            return tap.check(bool(told), f"{who}: {guest}: {name}: {'; '.join(told)}", "nothing was refused")
        changed = [c for c in (follow(options, d["remedy"]) for d in result["denials"]) if c]
        told += [d["remedy"] for d in result["denials"]]
        if not changed:
            return tap.check(False, f"{who}: {guest}: {name}: a remedy", options, result["error"], result["denials"], result["stderr"])
        options = changed[0]
    return tap.check(False, f"{who}: {guest}: {name}: the remedies suffice", options, told, result["error"], result["stderr"])


def main():
    tap = Tap()
    folder = tempfile.mkdtemp(prefix="remedies-")
    try:
        os.chmod(folder, 0o777)
        if os.getuid() == 0:
            os.chown(folder, ORDINARY, ORDINARY)
        for who, uid in users():
            for guest, name, code, options in cases():
                with open(folder + "/keep", "w", encoding="ascii"):
                    os.chown(folder + "/keep", os.stat(folder).st_uid, os.stat(folder).st_gid)
                check(tap, who, uid, guest, name, code, [o.replace("FOLDER", folder) for o in options])
                if os.path.exists(folder + "/x"):
                    os.unlink(folder + "/x")
    finally:
        shutil.rmtree(folder)
    tap.done()


main()

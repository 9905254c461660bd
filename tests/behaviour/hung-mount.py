#!/usr/bin/python3
"""A mount of the host that never answers: a run that waits for it, in the code or in pid 1, still ends at its timeout and leaves
nothing behind (TAP). The test serves a FUSE file system that answers only for its root and never for any name in it, in a mount
namespace of its own. Needs root and /dev/fuse."""
import ctypes
import json
import os
import signal
import struct
import tempfile
import threading

from oneshot import SECONDS, Tap, run

CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_FORCE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 1, 2
PR_SET_CHILD_SUBREAPER = 36
LOOKUP, FORGET, GETATTR, STATFS, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 17, 26, 36, 42
ENOSYS = 38
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Server(threading.Thread):
    """Answers for the root directory, and notes the names that it was asked for."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.fd, self.asked = os.open("/dev/fuse", os.O_RDWR), []
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        check(LIBC.mount(b"silent", place.encode(), b"fuse", 0, options.encode()))

    def run(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:
                return
            opcode, unique = struct.unpack_from("IQ", request, 4)[0], struct.unpack_from("Q", request, 8)[0]
            self.answer(opcode, unique, request)

    def answer(self, opcode, unique, request):
        root = struct.pack("6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        known = {INIT: struct.pack("4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8), GETATTR: struct.pack("QII", 1000, 0, 0) + root,
                 STATFS: bytes(80)}
        if opcode == LOOKUP:
            self.asked.append(request[40:].split(b"\0")[0].decode())
        elif opcode not in (FORGET, INTERRUPT, BATCH_FORGET):
            body = known.get(opcode, b"")
            os.write(self.fd, struct.pack("IiQ", 16 + len(body), 0 if opcode in known else -ENOSYS, unique) + body)


CODE = [
    ("the code waits", "python", "open('/mnt/h/data')", "data"),
    ("pid 1 waits, asked about a program", "python", "import os\nos.execv('/mnt/h/program', ['x'])", "program"),
    ("a child of the code waits", "sh", "/mnt/h/tool & wait", "tool"),
]


def hangs(tap, name, guest, code, asked):
    place = tempfile.mkdtemp(prefix="hung-")
    server = Server(place)
    server.start()
    status, out, err, _ = run(["run", "--json", "-g", guest, "--timeout", "3s", "--set", f"mounts={place}:/mnt/h:ro", "-e", code])
    result = json.loads(out) if out.startswith(b"{") else {"error_kind": None, "assurance": {}}
    tap.check((status, result["error_kind"]) == (124, "timeout"), f"{name}: a timeout is one", status, out, err)
    tap.check(asked in server.asked, f"{name}: the file system was asked", server.asked)
    tap.check("a process has not ended" in str(result["assurance"].get("lacks")), f"{name}: what could not be ended is told", out)
    # Nobody serves any more: what waited gets an error, and ends.
    check(LIBC.umount2(place.encode(), MNT_FORCE | MNT_DETACH))
    os.rmdir(place)
    signal.alarm(SECONDS)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        signal.alarm(0)
        tap.check(True, f"{name}: when it can, all of it ends")


def late(*_):
    raise TimeoutError("a process is left")


def main():
    tap = Tap()
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        print("1..0 # SKIP it takes root and /dev/fuse")
        return
    signal.signal(signal.SIGALRM, late)
    check(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))  # what is left to itself comes to us
    check(LIBC.unshare(CLONE_NEWNS))
    check(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    for row in CODE:
        hangs(tap, *row)
    tap.done()


main()

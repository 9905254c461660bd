# tests/pod/agent_client.py - the host's end of a pod session, as docs/pod.md describes it.
import array
import os
import socket
import struct
import subprocess
import time

HEAD = struct.Struct("<IIiI")


class Session:
    def __init__(self, pod, root, *options, env=None):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [pod, "--root", root, *options, "--serve", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=env or {"PATH": "/usr/bin", "HOME": "/home/user", "LANG": "C.UTF-8",
                        **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}},
        )
        theirs.close()
        self.socket = mine
        self.socket.settimeout(20)
        self.number = 0
        self.denials = []
        kind, _, _, _, text = self.receive()
        assert kind == "I", kind
        self.cwd = text

    def receive(self):
        data = self.socket.recv(100000)
        if not data:
            raise EOFError
        kind, number, status, flags = HEAD.unpack(data[: HEAD.size])
        return chr(kind), number, status, flags, data[HEAD.size :].decode()

    def send(self, kind, text="", fds=()):
        self.number += 1
        control = []
        if fds:
            control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        data = HEAD.pack(ord(kind), self.number, 0, 0) + text.encode()
        self.socket.sendmsg([data], control)

    def done(self):
        while True:
            kind, _, status, flags, text = self.receive()
            if kind == "N":
                self.denials.append(text)
            elif kind == "D":
                self.cwd = text
                return status, flags
            elif kind == "E":
                return "refused: " + text, flags

    def run(self, command, stdin=b""):
        """Returns status, stdout, stderr, restarted."""
        in_r, in_w = os.pipe()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        self.send("R", command, (in_r, out_w, err_w))
        for fd in (in_r, out_w, err_w):
            os.close(fd)
        os.write(in_w, stdin[:60000])
        os.close(in_w)
        status, flags = self.done()
        out = read_all(out_r)
        err = read_all(err_r)
        return status, out, err, bool(flags & 1)

    def close(self):
        self.socket.close()
        self.process.wait(10)


def read_all(fd):
    parts = []
    while True:
        part = os.read(fd, 65536)
        if not part:
            break
        parts.append(part)
    os.close(fd)
    return b"".join(parts).decode(errors="replace")

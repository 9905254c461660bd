"""A `cordon serve` of the test's own, with two keys and a directory of templates; and requests to it, byte by byte."""
import http.client
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
CORDON = os.environ.get("CORDON") or os.path.join(BUILD, "cordon")
HEX = "0123456789abcdef" * 3
WEB = {"expose": ["3000-9000"]}
NARROW = {"memory_bytes": 300 << 20, "fs_bytes": 20 << 20}


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cordon-e2b-")
        state, templates = os.path.join(self.folder, "state"), os.path.join(self.folder, "templates")
        os.mkdir(state, 0o700)
        os.mkdir(templates)
        with open(os.path.join(templates, "narrow.json"), "w") as f:
            json.dump(NARROW, f)
        with open(os.path.join(templates, "web.json"), "w") as f:
            json.dump(WEB, f)
        self.key = "e2b_" + HEX
        made = subprocess.run([CORDON, "serve", "key", "add", "other", "--max-sessions", "6", "--state", state], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        assert made.returncode == 0, made.stderr
        self.other = "e2b_" + [w for w in made.stdout.split() if w.startswith("cordon_")][0].split("_", 1)[1]
        self.p = subprocess.Popen([CORDON, "serve", "--listen", "127.0.0.1:0", "--state", state, "--templates", templates],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, CORDON_SERVE_KEY="cordon_" + HEX))
        line = self.p.stdout.readline()
        assert line.startswith("listening at "), line + self.p.stderr.read()
        self.url = line.split()[-1]
        self.port = int(self.url.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.p.poll() is None:
            self.p.terminate()
        self.status = self.p.wait(60)
        self.p.stdout.close()
        self.stderr = self.p.stderr.read()
        self.p.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert self.status == 0, "the server ended with status %d: %s" % (self.status, self.stderr[-3000:])

    def request(self, method, path, body=None, headers=None, seconds=30):
        """Status, headers and body of the answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        if isinstance(body, (dict, list)):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **(headers or {})}
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, dict(r.getheaders()), r.read()
        finally:
            c.close()

    def control(self, method, path, body=None, key=None):
        status, _, data = self.request(method, path, body, {"X-API-Key": key or self.key})
        return status, json.loads(data) if data else None

    def create(self, **options):
        status, b = self.control("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 120, **options})
        assert status == 201, b
        return Box(self, b)

    def check_empty(self):
        """No sandbox, no process and no thread is left, and the server still answers."""
        deadline = time.monotonic() + 60
        while True:
            _, all_ = self.control("GET", "/v2/sandboxes")
            if not all_:
                break
            for b in all_:
                self.control("DELETE", "/sandboxes/" + b["sandboxID"])
            assert time.monotonic() < deadline, all_
        with self.create() as b:
            assert b.run("echo alive") == (b"alive\n", b"", 0)


class Box:
    """A sandbox, by the wire."""

    def __init__(self, server, answer):
        self.server, self.id, self.token = server, answer["sandboxID"], answer["envdAccessToken"]
        self.headers = {"E2b-Sandbox-Id": self.id, "X-Access-Token": self.token}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.control("DELETE", "/sandboxes/" + self.id)

    def unary(self, method, message, **headers):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        status, _, data = self.server.request("POST", "/" + method, body, {"Content-Type": "application/json", **self.headers, **headers})
        return status, json.loads(data) if data else None

    def open_stream(self, method, body, **headers):
        """A socket on which the request was sent."""
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=30)
        head = {"Host": "127.0.0.1:%d" % self.server.port, "Content-Type": "application/connect+json", "Content-Length": str(len(body)),
                **self.headers, **headers}
        s.sendall(("POST /%s HTTP/1.1\r\n" % method + "".join("%s: %s\r\n" % h for h in head.items()) + "\r\n").encode() + body)
        return s

    def stream(self, method, body, **headers):
        """Status and the messages of a stream, the last of which is its end."""
        body = frame(body) if isinstance(body, dict) else body
        status, _, data = self.server.request("POST", "/" + method, body,
                                              {"Content-Type": "application/connect+json", **self.headers, **headers})
        return status, frames(data)

    def start(self, command, **process):
        return {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command], **process}, "stdin": False}

    def run(self, command):
        import base64
        status, messages = self.stream("process.Process/Start", self.start(command))
        assert status == 200, messages
        out, err, code = b"", b"", None
        for m in messages:
            event = m.get("event", {})
            out += base64.b64decode(event.get("data", {}).get("stdout", ""))
            err += base64.b64decode(event.get("data", {}).get("stderr", ""))
            code = event.get("end", {}).get("exitCode", code)
        return out, err, code


def frame(message, flags=0, length=None):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data) if length is None else length) + data


def frames(data):
    found = []
    while data:
        flags, n = struct.unpack(">BI", data[:5])
        assert len(data) >= 5 + n, "a cut envelope"
        found.append(json.loads(data[5:5 + n]))
        data = data[5 + n:]
        assert (flags == 2) == (not data), "the end is not last"
    return found

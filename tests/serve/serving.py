"""A `cordon serve` of its own, and a client that checks every message against docs/openapi.json."""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

from driver import CORDON, ROOT, Need

BUILD = os.environ.get("BUILD") or os.path.dirname(CORDON)
API = json.load(open(os.path.join(ROOT, "docs", "openapi.json")))
KEY = "cordon_" + "0123456789abcdef" * 3
EVENTS = {"started": "Started", "stdout": "Text", "stderr": "Text", "output": "Output", "tool_call": "ToolCall",
          "approval": "Approval", "result": "Result", "problem": "Problem"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}
KNOWN = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "minimum",
         "pattern", "description", "$ref", "format"}


def is_type(value, kind):
    if isinstance(kind, list):
        return any(is_type(value, k) for k in kind)
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, TYPES[kind])


def check_object(value, schema, where):
    for key in schema.get("required", []):
        assert key in value, "%s: %s is missing in %r" % (where, key, value)
    extra = schema.get("additionalProperties", True)
    for key, v in value.items():
        if key in schema.get("properties", {}):
            check(v, schema["properties"][key], where + "/" + key)
        elif isinstance(extra, dict):
            check(v, extra, where + "/" + key)
        else:
            assert extra, "%s: unexpected %s" % (where, key)


def check(value, schema, where="$"):
    """The part of JSON Schema that docs/openapi.json uses."""
    assert set(schema) <= KNOWN, "%s: unknown keyword in %s" % (where, schema)
    if "$ref" in schema:
        return check(value, API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], where)
    if "anyOf" in schema:
        for s in schema["anyOf"]:
            try:
                return check(value, s, where)
            except AssertionError:
                pass
        raise AssertionError("%s: %r fits none of %r" % (where, value, schema["anyOf"]))
    if "const" in schema:
        assert value == schema["const"], "%s: %r" % (where, value)
    if "enum" in schema:
        assert value in schema["enum"], "%s: %r" % (where, value)
    if "type" in schema:
        assert is_type(value, schema["type"]), "%s: %r is no %s" % (where, value, schema["type"])
    if "minimum" in schema and value is not None:
        assert value >= schema["minimum"], where
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), where
    if isinstance(value, dict):
        check_object(value, schema, where)
    if isinstance(value, list):
        for i, v in enumerate(value):
            check(v, schema.get("items", {}), "%s/%d" % (where, i))


def operation(method, path):
    """The operation of docs/openapi.json for a request, or None."""
    path = path.split("?")[0]
    for pattern, item in API["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method.lower() in item:
            return item[method.lower()]
    return None


def check_answer(method, path, status, headers, body):
    o = operation(method, path)
    if not o:
        return
    answer = o["responses"].get(str(status)) or o["responses"].get("default")
    assert answer, "%s %s: %d is not described" % (method, path, status)
    if "$ref" in answer:
        answer = API["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
    kind = headers.get("Content-Type", "").split(";")[0]
    if not answer.get("content"):
        assert not body, "%s %s: there is a body: %r" % (method, path, body[:200])
        return
    assert kind in answer["content"], "%s %s %d: %s is not described" % (method, path, status, kind)
    if kind in ("application/json", "application/problem+json"):
        check(json.loads(body), answer["content"][kind]["schema"], "%s %s" % (method, path))


def parse_events(text):
    events = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        data = json.loads(fields["data"])
        check(data, API["components"]["schemas"][EVENTS[fields["event"]]], fields["event"])
        events.append((fields["event"], data))
    return events


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Problem(Exception):
    def __init__(self, status, body):
        super().__init__("%d %s" % (status, body.get("detail")))
        self.status, self.body, self.code = status, body, body.get("code")


class Server:
    def __init__(self, *args, state=None, key=KEY, listen=True, wait=True, **env):
        if not os.path.exists(os.path.join(BUILD, "cordon-http")):
            raise Need("a build with libmicrohttpd")
        self.own_state = None if state else tempfile.mkdtemp(prefix="cordon-serve-")
        self.state, self.key = state or self.own_state, key
        environment = dict(os.environ, **env)
        if key:
            environment["CORDON_SERVE_KEY"] = key
        where = ["--listen", "127.0.0.1:0"] if listen else []
        self.p = subprocess.Popen([CORDON, "serve", *where, "--state", self.state, *args], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=environment)
        self.socket = args[args.index("--socket") + 1] if "--socket" in args else None
        self.connections = []
        if wait:
            self.wait_ready()

    def wait_ready(self):
        line = self.p.stdout.readline()
        assert line.startswith("listening at "), line + self.p.stderr.read()
        self.url = line.split()[-1]
        self.port = None if self.socket else int(self.url.rsplit(":", 1)[1])

    def connect(self):
        c = UnixConnection(self.socket) if self.socket else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connections.append(c)
        return c

    def client(self, key=None):
        return Client(self, key or self.key)

    def stop(self, seconds=60):
        if self.p.stdout.closed:
            return self.p.returncode
        for c in self.connections:
            c.close()
        if self.p.poll() is None:
            self.p.terminate()
        status = self.p.wait(seconds)
        self.p.stdout.close()
        self.stderr = self.p.stderr.read()
        self.p.stderr.close()
        assert "Sanitizer" not in self.stderr, self.stderr[-4000:]
        if self.own_state:
            shutil.rmtree(self.own_state, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop()


class Client:
    """One connection with keep-alive, as one key."""

    def __init__(self, server, key):
        self.server, self.key, self.c = server, key, server.connect()

    def raw(self, method, path, body=None, headers=None):
        h = dict(headers or {})
        if self.key:
            h.setdefault("Authorization", "Bearer " + self.key)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            h.setdefault("Content-Type", "application/json")
        self.c.request(method, path, body, h)
        r = self.c.getresponse()
        data = r.read()
        answered = dict(r.getheaders())
        if method != "HEAD" and answered.get("Content-Type", "") != "text/event-stream":
            check_answer(method, path, r.status, answered, data)
        return r.status, answered, data

    def call(self, method, path, body=None, lawful=True, **headers):
        o = operation(method, path)
        if lawful and body is not None and not isinstance(body, bytes):
            assert o, "%s %s is not described" % (method, path)
            check(body, o["requestBody"]["content"]["application/json"]["schema"], method + " " + path)
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        status, answered, data = self.raw(method, path, body, headers)
        if status >= 400:
            raise Problem(status, json.loads(data) if data else {})
        kind = answered.get("Content-Type", "")
        if kind == "text/event-stream":
            return parse_events(data.decode())
        return json.loads(data) if kind == "application/json" else data

    def open(self, **params):
        return self.call("POST", "/v1/sessions", params)["session"]

    def execute(self, session, code, **params):
        return self.call("POST", "/v1/sessions/%s/executions" % session, {"code": code, **params})

    def events(self, session, code, **params):
        return self.call("POST", "/v1/sessions/%s/executions" % session, {"code": code, **params},
                         Accept="text/event-stream")


def refused(status, fn, *args, **kw):
    """The problem that a call must end with."""
    try:
        value = fn(*args, **kw)
    except Problem as p:
        assert p.status == status, "%d instead of %d: %r" % (p.status, status, p.body)
        return p
    raise AssertionError("not refused: %r" % (value,))

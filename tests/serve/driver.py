"""A raw client of `cordon rpc` that checks every message against docs/rpc.json."""
import json
import os
import queue
import re
import subprocess
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORDON = os.environ.get("CORDON") or os.path.join(ROOT, "build", "cordon")
SCHEMA = json.load(open(os.path.join(ROOT, "docs", "rpc.json")))
# Code that waits until somebody writes the file /tmp/go.
HELD = {"python": "import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n", "sh": "until [ -e /tmp/go ]; do sleep 0.01; done; "}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
         "integer": int, "number": (int, float)}


def check(value, schema, where="$"):
    """The part of JSON Schema that docs/rpc.json uses."""
    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
             "minimum", "pattern", "description"}
    assert set(schema) <= known, "%s: unknown keyword in %s" % (where, schema)
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
    kind = schema.get("type")
    if kind:
        is_bool = isinstance(value, bool) and kind in ("integer", "number")
        assert isinstance(value, TYPES[kind]) and not is_bool, "%s: %r is no %s" % (where, value, kind)
    if "minimum" in schema:
        assert value >= schema["minimum"], where
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), where
    if kind == "object":
        for key in schema.get("required", []):
            assert key in value, "%s: %s is missing" % (where, key)
        extra = schema.get("additionalProperties", True)
        for key, v in value.items():
            if key in schema.get("properties", {}):
                check(v, schema["properties"][key], where + "/" + key)
            elif isinstance(extra, dict):
                check(v, extra, where + "/" + key)
            else:
                assert extra, "%s: unexpected %s" % (where, key)
    if kind == "array":
        for i, v in enumerate(value):
            check(v, schema.get("items", {}), "%s/%d" % (where, i))


def method_schema(name):
    m = SCHEMA["methods"][name]
    return SCHEMA["methods"][m["alias"]] if "alias" in m else m


TSAN = "TSAN_OPTIONS" in os.environ  # the program was built with ThreadSanitizer; see tools/test
PATIENCE = 5 if TSAN else 1  # how much longer everything may take


class Need(Exception):
    """What a test needs and the machine lacks. is_far: it would come from elsewhere, or it is our own build that lacks it."""

    def __init__(self, what, is_far=False):
        super().__init__(what)
        self.is_far = is_far


def needs_no_tsan(why):
    if TSAN:
        raise Need("under ThreadSanitizer " + why, is_far=True)


class Failure(Exception):
    def __init__(self, error):
        super().__init__("%s: %s" % (error["code"], error["message"]))
        self.code, self.message, self.data = error["code"], error["message"], error.get("data", {})


class Client:
    """Answers tool calls with the functions in `tools`."""

    def __init__(self, *args, tools=None, sock=None):
        self.tools, self.seen, self.answers = tools or {}, [], {}
        self.n, self.lock, self.changed = 0, threading.Lock(), threading.Condition()
        self.process = None
        if sock:
            self.out, self.inp = sock.makefile("wb"), sock.makefile("rb")
        else:
            self.process = subprocess.Popen([CORDON, "rpc", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.out, self.inp = self.process.stdin, self.process.stdout
        self.methods = {}
        self.ended = False
        threading.Thread(target=self.read, daemon=True).start()

    def raw(self, data):
        with self.lock:
            self.out.write(data)
            self.out.flush()

    def send(self, method, params, lawful=True):
        with self.lock:
            self.n += 1
            n = self.n
        if lawful and method in SCHEMA["methods"]:
            check(params, method_schema(method)["params"], method)
        self.methods[n] = method
        self.raw(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode() + b"\n")
        return n

    def wait(self, n, seconds=30):
        with self.changed:
            assert self.changed.wait_for(lambda: n in self.answers or self.ended, seconds * PATIENCE), "no answer to %r" % n
            assert n in self.answers, "the server ended"
            m = self.answers.pop(n)
        if "error" in m:
            raise Failure(m["error"])
        if n in self.methods:
            check(m["result"], method_schema(self.methods[n])["result"], self.methods[n])
        return m["result"]

    def call(self, method, /, lawful=True, **params):
        params = {("from" if k == "from_" else k): v for k, v in params.items()}
        return self.wait(self.send(method, params, lawful))

    def fails(self, code, text, method, /, **params):
        try:
            result = self.call(method, lawful=False, **params)
        except Failure as f:
            assert f.code == code and text in f.message, f
            return f
        raise AssertionError("%s succeeded: %r" % (method, result))

    def begin(self, session, code, guest="python"):
        """Sends code, and returns when it runs."""
        self.seen.clear()
        code = {"python": "print('up', flush=True)\n", "sh": "echo up; "}[guest] + code
        n = self.send("session.execute", {"session": session, "code": code, "stream": True})
        self.wait_note("output")
        return n

    def notes(self, method):
        with self.changed:
            return [m["params"] for m in self.seen if m["method"] == method]

    def wait_note(self, method, count=1, seconds=30):
        with self.changed:
            assert self.changed.wait_for(
                lambda: sum(m["method"] == method for m in self.seen) >= count, seconds), "no " + method
        return self.notes(method)[count - 1]

    def answer(self, m):
        p = m["params"]
        try:
            if m["method"].startswith("storage."):
                reply = {"result": self.tools[m["method"]](**p)}
                check(reply["result"], SCHEMA["callbacks"][m["method"]]["result"], m["method"])
            else:
                reply = {"result": {"value": self.tools[p["tool"]](**p["args"])}}
        except Exception as e:
            reply = {"error": {"code": 1, "message": str(e)}}
        try:
            self.raw(json.dumps(dict(reply, jsonrpc="2.0", id=m["id"])).encode() + b"\n")
        except (OSError, ValueError):
            pass

    def read(self):
        for line in self.inp:
            m = json.loads(line)
            if "method" in m and "id" in m:
                check(m["params"], SCHEMA["callbacks"][m["method"]]["params"], m["method"])
                threading.Thread(target=self.answer, args=(m,), daemon=True).start()
                continue
            with self.changed:
                if "method" in m:
                    check(m["params"], SCHEMA["notifications"][m["method"]], m["method"])
                    self.seen.append(m)
                else:
                    self.answers[m["id"]] = m
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def open(self, **params):
        return self.call("session.open", **params)["session"]

    def execute(self, session, code, **params):
        return self.call("session.execute", session=session, code=code, **params)

    def close(self):
        try:
            if self.process:  # what a test left running is not waited for
                self.raw(b'{"jsonrpc":"2.0","method":"kill"}\n')
            self.out.close()
        except (OSError, ValueError):
            pass
        if self.process:
            self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False

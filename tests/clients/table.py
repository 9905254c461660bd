"""The common table of behaviours, with the Python client."""
import json
import os
import tempfile

import cordon

HERE = os.path.dirname(os.path.abspath(__file__))
ALL = bytes(range(256))


def fail():
    raise ValueError("tool failed")


TOOLS = {
    "add": cordon.Tool(lambda a, b: a + b, name="add", args={"a": "number", "b": "number"}),
    "echo": cordon.Tool(lambda v: v, name="echo", args={"v": None}),
    "fail": cordon.Tool(fail, name="fail"),
    "pi": cordon.Tool(lambda: 3.141592653589793, name="pi"),
    "nothing": cordon.Tool(lambda: None, name="nothing"),
}


def plain(v):
    return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v


def check_result(r, want, streamed):
    got = {"success": r.success, "value": plain(r.value), "error": r.error, "error_kind": r.error_kind, "stdout": r.stdout,
           "stderr": r.stderr, "exit_code": r.exit_code, "restarted": r.restarted, "restart_reason": r.restart_reason, "tool_calls": r.tool_calls,
           "truncated_stdout": r.truncated.get("stdout"), "streamed_stdout": streamed["stdout"], "streamed_stderr": streamed["stderr"],
           "assurance_wall": (r.assurance or {}).get("wall")}
    for key, value in want.items():
        if key == "error_has":
            assert value in (r.error or ""), "%r is not in %r" % (value, r.error)
        else:
            assert got[key] == value and type(got[key]) is type(value), "%s is %r, want %r" % (key, got[key], value)


def content(step):
    if "bytes" in step:
        return ALL
    if "repeat" in step:
        return (step["repeat"][0] * step["repeat"][1]).encode()
    return step["text"].encode()


def execute(on, step, state):
    streamed = {"stdout": "", "stderr": ""}
    options = {}
    if "timeout_ms" in step:
        options["timeout"] = step["timeout_ms"] / 1000
    if "tool_calls" in step:
        options["tool_calls"] = step["tool_calls"]
    if step.get("stream"):
        for name in streamed:
            options["on_" + name] = lambda text, name=name: streamed.__setitem__(name, streamed[name] + text)
    check_result(on.execute(step["code"], step.get("context"), **options), step.get("expect", {}), streamed)


def upload(on, path, data):
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "é")
        with open(local, "wb") as f:
            f.write(data)
        on.files.upload(local, path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(data), len(data)) and seen == sorted(seen), seen


def download(on, path):
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "out")
        try:
            on.files.download(path, local)
        finally:
            assert os.listdir(folder) in ([], ["out"]), "something is left"
        with open(local, "rb") as f:
            return f.read()


def do(on, step, state):
    op, path = step["do"], step.get("path")
    if op == "execute":
        execute(on, step, state)
    elif op == "write":
        on.files.write(path, content(step))
    elif op == "append":
        on.files.append(path, content(step))
    elif op == "read":
        data = on.files.read(path)
        assert "fails" in step or data == content(step), data[:100]
    elif op == "upload":
        upload(on, path, content(step))
    elif op == "download":
        assert "fails" in step or download(on, path) == content(step)
        if "fails" in step:
            download(on, path)
    elif op == "tar":
        with tempfile.TemporaryDirectory() as folder:
            on.files.get_tar(path, os.path.join(folder, "t"))
            on.files.mkdir(step["to"])
            on.files.put_tar(step["to"], os.path.join(folder, "t"))
    elif op == "watch":
        state["watch"] = on.files.watch(path, recursive=step.get("recursive", True))
    elif op == "changes":
        found = [f"{c.change} {c.path} {c.type}" for c in state["watch"].changes(step["wait_ms"] / 1000)]
        assert found == step["want"], found
    elif op == "unwatch":
        state["watch"].close()
    elif op == "stat":
        info = on.files.stat(path)
        assert (info.type, info.size) == (step["type"], step["size"]), info
    elif op == "list":
        assert sorted(f.name for f in on.files.list(path)) == step["names"]
    elif op == "mkdir":
        on.files.mkdir(path)
    elif op == "move":
        on.files.move(step["from"], step["to"])
    elif op == "remove":
        on.files.remove(path, recursive=step.get("recursive", False))
    elif op == "snapshot":
        on.snapshot(step["as"])
    elif op == "restore":
        on.restore(step["name"])
    elif op == "fork":
        state[step["as"]] = on.fork()
    elif op == "export":
        state["blob"] = on.export()
    elif op == "import":
        on.import_(state["blob"])
    elif op == "restart":
        on.restart()
    elif op == "setenv":
        on.setenv(step["name"], step["value"])
    elif op == "close":
        on.close()
    else:
        raise Exception("unknown operation " + op)


def expect_failure(want, action):
    try:
        action()
    except cordon.RpcError as e:
        assert want is True or e.kind == want, "%s, want %s: %s" % (e.kind, want, e)
        return
    raise AssertionError("it did not fail")


def run_case(case, tools=TOOLS):
    make = cordon.Session
    options = {k: case[k] for k in ("level", "policy", "env") if k in case}
    if "pool" in case:
        make, options["size"] = cordon.Pool, case["pool"]

    def opened():
        return make(case["guest"], tools=[tools[t] for t in case.get("tools", [])], **options)

    if "open_fails" in case:
        expect_failure(case["open_fails"], opened)
        return
    state = {}
    with opened() as session:
        for step in case["steps"]:
            on = state[step["on"]] if "on" in step else session
            if "fails" in step:
                expect_failure(step["fails"], lambda: do(on, step, state))
            else:
                do(on, step, state)


def cases():
    with open(os.path.join(HERE, "table.json"), encoding="utf-8") as f:
        return json.load(f)["cases"]


def values():
    with open(os.path.join(HERE, "table.json"), encoding="utf-8") as f:
        return json.load(f)["values"]


class Guests:
    """One session for all the values of a guest."""

    def __init__(self):
        self.open = {}

    def of(self, guest):
        if guest not in self.open:
            self.open[guest] = cordon.Session(guest)
        return self.open[guest]

    def close(self):
        for session in self.open.values():
            session.close()

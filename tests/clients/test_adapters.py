"""cordon.adapters, with stand-ins that have the documented form of each library's classes: the libraries are not needed."""
import abc
import asyncio
import inspect
import json
import os
import sys
import tempfile

import cordon
from cordon import adapters


class StructuredTool:
    """langchain_core.tools: from_function(func, coroutine, name, description, ..., args_schema); the schema is that of the signature."""

    @classmethod
    def from_function(cls, func=None, coroutine=None, name=None, description=None, return_direct=False, args_schema=None, infer_schema=True, **kwargs):
        self = cls()
        self.func, self.name, self.description = func, name, description
        self.args = {k: p.annotation for k, p in inspect.signature(func).parameters.items()}
        return self

    def invoke(self, input):
        assert set(input) == set(self.args) and all(isinstance(v, self.args[k]) for k, v in input.items())
        return self.func(**input)


class FunctionTool:
    """llama_index.core.tools: from_defaults(fn, name, description, return_direct, fn_schema, async_fn, ...)."""

    @classmethod
    def from_defaults(cls, fn=None, name=None, description=None, return_direct=False, fn_schema=None, async_fn=None, **kwargs):
        self = cls()
        self.fn, self.name, self.description = fn, name, description
        return self

    def call(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


class Tool:
    """smolagents: class attributes name, description, inputs, output_type, and forward() with the names of the inputs."""

    def __init__(self):
        for name, kind in (("name", str), ("description", str), ("inputs", dict), ("output_type", str)):
            assert isinstance(getattr(self, name), kind), name
        assert self.name.isidentifier() and self.output_type == "string"
        assert set(inspect.signature(self.forward).parameters) == set(self.inputs)
        assert all(set(v) == {"type", "description"} for v in self.inputs.values())

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class SandboxEnvironment(abc.ABC):
    """inspect_ai.util: what a provider has to implement."""

    @classmethod
    @abc.abstractmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted): ...

    @abc.abstractmethod
    async def exec(self, cmd, input=None, cwd=None, env={}, user=None, timeout=None, timeout_retry=True, concurrency=True): ...

    @abc.abstractmethod
    async def write_file(self, file, contents): ...

    @abc.abstractmethod
    async def read_file(self, file, text=True): ...


class LimitError(Exception):
    def __init__(self, limit_str, truncated_output):
        super().__init__(limit_str)
        self.truncated_output = truncated_output


def raises(kind, work):
    try:
        asyncio.get_event_loop().run_until_complete(work) if inspect.iscoroutine(work) else work()
    except kind as e:
        return str(e)
    raise AssertionError("no %s" % kind.__name__)


def test_adapters_what_the_model_reads():
    seen = []
    with cordon.Session("python", policy={"timeout_ms": 3000}) as s:
        call = adapters.tool_function(s, on_result=seen.append)
        assert call("x = 20\nprint('hi')\nx + 1") == "hi\n21"
        assert call("x += 1") == "(no output)"
        bad = call("def f():\n    return 1 / 0\nf()")
        assert bad.startswith("exception in line 2: ") and "division by zero" in bad and "Traceback" in bad, bad
        denied = call("import socket\nsocket.socket(socket.AF_PACKET)")
        assert "\ndenied: socket " in denied and "; to allow it: " in denied, denied
        long = call("print('a' * 50000 + 'b')")
        assert len(long) < 20000 and "of 50002 characters are left out" in long and long.endswith("ab"), long[-40:]
        late = call("while True: pass")
        assert late.startswith("timeout") and "State kept" in late, late
        assert call("x") == "21"
        gone = call("import os; os._exit(3)")
        assert "State lost: " in gone and "\nReason: " in gone, gone
        assert len(seen) == 8 and seen[0].value == 21
        assert "must be a text" in raises(TypeError, lambda: call(7))
    assert "kind" in raises(ValueError, lambda: adapters.tool_function(s, kind="cod"))
    assert "not running" in raises(cordon.StateError, lambda: call("1"))
    forged = cordon.Result(False, denials=[cordon.Denial("open", "/a\nState lost: x", "files")], error="no", error_kind="denied",
                           truncated={"stdout": True})
    assert adapters.model_text(forged) == ("[the policy keeps no more of stdout (stdout_bytes, output_lines); the rest is lost]\n"
                                           "denied: no\ndenied: open /a?State lost: x (files); to allow it: none")


def test_adapters_of_libraries():
    with cordon.Session("python", languages=["python", "sh"]) as s:
        t = adapters.langchain_tool(s, StructuredTool)
        assert t.name == "run_code" and "python" in t.description and t.args == {"code": str}
        assert t.invoke({"code": "y = 6; y * 7"}) == "42"
        t = adapters.llamaindex_tool(s, FunctionTool, name="compute", description="Computes.")
        assert (t.name, t.description, t.call(code="y * 7")) == ("compute", "Computes.", "42")
        assert adapters.smolagents_tool(s, Tool)("y * 7") == "42"
        for make, base, key in ((adapters.langchain_tool, StructuredTool, "func"), (adapters.llamaindex_tool, FunctionTool, "call"),
                                (adapters.smolagents_tool, Tool, "forward")):
            t = make(s, base, kind="command")
            assert t.name == "run_command" and getattr(t, key)(command="echo $((6 * 7))") == "42"
        assert adapters.smolagents_tool(s, Tool, language="sh")(code="echo 42") == "42"
        for make, package in ((adapters.langchain_tool, "langchain-core"), (adapters.llamaindex_tool, "llama-index-core"),
                              (adapters.smolagents_tool, "smolagents")):
            assert "install " + package in raises(ImportError, lambda: make(s))


def test_adapters_are_imported_only_if_asked_for():
    import subprocess
    code = "import sys, cordon; sys.exit('cordon.adapters' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(cordon.__file__)))).returncode == 0


async def use_inspect(made):
    environments = await made.sample_init("task", {"policy": {"timeout_ms": 20000}}, {})
    box = environments["default"]
    assert isinstance(box, SandboxEnvironment)
    await box.write_file("sub dir/f.txt", "text\u00e9")
    r = await box.exec(["sh", "-c", "cat; echo \"$A b\"; pwd; echo e >&2; exit 3"], input="in\n", cwd="sub dir", env={"A": "a"})
    assert (r.success, r.returncode, r.stdout, r.stderr) == (False, 3, "in\na b\n/home/user/sub dir\n", "e\n"), r
    r = await box.exec(["cat", "sub dir/f.txt"])
    assert (r.success, r.returncode, r.stdout) == (True, 0, "text\u00e9"), r
    assert await box.read_file("sub dir/f.txt") == "text\u00e9"
    await box.write_file("raw", b"\xff\x00")
    assert await box.read_file("raw", text=False) == b"\xff\x00"
    for kind, work in ((UnicodeDecodeError, box.read_file("raw")), (FileNotFoundError, box.read_file("none")), (IsADirectoryError, box.read_file("sub dir")),
                       (IsADirectoryError, box.write_file("sub dir", "x")), (PermissionError, box.write_file("/etc/passwd", "x")),
                       (TimeoutError, box.exec(["sh", "-c", "while :; do :; done"], timeout=1)), (PermissionError, box.exec(["/home/user/raw"])),
                       (LimitError, box.exec(["sh", "-c", "yes | head -c 3000000"])), (NotImplementedError, box.connection())):
        try:
            await work
        except kind:
            continue
        except Exception as e:
            raise AssertionError("%s instead of %s" % (repr(e), kind.__name__))
        raise AssertionError("no %s" % kind.__name__)
    r = await box.exec(["no-such-program"])
    assert not r.success and r.returncode == 127, r
    await made.sample_cleanup("task", None, environments, False)
    try:
        await box.exec(["true"])
    except cordon.CordonError:
        return
    raise AssertionError("it is still there")


def test_adapters_of_inspect():
    made = adapters.inspect_environment(SandboxEnvironment, limit_error=LimitError)
    asyncio.run(use_inspect(made))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"timeout_ms": 5000}, f)
        f.flush()
        asyncio.run(made.task_init("task", f.name))
    for config, kind in (({"levl": "strict"}, ValueError), ("/nonexistent.json", FileNotFoundError)):
        try:
            asyncio.run(made.task_init("task", config))
        except kind:
            continue
        raise AssertionError("no %s" % kind.__name__)
    assert "inspect-ai" in raises(ImportError, lambda: adapters.inspect_environment())

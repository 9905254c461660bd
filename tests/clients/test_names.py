"""codepod's Python SDK and SandboxedRunner's names, one by one: programs written for them must work with these names."""
import dataclasses
import inspect
import os
import tempfile

import cordon

# Name and default of every argument, in order where it counts; "": has none.
KEYWORDS = {
    cordon.Sandbox: {"engine": "auto", "timeout_ms": 30000, "nice": 0, "fs_limit_bytes": 268435456, "mounts": (), "python_path": (),
                     "extensions": (), "storage": None},
}
FIELDS = {
    cordon.CommandResult: ["stdout", "stderr", "exit_code", "execution_time_ms", "truncated", "error_class"],
    cordon.Extension: ["name", "description", "command", "async_command", "usage", "examples", "category", "python_package"],
    cordon.PythonPackage: ["version", "summary", "files"],
    cordon.FileStat: ["type", "size"],
    cordon.DirEntry: ["name", "type", "size"],
    cordon.FileInfo: ["name", "type", "size"],
    cordon.SandboxConfig: ["security_level", "timeout_seconds", "max_memory_mb", "allowed_modules"],
    cordon.SandboxResult: ["success", "result", "stdout", "stderr", "error", "execution_time_ms", "memory_used_mb"],
}
METHODS = {
    "commands": {"run": ["command", "stream", "on_stdout", "on_stderr"]},
    "files": {"read": ["path"], "write": ["path", "data"], "list": ["path"], "stat": ["path"], "mkdir": ["path"], "rm": ["path"]},
    "sandboxes": {"create": ["label"], "list": [], "remove": ["id"]},
    "": {"mount": ["path", "files"], "snapshot": [], "restore": ["id"], "export_state": [], "import_state": ["blob"], "offload": [],
         "rehydrate": [], "fork": [], "destroy": [], "kill": [], "suspend": [], "resume": [], "__enter__": [], "__exit__": []},
}


def test_names_of_the_sandbox():
    for fn, want in KEYWORDS.items():
        p = inspect.signature(fn).parameters
        for name, default in want.items():
            assert name in p and p[name].default == default and p[name].kind is p[name].KEYWORD_ONLY, (name, p.get(name))
    with cordon.Sandbox() as sb:
        for part, methods in METHODS.items():
            owner = getattr(sb, part) if part else sb
            for name, args in methods.items():
                p = [k for k, v in inspect.signature(getattr(owner, name)).parameters.items() if v.kind is not v.VAR_POSITIONAL]
                assert p[:len(args)] == args, (part, name, p)
        ref = sb.sandboxes.create("label")
        assert isinstance(ref, cordon.SandboxRef) and isinstance(sb.sandboxes, cordon.SandboxManager)
        assert ref.sandbox_id == ref.id and [(i.sandbox_id, i.label) for i in sb.sandboxes.list()] == [(ref.sandbox_id, "label")]
        assert ref.commands.run("echo hi").stdout == "hi\n" and ref.files.list("/tmp") == []
        r = sb.commands.run("echo out; echo err >&2; exit 3", stream=True)
        assert (r.stdout, r.stderr, r.exit_code, r.error_class) == ("out\n", "err\n", 3, None) and r.execution_time_ms > 0
        assert r.truncated == {"stdout": False, "stderr": False}
    assert cordon.MemoryFS({"a": b""}).writable is False and issubclass(cordon.MemoryFS, cordon.VirtualFileSystem)
    assert inspect.isabstract(cordon.VirtualFileSystem)


def test_names_of_the_data():
    for cls, names in FIELDS.items():
        have = [f.name for f in dataclasses.fields(cls)]
        assert have[:len(names)] == names, (cls, have)
        if cls in (cordon.SandboxConfig, cordon.SandboxResult):
            assert have == names, (cls, have)
    assert cordon.PythonPackage().version == "1.0.0"
    e = cordon.RpcError(-32600, "text")
    assert (e.code, e.message, str(e)) == (-32600, "text", "text") and isinstance(e, Exception)


def fails(kind, text, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind as e:
        assert text in str(e), e
        return e
    raise AssertionError("it did not fail")


def test_options_of_the_sandbox():
    fails(ValueError, "engine", cordon.Sandbox, engine="v8")
    fails(ValueError, "low", cordon.Sandbox, nice="low")
    for engine in ("auto", "wasmtime", "deno"):
        with cordon.Sandbox(engine=engine) as sb:
            assert sb.commands.run("echo ok").stdout == "ok\n"
    for nice, percent in ((10, 50), (19, 10), (99, 10)):
        with cordon.Sandbox(nice=nice) as sb:
            assert sb._session().execute("true").assurance["limits"]["cpu_percent"] == percent
    with cordon.Sandbox(python_path=["/home/user/lib"]) as sb:
        assert sb.commands.run("printenv PYTHONPATH").stdout.startswith("/home/user/lib")
    with cordon.Sandbox(fs_limit_bytes=1 << 20, timeout_ms=700) as sb:
        assert sb.commands.run("head -c 4000000 /dev/zero > big").exit_code != 0
        r = sb.commands.run("sleep 30")
        assert (r.exit_code, r.error_class) == (124, "TIMEOUT")
    saved = {}
    with cordon.Sandbox(storage={"save": saved.__setitem__, "load": saved.__getitem__}) as sb:
        sb.files.write("/home/user/f", "kept")
        sb.offload()
        assert len(saved) == 1
        sb.offload()
        fails(cordon.SandboxError, "Sandbox is offloaded — call rehydrate() first", sb.commands.run, "ls")
        sb.rehydrate()
        assert sb.files.read("/home/user/f") == b"kept"

    def broken(*_):
        raise OSError("disk full")
    with cordon.Sandbox(storage={"save": broken, "load": broken}) as sb:
        sb.files.write("/home/user/f", "kept")
        fails(OSError, "disk full", sb.offload)
        assert sb.files.read("/home/user/f") == b"kept"  # a failed save keeps it active
        fails(cordon.SandboxError, "no such snapshot: 99", sb.restore, "99")
        assert (sb.snapshot(), sb.snapshot()) == ("1", "2")
        fails(cordon.RpcError, "1x", sb.set_env, "1x", "")
        r = sb.commands.run("x" * (2 << 20))  # LIM-11
        assert (r.exit_code, r.stderr, r.error_class, r.execution_time_ms) == (1, "command too large\n", "LIMIT_EXCEEDED", 0.0), r
        fails(ValueError, "positive", sb.commands.run, "true", timeout_ms=0)
    with cordon.Sandbox(env={"A": "given"}) as sb:
        assert (sb.get_env("A"), sb.get_env("B")) == ("given", None)
        sb.set_env("B", "original")
        first = sb.snapshot()
        sb.set_env("B", "changed")
        sb.set_env("C", "new")
        sb.restore(first)  # SNP-01
        assert (sb.get_env("A"), sb.get_env("B"), sb.get_env("C")) == ("given", "original", None)
        sb.offload()
        sb.rehydrate()
        assert (sb.get_env("B"), sb.get_env("C")) == ("original", None)
        fails(cordon.CordonError, "", sb.mount, "relative", {"a": "1"})
        sb.mount("/mnt/x", {"a": "1"})  # the one that failed is not tried again
        assert sb.commands.run("cat /mnt/x/a; printenv B").stdout == "1original\n"


def test_extensions_say_what_they_are():
    async def later(args):
        return {"stdout": "later\n", "exitCode": 4}

    ext = [cordon.Extension("greet", "Greets.", lambda args, stdin, env, cwd: {"stdout": "%s in %s\n" % (args[0], cwd)}, None,
                            "greet NAME", ["greet anna"], "talk", cordon.PythonPackage("2.1.0", "Greetings.", {"words.py": "HI = 'hi'\n"})),
           cordon.Extension("wait", "Waits.", async_command=later)]
    with cordon.Sandbox(extensions=ext) as sb:
        assert sb.commands.run("cd /tmp; greet anna").stdout == "anna in /tmp\n"
        r = sb.commands.run("wait_ 2>/dev/null; command wait; extensions info greet; greet --help")
        assert "greet NAME" in r.stdout and "greet anna" in r.stdout, r
        r = sb.commands.run("python3 -c 'import greet, greet.words; print(greet.__version__, greet.__doc__, greet.words.HI)'")
        assert r.stdout == "2.1.0 Greetings. hi\n", r
        r = sb.commands.run("python3 -c 'from greet._shim import run; print(run(\"bert\"))'")
        assert "bert in" in r.stdout and "'exit_code': 0" in r.stdout, r


def test_the_audit_log_has_no_environment():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "audit.jsonl")
        with cordon.Sandbox(extensions=[cordon.Extension("see", command=lambda env, cwd: env["S"] + cwd)], policy={"audit": path}) as sb:
            assert sb.commands.run("export S=$(printf hid; printf den); cd /tmp; see").stdout == "hidden/tmp"
        with open(path) as f:
            calls = [line for line in f if '"tool_call"' in line]
        assert len(calls) == 1 and '"cwd":"/tmp"' in calls[0] and "hidden" not in calls[0] and '"env"' not in calls[0], calls


def test_names_of_the_runner():
    assert [x.value for x in cordon.SecurityLevel] == ["permissive", "standard", "strict"]
    assert list(inspect.signature(cordon.SandboxedRunner.execute).parameters)[:3] == ["self", "code", "context"]
    for level, seconds, memory, modules in (
            ("permissive", 60, 1024, {"pandas", "math", "statistics", "json", "numpy", "datetime"}),
            ("standard", 30, 512, {"pandas", "math", "statistics", "json"}), ("strict", 10, 256, {"math", "statistics", "json"})):
        c = cordon.SandboxConfig.for_level(cordon.SecurityLevel(level))
        assert (c.timeout_seconds, c.max_memory_mb, set(c.allowed_modules)) == (seconds, memory, modules)
        p = c.to_policy()
        assert (p["timeout_ms"], p["memory_bytes"]) == (seconds * 1000, memory << 20)
    fails(ValueError, "paranoid", cordon.SandboxConfig.for_level, "paranoid")
    with cordon.create_runner("strict") as runner:
        assert runner.is_available()
        r = runner.execute("print('hi')\nresult = {'a': [1, 2.5, None]}")
        assert r.success and r.result == {"a": [1, 2.5, None]} and r.output == "hi\n" and r.execution_time_ms > 0 and r.memory_used_mb > 0
        r = runner.execute("raise ValueError('no')")
        assert not r.success and "no" in r.error and r.result is None
        r = runner.execute("1 +")
        assert not r.success and r.error_kind == "syntax"
        assert "Import of 'os' is not allowed" in runner.execute("import os").error


def test_verbose():  # LOG-01
    lines = []
    with cordon.Session("python", verbose=lines.append, tools={"add": lambda a, b: a + b}) as s:
        assert s.run("add(2, 3)") == 5
    assert [x.split()[2] for x in lines] == ["session_start", "execute_start", "tool_call", "tool_result", "execute_complete",
                                            "session_close"], lines
    assert all(x.startswith("[cordon] %s " % s.id) for x in lines) and "tool=add" in lines[2], lines

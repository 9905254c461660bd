"""What codepod's Python SDK expects in its tests and pages: the sandbox, commands, the server's words, and what codepod_*.py have."""
import base64
import inspect
import os
import threading

from codepod_extensions import TestDiscovery, TestExtensionCommands, TestExtensionPackages  # noqa: F401
from codepod_files import TestFiles, TestMemoryFS, TestMount, TestPythonPath, TestVirtualFileSystem  # noqa: F401
from codepod_shell import out
from codepod_state import TestExportedVariables, TestHistory, TestState  # noqa: F401
from expectations import differs, fails, main, same

import cordon
from cordon import CommandResult, DirEntry, Extension, FileInfo, FileStat, PythonPackage, RpcError, Sandbox, SandboxManager, SandboxRef


class TestSandbox:
    def test_create_and_kill(self):
        sb = Sandbox()
        sb.kill()
        fails(cordon.SandboxError, "Sandbox has been destroyed", sb.commands.run, "true")

    def test_context_manager(self):
        with Sandbox() as sb:
            same(sb.commands.run("echo hello").exit_code, 0)
        fails(cordon.SandboxError, "destroyed", sb.files.read, "/tmp/x")

    def test_kill_twice(self):
        sb = Sandbox()
        sb.kill()
        sb.kill()

    def test_missing_program_raises(self):
        kept = {k: os.environ.pop(k, None) for k in ("CORDON", "PATH")}
        try:
            e = fails(RuntimeError, "cordon", cordon.Connection)
        finally:
            os.environ.update({k: v for k, v in kept.items() if v is not None})
        assert isinstance(e, cordon.ProgramMissing)

    def test_options_are_keywords(self):
        p = inspect.signature(Sandbox).parameters
        want = {"timeout_ms": 30000, "fs_limit_bytes": 256 << 20, "engine": "auto", "nice": 0}
        same({k: p[k].default for k in want}, want)
        assert all(p[k].kind is p[k].KEYWORD_ONLY for k in (*want, "mounts", "python_path", "extensions", "storage"))

    @differs("`destroy()` of the first sandbox is refused")
    def test_destroy_is_kill(self):
        sb = Sandbox()
        sb.destroy()
        fails(cordon.SandboxError, "destroyed", sb.commands.run, "true")


class TestEndToEnd:
    def test_write_file_then_cat(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/in.txt", "from python")
            same(out(sb, "cat /tmp/in.txt"), "from python")

    def test_command_output_to_file(self):
        with Sandbox() as sb:
            out(sb, "echo made > /tmp/out.txt")
            same(sb.files.read("/tmp/out.txt"), b"made\n")

    def test_commands_one_after_the_other(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/m", "1\n")
            out(sb, "echo 2 >> /tmp/m")
            same(out(sb, "cat /tmp/m"), "1\n2\n")

    def test_variable_persists(self):
        with Sandbox() as sb:
            out(sb, "MY_VAR=hello_world")
            same(out(sb, "echo $MY_VAR"), "hello_world\n")

    def test_directory_persists(self):
        with Sandbox() as sb:
            out(sb, "cd /tmp")
            same(out(sb, "pwd"), "/tmp\n")

    def test_binary_round_trip(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/b", bytes(range(256)))
            same(sb.files.read("/tmp/b"), bytes(range(256)))

    def test_life_of_a_file(self):
        with Sandbox() as sb:
            sb.files.mkdir("/tmp/project")
            sb.files.write("/tmp/project/data.txt", "content")
            same([e.name for e in sb.files.list("/tmp/project")], ["data.txt"])
            info = sb.files.stat("/tmp/project/data.txt")
            same((info.type, info.size), ("file", 7))
            sb.files.rm("/tmp/project/data.txt")
            same(sb.files.list("/tmp/project"), [])

    def test_pipeline_with_file(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/lines", "a\nb\nc\n")
            same(out(sb, "cat /tmp/lines | wc -l").strip(), "3")

    def test_sandboxes_are_isolated(self):
        with Sandbox() as one, Sandbox() as two:
            one.files.write("/tmp/only", "1")
            assert "ENOENT" in fails(RpcError, "", two.files.read, "/tmp/only").message

    def test_export_import_round_trip(self):
        with Sandbox() as sb:
            sb.files.write("/tmp/p", b"kept")
            blob = sb.export_state()
            assert isinstance(blob, bytes) and blob
            sb.files.write("/tmp/p", b"other")
            sb.import_state(blob)
            same(sb.files.read("/tmp/p"), b"kept")


class TestCommands:
    def test_result(self):
        with Sandbox() as sb:
            r = sb.commands.run("echo out; echo err >&2; exit 3")
        assert isinstance(r, CommandResult) and r.execution_time_ms > 0
        same((r.stdout, r.stderr, r.exit_code, r.error_class), ("out\n", "err\n", 3, None))

    def test_pipeline(self):
        with Sandbox() as sb:
            same(out(sb, "echo hello | tr a-z A-Z"), "HELLO\n")

    def test_unknown_command(self):
        with Sandbox() as sb:
            same(sb.commands.run("nosuchcmd").exit_code, 127)

    def test_timeout(self):
        with Sandbox(timeout_ms=300) as sb:
            r = sb.commands.run("sleep 30")
            same((r.exit_code, r.error_class), (124, "TIMEOUT"))
            assert r.stderr.endswith("command timeout\n"), r
            same(out(sb, "echo recovered"), "recovered\n")

    def test_cancel(self):
        with Sandbox() as sb:
            started = threading.Event()
            ends = []
            waiter = threading.Thread(target=lambda: ends.append(sb.commands.run("echo on; sleep 60", on_stdout=lambda _: started.set())))
            waiter.start()
            assert started.wait(60)
            sb.cancel()
            waiter.join(60)
        same((ends[0].exit_code, ends[0].error_class), (125, "CANCELLED"))

    def test_command_too_large(self):
        with Sandbox() as sb:
            r = sb.commands.run("echo " + "x" * 70000)
        same((r.exit_code, r.stderr, r.error_class, r.execution_time_ms), (1, "command too large\n", "LIMIT_EXCEEDED", 0.0))

    def test_truncated(self):
        with Sandbox(policy={"stdout_bytes": 20}) as sb:
            r = sb.commands.run("yes hello | head -100")
        assert r.truncated["stdout"] and not r.truncated["stderr"], r

    @differs("substitutions deeper than 50")
    def test_deep_substitutions(self):
        with Sandbox() as sb:
            for depth in (10, 49):
                code = "echo deep"
                for _ in range(depth):
                    code = "echo $(%s)" % code
                r = sb.commands.run(code)
                assert r.stdout == "deep\n" or r.exit_code != 0 or r.denials, (depth, r)
            same(out(sb, "echo on"), "on\n")

    @differs("limits of memory and of the whole file system are refused or not read")
    def test_limits_hold(self):
        with Sandbox(fs_limit_bytes=1 << 20, policy={"memory_bytes": 64 << 20}) as sb:
            assert sb.commands.run("head -c 4000000 /dev/zero > big").exit_code != 0
            assert sb.commands.run("head -c 1000000000 /dev/zero | tail -c 1000000000 | wc -c").stdout.strip() != "1000000000"
            same(out(sb, "echo on"), "on\n")


class TestStreaming:
    def test_stdout(self):
        parts = []
        with Sandbox() as sb:
            r = sb.commands.run("echo hello", stream=True, on_stdout=parts.append)
        same(("".join(parts), r.stdout, r.exit_code), ("hello\n", "hello\n", 0))

    def test_stderr(self):
        parts = []
        with Sandbox() as sb:
            same(sb.commands.run("echo err >&2", stream=True, on_stderr=parts.append).exit_code, 0)
        same("".join(parts), "err\n")

    def test_without(self):
        with Sandbox() as sb:
            same(out(sb, "echo hello"), "hello\n")

    def test_parts_are_the_whole(self):
        parts = []
        with Sandbox() as sb:
            r = sb.commands.run("for i in $(seq 1 3); do echo $i; done", stream=True, on_stdout=parts.append)
        same("".join(parts), r.stdout)
        same(r.stdout, "1\n2\n3\n")


class TestManager:
    def test_create_and_list(self):
        with Sandbox() as sb:
            assert isinstance(sb.sandboxes, SandboxManager)
            ref = sb.sandboxes.create(label="test-list")
            assert isinstance(ref, SandboxRef) and isinstance(ref.sandbox_id, str)
            same([(i.sandbox_id, i.label) for i in sb.sandboxes.list()], [(ref.sandbox_id, "test-list")])
            assert sb.sandboxes.list()[0].created_at.endswith("Z")

    def test_remove(self):
        with Sandbox() as sb:
            ref = sb.sandboxes.create()
            sb.sandboxes.remove(ref.sandbox_id)
            same(sb.sandboxes.list(), [])
            fails(cordon.SandboxError, "Unknown sandboxId", sb.sandboxes.remove, ref.sandbox_id)

    def test_commands(self):
        with Sandbox() as sb:
            same(out(sb.sandboxes.create(), "echo hello"), "hello\n")

    def test_files(self):
        with Sandbox() as sb:
            ref = sb.sandboxes.create()
            ref.files.write("/tmp/t", "of the other")
            same(ref.files.read("/tmp/t"), b"of the other")
            same(fails(RpcError, "ENOENT", sb.files.read, "/tmp/t").code, 1)

    def test_forks_and_sandboxes_are_not_mixed_up(self):
        with Sandbox() as sb:
            child, ref = sb.fork(), sb.sandboxes.create()
            child.files.write("/tmp/f", "fork")
            ref.files.write("/tmp/f", "sandbox")
            same((child.files.read("/tmp/f"), ref.files.read("/tmp/f")), (b"fork", b"sandbox"))
            child.destroy()


class TestNice:
    def percent(self, nice):
        with Sandbox(nice=nice) as sb:
            return sb._session().execute("true").assurance["limits"].get("cpu_percent")

    def test_counts(self):
        assert self.percent(10) < self.percent(4) <= 100

    def test_is_clamped(self):
        same((self.percent(99), self.percent(-5)), (self.percent(19), self.percent(0)))

    def test_0_changes_nothing(self):
        with Sandbox() as sb:
            same(self.percent(0), sb._session().execute("true").assurance["limits"].get("cpu_percent"))


class TestSuspend:
    def test_holds_commands_until_resume(self):
        with Sandbox() as sb:
            sb.suspend()
            ends = []
            waiter = threading.Thread(target=lambda: ends.append(out(sb, "echo on")))
            waiter.start()
            waiter.join(0.3)
            assert waiter.is_alive() and not ends
            sb.resume()
            waiter.join(60)
            same(ends, ["on\n"])

    @differs("`suspend()` and `resume()` need the engine wasmtime")
    def test_with_every_engine(self):
        for engine in ("deno", "wasmtime", "auto"):
            with Sandbox(engine=engine) as sb:
                sb.suspend()
                sb.resume()
                same(out(sb, "echo on"), "on\n")


class TestEngine:
    def test_unknown(self):
        fails(ValueError, "engine", lambda: Sandbox(engine="v8"))

    @differs("`engine` chooses a runtime")
    def test_is_a_name(self):
        for engine in ("auto", "wasmtime", "deno"):
            with Sandbox(engine=engine) as sb:
                same(sb._session().execute("true").assurance["wall"], "linux")


class TestRpc:
    """The server under codepod's own names."""

    def client(self):
        c = cordon.Connection()
        same(c.request("create", {"timeoutMs": 5000})["ok"], True)
        return c

    def test_run(self):
        c = self.client()
        r = c.request("run", {"command": "echo hello"})
        same((r["exitCode"], r["stdout"]), (0, "hello\n"))
        c.close()

    def test_files(self):
        c = self.client()
        c.request("files.write", {"path": "/tmp/t", "data": base64.b64encode(b"data").decode()})
        same(base64.b64decode(c.request("files.read", {"path": "/tmp/t"})["data"]), b"data")
        c.close()

    def test_unknown_method(self):
        c = self.client()
        same(fails(RpcError, "", c.request, "nonexistent", {}).code, -32601)
        c.close()

    def test_file_error(self):
        c = self.client()
        e = fails(RpcError, "ENOENT", c.request, "files.read", {"path": "/nonexistent"})
        same(e.code, 1)
        c.close()

    def test_before_create(self):
        c = cordon.Connection()
        same(fails(RpcError, "create", c.request, "run", {"command": "true"}).code, -32600)
        c.close()

    def test_create_twice(self):
        c = self.client()
        same(fails(RpcError, "already created", c.request, "create", {}).code, -32600)
        c.close()

    def test_missing_parameter(self):
        c = self.client()
        same(fails(RpcError, "command", c.request, "run", {}).code, -32602)
        c.close()

    def test_environment(self):
        c = self.client()
        c.request("env.set", {"name": "A", "value": "b"})
        same((c.request("env.get", {"name": "A"})["value"], c.request("run", {"command": "echo $A"})["stdout"]), ("b", "b\n"))
        c.close()

    def test_history(self):
        c = self.client()
        c.request("run", {"command": "echo one"})
        same([e["command"] for e in c.request("shell.history.list", {})["entries"]], ["echo one"])
        c.request("shell.history.clear", {})
        same(c.request("shell.history.list", {})["entries"], [])
        c.close()

    @differs("`codepod._rpc.RpcClient`, `_find_deno()` and other private names")
    def test_private_names(self):
        assert not hasattr(cordon, "RpcClient") and issubclass(RpcError, Exception)
        e = RpcError(1, "text")
        same((e.code, e.message, str(e)), (1, "text", "text"))


class TestNames:
    def test_of_the_package(self):
        for name in ("Sandbox", "CommandResult", "FileInfo", "VirtualFileSystem", "MemoryFS", "FileStat", "DirEntry", "Extension",
                     "PythonPackage", "SandboxManager", "SandboxRef", "SandboxInfo", "RpcError"):
            assert name in cordon.__all__, name

    def test_of_an_extension(self):
        e = Extension(name="x")
        same((e.description, e.command, e.async_command, e.usage, e.examples, e.category, e.python_package), ("", None, None, "", [], "", None))

    def test_of_a_package(self):
        p = PythonPackage()
        same((p.version, p.summary, p.files), ("1.0.0", "", {}))

    def test_of_data(self):
        same((FileStat(type="file", size=1).size, DirEntry(name="a", type="dir").type, FileInfo(name="a", type="file", size=2).size), (1, "dir", 2))


if __name__ == "__main__":
    main("codepod", globals())

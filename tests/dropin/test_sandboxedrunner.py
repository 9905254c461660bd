"""What SandboxedRunner's design says, sentence by sentence, and its "Testing Strategy": names, defaults, limits, levels, escapes."""
import abc
import dataclasses
import enum
import inspect
import os

from expectations import differs, fails, main, same

import cordon
from cordon import (DockerRunner, InProcessRunner, SandboxConfig, SandboxedRunner, SandboxResult, SecurityLevel, SubprocessRunner,
                    create_runner)

RUNNERS = (SubprocessRunner, DockerRunner, InProcessRunner)
FOUR = ("pandas", "math", "statistics", "json")
LEVELS = {SecurityLevel.PERMISSIVE: (60.0, 1024, FOUR + ("numpy", "datetime")), SecurityLevel.STANDARD: (30.0, 512, FOUR),
          SecurityLevel.STRICT: (10.0, 256, FOUR[1:])}
ALL = ("*",)


def run(code, context=None, runner=SubprocessRunner, **fields):
    return runner(SandboxConfig(**fields)).execute(code, context or {})


class TestSecurityLevel:
    def test_is_an_enum(self):
        assert issubclass(SecurityLevel, enum.Enum)

    def test_has_three_members(self):
        same({m.name: m.value for m in SecurityLevel}, {"PERMISSIVE": "permissive", "STANDARD": "standard", "STRICT": "strict"})

    def test_is_found_by_its_value(self):
        assert SecurityLevel("strict") is SecurityLevel.STRICT


class TestSandboxConfig:
    def test_has_exactly_four_fields(self):
        same([f.name for f in dataclasses.fields(SandboxConfig)], ["security_level", "timeout_seconds", "max_memory_mb", "allowed_modules"])

    def test_defaults(self):
        c = SandboxConfig()
        same((c.security_level, c.timeout_seconds, c.max_memory_mb, c.allowed_modules), (SecurityLevel.STANDARD, 30.0, 512, FOUR))

    def test_keywords(self):
        c = SandboxConfig(security_level=SecurityLevel.STRICT, timeout_seconds=2, max_memory_mb=64, allowed_modules=("math",))
        same(dataclasses.astuple(c), (SecurityLevel.STRICT, 2, 64, ("math",)))

    def test_in_order(self):
        same(SandboxConfig(SecurityLevel.STRICT, 2.0, 64, ("math",)).max_memory_mb, 64)

    def test_other_fields_are_refused(self):
        fails(TypeError, "max_output", lambda: SandboxConfig(max_output=1))

    def test_is_frozen(self):
        fails(dataclasses.FrozenInstanceError, "timeout_seconds", setattr, SandboxConfig(), "timeout_seconds", 1)

    def test_can_be_hashed(self):
        same(len({SandboxConfig(), SandboxConfig(), SandboxConfig(timeout_seconds=1)}), 2)

    def test_can_be_hashed_with_a_list(self):
        same(hash(SandboxConfig(allowed_modules=["math"])), hash(SandboxConfig(allowed_modules=("math",))))

    def test_is_equal_by_value(self):
        assert SandboxConfig(timeout_seconds=1) == SandboxConfig(timeout_seconds=1) != SandboxConfig()

    def test_for_level_permissive(self):
        same(dataclasses.astuple(SandboxConfig.for_level(SecurityLevel.PERMISSIVE))[1:], LEVELS[SecurityLevel.PERMISSIVE])

    def test_for_level_standard(self):
        same(dataclasses.astuple(SandboxConfig.for_level(SecurityLevel.STANDARD))[1:], LEVELS[SecurityLevel.STANDARD])

    def test_for_level_strict(self):
        same(dataclasses.astuple(SandboxConfig.for_level(SecurityLevel.STRICT))[1:], LEVELS[SecurityLevel.STRICT])

    def test_for_level_has_the_level(self):
        for level in SecurityLevel:
            same(SandboxConfig.for_level(level).security_level, level)

    def test_standard_is_the_default(self):
        same(SandboxConfig.for_level(SecurityLevel.STANDARD), SandboxConfig())

    def test_for_level_of_no_level(self):
        fails(ValueError, "paranoid", SandboxConfig.for_level, "paranoid")


class TestSandboxResult:
    def test_has_seven_fields_in_order(self):
        same([f.name for f in dataclasses.fields(SandboxResult)],
             ["success", "result", "stdout", "stderr", "error", "execution_time_ms", "memory_used_mb"])

    def test_in_order(self):
        r = SandboxResult(True, 1, "out", "err", None, 2.5, None)
        same((r.success, r.result, r.stdout, r.stderr, r.error, r.execution_time_ms, r.memory_used_mb), (True, 1, "out", "err", None, 2.5, None))

    def test_all_fields_are_needed(self):
        fails(TypeError, "memory_used_mb", lambda: SandboxResult(True, 1, "", "", None, 1.0))

    def test_is_frozen(self):
        fails(dataclasses.FrozenInstanceError, "success", setattr, SandboxResult(True, 1, "", "", None, 1.0, None), "success", False)

    def test_of_a_success(self):
        r = run("print('hi')\nresult = 6 * 7")
        same((r.success, r.result, r.stdout, r.stderr, r.error), (True, 42, "hi\n", "", None))
        assert r.execution_time_ms > 0 and r.memory_used_mb > 0, r

    def test_of_a_failure(self):
        r = run("raise ValueError('no')")
        same((r.success, r.result), (False, None))
        assert "ValueError" in r.error and "no" in r.error, r


class TestSandboxedRunner:
    def test_is_abstract(self):
        assert issubclass(SandboxedRunner, abc.ABC) and inspect.isabstract(SandboxedRunner)
        fails(TypeError, "abstract", SandboxedRunner, SandboxConfig())

    def test_has_three_abstract_methods(self):
        same(SandboxedRunner.__abstractmethods__, frozenset({"__init__", "execute", "cleanup"}))

    def test_execute_takes_code_and_context(self):
        same(list(inspect.signature(SandboxedRunner.execute).parameters), ["self", "code", "context"])

    def test_init_takes_a_config(self):
        same(list(inspect.signature(SandboxedRunner.__init__).parameters), ["self", "config"])

    def test_can_be_derived(self):
        class Mine(SandboxedRunner):
            def __init__(self, config):
                self.config, self.is_clean = config, False

            def execute(self, code, context):
                return SandboxResult(True, context, code, "", None, 0.0, None)

            def cleanup(self):
                self.is_clean = True
        with Mine(SandboxConfig()) as runner:
            same(runner.execute("x", {"a": 1}).result, {"a": 1})
        assert runner.is_clean

    def test_a_class_without_cleanup_is_abstract(self):
        class Half(SandboxedRunner):
            def __init__(self, config):
                pass

            def execute(self, code, context):
                return None
        fails(TypeError, "cleanup", Half, SandboxConfig())

    def test_is_a_context_manager(self):
        runner = SubprocessRunner(SandboxConfig())
        with runner as entered:
            assert entered is runner

    def test_leaves_by_cleanup(self):
        class Counting(SubprocessRunner):
            count = 0

            def cleanup(self):
                Counting.count += 1
        try:
            with Counting(SandboxConfig()):
                raise KeyError("x")
        except KeyError:
            pass
        same(Counting.count, 1)

    def test_cleanup_twice(self):
        runner = SubprocessRunner(SandboxConfig())
        runner.cleanup()
        runner.cleanup()


class TestClasses:
    def test_are_runners(self):
        for kind in RUNNERS:
            assert issubclass(kind, SandboxedRunner) and not inspect.isabstract(kind), kind

    def test_run_code(self):
        for kind in RUNNERS:
            same(kind(SandboxConfig()).execute("result = x + y", {"x": 10, "y": 20}).result, 30)

    def test_keep_the_config(self):
        config = SandboxConfig(timeout_seconds=3)
        for kind in RUNNERS:
            assert kind(config).config is config

    @differs("`DockerRunner` runs a Docker container")
    def test_docker_runner_needs_no_docker(self):
        path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"  # where no docker is found
        try:
            r = run("result = 1", runner=DockerRunner)
        finally:
            os.environ["PATH"] = path
        same((r.result, r.full.assurance["limits"]["cpu_percent"], r.full.assurance["wall"]), (1, 50, "linux"))

    @differs("`InProcessRunner` runs code in the host's process")
    def test_in_process_runner_is_elsewhere(self):
        r = run("import os\nresult = os.getpid()", runner=InProcessRunner, allowed_modules=ALL)
        assert r.success and r.result != os.getpid() and r.full.assurance["wall"] == "linux", r


class TestCreateRunner:
    def test_signature(self):
        p = inspect.signature(create_runner).parameters
        same(list(p)[:2], ["level", "config"])
        same((p["level"].default, p["config"].default), (SecurityLevel.STANDARD, None))

    def test_standard(self):
        assert type(create_runner()) is SubprocessRunner is type(create_runner(SecurityLevel.STANDARD))

    def test_permissive(self):
        assert type(create_runner(SecurityLevel.PERMISSIVE)) is InProcessRunner

    def test_strict(self):
        assert type(create_runner(SecurityLevel.STRICT)) is DockerRunner

    def test_config_of_the_level(self):
        for level in SecurityLevel:
            same(create_runner(level).config, SandboxConfig.for_level(level))

    def test_config_that_is_given(self):
        config = SandboxConfig(timeout_seconds=1.5)
        runner = create_runner(level=SecurityLevel.STANDARD, config=config)
        same((type(runner), runner.config), (SubprocessRunner, config))

    def test_level_goes_before_a_weaker_config(self):
        assert type(create_runner(level=SecurityLevel.STRICT, config=SandboxConfig())) is DockerRunner

    @differs("`create_runner(config=…)` looks at `level` alone")
    def test_a_stricter_config_counts(self):
        assert type(create_runner(config=SandboxConfig.for_level(SecurityLevel.STRICT))) is DockerRunner

    @differs("without Docker, `create_runner(STRICT)` warns and takes a subprocess")
    def test_there_is_no_weaker_runner_to_fall_back_to(self):
        connection = type("Broken", (), {"sessions": 0, "request": lambda self, *a, **k: (_ for _ in ()).throw(cordon.CordonError("no wall"))})()
        r = create_runner(SecurityLevel.STRICT, connection=connection).execute("1", {})
        same((r.success, r.error, r.error_kind), (False, "no wall", "internal"))


class TestStrategy:
    """The three tests of the design's last part, in its own words."""

    def test_memory_limit_enforced(self):
        for kind in RUNNERS:
            result = kind(SandboxConfig(max_memory_mb=50)).execute("x = 'a' * (100 * 1024 * 1024)", {})
            assert not result.success
            assert "MemoryError" in result.error or "killed" in result.error.lower()

    def test_timeout_enforced(self):
        for kind in RUNNERS:
            result = kind(SandboxConfig(timeout_seconds=1)).execute("import time; time.sleep(10)", {})
            assert not result.success
            assert result.execution_time_ms < 2000

    def test_network_blocked(self):
        for kind in RUNNERS:
            result = kind(SandboxConfig()).execute("import urllib.request; urllib.request.urlopen('http://example.com')", {})
            assert not result.success

    def test_timeout_enforced_where_time_is_allowed(self):
        r = run("import time; time.sleep(60)", timeout_seconds=0.5, allowed_modules=("time",))
        same((r.success, r.error_kind), (False, "timeout"))

    def test_network_blocked_where_sockets_are_allowed(self):
        r = run("import socket\nsocket.create_connection(('127.0.0.1', 9), 5)", allowed_modules=ALL)
        assert not r.success and r.denials, r


class TestLimits:
    def test_tight_loop(self):
        same(run("while True: pass", timeout_seconds=0.5).error_kind, "timeout")

    def test_memory_in_small_pieces(self):
        r = run("x = []\nwhile True: x.append(bytes(1 << 16))", max_memory_mb=64)
        same((r.success, r.error_kind), (False, "memory"))

    def test_memory_beneath_the_limit(self):
        assert run("x = bytes(16 << 20)", max_memory_mb=128).success

    def test_no_file_of_the_host(self):
        r = run("open(%r)" % os.path.abspath(__file__), allowed_modules=ALL)
        assert not r.success and ("No such file" in r.error or "Permission" in r.error), r

    def test_nothing_is_written_to_the_host(self):
        run("open('/tmp/sandboxed-runner-was-here', 'w').write('x')", allowed_modules=ALL)
        assert not os.path.exists("/tmp/sandboxed-runner-was-here")

    def test_environment_is_not_inherited(self):
        os.environ["RUNNER_SECRET"] = "leaked"
        same(run("import os\nresult = os.environ.get('RUNNER_SECRET')", allowed_modules=ALL).result, None)

    def test_half_a_processor_when_strict(self):
        same(create_runner(SecurityLevel.STRICT).execute("1", {}).full.assurance["limits"]["cpu_percent"], 50)

    @differs("permissive code may read a data directory")
    def test_a_directory_is_named_by_the_policy(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        r = create_runner("permissive", policy={"mounts": [{"host": folder, "guest": "/data"}]}, allowed_modules=ALL).execute(
            "import os\nresult = 'run' in os.listdir('/data')", {})
        same(r.result, True)


class TestModules:
    def test_of_every_level(self):
        for level, (_, _, modules) in LEVELS.items():
            r = create_runner(level).execute("\n".join("import " + m for m in modules), {})
            assert r.success, r

    def test_others_are_refused(self):
        for level in SecurityLevel:
            r = create_runner(level).execute("import os", {})
            assert not r.success and "Import of 'os' is not allowed" in r.error, r

    def test_numpy_is_for_permissive_code(self):
        assert create_runner(SecurityLevel.PERMISSIVE).execute("import numpy", {}).success
        assert not create_runner(SecurityLevel.STANDARD).execute("import numpy", {}).success

    def test_pandas_is_not_for_strict_code(self):
        assert not create_runner(SecurityLevel.STRICT).execute("import pandas", {}).success

    def test_dunder_import_does_not_go_around(self):
        r = run("__import__('subprocess')")
        assert not r.success and "not allowed" in r.error, r

    def test_a_submodule_does_not_go_around(self):
        assert "not allowed" in run("import os.path").error

    def test_what_an_allowed_module_needs_is_there(self):
        assert run("import pandas\nresult = int(pandas.DataFrame({'a': [1, 2]}).a.sum())").result == 3


class TestContext:
    def test_variables(self):
        same(run("result = a + len(b)", {"a": 1, "b": [1, 2]}).result, 3)

    def test_dataframe(self):
        import pandas
        frame = pandas.DataFrame({"x": [1, 2, 3]})
        same(run("result = float(df['x'].mean())", {"df": frame}).result, 2.0)

    def test_dataframe_comes_back(self):
        import pandas
        frame = pandas.DataFrame({"x": [1, 2], "y": ["a", "b"]})
        pandas.testing.assert_frame_equal(run("result = df[df.x > 1].reset_index(drop=True)", {"df": frame}).result,
                                          frame[frame.x > 1].reset_index(drop=True))

    def test_is_a_copy(self):
        mine = {"k": [1]}
        run("k = d['k'].append(2)", {"d": mine})
        same(mine, {"k": [1]})

    def test_nothing_is_left_for_the_next(self):
        runner = SubprocessRunner(SandboxConfig())
        runner.execute("secret = 1", {})
        assert "NameError" in runner.execute("secret", {}).error

    def test_empty(self):
        same(run("", {}).success, True)

    @differs("contexts and results are pickled")
    def test_results_are_data(self):
        same(run("result = {'a': (1, 2.5, None), 'b': {1, 2}}").result, {"a": (1, 2.5, None), "b": {1, 2}})
        import subprocess
        assert not isinstance(run("import subprocess\nresult = subprocess.run", allowed_modules=ALL).result, type(subprocess.run))


class TestOutput:
    def test_streams_are_separate(self):
        r = run("import sys\nprint('o')\nprint('e', file=sys.stderr)", allowed_modules=("sys",))
        same((r.stdout, r.stderr), ("o\n", "e\n"))

    def test_before_an_error(self):
        same(run("print('before')\n1 / 0").stdout, "before\n")

    def test_syntax_error(self):
        r = run("1 +")
        same((r.success, r.error_kind), (False, "syntax"))
        assert "SyntaxError" in r.error, r

    def test_exit_is_no_success(self):
        r = run("raise SystemExit(3)")
        assert not r.success, r

    def test_the_last_expression_is_the_result(self):
        same(run("6 * 7").result, 42)


class TestEscapes:
    """Known ways around exec() with a list of modules."""

    def test_subclasses_of_object(self):
        r = run("[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen' or c.__name__ == '_wrap_close'][0]"
                ".__init__.__globals__['system']('id > /tmp/escaped')")
        assert not os.path.exists("/tmp/escaped"), r

    def test_builtins_of_a_module(self):
        run("import math\nmath.__loader__.load_module('posix').system('touch /tmp/escaped')", allowed_modules=("math",))
        assert not os.path.exists("/tmp/escaped")

    def test_parent_is_not_signalled(self):
        r = run("import os, signal\nos.kill(%d, signal.SIGKILL)" % os.getpid(), allowed_modules=ALL)
        assert not r.success, r

    def test_fork_bomb(self):
        r = run("import os\nwhile True: os.fork()", timeout_seconds=3, allowed_modules=ALL)
        assert not r.success, r
        assert run("1").success

    def test_no_new_namespaces(self):
        r = run("import ctypes\nresult = ctypes.CDLL(None, use_errno=True).unshare(0x10000000)", allowed_modules=ALL)
        assert r.result != 0, r

    def test_no_debugger(self):
        r = run("import ctypes\nresult = ctypes.CDLL(None).ptrace(16, %d, 0, 0)" % os.getpid(), allowed_modules=ALL)
        assert r.result != 0, r


class TestIntegration:
    def test_an_executor(self):
        """As the design's executor uses it: code for a frame, a runner of a level, and what came out."""
        import pandas

        class Executor:
            def __init__(self, level=SecurityLevel.STANDARD):
                self.runner = create_runner(level)

            def execute(self, code, frame):
                result = self.runner.execute(code, {"df": frame})
                return result.result if result.success else result.error
        executor = Executor()
        frame = pandas.DataFrame({"v": [1.0, 2.0, 6.0]})
        same(executor.execute("import statistics\nresult = statistics.mean(df['v'])", frame), 3.0)
        assert "KeyError" in executor.execute("df['none']", frame)


if __name__ == "__main__":
    main("SandboxedRunner", globals())

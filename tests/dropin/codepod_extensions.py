"""codepod's extensions: commands of the host's, their packages, and how they are found."""
import asyncio
import json

from codepod_shell import SLOW, out, says
from expectations import differs, same

from cordon import Extension, PythonPackage, Sandbox


class TestExtensionCommands:
    def test_runs(self):
        with Sandbox(extensions=[Extension(name="pyext", description="Test", command=says("hello from the host\n"))]) as sb:
            same(out(sb, "pyext"), "hello from the host\n")

    def test_arguments(self):
        with Sandbox(extensions=[Extension(name="words", command=lambda args, stdin, env, cwd: {"stdout": repr(args), "exitCode": 0})]) as sb:
            same(out(sb, "words foo 'b ar' ''"), "['foo', 'b ar', '']")

    def test_stdin(self):
        with Sandbox(extensions=[Extension(name="upper", command=lambda stdin, **_: {"stdout": stdin.upper(), "exitCode": 0})]) as sb:
            same(out(sb, "echo hello | upper"), "HELLO\n")

    def test_no_stdin_is_empty(self):
        with Sandbox(extensions=[Extension(name="see", command=lambda stdin, **_: {"stdout": repr(stdin), "exitCode": 0})]) as sb:
            same(out(sb, "see < /dev/null"), "''")

    def test_directory(self):
        with Sandbox(extensions=[Extension(name="where", command=lambda cwd, **_: {"stdout": cwd, "exitCode": 0})]) as sb:
            same(out(sb, "where; mkdir -p /tmp/a/b; cd /tmp/a/b; where; (cd ..; where); where"), "/home/user/tmp/a/b/tmp/a/tmp/a/b")

    def test_environment(self):
        seen = []
        with Sandbox(env={"GIVEN": "1"}, extensions=[Extension(name="see", command=lambda env, **_: seen.append(env) or "")]) as sb:
            out(sb, "export MINE='a b'; LOCAL=no; ONCE=yes see; unset MINE; see")
        same([(e.get("GIVEN"), e.get("MINE"), e.get("ONCE"), e.get("LOCAL")) for e in seen], [("1", "a b", "yes", None), ("1", None, None, None)])
        assert seen[0]["HOME"] == "/home/user" and seen[0]["PWD"] == "/home/user" and not [k for k in seen[0] if k.startswith("CORDON")]

    def test_environment_that_no_shell_makes(self):
        """A name that is there twice, or is no text, does not harm the session."""
        seen = []
        code = ("import ctypes, os\n"
                "env = [('%s=%s' % i).encode() for i in os.environ.items()] + [b'A=1', b'A=2', b'odd', b'=x', b'\\xff=1', b'\\xfe=1']\n"
                "words = lambda l: (ctypes.c_char_p * (len(l) + 1))(*l, None)\n"
                "ctypes.CDLL(None).execve(b'/run/cordon/bin/see', words([b'see']), words(env))\n")
        with Sandbox(extensions=[Extension(name="see", command=lambda env, **_: seen.append(env) or "seen\n")]) as sb:
            sb.files.write("/tmp/odd.py", code)
            same(out(sb, "x=kept; python3 /tmp/odd.py; echo $x"), "seen\nkept\n")
        same((seen[0]["A"], [k for k in seen[0] if not k.isascii() or k in ("", "odd")]), ("1", []))

    def test_redirect(self):
        with Sandbox(extensions=[Extension(name="gen", command=says("made\n"))]) as sb:
            out(sb, "gen > /tmp/o")
            same(sb.files.read("/tmp/o"), b"made\n")

    def test_exit_code_and_stderr(self):
        with Sandbox(extensions=[Extension(name="bad", command=says("", 1, stderr="oops\n")), Extension(name="good", command=says("ok\n"))]) as sb:
            r = sb.commands.run("bad && good")
            same((r.exit_code, r.stdout, r.stderr), (1, "", "oops\n"))
            same(out(sb, "bad 2>/dev/null || good"), "ok\n")

    def test_exception(self):
        def boom(**_):
            raise ValueError("boom")
        with Sandbox(extensions=[Extension(name="ext", command=boom)]) as sb:
            r = sb.commands.run("ext")
            same((r.exit_code, r.stderr), (1, "ext: boom\n"))
            same(out(sb, "echo on"), "on\n")

    def test_help(self):
        with Sandbox(extensions=[Extension(name="helper", description="A helpful extension\nUsage: helper [opts]", command=says())]) as sb:
            assert "A helpful extension" in out(sb, "helper --help")

    def test_in_a_fork(self):
        with Sandbox(extensions=[Extension(name="greet", command=says("hi\n"))]) as sb:
            child = sb.fork()
            same(out(child, "greet"), "hi\n")
            child.destroy()

    def test_in_a_further_sandbox(self):
        with Sandbox(extensions=[Extension(name="greet", command=says("hi\n"))]) as sb:
            same(out(sb.sandboxes.create(), "greet"), "hi\n")

    @differs("`which greet` says `/usr/bin/greet`")
    def test_which(self):
        with Sandbox(extensions=[Extension(name="myext", command=says())]) as sb:
            same(out(sb, "which myext; which extensions"), "/run/cordon/bin/myext\n/run/cordon/bin/extensions\n")

    def test_async(self):
        async def later(args, stdin, env, cwd):
            await asyncio.sleep(0)
            return {"stdout": "later %s\n" % args[0], "exitCode": 0}
        with Sandbox(extensions=[Extension(name="wait_for", async_command=later)]) as sb:
            same(out(sb, "wait_for it"), "later it\n")

    def test_async_goes_first(self):
        async def later(**_):
            return {"stdout": "async", "exitCode": 0}
        with Sandbox(extensions=[Extension(name="both", command=says("sync"), async_command=later)]) as sb:
            same(out(sb, "both"), "async")

    def test_async_handlers_share_a_loop(self):
        loops = []

        async def later(**_):
            loops.append(asyncio.get_running_loop())
            return {"stdout": "", "exitCode": 0}
        with Sandbox(extensions=[Extension(name="one", async_command=later)]) as sb:
            out(sb, "one; one")
            out(sb, "one")
        assert len(loops) == 3 and len(set(map(id, loops))) == 1 and not loops[0].is_closed()

    def test_async_exception(self):
        async def boom(**_):
            raise KeyError("gone")
        with Sandbox(extensions=[Extension(name="ext", async_command=boom)]) as sb:
            r = sb.commands.run("ext")
        assert r.exit_code == 1 and "gone" in r.stderr, r


class TestExtensionPackages:
    def extension(self):
        return Extension(name="analyzer", command=lambda args, **_: {"stdout": "ran %s\n" % " ".join(args), "exitCode": 0},
                         python_package=PythonPackage(version="2.0.0", summary="Code analyzer", files={"__init__.py": "", "core.py": "x = 1"}))

    def test_pip_list(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            assert ["analyzer", "2.0.0"] in [line.split() for line in out(sb, "pip list", SLOW).splitlines()]

    def test_pip_show(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            lines = out(sb, "pip show analyzer", SLOW).splitlines()
        assert {"Name: analyzer", "Version: 2.0.0", "Summary: Code analyzer"} <= set(lines), lines

    def test_pip_show_unknown(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            same(sb.commands.run("pip show nothing_of_that_name", timeout_ms=SLOW).exit_code, 1)

    def test_import(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            same(out(sb, "python3 -c 'import analyzer.core; print(analyzer.core.x)'"), "1\n")

    def test_shim(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            same(json.loads(out(sb, "python3 -c 'import json; from analyzer._shim import run; print(json.dumps(run(1, \"a b\")))'")),
                 {"stdout": "ran 1 a b\n", "stderr": "", "exit_code": 0})

    def test_bridge(self):
        with Sandbox(extensions=[self.extension()]) as sb:
            same(out(sb, "python3 -c 'import codepod_ext as c; print(c.is_extension(\"analyzer\"), c.is_extension(\"ls\"), "
                         "c.call(\"analyzer\", \"x\", k=3)[\"stdout\"], end=\"\")'"), "True False ran x --k 3\n")

    def test_without_a_command(self):
        with Sandbox(extensions=[Extension(name="lib", python_package=PythonPackage(files={"__init__.py": "V = 5"}))]) as sb:
            same(out(sb, "python3 -c 'import lib; print(lib.V, lib.__version__)'"), "5 1.0.0\n")
            assert sb.commands.run("lib").exit_code != 0

    @differs("`pip list` names what is not there")
    def test_pip_tells_what_is_there(self):
        with Sandbox() as sb:
            names = [line.split()[0] for line in out(sb, "pip list", SLOW).splitlines()[2:]]
            missing = [n for n in names if n == "Pillow" and sb.commands.run("python3 -c 'import PIL'").exit_code]
            same(missing, [])
            assert sb.commands.run("pkg install x").exit_code != 0


class TestDiscovery:
    def extensions(self):
        return [Extension(name="search", description="Search the index", category="search", usage="search <query> [--k N]",
                          examples=["search 'cost'", "search 'foo' --k 20"], command=says()),
                Extension(name="fetch", description="Fetch a document", category="search", command=says()),
                Extension(name="upload", description="Upload a file", category="files", command=says())]

    def run(self, command):
        with Sandbox(extensions=self.extensions()) as sb:
            return sb.commands.run(command)

    def test_list(self):
        lines = self.run("extensions list").stdout.splitlines()
        same(lines[0].split(), ["NAME", "CATEGORY", "DESCRIPTION"])
        same(set(lines[1]), {"\u2500"})
        same([line.split(None, 2) for line in lines[2:]], [[e.name, e.category, e.description] for e in self.extensions()])

    def test_list_of_a_category(self):
        r = self.run("extensions list --category search")
        assert r.exit_code == 0 and "fetch" in r.stdout and "upload" not in r.stdout, r

    def test_list_of_no_category(self):
        same(self.run("extensions list --category none").stdout, "(no extensions registered)\n")

    def test_list_as_json(self):
        same(json.loads(self.run("extensions list --json").stdout),
             [{"name": e.name, "category": e.category, "description": e.description} for e in self.extensions()])

    def test_info(self):
        same(self.run("extensions info search").stdout,
             "Name:        search\nCategory:    search\nDescription: Search the index\nUsage:       search <query> [--k N]\n"
             "Examples:\n  search 'cost'\n  search 'foo' --k 20\n")

    def test_info_of_little(self):
        same(self.run("extensions info fetch").stdout, "Name:        fetch\nCategory:    search\nDescription: Fetch a document\n")

    def test_info_unknown(self):
        r = self.run("extensions info nope")
        same((r.exit_code, r.stdout, r.stderr), (1, "", "extensions: unknown extension: nope\n"))

    def test_info_of_nothing(self):
        r = self.run("extensions info")
        same((r.exit_code, r.stderr), (1, "extensions info: missing extension name\n"))

    def test_help(self):
        r = self.run("extensions --help")
        assert r.exit_code == 0 and "Subcommands" in r.stdout, r
        same(self.run("extensions").stdout, r.stdout)

    def test_unknown_subcommand(self):
        r = self.run("extensions bogus")
        assert r.exit_code == 1 and r.stderr.startswith("extensions: unknown subcommand: bogus\n") and "Subcommands" in r.stderr, r

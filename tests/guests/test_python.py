# test_python.py - inside/guests/python.
import base64
import json
import math
import os
import shutil
import struct
import subprocess
import tempfile
import time

from driver import adder, forklib, Gone, Guest, Stock, Template, TOP, validate

RUNTIME = os.path.join(TOP, "inside/guests/python/cordon_guest.py")
PYTHON = os.environ.get("CORDON_TEST_PYTHON") or "/usr/bin/python3"
ARGV = [PYTHON, "-IS", RUNTIME]
ADD = adder()
stock = Stock(ARGV)
guest, shared, reset = stock.guest, stock.shared, stock.reset


def has(module):
    return subprocess.call([PYTHON, "-I", "-c", "import " + module],
                           stderr=subprocess.DEVNULL) == 0


def test_hello_names_version():
    g = shared()
    assert g.hello["version"] == 1 and g.hello["guest"] == "python"
    assert g.hello["language"].startswith("3."), g.hello


def test_last_expression_is_the_value():
    g = shared()
    assert g.run("1+1")["value"] == 2
    assert g.run("x = 10\ny = 20\nx + y")["value"] == 30
    assert "value" not in g.run("x = 1")
    assert g.run("None").get("value", 0) is None
    assert "text" not in g.run("None")
    assert g.run("'a'")["text"] == "'a'"
    assert g.run("")["ok"] and g.run("# nothing\n")["ok"]
    assert g.value("\ufeff1 + 1") == 2 and g.value("x = 1\r\nx + 1") == 2
    assert g.run("if True:\n    5\n").get("value") is None


def test_state_persists():
    g = shared()
    g.run("import math\ndef area(r):\n    return math.pi * r * r\nn = 7")
    assert g.value("area(n)") == math.pi * 49
    g.run("class P:\n    pass\np = P()\np.x = 3")
    assert g.value("p.x") == 3
    assert g.value("__name__") == "__main__"
    assert g.value("import pickle\nlen(pickle.dumps(p)) > 0") is True


def test_result_variable_wins_only_where_it_was_set():
    g = guest()
    assert g.value("result = 5\n6") == 5
    assert g.value("1 + 1") == 2
    assert g.value("result + 1") == 6  # the state is still there
    assert g.value("result = 5\n'other'") == 5  # the same object again
    assert g.value("globals()['result'] = [1]\n2") == [1]
    assert g.value("def f():\n    global result\n    result = 9\nf()\n0") == 9
    g.close()
    g = guest(options={"result_name": "answer"})
    assert g.value("answer = 1\nresult = 2\n3") == 1
    g.close()


def test_context_becomes_variables():
    g = shared()
    assert g.value("result = x + y", {"x": 10, "y": 20}) == 30
    assert g.run("type(b).__name__ + type(t).__name__", {
        "b": {"$": "bytes", "v": "AAE="}, "t": {"$": "tuple", "v": [1]}})["value"] == "bytestuple"


def test_env_changes():
    g = shared()
    assert g.run("import os\nos.environ['FOO']", env={"FOO": "bar"})["value"] == "bar"
    assert g.run("os.environ.get('FOO')", env={"FOO": None})["value"] is None


def test_token_is_nowhere():
    with guest() as g:
        assert g.value("import os\nos.environ.get('CORDON_TOKEN')") is None
        seen = g.value("open('/proc/self/environ').read()")
        assert "CORDON_TOKEN" in seen, "this test must see the block"
        assert g.token not in seen


def test_output_is_flushed_before_the_result():
    g = shared()
    r = g.run("import sys\nprint('out')\nprint('no newline', end='')\n"
              "print('err', file=sys.stderr)\nNone")
    assert r.stdout == "out\nno newline" and r.stderr == "err\n", (r.stdout, r.stderr)
    r = g.run("import os\nos.write(1, b'raw')\nprint('ä☃😀')")
    assert "raw" in r.stdout and "ä☃😀" in r.stdout


def test_output_streams_line_by_line():
    g = shared()
    g.start("import time\nprint('first')\ntime.sleep(0.4)\nprint('second')")
    start = time.monotonic()
    while not g.out[g.pipes[1][0]]:
        g.pump(5)
    first = time.monotonic() - start
    r = g.finish()
    assert r.stdout == "first\nsecond\n" and time.monotonic() - start - first > 0.3


def test_stdin_is_the_execution_input():
    g = shared()
    g.feed(b"5\n")
    assert g.value("int(input()) * 2") == 10


def test_exception():
    g = shared()
    r = g.run("def f(x):\n    raise ValueError('user error')\n\nf(1)")
    e = r.error
    assert not r["ok"] and e["kind"] == "exception" and e["name"] == "ValueError"
    assert e["message"] == "user error" and e["line"] == 2
    assert "raise ValueError('user error')" in e["traceback"] and "f(1)" in e["traceback"]
    assert "cordon_guest" not in e["traceback"]
    assert g.value("42") == 42
    r = g.run("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e")
    assert "ZeroDivisionError" in r.error["traceback"] and r.error["name"] == "KeyError"
    assert "cordon_guest" not in r.error["traceback"]
    r = g.run("f(2)")  # the source of an earlier execution is still known
    assert "raise ValueError" in r.error["traceback"], r


def test_exceptions_that_fight_back():
    g = shared()
    r = g.run("class E(Exception):\n    def __str__(self):\n        raise SystemExit(9)\n"
              "    __repr__ = __str__\nraise E()")
    assert not r["ok"] and r.error["name"] == "E", r
    r = g.run("raise ValueError('x' * 10000000)")
    assert r.error["name"] == "ValueError" and len(r.error["message"]) < 20000
    r = g.run("class M(type):\n    def __getattribute__(c, n):\n        raise OSError(n)\n"
              "class F(Exception, metaclass=M):\n    pass\nraise F()")
    assert not r["ok"], r
    r = g.run("def f():\n    f()\nf()")
    assert r.error["name"] == "RecursionError", r
    assert g.value("1+1") == 2


def test_syntax_errors_have_a_line():
    g = shared()
    for code, line in (("x = 1\nif (", 2), ("x = 1\n  y = 2", 2), ("def f(:\n  pass", 1),
                       ("return 5", 1)):
        r = g.run(code)
        assert r.error["kind"] == "syntax" and r.error["line"] == line, r
    assert g.run("a\0b").error["kind"] == "syntax"
    assert g.run("(" * 300 + ")" * 300).error["kind"] == "syntax"
    r = g.run("eval('1+')")  # raised by running code: no syntax error of the code
    assert r.error["kind"] == "exception" and r.error["name"] == "SyntaxError"
    assert g.value("1+1") == 2


def test_exit_codes():
    g = shared()
    r = g.run("import sys\nsys.exit(3)")
    assert r["exit_code"] == 3 and not r["ok"]
    r = g.run("sys.exit()")
    assert r["exit_code"] == 0 and r["ok"]
    r = g.run("sys.exit('went wrong')")
    assert r["exit_code"] == 1 and r.stderr == "went wrong\n"
    r = g.run("exit(4)")  # closes stdin, too
    assert r["exit_code"] == 4
    g.feed(b"hello\n")
    assert g.value("input()") == "hello"


def test_memory_error_is_memory():
    assert shared().run("raise MemoryError").error["kind"] == "memory"
    assert shared().run("b'x' * (1 << 62)").error["kind"] == "memory"


def test_permission_error_keeps_its_name():
    r = shared().run("raise PermissionError(13, 'Permission denied', '/etc/shadow')")
    assert r.error["kind"] == "exception" and r.error["name"] == "PermissionError"
    assert "/etc/shadow" in r.error["message"]


def test_interrupt():
    g = guest(tools=[dict(ADD, name="slow", args={})])
    for code in ("while True: pass", "import time\ntime.sleep(30)",
                 "x = 0\nwhile True:\n    x += 1\n    str(x)"):
        r = g.interrupt("print('go')\n" + code)
        assert r.error["kind"] == "interrupted", r
        assert g.value("1+1") == 2
    g.start("slow()")
    assert g.recv()["type"] == "tool_call"
    g.signal()
    r = g.finish()
    assert r.error["kind"] == "interrupted", r
    g.send({"type": "tool_result", "id": g.next_id, "call": 1, "value": "late"})
    assert g.value("'fine'") == "fine"
    g.signal()  # between executions: nothing happens
    time.sleep(0.1)
    assert g.value("2") == 2
    g.close()


def test_interrupts_at_any_moment_keep_the_wire_whole():
    with guest(tools=[ADD], handlers={"add": lambda a, b: a + b}) as g:
        for i in range(40):
            g.start("for i in range(2000): add(i, 1)" if i % 2 else "sum(range(1000000))")
            time.sleep(0.001 * (i % 7))
            g.signal()
            r = g.finish()
            assert r["ok"] or r.error["kind"] == "interrupted", r
        assert g.value("add(1, 2)") == 3


def test_fork_in_the_code_does_not_speak_twice():
    g = shared()
    r = g.run("import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('x')\n7")
    assert r["value"] == 7 and r.stdout == "x\nx\n", (r, r.stdout)
    assert g.value("1+1") == 2


BREAKS = ("os.close(1); os.close(2)", "os.close(0)", "os.dup2(os.open('/dev/null', os.O_RDWR), 1)",
          "f = open('/dev/null', 'w'); os.dup2(f.fileno(), 1); os.dup2(f.fileno(), 2); os.dup2(f.fileno(), 0)",
          "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()", "sys.stdout = sys.stderr = sys.stdin = None",
          "del sys.stdout, sys.stderr, sys.stdin", "sys.stdout = io.StringIO()", "sys.stdout.detach(); sys.stdin.detach()",
          "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')", "sys.__stdout__ = None",
          "os.close(1); open('/tmp/cordon-not-there')", "os.close(1); os.close(2); sys.exit(3)",
          "os.dup2 = os.fstat = None", "os.closerange(0, 3)")


def test_streams_are_whole_in_every_execution():
    for code in BREAKS:
        with guest() as g:
            r = g.run("import io, os, sys\n" + code)
            assert r["ok"] or code[-3:] in ("e')", "(3)"), (code, r)
            r = g.run("import os, sys\nprint('back')\nprint('too', file=sys.stderr)\nprint(end=sys.stdin.read(0))\nos.write(1, b'fd')")
            assert r["ok"] and r.stdout == "back\nfd" and r.stderr == "too\n", (code, r, r.stdout, r.stderr)


def test_what_was_printed_before_a_descriptor_was_lost_is_kept():
    with guest() as g:
        r = g.run("import os, sys\nsys.stdout.write('before')\nos.close(1)")
        assert r["ok"] and r.stdout == "before", (r, r.stdout)


def test_a_session_that_lost_every_descriptor_ends():
    with guest() as g:
        try:
            g.run("import os\nos.closerange(4, 256)\nos.close(1)")
        except Gone:
            return
    raise AssertionError("it goes on without stdout")


def test_what_persists_and_what_is_put_back():
    with guest() as g:
        g.run("import os, sys, signal, locale, resource\nos.mkdir('d'); os.chdir('d'); os.umask(0o27)\n"
              "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nlocale.setlocale(locale.LC_ALL, 'C')\n"
              "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nsys.setrecursionlimit(500)\nos.environ['A'] = 'b'")
        assert g.value("os.path.basename(os.getcwd()), os.umask(0o27), signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN, "
                       "locale.setlocale(locale.LC_ALL), resource.getrlimit(resource.RLIMIT_NOFILE)[0], sys.getrecursionlimit(), "
                       "os.environ['A']")["v"] == ["d", 0o27, True, "C", 64, 500, "b"]
        assert g.run("print('ä')").stdout == "ä\n"
        # The host's way to interrupt is not the code's to keep.
        g.run("signal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])")
        r = g.interrupt("print('on', flush=True)\nwhile True: pass")
        assert r.error.get("kind") == "interrupted", r


def test_values_exact():
    g = shared()
    inf = {"$": "float", "v": "inf"}
    table = [
        ("True", True), ("7", 7), ("-2**63", -2**63), ("2**63-1", 2**63 - 1),
        ("2**63", {"$": "int", "v": str(2**63)}), ("10**5000", {"$": "int", "v": "1" + "0" * 5000}),
        ("2.0", 2.0), ("0.1+0.2", 0.1 + 0.2), ("1e-300", 1e-300), ("5e-324", 5e-324),
        ("1e308*10", inf), ("-1e308*10", {"$": "float", "v": "-inf"}),
        ("float('nan')", {"$": "float", "v": "nan"}),
        ("'a\\0b\\u2028😀'", "a\0b\u2028😀"), ("'\\ud800x'", "\ufffdx"),
        ("b'\\0\\xff'", {"$": "bytes", "v": "AP8="}),
        ("bytearray(b'a')", {"$": "bytes", "v": "YQ=="}),
        ("[1, [2, (3,)], {'k': None}]", [1, [2, {"$": "tuple", "v": [3]}], {"k": None}]),
        ("{1: 'a'}", {"$": "map", "v": [[1, "a"]]}), ("{'$': 1}", {"$": "map", "v": [["$", 1]]}),
        ("{(1, 2): 3}", {"$": "map", "v": [[{"$": "tuple", "v": [1, 2]}, 3]]}),
        ("{1}", {"$": "set", "v": [1]}), ("frozenset()", {"$": "set", "v": [], "frozen": True}),
        ("1+2j", {"$": "complex", "v": [1.0, 2.0]}),
        ("import datetime as d\nd.date(2024, 2, 29)", {"$": "date", "v": "2024-02-29"}),
        ("d.datetime(2024, 2, 29, 12, 0, 0, 1, d.timezone.utc)",
         {"$": "datetime", "v": "2024-02-29T12:00:00.000001+00:00"}),
        ("d.time(12)", {"$": "time", "v": "12:00:00"}),
        ("d.timedelta(seconds=1.5)", {"$": "duration", "v": 1.5}),
        ("import decimal\ndecimal.Decimal('1.10')", {"$": "decimal", "v": "1.10"}),
        ("import collections\ncollections.Counter('aab')", {"a": 2, "b": 1}),
        ("collections.namedtuple('P', 'x y')(1, 2)", {"$": "record", "class": "P", "names": ["x", "y"], "v": [1, 2], "tuple": True}),
        ("import dataclasses\nD = dataclasses.make_dataclass('D', ['a', 'b'])\nD(1, [2])",
         {"$": "record", "class": "D", "names": ["a", "b"], "v": [1, [2]]}),
        ("import enum\nclass E(enum.IntEnum):\n    A = 3\nE.A", 3),
    ]
    for code, want in table:
        got = g.run(code)
        assert got["ok"] and got["value"] == want and type(got["value"]) is type(want), (code, got)
    assert b'"value":2.0' in (g.run("2.0"), g.last_line)[1]
    for code, want in table:  # and the way in: what came out goes in again
        back = g.run("a == b or a != a", {"a": want, "b": g.run(code)["value"]})
        assert back["value"] is True, (code, back)


def test_values_that_cannot_cross():
    g = shared()
    for code, word in (("x = []\nx.append(x)\nx", "contains itself"),
                       ("x = {}\nx['a'] = [x]\nx", "contains itself"),
                       ("x = []\nfor _ in range(100): x = [x]\nx", "nested deeper"),
                       ("[0] * 2000000", "more than 1000000 elements"),
                       ("x = [0]\nfor _ in range(40): x = [x, x]\nx", "elements"),
                       ("'x' * (9 << 20)", "too large"), ("['x' * 1000000] * 9", "too large"),
                       ("b'x' * (9 << 20)", "too large"), ("'\\x01' * 3000000", "too large"),
                       ("1 << 10000000", "too large")):
        r = g.run(code)
        assert r["ok"] and "value" not in r and word in r["warnings"][0], (code, str(r)[:300])
        assert r["warnings"][0].startswith("The result has no value, only its text: the "), r["warnings"]
    for code, text in (("x = []\nx.append(x)\nx", "[[...]]"), ("d = {}\nd['d'] = d\nd", "{'d': {...}}"),
                       ("1 << 10000000", "<int of 10000001 bits>"), ("result = [d]", "[{'d': {...}}]")):
        r = g.run(code)
        assert r["ok"] and r["text"] == text, (code, str(r)[:300])
    x = g.value("x = []\nfor _ in range(58): x = [x]\nx")
    depth = 0
    while x:
        x, depth = x[0], depth + 1
    assert depth == 58
    assert len(g.value("list(range(999999))")) == 999999


def test_values_of_odd_classes():
    g = shared()
    r = g.run("class A:\n    def __repr__(self):\n        raise RuntimeError('no')\nA()")
    assert r["ok"] and r["value"]["$"] == "repr" and r["value"]["class"] == "A", r
    r = g.run("class B(dict):\n    def items(self):\n        raise SystemExit\n"
              "    def __iter__(self):\n        raise SystemExit\nB(a=1)")
    assert r["value"] == {"a": 1}, r
    r = g.run("class C(str):\n    def __str__(self):\n        return 5\n"
              "    def __repr__(self):\n        return 6\nC('text')")
    assert r["value"] == "text", r
    r = g.run("class D:\n    @property\n    def __class__(self):\n        return int\nD()")
    assert r["ok"] and r["value"]["$"] == "repr", r
    r = g.run("class L(list):\n    def __len__(self):\n        return 10**9\nL([1])")
    assert r["value"] == [1], r
    r = g.run("class R:\n    def __repr__(self):\n        return 'x' * 1000000\nR()")
    assert len(r["value"]["v"]) < 70000 and len(r["text"]) < 70000
    r = g.run("class G:\n    def __getattr__(self, n):\n        raise SystemExit(n)\nG()")
    assert r["ok"], r
    assert g.run("print")["value"]["$"] == "repr"
    assert g.run("lambda: 1")["value"]["class"] == "function"
    assert g.value("1+1") == 2


def test_top_level_await():
    g = shared()
    assert g.value("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\n"
                   "await f()") == 5
    assert g.value("asyncio.run(f())") == 5


def test_futures_persist():
    with guest() as g:
        g.run("from __future__ import annotations")
        assert g.value("def f(x: nope): pass\nf.__annotations__['x']") == "nope"


def test_workspace_modules_import():
    g = shared()
    assert g.value("open('helper_mod.py', 'w').write('y = 4')\nimport helper_mod\n"
                   "helper_mod.y") == 4


def test_nothing_of_the_runtime_is_in_the_globals():
    with guest() as g:
        names = g.value("sorted(globals())")
        assert names == ["__builtins__", "__doc__", "__loader__", "__name__", "__package__",
                         "__spec__"], names


def test_tools():
    def get(key):
        return {"a": 10, "b": 20}.get(key, 0)

    def fail():
        raise RuntimeError("tool failed")

    handlers = {"add": lambda a, b: a + b, "get": get, "fail": fail, "ping": lambda: "pong",
                "pi": lambda: math.pi, "echo": lambda v: v, "ns.deep": lambda: 1}
    tools = [ADD, {"name": "get", "args": {"key": {"type": "string", "required": True}}},
             {"name": "fail", "args": {}}, {"name": "ping", "args": {}}, {"name": "pi", "args": {}},
             {"name": "echo", "args": {"v": {"required": True}}},
             {"name": "ns.deep", "args": {}},
             {"name": "opt", "args": {"a": {"type": "integer", "required": True},
                                      "b": {"type": "string", "required": False}}}]
    handlers["opt"] = lambda **k: sorted(k)
    with guest(tools=tools, handlers=handlers) as g:
        assert g.value("add(2, 3)") == 5 and g.value("add(a=1, b=2)") == 3
        assert g.value("x = add(1, 2)\nadd(x, 10)") == 13
        assert g.value("sum(get(k) for k in 'abc')") == 30
        r = g.run("fail()")
        assert r.error["kind"] == "tool" and r.error["message"] == "tool failed"
        assert r.error["name"] == "ToolError" and "cordon_" not in r.error["traceback"], r
        assert g.value("try:\n    fail()\nexcept ToolError as e:\n    m = str(e)\nm") == "tool failed"
        assert g.value("try:\n    fail()\nexcept RuntimeError as e:\n    m = 1\nm") == 1
        for code, text in (
                ("add('hello', 3)", "Tool 'add': argument 'a' must be numeric, got str"),
                ("add(True, 3)", "Tool 'add': argument 'a' must be numeric, got bool"),
                ("add(1, 2, evil=9)", "Unexpected arguments for tool 'add': 'evil'"),
                ("add(1)", "Tool 'add': argument 'b' is missing"),
                ("ping(1)", "Unexpected arguments for tool 'ping'"),
                ("opt(1.5)", "Tool 'opt': argument 'a' must be integer, got float")):
            r = g.run(code)
            assert text in r.error["message"] and not r.calls, (code, r)
        assert g.value("ping()") == "pong" and g.value("ns.deep()") == 1
        assert g.value("import math\npi() == math.pi") is True
        assert g.value("opt(1)") == ["a"] and g.value("opt(1, 'x')") == ["a", "b"]
        assert g.value("opt(1, b=None)") == ["a"]
        assert g.value("import cordon\ncordon.call('add', a=1, b=1)") == 2
        assert "Unknown tool" in g.run("cordon.call('nope')").error["message"]
        r = g.run("cordon.add = 5")
        assert r.error["name"] == "AttributeError", r
        g.run("add = 5")
        assert g.value("del add\nadd(1, 1)") == 2
        r = g.run("help(add)")
        assert "Adds two numbers." in r.stdout and "add(a, b)" in r.stdout, r.stdout
        assert g.value("import inspect\nstr(inspect.signature(opt))") == "(a, b=None)"
        for v in ("None", "[1, 2.5, 'x']", "{'a': (1, 2)}", "2**100", "float('inf')", "b'\\0'"):
            assert g.value("v = %s\necho(v) == v" % v) is True, v
        r = g.run("for i in range(3000): assert add(i, 1) == i + 1")
        assert r["ok"] and len(r.calls) == 3000 and r.calls[-1]["call"] == 3000
        assert g.run("x = []\nx.append(x)\necho(x)").error["kind"] == "tool"


def test_tool_messages_have_a_limit():
    with guest(tools=[ADD, {"name": "echo", "args": {"v": {}}}],
               handlers={"add": lambda a, b: a + b, "echo": lambda v: v},
               options={"message_bytes": 200}) as g:
        r = g.run("echo('x' * 500)")
        assert "IPC message too large" in r.error["message"] or "too large" in r.error["message"], r
        assert g.value("add(1, 2)") == 3


def test_tools_from_threads_and_children():
    with guest(tools=[ADD], handlers={"add": lambda a, b: a + b}) as g:
        assert g.value("from concurrent.futures import ThreadPoolExecutor\n"
                       "with ThreadPoolExecutor(4) as p:\n"
                       "    r = list(p.map(lambda i: add(i, i), range(40)))\nr") == \
            [2 * i for i in range(40)]
        assert g.value("import os\nr, w = os.pipe()\nif os.fork() == 0:\n    try:\n"
                       "        add(1, 2)\n    except ToolError as e:\n"
                       "        os.write(w, str(e).encode())\n    os._exit(0)\n"
                       "os.wait()\nos.read(r, 99).decode()").startswith("tools can only")
        g.run("import threading, time\nlate = []\ndef f():\n    while not os.path.exists('go'): time.sleep(0.01)\n    try:\n"
              "        add(1, 2)\n    except ToolError as e:\n        late.append(str(e))\n    open('done', 'w').close()\n"
              "threading.Thread(target=f).start()")
        open(g.home + "/go", "w").close()  # between executions
        end = time.monotonic() + 30
        while not os.path.exists(g.home + "/done") and time.monotonic() < end:
            time.sleep(0.01)
        assert g.value("len(late)") == 1


def test_tool_named_like_a_builtin():
    with guest(tools=[{"name": "list", "args": {}}], handlers={"list": lambda: ["a"]}) as g:
        assert g.value("list()") == ["a"]
        assert g.value("import collections, json\njson.loads('[1]')") == [1]


def test_tool_packages():
    tool = {"name": "greet", "args": {"args": {}, "stdin": {}}, "command": True,
            "python_package": {"__init__.py": "from .core import hi\n",
                               "core.py": "from ._shim import run\n\n\ndef hi(n):\n"
                                          "    return run(n, stdin='in')['stdout']\n"}}
    handlers = {"greet": lambda args, stdin: {"stdout": "%s %s" % (args[0], stdin),
                                              "exit_code": 0}}
    with guest(tools=[tool], handlers=handlers, options={"modules": ["math"]}) as g:
        assert g.value("import greet\ngreet.hi('you')") == "you in"


def test_modules():
    with guest(options={"modules": ["math", "json", "os.path"]}) as g:
        assert g.value("import math\nmath.floor(2.5)") == 2
        assert g.value("import json\njson.dumps([1])") == "[1]"
        for code in ("import os", "import socket", "__import__('os')", "import sys, os",
                     "from os import system", "import importlib",
                     "exec('import os')", "eval(\"__import__('os')\")", "import subprocess"):
            r = g.run(code)
            assert r.error.get("kind") == "import" and "is not allowed" in r.error["message"], (code, r)
        r = g.run("import os")
        assert r.error["message"] == "Import of 'os' is not allowed: it is not in the policy's " \
                                     "\"modules\" (math, json, os.path)", r
        assert g.run("from os import path\npath.join('a', 'b')")["value"] == "a/b"
        assert g.run("import os.path as p\np.join('a', 'b')")["value"] == "a/b"
        assert g.run("try:\n    import os\nexcept ImportError:\n    x = 1\nx")["value"] == 1
    with guest(options={"modules": ["importlib"]}) as g:
        r = g.run("import importlib\nimportlib.import_module('os')")
        assert r.error["kind"] == "import", r
        r = g.run("importlib.import_module('os.path')")
        assert r.error["kind"] == "import", r
        r = g.run("import importlib.util\nimportlib.util.find_spec('wave')")
        assert r.error.get("kind") == "import", r
    with guest(options={"modules": ["math"]}) as g:
        for code in ("import os.path", "import os", "__import__('os')"):
            assert "not allowed" in g.run(code).error["message"]
    with guest(options={"modules": []}) as g:
        assert "(none)" in g.run("import math").error["message"]
    if has("pandas"):
        with guest(options={"modules": ["pandas"]}) as g:
            assert g.value("import pandas as pd\nfloat(pd.DataFrame({'a': [1, 2]}).a.mean())") == 1.5
        with guest(options={"modules": ["math"]}) as g:  # the rule is for the code, not for the values that it gets
            frame = {"$": "frame", "names": ["a"], "columns": [{"$": "vec", "t": "int", "v": [1, 2]}], "rows": 2}
            assert g.value("[type(df).__name__, float(df.a.mean())]", {"df": frame}) == ["DataFrame", 1.5]


def test_numpy():
    if not has("numpy"):
        return
    g = shared()
    r = g.value("import numpy as np\nnp.arange(6, dtype='float64').reshape(2, 3)")
    assert r["$"] == "array" and r["dtype"] == "float64" and r["shape"] == [2, 3]
    assert struct.unpack("<6d", base64.b64decode(r["v"])) == (0, 1, 2, 3, 4, 5)
    assert g.value("np.float64(2.5)") == 2.5 and g.value("np.int64(3)") == 3
    assert g.value("np.bool_(True)") is True and g.value("np.float32(0.5)") == 0.5
    assert g.value("np.datetime64('2024-02-29T12:00')") == \
        {"$": "datetime", "v": "2024-02-29T12:00:00"}
    assert g.value("np.array(['a', 'b'])") == ["a", "b"]
    assert g.value("np.array([1, 2], dtype='>i4')")["dtype"] == "int32"
    assert g.value("np.asfortranarray([[1, 2], [3, 4]]).T")["shape"] == [2, 2]
    for a in ("np.eye(3)", "np.array(5)", "np.zeros((0, 3))", "np.array([1+2j])",
              "np.array([True, False])", "np.arange(4, dtype='uint8')", "np.arange(9)[::2]",
              "np.asfortranarray(np.arange(6).reshape(2, 3))"):
        v = g.value(a)
        r = g.value("b = %s\n[bool(np.array_equal(x, b)), x.dtype == b.dtype, x.shape == b.shape]"
                    % a, {"x": v})
        assert r == [True, True, True], (a, v, r)
    assert "too large" in g.run("np.zeros(3000000)")["warnings"][0]


def test_pandas():
    if not has("pandas"):
        return
    g = shared()
    code = ("import pandas as pd, numpy as np\ndf = pd.DataFrame({'i': [1, 2], 'f': [0.5, np.nan], "
            "'s': ['a', None], 'b': [True, False], 'c': pd.Categorical(['x', 'y']), "
            "'d': pd.to_datetime(['2024-02-29', None]), 'n': pd.array([1, None], dtype='Int64'), "
            "'t': pd.to_timedelta([1.5, 2], unit='s')})\ndf")
    r = g.run(code)
    f = r["value"]
    assert f["$"] == "frame" and f["rows"] == 2 and f["names"] == list("ifsbcdnt"), f
    c = dict(zip(f["names"], f["columns"]))
    assert c["i"] == {"$": "vec", "t": "int", "v": [1, 2]}
    assert c["f"] == {"$": "vec", "t": "float", "v": [0.5, "nan"]}
    assert c["s"] == {"$": "vec", "t": "string", "v": ["a", None]}
    assert c["b"] == {"$": "vec", "t": "logical", "v": [True, False]}
    assert c["c"] == {"$": "factor", "levels": ["x", "y"], "v": [1, 2], "ordered": False}
    assert c["d"] == {"$": "vec", "t": "datetime", "v": ["2024-02-29T00:00:00", None]}
    assert c["n"] == {"$": "vec", "t": "int", "v": [1, None]}
    assert c["t"] == {"$": "vec", "t": "duration", "v": [1.5, 2.0]}
    kinds = [o["mime"] for o in r.outputs]
    assert kinds == ["text/html", "application/json"] and "<table" in r.outputs[0]["data"], kinds
    assert json.loads(r.outputs[1]["data"])["columns"][0] == "i"
    assert g.value("[df.equals(x), bool((x.dtypes == df.dtypes).all())]", {"x": f}) == [True, True]
    v = g.value("pd.DataFrame({'a': [1]}, index=['row'])")
    assert v["index"] == {"$": "vec", "t": "string", "v": ["row"]}
    assert g.value("x.loc['row', 'a'] == 1", {"x": v})
    assert g.value("pd.Series([1.5, 2.5])") == {"$": "series", "v": {"$": "vec", "t": "float", "v": [1.5, 2.5], "dtype": "float64"}}
    assert g.value("pd.NA")["$"] == "na" and g.value("pd.NaT")["$"] == "na"
    v = g.value("m = df.set_index(['i', 's'])\nm")
    assert g.value("x.index.equals(m.index)", {"x": v}) is True
    assert g.value("pd.DataFrame({1: [2]})")["names"] == [1]


def test_decoding_vectors():
    g = shared()
    vec = {"$": "vec", "t": "float", "v": [1.0, None, "inf"], "names": ["a", "b", "c"]}
    assert g.value("[v[0], v[1], v[2] > 1e308]", {"v": vec}) == [1.0, None, True]
    factor = {"$": "factor", "levels": ["lo", "hi"], "v": [2, None, 1], "ordered": True}
    assert g.value("f", {"f": factor}) == ["hi", None, "lo"]


def test_figures():
    if not has("matplotlib"):
        return
    with guest() as g:
        r = g.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.figure()\n"
                  "plt.bar([1], [2])\nNone")
        assert r["ok"] and [o["mime"] for o in r.outputs] == ["image/png"] * 2, r
        assert base64.b64decode(r.outputs[0]["data"]).startswith(b"\x89PNG")
        assert r.outputs[0]["name"] == "figure 1"
        assert not g.run("1").outputs
        r = g.run("plt.plot([1])\nplt.show()\nplt.plot([2])\nplt.show()")
        assert len(r.outputs) == 2 and r.stderr == "", (r, r.stderr)
        r = g.run("import matplotlib\nmatplotlib.use('Agg')\nfig, ax = plt.subplots()\nfig")
        assert len(r.outputs) == 1, r


def test_figures_under_an_import_rule():
    if not has("matplotlib"):
        return
    with guest(options={"modules": ["matplotlib", "statistics"]}) as g:
        r = g.run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()")
        assert r["ok"] and len(r.outputs) == 1, (r, r.stderr)
        assert g.value("import statistics\nstatistics.mean([1, 3])") == 2
        assert g.run("import os").error["kind"] == "import"


def test_rich_values():
    g = shared()
    r = g.run("class H:\n    def _repr_html_(self):\n        return '<b>x</b>'\n"
              "    def _repr_svg_(self):\n        return None\n"
              "    def _repr_png_(self):\n        return b'\\x89PNG'\nH()")
    assert [(o["mime"], o["encoding"]) for o in r.outputs] == \
        [("image/png", "base64"), ("text/html", "text")], r.outputs
    r = g.run("display(H(), 'text', 5)")
    assert len(r.outputs) == 2 and r.stdout == "text\n5\n"
    r = g.run("class Bad:\n    def _repr_html_(self):\n        raise ValueError('no')\nBad()")
    assert r["ok"] and "no rich output" in r.stderr
    r = g.run("class Big:\n    def _repr_html_(self):\n        return 'x' * (9 << 20)\nBig()")
    assert r["ok"] and not r.outputs and "left out" in r.stderr


def test_exit_message_ends_it():
    g = guest()
    g.run("import atexit\natexit.register(lambda: open('left', 'w').close())")
    g.send({"type": "exit"})
    try:
        g.recv()
        raise AssertionError("still there")
    except Gone:
        pass
    assert os.path.exists(os.path.join(g.home, "left"))
    assert g.close() == 0


def test_large_code_and_output():
    g = shared()
    assert g.value("x = 0\n" + "x += 1\n" * 50000 + "x") == 50000
    r = g.run("print('y' * 5000000)")
    assert len(r.stdout) == 5000001


def test_unknown_messages_are_ignored():
    g = shared()
    g.send({"type": "what"})
    g.send({"type": "tool_result", "id": 99, "call": 7, "value": 1})
    assert g.value("1+1") == 2


def template(**k):
    return Template(ARGV + ["--template"], env={"CORDON_LIBGUEST": forklib()}, **k)


def test_template_sessions_are_separate():
    with template() as t:
        assert t.hello.get("template") is True
        a, b = t.spawn(), t.spawn()
        a.run("x = 1")
        r = b.run("x")
        assert r.error["name"] == "NameError", r
        assert a.value("x") == 1
        r = a.run("print('out')\nimport sys\nprint('err', file=sys.stderr)")
        assert r.stdout == "out\n" and r.stderr == "err\n" and b.run("1").stdout == ""
        g = t.spawn(tools=[ADD], handlers={"add": lambda a, b: a + b},
                    options={"modules": ["math"]})
        assert g.value("add(1, 2)") == 3 and g.run("import os").error["kind"] == "import"
        names = g.value("sorted(globals())")
        assert names == ["__builtins__", "__doc__", "__loader__", "__name__", "__package__",
                         "__spec__"], names
        g.feed(b"line\n")
        assert g.value("input()") == "line"
        r = g.run("def f():\n    1/0\nf()")
        assert "1/0" in r.error["traceback"] and r.error["line"] == 2
        g.start("while True: pass")
        time.sleep(0.2)
        for s in (a, b, g):
            s.close()


def test_template_randomness_is_renewed():
    preload = ["random", "uuid", "tempfile"] + (["numpy"] if has("numpy") else [])
    code = ("import random, uuid, tempfile, os\n"
            "r = [random.random(), str(uuid.uuid4()), str(uuid.uuid1()), tempfile.mktemp(), "
            "os.urandom(8).hex()]\n")
    if has("numpy"):
        code += "import numpy\nr.append(float(numpy.random.rand()))\n"
    with template(options={"preload": preload + ["no_such_module"]}) as t:
        sessions = [t.spawn() for _ in range(4)]
        seen = [s.value(code + "r") for s in sessions]
        for column in zip(*seen):
            assert len(set(column)) == 4, column
        for s in sessions:
            s.close()
        if has("numpy"):
            g = t.spawn()
            assert g.value("import sys\n'numpy' in sys.modules") is True
            g.close()


def test_template_survives_its_sessions():
    with template() as t:
        for _ in range(20):
            g = t.spawn()
            assert g.value("1+1") == 2
            g.start("import os\nos._exit(3)")
            try:
                g.finish()
                raise AssertionError("still there")
            except Gone:
                pass
            g.close()
        fds = len(os.listdir("/proc/%d/fd" % t.pid))
        assert fds < 12, fds


def test_template_rehearsals_are_silent():
    with template() as t:
        g = t.spawn(options={"ahead": True})
        time.sleep(0.3)
        r = g.run("print('first')\n[sorted(globals()), 1/0]")
        assert r.stdout == "first\n" and "<execution 1>" in r.error["traceback"], r
        assert "x" not in g.value("sorted(globals())")
        g.close()


def test_template_hooks_are_whole():
    with template(options={"preload": ["threading"]}) as t:
        g = t.spawn()
        assert g.value("import os, threading\nt = threading.Timer(60, print)\nt.daemon = True\nt.start()\n"
                       "r, w = os.pipe()\nif os.fork() == 0:\n"
                       "    os.write(w, b'%d' % threading.active_count())\n    os._exit(0)\n"
                       "[threading.active_count(), os.read(r, 9).decode()]") == [2, "1"]
        # random's own hook is whole again too: seeds count, and a child of the code's draws its own numbers.
        assert g.value("import random\nrandom.seed(1)\nrandom.random()") == 0.13436424411240122
        assert g.value("r, w = os.pipe()\nif os.fork() == 0:\n    os.write(w, repr(random.random()).encode())\n"
                       "    os._exit(0)\nfloat(os.read(r, 99)) != random.random()") is True
        g.close()


def test_template_signal():
    with template() as t:
        g = t.spawn()
        pid = g.value("import os\nos.getpid()")
        assert g.interrupt("print('go')\nwhile True: pass", pid).error["kind"] == "interrupted"
        assert g.value("2") == 2
        g.close()


def check(code):
    return validate(ARGV + ["--validate"], code)


def test_validation():
    for code in ("", "  \n", "x = 1\nx", "await f()", "s = 'eval(1) os.system(2)' # exec(3)"):
        r = check(code)
        assert r["valid"] and r["error"] is None and r["warnings"] == [], (code, r)
    r = check("x = 1\nif (TRUE {")
    assert not r["valid"] and r["line"] == 2 and r["column"] and "SyntaxError" in r["error"], r
    assert not check("return 1")["valid"] and not check("a\0b")["valid"]
    for code, name in (("x = eval('1')", "eval"), ("import os as o\ny = 1; o.system('ls')", "os.system"),
                       ("from subprocess import run as r\nif r(['x']): pass", "subprocess.run"),
                       ("import ctypes\nctypes.CDLL(None)", "ctypes.CDLL"),
                       ("print(__import__('os'))", "__import__")):
        r = check(code)
        assert r["valid"] and r["warnings"] == [
            "Code contains call to `%s()` which may be restricted by the sandbox" % name], (code, r)
    assert len(check("eval('1'); eval('2'); exec('3')")["warnings"]) == 2


def test_compiled_runtime():
    """The bundle that the build makes: used by the interpreter that made it, passed over by others."""
    source = os.path.dirname(RUNTIME)
    names = [f for f in os.listdir(source) if f.startswith("cordon_") and f.endswith(".py")]
    d = tempfile.mkdtemp(prefix="bundle-")
    try:
        for f in names:
            shutil.copy(os.path.join(source, f), d)
        parts = [os.path.join(d, f) for f in names if f != "cordon_guest.py"]
        out = os.path.join(d, "cordon_python.bin")
        subprocess.run([PYTHON, "-I", os.path.join(source, "bundle.py"), out] + parts + ["--at", d], check=True)
        with open(out, "rb") as f:
            good = f.read()
        for p in parts:
            with open(p, "w") as f:
                f.write("raise SystemExit('the source was read')\n")
        argv = [PYTHON, "-IS", os.path.join(d, "cordon_guest.py")]
        with Guest(argv) as g:
            assert g.value("1+1") == 2
            r = g.run("def f():\n    1/0\nf()")
            assert "cordon_" not in r.error["traceback"] and r.error["line"] == 2, r
        assert validate(argv + ["--validate"], "x = (")["valid"] is False
        with open(out, "wb") as f:
            f.write(b"\0\0\0\0" + good[4:])
        for p in parts:
            shutil.copy(os.path.join(source, os.path.basename(p)), d)
        with Guest(argv) as g:
            assert g.value("1+1") == 2
    finally:
        shutil.rmtree(d)


def test_warnings_of_an_execution():
    with Guest(ARGV) as g:
        g.advised([("eval('1')", ["eval"]), ("x = 1; import os as o; y = o.system('true')", ["os.system"]),
                   ("def f():\n  return exec('')\n1/0", ["exec"]), ("e\u1d65al('1')", ["eval"])],
                  ["1+1", "'eval(1)' # exec()", "evaluate = 3", "eval = print\n(", "if True {"])
    with Guest(ARGV, options={"modules": ["math"]}) as g:
        g.advised([("eval('1')", ["eval"])], ["import math"])


def bare(code):
    """What the interpreter says by itself, with the module `site`."""
    return json.loads(subprocess.run([PYTHON, "-I", "-c", "import json\nprint(json.dumps(%s))" % code], check=True,
                                     capture_output=True, text=True).stdout)


def test_starts_as_with_site():
    g = guest()
    for code in ("[type(__import__('builtins').__dict__.get(n)).__name__ for n in "
                 "('exit', 'quit', 'help', 'copyright', 'credits', 'license')]",
                 "__import__('site').ENABLE_USER_SITE", "__import__('site').getsitepackages()",
                 "__import__('sys').prefix"):
        assert g.value(code) == bare(code), code
    # A module that nobody has makes it read what adds to the path.
    g.run("import sys\ntry:\n    import no_such_module_anywhere\nexcept ImportError:\n    pass")
    assert g.value("[p for p in sys.path if p]") == bare("__import__('sys').path")
    g.close()
    with Guest([PYTHON, "-I", RUNTIME]) as g:  # as for a virtual environment
        assert g.value("[p for p in __import__('sys').path if p]") == bare("__import__('sys').path")


SITE = """
import sys
sys.path.insert(0, %(source)r)
import os, site
site.PREFIXES[:] = [%(prefix)r]
dirs = site.getsitepackages()
os.makedirs(dirs[0] + "/added", exist_ok=True)
for name, text in {"a.pth": "added\\nimport sys; sys.touched = True\\n", "b.pth": "import no_such_module_of_a_file\\n",
                   "plain.py": "", "added/added_module.py": "x = 5"}.items():
    with open(dirs[0] + "/" + name, "w") as f:
        f.write(text)
%(more)s
is_file = os.path.isfile  # this machine's own is not what is tested
os.path.isfile = lambda path: is_file(path) and path.startswith(%(prefix)r)
import cordon_site
cordon_site.start()
import json, email.message
seen = [hasattr(sys, "touched"), dirs[0] in sys.path, dirs[0] + "/added" in sys.path, "sitecustomize" in sys.modules]
%(then)s
print(json.dumps(seen + [hasattr(sys, "touched"), dirs[0] + "/added" in sys.path]))
"""


def site_in(more, then):
    with tempfile.TemporaryDirectory() as d:
        text = SITE % {"source": os.path.dirname(RUNTIME), "prefix": d, "more": more, "then": then}
        out = subprocess.run([PYTHON, "-IS", "-c", text], capture_output=True, text=True)
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)


def test_path_files_wait_for_a_foreign_module():
    late = "stdlib_module_names" in bare("dir(__import__('sys'))")
    before = [not late, True, not late, not late and has("sitecustomize")]
    assert site_in("", "") == before + [not late, not late]
    for then in ("import added_module; assert added_module.x == 5", "import plain", "import importlib.metadata",
                 "import ssl", "import distutils" if late and has("distutils") else "import plain",
                 "import importlib.util; assert importlib.util.find_spec('added_module')"):
        assert site_in("", then) == before + [True, True], then
    first = "sys.path.insert(0, site.PREFIXES[0]); "
    custom = first + "open(sys.path[0] + '/sitecustomize.py', 'w').write('import sys; sys.custom = sys.touched')"
    assert site_in(custom, "assert sys.custom") == [True, True, True, True, True, True]
    package = first + "os.mkdir(sys.path[0] + '/sitecustomize'); open(sys.path[0] + '/sitecustomize/__init__.py', 'w').close()"
    assert site_in(package, "import plain; assert 'sitecustomize' in sys.modules") == before + [True, True]

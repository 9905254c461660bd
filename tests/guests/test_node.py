# test_node.py - inside/guests/node.
import base64
import os
import shutil
import struct
import time

from driver import adder, BUILD, Gone, library, Stock, TOP, validate

NODE = os.environ.get("CORDON_TEST_NODE") or ("/usr/bin/node" if os.path.exists("/usr/bin/node")
                                              else os.path.realpath(shutil.which("node") or "/usr/bin/node"))
ARGV = [NODE, "--no-force-async-hooks-checks", os.path.join(TOP, "inside/guests/node/cordon_guest.mjs")]
ADD = adder()
os.environ["CORDON_NODE_LIB"] = LIB = os.path.join(BUILD, "inside/guests/node/cordon_node.node")  # validate() passes it on
stock = Stock(ARGV, {"CORDON_NODE_LIB": LIB})
guest, shared, reset = stock.guest, stock.shared, stock.reset


def test_hello():
    g = shared()
    assert g.hello["guest"] == "node" and int(g.hello["language"].split(".")[0]) >= 18, g.hello


def test_no_session_where_code_cannot_be_interrupted():
    """Else endless code would run on, and nobody would be told why."""
    for obstacle, reason in (("symbols", "this Node has no _ZN2v87Isolate18TerminateExecutionEv"),
                             ("threads", "no thread can be made: Resource temporarily unavailable")):
        env = {"CORDON_NODE_LIB": LIB, "LD_PRELOAD": library("obstacle"), "OBSTACLE": obstacle}
        words, status = guest(env=env, hello=False).last_words()
        assert words == "cordon: code cannot be interrupted: %s\n" % reason and status == 1, (words, status)
    with guest(env=dict(env, OBSTACLE="none")) as g:
        assert g.value("1 + 1") == 2


def test_values_and_state():
    g = shared()
    r = g.run("1 + 1")
    assert r["value"] == 2 and r["text"] == "2"
    assert g.value("const x = 10\nlet y = 20\nx + y") == 30
    assert g.value("x * 2") == 20
    assert g.value("const x = 11; x") == 11  # declared again, as in a prompt
    assert g.value("function f(n) { return n * x }\nclass P { v = 3 }\nf(2)") == 22
    assert g.value("new P().v + f(1)") == 14
    assert "value" not in g.run("let z = 1") and "value" not in g.run("") and "value" not in g.run("// nothing")
    r = g.run("null")
    assert r["value"] is None and "text" not in r
    assert g.value("({a: 1}).a") == 1


def test_streams_are_whole_in_every_execution():
    with guest() as g:
        g.run("const fs = require('fs')")
        for code in ("fs.closeSync(1); fs.closeSync(2)", "fs.closeSync(1); fs.openSync('/dev/null', 'w')", "fs.closeSync(0)",
                     "console.log('first'); fs.closeSync(1); fs.closeSync(0); fs.openSync('/dev/null')",
                     "process.stdout.end('x'); process.stderr.end()", "process.stdout.destroy()", "process.stdin.destroy()",
                     "process.stdout.write = () => true", "Object.defineProperty(process, 'stdout', {value: null, configurable: true})",
                     "Object.defineProperty(process, 'stdin', {value: null, configurable: true})", "fs.closeSync(1); throw 1",
                     "fs.closeSync(1); process.exit(3)", "delete process.stdout; delete process.stderr"):
            g.run(code)
            for _ in range(2):
                r = g.run("console.log('back'); console.error('too'); process.stdout.write('more\\n'); fs.writeSync(1, 'fd'); process.stdin.readable")
                assert r["ok"] and r.stdout == "back\nmore\nfd" and r.stderr == "too\n", (code, r, r.stdout, r.stderr)


def test_what_persists():
    with guest() as g:
        g.run("const fs = require('fs'); fs.mkdirSync('d'); process.chdir('d'); process.umask(0o27); process.env.A = 'b'; "
              "process.on('SIGUSR2', () => {}); console.log = console.warn")
        assert g.value("[require('path').basename(process.cwd()), process.umask(), process.env.A, process.listenerCount('SIGUSR2')]") == [
            "d", 0o27, "b", 1]


def test_result_variable():
    with guest() as g:
        assert g.value("result = 5; 6") == 5
        assert g.value("1 + 1") == 2
        assert g.value("result + 1") == 6
        assert g.value("let answer = 1; answer === 1") is True


def test_awaiting():
    g = shared()
    assert g.value("await new Promise(r => setTimeout(() => r(5), 20))") == 5
    assert g.value("async function main() { return 9 }\nmain()") == 9
    r = g.run("setTimeout(() => console.log('late'), 60); 3")
    assert r["value"] == 3 and r.stdout == "late\n"
    r = g.run("await new Promise(() => {})")
    assert not r["ok"] and "never" in r.error["message"]
    r = g.run("for await (const x of (async function*() { yield 1; yield 2 })()) console.log(x)")
    assert r.stdout == "1\n2\n"
    assert g.value("1") == 1


def test_output():
    g = shared()
    r = g.run("console.log('out', {a: 1}); console.error('err'); process.stdout.write('raw ä☃😀')")
    assert r.stdout == "out { a: 1 }\nraw ä☃😀" and r.stderr == "err\n", (r.stdout, r.stderr)
    g.start("console.log('first'); await new Promise(r => setTimeout(r, 400)); console.log('second')")
    start = time.monotonic()
    while not g.out[g.pipes[1][0]]:
        g.pump(5)
    first = time.monotonic() - start
    assert g.finish().stdout == "first\nsecond\n" and time.monotonic() - start - first > 0.3
    r = g.run("console.log('y'.repeat(3000000))")
    assert len(r.stdout) == 3000001
    g.feed(b"5\n")
    assert g.value("const b = Buffer.alloc(9); const n = require('fs').readSync(0, b); parseInt(b.toString()) * 2") == 10


def test_errors():
    g = shared()
    r = g.run("function f() {\n  throw new TypeError('user error')\n}\nf()")
    e = r.error
    assert e["kind"] == "exception" and e["name"] == "TypeError" and e["message"] == "user error", r
    assert e["line"] == 2 and "at f (" in e["traceback"] and "cordon" not in e["traceback"], e
    assert "inspector" not in e["traceback"] and "Promise" not in e["traceback"], e
    for code in ("throw 5", "throw null", "throw {a: 1}", "Promise.reject(new Error('r'))", "await Promise.reject(1)",
                 "setTimeout(() => { throw new Error('later') }, 10)", "undefined_name",
                 "const e = new Error(); Object.defineProperty(e, 'message', {get() { throw 1 }}); throw e",
                 "(function f() { f() })()", "throw new Proxy({}, {get() { throw 1 }, has() { throw 2 }})"):
        r = g.run(code)
        assert not r["ok"] and r.error["kind"] == "exception", (code, r)
        assert g.value("1 + 1") == 2, code
    assert g.run("Promise.reject(new Error('unhandled')); await new Promise(r => setTimeout(r, 50))").error["message"] \
        == "unhandled"
    assert g.run("eval('1 +')").error["kind"] == "exception"
    assert g.run("new ArrayBuffer(2 ** 50)").error["kind"] in ("memory", "exception")
    assert g.value("1 + 1") == 2


def test_syntax_errors():
    g = shared()
    for code, line in (("let a = 1\nlet b = )", 2), ("if (", 1), ("const q = 1; const q = 2", 1), ("'abc", 1)):
        r = g.run(code)
        assert r.error["kind"] == "syntax" and r.error["line"] == line, (code, r)
    assert g.value("1") == 1


def test_exit():
    with guest() as g:
        for code, n in (("process.exit(3); console.log('no')", 3), ("process.exit()", 0),
                        ("setTimeout(() => process.exit(4), 10)", 4)):
            r = g.run(code)
            assert r.get("exit_code") == n and r["ok"] == (n == 0) and r.stdout == "", (code, r)
        assert g.run("process.exitCode = 5; 1")["exit_code"] == 5
        assert "exit_code" not in g.run("1")


# What a failed execution leaves behind, as code that fails afterwards.
LEFT = {
    "a timer that ends": "setTimeout(() => {}, 200)",
    "timers that end one by one": "for (let ms = 50; ms < 300; ms += 50) setTimeout(() => {}, ms)",
    "a timer that makes another": "(function again() { setTimeout(again, 5) })()",
    "timers that become more": "{ let n = 0; (function more() { setTimeout(more, 5); if (n++ < 50) setTimeout(more, 5) })() }",
    "a loop that awaits": "(async () => { const { setTimeout: sleep } = require('timers/promises'); for (;;) await sleep(5) })()",
    "immediates": "(function again() { setImmediate(again) })()",
    "an interval": "setInterval(() => {}, 5)",
    "an interval that code clears": "globalThis.left = setInterval(() => {}, 5)",
    "a program": "require('child_process').spawn('sleep', ['0.2'])",
    "a server": "require('net').createServer((s) => s.end()).listen('left.sock')",
    "an error": "setTimeout(() => { throw new Error('left behind') }, 100)",
    "a rejection": "(async () => { await new Promise((r) => setTimeout(r, 100)); throw new Error('left behind') })()",
    "an exit": "setTimeout(() => process.exit(9), 100)",
}


def test_leftovers_of_another_execution():
    """They neither hold up the next execution nor end it before its own callbacks are done."""
    for what, code in LEFT.items():
        with guest() as g:
            assert not g.run(code + "; setImmediate(() => { throw new Error('failed') })")["ok"]
            said = ""
            for _ in range(3):
                r = g.run("if (globalThis.left) clearInterval(left); setTimeout(() => console.log('mine'), 300); 1")
                assert r["ok"] and r.get("value") == 1 and r.stdout == "mine\n", (what, r, r.stdout, r.stderr)
                said += r.stderr
            told = "cordon: in a callback of an earlier execution: Error: left behind"
            assert said.startswith(told) if "left behind" in code else said == "", (what, said)
            if what == "a server":  # goes on
                assert g.value("await new Promise((r) => require('net').connect('left.sock').on('close', r).resume())") is False


def test_leftovers_and_what_the_code_itself_makes():
    with guest() as g:
        assert not g.run("setInterval(() => {}, 20); setImmediate(() => { throw new Error('failed') })")["ok"]
        for code in ("process.nextTick(() => setTimeout(() => console.log('mine'), 50)); 1", "setImmediate(() => setImmediate(() => console.log('mine'))); 1",
                     "(async () => { for (let i = 0; i < 5; i++) await new Promise((r) => setTimeout(r, 5)); console.log('mine') })(); 1",
                     "{ let n = 0; const i = setInterval(() => { if (++n > 3) { clearInterval(i); console.log('mine') } }, 5) }; 1",
                     "require('child_process').exec('sleep 0.1; echo mine', (e, out) => process.stdout.write(out)); 1",
                     "require('dns').lookup('localhost', () => console.log('mine')); 1",
                     "for (let i = 0; i < 3000; i++) setTimeout(() => {}, i % 50); setTimeout(() => console.log('mine'), 80); 1"):
            r = g.run(code)
            assert r["ok"] and r["value"] == 1 and r.stdout == "mine\n", (code, r, r.stdout, r.stderr)
        assert g.run("setTimeout(() => { throw new Error('mine') }, 5); 1").error["message"] == "mine"
        assert g.run("setTimeout(() => process.exit(4), 5); 1")["exit_code"] == 4


def test_interrupts_where_code_uses_async_hooks():
    """Node checks its stack of contexts then, and must find it whole."""
    with guest() as g:
        g.run("const kept = new (require('async_hooks').AsyncLocalStorage)(); kept.enterWith(7)")
        for code in ("while (true) {}", "process.nextTick(() => { console.log('go'); while (true) {} })", "await 1; console.log('go'); while (true) {}",
                     "queueMicrotask(() => { console.log('go'); while (true) {} })"):
            r = g.interrupt("console.log('go'); " + code if "go" not in code else code)
            assert r.error["kind"] == "interrupted", (code, r)
            assert g.value("await 1; kept.run(8, () => kept.getStore())") == 8, code
        assert g.run("process.nextTick(() => { throw new Error('tick') }); 1").error["message"] == "tick"
        assert g.value("await 1; kept.run(8, () => kept.getStore())") == 8


def test_interrupt():
    with guest() as g:
        g.run("let kept = 1")
        for code in ("while (true) {}", "await new Promise(r => setTimeout(r, 30000))",
                     "setInterval(() => {}, 1000); 1"):
            r = g.interrupt("console.log('go'); " + code)
            assert r.error["kind"] == "interrupted", (code, r)
            if code.startswith("while"):
                g.signal()  # between executions: nothing happens
                time.sleep(0.1)
            assert g.value("kept") == 1  # what was left behind does not hold up the next one


def test_values_exact():
    g = shared()
    nan, inf = {"$": "float", "v": "nan"}, {"$": "float", "v": "inf"}
    table = [
        ("true", True), ("7", 7), ("-5", -5), ("2 ** 53 - 1", 2**53 - 1), ("0.1 + 0.2", 0.1 + 0.2), ("5e-324", 5e-324),
        ("1e21", 1e21), ("NaN", nan), ("Infinity", inf), ("-Infinity", {"$": "float", "v": "-inf"}),
        ("2n ** 70n", {"$": "int", "v": str(2**70)}), ("'a\\0b\\u2028😀'", "a\0b\u2028😀"), ("'\\ud800x'", "\ufffdx"),
        ("new Uint8Array([0, 255])", {"$": "bytes", "v": "AP8="}), ("Buffer.from('a')", {"$": "bytes", "v": "YQ=="}),
        ("new Date(Date.UTC(2024, 1, 29, 12))", {"$": "datetime", "v": "2024-02-29T12:00:00.000+00:00"}),
        ("[1, [2], {k: null}, undefined]", [1, [2], {"k": None}, None]),
        ("new Map([[1, 'a']])", {"$": "map", "v": [[1, "a"]]}), ("new Set([1])", {"$": "set", "v": [1]}),
        ("({$: 1})", {"$": "map", "v": [["$", 1]]}), ("Object.create(null)", {}),
        ("new (class P { x = 1 })()", {"x": 1}), ("[1,,2]", [1, None, 2]),
    ]
    for code, want in table:
        r = g.run(code)
        assert r["ok"] and r.get("value") == want and type(r["value"]) is type(want), (code, r)
        back = g.run("require('util').isDeepStrictEqual(aa, bb)", {"aa": want, "bb": r["value"]})
        assert back["value"] is True, (code, back)
    assert b'"value":1152921504606847000.0' in (g.run("2 ** 60"), g.last_line)[1]
    assert g.value("typeof aa + aa", {"aa": 2**60}) == "bigint" + str(2**60)
    v = g.value("new Float64Array([1.5, 2])")
    assert v["dtype"] == "float64" and v["shape"] == [2]
    assert struct.unpack("<2d", base64.b64decode(v["v"])) == (1.5, 2)
    assert g.value("aa instanceof Float64Array && aa[0] === 1.5", {"aa": v}) is True
    assert g.value("aa.join()", {"aa": {"$": "vec", "t": "float", "v": [1.0, None, "inf"]}}) == "1,,Infinity"
    for code in ("() => 1", "Symbol('s')", "new Proxy({}, {})", "/re/", "(function*() {})()"):
        v = g.value(code)
        assert v["$"] == "repr", (code, v)
    assert g.value("({get a() { throw 1 }})")["$"] == "repr"
    e = g.value("Object.assign(new TypeError('e', {cause: 1}), {code: 'E'})")
    assert e.pop("stack").startswith("TypeError: e\n") and e == {"$": "error", "class": "TypeError", "message": "e", "fields": [["code", "E"], ["cause", 1]]}, e
    assert g.value("error_in instanceof TypeError && error_in.message + error_in.code + error_in.cause", {"error_in": dict(e, stack="s")}) == "eE1"
    assert g.value("const bad = new Error('e'); Object.defineProperty(bad, 'stack', {get() { throw 1 }}); bad")["$"] == "repr"


def test_values_that_cannot_cross():
    g = shared()
    for code, word in (("const c = []; c.push(c); c", "contains itself"),
                       ("let d = []; for (let i = 0; i < 100; i++) d = [d]; d", "nested deeper"),
                       ("new Array(2000000).fill(0)", "elements"), ("'x'.repeat(9 << 20)", "too large"),
                       ("new Uint8Array(9 << 20)", "too large"),
                       ("let ee = [0]; for (let i = 0; i < 40; i++) ee = [ee, ee]; ee", "elements")):
        r = g.run(code)
        assert r["ok"] and "value" not in r and word in r["warnings"][0], (code, str(r)[:300])
    for code, text in (("const a = {}; a.a = a; a", "<ref *1> { a: [Circular *1] }"),
                       ("setTimeout(() => console.log('late'), 20)", "Timeout {"), ("globalThis", "<ref *1> Object [global] {")):
        r = g.run(code)
        assert r["ok"] and r["text"].startswith(text) and "itself" in r["warnings"][0], (code, str(r)[:300])
    assert g.value("1") == 1


def test_imports():
    g = shared()
    assert g.value("import fs from 'node:fs'\nimport { join as j, sep } from 'path'\nimport * as os from 'os'\n"
                   "fs.existsSync('/') && j('a', 'b') === 'a/b' && sep === '/' && os.EOL === '\\n'") is True
    assert g.value("(await import('node:util')).format('%d', 5)") == "5"
    assert g.value("require('path').basename('/a/b')") == "b"
    with open(g.home + "/mod.mjs", "w") as f:
        f.write("export default 4; export const five = 5;")
    assert g.value("import four, { five } from './mod.mjs'\nfour + five") == 9
    assert g.value("'import x from y' + `import ${1 + 1}` // import z") == "import x from yimport 2"
    r = g.run("import 'node:fs'\nimport {\n  join\n} from 'path'\nthrow new Error('here')")
    assert r.error["line"] == 5, r
    assert not g.run("import nope from 'no-such-package'")["ok"]
    assert g.value("export const exported = 3\nexported") == 3


def test_context_and_env():
    g = shared()
    assert g.value("cx + cy", {"cx": 10, "cy": 20}) == 30
    g.run("let own = 1")
    assert g.value("own", {"own": 5}) == 5
    assert not g.run("1", {"no-name": 1})["ok"]
    assert g.run("process.env.FOO", env={"FOO": "b ar"})["value"] == "b ar"
    assert "value" not in g.run("process.env.FOO", env={"FOO": None})


def test_token_is_nowhere():
    with guest() as g:
        assert g.value("process.env.CORDON_TOKEN === undefined") is True
        text = g.value("require('fs').readFileSync('/proc/self/environ', 'utf8')")
        assert "CORDON_TOKEN=xxx" in text and g.token not in text


def test_nothing_in_the_globals():
    with guest() as g:
        names = g.value("Object.keys(globalThis)")
        assert not [n for n in names if "cordon" in n or n in ("require", "tools", "module")], names


def test_tools():
    def fail():
        raise RuntimeError("tool failed")

    tools = [ADD, {"name": "fail", "args": {}}, {"name": "ping", "args": {}}, {"name": "echo", "args": {"v": {}}},
             {"name": "ns.deep", "args": {}},
             {"name": "opt", "args": {"a": {"type": "integer", "required": True},
                                      "b": {"type": "string", "required": False}}},
             {"name": "upper", "command": True, "args": {"args": {}, "stdin": {}}}]
    handlers = {"add": lambda a, b: a + b, "fail": fail, "ping": lambda: "pong", "echo": lambda v: v,
                "ns.deep": lambda: 1, "opt": lambda **k: sorted(k),
                "upper": lambda args, stdin: {"stdout": (" ".join(args) + stdin).upper(), "exit_code": 0}}
    with guest(tools=tools, handlers=handlers) as g:
        assert g.value("add(2, 3)") == 5 and g.value("add({a: 1, b: 2})") == 3 and g.value("await add(1, 1)") == 2
        r = g.run("fail()")
        assert r.error["kind"] == "tool" and r.error["message"] == "tool failed" and r.error["name"] == "ToolError"
        assert g.value("let m; try { fail() } catch (e) { m = e instanceof ToolError && e.message }; m") == "tool failed"
        for code, text in (("add('hello', 3)", "Tool 'add': argument 'a' must be numeric, got string"),
                           ("add({a: 1, b: 2, evil: 9})", "Unexpected arguments for tool 'add': 'evil'"),
                           ("add(1)", "Tool 'add': argument 'b' is missing"), ("ping(1)", "Unexpected arguments"),
                           ("opt(1.5)", "Tool 'opt': argument 'a' must be integer, got number")):
            r = g.run(code)
            assert text in r.error["message"] and not r.calls, (code, r)
        assert g.value("ping() + ns.deep()") == "pong1" and g.value("opt(1)") == ["a"]
        assert g.value("opt(1, 'x')") == ["a", "b"] and g.value("opt({a: 1, b: null})") == ["a"]
        assert "Unknown tool" in g.run("tools.call('nope', {})").error["message"]
        assert g.value("upper('a', 'b', {stdin: 'c'}).stdout") == "A BC"
        g.run("add = 5")
        assert g.value("add(1, 1)") == 2
        r = g.run("help(add)")
        assert "Adds two numbers." in r.stdout
        for v in ("null", "[1, 2.5, 'x']", "({a: [1]})", "2n ** 100n", "Infinity", "new Set([1])", "({x: {y: 1}})"):
            assert g.value("var v = %s; require('util').isDeepStrictEqual(echo(v), v)" % v) is True, v
        r = g.run("for (let i = 0; i < 2000; i++) if (add(i, 1) !== i + 1) throw 1")
        assert r["ok"] and len(r.calls) == 2000
        assert "too large" in g.run("echo('x'.repeat(2000000))").error["message"]
        assert g.value("add(1, 2)") == 3


def test_display():
    r = shared().run("display('<b>x</b>'); display(Buffer.from([1]), 'image/png', 'p')")
    assert [(o["mime"], o["encoding"]) for o in r.outputs] == [("text/html", "text"), ("image/png", "base64")]


def test_exit_message():
    g = guest()
    g.run("1")
    g.send({"type": "exit"})
    try:
        g.recv()
        raise AssertionError("still there")
    except Gone:
        pass
    assert g.close() == 0


def check(code):
    return validate(ARGV + ["--validate"], code)


def test_validation():
    for code in ("", " \n", "const a = 1; a", "await f()", "import fs from 'fs'", "'eval(1)' // eval(2)",
                 "`eval(${1})`", "/eval(1)/.test('x')", "x.spawn.y", "function eval2() {}"):
        r = check(code)
        assert r["valid"] and r["error"] is None and r["warnings"] == [], (code, r)
    r = check("let a = 1\nlet b = )")
    assert not r["valid"] and r["line"] == 2 and r["column"] == 9 and "SyntaxError" in r["error"], r
    r = check("let a = 1\nlet c = (\n")
    assert not r["valid"] and r["line"] == 2 and "end of input" in r["error"], r
    r = check("await f()\nlet b = )")
    assert not r["valid"] and r["line"] == 2, r
    assert not check("if (true {")["valid"]
    for code, name in (("eval('1')", "eval"), ("let x = 1 + eval('1')", "eval"), ("child_process.exec('x')",
                       "child_process.exec"), ("require('child_process')", "require"), ("new Function('x')", "Function"),
                       ("`${eval('1')}`", "eval"), ("if (fetch('x')) {}", "fetch")):
        r = check(code)
        assert r["valid"] and r["warnings"] == [
            "Code contains call to `%s()` which may be restricted by the sandbox" % name], (code, r)


def test_warnings_of_an_execution():
    with guest() as g:
        g.advised([("eval('1')", ["eval"]), ("let x = 1; const f = () => process.exit(0); x", ["process.exit"])],
                  ["1+1", "'eval(1)' // eval()", "let evaluated = 2", "eval( = 1"])


def test_rehearsals_are_silent():
    g = guest(options={"ahead": True})
    assert g.value("new Error('x').stack.includes('execution-1.js')") is True
    g.close()

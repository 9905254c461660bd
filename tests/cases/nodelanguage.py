"""What people try on a Node session beyond the common cases: promises, timers, modules, values, ends."""
from book import case, has, same, session, value

NODE = ("node",)


def fails(s, code, *parts, kind="exception", **more):
    r = s.execute(code, **more)
    assert not r.success and r.error_kind == kind, (code, r.success, r.error_kind, r.error)
    has(r.error, *parts)
    same(value(s.execute("1 + 1")), 2)
    return r


@case("JS-01", NODE)
def promises_and_timers(guest):
    with session(guest) as s:
        same(value(s.execute("await Promise.resolve(5)")), 5)
        same(value(s.execute("(async () => 7)()")), 7)
        fails(s, "Promise.reject(new Error('rejected')); 5", "rejected")
        fails(s, "setTimeout(() => { throw new Error('in a timer') }, 10); 1", "in a timer")
        fails(s, "queueMicrotask(() => { throw new Error('micro') }); 1", "micro")
        fails(s, "process.nextTick(() => { throw new Error('tick') }); 1", "tick")
        fails(s, "await new Promise(() => {}); 1", "never happen")
        r = s.execute("setImmediate(() => { console.log('soon'); setTimeout(() => console.log('later'), 30) }); 'now'")
        same((value(r), r.stdout), ("now", "soon\nlater\n"))
        same(value(s.execute("setInterval(() => {}, 1000).unref(); 6")), 6)


@case("JS-02", NODE)
def loops_that_never_end(guest):
    with session(guest, {"grace_ms": 60000}) as s:
        s.execute("let kept = 1")
        for code in ("for (;;) {}", "(function f() { Promise.resolve().then(f) })(); 1", "setInterval(() => {}, 10)"):
            r = fails(s, code, "timed out after 1 second", kind="timeout", timeout=1)
            same((r.restarted, value(s.execute("kept"))), (False, 1))
        fails(s, "function rec() { return rec() }; rec()", "Maximum call stack")


@case("JS-03", NODE)
def ends_and_their_status(guest):
    with session(guest) as s:
        s.execute("let kept = 1")
        same(s.execute("process.exit(3)").exit_code, 3)
        same(s.execute("process.exitCode = 4; 1").exit_code, 4)
        same(s.execute("process.exit()").success, True)
        same(value(s.execute("kept")), 1)
        for thrown, text in (("5", "5"), ("null", "null"), ("{a: 1}", "a: 1"), ("new TypeError('t')", "TypeError: t")):
            fails(s, "throw %s" % thrown, text)
        same(s.execute("process.abort()").error_kind, "crashed")


@case("JS-04", NODE)
def memory_that_runs_out(guest):
    with session(guest, policy={"memory_bytes": 256 << 20}) as s:
        fails(s, "const a = []; for (;;) a.push(new Array(1e6).fill(1.5))", "memory limit", kind="memory")
        fails(s, "const b = []; for (;;) b.push(Buffer.alloc(8 << 20, 1))", "memory limit", kind="memory")


@case("JS-05", NODE)
def values(guest):
    with session(guest) as s:
        for code, want in (("10n ** 30n", 10**30), ("new Map([['a', 1]])", {"a": 1}), ("new Set([1])", {1}), ("Buffer.from('hé')", "hé".encode()),
                           ("new Uint8Array([1, 2])", b"\1\2"), ("[1,,3]", [1, None, 3]), ("({toJSON() { return 42 }})", 42),
                           ("BigInt(Number.MAX_SAFE_INTEGER) + 2n", 2**53 + 1), ("new Boolean(true)", True),
                           ("({a: {b: [1, 'x', null]}})", {"a": {"b": [1, "x", None]}}), ("'\\u{1F600}'", "\U0001F600"),
                           ("class A { constructor() { this.x = 1 } }; new A()", {"x": 1})):
            got = s.execute(code)
            assert got.success and got.value == want and type(got.value) is type(want), (code, got.value, got.error)
        for code in ("undefined", "null", "new Date(NaN)"):
            same(s.execute(code).success, True)
            same(s.execute(code).value, None)
        same(str(s.execute("new Date(0)").value)[:10], "1970-01-01")
        has(s.execute("Symbol('s')").text, "Symbol(s)")
        r = s.execute("const o = {}; o.self = o; o")
        assert r.success and r.value is None and "contains itself" in r.warnings[0], (r.error, r.warnings)
        has(r.text, "[Circular *1]")
        assert "cordon_guest" not in s.execute("new Error('as a value')").text


@case("JS-06", NODE)
def modules_and_files(guest):
    with session(guest) as s:
        same(value(s.execute("const fs = require('fs'); fs.writeFileSync('m.js', 'module.exports = {k: 9}'); require('./m.js').k")), 9)
        same(value(s.execute("fs.writeFileSync('e.mjs', 'export const z = 8; export default 3'); (await import('./e.mjs')).z")), 8)
        same(value(s.execute("import d, { z } from './e.mjs'; d + z")), 11)
        same(value(s.execute("import path from 'node:path'; path.basename('/a/b')")), "b")
        fails(s, "require('no-such-module')", "Cannot find module")
        has(fails(s, "fs.writeFileSync('/etc/x', '1')", "EROFS", kind="denied").denials[0].target, "/etc/x")
        fails(s, "fs.readFileSync('/etc/shadow')", "ENOENT")
        same(value(s.execute("fs.readFileSync(0, 'utf8')", stdin=b"in")), "in")


@case("JS-07", NODE)
def output_in_order(guest):
    with session(guest) as s:
        r = s.execute("process.stdout.write('a\\n'); console.log('b'); console.info('c'); console.error('d'); console.warn('e'); 1")
        same((r.stdout, r.stderr), ("a\nb\nc\n", "d\ne\n"))
        r = s.execute("process.stdout.write('x'.repeat(3e6)); 1")
        assert r.success and r.truncated["stdout"] and len(r.stdout) <= (1 << 20) + 64


@case("JS-08", NODE)
def threads_and_processes(guest):
    with session(guest) as s:
        same(value(s.execute("const { Worker } = require('worker_threads'); await new Promise((done, failed) => { const w = new Worker("
                             "'require(\"worker_threads\").parentPort.postMessage(5)', { eval: true }); w.on('message', done); "
                             "w.on('error', failed) })")), 5)
        same(value(s.execute("require('child_process').execSync('echo hi').toString()")), "hi\n")
        r = s.execute("await fetch('http://example.test').catch((e) => 'refused')")
        assert value(r) == "refused" and any(d.operation == "socket" for d in r.denials), r.denials
    with session(guest, {"commands": []}) as s:
        r = fails(s, "require('child_process').execSync('echo hi')", "ENOENT", kind="denied")
        same(r.denials[0].operation, "execute")

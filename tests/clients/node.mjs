// The Node client: the common table of behaviours, and what is specific to it. TAP.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";
import * as cordon from "../../clients/node/index.js";
import { codeTool } from "../../clients/node/ai.js";

const here = dirname(fileURLToPath(import.meta.url));
const client = join(here, "../../clients/node");
const run = promisify(execFile);
const ALL = Uint8Array.from({ length: 256 }, (_, i) => i);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

const TOOLS = {
  add: { name: "add", args: { a: "number", b: "number" }, fn: ({ a, b }) => a + b },
  echo: { name: "echo", args: { v: null }, fn: ({ v }) => v },
  fail: { name: "fail", fn: () => { throw new Error("tool failed"); } },
  pi: { name: "pi", fn: async () => 3.141592653589793 },
  nothing: { name: "nothing", fn: () => {} },
};

function content(step) {
  if (step.bytes) return Buffer.from(ALL);
  return Buffer.from(step.repeat ? step.repeat[0].repeat(step.repeat[1]) : step.text);
}

async function execute(on, step) {
  const streamed = { stdout: "", stderr: "" };
  const options = { context: step.context, timeoutMs: step.timeout_ms, toolCalls: step.tool_calls };
  if (step.stream) {
    options.onStdout = (t) => (streamed.stdout += t);
    options.onStderr = (t) => (streamed.stderr += t);
  }
  const r = await on.execute(step.code, options);
  const got = { success: r.success, value: r.value, error: r.error, error_kind: r.errorKind, stdout: r.stdout, stderr: r.stderr,
    exit_code: r.exitCode, restarted: r.restarted, restart_reason: r.restartReason, tool_calls: r.toolCalls, truncated_stdout: r.truncated.stdout,
    streamed_stdout: streamed.stdout, streamed_stderr: streamed.stderr, assurance_wall: r.assurance?.wall };
  for (const [key, want] of Object.entries(step.expect ?? {})) {
    if (key === "error_has") assert.ok(r.error?.includes(want), `'${want}' is not in '${r.error}'`);
    else assert.deepEqual(got[key], want, key);
  }
}

async function inFolder(work) {
  const folder = mkdtempSync(join(tmpdir(), "cordon-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const OPERATIONS = {
  execute,
  write: (on, s) => on.files.write(s.path, content(s)),
  append: (on, s) => on.files.append(s.path, content(s)),
  read: async (on, s) => {
    const data = await on.files.read(s.path);
    assert.ok(Buffer.from(data).equals(content(s)));
  },
  upload: (on, s) => inFolder(async (folder) => {
    const data = content(s), seen = [];
    writeFileSync(join(folder, "é"), data);
    await on.files.upload(join(folder, "é"), s.path, { onProgress: (done, total) => seen.push([done, total]) });
    assert.deepEqual(seen.at(-1), [data.length, data.length]);
  }),
  download: (on, s) => inFolder(async (folder) => {
    try {
      await on.files.download(s.path, join(folder, "out"));
    } finally {
      assert.ok(readdirSync(folder).every((name) => name === "out"), "something is left");
    }
    assert.ok(readFileSync(join(folder, "out")).equals(content(s)));
  }),
  tar: (on, s) => inFolder(async (folder) => {
    await on.files.getTar(s.path, join(folder, "t"));
    await on.files.mkdir(s.to);
    await on.files.putTar(s.to, join(folder, "t"));
  }),
  watch: async (on, s, state) => { state.watch = await on.files.watch(s.path, { recursive: s.recursive ?? true }); },
  changes: async (on, s, state) => assert.deepEqual((await state.watch.changes(s.wait_ms)).map((c) => `${c.change} ${c.path} ${c.type}`), s.want),
  unwatch: (on, s, state) => state.watch.close(),
  stat: async (on, s) => {
    const { type, size } = await on.files.stat(s.path);
    assert.deepEqual({ type, size }, { type: s.type, size: s.size });
  },
  list: async (on, s) => assert.deepEqual((await on.files.list(s.path)).map((e) => e.name).sort(), s.names),
  mkdir: (on, s) => on.files.mkdir(s.path),
  move: (on, s) => on.files.move(s.from, s.to),
  remove: (on, s) => on.files.remove(s.path, { recursive: s.recursive ?? false }),
  snapshot: (on, s) => on.snapshot(s.as),
  restore: (on, s) => on.restore(s.name),
  fork: async (on, s, state) => { state[s.as] = await on.fork(); },
  export: async (on, s, state) => { state.blob = await on.export(); },
  import: (on, s, state) => on.import(state.blob),
  restart: (on) => on.restart(),
  setenv: (on, s) => on.setenv(s.name, s.value),
  close: (on) => on.close(),
};

async function fails(want, action) {
  let error = null;
  try {
    await action();
  } catch (e) {
    error = e;
  }
  assert.ok(error, "it did not fail");
  assert.ok(error instanceof cordon.RpcError, String(error));
  if (want !== true) assert.equal(error.kind, want, error.message);
}

async function runCase(c) {
  const options = { guest: c.guest, level: c.level, policy: c.policy, env: c.env, tools: (c.tools ?? []).map((t) => TOOLS[t]) };
  const open = () => ("pool" in c ? cordon.Pool.open({ ...options, size: c.pool }) : cordon.Session.open(options));
  if (c.open_fails) return fails(c.open_fails, open);
  const session = await open();
  const state = {};
  try {
    for (const step of c.steps) {
      const act = () => OPERATIONS[step.do](step.on ? state[step.on] : session, step, state);
      if (step.fails) await fails(step.fails, act);
      else await act();
    }
  } finally {
    await session.close();
  }
}

function alive(pid) {
  try {
    return !/^[ZX]$/.test(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1][0]);
  } catch {
    return false; // gone, perhaps while it was read
  }
}
async function until(condition, ms = 30000) {
  const end = Date.now() + ms;
  while (Date.now() < end && !(await condition())) await sleep(10);
  return condition();
}

/** Expressions, evaluated here and in the guest. */
const PROBES = ["null", "true", "7", "1.5", "-0", "NaN", "-Infinity", "2n ** 80n", "5n", "'é\\u0000😀'", "[1, [2.5, null]]", "{a: {b: []}}", "{}", "[]", "new Map([[1, 'a'], ['k', [2]], [{o: 1}, null]])",
  "new Map()", "new Map([['a', 1]])", "new Set([1, 'a', [2]])", "new Set()", "new Date(1709208000001)", "new Uint8Array([0, 255])", "new Int8Array([-1])", "new Uint8ClampedArray([1, 2])",
  "new Int16Array([1, -2])", "new Uint16Array([3])", "new Int32Array([-5])", "new Uint32Array([4294967295])", "new Float32Array([1.5, NaN])", "new Float64Array([0.1, -0])", "new Float64Array()",
  "new BigInt64Array([-(2n ** 63n)])", "new BigUint64Array([2n ** 64n - 1n])", "new Error('e')", "new TypeError('t', {cause: 'c'})", "Object.assign(new RangeError('r'), {code: 'E_X', list: [1]})",
  "new AggregateError([new Error('one'), 2], 'many')", "Object.assign(new Error('n'), {name: 'Mine'})"];

function same(got, want, code) {
  if (want instanceof Error) {
    assert.ok(got instanceof Error && got instanceof want.constructor, code);
    assert.deepEqual([got.name, got.message, got.cause, { ...got }], [want.name, want.message, want.cause, { ...want }], code);
    assert.match(got.stack, new RegExp("^(Mine|" + want.constructor.name + ")?"), code);
    if (want.errors) assert.deepEqual([got.errors[0].message, got.errors[1]], ["one", 2], code);
    return;
  }
  if (want instanceof cordon.NDArray) { // NaN has other bits where R had NA
    assert.deepStrictEqual([[...got.data], got.data.constructor, got.shape], [[...want.data], want.data.constructor, want.shape], code);
    return;
  }
  assert.deepStrictEqual(got, want, code);
  assert.equal(Object.is(got, want) || typeof want === "object", true, code);
}

const tests = {
  async "values both ways"() {
    const s = await cordon.Session.open("python");
    const date = new Date("2024-02-29T12:00:00.001Z");
    for (const v of [2n ** 80n, new Uint8Array([0, 255]), date, new Set([1, 2]), new Map([[1, "a"]]), [1.5, null], { a: { b: [] } }])
      assert.deepEqual(await s.run("v", { context: { v } }), v);
    assert.equal(await s.run("float('nan')"), NaN);
    assert.equal(await s.run("float('-inf')"), -Infinity);
    assert.equal(await s.run("2**70"), 2n ** 70n);
    assert.equal(await s.run("2**53 + 1"), 2n ** 53n + 1n);
    assert.deepEqual(await s.run("[-2**63, 2**53 - 1, '9007199254740993']"), [-(2n ** 63n), 2 ** 53 - 1, "9007199254740993"]);
    for (const [v, text] of [[1e20, "1e+20"], [-0, "-0.0"], [7n, "7"], [new Date(NaN), "None"], [new Proxy({ a: 1 }, {}), "{'a': 1}"]])
      assert.equal(await s.run("repr(v)", { context: { v } }), text);
    const small = await s.run("a + 1", { context: { a: new cordon.NDArray(Uint8Array.from([1, 2]), [2, 1]) } });
    assert.deepEqual([small.data, small.shape], [Uint8Array.from([2, 3]), [2, 1]]);
    for (const name of ["toString", "__proto__", "hasOwnProperty"]) assert.deepEqual(cordon.decode({ $: name, v: 1 }), { $: name, v: 1 });
    assert.deepEqual(await s.run("{'$': 1}"), new Map([["$", 1]]));
    assert.deepEqual(await s.run("(1, 'a')"), [1, "a"]);
    const a = new cordon.NDArray(Float64Array.from([1, 2, 3, 4]), [2, 2]);
    const back = await s.run("a.T.copy()", { context: { a } });
    assert.deepEqual([...back.data], [1, 3, 2, 4]);
    assert.deepEqual(await s.run("import pandas as pd; pd.DataFrame({'x': [1, 2], 'y': ['a', None]})"), { x: [1, 2], y: ["a", null] });
    await assert.rejects(async () => { const x = []; x.push(x); await s.run("1", { context: { x } }); }, /contains itself/);
    await s.close();
  },
  async "values of JavaScript"() {
    const seen = [];
    const s = await cordon.Session.open({ guest: "node", tools: [cordon.tool({ name: "echo", args: { v: null } }, ({ v }) => { seen.push(v); return v; })] });
    for (const code of PROBES) {
      const want = eval(`(${code})`);
      same(await s.run(`(${code})`), want, code);
      await s.run(`await echo(${code}); null`);
      same(seen.at(-1), want, `through a tool: ${code}`);
      const inside = await s.run("[require('util').inspect(x), Object.prototype.toString.call(x)]", { context: { x: want } });
      const isBuffer = want instanceof Uint8Array && !(want instanceof Uint8ClampedArray);
      if (!isBuffer && !(want instanceof Error)) assert.deepEqual(inside, [inspect(want), Object.prototype.toString.call(want)], code);
    }
    await s.close();
  },
  async "table of values"() {
    const guests = {};
    const bad = [];
    for (const row of JSON.parse(readFileSync(join(here, "table.json"), "utf8")).values) {
      guests[row.guest] ??= await cordon.Session.open(row.guest);
      const want = eval(`(${row.node})`);
      const got = await guests[row.guest].execute(row.code);
      const value = got.value instanceof cordon.Handle ? String(got.value) : got.value ?? null;
      try {
        same(value, want, row.name);
        assert.deepEqual([value?.index, value?.name], [row.name === "MultiIndex" ? value.index : want?.index, want?.name], row.name);
      } catch (e) {
        bad.push(`${row.guest} ${row.name}: ${inspect(value)}, want ${row.node}, ${got.error}`);
      }
    }
    for (const s of Object.values(guests)) await s.close();
    assert.deepEqual(bad, []);
  },
  async "objects of R"() {
    const s = await cordon.Session.open("r");
    assert.deepEqual(await s.run("table(c('a', 'b', 'a'))"), { a: 2, b: 1 });
    assert.equal((await s.run("lm(mpg ~ wt, mtcars)")).call, "lm(formula = mpg ~ wt, data = mtcars)");
    assert.equal(await s.run("y ~ x"), "y ~ x");
    const f = await s.run("function(x) x + 1");
    assert.ok(f instanceof cordon.Handle);
    assert.deepEqual([String(f), inspect(f), f.type], ["function(x) x + 1", "function(x) x + 1", "function"]);
    assert.equal(await s.run("f(1)", { context: { f } }), 2);
    assert.deepEqual(await s.run("setClass('P', representation(x = 'numeric')); new('P', x = 1)"), { x: 1 });
    await s.close();
  },
  async "a form that is none stays what it is"() {
    for (const v of [{ $: "vec" }, { $: "frame", names: 1 }, { $: "array", dtype: "int32", shape: [1], v: "AA==" }, { $: "int", v: "x" }, { $: "attr", v: { $: "array", dimnames: [[1]] } },
      { $: "record" }, { $: "series", v: 5, index: [] }, { $: "error", fields: 5, class: "x" }, { $: "s4" }, { $: "map", v: [1] }, { $: "factor", v: [1] }])
      assert.deepEqual(cordon.decode(v), v);
    const odd = cordon.decode({ $: "error", class: "__proto__", message: "m", stack: "s", fields: [["__proto__", { polluted: 1 }]] });
    assert.ok(odd instanceof Error && {}.polluted === undefined && Object.getPrototypeOf(odd) === Error.prototype);
    assert.deepEqual(Object.keys(cordon.decode({ $: "record", class: "x", names: ["__proto__"], v: [1] })), ["__proto__"]);
  },
  async "errors carry the result"() {
    const s = await cordon.Session.open("python");
    await assert.rejects(s.run("print('before'); 1 / 0"), (e) => e instanceof cordon.ExecutionError && e.result.stdout === "before\n");
    await s.close();
    await assert.rejects(s.run("1"), /Session is not running/);
  },
  async "cancel and abort"() {
    const s = await cordon.Session.open("python");
    const code = "import time; print(1, flush=True); time.sleep(60)";
    let p, up = new Promise((r) => (p = s.execute(code, { onStdout: r })));
    await up;
    assert.equal(await s.cancel(), true);
    assert.equal((await p).errorKind, "cancelled");
    const control = new AbortController();
    assert.equal((await s.execute(code, { signal: control.signal, onStdout: () => control.abort() })).errorKind, "cancelled");
    assert.equal(await s.run("1"), 1);
    await s.close();
  },
  async "many sessions, async tools, other requests go on"() {
    let release;
    const gate = new Promise((r) => (release = r));
    const s = await cordon.Session.open({ tools: { slow: () => gate } });
    const other = await cordon.Session.open("python");
    const p = s.run("slow()");
    assert.equal(await other.run("1 + 1"), 2);
    release("late");
    assert.equal(await p, "late");
    const many = await Promise.all(Array.from({ length: 100 }, () => cordon.Session.open("sh")));
    const out = await Promise.all(many.map((m, i) => m.execute(`echo ${i}`)));
    assert.deepEqual(out.map((r) => r.stdout), many.map((_, i) => `${i}\n`));
    await Promise.all([s, other, ...many].map((m) => m.close()));
  },
  async "verbose"() { // LOG-01
    const lines = [];
    const s = await cordon.Session.open({ guest: "python", verbose: (line) => lines.push(line), tools: { add: { args: { a: "number", b: "number" }, fn: ({ a, b }) => a + b } } });
    assert.equal(await s.run("add(2, 3)"), 5);
    await s.close();
    assert.deepEqual(lines.map((x) => x.split(" ")[2]),
      ["session_start", "execute_start", "tool_call", "tool_result", "execute_complete", "session_close"], lines.join("\n"));
    assert.ok(lines.every((x) => x.startsWith(`[cordon] ${s.id} `)), lines.join("\n"));
  },
  async "a list of commands holds for extensions too"() {
    const secret = { name: "secret", command: () => "told\n" };
    for (const [toolAllowlist, want] of [[["echo"], "no\n"], [["echo", "secret"], "told\n"]]) {
      const b = await cordon.Sandbox.create({ security: { toolAllowlist }, extensions: [secret] });
      const r = await b.run("secret 2> /dev/null || echo no");
      assert.equal(r.stdout, want);
      assert.equal((await b.run("/run/cordon/bin/secret 2> /dev/null || echo no")).stdout, want);
      await b.destroy();
    }
  },
  async "a sandbox's mounts, history and sleep"() {
    const b = await cordon.Sandbox.create({ extensions: [{ name: "hi", usage: "hi NAME", examples: ["hi anna"], command: ({ args }) => `hi ${args}\n` }] });
    await b.writeFile("/home/user/f", "kept");
    await b.mount("/mnt/a", { "x/y": "mounted" });
    assert.equal((await b.run("cat /mnt/a/x/y f; hi bert; extensions info hi | grep -c anna")).stdout, "mountedkepthi bert\n1\n");
    await b.offload();
    await assert.rejects(b.run("ls"), /offloaded/);
    await b.rehydrate();
    assert.equal((await b.run("cat f /mnt/a/x/y")).stdout, "keptmounted");
    assert.deepEqual(b.getHistory().map((h) => h.command.split(" ")[0]), ["cat", "cat"]);
    b.clearHistory();
    assert.deepEqual(b.getHistory(), []);
    await b.destroy();
    await assert.rejects(b.run("ls"), /Sandbox has been destroyed/);
  },
  async "approval and audit"() {
    const asked = [], events = [];
    const s = await cordon.Session.open({
      tools: { pay: { approval: true, args: { amount: "integer" }, fn: ({ amount }) => `paid ${amount}` } },
      onApproval: (a) => { asked.push(a.what); return asked.length === 1 ? true : asked.length === 2 ? { value: "free" } : "too much"; },
      onAudit: (e) => events.push(e.event),
    });
    assert.equal(await s.run("pay(5)"), "paid 5");
    assert.equal(await s.run("pay(5)"), "free");
    await assert.rejects(s.run("pay(5)"), /too much/);
    await s.close();
    assert.deepEqual(asked, ["pay", "pay", "pay"]);
    assert.ok(events.includes("execute_complete") && events.at(-1) === "session_close", events.join());
  },
  async "pool"() {
    const p = await cordon.Pool.open({ size: 2, tools: [TOOLS.add] });
    assert.deepEqual(await Promise.all([p.run("add(1, 1)"), p.run("add(2, 2)")]), [2, 4]);
    const busy = [1, 2].map(() => p.execute("import time; time.sleep(1)", { waitMs: 5000 }));
    assert.ok(await until(async () => (await p.status()).busy === 2, 30000));
    await assert.rejects(p.run("1"), /All sessions are busy/);
    assert.equal(await p.run("7", { waitMs: 10000 }), 7);
    await Promise.all(busy);
    await p.close();
    assert.deepEqual(await p.status(), { total: 0, busy: 0, idle: 0, dead: 0 });
  },
  async "sandbox"() {
    const sb = await cordon.Sandbox.create({
      mounts: [{ path: "/mnt/x", files: { "a/b.txt": "mounted" } }],
      extensions: [{ name: "upper", description: "Shouts.", command: ({ stdin }) => stdin.toUpperCase() }],
    });
    assert.equal((await sb.run("cat /mnt/x/a/b.txt | upper")).stdout, "MOUNTED");
    const r = await sb.run("while true; do :; done", { timeoutMs: 300 });
    assert.equal(r.exitCode, 124);
    assert.equal(r.errorClass, "TIMEOUT");
    await sb.writeFile("/home/user/f", "v1");
    const id = await sb.snapshot();
    await sb.writeFile("/home/user/f", "v2");
    const child = await sb.fork();
    await sb.restore(id);
    assert.equal((await sb.run("cat f")).stdout + (await child.run("cat f")).stdout, "v1v2");
    await sb.setEnv("E", "x");
    assert.equal((await sb.run("printenv E")).stdout, "x\n");
    assert.deepEqual((await sb.readDir("/home/user")).map((e) => [e.name, e.type]), [["f", "file"]]);
    const other = await cordon.Sandbox.create();
    await other.importState(await sb.exportState());
    assert.equal(Buffer.from(await other.readFile("/home/user/f")).toString(), "v1");
    await sb.destroy();
    await sb.destroy();
    await assert.rejects(sb.run("ls"), /Sandbox has been destroyed/);
    await Promise.all([child.destroy(), other.destroy()]);
  },
  async "only true approves"() {
    const tools = [cordon.tool({ name: "pay", approval: true, args: { a: "number" } }, ({ a }) => a)];
    for (const [verdict, good] of [[true, true], [1, false], [{ allow: false }, false], [{}, false], ["", false], [null, false], [[], false]]) {
      const s = await cordon.Session.open({ tools, onApproval: () => verdict });
      const r = await s.execute("pay(1)");
      assert.equal(r.success, good, JSON.stringify(verdict));
      if (!good) assert.match(r.error, /Tool 'pay' was denied/);
      await s.close();
    }
    for (const [onApproval, good] of [[undefined, false], [async () => true, true]]) {
      const p = await cordon.Pool.open({ size: 1, tools, onApproval });
      assert.equal((await p.execute("pay(1)")).success, good);
      const s = await p.acquire(30000);
      assert.equal((await s.execute("pay(1)")).success, good);
      await s.close();
      await p.close();
    }
  },
  async "misspelt options and odd numbers are refused"() {
    await assert.rejects(cordon.Session.open({ gest: "python" }), /no option 'gest'/);
    await assert.rejects(cordon.Pool.open({ sizes: 2 }), /no option 'sizes'/);
    await assert.rejects(cordon.Sandbox.create({ timeoutMS: 1 }), /no option 'timeoutMS'/);
    await assert.rejects(cordon.Sandbox.create({ security: { toolAllowList: [] } }), /no option 'toolAllowList'/);
    await assert.rejects(cordon.Sandbox.create({ network: { mode: "full" } }), /network.mode 'full' is not here/);
    await assert.rejects(cordon.Sandbox.create({ extensions: [{ name: "none" }] }), /has no command and no pythonPackage/);
    const s = await cordon.Session.open();
    await assert.rejects(s.execute("1", { timeout: 5 }), /no option 'timeout'/);
    for (const bad of [0, -1, NaN, "5", null]) await assert.rejects(s.execute("1", { timeoutMs: bad }), /timeoutMs must be a positive number/);
    assert.equal(await s.run("1", { timeoutMs: 1e300 }), 1);
    await assert.rejects(cordon.Session.open({ policy: { memory_bytes: 2 ** 65 } }), /number out of range/); // it has no id, and hangs nobody
    await s.close();
  },
  async "codepod's limits, mounts and callbacks"() {
    const events = [], asked = [];
    const sb = await cordon.Sandbox.create({
      pythonPath: ["/home/user/lib"], mounts: [{ path: "/home/user/w", files: { a: "1\n" }, writable: true }, { path: "/mnt/r", files: { b: "2\n" } }],
      security: { limits: { stdoutBytes: 20, commandBytes: 200 }, onAuditEvent: (e) => events.push(e.type), hardKill: true },
      network: { allowedHosts: ["a.test"], onRequest: (r) => { asked.push(r); return false; } },
    });
    assert.equal((await sb.run("echo 3 >> w/a; cat w/a /mnt/r/b")).stdout, "1\n3\n2\n");
    assert.notEqual((await sb.run("echo 3 >> /mnt/r/b")).exitCode, 0);
    let r = await sb.run("yes hello | head -100"); // LIM-13
    assert.ok(r.stdout.length <= 20 && r.truncated.stdout);
    r = await sb.run("echo " + "x".repeat(200)); // LIM-11
    assert.deepEqual([r.exitCode, r.stderr, r.errorClass, r.executionTimeMs], [1, "command too large\n", "LIMIT_EXCEEDED", 0]);
    assert.equal(await sb.getEnv("PYTHONPATH"), "/home/user/lib:/usr/lib/python");
    await sb.run("curl -sS -X POST -d hi http://a.test/p"); // NET-10
    assert.deepEqual([asked[0].url, asked[0].method, asked[0].headers["Content-Length"]], ["http://a.test/p", "POST", "2"]);
    await sb.setEnv("X", "original");
    const first = await sb.snapshot();
    await sb.setEnv("X", "changed");
    await sb.restore(first); // SNP-01
    assert.equal(await sb.getEnv("X"), "original");
    await sb.destroy();
    assert.ok(events[0] === "sandbox.create" && events.includes("limit.exceeded") && events.at(-1) === "sandbox.destroy", String(events));
  },
  async "states of any size"() {
    const data = randomBytes(40 << 20);
    const a = await cordon.Session.open({ guest: "sh", policy: { file_bytes: 64 << 20 } });
    const b = await cordon.Session.open({ guest: "sh", policy: { file_bytes: 64 << 20 } });
    await a.files.write("big", data);
    await b.import(await a.export());
    assert.ok(Buffer.from(await b.files.read("big")).equals(data));
    await a.close();
    await b.close();
  },
  async "AI SDK's tool form"() {
    const s = await cordon.Session.open("python");
    const t = codeTool(s);
    assert.deepEqual(t.inputSchema.required, ["code"]);
    assert.equal((await t.execute({ code: "6 * 7" })).result, "42");
    const bad = await t.execute({ code: "1 / 0" });
    assert.ok(!bad.success && bad.error.includes("division"));
    await s.close();
  },
  async "server death is told"() {
    const connection = new cordon.Connection();
    const s = await cordon.Session.open({ connection });
    const { pid, assurance } = await s.describe();
    assert.equal(assurance.no_new_privs, true);
    const p = s.run("import time; print(1, flush=True); time.sleep(60)", { onStdout: () => process.kill(connection.pid, "SIGKILL") });
    await assert.rejects(p, cordon.ConnectionLost);
    assert.ok(await until(() => !alive(pid)), "the guest lives on");
    await assert.rejects(s.run("1"), cordon.ConnectionLost);
  },
  async "client death ends the guests"() {
    const child = spawn(process.execPath, ["--input-type=module", "-e",
      `import { Session } from ${JSON.stringify(join(client, "index.js"))};
       const s = await Session.open("python"); console.log((await s.describe()).pid); await s.run("while True: pass");`], { stdio: ["ignore", "pipe", "inherit"] });
    const pid = Number(await new Promise((r) => child.stdout.once("data", (d) => r(d.toString()))));
    assert.ok(alive(pid));
    child.kill("SIGKILL");
    assert.ok(await until(() => !alive(pid)), "the guest lives on");
  },
  async "a program that forgets to close ends, and so does its session"() {
    const r = await run(process.execPath, ["--input-type=module", "-e",
      `import { Session } from ${JSON.stringify(join(client, "index.js"))}; const s = await Session.open("python"); console.log((await s.describe()).pid, await s.run("1"));`], { timeout: 30000 });
    const pid = Number(r.stdout.split(" ")[0]);
    assert.ok(await until(() => !alive(pid)));
  },
  async "a missing program is told"() {
    const connection = new cordon.Connection({ program: "/nonexistent/cordon" });
    await assert.rejects(cordon.Session.open({ connection }), /CORDON/);
  },
  async "README"() {
    const folder = mkdtempSync(join(tmpdir(), "cordon-node-"));
    try {
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(client, join(folder, "node_modules/cordon"));
      writeFileSync(join(folder, "readme.mjs"), readFileSync(join(client, "README.md"), "utf8").match(/```js\n([\s\S]*?)```/)[1]);
      const r = await run(process.execPath, [join(folder, "readme.mjs")], { timeout: 60000 });
      assert.equal(r.stdout, "42\n5\ntimeout false\n2\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  async "several languages in one sandbox"() {
    const audit = [];
    const sb = await cordon.Sandbox.create({ languages: ["python", "sh"], security: { onAuditEvent: (e) => audit.push(e) } });
    const r = await sb.run("x = 20; open('/home/user/f', 'w').write('kept')", { language: "python" });
    assert.ok(r.success && r.startMs > 0);
    assert.equal((await sb.run("x", { language: "python" })).value, 20);
    assert.equal((await sb.run("x", { context: "other" })).errorKind, "exception");
    assert.equal((await sb.run("y + 1", { context: "other", variables: { y: 1 } })).value, 2);
    assert.equal((await sb.run("cat f", { language: "sh" })).stdout, "kept");
    assert.equal((await sb.commands.run("cat f; echo $A; pwd", { cwd: "/home/user", env: { A: "a" } })).stdout, "kepta\n/home/user\n");
    assert.equal(await sb.files.readText("f"), "kept");
    assert.ok(audit.some((e) => e.type === "command.start" && e.command === "y + 1"));
    assert.ok(audit.every((e) => e.sessionId === sb.sessionId && e.timestamp > 1e12));
    const held = sb.run("import os, time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n'went'", { context: "held" });
    assert.equal((await sb.run("1", { context: "other" })).value, 1); // meanwhile
    await sb.files.write("/tmp/go", "");
    assert.equal((await held).value, "went");
    await assert.rejects(sb.run("1", { language: "r" }), /without 'r'/);
    await sb.destroy();
  },
  async "the context of a session"() {
    const add = { name: "add", args: { a: "number", b: "number" }, fn: ({ a, b }) => a + b };
    const s = await cordon.Session.open({ guest: "python", languages: ["python", "sh"], tools: [add] });
    const c = await s.context("python", "c");
    assert.equal(await s.context("python", "c"), c);
    assert.equal(await c.context("python"), s);
    assert.equal(await c.run("add(a=1, b=2)"), 3);
    await c.run("x = 1");
    await c.close();
    await assert.rejects(c.run("1"), /not running/);
    assert.equal(await (await s.context("python", "c")).run("'x' in globals()"), false);
    await s.close();
  },
  async "commands on a terminal"() {
    const sb = await cordon.Sandbox.create({ languages: ["sh"] });
    assert.equal((await sb.commands.run("tty; stty size", { pty: { rows: 33, columns: 99 } })).stdout, "/dev/pts/0\r\n33 99\r\n");
    const p = await sb.commands.run("read -r l; stty size; echo got $l", { background: true, pty: true });
    await p.resize(41, 123);
    await p.write("a\n");
    assert.equal((await p.wait()).stdout, "a\r\n41 123\r\ngot a\r\n");
    const q = await sb.commands.run("trap 'exit 3' INT; echo ready; sleep 1000 & wait", { background: true, pty: true });
    while (!Buffer.from(await q.read()).toString().includes("ready")) await sleep(10);
    await q.signal("INT");
    assert.equal((await q.wait()).exitCode, 3);
    await sb.destroy();
  },
  async "commands in the background"() {
    const sb = await cordon.Sandbox.create({ languages: ["sh"] });
    const p = await sb.commands.run("while read -r l; do echo got $l; done; exit 4", { background: true });
    await p.write("a\n");
    while (Buffer.from(await p.read()).toString() !== "got a\n") await sleep(10);
    assert.ok(await p.isRunning());
    assert.deepEqual((await sb.commands.list()).map((x) => x.process), [p.id]);
    const q = await sb.commands.run("wc -c", { background: true });
    await q.write("b".repeat(200000), { eof: true });
    assert.equal((await q.wait()).stdout.trim(), "200000");
    await sb.commands.connect(p.id).closeStdin();
    const r = await p.wait();
    assert.deepEqual([r.exitCode, r.stdout], [4, "got a\n"]);
    for (const h of [p, sb.commands.connect(p.id), p]) { // all of it stays readable
      assert.deepEqual([(await h.wait()).stdout, await h.exitCode(), await h.isRunning(), Buffer.from(await h.read()).toString()],
        ["got a\n", 4, false, "got a\n"]);
      await h.kill();
    }
    await assert.rejects(sb.commands.connect(9999).read(), /no process 9999/);
    const s = await sb.commands.run("sleep 1000", { background: true });
    await assert.rejects(s.wait(0), /still runs/);
    await s.kill();
    assert.deepEqual([(await s.wait()).errorKind, await s.exitCode(), (await s.wait()).stderr], ["cancelled", 137, ""]);
    await sb.destroy();
  },
  async "code without a language, and refusals of commands"() {
    const sb = await cordon.Sandbox.create({ languages: ["Python", "node", "bash"] });
    assert.equal((await sb.run("x = 3\nx")).value, 3);
    assert.equal((await sb.run("x + z", { variables: { z: 2 } })).value, 5);
    assert.equal((await sb.run("1 + z", { variables: { z: 2 }, language: "JavaScript" })).value, 3);
    await sb.writeFile("s.sh", "#!/bin/sh\necho no\n");
    const r = await sb.commands.run("chmod +x s.sh; mkdir sub; ./s.sh; exit 1", {});
    assert.ok(r.exitCode === 1 && r.denials.some((d) => d.remedy?.includes("workspace_exec")), JSON.stringify(r));
    assert.equal((await sb.commands.run("pwd", { cwd: "sub" })).stdout, "/home/user/sub\n");
    await sb.destroy();
    const one = await cordon.Sandbox.create({ languages: "sh" });
    assert.equal((await one.run("echo $z", { variables: { z: 2 } })).stdout, "2\n");
    await one.destroy();
  },
  async "exposed ports"() {
    const sb = await cordon.Sandbox.create({ languages: ["sh"], policy: { expose: [8000] } });
    const p = await sb.commands.run("exec python3 -uc 'import socket\ns = socket.create_server((\"127.0.0.1\", 8000))\nprint(\"ready\")\n" +
      "while True:\n  c = s.accept()[0]; c.sendall(c.recv(100).upper()); c.close()'", { background: true });
    while (Buffer.from(await p.read()).toString() !== "ready\n") await sleep(10);
    const ask = (to, word) => new Promise((ok, no) => {
      let text = "";
      connect(to, function () { this.write(word); }).on("data", (d) => { text += d; }).on("end", () => ok(text)).on("error", no);
    });
    const path = await sb.expose(8000);
    assert.equal(await ask({ path }, "one"), "ONE");
    assert.deepEqual((await sb.exposed()).map((x) => [x.port, x.address]), [[8000, path]]);
    await sb.unexpose(8000);
    assert.deepEqual(await sb.exposed(), []);
    const address = await sb.expose(8000, { hostPort: 0 });
    assert.equal(await ask({ port: Number(address.split(":")[1]), host: "127.0.0.1" }, "two"), "TWO");
    await assert.rejects(sb.expose(8001), /expose\+=8001/);
    await sb.destroy();
  },
  async "types name everything"() {
    const types = readFileSync(join(client, "index.d.ts"), "utf8");
    for (const name of Object.keys(cordon)) assert.ok(new RegExp(`export (class|function|const) ${name}\\b`).test(types), name);
  },
  async "the table can fail"() {
    await assert.rejects(runCase({ guest: "python", steps: [{ do: "execute", code: "1", expect: { value: 2 } }] }));
    await assert.rejects(runCase({ guest: "python", steps: [{ do: "execute", code: "1", fails: "state" }] }));
  },
};

// ---- large values as binary columns (docs/values.md)

const roomy = { memory_bytes: 3 * 2 ** 30, timeout_ms: 240000 };

for (const guest of ["node", "python", "r"]) {
  tests[`large values: ${guest}`] = async () => {
    const s = await cordon.Session.open({ guest, policy: roomy });
    const list = Array.from({ length: 20000 }, (_, i) => i);
    const v = { list, wide: list.map((i) => i * 1e10), texts: list.map((i) => "\u20ac" + i), halves: list.map((i) => i + 0.5),
      bytes: new Uint8Array(100000).fill(3), deep: [{ x: list.map(() => "") }], few: [1, "x"] };
    assert.deepEqual(await s.run("v", { context: { v } }), v);
    const numbers = new Float64Array(1e6).map((_, i) => i / 3);
    const back = await s.run("x", { context: { x: numbers } });
    assert.deepEqual(guest === "r" ? Float64Array.from(back) : back.data ?? back, numbers);
    assert.equal(await s.run("1 + 1"), 2);
    const shaped = new cordon.NDArray(new Int32Array(30000).map((_, i) => i), [100, 300]);
    assert.deepEqual(await s.run("a", { context: { a: shaped } }), shaped);
    await s.close();
  };
}

tests["large data frames"] = async () => {
  const s = await cordon.Session.open({ guest: "r", policy: roomy });
  const f = await s.run("data.frame(a = (1:20000) / 2, s = paste0('x', 1:20000), f = factor(rep(c('u', NA), 10000)), b = rep(c(TRUE, NA), 10000), d = as.Date('2024-01-01') + 0:19999)");
  assert.deepEqual([f.a[2], f.s[19999], f.f[0], f.f[1], f.b[0], f.b[1], f.d[59]], [1.5, "x20000", "u", null, true, null, "2024-02-29"]);
  await s.close();
};

tests["200 MB go in and coefficients come out"] = async () => {
  const s = await cordon.Session.open({ guest: "python", policy: { ...roomy, cpu_seconds: 240 } });
  const columns = Object.fromEntries(Array.from({ length: 10 }, (_, k) => ["x" + k, new Float64Array(2500000)]));
  let seed = 1;
  for (const column of Object.values(columns)) for (let i = 0; i < column.length; i++) column[i] = (seed = seed * 48271 % 2147483647) / 2147483647;
  for (let i = 0; i < 2500000; i++) columns.x0[i] = 3 + 2 * columns.x1[i] - columns.x2[i];
  const table = await s.run("import numpy as np, pandas as pd\ndf = pd.DataFrame({k: v for k, v in columns.items()})\nx = np.c_[np.ones(len(df)), df.iloc[:, 1:].to_numpy()]\n" +
    "pd.DataFrame({'term': ['(Intercept)', *df.columns[1:]], 'estimate': np.linalg.solve(x.T @ x, x.T @ df.x0.to_numpy())})", { context: { columns }, timeoutMs: 240000 });
  assert.deepEqual(table.term.slice(0, 2), ["(Intercept)", "x1"]);
  table.estimate.forEach((b, i) => assert.ok(Math.abs(b - ([3, 2, -1][i] ?? 0)) < 1e-6, `${i}: ${b}`));
  await s.close();
};

tests["the limit of large values is named"] = async () => {
  const s = await cordon.Session.open({ guest: "node", policy: { value_bytes: 1000000 } });
  await assert.rejects(s.run("1", { context: { x: new Float64Array(200000) } }),
    (e) => e instanceof cordon.RpcError && e.kind === "limit" && /1600000 bytes, max 1000000.*value_bytes/.test(e.message));
  const r = await s.execute("new Float64Array(200000)");
  assert.ok(r.value === null && r.warnings[0].includes("value_bytes"), String(r.warnings));
  assert.equal((await s.run("new Float64Array(100000)")).length, 100000);
  await s.close();
};

/** Runs work with an address where nobody listens: what still succeeds has used the local program. */
async function withNobody(work) {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const server = `http://127.0.0.1:${listener.address().port}`, before = { CORDON_SERVER: process.env.CORDON_SERVER, CORDON_KEY: process.env.CORDON_KEY };
  listener.close();
  await once(listener, "close");
  for (const name of Object.keys(before)) delete process.env[name];
  try {
    await work(server);
  } finally {
    for (const [name, value] of Object.entries(before)) value === undefined ? delete process.env[name] : (process.env[name] = value);
  }
}

const KEY = "cordon_" + "0".repeat(48);
const checkout = async (sizes, options) => new cordon.SandboxPool(sizes, options).checkout();
const OPENERS = {
  "Session.open(options)": (o) => cordon.Session.open({ guest: "sh", ...o }),
  "Session.open(guest, options)": (o) => cordon.Session.open("sh", o),
  "Pool.open(options)": (o) => cordon.Pool.open({ guest: "sh", size: 1, ...o }),
  "Pool.open(guest, options)": (o) => cordon.Pool.open("sh", { size: 1, ...o }),
  "run": (o) => cordon.run("true", { guest: "sh", ...o }),
  "Sandbox.create": (o) => cordon.Sandbox.create(o),
  "SandboxPool": (o) => checkout({ minSize: 1 }, o),
  "Connection": (o) => new cordon.Connection(o).request("policy.show", {}),
};
const WITHOUT_OPTION = { policy: () => cordon.policy(), checkPolicy: () => cordon.checkPolicy({ policy: {} }), validate: () => cordon.validate("1") };

tests["a named server is used"] = () => withNobody(async (server) => {
  for (const [name, open] of Object.entries(OPENERS)) await assert.rejects(async () => open({ server, key: KEY }), cordon.ServerUnreachable, name);
  Object.assign(process.env, { CORDON_SERVER: server, CORDON_KEY: KEY });
  for (const [name, open] of Object.entries({ ...OPENERS, ...WITHOUT_OPTION })) await assert.rejects(async () => open(), cordon.ServerUnreachable, name);
});

tests["a server that would be ignored is refused"] = () => withNobody(async (server) => {
  const connection = new cordon.Connection();
  for (const [name, open] of Object.entries(OPENERS)) {
    await assert.rejects(async () => open({ key: KEY }), cordon.ConnectFailed, name);
    await assert.rejects(async () => open({ server: "" }), cordon.ConnectFailed, name);
    if (name !== "Connection") await assert.rejects(async () => open({ connection, server }), /excludes server/, name);
  }
  await connection.close();
  const lost = {
    "Session.open": () => cordon.Session.open({ guest: "sh" }, { server }), "Pool.open": () => cordon.Pool.open({ guest: "sh" }, { server }),
    "Sandbox.create": () => cordon.Sandbox.create({}, { server }), "Sandbox.create, a name": () => cordon.Sandbox.create("sh", { server }),
    "run": () => cordon.run("1", "python", { server }), "SandboxPool": () => checkout({ server }), "Connection": () => new cordon.Connection(server),
    "Connection, program": () => new cordon.Connection({ server, program: "cordon" }),
  };
  for (const [name, open] of Object.entries(lost)) await assert.rejects(async () => open(), TypeError, name);
});

tests["an import and an execution load no module that few need"] = async () => {
  const program = `import { Session, shutdown } from ${JSON.stringify(join(client, "index.js"))};
    const has = (name) => process.moduleLoadList.includes("NativeModule " + name), names = ["child_process", "crypto", "tls"];
    const after = [names.map(has)];
    const s = await Session.open("python");
    await s.run("1 + 1");
    after.push(names.map(has));
    await s.files.write("f", Buffer.alloc(5 << 20)); // in pieces, beside its name
    after.push(has("crypto"));
    await s.close();
    await shutdown();
    console.log(JSON.stringify(after));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program]);
  assert.deepEqual(JSON.parse(stdout), [[true, false, false], [true, false, false], true]);
};

const all = JSON.parse(readFileSync(join(here, "table.json"), "utf8")).cases.map((c) => ["table: " + c.name, () => runCase(c)]);
// Of the local program: there is nothing of them with a server, or the server refuses it (docs/serve.md).
const local = process.env.CORDON_SERVER ? ["server death is told", "exposed ports", "an import and an execution load no module that few need"] : [];
all.push(...Object.entries(tests).filter(([name]) => !local.includes(name)));
let n = 0, bad = 0;
for (const [name, fn] of all) {
  n++;
  let timer;
  try {
    await Promise.race([fn(), new Promise((_, no) => { timer = setTimeout(() => no(new Error("took longer than 90 s")), 90000); })]);
    console.log(`ok ${n} - ${name}`);
  } catch (e) {
    bad++;
    console.log(`not ok ${n} - ${name}`);
    console.log(String(e?.stack ?? e).split("\n").slice(0, 12).map((l) => "# " + l).join("\n"));
  } finally {
    clearTimeout(timer);
  }
}
console.log(`1..${n}`);
await cordon.shutdown();
process.exitCode = bad ? 1 : 0;

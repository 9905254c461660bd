// The Node client: the common table of behaviours, and what is specific to it. TAP.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
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
    exit_code: r.exitCode, restarted: r.restarted, tool_calls: r.toolCalls, truncated_stdout: r.truncated.stdout,
    streamed_stdout: streamed.stdout, streamed_stderr: streamed.stderr, assurance_wall: r.assurance?.wall };
  for (const [key, want] of Object.entries(step.expect ?? {})) {
    if (key === "error_has") assert.ok(r.error?.includes(want), `'${want}' is not in '${r.error}'`);
    else assert.deepEqual(got[key], want, key);
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
    assert.deepEqual(b.getHistory().map((h) => h.command.split(" ")[0]), ["cat", "ls", "cat"]);
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
    await assert.rejects(cordon.Sandbox.create({ network: { mode: "full" } }), /no option 'mode'/);
    await assert.rejects(cordon.Sandbox.create({ extensions: [{ name: "none" }] }), /has no command/);
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
      security: { limits: { stdoutBytes: 20, commandBytes: 200 }, onAuditEvent: (e) => events.push(e.event), hardKill: true },
      network: { allowedHosts: ["a.test"], onRequest: (r) => { asked.push(r); return false; } },
    });
    assert.equal((await sb.run("echo 3 >> w/a; cat w/a /mnt/r/b")).stdout, "1\n3\n2\n");
    assert.notEqual((await sb.run("echo 3 >> /mnt/r/b")).exitCode, 0);
    let r = await sb.run("yes hello | head -100"); // LIM-13
    assert.ok(r.stdout.length <= 20 && r.truncated.stdout);
    r = await sb.run("echo " + "x".repeat(200)); // LIM-11
    assert.deepEqual([r.exitCode, r.stderr, r.errorClass, r.executionTimeMs], [1, "command too large\n", "LIMIT_EXCEEDED", 0]);
    assert.equal((await sb.run("printenv PYTHONPATH")).stdout, "/home/user/lib\n");
    await sb.run("curl -sS -X POST -d hi http://a.test/p"); // NET-10
    assert.deepEqual([asked[0].url, asked[0].method, asked[0].headers["Content-Length"]], ["http://a.test/p", "POST", "2"]);
    await sb.setEnv("X", "original");
    const first = await sb.snapshot();
    await sb.setEnv("X", "changed");
    await sb.restore(first); // SNP-01
    assert.equal(sb.getEnv("X"), "original");
    await sb.destroy();
    assert.ok(events[0] === "session_start" && events.includes("limit.exceeded") && events.at(-1) === "session_close", String(events));
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
      assert.equal(r.stdout, "42\n5\ntimeout true\n2\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
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

const all = JSON.parse(readFileSync(join(here, "table.json"), "utf8")).cases.map((c) => ["table: " + c.name, () => runCase(c)]);
all.push(...Object.entries(tests));
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

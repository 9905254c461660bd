// tests/dropin/codepod/sandbox.mjs - codepod's sandbox.test.ts, worker-executor.test.ts and sandbox-pool.test.ts.
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const ENDLESS = "seq 1 999999999";

const timesOut = (limits, command, more = {}) => async ({ open, assert }) => {
  const r = await (await open({ security: { limits, ...more } })).run(command);
  assert.deepEqual([r.errorClass, r.exitCode], ["TIMEOUT", 124]);
};

/** The result of a command that is cancelled as soon as it has written something. */
async function cancelled(sb) {
  let began;
  const begin = new Promise((resolve) => (began = resolve));
  const run = sb.run(ENDLESS, { onStdout: began });
  await begin;
  await sb.cancel();
  return run;
}

async function audited(open, security, ...commands) {
  const events = [];
  const sb = await open({ security: { ...security, onAuditEvent: (e) => events.push(e) } });
  for (const c of commands) await sb.run(c);
  return { sb, events, types: () => events.map((e) => e.type) };
}

export default {
  async "create and run a simple command"({ open, assert }) {
    const r = await (await open({ wasmDir: "/none", adapter: {} })).run("echo hello");
    assert.deepEqual([r.exitCode, r.stdout], [0, "hello\n"]);
  },
  async "run a pipeline"({ open, assert }) {
    assert.equal((await (await open()).run("echo hello world | wc -c")).stdout.trim(), "12");
  },
  async "writeFile and readFile"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/test.txt", bytes("test content"));
    assert.equal(text(await sb.readFile("/tmp/test.txt")), "test content");
  },
  async "writeFile then cat via run"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/data.txt", bytes("hello from host"));
    assert.equal((await sb.run("cat /tmp/data.txt")).stdout, "hello from host");
  },
  async "file methods are synchronous"({ open, assert }) {
    const sb = await open();
    const r = sb.writeFile("/tmp/a", bytes("a"));
    await r;
    assert.equal(r, undefined);
  },
  async "mkdir and readDir"({ open, assert }) {
    const sb = await open();
    await sb.mkdir("/tmp/mydir");
    assert.ok((await sb.readDir("/tmp")).some((e) => e.name === "mydir" && e.type === "dir"));
  },
  async "stat returns file info"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/s.txt", bytes("abc"));
    const s = await sb.stat("/tmp/s.txt");
    assert.deepEqual([s.size, s.type, s.permissions, s.mtime instanceof Date], [3, "file", 0o644, true]);
  },
  async "rm removes a file"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/del.txt", bytes("x"));
    await sb.rm("/tmp/del.txt");
    await assert.rejects(sb.stat("/tmp/del.txt"), /ENOENT/);
  },
  async "setEnv and getEnv"({ open, assert }) {
    const sb = await open();
    await sb.setEnv("MY_VAR", "hello");
    assert.equal(await sb.getEnv("MY_VAR"), "hello");
    assert.equal((await sb.run("printenv MY_VAR")).stdout, "hello\n");
    await assert.rejects(sb.setEnv("1x", "y"), /Invalid environment variable name: '1x'/);
  },
  async "a variable that a command exports is in getEnv"({ open, assert }) {
    const sb = await open();
    await sb.run("export SAID=yes");
    assert.equal(await sb.getEnv("SAID"), "yes");
    await sb.setEnv("SAID", "host");
    await sb.run("export SAID=code; unset GONE");
    assert.equal((await sb.run("echo $SAID")).stdout, "code\n");
  },
  async "destroy prevents further use"({ open, assert }) {
    const sb = await open();
    await sb.destroy();
    await assert.rejects(sb.readFile("/tmp/x"), /Sandbox has been destroyed/);
    await sb.destroy();
  },
  "timeout returns exit code 124": timesOut({ timeoutMs: 100 }, ENDLESS),
  async "VFS size limit enforces ENOSPC"({ open, assert }) {
    const sb = await open({ fsLimitBytes: 1 << 20 });
    await sb.writeFile("/tmp/a.txt", new Uint8Array(700000));
    await assert.rejects(sb.writeFile("/tmp/b.txt", new Uint8Array(700000)), /ENOSPC: no space left on device \(limit: 1048576 bytes\)/);
    await sb.writeFile("/tmp/a.txt", new Uint8Array(800000)); // what is replaced does not count
  },
  async "discovers tools via scanTools"({ open, assert }) {
    assert.equal((await (await open()).run("uname")).stdout.trim(), "codepod");
  },
  async "snapshot captures VFS + env state"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/data.txt", bytes("v1"));
    await sb.setEnv("MY_VAR", "original");
    await sb.run("export FROM_COMMAND=one");
    const id = await sb.snapshot();
    await sb.writeFile("/tmp/data.txt", bytes("v2"));
    await sb.setEnv("MY_VAR", "changed");
    await sb.run("export FROM_COMMAND=two LATER=1");
    await sb.writeFile("/tmp/new.txt", bytes("new"));
    await sb.restore(id);
    assert.equal(text(await sb.readFile("/tmp/data.txt")), "v1");
    assert.equal(await sb.getEnv("MY_VAR"), "original");
    assert.equal((await sb.run("echo $FROM_COMMAND ${LATER-none}")).stdout, "one none\n");
    await assert.rejects(sb.stat("/tmp/new.txt"));
  },
  async "snapshots are reusable"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/f.txt", bytes("snap"));
    const id = await sb.snapshot();
    for (const other of ["changed1", "changed2"]) {
      await sb.writeFile("/tmp/f.txt", bytes(other));
      await sb.restore(id);
      assert.equal(text(await sb.readFile("/tmp/f.txt")), "snap");
    }
  },
  async "restore throws for invalid snapshot ID"({ open, assert }) {
    await assert.rejects((await open()).restore("nonexistent"), /no such snapshot: nonexistent/);
  },
  async "fork: creates an independent sandbox with COW VFS"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/shared.txt", bytes("original"));
    await sb.setEnv("FORKED", "yes");
    await sb.run("export EXPORTED=too; cd /tmp");
    const child = await sb.fork();
    try {
      assert.equal(text(await child.readFile("/tmp/shared.txt")), "original");
      assert.equal(await child.getEnv("FORKED"), "yes");
      assert.equal((await child.run("echo $EXPORTED; pwd")).stdout, "too\n/tmp\n");
      await child.writeFile("/tmp/shared.txt", bytes("child"));
      await child.writeFile("/tmp/child-only.txt", bytes("x"));
      assert.equal(text(await sb.readFile("/tmp/shared.txt")), "original");
      await assert.rejects(sb.stat("/tmp/child-only.txt"));
      assert.notEqual(child.sessionId, sb.sessionId);
    } finally {
      await child.destroy();
    }
  },
  async "fork: forked sandbox can run commands independently"({ open, assert }) {
    const child = await (await open()).fork();
    const r = await child.run("echo hello from fork");
    await child.destroy();
    assert.deepEqual([r.exitCode, r.stdout], [0, "hello from fork\n"]);
  },
  async "rejects command exceeding commandBytes limit"({ open, assert }) {
    const sb = await open({ security: { limits: { commandBytes: 50 } } });
    const r = await sb.run("echo " + "x".repeat(100));
    assert.deepEqual([r.exitCode, r.errorClass, r.stderr, r.executionTimeMs], [1, "LIMIT_EXCEEDED", "command too large\n", 0]);
    const good = await sb.run("echo hello");
    assert.deepEqual([good.exitCode, good.errorClass], [0, undefined]);
  },
  async "truncates stdout exceeding stdoutBytes limit"({ open, assert }) {
    const r = await (await open({ security: { limits: { stdoutBytes: 20 } } })).run("yes hello | head -100");
    assert.ok(r.truncated.stdout && r.stdout.length <= 70, JSON.stringify(r));
  },
  async "truncates stderr exceeding stderrBytes limit"({ open, assert }) {
    const r = await (await open({ security: { limits: { stderrBytes: 20 } } })).run("cat /no/1; cat /no/2; cat /no/3");
    assert.equal(r.truncated.stderr, true);
  },
  async "passes fileCount limit to VFS"({ open, assert }) {
    const sb = await open({ security: { limits: { fileCount: 64 } } });
    const fill = async () => {
      for (let i = 0; i < 80; i++) await sb.writeFile(`/tmp/fill-${i}.txt`, bytes("x"));
    };
    await assert.rejects(fill(), /ENOSPC: file count limit exceeded/);
  },
  "sets errorClass TIMEOUT on timeout": timesOut({ timeoutMs: 50 }, "while true; do :; done"),
  async "no truncation when output is within limits"({ open, assert }) {
    const r = await (await open({ security: { limits: { stdoutBytes: 1e6 } } })).run("echo hello");
    assert.equal(r.truncated, undefined);
  },
  async "socket shim: writes socket.py to VFS when network is configured"({ open }) {
    await (await open({ network: { allowedHosts: ["example.com"] } })).readFile("/usr/lib/python/socket.py");
  },
  async "socket shim: sets PYTHONPATH when network is configured"({ open, assert }) {
    assert.equal(await (await open({ network: { allowedHosts: ["example.com"] } })).getEnv("PYTHONPATH"), "/usr/lib/python");
  },
  async "socket shim: does not write socket.py when network is not configured"({ open, assert }) {
    await assert.rejects((await open()).readFile("/usr/lib/python/socket.py"), /ENOENT/);
  },
  "kills WASM that calls clock_time_get in a loop": timesOut({ timeoutMs: 300 }, 'python3 -c "import time\nwhile True: time.time()"'),
  "kills a pure CPU-bound Python loop via worker termination": timesOut({ timeoutMs: 500 }, 'python3 -c "while True: pass"', { hardKill: true }),
  "timeout kills long-running WASM via deadline in fdWrite": timesOut({ timeoutMs: 50 }, ENDLESS),
  "timeout kills chained commands via deadline in execCommand": timesOut({ timeoutMs: 50 }, `${ENDLESS} && ${ENDLESS}`),
  async "tool allowlist: blocks tools not in allowlist"({ open, assert }) {
    const r = await (await open({ security: { toolAllowlist: ["echo", "cat"] } })).run("grep hello /tmp/f.txt");
    assert.ok(r.exitCode === 126 && r.stderr.includes("not allowed"), JSON.stringify(r));
  },
  async "tool allowlist: allows tools in allowlist"({ open, assert }) {
    const sb = await open({ security: { toolAllowlist: ["echo", "cat"] } });
    assert.equal((await sb.run("echo hello | cat")).stdout, "hello\n");
  },
  async "tool allowlist: no allowlist means all tools allowed"({ open, assert }) {
    assert.equal((await (await open()).run("uname")).exitCode, 0);
  },
  async "accepts security options on create"({ open, assert }) {
    assert.equal((await (await open({ security: { limits: { stdoutBytes: 1024, stderrBytes: 1024 } } })).run("echo hello")).exitCode, 0);
  },
  "hard kill: timeout terminates execution via worker.terminate()": timesOut({ timeoutMs: 200 }, ENDLESS, { hardKill: true }),
  async "hard kill: cancel() immediately kills Worker execution"({ open, assert }) {
    const sb = await open({ security: { hardKill: true, limits: { stdoutBytes: 1 << 16 } } });
    const r = await cancelled(sb);
    assert.deepEqual([r.errorClass, r.exitCode], ["CANCELLED", 125]);
    assert.ok(r.stderr.endsWith("command cancelled\n"));
  },
  async "hard kill: next run after timeout works correctly"({ open, assert }) {
    const sb = await open({ security: { limits: { timeoutMs: 100 } } });
    assert.equal((await sb.run(ENDLESS)).errorClass, "TIMEOUT");
    assert.equal((await sb.run("echo recovered", { timeoutMs: 10000 })).stdout, "recovered\n");
  },
  async "hard kill: VFS is consistent after timeout kill"({ open, assert }) {
    const sb = await open({ security: { limits: { timeoutMs: 100 } } });
    await sb.writeFile("/tmp/pre.txt", bytes("before"));
    assert.equal((await sb.run(ENDLESS)).errorClass, "TIMEOUT");
    assert.equal(text(await sb.readFile("/tmp/pre.txt")), "before");
  },
  async "worker: next run after kill creates fresh Worker"({ open, assert }) {
    const sb = await open({ security: { limits: { stdoutBytes: 1 << 16 } } });
    await cancelled(sb);
    assert.equal((await sb.run("echo recovered")).stdout, "recovered\n");
  },
  async "streaming: callbacks get the output in order, and the result has it too"({ open, assert }) {
    const out = [], err = [];
    const r = await (await open()).run("echo a; echo b; echo c >&2", { onStdout: (t) => out.push(t), onStderr: (t) => err.push(t) });
    assert.deepEqual([out.join(""), err.join(""), r.stdout, r.stderr], ["a\nb\n", "c\n", "a\nb\n", "c\n"]);
  },
  async "audit: emits events for command lifecycle"({ open, assert }) {
    const { sb, types, events } = await audited(open, {}, "echo hello");
    await sb.destroy();
    assert.deepEqual(types(), ["sandbox.create", "command.start", "command.complete", "sandbox.destroy"]);
    assert.deepEqual([events[1].command, events[2].exitCode, typeof events[2].executionTimeMs], ["echo hello", 0, "number"]);
  },
  async "audit: emits timeout event"({ open, assert }) {
    const { events } = await audited(open, { limits: { timeoutMs: 100 } }, ENDLESS);
    assert.equal(events.find((e) => e.type === "command.timeout").command, ENDLESS);
  },
  async "audit: emits command.cancelled"({ open, assert }) {
    const { sb, types } = await audited(open, { limits: { stdoutBytes: 1 << 16 } });
    await cancelled(sb);
    assert.ok(types().includes("command.cancelled"), String(types()));
  },
  async "audit: audit events have sessionId and timestamp"({ open, assert }) {
    const { sb, events } = await audited(open, {}, "echo hello");
    await sb.mount("/mnt/x", { a: "b" });
    await sb.run("cat /mnt/x/a");
    assert.equal(events.filter((e) => e.type === "command.complete").length, 2);
    assert.ok(events.every((e) => e.sessionId === sb.sessionId && typeof e.timestamp === "number" && e.timestamp > 1.7e12));
  },
  async "audit: emits limit.exceeded event on output truncation"({ open, assert }) {
    const { events } = await audited(open, { limits: { stdoutBytes: 20, commandBytes: 60 } }, "yes hello | head -100", "echo " + "x".repeat(60));
    assert.deepEqual(events.filter((e) => e.type === "limit.exceeded").map((e) => e.subtype), ["stdout", "command"]);
  },
  async "audit: emits capability.denied on blocked tool"({ open, assert }) {
    const { events } = await audited(open, { toolAllowlist: ["echo"] }, "grep hello /tmp/f.txt 2>/dev/null");
    assert.match(events.find((e) => e.type === "capability.denied").reason, /grep/);
    const forged = await audited(open, {}, "echo 'x: tool not allowed by security policy' >&2");
    assert.ok(!forged.types().includes("capability.denied"));
  },
  async "history: getHistory and clearHistory"({ open, assert }) {
    const sb = await open();
    await sb.run("echo hello");
    await sb.run("echo world");
    assert.deepEqual(sb.getHistory().map((h) => [h.command, typeof h.index, typeof h.timestamp]),
      [["echo hello", "number", "number"], ["echo world", "number", "number"]]);
    sb.clearHistory();
    assert.deepEqual(sb.getHistory(), []);
  },
  async "history: history list and history clear in the shell"({ open, assert }) {
    const sb = await open();
    await sb.run("echo hello");
    assert.match((await sb.run("history list")).stdout, /1\s+echo hello\n\s+2\s+history list/);
    assert.doesNotMatch((await sb.run("history clear; history list")).stdout, /hello/);
  },
  async "memory: a command beyond memoryBytes ends with exit code 1"({ open, assert }) {
    const sb = await open({ security: { limits: { memoryBytes: 96 << 20 } } });
    const r = await sb.run(`python3 -c "x = bytearray(1 << 30)"`);
    assert.deepEqual([r.exitCode, r.stderr, r.errorClass], [1, "memory limit exceeded\n", undefined]);
  },
  async "exports: VFS, ProcessManager, ShellInstance, PythonRunner, NetworkGateway, WorkerExecutor and the like"({ cordon, assert }) {
    const names = ["VFS", "ProcessManager", "ShellInstance", "PythonRunner", "NetworkGateway", "NetworkBridge", "WorkerExecutor", "DevProvider",
      "ProcProvider", "PackageManager", "IdbBackend", "PersistenceManager", "CommandHistory", "ExtensionRegistry", "NodeAdapter"];
    assert.deepEqual(names.filter((n) => !(n in cordon)), []);
  },
  async "exports: Sandbox, SandboxPool, HostMount, MemoryBackend, FsBackend"({ cordon, assert }) {
    for (const n of ["Sandbox", "SandboxPool", "HostMount", "MemoryBackend", "FsBackend"]) assert.equal(typeof cordon[n], "function", n);
  },
  async "sessionId is a UUID"({ open, assert }) {
    assert.match((await open()).sessionId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  },
  async "pool: reports initial stats as all zeros before init"({ cordon, guest, assert }) {
    assert.deepEqual(new cordon.SandboxPool({ minSize: 2, maxSize: 5 }, { guest }).stats, { idle: 0, creating: 0, checkedOut: 0 });
  },
  async "pool: fills to minSize after init()"({ cordon, guest, assert }) {
    const pool = new cordon.SandboxPool({ minSize: 2, maxSize: 5 }, { guest });
    await pool.init();
    assert.deepEqual(pool.stats, { idle: 2, creating: 0, checkedOut: 0 });
    await pool.drain();
    assert.equal(pool.stats.idle, 0);
  },
  async "pool: checkout, overrides and release"({ cordon, guest, assert }) {
    const pool = new cordon.SandboxPool({ minSize: 1, maxSize: 1 }, { guest });
    await pool.init();
    const sb = await pool.checkout({ files: { "/tmp/f": "file" }, env: { E: "env" }, mounts: [{ path: "/mnt/m", files: { x: "mount" } }] });
    assert.equal((await sb.run("cat /tmp/f /mnt/m/x; echo $E")).stdout, "filemountenv\n");
    assert.deepEqual(pool.stats, { idle: 0, creating: 0, checkedOut: 1 });
    await assert.rejects(pool.checkout(), /the pool is full: 1/);
    await pool.release(sb);
    await assert.rejects(sb.run("true"), /destroyed/);
    const own = await pool.checkout({ extensions: [{ name: "hi", command: () => "hi\n" }] });
    assert.equal((await own.run("hi")).stdout, "hi\n");
    await pool.release(own);
    await pool.drain();
  },
};

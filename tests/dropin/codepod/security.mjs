// tests/dropin/codepod/security.mjs - codepod's security.test.ts.
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const ENDLESS = "seq 1 999999999";
const greet = { name: "greet", description: "says hello", command: async () => ({ stdout: "hello\n", exitCode: 0 }) };

const refusedBy = (command) => async ({ open, assert }) => {
  const r = await (await open()).run(command);
  assert.notEqual(r.exitCode, 0);
  assert.ok(r.stderr.includes("not configured"), r.stderr);
};

export default {
  async "AC1: infinite loop is killed by timeout"({ open, assert }) {
    const r = await (await open({ security: { limits: { timeoutMs: 100 } } })).run(ENDLESS);
    assert.deepEqual([r.errorClass, r.exitCode], ["TIMEOUT", 124]);
  },
  async "AC1: chained infinite commands killed by timeout"({ open, assert }) {
    const r = await (await open({ security: { limits: { timeoutMs: 100 } } })).run(`${ENDLESS} && ${ENDLESS}`);
    assert.deepEqual([r.errorClass, r.exitCode], ["TIMEOUT", 124]);
  },
  "AC2: curl without network policy says that it is not configured": refusedBy("curl https://evil.test"),
  "AC2: wget without network policy says that it is not configured": refusedBy("wget https://evil.test"),
  async "AC2: curl and wget without network policy fail"({ open, assert }) {
    const sb = await open();
    for (const c of ["curl -sS https://evil.test", "wget https://evil.test"]) {
      const r = await sb.run(c);
      assert.ok(r.exitCode !== 0 && r.stdout === "", JSON.stringify(r));
    }
  },
  async "AC3: VFS is isolated, no host filesystem access"({ open, assert }) {
    const sb = await open();
    assert.notEqual((await sb.run(`cat ${JSON.stringify(process.env.CORDON)}`)).exitCode, 0);
    assert.notEqual((await sb.run("cat /etc/shadow")).exitCode, 0);
  },
  async "AC3: /etc/passwd is the sandbox's own"({ open, assert }) {
    const names = (await (await open()).run("cut -d: -f1 /etc/passwd")).stdout.trim().split("\n");
    assert.ok(names.includes("user") && names.length <= 3, String(names));
  },
  async "AC4: stdout flood truncated at cap"({ open, assert }) {
    const r = await (await open({ security: { limits: { stdoutBytes: 100 } } })).run("yes hello | head -1000");
    assert.ok(r.truncated.stdout && r.stdout.length <= 200);
  },
  async "AC4: stderr flood truncated at cap"({ open, assert }) {
    const r = await (await open({ security: { limits: { stderrBytes: 50 } } })).run("nosuchcmd; nosuchcmd; nosuchcmd; nosuchcmd");
    assert.ok(r.truncated.stderr && r.stderr.length <= 100, JSON.stringify(r));
  },
  async "AC5: oversized command rejected before execution"({ open, assert }) {
    const sb = await open({ security: { limits: { commandBytes: 50 } } });
    const r = await sb.run("echo > /tmp/ran; echo " + "x".repeat(100));
    assert.deepEqual([r.errorClass, r.executionTimeMs], ["LIMIT_EXCEEDED", 0]);
    await assert.rejects(sb.stat("/tmp/ran"));
  },
  async "AC5: command under limit executes normally"({ open, assert }) {
    const r = await (await open({ security: { limits: { commandBytes: 1000 } } })).run("echo hello");
    assert.deepEqual([r.exitCode, r.errorClass], [0, undefined]);
  },
  async "AC6: two sessions have isolated filesystems"({ open, assert }) {
    const [a, b] = [await open(), await open()];
    await a.run("echo secret > /tmp/private.txt");
    assert.notEqual((await b.run("cat /tmp/private.txt")).exitCode, 0);
    await a.writeFile("/tmp/host-data.txt", bytes("sensitive"));
    await assert.rejects(b.readFile("/tmp/host-data.txt"), /ENOENT/);
  },
  async "AC6: forked sandbox is isolated from parent after fork"({ open, assert }) {
    const parent = await open();
    await parent.writeFile("/tmp/shared.txt", bytes("before"));
    const child = await parent.fork();
    try {
      await child.writeFile("/tmp/shared.txt", bytes("child-only"));
      await child.writeFile("/tmp/new.txt", bytes("x"));
      assert.equal(text(await parent.readFile("/tmp/shared.txt")), "before");
      await assert.rejects(parent.stat("/tmp/new.txt"));
    } finally {
      await child.destroy();
    }
  },
  async "AC7: audit events have stable schema with sessionId and timestamp"({ open, assert }) {
    const events = [];
    const sb = await open({ security: { onAuditEvent: (e) => events.push(e) } });
    await sb.run("echo hello");
    await sb.destroy();
    for (const e of events) assert.ok(typeof e.type === "string" && e.sessionId.length > 0 && typeof e.timestamp === "number" && e.timestamp > 0);
    for (const t of ["sandbox.create", "command.start", "command.complete", "sandbox.destroy"]) assert.ok(events.some((e) => e.type === t), t);
  },
  async "AC7: timeout event emitted with stable schema"({ open, assert }) {
    const events = [];
    const sb = await open({ security: { limits: { timeoutMs: 50 }, onAuditEvent: (e) => events.push(e) } });
    await sb.run(ENDLESS);
    const e = events.find((x) => x.type === "command.timeout");
    assert.ok(e.sessionId && e.timestamp > 0 && e.command === ENDLESS);
  },
  async "AC7: capability denied event emitted"({ open, assert }) {
    const events = [];
    const sb = await open({ security: { toolAllowlist: ["echo"], onAuditEvent: (e) => events.push(e) }, extensions: [greet] });
    await sb.run("grep hello /tmp/f.txt");
    await sb.run("greet");
    assert.deepEqual(events.filter((e) => e.type === "capability.denied").map((e) => /grep|greet/.exec(e.reason)[0]), ["grep", "greet"]);
  },
  async "AC7: limit exceeded event emitted on stdout truncation"({ open, assert }) {
    const events = [];
    await (await open({ security: { limits: { stdoutBytes: 20 }, onAuditEvent: (e) => events.push(e) } })).run("yes hello | head -100");
    assert.ok(events.some((e) => e.type === "limit.exceeded" && e.subtype === "stdout" && e.sessionId));
  },
  async "tool allowlist blocks unauthorized tool"({ open, assert }) {
    const r = await (await open({ security: { toolAllowlist: ["echo"] } })).run("cat /etc/passwd");
    assert.ok(r.exitCode === 126 && r.stderr.includes("not allowed") && r.errorClass === "CAPABILITY_DENIED", JSON.stringify(r));
  },
  async "tool allowlist allows authorized tool"({ open, assert }) {
    const sb = await open({ security: { toolAllowlist: ["echo", "cat"] } });
    await sb.writeFile("/tmp/a.txt", bytes("ok"));
    const r = await sb.run("cat /tmp/a.txt");
    assert.deepEqual([r.exitCode, r.stdout], [0, "ok"]);
  },
  async "file count limit prevents inode exhaustion"({ open, assert }) {
    const sb = await open({ security: { limits: { fileCount: 30 } } });
    const fill = async () => {
      for (let i = 0; i < 50; i++) await sb.writeFile(`/tmp/f${i}.txt`, bytes("x"));
    };
    await assert.rejects(fill(), /ENOSPC/);
  },
  async "tool allowlist blocks extension not in list"({ open, assert }) {
    const r = await (await open({ security: { toolAllowlist: ["echo"] }, extensions: [greet] })).run("greet");
    assert.ok(r.exitCode === 126 && r.stdout === "" && r.stderr.includes("greet: tool not allowed by security policy"), JSON.stringify(r));
  },
  async "tool allowlist allows extension in list"({ open, assert }) {
    const r = await (await open({ security: { toolAllowlist: ["echo", "greet"] }, extensions: [greet] })).run("greet");
    assert.deepEqual([r.exitCode, r.stdout], [0, "hello\n"]);
  },
  async "tool allowlist gates extensions in the other guests too"({ cordon, assert }) {
    for (const [guest, code] of [["python", "greet()"], ["node", "greet()"], ["r", "greet()"]]) {
      const s = await cordon.Session.open({ guest, policy: { commands: ["echo"] },
        tools: [{ name: "greet", command: true, fn: () => ({ stdout: "leaked" }) }] }).catch((e) => e);
      if (s instanceof Error && /not (found|installed)|no such/i.test(s.message)) continue; // this machine does not have the language
      const r = await s.execute(code);
      await s.close();
      assert.ok(!r.success && /greet: tool not allowed by security policy/.test(r.error), `${guest}: ${r.error} ${JSON.stringify(r.value)}`);
    }
  },
  async "extension output is truncated to stdout limit"({ open, assert }) {
    const flood = { name: "flood", command: async () => ({ stdout: "x".repeat(10000), exitCode: 0 }) };
    assert.ok((await (await open({ security: { limits: { stdoutBytes: 100 } }, extensions: [flood] })).run("flood")).stdout.length <= 200);
  },
  async "destroyed sandbox rejects all operations"({ open, assert }) {
    const sb = await open();
    await sb.destroy();
    const uses = [() => sb.run("true"), () => sb.readFile("/tmp/x"), () => sb.writeFile("/tmp/x", ""), () => sb.stat("/tmp"), () => sb.mkdir("/tmp/d"),
      () => sb.rm("/tmp/x"), () => sb.readDir("/tmp"), () => sb.setEnv("A", "b"), () => sb.getEnv("A"), () => sb.snapshot(), () => sb.restore("1"),
      () => sb.exportState(), () => sb.importState(new Uint8Array(0)), () => sb.fork(), () => sb.mount("/mnt/a", {}), () => sb.offload(),
      () => sb.rehydrate(), () => sb.saveState(), () => sb.cancel()];
    for (const use of uses) await assert.rejects(async () => use(), /Sandbox has been destroyed/, String(use));
  },
};

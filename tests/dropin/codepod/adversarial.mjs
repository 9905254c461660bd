// tests/dropin/codepod/adversarial.mjs - codepod's security-adversarial.test.ts.
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);

const fails = (...commands) => async ({ open, assert }) => {
  const sb = await open();
  let r;
  for (const c of commands) r = await sb.run(c);
  assert.notEqual(r.exitCode, 0, JSON.stringify(r));
};

export default {
  async "extension blocked by allowlist cannot be reached via pipe"({ open, assert }) {
    const secret = { name: "secret", command: async () => ({ stdout: "leaked\n", exitCode: 0 }) };
    const sb = await open({ security: { toolAllowlist: ["echo", "bash", "sh", "env", "xargs"] }, extensions: [secret] });
    for (const c of ["echo test | secret", "x=$(secret); echo $x", "eval secret", "bash -c secret", "env secret", "echo | xargs secret",
      "/run/cordon/bin/secret", "/usr/bin/secret", "command secret", "exec secret"])
      assert.ok(!(await sb.run(c)).stdout.includes("leaked"), c);
  },
  async "blocked tool cannot be reached via command substitution"({ open, assert }) {
    const sb = await open({ security: { toolAllowlist: ["echo"] } });
    assert.equal((await sb.run("echo $(grep root /etc/passwd)")).stdout.trim(), "");
    assert.match((await sb.run("grep root /etc/passwd")).stderr, /not allowed/);
  },
  async "script file cannot run blocked commands"({ open, assert }) {
    const sb = await open({ security: { toolAllowlist: ["echo", "cat"] } });
    await sb.writeFile("/tmp/evil.sh", bytes("#!/bin/sh\ngrep secret /etc/passwd\n"));
    const r = await sb.run("source /tmp/evil.sh");
    assert.ok(r.exitCode === 126 && r.stderr.includes("not allowed"), JSON.stringify(r));
  },
  async "deeply nested command substitution is bounded"({ open, assert }) {
    let c = "echo innermost";
    for (let i = 0; i < 60; i++) c = `echo $(${c})`;
    assert.ok(!(await (await open({ policy: { processes: 30 } })).run(c)).stdout.includes("innermost"));
  },
  async "output truncation works under repeated writes"({ open, assert }) {
    const sb = await open({ security: { limits: { stdoutBytes: 1024 } } });
    assert.ok((await sb.run('for i in $(seq 1 1000); do echo "line $i padding padding padding"; done')).stdout.length < 2048);
  },
  async "very long command is rejected"({ open, assert }) {
    const r = await (await open({ security: { limits: { commandBytes: 100 } } })).run("echo " + "a".repeat(200));
    assert.deepEqual([r.exitCode, r.errorClass], [1, "LIMIT_EXCEEDED"]);
  },
  "symlink chains are bounded": fails("ln -s /tmp/link1 /tmp/link2; ln -s /tmp/link2 /tmp/link1; cat /tmp/link1"),
  "path traversal via .. is neutralized": fails("echo evil > /tmp/../../../etc/passwd"),
  "chmod on a system file is denied": fails("chmod 777 /etc/passwd"),
  "write to read-only system file is denied": fails("echo evil > /etc/hostname"),
  "creating new files in /etc is denied": fails("echo evil > /etc/backdoor.json"),
  "removing a command is denied": fails("rm -f /usr/bin/ls"),
  async "symlink in /tmp pointing to /bin cannot be used to write to /bin"({ open, assert }) {
    const sb = await open();
    await sb.run("ln -s /bin /tmp/escape");
    assert.notEqual((await sb.run("echo evil > /tmp/escape/backdoor")).exitCode, 0);
    assert.notEqual((await sb.run("ls /bin/backdoor")).exitCode, 0);
    await assert.rejects(sb.writeFile("/tmp/escape/backdoor", bytes("evil")));
  },
  async "rename via symlink cannot move files into system dirs"({ open, assert }) {
    const sb = await open();
    await sb.run("echo payload > /tmp/payload.txt; ln -s /bin /tmp/sysdir");
    assert.notEqual((await sb.run("mv /tmp/payload.txt /tmp/sysdir/payload.txt")).exitCode, 0);
    assert.equal((await sb.run("cat /tmp/payload.txt")).stdout, "payload\n");
  },
  async "individual file can be locked within a writable directory"({ open, assert }) {
    const sb = await open();
    await sb.run("echo secret > /tmp/locked.txt; chmod 444 /tmp/locked.txt");
    assert.notEqual((await sb.run("echo overwritten > /tmp/locked.txt")).exitCode, 0);
    assert.equal((await sb.run("cat /tmp/locked.txt")).stdout, "secret\n");
  },
  async "importState cannot overwrite system config files"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/legit.txt", bytes("legit"));
    const blob = await sb.exportState();
    const changed = blob.slice();
    changed[changed.length >> 1] ^= 1;
    const other = await open();
    await assert.rejects(other.importState(changed), /State blob checksum mismatch: data may be corrupted|Invalid state blob/);
    await other.importState(blob);
    assert.equal(text(await other.readFile("/tmp/legit.txt")), "legit");
  },
  async "redirect-based SSRF is blocked by policy re-validation"({ open, assert }) {
    const sb = await open({ network: { allowedHosts: ["trusted.test"] } });
    const r = await sb.run("curl -sS http://169.254.169.254/latest/meta-data/");
    assert.ok(r.exitCode !== 0 || !r.stdout.includes("ami-id"));
    assert.ok(r.denials.length > 0, JSON.stringify(r));
  },
  async "network: onRequest is asked, and only true lets a request through"({ open, assert }) {
    const asked = [];
    const sb = await open({ network: { allowedHosts: ["a.test"], mode: "restricted", onRequest: (r) => { asked.push(r); return false; } } });
    await sb.run("curl -sS http://a.test/p");
    assert.deepEqual(asked.map((r) => [r.url, r.method]), [["http://a.test/p", "GET"]]);
  },
  async "network: mode full"({ open }) {
    await open({ network: { mode: "full", allowedHosts: ["db.test"] } });
  },
  async "packagePolicy and pipPolicy are accepted"({ open }) {
    await open({ security: { packagePolicy: { enabled: true, allowedHosts: ["example.com"] }, pipPolicy: { enabled: true } } });
  },
  async "fork inherits allowlist restrictions"({ open, assert }) {
    const child = await (await open({ security: { toolAllowlist: ["echo"] } })).fork();
    const r = await child.run("grep test /tmp/a");
    await child.destroy();
    assert.ok(r.exitCode === 126 && r.stderr.includes("not allowed"), JSON.stringify(r));
  },
};

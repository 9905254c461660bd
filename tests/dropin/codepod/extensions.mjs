// tests/dropin/codepod/extensions.mjs - codepod's registry.test.ts and its guide to extensions.
const hi = (name, more = {}) => ({ name, description: `The command ${name}.`, command: () => `${name}\n`, ...more });
const SEARCH = [
  hi("search", { description: "Search docs", category: "search", usage: "search <q>", examples: ["search foo"] }),
  hi("fetch", { description: "Fetch doc", category: "search" }), hi("upload", { description: "Upload file", category: "files" })];

const asks = (command, check) => async ({ open, assert }) => check(assert, await (await open({ extensions: SEARCH })).run(command));

/** What the handler was given. */
async function called(open, command, more = {}) {
  const calls = [];
  const sb = await open({ extensions: [hi("myext", { command: (c) => (calls.push(c), "") })], ...more });
  const r = await sb.run(command);
  return { r, call: calls[0], sb, calls };
}

export default {
  async "invokes a command handler"({ open, assert }) {
    const r = await (await open({ extensions: [{ name: "greet", command: async () => ({ stdout: "hello world", exitCode: 0 }) }] })).run("greet");
    assert.deepEqual([r.stdout, r.exitCode], ["hello world", 0]);
  },
  async "invoke passes args and stdin to handler"({ open, assert }) {
    const { call } = await called(open, "printf data | myext --flag val 'two words'");
    assert.deepEqual([call.args, call.stdin], [["--flag", "val", "two words"], "data"]);
  },
  async "stdin is empty without a pipe"({ open, assert }) {
    assert.equal((await called(open, "myext")).call.stdin, "");
  },
  async "the handler gets the true cwd and env"({ open, assert }) {
    const { call } = await called(open, "cd /tmp; export A=exported; B=once myext; true", { env: { C: "created" } });
    assert.deepEqual([call.cwd, call.env.A, call.env.B, call.env.C, call.env.HOME], ["/tmp", "exported", "once", "created", "/home/user"]);
    assert.ok(!Object.keys(call.env).some((k) => k.startsWith("CORDON_")), Object.keys(call.env).join());
  },
  async "cwd and env in a subshell, a script and a function"({ open, assert }) {
    const { calls, sb } = await called(open, "(cd / && X=1 myext); f() { local -x Y=2; myext; }; f");
    await sb.run("mkdir -p d; printf 'cd d; export Z=3; myext\\n' > s.sh; bash s.sh");
    assert.deepEqual(calls.map((c) => [c.cwd, c.env.X, c.env.Y, c.env.Z]),
      [["/", "1", undefined, undefined], ["/home/user", undefined, "2", undefined], ["/home/user/d", undefined, undefined, "3"]]);
  },
  async "extensions work in pipes, redirects and chains"({ open, assert }) {
    const upper = { name: "upper", command: ({ stdin }) => stdin.toUpperCase() };
    const fail = { name: "failing", command: () => ({ stdout: "", stderr: "oops\n", exitCode: 3 }) };
    const sb = await open({ extensions: [upper, fail] });
    assert.equal((await sb.run("echo hello | upper | cat > /tmp/o; cat /tmp/o")).stdout, "HELLO\n");
    const r = await sb.run("failing && echo ok || echo $?");
    assert.deepEqual([r.stdout, r.stderr], ["3\n", "oops\n"]);
  },
  async "5 MB go through an extension in the middle of a pipe"({ open, assert }) {
    const sb = await open({ extensions: [{ name: "same", command: ({ stdin }) => stdin }] });
    assert.equal((await sb.run("head -c 5000000 /dev/zero | tr '\\0' a | same | wc -c")).stdout.trim(), "5000000");
  },
  async "a handler that throws is stderr and exit 1"({ open, assert }) {
    const r = await (await open({ extensions: [{ name: "bad", command: () => { throw new Error("boom"); } }] })).run("bad");
    assert.deepEqual([r.exitCode, r.stderr], [1, "bad: boom\n"]);
  },
  async "an unknown command is 127"({ open, assert }) {
    assert.equal((await (await open({ extensions: SEARCH })).run("nope")).exitCode, 127);
  },
  async "an extension without command and package is refused"({ open, assert }) {
    await assert.rejects(open({ extensions: [{ name: "none" }] }), /has no command and no pythonPackage/);
  },
  async "a package without command is no command"({ open, assert }) {
    const r = await (await open({ extensions: [{ name: "pkg", pythonPackage: { version: "1.0", files: {} } }] })).run("pkg");
    assert.equal(r.exitCode, 127);
  },
  "--help returns the description": asks("search --help", (assert, r) => assert.ok(r.exitCode === 0 && r.stdout.includes("Search docs"))),
  "which finds an extension": asks("which search", (assert, r) => assert.match(r.stdout, /\/bin\/search\n$/)),
  "which says /usr/bin": asks("which search", (assert, r) => assert.equal(r.stdout, "/usr/bin/search\n")),
  "list() does not include the built-in extensions command": asks("extensions list --json", (assert, r) =>
    assert.deepEqual(JSON.parse(r.stdout).map((e) => e.name).sort(), ["fetch", "search", "upload"])),
  "extensions list shows all user extensions": asks("extensions list", (assert, r) =>
    ["NAME", "CATEGORY", "DESCRIPTION", "search", "fetch", "upload"].forEach((n) => assert.ok(r.stdout.includes(n), n))),
  "extensions list --category filters results": asks("extensions list --category search", (assert, r) =>
    assert.ok(r.stdout.includes("fetch") && !r.stdout.includes("upload"))),
  "extensions info shows extension details": asks("extensions info search", (assert, r) =>
    ["search <q>", "search foo", "Search docs"].forEach((n) => assert.ok(r.stdout.includes(n), n))),
  "extensions info returns exit 1 for unknown name": asks("extensions info nope", (assert, r) =>
    assert.ok(r.exitCode === 1 && r.stderr.includes("unknown extension"))),
  "extensions --help returns help text": asks("extensions --help", (assert, r) => assert.ok(r.exitCode === 0 && r.stdout.includes("Subcommands"))),
  "extensions unknown subcommand returns exit 1": asks("extensions bogus", (assert, r) =>
    assert.ok(r.exitCode === 1 && r.stderr.includes("unknown subcommand"), r.stderr)),
  async "extensions work in a forked sandbox"({ open, assert }) {
    const child = await (await open({ extensions: SEARCH })).fork();
    const r = await child.run("search");
    await child.destroy();
    assert.equal(r.stdout, "search\n");
  },
  async "extensions work after mount and rehydrate"({ open, assert }) {
    const sb = await open({ extensions: SEARCH });
    await sb.mount("/mnt/x", { a: "b" });
    assert.equal((await sb.run("search")).stdout, "search\n");
    await sb.offload();
    await sb.rehydrate();
    assert.equal((await sb.run("search")).stdout, "search\n");
  },
};

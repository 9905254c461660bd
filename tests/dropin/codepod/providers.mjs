// tests/dropin/codepod/providers.mjs - codepod's providers.test.ts: /dev and /proc, in the shell and with the file methods.
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);

const gives = (command, check) => async ({ open, assert }) => {
  const r = await (await open()).run(command);
  assert.equal(r.exitCode, 0, r.stderr);
  check(assert, r.stdout);
};
const fails = (command) => async ({ open, assert }) => assert.notEqual((await (await open()).run(command)).exitCode, 0);
const isReadable = (path) => async ({ open }) => (await open()).readFile(path);

export default {
  "/dev/null read returns empty bytes": gives("wc -c < /dev/null", (assert, out) => assert.equal(out.trim(), "0")),
  "/dev/null write is silent (no error)": gives("echo discard me > /dev/null", (assert, out) => assert.equal(out, "")),
  "/dev/null is a file for stat": gives("stat -c %F /dev/null", (assert, out) => assert.equal(out.trim(), "regular file")),
  "/dev is listable": gives("ls /dev", (assert, out) => ["null", "random", "urandom", "zero"].forEach((n) => assert.ok(out.split("\n").includes(n), n))),
  "/dev has exactly 4 devices": gives("ls /dev", (assert, out) => assert.equal(out, "null\nrandom\nurandom\nzero\n")),
  "/dev/zero returns zero bytes": gives("head -c 100000 /dev/zero | tr -d '\\0' | wc -c", (assert, out) => assert.equal(out.trim(), "0")),
  "/dev/random and /dev/urandom return bytes": gives("head -c 16 /dev/random | wc -c; head -c 16 /dev/urandom | wc -c",
    (assert, out) => assert.deepEqual(out.trim().split(/\s+/), ["16", "16"])),
  "/dev/random returns different bytes on separate reads": gives("head -c 16 /dev/urandom | base64; head -c 16 /dev/urandom | base64", (assert, out) => {
    const [a, b] = out.trim().split("\n");
    assert.notEqual(a, b);
  }),
  "writing to /dev/zero throws EROFS": fails("echo x > /dev/zero"),
  "reading nonexistent /dev/foo throws ENOENT": fails("cat /dev/foo"),
  "/proc/uptime returns parseable number": gives("cat /proc/uptime", (assert, out) => assert.ok(Number(out.split(" ")[0]) >= 0 && out.trim().split(" ").length === 2)),
  "/proc/version says codepod": gives("cat /proc/version", (assert, out) => assert.match(out, /codepod/)),
  "/proc/version describes the sandbox, not the host": gives("cat /proc/version", (assert, out) => assert.match(out, /sandbox|pod/i)),
  '/proc/cpuinfo contains "processor"': gives("cat /proc/cpuinfo", (assert, out) => assert.match(out, /processor/)),
  "/proc/meminfo has content": gives("cat /proc/meminfo", (assert, out) => assert.match(out, /MemTotal[\s\S]*MemFree/)),
  "/proc is listable with all 4 files only": gives("ls /proc", (assert, out) => assert.equal(out, "cpuinfo\nmeminfo\nuptime\nversion\n")),
  "/proc files are read-only (uptime)": fails("echo fake > /proc/uptime"),
  "/proc files are read-only (version)": fails("echo fake > /proc/version"),
  "/proc files are read-only (cpuinfo)": fails("echo fake > /proc/cpuinfo"),
  "/proc files are read-only (meminfo)": fails("echo fake > /proc/meminfo"),
  "reading nonexistent /proc/foo throws ENOENT": fails("cat /proc/foo"),
  "readFile of /dev/null": isReadable("/dev/null"),
  "readFile of /proc/uptime": isReadable("/proc/uptime"),
  async "writeFile to /proc/uptime throws EROFS"({ open, assert }) {
    await assert.rejects((await open()).writeFile("/proc/uptime", bytes("fake")), /EROFS/);
  },
  async "readFile of nonexistent /dev/foo throws ENOENT"({ open, assert }) {
    await assert.rejects((await open()).readFile("/dev/foo"), /ENOENT/);
  },
  async "providers do not interfere with normal VFS operations"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/test.txt", bytes("hello"));
    assert.equal(text(await sb.readFile("/tmp/test.txt")), "hello");
  },
  async "providers are available after fork"({ open, assert }) {
    const child = await (await open()).fork();
    const r = await child.run("wc -c < /dev/null; cat /proc/uptime");
    await child.destroy();
    assert.equal(r.exitCode, 0, r.stderr);
  },
  "root readdir still works": gives("ls /", (assert, out) => ["home", "tmp", "bin"].forEach((n) => assert.ok(out.split("\n").includes(n), n))),
};

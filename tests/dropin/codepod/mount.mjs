// tests/dropin/codepod/mount.mjs - codepod's mount.test.ts and host-mount.test.ts.
const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const TOOLS = [{ path: "/mnt/tools", files: { "hello.sh": bytes("#!/bin/sh\necho hello"), "data.txt": bytes("some data") } }];

export default {
  async "Sandbox.create with mounts makes files readable via shell"({ open, assert }) {
    const r = await (await open({ mounts: TOOLS })).run("cat /mnt/tools/data.txt");
    assert.deepEqual([r.exitCode, r.stdout], [0, "some data"]);
  },
  async "ls on mount point shows files"({ open, assert }) {
    assert.equal((await (await open({ mounts: TOOLS })).run("ls /mnt/tools")).stdout, "data.txt\nhello.sh\n");
  },
  async "mounted files are read-only"({ open, assert }) {
    const r = await (await open({ mounts: TOOLS })).run("echo x > /mnt/tools/data.txt");
    assert.ok(r.exitCode !== 0 && /Read-only file system|EROFS/.test(r.stderr), JSON.stringify(r));
  },
  async "dynamic sandbox.mount() at runtime"({ open, assert }) {
    const sb = await open();
    await sb.writeFile("/tmp/before", bytes("kept"));
    await sb.run("export KEPT=too");
    await sb.mount("/mnt/uploads", { "file1.txt": bytes("uploaded content") });
    assert.equal((await sb.run("cat /mnt/uploads/file1.txt /tmp/before; echo $KEPT")).stdout, "uploaded contentkepttoo\n");
  },
  async "mount() keeps what runs and the snapshots"({ open }) {
    const sb = await open();
    const id = await sb.snapshot();
    await sb.mount("/mnt/uploads", { a: bytes("x") });
    await sb.restore(id);
  },
  async "dynamic mount with VirtualProvider instance"({ open, cordon, assert }) {
    const sb = await open();
    await sb.mount("/mnt/docs", new cordon.HostMount({ "readme.md": bytes("# Hi"), "a/b.txt": bytes("deep") }));
    assert.equal((await sb.run("cat /mnt/docs/readme.md /mnt/docs/a/b.txt")).stdout, "# Hideep");
  },
  async "custom VirtualProvider, synchronous or not"({ open, assert }) {
    const provider = { readFile: async (path) => bytes(`row of ${path}`), writeFile() { throw new Error("read-only"); }, exists: () => true,
      stat: () => ({ type: "file", size: 1 }),
      readdir: (path) => (path === "" ? [{ name: "t", type: "dir" }] : [{ name: "one", type: "file" }]) };
    const sb = await open({ mounts: [{ path: "/mnt/first", files: provider }] });
    await sb.mount("/mnt/db", provider);
    assert.equal((await sb.run("cat /mnt/db/t/one /mnt/first/t/one")).stdout, "row of t/onerow of t/one");
  },
  async "a provider without an end is refused"({ open, assert }) {
    const sb = await open();
    const endless = { readFile: () => bytes(""), readdir: () => [{ name: "d", type: "dir" }] };
    await assert.rejects(sb.mount("/mnt/x", endless), /deeper than 64/);
    const escaping = { readFile: () => bytes(""), readdir: () => [{ name: "../../etc", type: "file" }] };
    await assert.rejects(sb.mount("/mnt/x", escaping), /no file name/);
  },
  async "a provider is asked at every read"({ open, assert }) {
    let n = 0;
    const sb = await open();
    await sb.mount("/mnt/n", { readFile: () => bytes(`${++n}`), readdir: () => [{ name: "n", type: "file" }] });
    assert.deepEqual([(await sb.run("cat /mnt/n/n")).stdout, (await sb.run("cat /mnt/n/n")).stdout], ["1", "2"]);
  },
  async "mount dirs visible in parent listing"({ open, assert }) {
    assert.match((await (await open({ mounts: TOOLS })).run("ls /mnt")).stdout, /tools/);
  },
  async "mounted files excluded from exportState()"({ open, assert }) {
    const sb = await open({ mounts: TOOLS });
    await sb.writeFile("/tmp/normal.txt", bytes("normal"));
    const other = await open();
    await other.importState(await sb.exportState());
    assert.equal(text(await other.readFile("/tmp/normal.txt")), "normal");
    assert.notEqual((await other.run("ls /mnt/tools")).exitCode, 0);
  },
  async "mounts with nested subdirectories"({ open, assert }) {
    const sb = await open({ mounts: [{ path: "/mnt/pkg", files: { "mylib/__init__.py": bytes(""), "mylib/utils.py": bytes("x = 1") } }] });
    assert.equal((await sb.run("ls /mnt/pkg/mylib")).stdout, "__init__.py\nutils.py\n");
  },
  async "writable mount in the workspace"({ open, assert }) {
    const sb = await open({ mounts: [{ path: "/home/user/w", files: { a: "1\n" }, writable: true }] });
    assert.equal((await sb.run("echo 2 >> w/a; cat w/a")).stdout, "1\n2\n");
  },
  async "writable mount elsewhere"({ open, assert }) {
    const sb = await open({ mounts: [{ path: "/mnt/w", files: { a: "1\n" }, writable: true }] });
    assert.equal((await sb.run("echo 2 >> /mnt/w/a; cat /mnt/w/a")).stdout, "1\n2\n");
  },
  async "fork() preserves user mounts"({ open, assert }) {
    const sb = await open({ mounts: TOOLS });
    await sb.mount("/mnt/more", { x: "y" });
    const child = await sb.fork();
    const r = await child.run("cat /mnt/tools/data.txt /mnt/more/x");
    await child.destroy();
    assert.equal(r.stdout, "some datay");
  },
  async "pythonPath option sets PYTHONPATH correctly"({ open, assert }) {
    assert.equal(await (await open({ pythonPath: ["/mnt/libs", "/mnt/extra"] })).getEnv("PYTHONPATH"), "/mnt/libs:/mnt/extra:/usr/lib/python");
  },
  async "pythonPath combined with network includes all paths"({ open, assert }) {
    const sb = await open({ pythonPath: ["/mnt/libs"], network: { allowedHosts: ["example.com"] } });
    assert.equal(await sb.getEnv("PYTHONPATH"), "/mnt/libs:/usr/lib/python");
  },
  async "a module from pythonPath can be imported"({ open, assert }) {
    const sb = await open({ pythonPath: ["/mnt/libs"], mounts: [{ path: "/mnt/libs", files: { "mymodule/__init__.py": "", "mymodule/core.py": "G = 'hello'" } }] });
    assert.equal((await sb.run('python3 -c "from mymodule.core import G; print(G)"')).stdout, "hello\n");
  },

  "HostMount: creates from flat map with nested paths"({ cordon, assert }) {
    const m = new cordon.HostMount({ "README.md": bytes("# Hello"), "lib/__init__.py": bytes(""), "lib/utils.py": bytes("def foo(): pass") });
    assert.equal(text(m.readFile("README.md")) + text(m.readFile("lib/utils.py")), "# Hellodef foo(): pass");
  },
  "HostMount: readFile throws ENOENT for missing files"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({}).readFile("nope.txt"), /ENOENT/);
  },
  "HostMount: readFile throws EISDIR for directories"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({ "dir/file.txt": bytes("x") }).readFile("dir"), /EISDIR/);
  },
  "HostMount: readdir lists root children"({ cordon, assert }) {
    const entries = new cordon.HostMount({ "a.txt": bytes("a"), "b.txt": bytes("b"), "sub/c.txt": bytes("c") }).readdir("");
    assert.deepEqual(entries.map((e) => [e.name, e.type]).sort(), [["a.txt", "file"], ["b.txt", "file"], ["sub", "dir"]]);
  },
  "HostMount: readdir lists subdirectory children"({ cordon, assert }) {
    const names = new cordon.HostMount({ "lib/__init__.py": bytes(""), "lib/utils.py": bytes("x") }).readdir("lib").map((e) => e.name);
    assert.deepEqual(names.sort(), ["__init__.py", "utils.py"]);
  },
  "HostMount: readdir throws ENOENT for missing dirs"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({}).readdir("nope"), /ENOENT/);
  },
  "HostMount: readdir throws ENOTDIR for files"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({ "file.txt": bytes("x") }).readdir("file.txt"), /ENOTDIR/);
  },
  "HostMount: stat returns file, dir and root info"({ cordon, assert }) {
    const m = new cordon.HostMount({ "data.bin": bytes("hello"), "dir/a": bytes("a"), "dir/b": bytes("b") });
    assert.deepEqual([m.stat("data.bin"), m.stat("dir"), m.stat("")],
      [{ type: "file", size: 5 }, { type: "dir", size: 2 }, { type: "dir", size: 2 }]);
  },
  "HostMount: stat throws ENOENT for missing paths"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({}).stat("nope"), /ENOENT/);
  },
  "HostMount: exists returns true for files and dirs"({ cordon, assert }) {
    const m = new cordon.HostMount({ "dir/file.txt": bytes("x") });
    assert.deepEqual(["", "dir", "dir/file.txt", "nope"].map((p) => m.exists(p)), [true, true, true, false]);
  },
  "HostMount: writeFile throws EROFS when not writable"({ cordon, assert }) {
    assert.throws(() => new cordon.HostMount({}).writeFile("test.txt", bytes("x")), /EROFS: read-only mount/);
  },
  "HostMount: writeFile works and creates intermediate dirs when writable"({ cordon, assert }) {
    const m = new cordon.HostMount({}, { writable: true });
    m.writeFile("a/b/c.txt", bytes("deep"));
    assert.deepEqual([text(m.readFile("a/b/c.txt")), m.stat("a").type, m.stat("a/b").type], ["deep", "dir", "dir"]);
  },
  "HostMount: addFile incrementally populates the mount"({ cordon, assert }) {
    const m = new cordon.HostMount({ "a.txt": bytes("a") });
    m.addFile("b.txt", bytes("b"));
    m.addFile("sub/c.txt", bytes("c"));
    assert.deepEqual(m.readdir("").map((e) => e.name).sort(), ["a.txt", "b.txt", "sub"]);
  },
};

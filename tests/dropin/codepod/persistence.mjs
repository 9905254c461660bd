// tests/dropin/codepod/persistence.mjs - codepod's persistence.test.ts and its storage for offload.
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const bytes = (text) => new TextEncoder().encode(text);
const text = (data) => new TextDecoder().decode(data);
const NOT_CONFIGURED = { message: 'Persistence not configured. Set persistence.mode to "session" or "persistent".' };

async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), "cordon-dropin-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A storage, and what it was asked. */
function shelf() {
  const kept = new Map(), calls = [];
  return { kept, calls, save: async (id, state) => { calls.push(["save", id]); kept.set(id, state); },
    load: async (id) => { calls.push(["load", id]); return kept.get(id); } };
}

/** A backend that tells when something was saved. */
function watched(cordon) {
  const backend = new cordon.MemoryBackend(), waiting = [];
  return { load: (ns) => backend.load(ns), delete: (ns) => backend.delete(ns), next: () => new Promise((r) => waiting.push(r)),
    save: async (ns, state) => { await backend.save(ns, state); waiting.splice(0).forEach((r) => r()); } };
}

export default {
  async "round-trips VFS files and directories"({ open, assert }) {
    const a = await open(), b = await open();
    await a.run("mkdir -p /home/user/project && echo hi > /home/user/project/main.ts && ln -s main.ts /home/user/project/link");
    await a.writeFile("/tmp/data.bin", new Uint8Array([0, 1, 2, 255]));
    await b.importState(await a.exportState());
    assert.deepEqual([...await b.readFile("/tmp/data.bin")], [0, 1, 2, 255]);
    assert.equal((await b.stat("/home/user/project")).type, "dir");
    assert.equal((await b.run("cat project/main.ts; readlink project/link")).stdout, "hi\nmain.ts\n");
  },
  async "round-trips env vars"({ open, assert }) {
    const a = await open(), b = await open();
    await a.setEnv("LANGUAGE", "en");
    await a.run("export FROM_COMMAND='two words'");
    await b.importState(await a.exportState());
    assert.equal((await b.run('echo "$LANGUAGE $FROM_COMMAND"')).stdout, "en two words\n");
  },
  async "rejects blob that is too short"({ open, assert }) {
    await assert.rejects((await open()).importState(new Uint8Array(4)), /Invalid state blob: too short/);
  },
  async "rejects blob with bad magic bytes"({ open, assert }) {
    await assert.rejects((await open()).importState(new Uint8Array(64)), /Invalid state blob: bad magic bytes/);
  },
  async "rejects a blob whose checksum is wrong"({ open, assert }) {
    const sb = await open(), blob = (await sb.exportState()).slice();
    blob[blob.length - 3] ^= 1;
    await assert.rejects(sb.importState(blob), /State blob checksum mismatch: data may be corrupted/);
  },
  async "blob has codepod's magic bytes, version and JSON"({ open, assert }) {
    const blob = await (await open()).exportState();
    assert.deepEqual([...blob.subarray(0, 4)], [0x57, 0x53, 0x4e, 0x44]);
    assert.ok(Array.isArray(JSON.parse(text(blob.subarray(12))).files));
  },
  async "handles empty VFS gracefully"({ open }) {
    await (await open()).importState(await (await open()).exportState());
  },
  async "handles binary file content (all byte values)"({ open, assert }) {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i), a = await open(), b = await open();
    await a.writeFile("/tmp/binary.bin", all);
    await b.importState(await a.exportState());
    assert.deepEqual([...await b.readFile("/tmp/binary.bin")], [...all]);
  },
  async "round-trips permissions"({ open, assert }) {
    const a = await open(), b = await open();
    await a.run("echo locked > /tmp/readonly.txt; chmod 444 /tmp/readonly.txt; mkdir /tmp/restricted; chmod 555 /tmp/restricted");
    await b.importState(await a.exportState());
    assert.deepEqual([(await b.stat("/tmp/readonly.txt")).permissions, (await b.stat("/tmp/restricted")).permissions], [0o444, 0o555]);
  },
  async "importState overwrites existing files"({ open, assert }) {
    const a = await open(), b = await open();
    await a.writeFile("/tmp/overwrite.txt", bytes("original"));
    await b.writeFile("/tmp/overwrite.txt", bytes("should-be-overwritten"));
    await b.importState(await a.exportState());
    assert.equal(text(await b.readFile("/tmp/overwrite.txt")), "original");
  },

  async "FsBackend: save/load round-trip"({ cordon, assert }) {
    await inFolder(async (folder) => {
      const b = new cordon.FsBackend(join(folder, "deep"));
      await b.save("test-ns", new Uint8Array([1, 2, 3]));
      assert.deepEqual([...await b.load("test-ns")], [1, 2, 3]);
      assert.equal((await stat(join(folder, "deep"))).mode & 0o777, 0o700);
      assert.equal((await stat(join(folder, "deep", "test-ns.state"))).mode & 0o777, 0o600);
    });
  },
  async "FsBackend: load returns null for missing namespace"({ cordon, assert }) {
    await inFolder(async (folder) => assert.equal(await new cordon.FsBackend(folder).load("nonexistent"), null));
  },
  async "FsBackend: delete removes persisted state, and is idempotent"({ cordon, assert }) {
    await inFolder(async (folder) => {
      const b = new cordon.FsBackend(folder);
      await b.save("del-test", new Uint8Array([99]));
      await b.delete("del-test");
      await b.delete("del-test");
      assert.equal(await b.load("del-test"), null);
    });
  },
  async "FsBackend: sanitizes namespace to safe characters"({ cordon, assert }) {
    await inFolder(async (folder) => {
      const b = new cordon.FsBackend(folder);
      for (const [i, ns] of ["ns/with:bad chars!", "ns_with_bad_chars_", "../../up"].entries()) await b.save(ns, new Uint8Array([i]));
      assert.deepEqual([...await b.load("ns/with:bad chars!"), ...await b.load("ns_with_bad_chars_"), ...await b.load("../../up")], [0, 1, 2]);
    });
  },
  async "FsBackend: isolates different namespaces"({ cordon, assert }) {
    await inFolder(async (folder) => {
      const b = new cordon.FsBackend(folder);
      await b.save("ns-a", new Uint8Array([1]));
      await b.save("ns-b", new Uint8Array([2]));
      assert.deepEqual([...await b.load("ns-a"), ...await b.load("ns-b")], [1, 2]);
    });
  },

  async "persistent mode: write, autosave, restore in new sandbox"({ open, cordon, assert }) {
    const backend = watched(cordon), saved = backend.next();
    const first = await open({ persistence: { mode: "persistent", namespace: "integ", autosaveMs: 20, backend } });
    await first.writeFile("/tmp/persist.txt", bytes("persisted"));
    await saved; // nobody asked for it
    const again = backend.next();
    await first.run("export PERSIST_KEY=persist_val");
    await again;
    await first.destroy();
    const second = await open({ persistence: { mode: "persistent", namespace: "integ", backend } });
    assert.equal(text(await second.readFile("/tmp/persist.txt")), "persisted");
    assert.equal(await second.getEnv("PERSIST_KEY"), "persist_val");
    const other = await open({ persistence: { mode: "persistent", namespace: "other", backend } });
    await assert.rejects(other.stat("/tmp/persist.txt"));
  },
  async "dispose flushes pending save"({ open, cordon, assert }) {
    const backend = new cordon.MemoryBackend();
    const sb = await open({ persistence: { mode: "persistent", namespace: "flush", autosaveMs: 3600000, backend } });
    await sb.writeFile("/tmp/flush.txt", bytes("flush-me"));
    assert.equal(await backend.load("flush"), null);
    await sb.destroy();
    assert.notEqual(await backend.load("flush"), null);
  },
  async "session mode: manual save/load"({ open, cordon, assert }) {
    const backend = new cordon.MemoryBackend(), persistence = { mode: "session", namespace: "sess", backend };
    const a = await open({ persistence });
    await a.writeFile("/tmp/session.txt", bytes("session-data"));
    await a.saveState();
    const b = await open({ persistence });
    await assert.rejects(b.stat("/tmp/session.txt"));
    assert.equal(await b.loadState(), true);
    assert.equal(text(await b.readFile("/tmp/session.txt")), "session-data");
  },
  async "load returns false when no persisted state exists"({ open, cordon, assert }) {
    assert.equal(await (await open({ persistence: { mode: "session", backend: new cordon.MemoryBackend() } })).loadState(), false);
  },
  async "gracefully handles backend errors on load"({ open, assert }) {
    const backend = { save: async () => {}, delete: async () => {}, load: () => { throw new Error("disk on fire"); } };
    assert.equal(await (await open({ persistence: { mode: "session", backend } })).loadState(), false);
  },
  async "ephemeral mode: save/load throws"({ open, assert }) {
    for (const sb of [await open(), await open({ persistence: { mode: "ephemeral" } })])
      for (const use of ["saveState", "loadState", "clearPersistedState"]) await assert.rejects(sb[use](), NOT_CONFIGURED);
  },
  async "clearPersistedState removes saved data"({ open, cordon, assert }) {
    const backend = new cordon.MemoryBackend();
    const sb = await open({ persistence: { mode: "session", namespace: "clear", backend } });
    await sb.saveState();
    assert.notEqual(await backend.load("clear"), null);
    await sb.clearPersistedState();
    assert.equal(await backend.load("clear"), null);
  },
  async "an unknown mode is refused"({ open, assert }) {
    await assert.rejects(open({ persistence: { mode: "forever" } }), /persistence\.mode must be/);
  },

  async "offload and rehydrate with storage"({ open, assert }) {
    const storage = shelf(), sb = await open({ storage, mounts: [{ path: "/mnt/m", files: { x: "mounted\n" } }] });
    await sb.writeFile("/tmp/work.txt", bytes("hello\n"));
    await sb.setEnv("SET", "by host");
    await sb.run("export EXPORTED='by command'");
    const id = sb.sessionId;
    await sb.offload();
    await sb.offload();
    assert.deepEqual(storage.calls, [["save", id]]);
    assert.ok(storage.kept.get(id) instanceof Uint8Array);
    await assert.rejects(sb.readFile("/tmp/work.txt"), { message: "Sandbox is offloaded — call rehydrate() first" });
    await assert.rejects(sb.run("true"), /offloaded/);
    await sb.rehydrate();
    await sb.rehydrate();
    assert.deepEqual(storage.calls, [["save", id], ["load", id]]);
    assert.equal((await sb.run('cat /tmp/work.txt /mnt/m/x; echo "$SET, $EXPORTED"')).stdout, "hello\nmounted\nby host, by command\n");
    assert.equal(sb.sessionId, id);
  },
  async "a save that fails keeps the sandbox active"({ open, assert }) {
    const sb = await open({ storage: { save: async () => { throw new Error("disk full"); }, load: async () => null } });
    await sb.writeFile("/tmp/a", bytes("a"));
    await assert.rejects(sb.offload(), /disk full/);
    assert.equal((await sb.run("cat /tmp/a")).stdout, "a");
  },
  async "a load that fails can be tried again"({ open, assert }) {
    const storage = shelf(), sb = await open({ storage });
    await sb.writeFile("/tmp/a", bytes("a"));
    await sb.offload();
    const good = storage.kept.get(sb.sessionId);
    storage.kept.set(sb.sessionId, new Uint8Array(3));
    await assert.rejects(sb.rehydrate(), /Invalid state blob: too short/);
    await assert.rejects(sb.run("true"), /offloaded/);
    storage.kept.set(sb.sessionId, good);
    await sb.rehydrate();
    assert.equal((await sb.run("cat /tmp/a")).stdout, "a");
  },
  async "Cannot offload while a command is running"({ open, assert }) {
    const sb = await open({ storage: shelf(), security: { limits: { stdoutBytes: 1 << 16 } } });
    let began;
    const begin = new Promise((resolve) => (began = resolve));
    const run = sb.run("seq 1 999999999", { onStdout: began });
    await begin;
    await assert.rejects(sb.offload(), { message: "Cannot offload while a command is running" });
    await sb.cancel();
    await run;
  },
  async "offload without storage throws"({ open, assert }) {
    await assert.rejects((await open()).offload(), /No storage callbacks configured/);
  },
  async "offload without storage keeps the state here"({ open, assert }) {
    const sb = await open();
    await sb.run("export A=a; echo b > f");
    await sb.offload();
    await assert.rejects(sb.run("true"), /offloaded/);
    await sb.rehydrate();
    assert.equal((await sb.run("echo $A; cat f")).stdout, "a\nb\n");
  },
};

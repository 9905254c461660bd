// Where a sandbox keeps its state between programs: save(namespace, state), load(namespace), delete(namespace).
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { rare, toBuffer } from "./options.js";

/** In this program's memory. */
export class MemoryBackend {
  #states = new Map();
  async save(namespace, state) {
    this.#states.set(namespace, new Uint8Array(toBuffer(state)));
  }
  async load(namespace) {
    return this.#states.get(namespace) ?? null;
  }
  async delete(namespace) {
    this.#states.delete(namespace);
  }
}

/** A namespace is a file name. One that has other characters gets a digest too, so that no two are the same. */
function fileName(namespace) {
  const plain = namespace.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 100);
  return (plain === namespace ? plain : `${plain}-${rare("node:crypto").createHash("sha256").update(namespace).digest("hex").slice(0, 16)}`) + ".state";
}

/** A file each in a folder of the user's own: $XDG_DATA_HOME/cordon/persistence if none is named. */
export class FsBackend {
  #folder;
  constructor(folder = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "cordon", "persistence")) {
    this.#folder = folder;
  }
  #path(namespace) {
    return join(this.#folder, fileName(namespace));
  }
  async save(namespace, state) {
    const path = this.#path(namespace), part = `${path}.part-${rare("node:crypto").randomBytes(4).toString("hex")}`;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    try {
      await writeFile(part, toBuffer(state), { flag: "wx", mode: 0o600 });
      await rename(part, path); // whole, or not at all
    } catch (e) {
      await rm(part, { force: true });
      throw e;
    }
  }
  async load(namespace) {
    try {
      return new Uint8Array(await readFile(this.#path(namespace)));
    } catch (e) {
      if (e.code === "ENOENT") return null;
      throw e;
    }
  }
  async delete(namespace) {
    await rm(this.#path(namespace), { force: true });
  }
}

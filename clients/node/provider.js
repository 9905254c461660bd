// Files of the host for mount(): by value, or from a provider.
import { toBuffer } from "./options.js";

const FILES_MAX = 10000, DEPTH_MAX = 64;

const TEXTS = { ENOENT: "no such file or directory", EISDIR: "is a directory", ENOTDIR: "not a directory" };
const fault = (code, path) => Object.assign(new Error(`${code}: ${TEXTS[code]}: ${path}`), { code });
const plain = (path) => path.split("/").filter((part) => part && part !== ".").join("/");

/** Files by name, with addFile(); read-only unless { writable: true }. */
export class HostMount {
  #files = new Map();
  constructor(files = {}, { writable = false } = {}) {
    this.writable = writable;
    for (const [path, data] of Object.entries(files)) this.addFile(path, data);
  }
  addFile(path, data) {
    this.#files.set(plain(path), new Uint8Array(toBuffer(data)));
  }
  readFile(path) {
    const data = this.#files.get(plain(path));
    if (!data) throw fault(this.exists(path) ? "EISDIR" : "ENOENT", path);
    return data;
  }
  writeFile(path, data) {
    if (!this.writable) throw Object.assign(new Error("EROFS: read-only mount"), { code: "EROFS" });
    this.addFile(path, data);
  }
  exists(path) {
    const name = plain(path);
    return !name || this.#files.has(name) || [...this.#files.keys()].some((f) => f.startsWith(name + "/"));
  }
  stat(path) {
    const data = this.#files.get(plain(path));
    if (data) return { type: "file", size: data.length };
    if (!this.exists(path)) throw fault("ENOENT", path);
    return { type: "dir", size: this.readdir(path).length };
  }
  readdir(path) {
    const name = plain(path), under = name ? name + "/" : "", found = new Map();
    if (!this.exists(path)) throw fault("ENOENT", path);
    if (this.#files.has(name)) throw fault("ENOTDIR", path);
    for (const f of this.#files.keys()) {
      if (!f.startsWith(under)) continue;
      const [first, ...rest] = f.slice(under.length).split("/");
      found.set(first, { name: first, type: rest.length ? "dir" : "file" });
    }
    return [...found.values()];
  }
}

const isProvider = (x) => typeof x?.readFile === "function" && typeof x?.readdir === "function";

async function walk(provider, at, depth, ret) {
  if (depth > DEPTH_MAX) throw new RangeError(`a provider's directories are deeper than ${DEPTH_MAX}: ${at}`);
  for (const { name, type } of await provider.readdir(at)) {
    if (!name || name === "." || name === ".." || name.includes("/")) throw new TypeError(`a provider lists '${name}', which is no file name`);
    const path = at ? `${at}/${name}` : name;
    if (type === "dir") await walk(provider, path, depth + 1, ret);
    else if (Object.keys(ret).length >= FILES_MAX) throw new RangeError(`a provider has more than ${FILES_MAX} files`);
    else ret[path] = await provider.readFile(path);
  }
  return ret;
}

/** { name: bytes } of files by value, or of what a provider has now. */
export async function filesOf(files) {
  return isProvider(files) ? walk(files, "", 0, {}) : files;
}

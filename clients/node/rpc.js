// The connection to `cordon rpc`, or to a `cordon serve`: one message a line.
import { spawn } from "node:child_process";
import { createConnection } from "node:net";
import { parse } from "./cordon_values.mjs";
import { refuseUnknown } from "./options.js";
import { carriedProgram } from "./program.js";
import { byValue, findServer, Link } from "./remote.js";
import { Json } from "./values.js";

const LINE_MAX = 8 << 20, EARLY_MAX = 1000;

/** The text of a message: as JSON.stringify, with values that are text already. */
function write(v) {
  if (v instanceof Json) return v.text;
  if (Array.isArray(v)) return `[${v.map((x) => write(x) ?? "null").join()}]`;
  if (v === null || typeof v !== "object" || typeof v.toJSON === "function") return JSON.stringify(v);
  const fields = Object.entries(v).map(([k, x]) => [JSON.stringify(k), write(x)]);
  return `{${fields.filter(([, x]) => x !== undefined).map(([k, x]) => `${k}:${x}`).join()}}`;
}

/** Cordon could not do what it was asked to. kind: "denied", "limit", "not_found", "state", ... */
export class RpcError extends Error {
  constructor(code, message, data = {}) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.kind = data?.code ?? "";
    this.errno = data?.errno;
  }
}

/** The server is gone, and all its sessions with it. */
export class ConnectionLost extends Error {
  constructor(message) {
    super(message);
    this.name = "ConnectionLost";
  }
}

/** A server of one's own, (socketPath) the one that listens at a Unix socket, or (server, key, caFile) a `cordon serve`. */
export class Connection {
  #pending = new Map();
  #last = 0;
  #sent = 0; // lines
  #chunks = [];
  #attached = null; // the message whose binary columns are being read: { m, data, at }
  #lost = null;
  #out;
  #child = null;
  #end;
  #isRemote = false;
  shareName = ""; // connections with the same one go to the same server; "": the local program
  sessions = 0;
  owners = new Map(); // by session: { tools, onNote }
  #early = []; // events of sessions whose id is not known yet

  constructor(options = {}) {
    refuseUnknown(options, ["program", "args", "socketPath", "server", "key", "caFile"], "Connection");
    const { program, args, socketPath, server, key, caFile } = options;
    let input;
    if (server !== undefined && (program || args || socketPath)) throw new TypeError("the option server excludes program, args and socketPath");
    const address = program || args || socketPath ? null : findServer({ server, key, caFile });
    if (address) {
      this.#isRemote = true;
      this.shareName = address.shareName;
      this.#out = new Link(address, (data) => this.#take(data), (why) => this.#lose(why));
      this.#hold(false);
      return;
    }
    if (socketPath) {
      const socket = createConnection(socketPath);
      this.#out = input = socket;
      socket.on("error", (e) => this.#lose(e.message));
      this.#end = new Promise((resolve) => socket.on("close", resolve));
    } else {
      this.#child = spawn(program ?? process.env.CORDON ?? carriedProgram() ?? "cordon", ["rpc", ...(args ?? [])], { stdio: ["pipe", "pipe", "inherit"] });
      this.#child.on("error", (e) => this.#lose(e.code === "ENOENT"
        ? "the program 'cordon' was not found: install it, or name it in the environment variable CORDON" : e.message));
      this.#out = this.#child.stdin;
      input = this.#child.stdout;
      this.#end = new Promise((resolve) => this.#child.on("close", resolve));
    }
    this.#out.on("error", () => this.#lose("the server is gone"));
    input.on("data", (data) => this.#take(data));
    input.on("end", () => this.#lose("the server is gone"));
    this.#hold(false);
  }

  get isAlive() {
    return this.#lost === null;
  }

  get pid() {
    return this.#child?.pid;
  }

  /** A program with nothing else to do may end while a connection is idle. */
  #hold(on) {
    for (const x of this.#child ? [this.#child, this.#child.stdin, this.#child.stdout] : [this.#out]) {
      if (on) x.ref?.();
      else x.unref?.();
    }
  }

  #send(message, parts = []) {
    const line = write(message);
    if (line.length > LINE_MAX || Buffer.byteLength(line) > LINE_MAX)
      throw new RangeError(`the request has ${Buffer.byteLength(line)} bytes; at most ${LINE_MAX} can be sent at once`);
    this.#sent++;
    if (this.#out.destroyed) return;
    this.#out.write(line + "\n");
    for (const part of parts) this.#out.write(part);
  }

  request(method, params = {}, options = {}) {
    const ask = (m, p, columns) => this.#request(m, p, { ...options, columns });
    return (this.#isRemote && byValue(method, params, ask)) || this.#request(method, params, options);
  }

  #request(method, params, { onNote, owner, signal, columns }) {
    if (this.#lost) return Promise.reject(this.#error());
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.#send({ jsonrpc: "2.0", id, attachment: columns?.bytes, method, params }, columns?.parts);
      const abort = () => this.#lost || this.#send({ jsonrpc: "2.0", method: "cancel", params: { request_id: id } });
      signal?.addEventListener("abort", abort, { once: true });
      if (this.#pending.size === 0) this.#hold(true);
      this.#pending.set(id, { onNote, owner, line: this.#sent, done: () => signal?.removeEventListener("abort", abort), resolve, reject });
    });
  }

  /** Without waiting; what cannot be sent is dropped. */
  notify(method, params) {
    if (!this.#lost) this.#send({ jsonrpc: "2.0", method, params });
  }

  #settle(id) {
    const p = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#hold(false);
    p?.done();
    return p;
  }

  /** The binary columns that follow a line. How many bytes of the data belong to them. */
  #attach(data) {
    const a = this.#attached, n = Math.min(data.length, a.data.length - a.at);
    a.data.set(data.subarray(0, n), a.at);
    a.at += n;
    if (a.at === a.data.length) {
      this.#attached = null;
      a.m.result.buffer.data = a.data.buffer;
      this.#handle(a.m);
    }
    return n;
  }

  #take(data) {
    let start = this.#attached ? this.#attach(data) : 0;
    for (let end; !this.#attached && (end = data.indexOf(10, start)) >= 0;) {
      const part = data.subarray(start, end);
      const line = this.#chunks.length ? Buffer.concat([...this.#chunks, part]) : part;
      this.#chunks = [];
      start = end + 1;
      const m = parse(line.toString());
      if (m.attachment) {
        this.#attached = { m, data: new Uint8Array(m.attachment), at: 0 };
        start += this.#attach(data.subarray(start));
      } else {
        this.#handle(m);
      }
    }
    if (!this.#attached && start < data.length) this.#chunks.push(data.subarray(start));
  }

  /** The request that the server could not read: its answer has no id, but the line. */
  #unread(m) {
    const line = m.error?.data?.line;
    for (const [id, p] of this.#pending) if (line && p.line === line) return id;
    return undefined;
  }

  #handle(m) {
    if (m.method === undefined) {
      const p = this.#settle(m.id ?? this.#unread(m));
      if (m.error) p?.reject(new RpcError(m.error.code, m.error.message, m.error.data));
      else p?.resolve(m.result);
      return;
    }
    const pending = this.#pending.get(m.params.request_id);
    const owner = this.owners.get(m.params.session ?? m.params.session_id) ?? pending?.owner;
    if (m.method === "tool.call") this.#call(m, owner);
    else if (m.method === "approval" && !owner?.onNote) // nobody decides: a no
      this.#send({ jsonrpc: "2.0", method: "approval.resolve", params: { session: m.params.session, id: m.params.id, allow: false } });
    else if (m.method === "output") pending?.onNote?.(m.params);
    else if (owner?.onNote) owner.onNote(m.method, m.params);
    else if (m.params.session_id && this.#early.length < EARLY_MAX) this.#early.push(m);
  }

  /** From now on this is the session's owner; it learns what happened before its id was known. */
  adopt(session, owner) {
    this.owners.set(session, owner);
    const early = this.#early.filter((m) => m.params.session_id === session);
    this.#early = this.#early.filter((m) => m.params.session_id !== session);
    for (const m of early) owner.onNote?.(m.method, m.params);
  }

  async #call(m, owner) {
    let reply;
    try {
      if (!owner?.callTool) throw new Error("no such tool here");
      reply = { result: { value: await owner.callTool(m.params.tool, m.params.args) } };
      if (write(reply).length > LINE_MAX - 100) throw new RangeError("the tool's value is too large");
    } catch (e) {
      reply = { error: { code: 1, message: String(e?.message ?? e) } };
    }
    if (!this.#lost) this.#send({ jsonrpc: "2.0", id: m.id, ...reply });
  }

  #lose(why) {
    if (this.#lost) return;
    this.#lost = why;
    for (const id of [...this.#pending.keys()]) this.#settle(id)?.reject(this.#error());
  }

  #error() {
    return this.#lost instanceof Error ? this.#lost : new ConnectionLost(this.#lost);
  }

  /** Ends the server and all that it owns. */
  async close() {
    const wasLost = this.#lost;
    this.#lose("the connection is closed");
    this.#out.end('{"jsonrpc":"2.0","method":"kill"}\n'); // what still runs is not waited for
    if (this.#child && !wasLost) {
      this.#hold(true);
      const timer = setTimeout(() => this.#child.kill("SIGKILL"), 5000);
      await this.#end;
      clearTimeout(timer);
    }
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

// Run untrusted code in a sandbox.
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve as resolvePath } from "node:path";
import { Connection, ConnectionLost, RpcError } from "./rpc.js";
import { decode, encode, NDArray, valueText } from "./values.js";

export { Connection, ConnectionLost, decode, encode, NDArray, RpcError };

const PIECE = 4 << 20, SESSIONS_MAX = 64;
const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

/** The code failed; `result` has everything that is known about it. */
export class ExecutionError extends Error {
  constructor(result) {
    super(`${result.errorKind}: ${result.error}`);
    this.name = "ExecutionError";
    this.result = result;
    this.kind = result.errorKind;
  }
}

const hub = [];

/** Sessions that name no connection share one per process, and one more whenever it is full. */
function shared() {
  for (let i = hub.length - 1; i >= 0; i--) if (!hub[i].isAlive) hub.splice(i, 1);
  let c = hub.find((x) => x.sessions < SESSIONS_MAX);
  if (!c) hub.push((c = new Connection()));
  return c;
}

/** Ends the shared servers; a program that is done needs not call it. */
export async function shutdown() {
  await Promise.all(hub.splice(0).map((c) => c.close()));
}

const collected = new FinalizationRegistry(({ connection, id }) => {
  connection.sessions--;
  connection.owners.delete(id);
  connection.notify("session.close", { session: id });
});

function toResult(raw) {
  return {
    success: raw.success, value: decode(raw.result), text: raw.result_text, stdout: raw.stdout, stderr: raw.stderr,
    error: raw.error, errorKind: raw.error_kind, exitCode: raw.exit_code, executionTimeMs: raw.execution_time_ms,
    cpuTimeMs: raw.cpu_time_ms, memoryUsedMb: raw.memory_used_mb, truncated: raw.truncated,
    outputs: raw.outputs.map((o) => ({
      mime: o.mime, name: o.name, data: o.encoding === "base64" ? new Uint8Array(Buffer.from(o.data, "base64")) : o.data,
    })),
    toolCalls: raw.tool_calls, denials: raw.denials, warnings: raw.warnings, restarted: raw.restarted, assurance: raw.assurance,
    exception: raw.exception, raw,
  };
}

/** A tool from a function: tool({ name, description, args, approval, ... }, fn). fn gets an object with the arguments. */
export function tool(options, fn) {
  return { ...options, fn };
}

function toolList(tools) {
  if (!tools) return [];
  return Array.isArray(tools) ? tools : Object.entries(tools).map(([name, t]) => (typeof t === "function" ? { name, fn: t } : { name, ...t }));
}

function toolJson(t) {
  const j = { name: t.name, description: t.description ?? "", args: t.args, category: t.category, max_calls: t.maxCalls,
    timeout_ms: t.timeoutMs, result_bytes: t.resultBytes, argument_bytes: t.argumentBytes, approval: t.approval, command: t.command,
    usage: t.usage, examples: t.examples, python_package: t.pythonPackage };
  return Object.fromEntries(Object.entries(j).filter(([, v]) => v !== undefined));
}

/** What is misspelt might be what the caller relies on. */
function refuseUnknown(options, known, where) {
  for (const key of Object.keys(options)) if (!known.includes(key)) throw new TypeError(`${where} has no option '${key}'; there are: ${known.join(", ")}`);
}

const OPEN = ["guest", "level", "policy", "tools", "env", "set", "workspace", "cold", "onAudit", "onApproval", "verbose", "connection"];
const EXECUTE = ["context", "stdin", "timeoutMs", "toolCalls", "validate", "onStdout", "onStderr", "signal"];

function openParams({ guest = "python", level, policy, tools, env, set, workspace, cold, onAudit, verbose }, more = {}) {
  const params = { guest, level, policy, env, set, workspace, cold, audit: onAudit ? true : undefined, verbose: verbose ? true : undefined, ...more };
  const listed = toolList(tools);
  if (listed.length) params.tools = listed.map(toolJson);
  return Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined));
}

function milliseconds(ms) {
  if (typeof ms !== "number" || !(ms > 0)) throw new RangeError(`timeoutMs must be a positive number, not ${String(ms)}`);
  return ms === Infinity ? null : Math.ceil(Math.min(ms, 2 ** 40)); // null: none
}

function executeParams(code, options, more = []) {
  refuseUnknown(options, [...EXECUTE, ...more], "execute");
  const { context, stdin, timeoutMs, toolCalls, validate, onStdout, onStderr, waitMs } = options;
  const params = { code, tool_calls: toolCalls, validate, wait_ms: waitMs };
  if (context) params.context = Object.fromEntries(Object.entries(context).map(([k, v]) => [k, valueText(v)]));
  if (typeof stdin === "string") params.stdin = stdin;
  else if (stdin) params.stdin_base64 = Buffer.from(stdin).toString("base64");
  if (timeoutMs !== undefined) params.timeout_ms = milliseconds(timeoutMs);
  if (onStdout || onStderr) params.stream = true;
  return Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined));
}

function outputWatch({ onStdout, onStderr }) {
  return (p) => {
    try {
      (p.stream === "stdout" ? onStdout : onStderr)?.(p.data);
    } catch { /* what a handler does is no concern of the code that runs */ }
  };
}

function makeOwner(options, connection) {
  const table = new Map(toolList(options.tools).map((t) => [t.name, t]));
  const owner = {
    onNote(method, p) {
      if (method === "approval") decide(connection, owner, p);
      else if (method === "audit") owner.onAudit?.(p);
      else if (method === "log") tell(options.verbose, p);
    },
    onApproval: options.onApproval,
    onAudit: options.onAudit,
    callTool: async (name, args) =>
      valueText(await table.get(name).fn(Object.fromEntries(Object.entries(args).map(([k, v]) => [k, decode(v)])))),
  };
  return owner;
}

/** One line for what a session did: [cordon] sess_… tool_call tool=add call=1. */
function tell(verbose, { session_id, event, timestamp, ...rest }) {
  const more = Object.entries(rest).map(([k, v]) => ` ${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join("");
  // A name could steer the terminal.
  const line = `[cordon] ${session_id} ${event}${more}`.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
  if (typeof verbose === "function") verbose(line);
  else process.stderr.write(line + "\n");
}

/** Only true allows; a text says why not, { value } answers in the tool's place, everything else is a no. */
async function decide(connection, owner, p) {
  let verdict = false;
  try {
    verdict = (await owner.onApproval?.({ id: p.id, session: p.session, kind: p.kind, what: p.what, detail: p.detail })) ?? false;
  } catch (e) {
    verdict = String(e?.message ?? e);
  }
  const reply = { session: p.session, id: p.id, allow: verdict === true };
  if (typeof verdict === "string" && verdict) reply.reason = verdict;
  else if (verdict && typeof verdict === "object" && "value" in verdict) Object.assign(reply, { allow: true, value: valueText(verdict.value) });
  else if (verdict && verdict !== true) reply.reason = `what onApproval returned is no verdict (${typeof verdict})`;
  await connection.request("approval.resolve", reply).catch(() => {});
}

const absolute = (path) => (path.startsWith("/") ? path : "/home/user/" + path);
const toBuffer = (data) => (typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer ?? data, data.byteOffset, data.byteLength));

/** A session's files, also while it is busy. Paths are absolute, or beneath /home/user. */
class Files {
  #session;
  constructor(session) {
    this.#session = session;
  }
  #call(method, path, more = {}) {
    return this.#session.request("files." + method, { path: absolute(path), ...more });
  }
  async read(path) {
    const parts = [];
    for (let offset = 0; ;) {
      const r = await this.#call("read", path, { offset, length: PIECE });
      parts.push(Buffer.from(r.data, "base64"));
      offset += r.length;
      if (r.eof) return new Uint8Array(Buffer.concat(parts));
    }
  }
  async readText(path) {
    return Buffer.from(await this.read(path)).toString();
  }
  /** Replaces the file as a whole, whatever its size; parents are made. */
  async write(path, data) {
    const raw = toBuffer(data);
    const target = raw.length <= PIECE ? absolute(path) : `${absolute(path)}.part-${randomBytes(4).toString("hex")}`;
    try {
      for (let i = 0; i === 0 || i < raw.length; i += PIECE)
        await this.#call(i ? "append" : "write", target, { data: raw.subarray(i, i + PIECE).toString("base64") });
      if (target !== absolute(path)) await this.move(target, path);
    } catch (e) {
      if (target !== absolute(path)) await this.remove(target).catch(() => {});
      throw e;
    }
  }
  async append(path, data) {
    const raw = toBuffer(data);
    for (let i = 0; i === 0 || i < raw.length; i += PIECE)
      await this.#call("append", path, { data: raw.subarray(i, i + PIECE).toString("base64") });
  }
  async list(path = "/home/user") {
    return (await this.#call("list", path)).entries;
  }
  async stat(path) {
    return this.#call("stat", path);
  }
  async mkdir(path, { parents = false } = {}) {
    await this.#call("mkdir", path, { parents });
  }
  async move(from, to) {
    await this.#session.request("files.move", { from: absolute(from), to: absolute(to) });
  }
  async remove(path, { recursive = false } = {}) {
    await this.#call("remove", path, { recursive });
  }
}

async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), "cordon-"));
  try {
    return await work(join(folder, "state"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The id of a new session, which counts from the moment it is asked for. */
async function reserve(asked, method, params, options = {}, connection = asked) {
  connection.sessions++;
  try {
    return (await asked.request(method, params, options)).session;
  } catch (e) {
    connection.sessions--;
    throw e;
  }
}

/** One isolated place with state. */
export class Session {
  #connection;
  #owner;
  #open = true;

  /** Use Session.open(). */
  constructor(connection, id, owner, guest) {
    this.#connection = connection;
    this.#owner = owner;
    this.id = id;
    this.guest = guest;
    this.files = new Files(this);
    connection.adopt(id, owner);
    collected.register(this, { connection, id }, this);
  }

  static async open(options = {}) {
    if (typeof options === "string") options = { guest: options };
    refuseUnknown(options, OPEN, "Session.open");
    const connection = options.connection ?? shared();
    const owner = makeOwner(options, connection);
    const session = await reserve(connection, "session.open", openParams(options), { onNote: owner.onNote, owner });
    return new Session(connection, session, owner, options.guest ?? "python");
  }

  request(method, params = {}, options = {}) {
    if (!this.#open) return Promise.reject(new RpcError(-32600, "Session is not running.", { code: "state" }));
    return this.#connection.request(method, { ...params, session: this.id }, options);
  }

  /** Runs the code; never rejects for what the code does. options: context, stdin, timeoutMs, toolCalls, onStdout, onStderr, signal. */
  async execute(code, options = {}) {
    return toResult(await this.request("session.execute", executeParams(code, options), { onNote: outputWatch(options), signal: options.signal }));
  }

  /** The value of the code, or ExecutionError. */
  async run(code, options = {}) {
    const result = await this.execute(code, options);
    if (!result.success) throw new ExecutionError(result);
    return result.value;
  }

  async cancel() {
    return (await this.request("session.cancel")).cancelled;
  }
  async interrupt() {
    await this.request("session.interrupt");
  }
  async suspend() {
    await this.request("sandbox.suspend");
  }
  async resume() {
    await this.request("sandbox.resume");
  }
  async restart() {
    await this.request("session.restart");
  }
  async describe() {
    return this.request("session.describe");
  }
  async setenv(name, value) {
    await this.request("session.setenv", { name, value });
  }
  async snapshot(name) {
    return (await this.request("snapshot.create", name === undefined ? {} : { name })).name;
  }
  async restore(name) {
    await this.request("snapshot.restore", { name });
  }
  async removeSnapshot(name) {
    await this.request("snapshot.remove", { name });
  }
  async snapshots() {
    return (await this.request("snapshot.list")).snapshots;
  }
  /** An independent session with the same files, policy and tools. */
  async fork() {
    const session = await reserve(this, "session.fork", {}, {}, this.#connection);
    return new Session(this.#connection, session, this.#owner, this.guest);
  }
  async export() {
    try {
      return new Uint8Array(Buffer.from((await this.request("files.export")).data, "base64"));
    } catch (e) {
      if (e.kind !== "limit") throw e; // more than fits into an answer
      return await inFolder(async (path) => {
        await this.exportTo(path);
        return new Uint8Array(await readFile(path));
      });
    }
  }
  async exportTo(path) {
    await this.request("files.export", { to: resolvePath(path) });
  }
  async import(blob) {
    const raw = toBuffer(blob);
    if (raw.length <= PIECE) return (await this.request("files.import", { data: raw.toString("base64") })).report;
    return inFolder(async (path) => { // more than fits into a request
      await writeFile(path, raw, { mode: 0o600 });
      return this.importFrom(path);
    });
  }
  async importFrom(path) {
    return (await this.request("files.import", { from: resolvePath(path) })).report;
  }
  /** Ends everything in it; more than once is harmless. */
  async close() {
    if (!this.#open) return;
    this.#open = false;
    collected.unregister(this);
    this.#connection.sessions--;
    if (this.#connection.isAlive) {
      const answer = await this.#connection.request("session.close", { session: this.id }).catch(() => ({}));
      // The workspace was not saved, or the audit log lacks lines.
      for (const lost of answer?.warnings ?? []) process.emitWarning(lost);
    }
    this.#connection.owners.delete(this.id);
  }
  async [dispose]() {
    await this.close();
  }
}

/** Sessions made ahead of time: execute() takes any idle one, which is replaced by a clean one afterwards. */
export class Pool {
  #connection;
  #owner;
  #open = true;

  constructor(connection, id, owner, guest) {
    this.#connection = connection;
    this.#owner = owner;
    this.id = id;
    this.guest = guest;
  }

  static async open(options = {}) {
    refuseUnknown(options, [...OPEN, "size", "maxSize", "reuse"], "Pool.open");
    const connection = options.connection ?? shared();
    const { size = 4, maxSize, reuse } = options;
    const { pool } = await connection.request("pool.open", openParams(options, { size, max_size: maxSize, reuse }));
    return new Pool(connection, pool, makeOwner(options, connection), options.guest ?? "python");
  }

  /** waitMs: how long to wait for an idle session; 0: rejected at once. */
  async execute(code, options = {}) {
    if (!this.#open) throw new RpcError(-32600, "Pool is closed.", { code: "state" });
    const params = { pool: this.id, ...executeParams(code, options, ["waitMs"]) };
    return toResult(await this.#connection.request("pool.execute", params, { onNote: outputWatch(options), owner: this.#owner, signal: options.signal }));
  }

  async run(code, options = {}) {
    const result = await this.execute(code, options);
    if (!result.success) throw new ExecutionError(result);
    return result.value;
  }

  async acquire(waitMs = 0) {
    const session = await reserve(this.#connection, "pool.acquire", { pool: this.id, wait_ms: waitMs });
    return new Session(this.#connection, session, this.#owner, this.guest);
  }

  async status() {
    return this.#open ? this.#connection.request("pool.status", { pool: this.id }) : { total: 0, busy: 0, idle: 0, dead: 0 };
  }

  async close() {
    if (!this.#open) return;
    this.#open = false;
    if (this.#connection.isAlive) await this.#connection.request("pool.close", { pool: this.id }).catch(() => {});
  }
  async [dispose]() {
    await this.close();
  }
}

const CLASSES = { timeout: "TIMEOUT", cancelled: "CANCELLED", denied: "CAPABILITY_DENIED", memory: "LIMIT_EXCEEDED", cpu: "LIMIT_EXCEEDED",
  processes: "LIMIT_EXCEEDED", file_size: "LIMIT_EXCEEDED", disk: "LIMIT_EXCEEDED", output: "LIMIT_EXCEEDED" };
const STATUS = { timeout: 124, cancelled: 125, denied: 126, memory: 137, cpu: 137 };

const CREATE = ["guest", "timeoutMs", "fsLimitBytes", "mounts", "extensions", "security", "network", "pythonPath", "env", "policy", "level",
  "connection", "wasmDir", "adapter", "shellExecWasmPath"]; // the last three say where codepod finds its programs: nothing here
const LIMITS = { timeoutMs: "timeout_ms", stdoutBytes: "stdout_bytes", stderrBytes: "stderr_bytes", fsBytes: "fs_bytes", fileCount: "file_count",
  commandBytes: "command_bytes", rpcBytes: "rpc_bytes", memoryBytes: "memory_bytes" };

function sandboxPolicy({ timeoutMs = 30000, fsLimitBytes = 256 << 20, security = {}, network, policy = {} }, entries) {
  refuseUnknown(security, ["toolAllowlist", "limits", "onAuditEvent", "hardKill"], "security");
  refuseUnknown(security.limits ?? {}, Object.keys(LIMITS), "security.limits");
  const all = { timeout_ms: timeoutMs, fs_bytes: fsLimitBytes };
  for (const [name, value] of Object.entries(security.limits ?? {})) all[LIMITS[name]] = value;
  if (security.toolAllowlist) all.commands = security.toolAllowlist;
  if (network) {
    refuseUnknown(network, ["allowedHosts", "blockedHosts", "onRequest"], "network");
    all.network = { allow: network.allowedHosts ?? [], block: network.blockedHosts ?? [] };
    if (network.onRequest) all.network.ask = true;
  }
  const fixed = entries.filter((e) => !e.writable);
  if (fixed.length) all.mounts = fixed.map((e) => ({ guest: e.guest, bytes_base64: e.data.toString("base64") }));
  return { ...all, ...policy };
}

/** A request that waits at the gateway, as codepod's onRequest sees it. */
async function asRequest({ kind, detail }, onRequest) {
  if (kind !== "network") return false;
  const { host, port, path, tls, method, headers } = detail;
  const scheme = tls || port === 443 ? "https" : "http";
  const where = port === (scheme === "https" ? 443 : 80) ? host : `${host}:${port}`;
  return (await onRequest({ url: `${scheme}://${where}${path ?? "/"}`, method, headers: headers ?? {} })) === true; // of a tunnel, what is seen
}

function extensionTool(e) {
  if (typeof e.command !== "function") throw new TypeError(`the extension '${e.name}' has no command`);
  return {
    name: e.name, description: e.description, category: e.category, usage: e.usage, examples: e.examples,
    pythonPackage: e.pythonPackage?.files, command: true,
    fn: async ({ args = [], stdin = "", ...more }) => {
      const r = (await e.command({ args, stdin, ...more })) ?? "";
      return typeof r === "string" ? { stdout: r, stderr: "", exit_code: 0 }
        : { stdout: r.stdout ?? "", stderr: r.stderr ?? "", exit_code: r.exitCode ?? 0 };
    },
  };
}

/** A shell with files, snapshots and forks, under codepod's names. */
export class Sandbox {
  #session;
  #destroyed = false;
  #env;
  #history = [];
  #variables = new Map(); // of each snapshot

  constructor(session, env = {}) {
    this.#session = session;
    this.#env = env;
  }

  /** options: guest ("sh" or "pod"), timeoutMs, fsLimitBytes, mounts [{path, files, writable}], extensions, pythonPath, env, policy,
   * security {toolAllowlist, limits, onAuditEvent, hardKill}, network {allowedHosts, blockedHosts, onRequest}. */
  static async create(options = {}) {
    refuseUnknown(options, CREATE, "Sandbox.create");
    const { guest = "sh", mounts = [], extensions = [], network, pythonPath, env = {}, level, connection, security = {} } = options;
    const variables = pythonPath?.length ? { PYTHONPATH: pythonPath.join(":"), ...env } : { ...env };
    const entries = mounts.flatMap(({ path, files, writable = false }) =>
      Object.entries(files).map(([name, data]) => ({ guest: `${path}/${name}`, data: toBuffer(data), writable })));
    const session = await Session.open({ guest, level, policy: sandboxPolicy(options, entries), tools: extensions.map(extensionTool),
      env: variables, connection, onAudit: security.onAuditEvent, onApproval: network?.onRequest && ((a) => asRequest(a, network.onRequest)) });
    for (const e of entries) if (e.writable) await session.files.write(e.guest, e.data);
    return new Sandbox(session, variables);
  }

  get #live() {
    if (this.#destroyed) throw new Error("Sandbox has been destroyed");
    return this.#session;
  }
  get sessionId() {
    return this.#session.id;
  }
  get files() {
    return this.#live.files;
  }

  async run(command, { onStdout, onStderr, timeoutMs, stdin, signal } = {}) {
    const live = this.#live;
    this.#history.push({ index: this.#history.length + 1, command, timestamp: Date.now() });
    let r;
    try {
      r = await live.execute(command, { onStdout, onStderr, timeoutMs, stdin, signal });
    } catch (e) {
      if (!(e instanceof RpcError) || !e.message.startsWith("Command too large")) throw e;
      return { exitCode: 1, stdout: "", stderr: "command too large\n", executionTimeMs: 0, truncated: { stdout: false, stderr: false },
        errorClass: "LIMIT_EXCEEDED" };
    }
    const note = r.errorKind === "timeout" ? "command timeout\n" : r.errorKind === "cancelled" ? "command cancelled\n" : "";
    return { exitCode: STATUS[r.errorKind] ?? r.exitCode, stdout: r.stdout, stderr: r.stderr + note, executionTimeMs: r.executionTimeMs,
      truncated: r.truncated, errorClass: CLASSES[r.errorKind] };
  }
  async cancel() {
    return this.#live.cancel();
  }
  async suspend() {
    await this.#live.suspend();
  }
  async resume() {
    await this.#live.resume();
  }
  async readFile(path) {
    return this.#live.files.read(path);
  }
  async writeFile(path, data) {
    await this.#live.files.write(path, data);
  }
  async readDir(path) {
    return (await this.#live.files.list(path)).map((e) => ({ ...e, type: e.type === "directory" ? "dir" : e.type }));
  }
  async mkdir(path) {
    await this.#live.files.mkdir(path);
  }
  async stat(path) {
    const s = await this.#live.files.stat(path);
    return { ...s, type: s.type === "directory" ? "dir" : s.type };
  }
  async rm(path, options) {
    await this.#live.files.remove(path, options);
  }
  async setEnv(name, value) {
    await this.#live.setenv(name, value);
    this.#env[name] = value;
  }
  getEnv(name) {
    return this.#env[name];
  }
  async snapshot() {
    const id = await this.#live.snapshot();
    this.#variables.set(id, { ...this.#env });
    return id;
  }
  async restore(id) {
    await this.#live.restore(id);
    this.#env = { ...this.#variables.get(id) };
  }
  async exportState() {
    return this.#live.export();
  }
  async importState(blob) {
    return this.#live.import(blob);
  }
  /** Files by value, read-only. Files and environment stay; what runs in it is started afresh, for mounts belong to the wall. */
  async mount(path, files) {
    const coded = Object.entries(files).map(([name, data]) => [name, toBuffer(data).toString("base64")]);
    await this.#live.request("mount", { path, files: Object.fromEntries(coded) });
  }
  /** Puts the files away and frees everything else, until rehydrate(). */
  async offload() {
    await this.#live.request("offload");
  }
  async rehydrate() {
    await this.#live.request("rehydrate");
  }
  getHistory() {
    return this.#history.map((h) => ({ ...h }));
  }
  clearHistory() {
    this.#history = [];
  }
  async fork() {
    return new Sandbox(await this.#live.fork(), { ...this.#env });
  }
  async destroy() {
    this.#destroyed = true;
    await this.#session.close();
  }
  async [dispose]() {
    await this.destroy();
  }
}

/** One shot: a fresh session, executed, and nothing left of it. */
export async function run(code, { guest, level, policy, tools, env, connection, ...options } = {}) {
  const s = await Session.open({ guest, level, policy, tools, env, connection });
  try {
    return await s.execute(code, options);
  } finally {
    await s.close();
  }
}

export const validate = (code, guest = "python", connection = shared()) => connection.request("validate", { code, guest });
export const policy = async (options = {}, connection = shared()) => (await connection.request("policy.show", options)).policy;
export const checkPolicy = (options = {}, connection = shared()) => connection.request("policy.check", options);

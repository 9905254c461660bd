// Run untrusted code in a sandbox.
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve as resolvePath } from "node:path";
import { ConnectFailed, findServer, KeyRefused, ServerBusy, ServerUnreachable } from "./remote.js";
import { Connection, ConnectionLost, RpcError } from "./rpc.js";
import { rare, refuseUnknown, toBuffer } from "./options.js";
import { isPossible, resolve, Writer } from "./cordon_columns.mjs";
import { decode, encode, Handle, NDArray, valueText } from "./values.js";

export { FsBackend, HostMount, MemoryBackend, Sandbox, SandboxPool } from "./sandbox.js";
export { ConnectFailed, Connection, ConnectionLost, KeyRefused, ServerBusy, ServerUnreachable, decode, encode, Handle, NDArray, RpcError };

const PIECE = 4 << 20, BLOCK = 8 << 20, SESSIONS_MAX = 64;
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

/** Sessions that name no connection share one per process and server, and one more whenever it is full. */
function shared({ server, key } = {}) {
  const name = findServer({ server, key })?.shareName ?? "";
  for (let i = hub.length - 1; i >= 0; i--) if (!hub[i].isAlive) hub.splice(i, 1);
  let c = hub.find((x) => x.shareName === name && x.sessions < SESSIONS_MAX);
  if (!c) hub.push((c = new Connection({ server, key })));
  return c;
}

/** The connection that was given, or the shared one to the server that was named. */
function linkOf({ connection, server, key }) {
  if (connection && (server !== undefined || key !== undefined))
    throw new TypeError("the option connection excludes server and key: name the server where the connection is made");
  return connection ?? shared({ server, key });
}

/** open("python", { server }) is open({ guest: "python", server }). Whatever else comes second would be lost. */
function withGuest(options, more, where) {
  if (typeof options === "string") return { ...more, guest: options };
  if (more !== undefined) throw new TypeError(`${where} takes one object of options, or the guest and an object`);
  return options;
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

/** The guest wrote it, so it may be nonsense. */
function valueOf(raw) {
  if (!raw.buffer) return decode(raw.result);
  try {
    return decode(resolve(raw.result, raw.buffer, raw.buffer.data));
  } catch (e) {
    throw new RpcError(-32600, `the guest sent a value that cannot be read: ${e.message}`, { code: "protocol" });
  }
}

function toResult(raw) {
  return {
    success: raw.success, value: valueOf(raw), text: raw.result_text, stdout: raw.stdout, stderr: raw.stderr,
    error: raw.error, errorKind: raw.error_kind, exitCode: raw.exit_code, executionTimeMs: raw.execution_time_ms,
    cpuTimeMs: raw.cpu_time_ms, memoryUsedMb: raw.memory_used_mb, truncated: raw.truncated,
    outputs: raw.outputs.map((o) => ({
      mime: o.mime, name: o.name, data: o.encoding === "base64" ? new Uint8Array(Buffer.from(o.data, "base64")) : o.data,
    })),
    toolCalls: raw.tool_calls, denials: raw.denials, warnings: raw.warnings, restarted: raw.restarted,
    restartReason: raw.restart_reason, assurance: raw.assurance, exception: raw.exception,
    startMs: raw.start_ms ?? 0, raw,
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

const OPEN = ["guest", "level", "policy", "tools", "env", "set", "workspace", "cold", "onAudit", "onApproval", "verbose", "connection",
  "languages", "packages", "server", "key"];
const EXECUTE = ["context", "variables", "language", "stdin", "timeoutMs", "toolCalls", "validate", "onStdout", "onStderr", "signal"];

/** A list is of the guest's language, and of Python for a shell; an object says which. */
async function installAll(session, packages, guest) {
  if (!packages) return;
  const lists = Array.isArray(packages) ? { [guest === "sh" ? "python" : guest]: packages } : packages;
  try {
    for (const [language, names] of Object.entries(lists)) if (names.length) await session.packages.install(names, { language });
  } catch (e) {
    await session.close().catch(() => {});
    throw e;
  }
}

function openParams({ guest = "python", level, policy, tools, env, set, workspace, cold, onAudit, verbose, languages }, more = {}) {
  if (typeof languages === "string") languages = [languages]; // one name needs no list around it
  const params = { guest, level, policy, env, set, workspace, cold, languages, audit: onAudit ? true : undefined, verbose: verbose ? true : undefined, ...more };
  const listed = toolList(tools);
  if (listed.length) params.tools = listed.map(toolJson);
  return Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined));
}

function milliseconds(ms) {
  if (typeof ms !== "number" || !(ms > 0)) throw new RangeError(`timeoutMs must be a positive number, not ${String(ms)}`);
  return ms === Infinity ? null : Math.ceil(Math.min(ms, 2 ** 40)); // null: none
}

const COLUMN_GUESTS = isPossible ? ["python", "r", "node"] : []; // they take large values as binary columns (docs/values.md)

function executeParams(code, options, guest, columns, more = []) {
  refuseUnknown(options, [...EXECUTE, ...more], "execute");
  const { stdin, timeoutMs, toolCalls, validate, onStdout, onStderr, waitMs } = options;
  const context = options.variables ?? (typeof options.context === "string" ? undefined : options.context);
  const params = { code, tool_calls: toolCalls, validate, wait_ms: waitMs };
  const isApart = COLUMN_GUESTS.includes(guest);
  if (context) params.context = Object.fromEntries(Object.entries(context).map(([k, v]) => [k, valueText(v, isApart ? columns : null)]));
  if (isApart) params.buffers = true;
  if (columns.bytes) params.buffer = columns.header;
  if (typeof stdin === "string") params.stdin = stdin;
  else if (stdin) params.stdin_base64 = Buffer.from(stdin).toString("base64");
  if (timeoutMs !== undefined) params.timeout_ms = milliseconds(timeoutMs);
  if (onStdout || onStderr) params.stream = true;
  return Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined));
}

function commandParams(command, options, more = []) {
  refuseUnknown(options, ["cwd", "env", "stdin", "timeoutMs", "onStdout", "onStderr", "signal", "pty", ...more], "command");
  const { cwd, env, pty, stdin, timeoutMs, onStdout, onStderr } = options;
  const { code, ...params } = executeParams("", { stdin, timeoutMs, onStdout, onStderr }, undefined, new Writer());
  return Object.fromEntries(Object.entries({ ...params, command, cwd, env, pty }).filter(([, v]) => v !== undefined));
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
    options,
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
const partOf = (path) => `${path}.part-${rare("node:crypto").randomBytes(4).toString("hex")}`;

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
    const target = raw.length <= PIECE ? absolute(path) : partOf(absolute(path));
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
  /** Copies a file of the host into the session, in constant memory. The file appears under its name when it is complete.
   *  onProgress(done, total) is called for each piece. */
  async upload(local, path, { onProgress, signal } = {}) {
    const from = resolvePath(local), part = partOf(absolute(path));
    try {
      await pieces((offset) => this.#call("upload", part, { from, offset, length: BLOCK }), onProgress, signal);
      await this.move(part, path);
    } catch (e) {
      await this.remove(part).catch(() => {});
      throw e;
    }
  }
  /** Copies a file of the session to the host, in constant memory. */
  async download(path, local, { onProgress, signal } = {}) {
    const target = resolvePath(local), to = partOf(target);
    await writeFile(to, "", { flag: "wx" });
    try {
      await pieces((offset) => this.#call("download", path, { to, offset, length: BLOCK }), onProgress, signal);
      await rename(to, target);
    } catch (e) {
      await rm(to, { force: true });
      throw e;
    }
  }
  /** Unpacks a tar file of the host into a directory of the session; returns what was skipped and why. */
  async putTar(path, tar) {
    return (await this.#call("put_tar", path, { from: resolvePath(tar) })).report;
  }
  /** Packs a directory of the session into a new tar file of the host; returns what was skipped and why. */
  async getTar(path, tar) {
    return (await this.#call("get_tar", path, { to: resolvePath(tar) })).report;
  }
  /** Watches a directory, also while code runs: `for await (const change of watch)`, or `await watch.changes(timeoutMs)`. */
  async watch(path = "/home/user", { recursive = true } = {}) {
    return new Watch(this.#session, (await this.#call("watch", path, { recursive })).watch);
  }
}

/** A watched directory: an async iterator of changes, which waits for the next one until close(). */
class Watch {
  #session;
  #number;
  #closed = false;
  constructor(session, number) {
    this.#session = session;
    this.#number = number;
  }
  /** What has changed since the last call: { path, change, type }. Waits for it, for at most so long. */
  async changes(timeoutMs = 0) {
    return (await this.#session.request("files.changes", { watch: this.#number, wait_ms: Math.max(0, Math.trunc(timeoutMs)) })).changes;
  }
  async *[Symbol.asyncIterator]() {
    while (!this.#closed) {
      try {
        yield* await this.changes(2000);
      } catch (e) {
        if (this.#closed) return;
        throw e;
      }
    }
  }
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    await this.#session.request("files.unwatch", { watch: this.#number }).catch(() => {});
  }
}

async function pieces(next, onProgress, signal) {
  for (let done = 0, isOver = false; !isOver;) {
    signal?.throwIfAborted();
    const r = await next(done);
    done += r.length;
    isOver = r.eof;
    await onProgress?.(done, Math.max(done, r.size));
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
  #whole; // of a context: its session
  #contexts = new Map();
  #others = []; // ids of the audit events of the sessions that took its place

  /** Use Session.open(). */
  constructor(connection, id, owner, guest, whole) {
    this.#connection = connection;
    this.#owner = owner;
    this.#whole = whole;
    this.id = id;
    this.guest = guest;
    this.files = new Files(this);
    connection.adopt(id, owner);
    if (!whole) collected.register(this, { connection, id }, this); // a context ends with its session
  }

  static async open(options = {}, more = undefined) {
    options = withGuest(options, more, "Session.open");
    refuseUnknown(options, OPEN, "Session.open");
    const connection = linkOf(options);
    const owner = makeOwner(options, connection);
    const session = await reserve(connection, "session.open", openParams(options), { onNote: owner.onNote, owner });
    const opened = new Session(connection, session, owner, options.guest ?? "python");
    await installAll(opened, options.packages, options.guest ?? "python");
    return opened;
  }

  /** Packages in the workspace, as far as the policy names them (docs/packages.md): install(names, { language, timeoutMs }). */
  get packages() {
    return {
      install: (names, { language = this.guest === "sh" ? "python" : this.guest, timeoutMs } = {}) =>
        this.request("session.install", { names: typeof names === "string" ? [names] : [...names], language,
          ...(timeoutMs === undefined ? {} : { timeout_ms: milliseconds(timeoutMs) }) }),
    };
  }

  request(method, params = {}, options = {}) {
    if (!this.#open || (this.#whole && !this.#whole.#open))
      return Promise.reject(new RpcError(-32600, "Session is not running.", { code: "state" }));
    return this.#connection.request(method, { ...params, session: this.id }, options);
  }

  /** A further interpreter in a session with `languages`: same files, processes and limits, a state of its own. The same language and
   * name give the same one; it can execute at the same time as others. */
  async context(language, name = "default") {
    const whole = this.#whole ?? this;
    const { session } = await whole.request("session.context", { language: language ?? whole.guest, context: name });
    if (session === whole.id) return whole;
    if (!whole.#contexts.has(session)) whole.#contexts.set(session, new Session(this.#connection, session, this.#owner, language ?? whole.guest, whole));
    return whole.#contexts.get(session);
  }

  /** Runs a command line for bash beside everything else. options: cwd, env, stdin, timeoutMs, onStdout, onStderr, signal. */
  async command(command, options = {}) {
    const params = commandParams(command, options);
    return toResult(await this.request("session.command", params, { onNote: outputWatch(options), owner: this.#owner, signal: options.signal }));
  }

  /** The same in the background. Without stdin, Process.write() gives it. */
  async start(command, options = {}) {
    return new Process(this, (await this.request("session.command", { ...commandParams(command, options), background: true })).process);
  }

  /** Lets the host connect to a port that the code listens on; the policy's `expose` must name it. Gives the path of a Unix socket, or
   * with hostPort (0: any free one) "127.0.0.1:PORT". options: hostPort, path. */
  async expose(port, options = {}) {
    refuseUnknown(options, ["hostPort", "path"], "expose");
    const params = { port, host_port: options.hostPort, path: options.path };
    return (await this.request("session.expose", Object.fromEntries(Object.entries(params).filter(([, v]) => v !== undefined)))).address;
  }

  async unexpose(port) {
    await this.request("session.unexpose", { port });
  }

  async exposed() {
    return (await this.request("session.exposed")).ports;
  }

  /** The commands in the background. */
  async processes() {
    return (await this.request("process.list")).processes;
  }

  /** Runs the code; never rejects for what the code does. options: language, context (a name, or variables), variables, stdin, timeoutMs,
   * toolCalls, onStdout, onStderr, signal. */
  async execute(code, options = {}) {
    if (options.language !== undefined || typeof options.context === "string") {
      const { language, context, ...rest } = options;
      const named = typeof context === "string";
      return (await this.context(language, named ? context : undefined)).execute(code, named ? rest : { ...rest, context });
    }
    const columns = new Writer(), params = executeParams(code, options, this.guest, columns);
    return toResult(await this.request("session.execute", params, { onNote: outputWatch(options), signal: options.signal,
      columns: columns.bytes ? columns : undefined }));
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
  /** An independent session with the same files, policy and tools. onAudit: it gets the events of the new one. */
  async fork({ onAudit } = {}) {
    const owner = onAudit ? makeOwner({ ...this.#owner.options, onAudit }, this.#connection) : this.#owner;
    const session = await reserve(this, "session.fork", {}, { owner }, this.#connection);
    return new Session(this.#connection, session, owner, this.guest);
  }
  /** Files by value, read-only: { name: bytes }. Files and environment stay; what runs in it is started afresh. */
  async mount(path, files) {
    const coded = Object.entries(files).map(([name, data]) => [name, toBuffer(data).toString("base64")]);
    this.#follow(await this.request("mount", { path, files: Object.fromEntries(coded) }));
  }
  /** Frees everything but the files, which the server keeps until rehydrate(). */
  async offload() {
    await this.request("offload");
  }
  async rehydrate() {
    this.#follow(await this.request("rehydrate"));
  }
  /** Another session took its place on the server, under the same id; its audit events have an id of their own. */
  #follow({ session_id }) {
    if (!session_id) return;
    this.#others.push(session_id);
    this.#connection.adopt(session_id, this.#owner);
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
    for (const id of this.#contexts.keys()) this.#connection.owners.delete(id);
    collected.unregister(this);
    if (this.#whole) this.#whole.#contexts.delete(this.id);
    else this.#connection.sessions--;
    if (this.#connection.isAlive) {
      const answer = await this.#connection.request("session.close", { session: this.id }).catch(() => ({}));
      // The workspace was not saved, or the audit log lacks lines.
      for (const lost of answer?.warnings ?? []) process.emitWarning(lost);
    }
    for (const id of [this.id, ...this.#others]) this.#connection.owners.delete(id);
  }
  async [dispose]() {
    await this.close();
  }
}

/** Sessions made ahead of time: execute() takes any idle one, which is replaced by a clean one afterwards. */
/** A command in the background; see Session.start(). It stays readable after its end. */
export class Process {
  #result; // the server keeps only the last ones
  constructor(session, id) {
    this.session = session;
    this.id = id;
  }
  /** Its result, as often as it is asked for. waitMs: if it still runs then, RpcError of kind "timeout". */
  async wait(waitMs) {
    const params = waitMs === undefined ? {} : { wait_ms: waitMs };
    return this.#result ??= toResult(await this.session.request("process.wait", { process: this.id, ...params }));
  }
  /** Ends it and what it started; nothing happens if it has ended. Its exit code is then 137. */
  async kill() {
    if (!this.#result) await this.session.request("process.kill", { process: this.id });
  }
  /** Writes to its stdin, as fast as it reads. timeoutMs: if it has not read everything then, RpcError of kind "timeout". Without one,
   *  this waits until the command reads or ends. */
  async write(data, { eof = false, timeoutMs } = {}) {
    let raw = toBuffer(data);
    const end = timeoutMs === undefined ? Infinity : performance.now() + timeoutMs;
    do {
      const piece = raw.subarray(0, 32768);
      const { written } = await this.session.request("process.write",
        { process: this.id, data: piece.toString("base64"), eof: eof && piece.length === raw.length });
      raw = raw.subarray(written);
      if (raw.length && !written && performance.now() >= end)
        throw new RpcError(-32004, `process ${this.id} does not read its stdin: ${raw.length} bytes were not written`, { code: "timeout" });
      if (raw.length && !written) await new Promise((r) => setTimeout(r, 10));
    } while (raw.length);
  }
  /** Of a command on a terminal (pty). */
  async resize(rows, columns) {
    await this.session.request("process.resize", { process: this.id, rows, columns });
  }
  /** "INT", "TERM", "HUP", … to its process group; on a terminal INT, QUIT and TSTP go to what is in the foreground. */
  async signal(name) {
    await this.session.request("process.signal", { process: this.id, signal: name });
  }
  /** On a terminal: types ^D. */
  async closeStdin() {
    await this.session.request("process.write", { process: this.id, eof: true });
  }
  /** What it has written so far; the last 256 KiB are kept. */
  async read(stream = "stdout", offset = 0) {
    try {
      const r = await this.session.request("process.output", { process: this.id, stream, offset });
      return new Uint8Array(Buffer.from(r.data, "base64"));
    } catch (e) {
      if (e.kind !== "not_found" || !this.#result) throw e;
      return new Uint8Array(Buffer.from(this.#result[stream]).subarray(offset)); // the server has forgotten it
    }
  }
  /** undefined: it still runs. */
  async exitCode() {
    try {
      return (await this.wait(0)).exitCode;
    } catch (e) {
      if (e.kind !== "timeout") throw e;
      return undefined;
    }
  }
  async isRunning() {
    return !this.#result && (await this.session.processes()).some((p) => p.process === this.id && p.state === "running");
  }
}

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

  static async open(options = {}, more = undefined) {
    options = withGuest(options, more, "Pool.open");
    refuseUnknown(options, [...OPEN, "size", "maxSize", "reuse"], "Pool.open");
    const connection = linkOf(options);
    const { size = 4, maxSize, reuse } = options;
    const { pool } = await connection.request("pool.open", openParams(options, { size, max_size: maxSize, reuse }));
    return new Pool(connection, pool, makeOwner(options, connection), options.guest ?? "python");
  }

  /** waitMs: how long to wait for an idle session; 0: rejected at once. */
  async execute(code, options = {}) {
    if (!this.#open) throw new RpcError(-32600, "Pool is closed.", { code: "state" });
    const columns = new Writer(), params = { pool: this.id, ...executeParams(code, options, this.guest, columns, ["waitMs"]) };
    return toResult(await this.#connection.request("pool.execute", params, { onNote: outputWatch(options), owner: this.#owner,
      signal: options.signal, columns: columns.bytes ? columns : undefined }));
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

/** One shot: a fresh session, executed, and nothing left of it. */
export async function run(code, given = {}) {
  refuseUnknown(given, ["guest", "level", "policy", "tools", "env", "connection", "server", "key", ...EXECUTE], "run");
  const { guest, level, policy, tools, env, connection, server, key, ...options } = given;
  const s = await Session.open({ guest, level, policy, tools, env, connection, server, key });
  try {
    return await s.execute(code, options);
  } finally {
    await s.close();
  }
}

export const validate = (code, guest = "python", connection = shared()) => connection.request("validate", { code, guest });
export const policy = async (options = {}, connection = shared()) => (await connection.request("policy.show", options)).policy;
export const checkPolicy = (options = {}, connection = shared()) => connection.request("policy.check", options);

// A shell with files, snapshots and forks, under codepod's names.
import { Process, Session } from "./index.js";
import { refuseUnknown, toBuffer } from "./options.js";
import { FsBackend, MemoryBackend } from "./persistence.js";
import { filesOf, HostMount } from "./provider.js";
import { RpcError } from "./rpc.js";

export { FsBackend, HostMount, MemoryBackend };

const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const CLASSES = { timeout: "TIMEOUT", cancelled: "CANCELLED", denied: "CAPABILITY_DENIED", memory: "LIMIT_EXCEEDED", cpu: "LIMIT_EXCEEDED",
  processes: "LIMIT_EXCEEDED", file_size: "LIMIT_EXCEEDED", disk: "LIMIT_EXCEEDED", output: "LIMIT_EXCEEDED" };
const STATUS = { timeout: 124, cancelled: 125, denied: 126, memory: 137, cpu: 137 };

const CREATE = ["guest", "languages", "packages", "timeoutMs", "fsLimitBytes", "mounts", "extensions", "security", "network", "pythonPath", "env",
  "storage", "persistence", "policy", "level", "connection", "server", "key",
  "wasmDir", "adapter", "shellExecWasmPath", "shellWasmPath"]; // the last four say where codepod finds its programs: nothing here
const LIMITS = { timeoutMs: "timeout_ms", stdoutBytes: "stdout_bytes", stderrBytes: "stderr_bytes", fsBytes: "fs_bytes", fileCount: "file_count",
  commandBytes: "command_bytes", rpcBytes: "rpc_bytes", memoryBytes: "memory_bytes" };
const OFFLOADED = "Sandbox is offloaded — call rehydrate() first";
const EXTENSION_ARGS = { args: { type: "array", required: false }, stdin: { type: ["string", "bytes"], required: false },
  cwd: { type: "string", required: false }, env: { type: "object", required: false } };
const PACKAGES = "/opt/python"; // in guest sh: its /usr is the host's

/** codepod's options that would open more than this sandbox can hold are refused with the reason. */
function checkSecurity({ security = {}, network }) {
  refuseUnknown(security, ["toolAllowlist", "limits", "onAuditEvent", "hardKill", "packagePolicy", "pipPolicy"], "security");
  refuseUnknown(security.limits ?? {}, Object.keys(LIMITS), "security.limits");
  for (const name of ["packagePolicy", "pipPolicy"])
    if (security[name]?.enabled)
      throw new TypeError(`security.${name} is not here: there is no pkg command, and pip installs what policy.packages names (docs/packages.md)`);
  if (!network) return;
  refuseUnknown(network, ["allowedHosts", "blockedHosts", "onRequest", "mode", "allowListen"], "network");
  if (network.mode !== undefined && network.mode !== "restricted")
    throw new TypeError(`network.mode '${network.mode}' is not here: connections go through the gateway, which knows only HTTP and TLS (docs/gateway.md)`);
  if (network.allowListen) throw new TypeError("network.allowListen is not here: name ports in policy.expose, and use expose() (docs/expose.md)");
}

function sandboxPolicy({ timeoutMs = 30000, fsLimitBytes = 256 << 20, security = {}, network, policy = {} }, entries) {
  const all = { timeout_ms: timeoutMs, fs_bytes: fsLimitBytes };
  for (const [name, value] of Object.entries(security.limits ?? {})) all[LIMITS[name]] = value;
  if (security.toolAllowlist) all.commands = security.toolAllowlist;
  if (network) {
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
  if (e.command !== undefined && typeof e.command !== "function") throw new TypeError(`the command of the extension '${e.name}' is no function`);
  if (!e.command && !e.pythonPackage) throw new TypeError(`the extension '${e.name}' has no command and no pythonPackage`);
  return {
    name: e.name, description: e.description, category: e.category, usage: e.usage, examples: e.examples,
    pythonPackage: e.pythonPackage && ownFiles(e.pythonPackage), command: true, args: EXTENSION_ARGS,
    fn: async ({ args = [], stdin = "", env = {}, cwd = "" }) => {
      if (!e.command) return { stdout: "", stderr: `${e.name}: command not found\n`, exit_code: 127 };
      const r = (await e.command({ args, stdin: typeof stdin === "string" ? stdin : Buffer.from(stdin).toString("latin1"), env, cwd })) ?? "";
      return typeof r === "string" ? { stdout: r, stderr: "", exit_code: 0 }
        : { stdout: r.stdout ?? "", stderr: r.stderr ?? "", exit_code: r.exitCode ?? 0 };
    },
  };
}

// The descriptor to the host's tools must stay open: close_fds.
const BRIDGE = `import subprocess as _subprocess

_names = %s


def is_extension(name):
    return name in _names


def call(name, /, *words, args=(), stdin='', **options):
    if name not in _names:
        raise RuntimeError('Unknown tool: ' + name)
    line = [name, *map(str, words), *map(str, args)]
    for key, value in options.items():
        line += ['--' + key, str(value)]
    done = _subprocess.run(line, input=stdin, capture_output=True, text=True, close_fds=False)
    return {'stdout': done.stdout, 'stderr': done.stderr, 'exitCode': done.returncode, 'exit_code': done.returncode}
`;

/** The package's own files, with what it says of itself: pip of the pod reads __version__ and __doc__. */
function ownFiles({ version = "1.0.0", summary = "", files = {} }) {
  let init = files["__init__.py"] ?? "";
  if (!init.includes("__version__")) init += `\n__version__ = ${JSON.stringify(version)}\n`;
  if (summary && !init.includes("__doc__") && !/^\s*(r?["'])/.test(init)) init += `__doc__ = ${JSON.stringify(summary)}\n`;
  return { ...files, "__init__.py": init };
}

/** The files of a package, by path: its own, a shim for the command, and what pip reads. */
function packageFiles({ name, pythonPackage }) {
  const { version = "1.0.0", summary = "" } = pythonPackage;
  const shim = `from codepod_ext import call as _call\n\n\ndef run(*args, stdin=''):\n    return _call(${JSON.stringify(name)}, *args, stdin=stdin)\n`;
  const own = { "_shim.py": shim, ...ownFiles(pythonPackage) }, info = `${name}-${version}.dist-info`;
  const all = { ...Object.fromEntries(Object.entries(own).map(([file, text]) => [`${name}/${file}`, text])),
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\nSummary: ${summary.replace(/\s+/g, " ").trim()}\n`,
    [`${info}/INSTALLER`]: "cordon\n" };
  return { ...all, [`${info}/RECORD`]: [...Object.keys(all), `${info}/RECORD`].map((path) => `${path},,\n`).join("") };
}

/** In guest sh the packages of extensions are files; the pod has them itself. */
function packageEntries(extensions, guest) {
  const packed = extensions.filter((e) => e.pythonPackage);
  if (guest !== "sh" || !packed.length) return [];
  const names = JSON.stringify(extensions.filter((e) => e.command).map((e) => e.name));
  return Object.entries({ ...Object.assign({}, ...packed.map(packageFiles)), "codepod_ext.py": BRIDGE.replace("%s", () => names) })
    .map(([path, text]) => ({ guest: `${PACKAGES}/${path}`, data: toBuffer(text), writable: false }));
}

function toRunResult(r) {
  const note = r.errorKind === "timeout" ? "command timeout\n" : r.errorKind === "cancelled" ? "command cancelled\n"
    : r.errorKind === "internal" ? `${r.error}\n` : ""; // the last: it never ran
  return { exitCode: STATUS[r.errorKind] ?? r.exitCode, stdout: r.stdout, stderr: r.stderr + note, executionTimeMs: r.executionTimeMs,
    truncated: r.truncated.stdout || r.truncated.stderr ? r.truncated : undefined, errorClass: CLASSES[r.errorKind], denials: r.denials,
    warnings: r.warnings };
}

const OVER = { execute_complete: "command.complete", execute_error: "command.complete", execute_timeout: "command.timeout",
  execute_cancelled: "command.cancelled" };

/** An event of the server's under codepod's names; undefined: codepod has none for it. */
function toAuditEvent(e, command) {
  if (e.event === "execute_start") return { type: "command.start", command: e.code };
  if (OVER[e.event]) return { type: OVER[e.event], command, exitCode: STATUS[e.error_kind] ?? e.exit_code, executionTimeMs: e.elapsed * 1000 };
  if (e.event === "limit.exceeded") return { type: e.event, subtype: e.subtype, command };
  if (e.event === "capability.denied") {
    const { operation, target, rule } = e.denial ?? {};
    return { type: e.event, command, reason: [operation, target].filter(Boolean).join(" ") + (rule ? `: ${rule}` : "") };
  }
  if (e.event === "tool_refused" && e.cause === "commands") return { type: "capability.denied", command, reason: e.error };
  return undefined;
}

/** A shell with files, snapshots and forks, under codepod's names. */
export class Sandbox {
  #session; // null: offloaded into the caller's storage
  #isOffloaded = false;
  #destroyed = false;
  #running = 0;
  #history = [];
  #language; // of code that names none; undefined: run() takes commands
  #options;
  #entries; // read-only files that were mounted
  #command; // the last one that began
  #sessionId;
  #saves; // { backend, namespace, autosaveMs, timer }

  /** Use Sandbox.create(). */
  constructor(options, entries) {
    this.#options = options;
    this.#entries = entries;
    this.#language = [options.languages ?? []].flat()[0];
  }

  /** options: guest ("sh" or "pod"), timeoutMs, fsLimitBytes, mounts [{path, files, writable}], extensions, pythonPath, env, policy,
   * storage {save, load}, persistence {mode, namespace, autosaveMs, backend}, security {toolAllowlist, limits, onAuditEvent, hardKill},
   * network {allowedHosts, blockedHosts, onRequest}. */
  static async create(options = {}, more = undefined) {
    refuseUnknown(options, CREATE, "Sandbox.create");
    if (more !== undefined) throw new TypeError("Sandbox.create takes one object of options");
    checkSecurity(options);
    const { mounts = [], extensions = [], storage, persistence, guest = "sh" } = options;
    if (storage && (typeof storage.save !== "function" || typeof storage.load !== "function"))
      throw new TypeError("storage must have the functions save and load");
    const entries = packageEntries(extensions, guest);
    for (const { path, files, writable = false } of mounts)
      for (const [name, data] of Object.entries(await filesOf(files))) entries.push({ guest: `${path}/${name}`, data: toBuffer(data), writable });
    const sandbox = new Sandbox(options, entries.filter((e) => !e.writable));
    sandbox.#saves = persistenceOf(persistence);
    sandbox.#session = await sandbox.#open();
    sandbox.#sessionId = sandbox.#session.id;
    try {
      for (const e of entries) if (e.writable) await sandbox.#session.files.write(e.guest, e.data);
      if (sandbox.#saves?.mode === "persistent") await sandbox.loadState();
    } catch (e) {
      await sandbox.#session.close();
      throw e;
    }
    sandbox.#tell({ type: "sandbox.create" });
    return sandbox;
  }

  async #open() {
    const { guest = "sh", level, languages, packages, extensions = [], network, pythonPath, env = {}, connection, server, key, security = {} } = this.#options;
    const hasPackages = this.#entries.some((e) => e.guest.startsWith(PACKAGES + "/"));
    const places = [...(pythonPath ?? []), ...(pythonPath?.length ? ["/usr/lib/python"] : []), ...(hasPackages ? [PACKAGES] : [])];
    return Session.open({ guest, level, languages, packages, policy: sandboxPolicy(this.#options, this.#entries), tools: extensions.map(extensionTool),
      env: places.length ? { PYTHONPATH: places.join(":"), ...env } : { ...env }, connection, server, key,
      onAudit: security.onAuditEvent && ((e) => this.#hear(e)), onApproval: network?.onRequest && ((a) => asRequest(a, network.onRequest)) });
  }

  #hear(e) {
    if (e.event === "execute_start") this.#command = e.code;
    const event = toAuditEvent(e, this.#command);
    if (event) this.#tell(event, Date.parse(e.timestamp));
  }

  #tell(event, timestamp = Date.now()) {
    try {
      this.#options.security?.onAuditEvent?.({ ...event, sessionId: this.#sessionId, timestamp });
    } catch { /* what a handler does is no concern of the code that runs */ }
  }

  /** Commands by themselves, any number at once, in a sandbox with `languages`: run(command, { background, cwd, env, stdin, timeoutMs,
   * onStdout, onStderr, signal }), list(), connect(id). */
  get commands() {
    const live = this.#live;
    return {
      run: async (command, { background = false, ...options } = {}) =>
        background ? live.start(command, options) : toRunResult(await live.command(command, options)),
      list: () => live.processes(),
      connect: (id) => new Process(live, id), // if there is none, its methods are rejected
    };
  }

  /** install(names, { language, timeoutMs }), as far as the policy names them. */
  get packages() {
    return this.#live.packages;
  }

  get #live() {
    if (this.#destroyed) throw new Error("Sandbox has been destroyed");
    if (this.#isOffloaded) throw new Error(OFFLOADED);
    return this.#session;
  }
  get sessionId() {
    return this.#sessionId;
  }
  /** As Session.expose(). */
  expose(port, options) {
    return this.#live.expose(port, options);
  }
  unexpose(port) {
    return this.#live.unexpose(port);
  }
  exposed() {
    return this.#live.exposed();
  }
  get files() {
    return this.#live.files;
  }

  /** A command in the sandbox's shell. In a sandbox with `languages`, and with language, context or variables: code in an interpreter that
   *  keeps its state (a Result). Without a language it is the first of `languages`. */
  async run(command, { onStdout, onStderr, timeoutMs, stdin, signal, language, context, variables } = {}) {
    const live = this.#live;
    this.#running++;
    try {
      if (this.#language !== undefined || language !== undefined || context !== undefined || variables !== undefined)
        return await live.execute(command, { onStdout, onStderr, timeoutMs, stdin, signal, variables, language: language ?? this.#language ?? "python",
          context: context ?? "default" });
      this.#history.push({ index: this.#history.length + 1, command, timestamp: Date.now() });
      return toRunResult(await live.execute(command, { onStdout, onStderr, timeoutMs, stdin, signal }));
    } catch (e) {
      if (!(e instanceof RpcError) || !e.message.startsWith("Command too large")) throw e;
      this.#tell({ type: "limit.exceeded", subtype: "command", command });
      return { exitCode: 1, stdout: "", stderr: "command too large\n", executionTimeMs: 0, truncated: undefined,
        errorClass: "LIMIT_EXCEEDED", denials: [], warnings: [] };
    } finally {
      this.#running--;
      this.#changed();
    }
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
    this.#changed();
  }
  async readDir(path) {
    return (await this.#live.files.list(path)).map((e) => ({ ...e, type: e.type === "directory" ? "dir" : e.type }));
  }
  async mkdir(path) {
    await this.#live.files.mkdir(path);
    this.#changed();
  }
  async stat(path) {
    const s = await this.#live.files.stat(path);
    return { ...s, type: s.type === "directory" ? "dir" : s.type, permissions: s.mode & 0o7777, mtime: new Date(s.mtime * 1000) };
  }
  async rm(path, options) {
    await this.#live.files.remove(path, options);
    this.#changed();
  }
  async setEnv(name, value) {
    await this.#live.setenv(name, value);
    this.#changed();
  }
  /** Also of variables that a command has exported. */
  async getEnv(name) {
    return (await this.#live.request("env.get", { name })).value ?? undefined;
  }
  async snapshot() {
    return this.#live.snapshot();
  }
  async restore(id) {
    await this.#live.restore(id);
    this.#changed();
  }
  async exportState() {
    return this.#live.export();
  }
  async importState(blob) {
    const report = await this.#live.import(blob);
    this.#changed();
    return report;
  }
  /** Files by value, or what a provider has now; read-only. Files and environment stay; what runs in it is started afresh, for mounts belong
   * to the wall. */
  async mount(path, files) {
    const live = this.#live, all = Object.entries(await filesOf(files));
    if (files instanceof HostMount && files.writable) {
      for (const [name, data] of all) await live.files.write(`${path}/${name}`, data);
      return;
    }
    await live.mount(path, Object.fromEntries(all));
    this.#entries = [...this.#entries, ...all.map(([name, data]) => ({ guest: `${path}/${name}`, data: toBuffer(data), writable: false }))];
  }

  /** Puts the state away, into the storage if there is one, and frees everything else, until rehydrate(). */
  async offload() {
    if (this.#isOffloaded && !this.#destroyed) return;
    const live = this.#live, { storage } = this.#options;
    if (this.#running) throw new Error("Cannot offload while a command is running");
    if (!storage) {
      await live.offload();
    } else {
      await storage.save(this.#sessionId, await live.export()); // if it fails, nothing has changed
      this.#session = null;
      await live.close();
    }
    this.#isOffloaded = true;
  }
  async rehydrate() {
    if (this.#destroyed) throw new Error("Sandbox has been destroyed");
    if (!this.#isOffloaded) return;
    if (this.#session) {
      await this.#session.rehydrate();
    } else {
      const state = await this.#options.storage.load(this.#sessionId), session = await this.#open();
      try {
        await session.import(state);
      } catch (e) {
        await session.close();
        throw e;
      }
      this.#session = session;
    }
    this.#isOffloaded = false;
  }

  get #backend() {
    this.#live;
    if (!this.#saves) throw new Error('Persistence not configured. Set persistence.mode to "session" or "persistent".');
    return this.#saves;
  }
  async saveState() {
    const { backend, namespace } = this.#backend;
    this.#saves.isDue = false;
    await backend.save(namespace, await this.#live.export());
  }
  /** false: there was none, or it could not be read. */
  async loadState() {
    const { backend, namespace } = this.#backend;
    const state = await Promise.resolve().then(() => backend.load(namespace)).catch(() => null);
    if (!state) return false;
    await this.#live.import(state);
    return true;
  }
  async clearPersistedState() {
    const { backend, namespace } = this.#backend;
    await backend.delete(namespace);
  }

  /** Files or variables may have changed: saves them when nothing has happened for autosaveMs. */
  #changed() {
    const s = this.#saves;
    if (s?.mode !== "persistent" || this.#destroyed) return;
    s.isDue = true;
    clearTimeout(s.timer);
    s.timer = setTimeout(() => {
      if (this.#running || this.#isOffloaded) this.#changed(); // it is not whole now
      else this.saveState().catch((e) => process.emitWarning(`the sandbox was not saved: ${e?.message ?? e}`));
    }, s.autosaveMs);
  }

  getHistory() {
    return this.#history.map((h) => ({ ...h }));
  }
  clearHistory() {
    this.#history = [];
  }
  async fork() {
    const { persistence, storage, ...options } = this.#options, child = new Sandbox(options, this.#entries);
    child.#session = await this.#live.fork(options.security?.onAuditEvent ? { onAudit: (e) => child.#hear(e) } : {});
    child.#sessionId = child.#session.id;
    child.#tell({ type: "sandbox.create" });
    return child;
  }
  async destroy() {
    if (this.#destroyed) return;
    const s = this.#saves;
    if (s) clearTimeout(s.timer);
    if (s?.isDue && !this.#isOffloaded && !this.#running)
      await this.saveState().catch((e) => process.emitWarning(`the sandbox was not saved: ${e?.message ?? e}`));
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.#tell({ type: "sandbox.destroy" });
    await this.#session?.close();
  }
  async [dispose]() {
    await this.destroy();
  }
}

function persistenceOf(persistence) {
  if (!persistence) return undefined;
  refuseUnknown(persistence, ["mode", "namespace", "autosaveMs", "backend"], "persistence");
  const { mode = "ephemeral", namespace = "default", autosaveMs = 1000, backend } = persistence;
  if (!["ephemeral", "session", "persistent"].includes(mode))
    throw new TypeError(`persistence.mode must be "ephemeral", "session" or "persistent", not ${JSON.stringify(mode)}`);
  return mode === "ephemeral" ? undefined : { mode, namespace, autosaveMs, backend: backend ?? new FsBackend() };
}

/** Sandboxes made ahead. A released one is destroyed, and never more than maxSize live at once. */
export class SandboxPool {
  #config;
  #options;
  #idle = [];
  #out = new Set();
  #creating = 0;
  #timer;
  #isDrained = false;

  constructor(sizes = {}, options = {}) {
    refuseUnknown(sizes, ["minSize", "maxSize", "replenishIntervalMs"], "SandboxPool, before the options of its sandboxes,");
    const { minSize = 1, maxSize = Math.max(minSize, 10), replenishIntervalMs = 1000 } = sizes;
    this.#config = { minSize, maxSize, replenishIntervalMs };
    this.#options = options;
  }
  get stats() {
    return { idle: this.#idle.length, creating: this.#creating, checkedOut: this.#out.size };
  }
  get #live() {
    return this.#idle.length + this.#creating + this.#out.size;
  }
  async #create(options = this.#options) {
    this.#creating++;
    try {
      return await Sandbox.create(options);
    } finally {
      this.#creating--;
    }
  }
  async #fill() {
    while (!this.#isDrained && this.#idle.length + this.#creating < this.#config.minSize && this.#live < this.#config.maxSize) {
      const sandbox = await this.#create();
      if (this.#isDrained) await sandbox.destroy();
      else this.#idle.push(sandbox);
    }
  }
  async init() {
    this.#isDrained = false;
    await this.#fill();
    this.#timer ??= setInterval(() => this.#fill().catch(() => {}), this.#config.replenishIntervalMs).unref(); // the next checkout tells
  }
  /** overrides: files, env, mounts are added to an idle sandbox; networkPolicy and extensions need one of their own; label is yours. */
  async checkout({ files = {}, env = {}, mounts = [], networkPolicy, extensions } = {}) {
    const isOwn = networkPolicy !== undefined || extensions !== undefined;
    let sandbox = isOwn ? undefined : this.#idle.shift();
    if (!sandbox && this.#live >= this.#config.maxSize && this.#idle.length) await this.#idle.shift().destroy();
    if (!sandbox && this.#live >= this.#config.maxSize)
      throw new Error(`the pool is full: ${this.#config.maxSize} sandboxes are in use`);
    sandbox ??= await this.#create({ ...this.#options, ...(networkPolicy === undefined ? {} : { network: networkPolicy }),
      ...(extensions === undefined ? {} : { extensions }) });
    this.#out.add(sandbox);
    try {
      for (const m of mounts) await sandbox.mount(m.path, m.writable ? new HostMount(await filesOf(m.files), { writable: true }) : m.files);
      for (const [name, value] of Object.entries(env)) await sandbox.setEnv(name, value);
      for (const [path, data] of Object.entries(files)) await sandbox.writeFile(path, data);
    } catch (e) {
      await this.release(sandbox);
      throw e;
    }
    return sandbox;
  }
  async release(sandbox) {
    this.#out.delete(sandbox);
    await sandbox.destroy();
  }
  /** Ends the idle ones, and makes no more. Those that are in use stay until they are released. */
  async drain() {
    this.#isDrained = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
    await Promise.all(this.#idle.splice(0).map((s) => s.destroy()));
  }
}

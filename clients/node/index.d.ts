export type PackageNames = string[] | Partial<Record<"python" | "node" | "r", string[]>>;
export interface Installed {
  manager: "pip" | "npm" | "cran";
  packages: Record<string, string>;
  count: number;
}
/** Into the workspace, as far as the policy names them. */
export interface Packages {
  install(names: string | string[], options?: { language?: string; timeoutMs?: number }): Promise<Installed>;
}
export type Guest = "python" | "r" | "node" | "sh" | "pod";
export type Level = "permissive" | "standard" | "strict";
export type Bytes = string | Uint8Array | ArrayBuffer;

export class RpcError extends Error {
  constructor(code: number, message: string, data?: { code?: string; errno?: string });
  code: number;
  kind: string;
  errno?: string;
}
export class ConnectionLost extends Error {}
/** There is no connection to a `cordon serve`. status: of HTTP, if it answered. */
export class ConnectFailed extends Error { readonly status?: number; }
export class ServerUnreachable extends ConnectFailed {}
export class KeyRefused extends ConnectFailed {}
export class ServerBusy extends ConnectFailed {}
export class ExecutionError extends Error {
  constructor(result: Result);
  result: Result;
  kind: string | null;
}

export interface Output { mime: string; name: string | null; data: Uint8Array | string; }
export interface Denial { operation: string; target?: string; layer?: string; rule?: string; remedy?: string; count?: number; /** only the guest says so */ claimed?: boolean; }
export interface Result<T = any> {
  success: boolean;
  value: T;
  text?: string;
  stdout: string;
  stderr: string;
  error: string | null;
  errorKind: string | null;
  exitCode: number;
  executionTimeMs: number;
  cpuTimeMs: number;
  memoryUsedMb: number;
  truncated: { stdout: boolean; stderr: boolean };
  outputs: Output[];
  toolCalls: number;
  denials: Denial[];
  warnings: unknown[];
  /** Variables and processes of the session are gone, and why. */
  restarted: boolean;
  restartReason?: string;
  assurance: Record<string, unknown> | null;
  exception?: { name?: string; message?: string; traceback?: string; line?: number };
  /** An interpreter was started for this execution; 0: one ran. */
  startMs: number;
  raw: Record<string, unknown>;
}

export interface Tool {
  name: string;
  description?: string;
  /** JSON Schema of the arguments, or { name: "number" }. */
  args?: Record<string, unknown>;
  category?: string;
  maxCalls?: number;
  timeoutMs?: number;
  resultBytes?: number;
  argumentBytes?: number;
  usage?: string;
  examples?: string[];
  approval?: boolean;
  command?: boolean;
  pythonPackage?: Record<string, string>;
  fn: (args: any) => unknown;
}
export function tool(options: Omit<Tool, "fn">, fn: (args: any) => unknown): Tool;
export interface Approval { id: string; session: string; kind: "tool" | "network"; what: string; detail: unknown; }

export interface OpenOptions {
  guest?: Guest;
  level?: Level;
  policy?: Record<string, unknown>;
  set?: string[];
  tools?: Tool[] | Record<string, ((args: any) => unknown) | Omit<Tool, "name">>;
  env?: Record<string, string>;
  workspace?: string;
  cold?: boolean;
  /** true allows, a text denies and says why, { value } answers in the tool's place; everything else is a no. */
  onApproval?: (a: Approval) => unknown;
  onAudit?: (event: Record<string, unknown>) => void;
  /** true tells on standard error what happens, a line each; a function gets the lines instead. */
  verbose?: boolean | ((line: string) => void);
  connection?: Connection;
  /** A `cordon serve` instead of the local program: "https://HOST", "http://HOST" on the loopback, "unix:PATH"; default $CORDON_SERVER. */
  server?: string;
  /** Default: $CORDON_KEY. */
  key?: string;
  /** For contexts and commands; guest is always one of them. */
  languages?: string | string[];
  /** Installed first: names of the guest's language (of Python for sh), or by language. */
  packages?: PackageNames;
}
export interface ExecuteOptions {
  /** Variables; or the name of a context in a session with `languages`. */
  context?: Record<string, unknown> | string;
  variables?: Record<string, unknown>;
  /** Of the context. */
  language?: string;
  stdin?: Bytes;
  /** Infinity: none. */
  timeoutMs?: number;
  toolCalls?: number;
  validate?: boolean;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  signal?: AbortSignal;
}

export interface FileInfo { name?: string; type: "file" | "directory" | "symlink" | "other"; size: number; mode: number; mtime: number; }
export interface Files {
  read(path: string): Promise<Uint8Array>;
  readText(path: string): Promise<string>;
  write(path: string, data: Bytes): Promise<void>;
  append(path: string, data: Bytes): Promise<void>;
  list(path?: string): Promise<FileInfo[]>;
  stat(path: string): Promise<FileInfo>;
  mkdir(path: string, options?: { parents?: boolean }): Promise<void>;
  move(from: string, to: string): Promise<void>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  /** Between the host and the session, in constant memory. A file appears under its name when it is complete. */
  upload(local: string, path: string, options?: TransferOptions): Promise<void>;
  download(path: string, local: string, options?: TransferOptions): Promise<void>;
  /** A tar file of the host, and a directory of the session. The answer names what was left out (devices, FIFOs, sockets, what leads out). */
  putTar(path: string, tar: string): Promise<SkipReport>;
  getTar(path: string, tar: string): Promise<SkipReport>;
  /** Changes in a directory, as they happen. */
  watch(path?: string, options?: { recursive?: boolean }): Promise<Watch>;
}

/** lost: some changes are not told; list the directory. */
export interface FileChange { path: string; change: "created" | "modified" | "removed" | "lost"; type: "file" | "directory"; }
export interface Watch extends AsyncIterable<FileChange> {
  changes(timeoutMs?: number): Promise<FileChange[]>;
  close(): Promise<void>;
}

/** What an archive left out, at most the first 1000; what was unpacked also has the other figures. */
export interface SkipReport {
  skipped_count: number;
  skipped: { path: string; reason: string }[];
  files?: number;
  directories?: number;
  links?: number;
  bytes?: number;
}
export interface TransferOptions {
  onProgress?: (done: number, total: number) => void | Promise<void>;
  signal?: AbortSignal;
}

export class Connection {
  constructor(options?: { program?: string; args?: string[]; socketPath?: string; server?: string; key?: string; caFile?: string });
  readonly isAlive: boolean;
  readonly pid: number | undefined;
  sessions: number;
  request(method: string, params?: object, options?: { signal?: AbortSignal }): Promise<any>;
  close(): Promise<void>;
}

export class Session {
  private constructor();
  static open(options?: OpenOptions): Promise<Session>;
  static open(guest: Guest, options?: OpenOptions): Promise<Session>;
  readonly id: string;
  readonly guest: string;
  readonly files: Files;
  request(method: string, params?: object): Promise<any>;
  execute<T = any>(code: string, options?: ExecuteOptions): Promise<Result<T>>;
  run<T = any>(code: string, options?: ExecuteOptions): Promise<T>;
  /** A further interpreter in a session with `languages`, with a state of its own. */
  context(language?: string, name?: string): Promise<Session>;
  /** A command line for bash, beside everything else. */
  command(command: string, options?: CommandOptions): Promise<Result>;
  start(command: string, options?: Pick<CommandOptions, "cwd" | "env" | "stdin" | "timeoutMs" | "pty">): Promise<Process>;
  processes(): Promise<ProcessInfo[]>;
  /** Lets the host connect to a port that the code listens on: the path of a Unix socket, or "127.0.0.1:PORT". */
  expose(port: number, options?: { hostPort?: number; path?: string }): Promise<string>;
  unexpose(port: number): Promise<void>;
  exposed(): Promise<{ port: number; address: string; connections: number }[]>;
  cancel(): Promise<boolean>;
  /** Asks the running code to give up (^C); the session and its state stay. */
  interrupt(): Promise<void>;
  /** Executions wait until resume(); refused while one runs. */
  suspend(): Promise<void>;
  resume(): Promise<void>;
  restart(): Promise<void>;
  readonly packages: Packages;
  describe(): Promise<Record<string, any>>;
  setenv(name: string, value: string | null): Promise<void>;
  snapshot(name?: string): Promise<string>;
  restore(name: string): Promise<void>;
  removeSnapshot(name: string): Promise<void>;
  snapshots(): Promise<Record<string, unknown>[]>;
  fork(options?: { onAudit?: (event: Record<string, unknown>) => void }): Promise<Session>;
  /** Read-only, by value. What runs in it is started afresh; files and environment stay. */
  mount(path: string, files: Record<string, Bytes>): Promise<void>;
  /** Frees everything but the files, which the server keeps until rehydrate(). */
  offload(): Promise<void>;
  rehydrate(): Promise<void>;
  export(): Promise<Uint8Array>;
  exportTo(path: string): Promise<void>;
  import(blob: Uint8Array): Promise<SkipReport>;
  importFrom(path: string): Promise<unknown>;
  close(): Promise<void>;
}

export interface CommandOptions extends Pick<ExecuteOptions, "onStdout" | "onStderr" | "timeoutMs" | "stdin" | "signal"> {
  cwd?: string;
  env?: Record<string, string>;
  /** On a terminal of its own. */
  pty?: boolean | { rows?: number; columns?: number };
}
export interface ProcessInfo { process: number; command: string; state: "running" | "ended"; exit_code: number | null; }
/** A command in the background. */
export class Process {
  constructor(session: Session, id: number);
  readonly session: Session;
  readonly id: number;
  wait(waitMs?: number): Promise<Result>;
  kill(): Promise<void>;
  write(data: Bytes, options?: { eof?: boolean; timeoutMs?: number }): Promise<void>;
  resize(rows: number, columns: number): Promise<void>;
  signal(name: string): Promise<void>;
  closeStdin(): Promise<void>;
  read(stream?: "stdout" | "stderr", offset?: number): Promise<Uint8Array>;
  /** undefined: it still runs. */
  exitCode(): Promise<number | undefined>;
  isRunning(): Promise<boolean>;
}

export type PoolOptions = OpenOptions & { size?: number; maxSize?: number; reuse?: boolean };
export class Pool {
  private constructor();
  static open(options?: PoolOptions): Promise<Pool>;
  static open(guest: Guest, options?: PoolOptions): Promise<Pool>;
  readonly id: string;
  readonly guest: Guest;
  execute<T = any>(code: string, options?: ExecuteOptions & { waitMs?: number }): Promise<Result<T>>;
  run<T = any>(code: string, options?: ExecuteOptions & { waitMs?: number }): Promise<T>;
  acquire(waitMs?: number): Promise<Session>;
  status(): Promise<{ total: number; busy: number; idle: number; dead: number }>;
  close(): Promise<void>;
}

export interface RunResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  executionTimeMs: number;
  /** Only if something was cut off. */
  truncated?: { stdout: boolean; stderr: boolean };
  errorClass?: "TIMEOUT" | "CANCELLED" | "CAPABILITY_DENIED" | "LIMIT_EXCEEDED";
  denials: Denial[];
  warnings: unknown[];
}
export interface Extension {
  name: string;
  description?: string;
  category?: string;
  usage?: string;
  examples?: string[];
  pythonPackage?: { version?: string; summary?: string; files: Record<string, string> };
  /** Without one the extension is only a Python package. cwd and env are those of the process that called it. */
  command?: (call: { args: string[]; stdin: string; env: Record<string, string>; cwd: string }) =>
    string | { stdout?: string; stderr?: string; exitCode?: number } | Promise<string | { stdout?: string; stderr?: string; exitCode?: number }>;
}
export type AuditEventType = "sandbox.create" | "sandbox.destroy" | "command.start" | "command.complete" | "command.timeout" | "command.cancelled"
  | "limit.exceeded" | "capability.denied";
export interface AuditEvent {
  type: AuditEventType;
  sessionId: string;
  /** Milliseconds since 1970. */
  timestamp: number;
  command?: string;
  exitCode?: number;
  executionTimeMs?: number;
  /** "stdout", "stderr", "command", "memory", ... */
  subtype?: string;
  reason?: string;
}
type Awaitable<T> = T | Promise<T>;
/** Files for mount(). It is read once, when it is mounted. */
export interface VirtualProvider {
  readFile(path: string): Awaitable<Uint8Array>;
  writeFile(path: string, data: Uint8Array): Awaitable<void>;
  exists(path: string): Awaitable<boolean>;
  stat(path: string): Awaitable<{ type: "file" | "dir"; size: number }>;
  readdir(path: string): Awaitable<{ name: string; type: "file" | "dir" }[]>;
}
export class HostMount implements VirtualProvider {
  constructor(files?: Record<string, Bytes>, options?: { writable?: boolean });
  readonly writable: boolean;
  addFile(path: string, data: Bytes): void;
  readFile(path: string): Uint8Array;
  writeFile(path: string, data: Bytes): void;
  exists(path: string): boolean;
  stat(path: string): { type: "file" | "dir"; size: number };
  readdir(path: string): { name: string; type: "file" | "dir" }[];
}
export interface PersistenceBackend {
  save(namespace: string, state: Uint8Array): Promise<void>;
  load(namespace: string): Promise<Uint8Array | null>;
  delete(namespace: string): Promise<void>;
}
export class MemoryBackend implements PersistenceBackend {
  save(namespace: string, state: Uint8Array): Promise<void>;
  load(namespace: string): Promise<Uint8Array | null>;
  delete(namespace: string): Promise<void>;
}
/** A file each in a folder: $XDG_DATA_HOME/cordon/persistence if none is named. */
export class FsBackend implements PersistenceBackend {
  constructor(folder?: string);
  save(namespace: string, state: Uint8Array): Promise<void>;
  load(namespace: string): Promise<Uint8Array | null>;
  delete(namespace: string): Promise<void>;
}
export interface SandboxOptions {
  guest?: Guest;
  /** For code in several languages and for commands in the background. run() takes code then, in the first of them if it names none. */
  languages?: string | string[];
  /** Installed first: names of the guest's language (of Python for sh), or by language. */
  packages?: PackageNames;
  timeoutMs?: number;
  fsLimitBytes?: number;
  /** writable: files of the workspace; else read-only. */
  mounts?: { path: string; files: Record<string, Bytes> | VirtualProvider; writable?: boolean }[];
  extensions?: Extension[];
  pythonPath?: string[];
  security?: {
    toolAllowlist?: string[];
    limits?: { timeoutMs?: number; stdoutBytes?: number; stderrBytes?: number; fsBytes?: number; fileCount?: number; commandBytes?: number;
      rpcBytes?: number; memoryBytes?: number };
    onAuditEvent?: (event: AuditEvent) => void;
    /** Every deadline kills. */
    hardKill?: boolean;
    /** policy.packages says what may be installed. */
    packagePolicy?: { enabled: false };
    pipPolicy?: { enabled: false };
  };
  /** Where offload() puts the state, and rehydrate() finds it. Without it the server keeps it. */
  storage?: { save(sandboxId: string, state: Uint8Array): Awaitable<void>; load(sandboxId: string): Awaitable<Uint8Array> };
  /** "session": saveState() and loadState(). "persistent": loaded by create(), and saved when nothing has changed for autosaveMs. */
  persistence?: { mode?: "ephemeral" | "session" | "persistent"; namespace?: string; autosaveMs?: number; backend?: PersistenceBackend };
  /** onRequest: asked for every request; only true lets it through. */
  network?: {
    allowedHosts?: string[];
    blockedHosts?: string[];
    onRequest?: (request: { url: string; method: string; headers: Record<string, string> }) => boolean | Promise<boolean>;
    mode?: "restricted";
    allowListen?: false;
  };
  /** Where codepod finds its programs; nothing here. */
  wasmDir?: string;
  adapter?: unknown;
  shellExecWasmPath?: string;
  shellWasmPath?: string;
  env?: Record<string, string>;
  policy?: Record<string, unknown>;
  level?: Level;
  connection?: Connection;
  /** A `cordon serve` instead of the local program: "https://HOST", "http://HOST" on the loopback, "unix:PATH"; default $CORDON_SERVER. */
  server?: string;
  /** Default: $CORDON_KEY. */
  key?: string;
}
export class Sandbox {
  private constructor();
  static create(options?: SandboxOptions): Promise<Sandbox>;
  readonly packages: Packages;
  readonly sessionId: string;
  readonly files: Files;
  /** Lets the host connect to a port that the code listens on: the path of a Unix socket, or "127.0.0.1:PORT". */
  expose(port: number, options?: { hostPort?: number; path?: string }): Promise<string>;
  unexpose(port: number): Promise<void>;
  exposed(): Promise<{ port: number; address: string; connections: number }[]>;
  run(command: string, options?: Pick<ExecuteOptions, "onStdout" | "onStderr" | "timeoutMs" | "stdin" | "signal">): Promise<RunResult>;
  /** Code in an interpreter that keeps its state, one for each language and context. A sandbox with `languages` takes all code so. */
  run<T = any>(code: string, options: Omit<ExecuteOptions, "context"> & ({ language: string; context?: string } | { context: string } | { variables: Record<string, unknown> })): Promise<Result<T>>;
  readonly commands: {
    run(command: string, options: CommandOptions & { background: true }): Promise<Process>;
    run(command: string, options?: CommandOptions & { background?: false }): Promise<RunResult>;
    list(): Promise<ProcessInfo[]>;
    /** If there is none, its methods are rejected. */
    connect(id: number): Process;
  };
  cancel(): Promise<boolean>;
  /** Commands wait until resume(); refused while one runs. */
  suspend(): Promise<void>;
  resume(): Promise<void>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, data: Bytes): Promise<void>;
  readDir(path: string): Promise<{ name: string; type: string; size: number }[]>;
  mkdir(path: string): Promise<void>;
  stat(path: string): Promise<{ type: string; size: number; mode: number; permissions: number; mtime: Date }>;
  rm(path: string, options?: { recursive?: boolean }): Promise<void>;
  setEnv(name: string, value: string): Promise<void>;
  /** Also of variables that a command has exported. */
  getEnv(name: string): Promise<string | undefined>;
  snapshot(): Promise<string>;
  restore(id: string): Promise<void>;
  exportState(): Promise<Uint8Array>;
  importState(blob: Uint8Array): Promise<unknown>;
  /** Read-only, by value, or what a provider has now. What runs in it is started afresh; files and environment stay. */
  mount(path: string, files: Record<string, Bytes> | VirtualProvider): Promise<void>;
  offload(): Promise<void>;
  rehydrate(): Promise<void>;
  saveState(): Promise<void>;
  /** false: there was none, or it could not be read. */
  loadState(): Promise<boolean>;
  clearPersistedState(): Promise<void>;
  getHistory(): { index: number; command: string; timestamp: number }[];
  clearHistory(): void;
  fork(): Promise<Sandbox>;
  destroy(): Promise<void>;
}

/** Sandboxes made ahead. A released one is destroyed, and never more than maxSize live at once. */
export class SandboxPool {
  constructor(config?: { minSize?: number; maxSize?: number; replenishIntervalMs?: number }, options?: SandboxOptions);
  readonly stats: { idle: number; creating: number; checkedOut: number };
  init(): Promise<void>;
  checkout(overrides?: { files?: Record<string, Bytes>; env?: Record<string, string>; mounts?: SandboxOptions["mounts"];
    networkPolicy?: SandboxOptions["network"]; extensions?: Extension[]; label?: string }): Promise<Sandbox>;
  release(sandbox: Sandbox): Promise<void>;
  drain(): Promise<void>;
}

/** An object that stays in its session: a function, an environment or a connection of R's. In a context, and as a tool's
 *  result, it is the object itself. */
export class Handle {
  readonly id: string;
  readonly type: string;
  readonly text: string;
  toString(): string;
}
export class NDArray {
  constructor(data: ArrayBufferView, shape: number[]);
  data: ArrayBufferView;
  shape: number[];
}
export function encode(value: unknown): unknown;
export function decode(json: unknown): any;
export function run<T = any>(code: string, options?: OpenOptions & ExecuteOptions): Promise<Result<T>>;
export function validate(code: string, guest?: Guest): Promise<{ valid: boolean; error: string | null; warnings: unknown[] }>;
export function policy(options?: { level?: Level; policy?: object; set?: string[] }): Promise<Record<string, unknown>>;
export function checkPolicy(options?: { level?: Level; policy?: object; set?: string[] }): Promise<{ valid: boolean; error: string | null; explanation?: string }>;
export function shutdown(): Promise<void>;

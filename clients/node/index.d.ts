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
  restarted: boolean;
  assurance: Record<string, unknown> | null;
  exception?: { name?: string; message?: string; traceback?: string; line?: number };
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
}
export interface ExecuteOptions {
  context?: Record<string, unknown>;
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
}

export class Connection {
  constructor(options?: { program?: string; args?: string[]; socketPath?: string });
  readonly isAlive: boolean;
  readonly pid: number | undefined;
  sessions: number;
  request(method: string, params?: object, options?: { signal?: AbortSignal }): Promise<any>;
  close(): Promise<void>;
}

export class Session {
  private constructor();
  static open(options?: OpenOptions | Guest): Promise<Session>;
  readonly id: string;
  readonly guest: string;
  readonly files: Files;
  request(method: string, params?: object): Promise<any>;
  execute<T = any>(code: string, options?: ExecuteOptions): Promise<Result<T>>;
  run<T = any>(code: string, options?: ExecuteOptions): Promise<T>;
  cancel(): Promise<boolean>;
  /** Asks the running code to give up (^C); the session and its state stay. */
  interrupt(): Promise<void>;
  /** Executions wait until resume(); refused while one runs. */
  suspend(): Promise<void>;
  resume(): Promise<void>;
  restart(): Promise<void>;
  describe(): Promise<Record<string, any>>;
  setenv(name: string, value: string | null): Promise<void>;
  snapshot(name?: string): Promise<string>;
  restore(name: string): Promise<void>;
  removeSnapshot(name: string): Promise<void>;
  snapshots(): Promise<Record<string, unknown>[]>;
  fork(): Promise<Session>;
  export(): Promise<Uint8Array>;
  exportTo(path: string): Promise<void>;
  import(blob: Uint8Array): Promise<unknown>;
  importFrom(path: string): Promise<unknown>;
  close(): Promise<void>;
}

export class Pool {
  private constructor();
  static open(options?: OpenOptions & { size?: number; maxSize?: number; reuse?: boolean }): Promise<Pool>;
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
  truncated: { stdout: boolean; stderr: boolean };
  errorClass?: "TIMEOUT" | "CANCELLED" | "CAPABILITY_DENIED" | "LIMIT_EXCEEDED";
}
export interface Extension {
  name: string;
  description?: string;
  category?: string;
  usage?: string;
  examples?: string[];
  pythonPackage?: { version?: string; summary?: string; files: Record<string, string> };
  command: (call: { args: string[]; stdin: string }) => string | { stdout?: string; stderr?: string; exitCode?: number } | Promise<any>;
}
export interface SandboxOptions {
  guest?: Guest;
  timeoutMs?: number;
  fsLimitBytes?: number;
  /** writable: files of the workspace; else read-only. */
  mounts?: { path: string; files: Record<string, Bytes>; writable?: boolean }[];
  extensions?: Extension[];
  pythonPath?: string[];
  security?: {
    toolAllowlist?: string[];
    limits?: { timeoutMs?: number; stdoutBytes?: number; stderrBytes?: number; fsBytes?: number; fileCount?: number; commandBytes?: number;
      rpcBytes?: number; memoryBytes?: number };
    onAuditEvent?: (event: Record<string, unknown>) => void;
    /** Every deadline kills. */
    hardKill?: boolean;
  };
  /** onRequest: asked for every request; only true lets it through. */
  network?: {
    allowedHosts?: string[];
    blockedHosts?: string[];
    onRequest?: (request: { url: string; method: string; headers: Record<string, string> }) => boolean | Promise<boolean>;
  };
  /** Where codepod finds its programs; nothing here. */
  wasmDir?: string;
  adapter?: unknown;
  shellExecWasmPath?: string;
  env?: Record<string, string>;
  policy?: Record<string, unknown>;
  level?: Level;
  connection?: Connection;
}
export class Sandbox {
  private constructor();
  static create(options?: SandboxOptions): Promise<Sandbox>;
  readonly sessionId: string;
  readonly files: Files;
  run(command: string, options?: Pick<ExecuteOptions, "onStdout" | "onStderr" | "timeoutMs" | "stdin" | "signal">): Promise<RunResult>;
  cancel(): Promise<boolean>;
  /** Commands wait until resume(); refused while one runs. */
  suspend(): Promise<void>;
  resume(): Promise<void>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, data: Bytes): Promise<void>;
  readDir(path: string): Promise<{ name: string; type: string; size: number }[]>;
  mkdir(path: string): Promise<void>;
  stat(path: string): Promise<{ type: string; size: number; mode: number; mtime: number }>;
  rm(path: string, options?: { recursive?: boolean }): Promise<void>;
  setEnv(name: string, value: string): Promise<void>;
  getEnv(name: string): string | undefined;
  snapshot(): Promise<string>;
  restore(id: string): Promise<void>;
  exportState(): Promise<Uint8Array>;
  importState(blob: Uint8Array): Promise<unknown>;
  /** Read-only, by value. What runs in it is started afresh; files and environment stay. */
  mount(path: string, files: Record<string, Bytes>): Promise<void>;
  offload(): Promise<void>;
  rehydrate(): Promise<void>;
  getHistory(): { index: number; command: string; timestamp: number }[];
  clearHistory(): void;
  fork(): Promise<Sandbox>;
  destroy(): Promise<void>;
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

import type { Result, Session } from "./index.js";

export interface ToolOptions {
  /** "command": command lines for bash, in a session with `languages`. Default: "code". */
  kind?: "code" | "command";
  /** Default: run_code or run_command. */
  name?: string;
  description?: string;
  /** Of the context, in a session with `languages`. */
  language?: string;
  timeoutMs?: number;
  /** Of each of stdout, stderr and the value that a model reads; default 16384. The middle of a longer one is left out. */
  maxChars?: number;
  /** Gets each whole result, with its plots. */
  onResult?: (result: Result) => void;
}
/** A result as the text that a model reads. */
export function modelText(result: Result, options?: { maxChars?: number }): string;
/** tool: of "@langchain/core/tools". */
export function langchainTool<T>(tool: (...args: any[]) => T, session: Session, options?: ToolOptions): T;
/** tool: of "@openai/agents". */
export function openaiTool<T>(tool: (...args: any[]) => T, session: Session, options?: ToolOptions): T;
/** createTool: of "@mastra/core/tools". */
export function mastraTool<T>(createTool: (...args: any[]) => T, session: Session, options?: ToolOptions): T;

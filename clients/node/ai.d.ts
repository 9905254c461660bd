import type { Denial, Session } from "./index.js";
import type { ToolOptions } from "./adapters.js";

export interface CodeTool {
  name: string;
  description: string;
  inputSchema: any;
  parameters: any;
  execute(input: { code: string } | { command: string }, options?: { abortSignal?: AbortSignal }): Promise<{
    success: boolean; result: string | null; stdout: string; stderr: string; error: string | null; errorKind: string | null;
    exception?: { name?: string; message?: string; traceback?: string; line?: number }; truncated: { stdout: boolean; stderr: boolean };
    denials: Denial[]; outputs: { mime: string; name: string | null }[]; restarted: boolean; restartReason?: string; remedies: string[];
  }>;
  toModelOutput(output: any): { type: "text"; value: string };
}
export function codeTool(session: Session, options?: ToolOptions & { jsonSchema?: (schema: object) => any }): CodeTool;

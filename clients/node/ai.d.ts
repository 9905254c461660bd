import type { Session } from "./index.js";

export interface CodeTool {
  name: string;
  description: string;
  inputSchema: any;
  parameters: any;
  execute(input: { code: string }, options?: { abortSignal?: AbortSignal }): Promise<{
    success: boolean; result: string | null; stdout: string; stderr: string; error: string | null; remedies: string[];
  }>;
}
export function codeTool(session: Session, options?: {
  name?: string; description?: string; timeoutMs?: number; jsonSchema?: (schema: object) => any;
}): CodeTool;

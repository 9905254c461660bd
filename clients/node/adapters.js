// A session as a tool of LangChain.js, the OpenAI Agents SDK, or Mastra. The library's own function comes first: this package imports none of them.
import { modelText, toolParts } from "./model_text.js";

export { modelText };

/** The parts of the tool, and a function from input and signal to the text that a model reads. */
function prepare(make, session, options, where) {
  if (typeof make !== "function") throw new TypeError(`the first argument is ${where}`);
  const parts = toolParts(session, options), { maxChars, onResult } = options;
  return { ...parts, answer: async (input, signal) => {
    const result = await parts.call(input, signal);
    onResult?.(result);
    return modelText(result, { maxChars });
  } };
}

/** tool: of "@langchain/core/tools". */
export function langchainTool(tool, session, options = {}) {
  const { name, description, schema, answer } = prepare(tool, session, options, 'the function tool of "@langchain/core/tools"');
  return tool((input, config) => answer(input, config?.signal), { name, description, schema });
}

/** tool: of "@openai/agents". */
export function openaiTool(tool, session, options = {}) {
  const { name, description, schema, answer } = prepare(tool, session, options, 'the function tool of "@openai/agents"');
  return tool({ name, description, parameters: schema, strict: true, execute: (input, _context, details) => answer(input, details?.signal) });
}

/** createTool: of "@mastra/core/tools". */
export function mastraTool(createTool, session, options = {}) {
  const { name, description, schema, answer } = prepare(createTool, session, options, 'the function createTool of "@mastra/core/tools"');
  return createTool({ id: name, description, inputSchema: schema, execute: (input, context) => answer(input, context?.abortSignal) });
}

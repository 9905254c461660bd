// A session as a tool of the AI SDK, 4 and 5 (and whatever takes { description, inputSchema | parameters, execute }).
import { modelText, toolParts } from "./model_text.js";

/** What the AI SDK takes for a schema: the mark that its own jsonSchema() makes, so that it need not be at hand. */
function schemaOf({ schema, isInput, wrong }) {
  const validate = (value) => (isInput(value) ? { success: true, value } : { success: false, error: new TypeError(wrong) });
  return { [Symbol.for("vercel.ai.schema")]: true, [Symbol.for("vercel.ai.validator")]: true, jsonSchema: schema, validate, ...schema };
}

/** What the program sees of a result. AI SDK 5 shows the model modelText() of it instead. */
function toOutput(r) {
  return {
    success: r.success, result: r.text ?? null, stdout: r.stdout, stderr: r.stderr, error: r.error, errorKind: r.errorKind,
    exception: r.exception, truncated: r.truncated, denials: r.denials, restarted: r.restarted, restartReason: r.restartReason,
    outputs: r.outputs.map(({ mime, name }) => ({ mime, name })), remedies: r.denials.map((d) => d.remedy).filter(Boolean),
  };
}

/** codeTool(session) → { description, inputSchema, parameters, execute, toModelOutput }. jsonSchema: the AI SDK's function of that name,
 * if it is to be used. onResult: gets each whole Result, with its plots. */
export function codeTool(session, options = {}) {
  const parts = toolParts(session, options), { jsonSchema, maxChars, onResult } = options;
  const schema = jsonSchema ? jsonSchema(parts.schema) : schemaOf(parts);
  return {
    name: parts.name,
    description: parts.description,
    inputSchema: schema,
    parameters: schema,
    /** Never rejects for what the code does: a model learns more from the error. */
    async execute(input, { abortSignal } = {}) {
      const r = await parts.call(input, abortSignal);
      onResult?.(r);
      return toOutput(r);
    },
    /** AI SDK 5 gives the output, 6 an object with it. */
    toModelOutput(given) {
      const o = given.output ?? given;
      return { type: "text", value: modelText({ ...o, text: o.result }, { maxChars }) };
    },
  };
}

// A session as a tool of the AI SDK, 4 and 5 (and whatever takes { description, inputSchema | parameters, execute }).

/** What the AI SDK takes for a schema: the mark that its own jsonSchema() makes, so that it need not be at hand. */
function schemaOf(schema) {
  const validate = (value) => typeof value?.code === "string" && Object.keys(value).length === 1 ? { success: true, value }
    : { success: false, error: new TypeError('the input must be {"code": "..."}') };
  return { [Symbol.for("vercel.ai.schema")]: true, [Symbol.for("vercel.ai.validator")]: true, jsonSchema: schema, validate, ...schema };
}

/** codeTool(session) → { description, inputSchema, parameters, execute }. jsonSchema: the AI SDK's function of that name, if it is to be used. */
export function codeTool(session, { name = "run_code", description, timeoutMs, jsonSchema = schemaOf } = {}) {
  const schema = {
    type: "object",
    properties: { code: { type: "string", description: `${session.guest} code; the value of its last expression is returned` } },
    required: ["code"],
    additionalProperties: false,
  };
  return {
    name,
    description: description ?? `Run ${session.guest} code in a sandbox. Variables and files stay between calls. There is no network.`,
    inputSchema: jsonSchema(schema),
    parameters: jsonSchema(schema),
    /** Never rejects for what the code does: a model learns more from the error. */
    async execute({ code }, { abortSignal } = {}) {
      const r = await session.execute(code, { timeoutMs, signal: abortSignal });
      return {
        success: r.success, result: r.text ?? null, stdout: r.stdout, stderr: r.stderr, error: r.error,
        remedies: r.denials.map((d) => d.remedy).filter(Boolean),
      };
    },
  };
}

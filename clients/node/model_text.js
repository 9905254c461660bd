// A result as the text that a model reads, and what all tools for models have in common. The words are those of `cordon mcp`.

const MAX_CHARS = 16384; // of each of stdout, stderr and the value

/** The text without its middle, if it is long: the beginning says what it is, the end how it ended. */
function cut(text, maxChars) {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const isLow = (i) => (text.charCodeAt(i) & 0xfc00) === 0xdc00; // never half of a character
  const head = isLow(half) ? half - 1 : half, tail = text.length - half + (isLow(text.length - half) ? 1 : 0);
  return `${text.slice(0, head)}\n[... ${tail - head} of ${text.length} characters are left out here; print less, or write it to a file ...]\n${text.slice(tail)}`;
}

/** A target is the code's own text, and stands in a line of ours. */
const printable = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "?");

function errorLines(r, maxChars) {
  const kind = r.errorKind ?? "error", line = r.exception?.line > 0 ? ` in line ${r.exception.line}` : "";
  const trace = r.exception?.traceback;
  return [`${kind}${line}: ${cut(r.error ?? "", maxChars / 4)}`, ...(trace ? [cut(trace, maxChars / 2)] : [])];
}

function stateLines(r) {
  if (!r.restarted)
    return ["timeout", "cpu"].includes(r.errorKind) ? ["State kept: the code was interrupted; variables and files are as it left them."] : [];
  const how = r.errorKind && r.errorKind !== "exception" ? `was ended (${r.errorKind})` : "had ended";
  return [`State lost: the interpreter ${how} and was started anew. Its variables and processes are gone; files are kept.`,
    ...(r.restartReason ? [`Reason: ${r.restartReason}.`] : [])];
}

/** modelText(result) → what a model needs to go on: output, value, traceback, denials with their remedies, what was cut or lost. */
export function modelText(r, { maxChars = MAX_CHARS } = {}) {
  const lost = (name) => (r.truncated?.[name] ? [`[the policy keeps no more of ${name} (${name}_bytes, output_lines); the rest is lost]`] : []);
  const parts = [
    cut(r.stdout, maxChars), ...lost("stdout"),
    r.text === undefined || r.text === null ? "" : cut(r.text, maxChars),
    r.stderr ? "stderr:\n" + cut(r.stderr, maxChars) : "", ...lost("stderr"),
    ...(r.outputs ?? []).filter((o) => o.mime.startsWith("image/")).map((o) => `[an output of type ${printable(o.mime)} was made; it is not shown here]`),
    ...(r.success ? [] : errorLines(r, maxChars)),
    ...r.denials.map((d) => `denied: ${printable([d.operation, d.target].filter(Boolean).join(" "))} (${d.layer ?? "?"}); to allow it: ${d.remedy ?? "none"}`),
    ...stateLines(r),
  ];
  return parts.filter(Boolean).map((p) => p.replace(/\n+$/, "")).join("\n") || "(no output)";
}

const KINDS = {
  code: { name: "run_code", key: "code",
    what: (g) => `${g} code; the value of its last expression is returned`,
    about: (g) => `Run ${g} code in a sandbox. Variables and files stay between calls.` },
  command: { name: "run_command", key: "command",
    what: () => "a command line for bash",
    about: () => "Run a command line in a sandbox with bash. Files stay between calls." },
};
const CLOSED = " The network and other files are closed unless its policy opens them; the answer says what was denied.";

/** What every library's tool is made of: name, description, JSON Schema, a check of the input, and the call itself. */
export function toolParts(session, { kind = "code", name, description, language, timeoutMs } = {}) {
  const k = KINDS[kind];
  if (!k) throw new TypeError(`a tool's kind is "code" or "command", not ${JSON.stringify(kind)}`);
  const guest = language ?? session.guest;
  const isInput = (v) => typeof v?.[k.key] === "string" && Object.keys(v).length === 1;
  return {
    name: name ?? k.name,
    description: description ?? k.about(guest) + CLOSED,
    schema: { type: "object", properties: { [k.key]: { type: "string", description: k.what(guest) } }, required: [k.key], additionalProperties: false },
    isInput,
    wrong: `the input must be {"${k.key}": "..."}`,
    /** The Result; rejects only if the sandbox cannot be used, never for what the code does. */
    async call(input, signal) {
      if (!isInput(input)) throw new TypeError(this.wrong);
      const options = { timeoutMs, signal };
      return kind === "command" ? session.command(input.command, options)
        : session.execute(input.code, language === undefined ? options : { ...options, language });
    },
  };
}

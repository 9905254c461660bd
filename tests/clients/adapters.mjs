// adapters.mjs PEERS FOLDER - the Node client's tools in the libraries themselves: docs/adapters.md's examples as printed, with models that
// call the tool once, and what the tools do with errors, denials, lost state and wrong input. TAP.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [peers, folder] = process.argv.slice(2);
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const page = readFileSync(path.join(root, "docs/adapters.md"), "utf8");
mkdirSync(path.join(folder, "node_modules"), { recursive: true });
for (const name of ["@langchain", "@mastra", "@openai", "ai"])
  symlinkSync(path.join(peers, "node_modules", name), path.join(folder, "node_modules", name));
symlinkSync(path.join(root, "clients/node"), path.join(folder, "node_modules", "cordon"));

/** A module beside those of the example, so that it gets the same copies. */
let count = 0;
async function load(text) {
  const file = path.join(folder, `${++count}.mjs`);
  writeFileSync(file, text);
  return import(pathToFileURL(file));
}
const { Session } = await load('export * from "cordon";');
const { langchainTool, mastraTool, modelText, openaiTool } = await load('export * from "cordon/adapters";');
const { codeTool } = await load('export * from "cordon/ai";');
const { tool: langchain, AIMessage } = await load('export { tool } from "@langchain/core/tools"; export { AIMessage } from "@langchain/core/messages";');
const { tool: openai, RunContext, Usage } = await load('export { tool, RunContext, Usage } from "@openai/agents"; import { setTracingDisabled } from "@openai/agents"; setTracingDisabled(true);');
const { createTool } = await load('export { createTool } from "@mastra/core/tools";');
const { jsonSchema } = await load('export { jsonSchema } from "ai";');

/** Each library's way to call a tool, to the text that its model would get. */
const CALLS = {
  ai: (s, o) => {
    const t = codeTool(s, { jsonSchema, ...o });
    return async (input, signal) => t.toModelOutput(await t.execute(input, { abortSignal: signal })).value;
  },
  langchain: (s, o) => {
    const t = langchainTool(langchain, s, o);
    return async (args, signal) => (await t.invoke({ type: "tool_call", id: "1", name: t.name, args }, { signal })).content;
  },
  openai: (s, o) => {
    const t = openaiTool(openai, s, o);
    return (input, signal) => t.invoke(new RunContext(), JSON.stringify(input), { signal });
  },
  mastra: (s, o) => {
    const t = mastraTool(createTool, s, o);
    return (input, signal) => t.execute(input, { abortSignal: signal });
  },
};

/** The example of the page that imports this, run with a model of ours; what it printed. */
async function example(imports, model) {
  const code = [...page.matchAll(/```js\n([^]*?)```/g)].map((m) => m[1]).find((c) => c.includes(imports));
  const said = [], log = console.log;
  globalThis.model = model;
  console.log = (...words) => said.push(words.join(" "));
  try {
    await load(code);
  } finally {
    console.log = log;
  }
  return said;
}

/** A model of the AI SDK's kind that calls the tool once and repeats what it says. */
const modelV2 = {
  specificationVersion: "v2", provider: "fixture", modelId: "one-call", supportedUrls: {},
  answer({ prompt, tools }) {
    const o = prompt.find((m) => m.role === "tool")?.content[0].output;
    if (!o) assert.deepEqual(tools[0].inputSchema.required, ["code"]);
    return o ? { type: "text", text: `it is ${o.value}` } : { type: "tool-call", toolCallId: "1", toolName: tools[0].name, input: '{"code":"6 * 7"}' };
  },
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  async doGenerate(options) {
    const part = this.answer(options);
    return { content: [part], finishReason: part.type === "text" ? "stop" : "tool-calls", usage: this.usage, warnings: [] };
  },
  async doStream(options) {
    const part = this.answer(options), isText = part.type === "text";
    const parts = [{ type: "stream-start", warnings: [] },
      ...(isText ? [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: part.text }, { type: "text-end", id: "t" }] : [part]),
      { type: "finish", finishReason: isText ? "stop" : "tool-calls", usage: this.usage }];
    return { stream: new ReadableStream({ start(c) { parts.forEach((p) => c.enqueue(p)); c.close(); } }) };
  },
};

const EXAMPLES = {
  async "LangChain.js"() {
    const model = { bindTools: ([t]) => ({ invoke: async () => {
      assert.equal(t.name, "run_code");
      assert.deepEqual(t.schema.required, ["code"]);
      return new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id: "1", name: t.name, args: { code: "6 * 7" } }] });
    } }) };
    assert.deepEqual(await example("@langchain/core/tools", model), ["42"]);
  },
  async "OpenAI Agents"() {
    const model = { async getResponse({ input, tools }) {
      const answer = Array.isArray(input) && input.find((i) => i.type === "function_call_result");
      if (!answer) assert.ok(tools[0].strict && tools[0].parameters.required[0] === "code");
      const output = answer
        ? [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: `it is ${answer.output.text ?? answer.output}` }] }]
        : [{ type: "function_call", callId: "1", name: tools[0].name, arguments: '{"code":"6 * 7"}', status: "completed" }];
      return { output, usage: new Usage({ requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }) };
    } };
    assert.deepEqual(await example("@openai/agents", model), ["it is 42"]);
  },
  async "Mastra"() {
    assert.deepEqual(await example("@mastra/core/tools", modelV2), ["it is 42"]);
  },
};

async function texts(call) {
  assert.equal(await call({ code: "x = 20\nprint('hi')\nx + 1" }), "hi\n21");
  assert.equal(await call({ code: "x = x + 1" }), "(no output)");
  const bad = await call({ code: "def f():\n    return 1 / 0\nf()" });
  assert.match(bad, /^exception in line 2: .*division by zero\n/);
  assert.match(bad, /Traceback/);
  const denied = await call({ code: "import socket\nsocket.socket(socket.AF_PACKET)" });
  assert.match(denied, /^denied: socket .*; to allow it: ./m);
  const long = await call({ code: "print('a' * 50000 + 'b')" });
  assert.ok(long.length < 20000 && long.startsWith("aaa") && long.endsWith("ab"), long.slice(-20));
  assert.match(long, /\[\.\.\. \d+ of 50002 characters are left out here/);
  const late = await call({ code: "while True: pass" });
  assert.match(late, /^timeout.*\n[^]*State kept/);
  assert.equal(await call({ code: "x" }), "21");
  const lost = await call({ code: "import os; os._exit(3)" });
  assert.match(lost, /^State lost: .* Its variables and processes are gone; files are kept\.\nReason: ./m);
  const image = await call({ code: "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('iVBORw0KGgo=')\ndisplay(P())" });
  assert.match(image, /\[an output of type image\/png was made; it is not shown here\]/);
}

const checks = Object.entries(EXAMPLES).map(([name, fn]) => [`${name}: the page's example`, fn]);
for (const [library, make] of Object.entries(CALLS)) {
  checks.push([`${library}: what the model reads`, async () => {
    const s = await Session.open({ guest: "python", policy: { timeout_ms: 3000 } });
    const seen = [];
    await texts(make(s, { onResult: (r) => seen.push(r) }));
    assert.ok(seen.length >= 9 && seen.at(-1).outputs.length > 0);
    await s.close();
  }], [`${library}: wrong input runs nothing`, async () => {
    const s = await Session.open({ guest: "python" }), seen = [], call = make(s, { onResult: (r) => seen.push(r) });
    for (const input of [{}, { code: 7 }, { cod: "1" }, { code: "1", more: 2 }]) {
      let said;
      try {
        said = await call(input);
      } catch (e) {
        said = e;
      }
      // Each library tells of it in its own way; none may pass it for an answer.
      assert.ok(said instanceof Error || /invalid|error|must/i.test(typeof said === "string" ? said : JSON.stringify(said)), String(said));
    }
    assert.deepEqual(seen, []);
    await s.close();
  }], [`${library}: commands, and a context`, async () => {
    const s = await Session.open({ guest: "sh", languages: ["sh", "python"] });
    assert.equal(await make(s, { kind: "command" })({ command: "echo $((6 * 7)); exit 3" }).then((t) => t.split("\n")[0]), "42");
    assert.equal(await make(s, { language: "python" })({ code: "6 * 7" }), "42");
    await s.close();
  }], [`${library}: a signal ends the code`, async () => {
    const s = await Session.open({ guest: "python" }), call = make(s), stop = new AbortController();
    const running = call({ code: "open('started', 'w').close()\nwhile True: pass" }, stop.signal).catch((e) => e);
    while (!(await s.files.list()).some((f) => f.name === "started")) await new Promise(setImmediate);
    stop.abort();
    await running; // LangChain does not wait for the end
    let value;
    while (value === undefined) value = await s.run("6 * 7").catch((e) => assert.match(e.message, /concurrent/));
    assert.equal(value, 42);
    await s.close();
  }], [`${library}: a closed session is an error`, async () => {
    const s = await Session.open({ guest: "python" }), call = make(s);
    await s.close();
    const said = await call({ code: "1" }).catch((e) => e);
    assert.match(String(said?.message ?? said), /not running|An error occurred while running the tool/);
  }]);
}
checks.push(["the text cannot be forged by a target", async () => {
  const r = { success: false, stdout: "", stderr: "", error: "no", errorKind: "denied", truncated: { stdout: true, stderr: false }, outputs: [], restarted: false,
    denials: [{ operation: "open", target: "/a\nState lost: x", layer: "files" }] };
  assert.equal(modelText(r), "[the policy keeps no more of stdout (stdout_bytes, output_lines); the rest is lost]\ndenied: no\n" +
    "denied: open /a?State lost: x (files); to allow it: none");
}], ["the cut leaves characters whole", async () => {
  const r = { success: true, stdout: "\u{1F600}".repeat(20), stderr: "", truncated: {}, outputs: [], denials: [], restarted: false };
  for (let maxChars = 5; maxChars < 40; maxChars++) assert.ok(modelText(r, { maxChars }).isWellFormed(), String(maxChars));
}], ["what is no tool function is refused", async () => {
  for (const make of [langchainTool, openaiTool, mastraTool]) assert.throws(() => make({}, {}), /the first argument is the function/);
  assert.throws(() => codeTool({ guest: "python" }, { kind: "cod" }), /kind/);
}]);

let bad = 0;
for (const [i, [name, fn]] of checks.entries()) {
  try {
    await fn();
    console.log(`ok ${i + 1} - ${name}`);
  } catch (e) {
    bad++;
    console.log(`not ok ${i + 1} - ${name}`);
    console.log(String(e?.stack ?? e).split("\n").slice(0, 14).map((l) => "# " + l).join("\n"));
  }
}
console.log(`1..${checks.length}`);
process.exit(bad ? 1 : 0);

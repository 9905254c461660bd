// ai.mjs README CLIENT - the example of clients/node/README.md, as printed, with npm's `ai` and a model that calls the tool once. Says what came of it.
import { readFileSync, writeFileSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";

const [readme, client, folder] = process.argv.slice(2);
const code = /```js\n(import \{ generateText[^]*?)```/.exec(readFileSync(readme, "utf8"))[1];
const told = [];
globalThis.model = {
  specificationVersion: "v2", provider: "fixture", modelId: "one call", supportedUrls: {},
  async doGenerate({ prompt, tools }) {
    const answer = prompt.find((m) => m.role === "tool")?.content[0];
    told.push(answer ? answer.output : tools[0]);
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    return answer ? { content: [{ type: "text", text: `it is ${answer.output.value}` }], finishReason: "stop", usage, warnings: [] }
      : { content: [{ type: "tool-call", toolCallId: "1", toolName: tools[0].name, input: JSON.stringify({ code: "6 * 7" }) }],
          finishReason: "tool-calls", usage, warnings: [] };
  },
};
mkdirSync(path.join(folder, "node_modules"), { recursive: true });
symlinkSync(client, path.join(folder, "node_modules", "cordon"));
symlinkSync(path.join(process.env.PEERS, "node_modules", "ai"), path.join(folder, "node_modules", "ai"));
writeFileSync(path.join(folder, "example.mjs"), code + "\nglobalThis.text = text;\n");
await import(path.join(folder, "example.mjs"));
console.log(JSON.stringify({ text: globalThis.text, told }));
process.exit(0);

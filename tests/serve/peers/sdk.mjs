// sdk.mjs MODULES GENERATION TRANSPORT... - one of the two official SDKs against a server, everything that a
// client does: connect, list, call, progress, cancel, an error, an image. Prints what it saw as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const [modules, generation, transportKind, ...rest] = process.argv.slice(2);
const require = createRequire(join(modules, 'x.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const [name, mode] = generation.split(':'); // v1, v2:legacy, v2:auto, v2:2026-07-28
const v1 = name === 'v1';
const { Client } = await load(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const options = v1 ? {} : { versionNegotiation: mode === 'legacy' || mode === 'auto' ? { mode } : { mode: { pin: mode } } };
const client = new Client({ name: 'test', version: '1' }, options);

async function transport() {
  if (transportKind === 'stdio') {
    const { StdioClientTransport } = await load(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
    return new StdioClientTransport({ command: rest[0], args: rest.slice(1), stderr: 'inherit', env: { ...process.env } });
  }
  const { StreamableHTTPClientTransport } = await load(v1 ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  return new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: 'Bearer ' + rest[1] } } });
}

const errors = [];
client.onerror = (e) => errors.push(String(e));
await client.connect(await transport());
const call = (name, args, options) =>
  v1 ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
const seen = { server: client.getServerVersion()?.name };
seen.tools = (await client.listTools()).tools.map((t) => t.name).sort();
seen.resources = (await client.listResources()).resources.map((r) => r.uri);
seen.policy = JSON.parse((await client.readResource({ uri: 'cordon://policy' })).contents[0].text).timeout_ms;
const created = await call('create_sandbox', { language: 'python' });
const id = created.structuredContent.sandbox_id;
seen.value = (await call('run_code', { sandbox_id: id, code: 'x = 6; x * 7' })).structuredContent.result;
const progress = [];
await call('run_code', { sandbox_id: id, code: 'import time\nfor i in range(3):\n    print("step", i, flush=True)\n    time.sleep(0.3)' },
  { onprogress: (p) => progress.push(p) });
seen.progress = progress.map((p) => p.message);
seen.rises = progress.every((p, i) => i === 0 || p.progress > progress[i - 1].progress);
const failed = await call('run_code', { sandbox_id: id, code: '1 / 0' });
seen.error = [failed.isError, failed.content[0].text.includes('division')];
const plot = await call('run_code', { sandbox_id: id, code: 'import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()', timeout_ms: 60000 });
seen.image = plot.content.filter((c) => c.type === 'image').map((c) => [c.mimeType, Buffer.from(c.data, 'base64').subarray(1, 4).toString()]);
const abort = new AbortController();
setTimeout(() => abort.abort('enough'), 300);
const begun = Date.now();
try {
  await call('run_code', { sandbox_id: id, code: 'import time; time.sleep(25)' }, { signal: abort.signal });
  seen.cancelled = 'no';
} catch {
  seen.cancelled = 'yes';
}
// The sandbox is free again at once, so the code really ended.
seen.after = (await call('run_code', { sandbox_id: id, code: '40 + 2' })).structuredContent.result;
seen.waited = Date.now() - begun < 10000;
seen.gone = (await call('destroy_sandbox', { sandbox_id: id })).isError;
await client.close();
seen.errors = errors;
console.log(JSON.stringify(seen));
process.exit(0);

// frameworks.mjs - frameworks that use the SDKs, unmodified.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { assert, check, folder, until } from '../harness.mjs';
import { fetchHost, WEB } from './ports.mjs';

const require = createRequire(path.join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

check('+OpenAI Agents: session, manifest, command, file, terminal, archive', async () => {
  const { E2BSandboxClient } = await load('@openai/agents-extensions/sandbox/e2b');
  const { Manifest } = await load('@openai/agents-core/sandbox');
  const client = new E2BSandboxClient({ sandboxType: 'e2b' });
  const s = await client.create({ manifest: new Manifest({ entries: { 'in.txt': { type: 'file', content: 'from the manifest' } } }) });
  try {
    assert.match(await s.execCommand({ cmd: 'cat in.txt; pwd; echo made > out.txt' }), /code 0[\s\S]*from the manifest\/workspace/);
    assert.match(await s.execCommand({ cmd: 'exit 4' }), /code 4/);
    assert.equal(new TextDecoder().decode(await s.readFile({ path: 'out.txt' })), 'made\n');
    assert.equal(await s.pathExists('out.txt'), true);
    assert.match(await s.execCommand({ cmd: 'test -t 0 && echo a-"terminal"', tty: true }), /a-terminal/);
    assert.ok((await s.persistWorkspace()).length > 100);
  } finally {
    await s.delete();
  }
});

check('+ComputeSDK: sandbox, command, files', async () => {
  const { e2b } = await load('@computesdk/e2b');
  const s = await e2b({ apiKey: process.env.E2B_API_KEY }).sandbox.create({});
  try {
    const r = await s.runCommand('echo from the framework; exit 3');
    assert.deepEqual([r.stdout, r.exitCode], ['from the framework\n', 3]);
    await s.filesystem.writeFile('/tmp/x', 'content');
    assert.equal(await s.filesystem.readFile('/tmp/x'), 'content');
    assert.deepEqual((await s.filesystem.readdir('/tmp')).map((e) => e.name), ['x']);
    assert.equal(await s.filesystem.exists('/tmp/y'), false);
    assert.equal((await s.getInfo()).status, 'running');
  } finally {
    await s.destroy();
  }
});

check('+OpenAI Agents: a port', async () => {
  const { E2BSandboxClient } = await load('@openai/agents-extensions/sandbox/e2b');
  const { Manifest } = await load('@openai/agents-core/sandbox');
  const client = new E2BSandboxClient({ sandboxType: 'e2b', template: 'web', exposedPorts: [3000] });
  const s = await client.create({ manifest: new Manifest({ entries: { 'web.py': { type: 'file', content: WEB } } }) });
  try {
    await s.execCommand({ cmd: 'python3 web.py > /dev/null 2>&1 &' });
    const at = await s.resolveExposedPort(3000);
    const { port } = new URL(process.env.E2B_API_URL);
    assert.deepEqual([at.host, String(at.port)], [`3000-${s.state.sandboxId}.localhost`, port]);
    await until(async () => (await fetchHost(`${at.host}:${at.port}`)).status === 200, 'the server');
  } finally {
    await s.delete();
  }
});

check('+ComputeSDK: a port', async () => {
  const { e2b } = await load('@computesdk/e2b');
  const s = await e2b({ apiKey: process.env.E2B_API_KEY }).sandbox.create({ templateId: 'web' });
  try {
    const { port } = new URL(process.env.E2B_API_URL);
    assert.equal(await s.getUrl({ port: 3000, protocol: 'http' }), `http://3000-${s.sandboxId}.localhost:${port}`);
  } finally {
    await s.destroy();
  }
});

// sandbox.mjs - making, finding, prolonging, pausing and ending sandboxes.
import { assert, box, check, ci, create, e2b, missing, rejects, until } from '../harness.mjs';

const { Sandbox } = ci;
const mark = () => Math.random().toString(36).slice(2);

check(['Sandbox.create static', 'Sandbox.sandboxId', 'Sandbox.sandboxDomain', 'Sandbox.trafficAccessToken', 'Sandbox.files', 'Sandbox.commands',
  'Sandbox.pty', 'Sandbox.git'], async () => {
  const s = await create();
  assert.match(s.sandboxId, /^i[0-9a-f]{22}$/);
  assert.match(s.trafficAccessToken, /^[0-9a-f]{64}$/);
  assert.equal(typeof s.sandboxDomain, 'string');
  for (const part of ['files', 'commands', 'pty', 'git']) assert.ok(s[part]);
  const plain = await e2b.Sandbox.create();
  assert.equal((await plain.commands.run('echo base')).stdout, 'base\n');
  assert.equal(await plain.kill(), true);
  assert.equal(await s.kill(), true);
});

check('SandboxOpts.template', async () => {
  const s = await create('base');
  assert.equal((await s.getInfo()).templateId, 'base');
  await s.kill();
  const narrow = await create({ template: 'narrow' });
  assert.equal((await narrow.getInfo()).memoryMB, 300);
  await narrow.kill();
  await rejects(create('no-such-template'), e2b.SandboxError, /404.*no template/);
  await rejects(create('../narrow'), e2b.SandboxError, /404/);
});

check(['SandboxOpts.metadata', 'Sandbox.list static', 'Sandbox.list options.metadata', 'SandboxPaginator.nextItems', 'SandboxListOpts.query'], async () => {
  const user = `a b&c=${mark()}%`;
  const s = await create({ metadata: { user, app: 'x' } });
  const other = await create({ metadata: { user: 'other', app: 'x' } });
  const found = await Sandbox.list({ query: { metadata: { user } } }).nextItems();
  assert.deepEqual(found.map((i) => i.sandboxId), [s.sandboxId]);
  assert.deepEqual(found[0].metadata, { user, app: 'x' });
  assert.equal(found[0].state, 'running');
  assert.ok(found[0].startedAt instanceof Date && found[0].endAt > found[0].startedAt);
  assert.deepEqual(await Sandbox.list({ query: { metadata: { user, app: 'y' } } }).nextItems(), []);
  await s.kill();
  await other.kill();
});

check(['SandboxListOpts.limit', 'SandboxListOpts.nextToken', 'Paginator.hasNext', 'Paginator.nextToken', 'Paginator.nextItems'], async () => {
  const group = mark();
  const all = [];
  for (let i = 0; i < 5; i++) all.push(await create({ metadata: { group } }));
  const ids = all.map((s) => s.sandboxId).reverse(); // the newest first
  const pages = Sandbox.list({ query: { metadata: { group } }, limit: 2 });
  assert.equal(pages.hasNext, true);
  const first = await pages.nextItems();
  const token = pages.nextToken;
  const seen = [first, await pages.nextItems(), await pages.nextItems()].map((p) => p.map((i) => i.sandboxId));
  assert.deepEqual(seen, [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  assert.equal(pages.hasNext, false);
  const again = await Sandbox.list({ query: { metadata: { group } }, limit: 2, nextToken: token }).nextItems();
  assert.deepEqual(again.map((i) => i.sandboxId), ids.slice(2, 4));
  for (const s of all) await s.kill();
});

check('SandboxListOpts.order', async () => {
  const group = mark();
  const a = await create({ metadata: { group } }), b = await create({ metadata: { group } });
  const found = await Sandbox.list({ query: { metadata: { group } }, order: 'asc' }).nextItems();
  assert.deepEqual(found.map((i) => i.sandboxId), [a.sandboxId, b.sandboxId]);
  await a.kill();
  await b.kill();
});

check(['Sandbox.list options.startedAfter', 'Sandbox.list options.template'], async () => {
  const group = mark();
  const s = await create({ metadata: { group } });
  const list = (query) => Sandbox.list({ query: { metadata: { group }, ...query } }).nextItems();
  assert.equal((await list({ startedAfter: new Date(Date.now() - 3600_000) })).length, 1);
  assert.equal((await list({ startedAfter: new Date(Date.now() + 3600_000) })).length, 0);
  assert.equal((await list({ template: 'code-interpreter-v1' })).length, 1);
  assert.equal((await list({ template: 'base' })).length, 0);
  await s.kill();
});

check('SandboxOpts.envs', async () => {
  const s = await create({ envs: { FOO: 'bar baz', 'EMPTY': '' } });
  assert.equal((await s.commands.run('echo "$FOO,$EMPTY,$E2B_SANDBOX,$E2B_SANDBOX_ID"')).stdout, `bar baz,,true,${s.sandboxId}\n`);
  assert.equal((await s.runCode('import os; os.environ["FOO"]')).text, 'bar baz');
  assert.equal((await s.runCode('process.env.FOO', { language: 'js' })).text, 'bar baz');
  await s.kill();
});

check(['SandboxOpts.timeoutMs', 'Sandbox.isRunning'], async () => {
  const s = await create({ timeoutMs: 2000 });
  assert.equal(await s.isRunning(), true);
  await until(async () => !(await s.isRunning()), 'the end of the sandbox');
  await rejects(s.commands.run('true'), e2b.SandboxNotFoundError);
  await rejects(s.files.read('x'), e2b.TimeoutError);
  assert.equal(await s.kill(), false);
});

check('SandboxOpts.secure', async () => {
  const s = await create({ secure: true });
  assert.equal((await s.commands.run('echo 1')).stdout, '1\n');
  const url = `${process.env.E2B_SANDBOX_URL}/files?path=/tmp/x`;
  assert.equal((await fetch(url, { headers: { 'E2b-Sandbox-Id': s.sandboxId } })).status, 401);
  assert.equal((await fetch(url, { headers: { 'E2b-Sandbox-Id': s.sandboxId, 'X-Access-Token': '0'.repeat(64) } })).status, 401);
  await s.kill();
});

check('SandboxOpts.allowInternetAccess', async () => {
  const s = await create({ allowInternetAccess: false });
  assert.equal((await s.getInfo()).allowInternetAccess, false);
  const e = await rejects(s.commands.run('curl -sS --max-time 3 http://127.0.0.1:1/'), e2b.CommandExitError);
  assert.notEqual(e.exitCode, 0);
  await s.kill();
  const asked = await create({ allowInternetAccess: true }); // as older clients do by themselves: the template decides
  assert.equal((await asked.getInfo()).allowInternetAccess, false);
  await asked.kill();
});

check(['SandboxOpts.network', 'SandboxNetworkOpts.allowOut', 'SandboxNetworkOpts.denyOut',
  'SandboxNetworkOpts.maskRequestHost', 'SandboxNetworkOpts.httpsPorts'], async () => {
  const s = await create({ network: { denyOut: ['0.0.0.0/0'], allowPublicTraffic: false, maskRequestHost: 'localhost', httpsPorts: [8443] } });
  assert.equal((await s.getInfo()).network.allowPublicTraffic, false);
  await s.kill();
  await missing(() => create({ network: { allowOut: ['1.1.1.1'] } }));
});

check(['SandboxNetworkOpts.rules'], () => missing(() => create({ network: { allowOut: ['a.example'], rules: { 'a.example': [{ transform: { headers: { a: 'b' } } }] } } })));
check(['SandboxNetworkOpts.egressProxy', 'SandboxEgressProxyOpts.address', 'SandboxEgressProxyOpts.username', 'SandboxEgressProxyOpts.password'],
  () => missing(() => create({ network: { egressProxy: { address: 'p.example:1080', username: 'u', password: 'p' } } })));
check(['SandboxOpts.iam', 'SandboxIamOpts.tokens', 'SandboxIamToken.audience', 'SandboxIamToken.tokenType'],
  () => missing(() => create({ iam: { tokens: { t: { audience: 'a', tokenType: 'JWT-SVID' } } } })));
check('SandboxOpts.volumeMounts', () => missing(() => create({ volumeMounts: { '/mnt/v': 'v' } })));
check('SandboxOpts.mcp', async () => {
  await rejects(create({ mcp: { context7: {} } }), e2b.SandboxError, /404|501/);
});
check('SandboxOpts.sandboxUrl', async () => {
  const s = await create({ sandboxUrl: process.env.E2B_SANDBOX_URL });
  assert.equal(await s.isRunning(), true);
  await s.kill();
});

check(['Sandbox.connect static', 'SandboxConnectOpts.timeoutMs', 'Sandbox.connect'], async () => {
  const s = await create({ timeoutMs: 60_000 });
  await s.files.write('x', '1');
  const before = (await s.getInfo()).endAt;
  const other = await Sandbox.connect(s.sandboxId, { timeoutMs: 300_000 });
  assert.equal(await other.files.read('x'), '1');
  assert.ok((await s.getInfo()).endAt - before > 200_000);
  await s.connect({ timeoutMs: 10_000 }); // never shorter
  assert.ok((await s.getInfo()).endAt - before > 200_000);
  await s.kill();
  await rejects(Sandbox.connect(s.sandboxId), e2b.NotFoundError);
});

check(['Sandbox.setTimeout', 'SandboxApi.setTimeout static'], async () => {
  const s = await create({ timeoutMs: 600_000 });
  await s.setTimeout(30_000);
  const left = (await s.getInfo()).endAt - Date.now();
  assert.ok(left > 0 && left <= 30_500, `${left} ms`);
  await Sandbox.setTimeout(s.sandboxId, 1000);
  await until(async () => !(await s.isRunning()), 'the end of the sandbox');
  await rejects(Sandbox.setTimeout(s.sandboxId, 1000), e2b.NotFoundError);
});

check(['Sandbox.getInfo', 'SandboxApi.getInfo static', 'SandboxApi.getFullInfo static'], async () => {
  const s = await create({ metadata: { a: 'b' } });
  const info = await s.getInfo();
  assert.equal(info.sandboxId, s.sandboxId);
  assert.equal(info.templateId, 'code-interpreter-v1');
  assert.deepEqual(info.metadata, { a: 'b' });
  assert.equal(info.state, 'running');
  assert.ok(info.cpuCount >= 1 && info.memoryMB > 0);
  assert.equal(info.envdVersion, '0.6.4');
  assert.equal((await Sandbox.getInfo(s.sandboxId)).sandboxId, s.sandboxId);
  assert.equal((await Sandbox.getFullInfo(s.sandboxId)).sandboxId, s.sandboxId);
  await s.kill();
  await rejects(Sandbox.getInfo(s.sandboxId), e2b.NotFoundError);
});

check(['Sandbox.getMetrics', 'SandboxApi.getMetrics static', 'SandboxMetricsOpts.start', 'SandboxMetricsOpts.end'], async () => {
  const s = await box();
  const [m] = await s.getMetrics();
  assert.ok(m.timestamp instanceof Date && m.cpuCount >= 1 && m.memTotal > 0 && m.diskTotal > m.diskUsed);
  assert.ok(m.memUsed >= 0 && m.cpuUsedPct >= 0);
  assert.equal((await Sandbox.getMetrics(s.sandboxId)).length, 1);
  assert.equal((await s.getMetrics({ start: new Date(Date.now() - 60_000), end: new Date(Date.now() + 60_000) })).length, 1);
  assert.equal((await s.getMetrics({ start: new Date(Date.now() - 60_000), end: new Date(Date.now() - 30_000) })).length, 0);
});

check(['Sandbox.kill', 'SandboxApi.kill static'], async () => {
  const s = await create();
  const running = s.commands.run('sleep 60');
  running.catch(() => {});
  await until(async () => (await s.commands.list()).length, 'the start of the command');
  assert.equal(await s.kill(), true);
  await rejects(running, e2b.SandboxError);
  assert.equal(await s.isRunning(), false);
  assert.equal(await Sandbox.kill(s.sandboxId), false);
  assert.equal(await Sandbox.kill('i0123456789abcdef012345'), false);
});

check(['Sandbox.pause', 'SandboxApi.pause static', 'Sandbox.betaPause', 'SandboxApi.betaPause static', 'Sandbox.list options.state'], async () => {
  const s = await create({ metadata: { p: mark() } });
  await s.runCode('x = 41');
  await s.files.write('kept', 'yes');
  const h = await s.commands.run('sleep 300', { background: true });
  h.wait().catch(() => {});
  assert.equal(await s.pause(), true);
  assert.equal(await s.pause(), false);
  assert.equal(await s.isRunning(), false);
  assert.equal((await s.getInfo()).state, 'paused');
  const has = async (state) => (await Sandbox.list({ query: { state: [state] } }).nextItems()).some((i) => i.sandboxId === s.sandboxId);
  assert.equal(await has('paused'), true);
  assert.equal(await has('running'), false);
  const again = await Sandbox.connect(s.sandboxId);
  assert.equal(await again.isRunning(), true);
  assert.equal((await again.runCode('x + 1')).text, '42');
  assert.equal(await again.files.read('kept'), 'yes');
  assert.equal((await again.commands.run(`kill -0 ${h.pid} && echo there`)).stdout, 'there\n');
  assert.equal(await Sandbox.pause(s.sandboxId), true);
  await again.connect();
  if (again.betaPause) {
    assert.equal(await again.betaPause(), true);
    await again.connect();
    assert.equal(await Sandbox.betaPause(s.sandboxId), true);
  }
  await s.kill();
  await rejects(Sandbox.pause(s.sandboxId), e2b.NotFoundError);
});

check(['SandboxPauseOpts.keepMemory', 'SandboxConnectOpts.onResume'], async () => {
  const s = await create();
  await s.runCode('x = 1');
  await s.files.write('kept', 'yes');
  assert.equal(await s.pause({ keepMemory: false }), true);
  await s.connect();
  assert.equal((await s.runCode('x')).error.name, 'NameError');
  assert.equal(await s.files.read('kept'), 'yes');
  await s.runCode('x = 1');
  await s.pause();
  await s.connect({ onResume: 'reboot' });
  assert.equal((await s.runCode('x')).error.name, 'NameError');
  await s.runCode('x = 5');
  await s.pause();
  await s.connect({ onResume: 'restore' });
  assert.equal((await s.runCode('x')).text, '5');
  await s.kill();
});

check(['SandboxOpts.lifecycle', 'SandboxLifecycle.onTimeout', 'SandboxOnTimeout.action', 'SandboxOnTimeout.keepMemory'], async () => {
  const s = await create({ timeoutMs: 1000, lifecycle: { onTimeout: { action: 'pause', keepMemory: true } } });
  await s.files.write('kept', 'yes');
  assert.equal((await s.getInfo()).lifecycle.onTimeout, 'pause');
  await until(async () => (await s.getInfo()).state === 'paused', 'the pause');
  await s.connect({ timeoutMs: 60_000 });
  assert.equal(await s.files.read('kept'), 'yes');
  await s.kill();
  const killed = await create({ timeoutMs: 60_000, lifecycle: { onTimeout: 'kill' } });
  assert.equal((await killed.getInfo()).lifecycle.onTimeout, 'kill');
  await killed.kill();
});

check('SandboxLifecycle.autoResume', async () => {
  const s = await create({ timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
  assert.equal((await s.getInfo()).lifecycle.autoResume, true);
  await s.files.write('kept', 'yes');
  await s.pause();
  assert.equal(await s.files.read('kept'), 'yes');
  assert.equal((await s.getInfo()).state, 'running');
  await s.kill();
});

check(['Sandbox.fork', 'Sandbox.fork static', 'SandboxForkOpts.count', 'SandboxForkOpts.timeoutMs'], async () => {
  const s = await create({ envs: { A: '1' } });
  await s.files.write('x', '1');
  const copies = await s.fork({ count: 2, timeoutMs: 60_000 });
  assert.equal(copies.length, 2);
  for (const c of copies) {
    assert.equal(await c.files.read('x'), '1');
    await c.files.write('x', '2');
    assert.ok((await c.getInfo()).endAt - Date.now() < 61_000);
  }
  assert.equal(await s.files.read('x'), '1');
  await s.runCode('import os\nkept = 1\nos.chdir("/tmp")');
  await s.runCode('v=1; export W=2', { language: 'bash' });
  const [one] = await Sandbox.fork(s.sandboxId);
  assert.notEqual(one.sandboxId, s.sandboxId);
  // As docs/e2b.md has it. The original keeps its state.
  assert.equal((await one.runCode('kept')).error?.name, 'NameError');
  assert.equal((await one.runCode('echo "[$v]"', { language: 'bash' })).logs.stdout.join(''), '[]\n');
  assert.deepEqual(await one.commands.list(), []);
  assert.equal((await one.runCode('import os\nos.getcwd()')).text, '/tmp');
  assert.equal((await one.commands.run('echo $A')).stdout, '1\n');
  assert.equal((await s.runCode('kept')).text, '1');
  for (const c of [...copies, one, s]) await c.kill();
  await rejects(Sandbox.fork(s.sandboxId), e2b.NotFoundError);
});

check(['Sandbox.createSnapshot', 'SandboxApi.createSnapshot static', 'CreateSnapshotOpts.name'], async () => {
  const s = await box();
  await missing(() => s.createSnapshot({ name: 'a' }));
  await missing(() => Sandbox.createSnapshot(s.sandboxId));
});
check(['Sandbox.listSnapshots', 'SandboxApi.listSnapshots static', 'SnapshotPaginator.nextItems', 'SnapshotListOpts.limit', 'SnapshotListOpts.name',
  'SnapshotListOpts.nextToken', 'SnapshotListOpts.sandboxId'], async () => {
  const s = await box();
  await missing(() => s.listSnapshots({ limit: 1, name: 'a', nextToken: 'b' }).nextItems());
  await missing(() => Sandbox.listSnapshots({ sandboxId: s.sandboxId }).nextItems());
});
check('SandboxApi.deleteSnapshot static', () => missing(() => Sandbox.deleteSnapshot('a')));
check(['Sandbox.updateNetwork', 'SandboxApi.updateNetwork static', 'SandboxNetworkUpdate.allowInternetAccess', 'SandboxNetworkUpdate.allowOut',
  'SandboxNetworkUpdate.denyOut', 'SandboxNetworkUpdate.egressProxy', 'SandboxNetworkUpdate.rules'], async () => {
  const s = await box();
  await missing(() => s.updateNetwork({ allowInternetAccess: true, allowOut: ['a.example'], denyOut: ['b.example'], rules: {} }));
  await missing(() => Sandbox.updateNetwork(s.sandboxId, { egressProxy: { address: 'p.example:1080' } }));
});

check('Sandbox.getMcpUrl', async () => {
  const s = await box();
  assert.equal(s.getMcpUrl(), `https://${s.getHost(50005)}/mcp`);
});
check('Sandbox.getMcpToken', async () => {
  await rejects((await box()).getMcpToken(), e2b.NotFoundError);
});

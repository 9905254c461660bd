// client.mjs - how a client connects: addresses, keys, headers, time limits; and the errors that it raises.
import http from 'node:http';
import net from 'node:net';
import { assert, box, check, ci, create, e2b, rejects } from '../harness.mjs';

const { Sandbox } = ci;
const API = process.env.E2B_API_URL, KEY = process.env.E2B_API_KEY, OTHER = process.env.E2B_OTHER_KEY;

check('ConnectionOpts.apiKey', async () => {
  const s = await create({ apiKey: KEY });
  await s.kill();
  await rejects(create({ apiKey: 'e2b_0123' }), e2b.AuthenticationError, /401|Unauthorized/);
});
check('ConnectionOpts.validateApiKey', async () => {
  await rejects(create({ apiKey: 'other-form', validateApiKey: true }), e2b.AuthenticationError);
  await rejects(create({ apiKey: 'other-form', validateApiKey: false }), e2b.AuthenticationError, /Unauthorized/);
  const s = await create({ apiKey: KEY.replace('e2b_', 'cordon_'), validateApiKey: false }); // both forms are the same key
  await s.kill();
});
check(['ConnectionOpts.apiUrl', 'ConnectionOpts.sandboxUrl', 'ConnectionOpts.domain'], async () => {
  const s = await create({ apiUrl: API, sandboxUrl: API, domain: 'example.test' });
  assert.equal(s.getHost(80), `80-${s.sandboxId}.localhost:${new URL(API).port}`); // the server's own word counts more
  assert.equal(await s.isRunning(), true);
  await s.kill();
});
check(['ConnectionOpts.headers', 'ConnectionOpts.apiHeaders'], async () => {
  const s = await create({ headers: { 'X-One': '1' }, apiHeaders: { 'X-Two': '2' } });
  assert.equal(await s.isRunning(), true);
  await s.kill();
});
check(['ConnectionOpts.requestTimeoutMs', 'ConnectionOpts.retries'], async () => {
  const s = await create({ requestTimeoutMs: 20_000, retries: 1 });
  assert.equal(await s.isRunning({ requestTimeoutMs: 20_000 }), true);
  await s.kill();
});
check('ConnectionOpts.signal', async () => {
  const s = await box();
  await rejects(s.commands.run('sleep 30', { signal: AbortSignal.timeout(300) }));
  await rejects(s.files.read('x', { signal: AbortSignal.abort() }));
});
check(['ConnectionOpts.logger', 'Logger.debug', 'Logger.info', 'Logger.warn', 'Logger.error'], async () => {
  const seen = [];
  const logger = Object.fromEntries(['debug', 'info', 'warn', 'error'].map((k) => [k, (...a) => seen.push([k, a])]));
  const s = await create({ logger });
  await s.commands.run('true');
  await s.kill();
  assert.ok(seen.length > 0);
});
check('ConnectionOpts.debug', async () => {
  // No control plane and fixed ports: what the client does by itself.
  const s = await Sandbox.create({ debug: true });
  assert.equal(s.sandboxId, 'debug_sandbox_id');
  assert.equal(s.getHost(49983), 'localhost:49983');
});
check('ConnectionOpts.proxy', async () => {
  const seen = [];
  const proxy = http.createServer((q, a) => { // a forwarding proxy
    seen.push(q.url);
    const to = http.request(q.url, { method: q.method, headers: q.headers }, (r) => { a.writeHead(r.statusCode, r.headers); r.pipe(a); });
    q.pipe(to);
  });
  proxy.on('connect', (q, socket) => { // what some versions of the client use for everything
    seen.push(q.url);
    const [host, port] = q.url.split(':');
    const up = net.connect(Number(port), host, () => { socket.write('HTTP/1.1 200 OK\r\n\r\n'); up.pipe(socket); socket.pipe(up); });
    up.on('error', () => socket.destroy());
    socket.on('error', () => up.destroy());
  });
  await new Promise((r) => proxy.listen(0, '127.0.0.1', r));
  const s = await create({ proxy: `http://127.0.0.1:${proxy.address().port}` });
  await s.kill();
  proxy.closeAllConnections();
  proxy.close();
  assert.ok(seen.length > 0);
});
check(['ConnectionConfig.apiKey', 'ConnectionConfig.apiUrl', 'ConnectionConfig.sandboxUrl', 'ConnectionConfig.domain', 'ConnectionConfig.debug',
  'ConnectionConfig.getHost', 'ConnectionConfig.getSandboxUrl', 'ConnectionConfig.getSandboxDirectUrl', 'ApiClient.api'], async () => {
  const c = new e2b.ConnectionConfig();
  assert.deepEqual([c.apiKey, c.apiUrl, c.sandboxUrl, c.debug], [KEY, API, API, false]);
  const o = { sandboxDomain: 'a.test', envdPort: 49983 };
  assert.deepEqual([c.getSandboxUrl('i1', o), c.getSandboxDirectUrl('i1', o), c.getHost('i1', 80, 'a.test')], [API, API, '80-i1.a.test']);
  const answer = await new e2b.ApiClient(c).api.GET('/v2/sandboxes', {});
  assert.equal(answer.response.status, 200);
});

check('+the sandboxes of another key are unknown', async () => {
  const s = await create();
  const as = { apiKey: OTHER };
  await rejects(Sandbox.connect(s.sandboxId, as), e2b.NotFoundError);
  await rejects(Sandbox.getInfo(s.sandboxId, as), e2b.NotFoundError);
  await rejects(Sandbox.setTimeout(s.sandboxId, 1000, as), e2b.NotFoundError);
  await rejects(Sandbox.getMetrics(s.sandboxId, as), e2b.NotFoundError);
  assert.equal(await Sandbox.kill(s.sandboxId, as), false);
  const seen = await Sandbox.list(as).nextItems();
  assert.ok(!seen.some((i) => i.sandboxId === s.sandboxId));
  const own = await create(as);
  await rejects(Sandbox.connect(own.sandboxId), e2b.NotFoundError);
  await own.kill();
  assert.equal(await s.isRunning(), true);
  await s.kill();
});

check(['new AuthenticationError()', 'new SandboxNotFoundError()', 'new NotFoundError()', 'new FileNotFoundError()', 'new InvalidArgumentError()', 'new TimeoutError()',
  'new CommandExitError()', 'new SandboxError()'], async () => {
  const s = await create();
  await rejects(create({ apiKey: 'e2b_00' }), e2b.AuthenticationError);
  await rejects(Sandbox.getInfo('i0'), e2b.SandboxNotFoundError);
  await rejects(s.files.read('nowhere'), e2b.FileNotFoundError);
  await rejects(s.files.read('.'), e2b.InvalidArgumentError);
  await rejects(s.commands.run('false'), e2b.CommandExitError);
  await rejects(s.createSnapshot(), e2b.SandboxError);
  await s.kill();
  await rejects(s.files.read('x'), e2b.TimeoutError);
});

check('new NotEnoughSpaceError()', async () => {
  const s = await create('narrow'); // 20 MiB
  await rejects(s.files.write('big', 'x'.repeat(40 << 20)), e2b.NotEnoughSpaceError);
  await s.files.write('small', 'x');
  await s.kill();
});

check('new RateLimitError()', async () => {
  const all = [];
  const e = await rejects((async () => { for (let i = 0; i < 100; i++) all.push(await Sandbox.create({ retries: 0, apiKey: OTHER })); })());
  await Promise.all(all.map((s) => s.kill()));
  assert.ok(e instanceof e2b.RateLimitError, `${e.constructor.name}: ${e.message}`);
});

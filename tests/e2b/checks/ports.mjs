// ports.mjs - servers in a sandbox, reached by the name that getHost gives, or by headers.
import http from 'node:http';
import { assert, check, create, e2b, until } from '../harness.mjs';

const { Sandbox } = e2b;

/** A request to the name that getHost gives, without DNS. */
export function fetchHost(host, { path: at = '/', headers = {}, method = 'GET', body } = {}) {
  const { port } = new URL(`http://${host}`);
  return new Promise((resolve, reject) => {
    const q = http.request({ host: '127.0.0.1', port, path: at, method, headers: { Host: host, ...headers } }, async (r) => {
      const pieces = [];
      try {
        for await (const p of r) pieces.push(p);
        resolve({ status: r.statusCode, headers: r.headers, text: Buffer.concat(pieces).toString() });
      } catch (e) { reject(e); }
    });
    q.on('error', reject);
    q.end(body);
  });
}
/** A server in the sandbox that answers with the head of the request, and sets what it likes. */
export const WEB = `import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ('%s %s\\n%s' % (self.command, self.path, self.headers)).encode() + self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.send_response(200)
        for k, v in (('Content-Type', 'text/html'), ('Set-Cookie', 'own=1'), ('Set-Cookie', 'all=1; Domain=localhost'), ('Content-Length', str(len(body)))):
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
http.server.ThreadingHTTPServer(('0.0.0.0', 3000), H).serve_forever()`;
async function startWeb(options) {
  const s = await create('web', options);
  await s.files.write('/tmp/web.py', WEB);
  await s.commands.run('python3 /tmp/web.py', { background: true });
  const token = { 'e2b-traffic-access-token': s.trafficAccessToken };
  await until(async () => (await fetchHost(s.getHost(3000), { headers: token })).status === 200, 'the server');
  return [s, token];
}

check('Sandbox.getHost', async () => {
  const [s, token] = await startWeb();
  const host = s.getHost(3000), { port } = new URL(process.env.E2B_API_URL);
  assert.equal(host, `3000-${s.sandboxId}.localhost:${port}`);
  assert.equal(s.sandboxDomain, `localhost:${port}`);
  const r = await fetchHost(host, { path: '/a?b=c', method: 'POST', body: 'said', headers: { ...token, Cookie: 'c=1', 'X-API-Key': process.env.E2B_API_KEY,
    Authorization: `Bearer ${process.env.E2B_API_KEY}` } });
  assert.equal(r.status, 200);
  assert.match(r.text, /^POST \/a\?b=c\n/);
  assert.ok(r.text.endsWith('said') && r.text.includes(`Host: ${host}`) && r.text.includes('Cookie: c=1'), r.text);
  assert.ok(!r.text.includes(process.env.E2B_API_KEY) && !r.text.includes(s.trafficAccessToken), r.text);
  assert.deepEqual(r.headers['set-cookie'], ['own=1']); // none for other names
  assert.equal((await fetchHost(host)).status, 401); // without the token
  assert.equal((await fetchHost(s.getHost(3001), { headers: token })).status, 502); // nothing listens
  const denied = await fetchHost(s.getHost(9001), { headers: token });
  assert.equal(denied.status, 403);
  assert.match(denied.text, /expose\+=9001/);
  // The header form, at the address of everything else.
  const h = await fetch(`${process.env.E2B_SANDBOX_URL}/x`, { headers: { ...token, 'E2b-Sandbox-Id': s.sandboxId, 'E2b-Sandbox-Port': '3000' } });
  assert.match(await h.text(), /^GET \/x\n/);
  assert.equal(h.headers.get('set-cookie'), null);
  assert.match(h.headers.get('content-security-policy'), /^sandbox/);
  await s.kill();
  assert.equal((await fetchHost(host, { headers: token })).status, 502);
});
check('SandboxNetworkOpts.allowPublicTraffic', async () => {
  const [s] = await startWeb({ network: { allowPublicTraffic: true } });
  assert.equal((await fetchHost(s.getHost(3000))).status, 200);
  assert.equal((await Sandbox.getFullInfo(s.sandboxId)).network.allowPublicTraffic, true);
  await s.kill();
});

// files.mjs - the content of files, directories, watches and signed addresses.
import { assert, box, check, create, e2b, rejects, until } from '../harness.mjs';

const text = (bytes) => new TextDecoder().decode(bytes);

check(['Filesystem.write', 'Filesystem.read', 'Filesystem.read options.format'], async () => {
  const s = await box();
  const info = await s.files.write('new/dir/a b+c%.txt', 'Grüße\n');
  assert.deepEqual([info.name, info.type, info.path], ['a b+c%.txt', 'file', '/home/user/new/dir/a b+c%.txt']);
  assert.equal(await s.files.read('new/dir/a b+c%.txt'), 'Grüße\n');
  assert.equal(text(await s.files.read(info.path, { format: 'bytes' })), 'Grüße\n');
  assert.equal(await (await s.files.read(info.path, { format: 'blob' })).text(), 'Grüße\n');
  let streamed = '';
  for await (const piece of await s.files.read(info.path, { format: 'stream' })) streamed += text(piece);
  assert.equal(streamed, 'Grüße\n');
  const bytes = new Uint8Array(5_000_000).map((_, i) => (i * 31) & 255);
  await s.files.write('/tmp/big', bytes.buffer);
  assert.ok(Buffer.from(await s.files.read('/tmp/big', { format: 'bytes' })).equals(Buffer.from(bytes)));
  await s.files.write('empty', '');
  assert.equal(await s.files.read('empty'), '');
  await s.files.write('empty', 'no more');
  assert.equal(await s.files.read('empty'), 'no more');
  await rejects(s.files.read('nowhere'), e2b.NotFoundError);
  await rejects(s.files.read('new'), e2b.InvalidArgumentError);
  await rejects(s.files.write('new', 'x'), e2b.InvalidArgumentError);
});

check(['Filesystem.writeFiles', 'WriteEntry.path', 'WriteEntry.data'], async () => {
  const s = await box();
  const stream = new Blob(['from a stream']).stream();
  const all = await s.files.writeFiles([{ path: 'm/1', data: 'one' }, { path: '/tmp/2', data: new TextEncoder().encode('two').buffer }, { path: 'm/3', data: new Blob(['three']) }]);
  assert.deepEqual(all.map((i) => i.path), ['/home/user/m/1', '/tmp/2', '/home/user/m/3']);
  for (const [p, v] of [['m/1', 'one'], ['/tmp/2', 'two'], ['m/3', 'three']]) assert.equal(await s.files.read(p), v);
  await s.files.write('m/4', stream);
  assert.equal(await s.files.read('m/4'), 'from a stream');
  assert.deepEqual(await s.files.write([]), []);
});

check(['FilesystemWriteOpts.useOctetStream', 'FilesystemWriteOpts.gzip', 'FilesystemReadOpts.gzip', 'FilesystemReadOpts.streamIdleTimeoutMs'], async () => {
  const s = await box();
  const long = 'abc'.repeat(100_000);
  await s.files.write('o', long, { useOctetStream: true });
  assert.equal(await s.files.read('o'), long);
  await s.files.write('z', long, { gzip: true });
  assert.equal(await s.files.read('z'), long);
  assert.equal((await s.files.getInfo('z')).size, long.length);
  assert.equal(await s.files.read('z', { gzip: true }), long);
  let n = 0;
  for await (const piece of await s.files.read('z', { format: 'stream', streamIdleTimeoutMs: 5000 })) n += piece.length;
  assert.equal(n, long.length);
});

check('FilesystemWriteOpts.metadata', async () => {
  const s = await box();
  const metadata = { author: 'me', purpose: 'a b' };
  assert.deepEqual((await s.files.write('meta', 'x', { metadata })).metadata, metadata);
  assert.deepEqual((await s.files.getInfo('meta')).metadata, metadata);
  assert.deepEqual((await s.files.rename('meta', 'meta2')).metadata, metadata);
  assert.deepEqual((await s.files.list('.')).find((e) => e.name === 'meta2').metadata, metadata);
  const all = await s.files.writeFiles([{ path: 'meta3', data: '' }, { path: 'meta4', data: '' }], { metadata, useOctetStream: true });
  for (const i of all) assert.deepEqual(i.metadata, metadata);
  assert.equal((await s.files.write('meta2', 'y')).metadata, undefined);
  await s.runCode('import os; os.setxattr("/home/user/meta2", "user.e2b.set", b"inside")');
  assert.deepEqual((await s.files.getInfo('meta2')).metadata, { set: 'inside' });
});

check('FilesystemRequestOpts.user', async () => {
  const s = await box();
  assert.equal((await s.files.write('u', '1', { user: 'user' })).path, '/home/user/u');
  assert.equal(await s.files.read('u', { user: 'user' }), '1');
  assert.equal(await s.files.exists('u', { user: 'root' }), true); // there is no root: docs/e2b.md
});

check(['Filesystem.list', 'FilesystemListOpts.depth'], async () => {
  const s = await create();
  await s.files.write('t/f.txt', 'x');
  await s.files.makeDir('t/d/e');
  const paths = async (depth) => (await s.files.list('t', depth ? { depth } : undefined)).map((e) => `${e.type} ${e.path}`);
  assert.deepEqual(await paths(), ['dir /home/user/t/d', 'file /home/user/t/f.txt']);
  assert.deepEqual(await paths(2), ['dir /home/user/t/d', 'dir /home/user/t/d/e', 'file /home/user/t/f.txt']);
  await rejects(s.files.list('t', { depth: 0 }), e2b.InvalidArgumentError);
  await rejects(s.files.list('nowhere'), e2b.NotFoundError);
  await rejects(s.files.list('t/f.txt'), e2b.InvalidArgumentError);
  await s.kill();
});

check('Filesystem.getInfo', async () => {
  const s = await box();
  await s.files.write('info.txt', 'Hello');
  const i = await s.files.getInfo('info.txt');
  assert.deepEqual([i.name, i.type, i.path, i.size, i.mode, i.permissions, i.owner, i.group],
    ['info.txt', 'file', '/home/user/info.txt', 5, 0o644, '-rw-r--r--', 'user', 'user']);
  assert.ok(Math.abs(i.modifiedTime - Date.now()) < 60_000);
  await s.files.makeDir('infodir');
  const d = await s.files.getInfo('infodir');
  assert.deepEqual([d.type, d.mode, d.permissions], ['dir', 0o755, 'drwxr-xr-x']);
  await s.commands.run('ln -s info.txt link.txt');
  const l = await s.files.getInfo('link.txt');
  assert.deepEqual([l.name, l.symlinkTarget], ['link.txt', '/home/user/info.txt']);
  await rejects(s.files.getInfo('nowhere'), e2b.NotFoundError);
});

check(['Filesystem.exists', 'Filesystem.makeDir', 'Filesystem.rename', 'Filesystem.remove'], async () => {
  const s = await box();
  assert.equal(await s.files.makeDir('x/y/z'), true);
  assert.equal(await s.files.makeDir('x/y/z'), false);
  assert.equal(await s.files.exists('x/y'), true);
  await s.files.write('x/a', '1');
  const moved = await s.files.rename('x/a', 'x/y/b');
  assert.deepEqual([moved.path, moved.type, moved.size], ['/home/user/x/y/b', 'file', 1]);
  assert.equal(await s.files.exists('x/a'), false);
  await rejects(s.files.rename('x/a', 'x/c'), e2b.NotFoundError);
  await s.files.remove('x');
  assert.equal(await s.files.exists('x'), false);
  await s.files.remove('x');
});

check(['Filesystem.watchDir', 'WatchHandle.stop'], async () => {
  const s = await create();
  await s.files.makeDir('w');
  await s.files.write('w/f', 'old');
  const seen = [];
  const handle = await s.files.watchDir('w', (e) => seen.push(`${e.type} ${e.name}`));
  await s.files.write('w/f', 'new');
  await until(() => seen.includes('write f'), 'write');
  await s.commands.run('echo 1 > w/g; rm w/g; mkdir w/d');
  await until(() => seen.includes('create g') && seen.includes('remove g') && seen.includes('create d'), `create and remove in ${seen}`);
  await handle.stop();
  const count = seen.length;
  await s.files.write('w/late', '1');
  await s.commands.run('sleep 0.2');
  assert.equal(seen.length, count);
  await rejects(s.files.watchDir('nowhere', () => {}), e2b.NotFoundError);
  await rejects(s.files.watchDir('w/f', () => {}), e2b.SandboxError);
  await s.kill();
});

check(['WatchOpts.recursive', 'WatchOpts.includeEntry', 'WatchOpts.allowNetworkMounts'], async () => {
  const s = await create();
  await s.files.makeDir('r/n');
  const seen = [];
  const handle = await s.files.watchDir('r', (e) => seen.push(e), { recursive: true, includeEntry: true, allowNetworkMounts: true });
  await s.files.write('r/n/f', 'x');
  await until(() => seen.some((e) => e.type === 'write' && e.name === 'n/f'), 'write below');
  assert.equal(seen.find((e) => e.name === 'n/f').entry.path, '/home/user/r/n/f');
  await s.files.makeDir('r/m');
  await until(() => seen.some((e) => e.type === 'create' && e.name === 'm'), 'create of a directory');
  await s.files.write('r/m/g', 'x');
  await until(() => seen.some((e) => e.type === 'write' && e.name === 'm/g'), 'write in a new directory');
  await handle.stop();
  await s.kill();
});

check(['WatchOpts.timeoutMs', 'WatchOpts.onExit', 'Filesystem.watchDir options.onExit'], async () => {
  const s = await create();
  let exit;
  await s.files.watchDir('.', () => {}, { timeoutMs: 500, onExit: (e) => { exit = e ?? 'none'; } });
  await until(() => exit, 'the deadline');
  assert.ok(exit instanceof e2b.TimeoutError, String(exit));
  let over;
  await s.files.watchDir('.', () => {}, { timeoutMs: 0, onExit: (e) => { over = e ?? 'none'; } });
  await s.kill();
  await until(() => over, 'the end with the sandbox');
});

check(['Sandbox.downloadUrl', 'SandboxUrlOpts.useSignatureExpiration', 'SandboxUrlOpts.user', 'getSignature()', 'SignatureOpts.path', 'SignatureOpts.operation',
  'SignatureOpts.user', 'SignatureOpts.expirationInSeconds', 'SignatureOpts.envdAccessToken'], async () => {
  const s = await create();
  await s.files.write('a b.txt', 'hello');
  const get = async (url) => { const r = await fetch(url); return [r.status, await r.text()]; };
  assert.deepEqual(await get(await s.downloadUrl('a b.txt')), [200, 'hello']);
  assert.deepEqual(await get(await s.downloadUrl('a b.txt', { user: 'user', useSignatureExpiration: 100 })), [200, 'hello']);
  const [status, body] = await get(await s.downloadUrl('a b.txt', { useSignatureExpiration: -100 }));
  assert.deepEqual([status, JSON.parse(body)], [401, { code: 401, message: 'signature is already expired' }]);
  const url = new URL(await s.downloadUrl('a b.txt', { useSignatureExpiration: 100 }));
  url.searchParams.set('path', 'other');
  assert.equal((await get(url))[0], 401);
  url.searchParams.set('path', 'a b.txt');
  url.searchParams.set('signature_expiration', '99999999999');
  assert.equal((await get(url))[0], 401);
  const sig = await e2b.getSignature({ path: 'a b.txt', operation: 'read', user: undefined, expirationInSeconds: 50, envdAccessToken: s.envdAccessToken });
  const own = new URL(`${process.env.E2B_SANDBOX_URL}/files`);
  for (const [k, v] of [['path', 'a b.txt'], ['signature', sig.signature], ['signature_expiration', String(sig.expiration)]]) own.searchParams.set(k, v);
  assert.deepEqual(await get(own), [200, 'hello']);
  await s.kill();
  assert.equal((await get(own))[0], 401);
});

check('Sandbox.uploadUrl', async () => {
  const s = await create();
  const form = () => { const f = new FormData(); f.append('file', 'content'); return f; };
  const put = async (url, body) => { const r = await fetch(url, { method: 'POST', body }); return [r.status, await r.json()]; };
  assert.deepEqual(await put(await s.uploadUrl('up.txt'), form()), [200, [{ name: 'up.txt', type: 'file', path: '/home/user/up.txt' }]]);
  assert.equal(await s.files.read('up.txt'), 'content');
  const named = new FormData();
  named.append('file', new Blob(['1']), '/tmp/named.txt');
  assert.equal((await put(await s.uploadUrl(undefined, { useSignatureExpiration: 60 }), named))[1][0].path, '/tmp/named.txt');
  assert.equal((await put(await s.uploadUrl('up.txt', { useSignatureExpiration: -60 }), form()))[0], 401);
  const read = new URL(await s.downloadUrl('up.txt'));
  assert.equal((await put(read, form()))[0], 401); // signed for reading only
  await s.kill();
});

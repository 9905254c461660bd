// commands.mjs - commands and terminals.
import { assert, box, check, e2b, rejects, until } from '../harness.mjs';

check('Commands.run', async () => {
  const s = await box();
  const r = await s.commands.run('echo "!@#$%^&*()_+ \'q\'"; echo err >&2');
  assert.deepEqual([r.exitCode, r.stdout, r.stderr], [0, "!@#$%^&*()_+ 'q'\n", 'err\n']);
  assert.equal((await s.commands.run('printf "a\\nb"')).stdout, 'a\nb');
  assert.equal((await s.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')).stdout.length, 3000000);
  const e = await rejects(s.commands.run('echo out; echo no >&2; exit 7'), e2b.CommandExitError);
  assert.deepEqual([e.exitCode, e.stdout, e.stderr], [7, 'out\n', 'no\n']);
});

check(['CommandStartOpts.background', 'Commands.run options.background', 'CommandHandle.wait', 'CommandHandle.pid', 'CommandHandle.stdout',
  'CommandHandle.stderr', 'CommandHandle.exitCode', 'CommandHandle.error'], async () => {
  const s = await box();
  const h = await s.commands.run('echo a; echo b >&2; sleep 0.1; exit 3', { background: true });
  assert.ok(h.pid > 1);
  assert.equal(h.exitCode, undefined);
  const e = await rejects(h.wait(), e2b.CommandExitError);
  assert.equal(e.exitCode, 3);
  assert.deepEqual([h.exitCode, h.stdout, h.stderr], [3, 'a\n', 'b\n']);
  assert.match(h.error, /3/);
});

check('CommandStartOpts.cwd', async () => {
  const s = await box();
  await s.files.makeDir('work/dir');
  assert.equal((await s.commands.run('pwd', { cwd: '/home/user/work/dir' })).stdout, '/home/user/work/dir\n');
  assert.equal((await s.commands.run('pwd', { cwd: 'work' })).stdout, '/home/user/work\n');
  assert.equal((await s.commands.run('pwd')).stdout, '/home/user\n');
  await rejects(s.commands.run('pwd', { cwd: '/home/user/nowhere' }), e2b.InvalidArgumentError);
});

check('CommandStartOpts.envs', async () => {
  const s = await box();
  assert.equal((await s.commands.run('echo $FOO', { envs: { FOO: 'a "b" $c' } })).stdout, 'a "b" $c\n');
  assert.equal((await s.commands.run('echo "<$FOO>"')).stdout, '<>\n');
  assert.equal((await s.commands.run('python3 -c "import os; print(os.environ[\'FOO\'])"', { envs: { FOO: 'x' } })).stdout, 'x\n');
});

check('CommandStartOpts.user', async () => {
  const s = await box();
  assert.equal((await s.commands.run('whoami')).stdout, 'user\n');
  assert.equal((await s.commands.run('whoami', { user: 'user' })).stdout, 'user\n');
  assert.equal((await s.commands.run('whoami', { user: 'root' })).stdout, 'user\n'); // there is no root: docs/e2b.md
});

check(['CommandStartOpts.onStdout', 'CommandStartOpts.onStderr'], async () => {
  const s = await box();
  const out = [], err = [];
  await s.commands.run('echo 1; sleep 0.2; echo 2; echo 3 >&2', { onStdout: (d) => out.push(d), onStderr: (d) => err.push(d) });
  assert.deepEqual(out, ['1\n', '2\n']);
  assert.deepEqual(err, ['3\n']);
});

check(['CommandStartOpts.stdin', 'Commands.sendStdin', 'CommandHandle.sendStdin', 'Commands.closeStdin', 'CommandHandle.closeStdin',
  'Commands.supportsStdinClose'], async () => {
  const s = await box();
  assert.equal(s.commands.supportsStdinClose, true);
  const h = await s.commands.run('cat', { background: true, stdin: true });
  await s.commands.sendStdin(h.pid, 'Hello,\n');
  await s.commands.sendStdin(h.pid, '');
  await h.sendStdin(new TextEncoder().encode('Wörld'));
  await until(() => h.stdout === 'Hello,\nWörld', 'the echo');
  await h.closeStdin();
  assert.equal((await h.wait()).stdout, 'Hello,\nWörld');
  const other = await s.commands.run('wc -c', { background: true, stdin: true });
  await other.sendStdin('12345');
  await s.commands.closeStdin(other.pid);
  assert.equal((await other.wait()).stdout.trim(), '5');
  assert.equal((await s.commands.run('cat; echo over', { stdin: false })).stdout, 'over\n');
});

check('CommandStartOpts.timeoutMs', async () => {
  const s = await box();
  assert.equal((await s.commands.run('echo 1', { timeoutMs: 10_000 })).stdout, '1\n');
  await rejects(s.commands.run('sleep 30', { timeoutMs: 500 }), e2b.TimeoutError);
  await until(async () => (await s.commands.list()).length === 0, 'the end at the deadline');
  assert.equal((await s.commands.run('sleep 0.3; echo 2', { timeoutMs: 0 })).stdout, '2\n');
});

check('Commands.list', async () => {
  const s = await box();
  const a = await s.commands.run('sleep 30', { background: true, envs: { A: '1' }, cwd: '/tmp' });
  const b = await s.commands.run('sleep 31', { background: true });
  const all = await s.commands.list();
  const found = all.find((p) => p.pid === a.pid);
  assert.deepEqual([found.cmd, found.args, found.envs, found.cwd], ['/bin/bash', ['-l', '-c', 'sleep 30'], { A: '1' }, '/tmp']);
  assert.ok(all.some((p) => p.pid === b.pid));
  await a.kill();
  await b.kill();
  await until(async () => (await s.commands.list()).length === 0, 'an empty list');
});

check(['Commands.kill', 'CommandHandle.kill'], async () => {
  const s = await box();
  const h = await s.commands.run('sleep 60', { background: true });
  assert.equal((await s.commands.run(`kill -0 ${h.pid} && echo there`)).stdout, 'there\n');
  assert.equal(await s.commands.kill(h.pid), true);
  const e = await rejects(h.wait(), e2b.CommandExitError);
  assert.match(e.error, /killed/);
  await rejects(s.commands.run(`kill -0 ${h.pid}`), e2b.CommandExitError);
  assert.equal(await s.commands.kill(h.pid), false);
  assert.equal(await s.commands.kill(999999), false);
  const other = await s.commands.run('sleep 60', { background: true });
  assert.equal(await other.kill(), true);
  await rejects(other.wait());
});

check(['Commands.connect', 'CommandHandle.disconnect'], async () => {
  const s = await box();
  const h = await s.commands.run('read x; echo got $x; read y', { background: true, stdin: true });
  await h.disconnect();
  const out = [];
  const again = await s.commands.connect(h.pid, { onStdout: (d) => out.push(d), timeoutMs: 20_000 });
  assert.equal(again.pid, h.pid);
  await s.commands.sendStdin(h.pid, 'it\n');
  await until(() => again.stdout === 'got it\n', 'the output');
  await again.closeStdin();
  const e = await rejects(again.wait(), e2b.CommandExitError); // the second read found the end
  assert.equal(e.exitCode, 1);
  assert.deepEqual(out, ['got it\n']);
  await rejects(s.commands.connect(999999), e2b.NotFoundError);
});

check(['Pty.create', 'PtyCreateOpts.cols', 'PtyCreateOpts.rows', 'PtyCreateOpts.onData', 'PtyCreateOpts.envs', 'PtyCreateOpts.cwd', 'PtyCreateOpts.user',
  'PtyCreateOpts.timeoutMs', 'Pty.sendInput', 'Pty.resize', 'Pty.resize options.cols', 'Pty.resize options.rows', 'Pty.kill', 'Pty.connect'], async () => {
  const s = await box();
  let text = '';
  const decoder = new TextDecoder();
  const onData = (d) => { text += decoder.decode(d, { stream: true }); };
  const h = await s.pty.create({ cols: 80, rows: 24, onData, envs: { ABC: '123' }, cwd: '/tmp', user: 'user', timeoutMs: 60_000 });
  const type = (line) => s.pty.sendInput(h.pid, new TextEncoder().encode(`${line}\n`));
  const saw = (pattern, what) => until(() => pattern.test(text), what);
  await type('echo "<$ABC>" $(pwd) $TERM');
  await saw(/<123> \/tmp xterm-256color/, 'the environment and directory');
  await type('stty size');
  await saw(/24 80/, 'the size');
  await s.pty.resize(h.pid, { cols: 100, rows: 30 });
  await type('stty size');
  await saw(/30 100/, 'the new size');
  await type('test -t 0 && echo is-a-"tty"');
  await saw(/is-a-tty/, 'a terminal');
  let more = '';
  const follower = await s.pty.connect(h.pid, { onData: (d) => { more += decoder.decode(d); }, timeoutMs: 60_000 });
  await type('echo follow-"ed"');
  await until(() => /follow-ed/.test(more), 'the output for the second connection');
  await follower.disconnect();
  await type('exit 0');
  assert.equal((await h.wait()).exitCode, 0);
  const other = await s.pty.create({ cols: 80, rows: 24, onData: () => {} });
  assert.equal(await s.pty.kill(other.pid), true);
  await rejects(other.wait(), e2b.CommandExitError);
  assert.equal(await s.pty.kill(other.pid), false);
});

// git.mjs - the client's git helper, which runs git in the sandbox.
import { assert, check, create, e2b, rejects } from '../harness.mjs';

let shared;
/** A sandbox with a repository in /home/user/r that has one commit, and a bare one in /home/user/o.git. */
async function repository() {
  if (shared) return shared;
  const s = await create({ timeoutMs: 600_000 });
  await s.git.configureUser('Me', 'me@example.test');
  await s.git.init('/home/user/r', { initialBranch: 'main' });
  await s.git.init('/home/user/o.git', { bare: true, initialBranch: 'main' });
  await s.files.write('r/a', '1');
  await s.git.add('/home/user/r', { all: true });
  await s.git.commit('/home/user/r', 'first');
  return (shared = s);
}
const R = '/home/user/r';

check(['Git.init', 'GitInitOpts.bare', 'GitInitOpts.initialBranch', 'Git.configureUser', 'Git.add', 'GitAddOpts.all', 'Git.commit'], async () => {
  const s = await repository();
  assert.equal((await s.commands.run('git log --format="%an %ae %s"', { cwd: R })).stdout, 'Me me@example.test first\n');
});
check(['Git.status', 'GitAddOpts.files'], async () => {
  const s = await repository();
  await s.files.write('r/b', '2');
  await s.files.write('r/c', '3');
  await s.git.add(R, { files: ['b'] });
  const st = await s.git.status(R);
  assert.equal(st.currentBranch, 'main');
  assert.deepEqual(st.fileStatus.map((f) => [f.name, f.status]).sort(), [['b', 'added'], ['c', 'untracked']]);
});
check(['GitCommitOpts.authorName', 'GitCommitOpts.authorEmail', 'GitCommitOpts.allowEmpty'], async () => {
  const s = await repository();
  await s.git.commit(R, 'second', { authorName: 'You', authorEmail: 'you@example.test', allowEmpty: true });
  assert.match((await s.commands.run('git log -1 --format="%an %ae"', { cwd: R })).stdout, /You you@example.test/);
});
check(['Git.branches', 'Git.createBranch', 'Git.checkoutBranch', 'Git.deleteBranch', 'GitDeleteBranchOpts.force'], async () => {
  const s = await repository();
  await s.git.createBranch(R, 'x');
  assert.ok((await s.git.branches(R)).branches.includes('x'));
  await s.git.checkoutBranch(R, 'main');
  assert.equal((await s.git.branches(R)).currentBranch, 'main');
  await s.git.deleteBranch(R, 'x', { force: true });
  assert.ok(!(await s.git.branches(R)).branches.includes('x'));
});
check(['Git.setConfig', 'Git.getConfig', 'GitConfigOpts.scope', 'GitConfigOpts.path'], async () => {
  const s = await repository();
  await s.git.setConfig('cordon.test', 'yes', { scope: 'local', path: R });
  assert.equal(await s.git.getConfig('cordon.test', { scope: 'local', path: R }), 'yes');
});
check(['Git.remoteAdd', 'Git.remoteGet', 'GitRemoteAddOpts.overwrite', 'GitRemoteAddOpts.fetch', 'Git.push', 'GitPushOpts.remote', 'GitPushOpts.branch',
  'GitPushOpts.setUpstream', 'Git.clone', 'GitCloneOpts.path', 'GitCloneOpts.branch', 'GitCloneOpts.depth', 'Git.pull', 'GitPullOpts.remote', 'GitPullOpts.branch'], async () => {
  const s = await repository();
  await s.git.remoteAdd(R, 'origin', 'file:///home/user/o.git');
  await s.git.push(R, { remote: 'origin', branch: 'main', setUpstream: true });
  await s.git.remoteAdd(R, 'origin', 'file:///home/user/o.git', { overwrite: true, fetch: true });
  assert.equal(await s.git.remoteGet(R, 'origin'), 'file:///home/user/o.git');
  await s.git.clone('file:///home/user/o.git', { path: '/home/user/copy', branch: 'main', depth: 1 });
  assert.equal(await s.files.read('copy/a'), '1');
  await s.git.pull('/home/user/copy', { remote: 'origin', branch: 'main' });
});
check(['Git.reset', 'GitResetOpts.mode', 'GitResetOpts.target', 'GitResetOpts.paths', 'Git.restore', 'GitRestoreOpts.paths', 'GitRestoreOpts.staged',
  'GitRestoreOpts.worktree', 'GitRestoreOpts.source'], async () => {
  const s = await repository();
  await s.files.write('r/a', 'changed');
  await s.git.restore(R, { paths: ['a'], worktree: true });
  assert.equal(await s.files.read('r/a'), '1');
  await s.files.write('r/a', 'staged');
  await s.git.add(R, { files: ['a'] });
  await s.git.restore(R, { paths: ['a'], staged: true, worktree: true, source: 'HEAD' });
  assert.equal(await s.files.read('r/a'), '1');
  await s.files.write('r/a', 'again');
  await s.git.add(R, { files: ['a'] });
  await s.git.reset(R, { paths: ['a'] });
  await s.git.reset(R, { mode: 'hard', target: 'HEAD' });
  assert.equal(await s.files.read('r/a'), '1');
});
check(['GitCloneOpts.username', 'GitCloneOpts.password', 'GitCloneOpts.dangerouslyStoreCredentials', 'GitPushOpts.username', 'GitPushOpts.password', 'GitPullOpts.username',
  'GitPullOpts.password', 'Git.dangerouslyAuthenticate', 'GitDangerouslyAuthenticateOpts.username', 'GitDangerouslyAuthenticateOpts.password',
  'GitDangerouslyAuthenticateOpts.host', 'GitDangerouslyAuthenticateOpts.protocol'], async () => {
  const s = await repository();
  const as = { username: 'u', password: 'p' };
  await s.git.dangerouslyAuthenticate({ ...as, host: 'example.test', protocol: 'https' });
  // There is no network: git itself fails, with its own words.
  await rejects(s.git.clone('https://example.test/x.git', { ...as, path: '/home/user/none', dangerouslyStoreCredentials: true }), Error);
  await s.git.remoteAdd(R, 'far', 'https://example.test/x.git');
  await rejects(s.git.push(R, { ...as, remote: 'far', branch: 'main' }), Error);
  await rejects(s.git.pull(R, { ...as, remote: 'far', branch: 'main' }), Error);
});
check('new GitUpstreamError()', async () => {
  const s = await repository();
  await s.git.createBranch(R, 'alone');
  await rejects(s.git.pull(R), e2b.GitUpstreamError);
  await s.git.checkoutBranch(R, 'main');
});

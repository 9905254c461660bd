// npm_install.js - installs packages with npm, in the sandbox of one installation (docs/packages.md). The host sends it as
// code, with `request`; its value says what happened. The host believes none of it: it counts and copies the files itself.
const fs = require('node:fs');
const path = require('node:path');
const { spawnSync } = require('node:child_process');

const HOME = '/home/user';

function findNpm() {
  const beside = path.resolve(path.dirname(process.execPath), '..');
  const places = [
    path.join(beside, 'lib/node_modules/npm/bin/npm-cli.js'), '/usr/share/nodejs/npm/bin/npm-cli.js',
    '/usr/lib/node_modules/npm/bin/npm-cli.js', '/usr/local/lib/node_modules/npm/bin/npm-cli.js',
  ];
  return places.find((p) => fs.existsSync(p));
}

// package.json of a tarball, without a library: the first member of that name.
function manifest(file) {
  const bytes = require('node:zlib').gunzipSync(fs.readFileSync(file), { maxOutputLength: 256 << 20 });
  for (let at = 0; at + 512 <= bytes.length;) {
    const name = bytes.toString('utf8', at, at + 100).replace(/\0.*$/s, '');
    const size = parseInt(bytes.toString('latin1', at + 124, at + 136), 8) || 0;
    if (/^[^/]+\/package\.json$/.test(name)) return JSON.parse(bytes.toString('utf8', at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return null;
}

function nameOf(spec) {
  const at = spec.indexOf('@', 1);
  return at > 0 ? [spec.slice(0, at), spec.slice(at + 1)] : [spec, ''];
}

// The newest version that a range names; a package may have nothing but versions before its first.
function newest(semver, all, range) {
  const versions = all.map((m) => String(m.version));
  const wanted = range === '' || range === 'latest' ? '*' : range;
  const best = semver.maxSatisfying(versions, wanted) ||
    (wanted === '*' && semver.maxSatisfying(versions, '*', { includePrerelease: true }));
  return all.find((m) => m.version === best);
}

// A directory of tarballs has no index. So all that is needed is named to npm as files: of each name the newest version
// that was asked for.
function fromFolder(semver, folder, specs) {
  const known = new Map();
  for (const file of fs.readdirSync(folder).filter((f) => f.endsWith('.tgz'))) {
    const m = manifest(path.join(folder, file));
    if (m && typeof m.name === 'string') known.set(m.name, [...(known.get(m.name) || []), { ...m, file: path.join(folder, file) }]);
  }
  const chosen = new Map();
  for (const todo = specs.map(nameOf); todo.length;) {
    const [name, range] = todo.shift();
    if (!known.has(name)) return { failure: { status: 'not_found', name, detail: '' } };
    const one = newest(semver, chosen.has(name) ? [chosen.get(name)] : known.get(name), range);
    if (!one) return { failure: { status: 'no_version', name, detail: `${name}@${range}` } };
    if (chosen.has(name)) continue;
    chosen.set(name, one);
    todo.push(...Object.entries(one.dependencies || {}).map(([n, r]) => [n, String(r)]));
  }
  return { names: [...chosen.values()].map((m) => m.file) };
}

function explain(text) {
  const missing = /404 Not Found[^\n]*\/([^/\s]+?)(?: - |\s)|'([^'\s]+?)(?:@[^'@]*)?' is not in this registry/.exec(text);
  if (/ENOSPC|EFBIG|no space left|E413/i.test(text)) return { status: 'full' };
  if (/E404|ENOVERSIONS/.test(text)) return { status: 'not_found', name: missing ? decodeURIComponent(missing[2] || missing[1]) : '' };
  if (/ETARGET|notarget/.test(text)) return { status: 'no_version' };
  if (/EINTEGRITY/.test(text)) return { status: 'mismatch' };
  if (/E403/.test(text)) return { status: 'denied' };
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNRESET|ENETUNREACH|EHOSTUNREACH|E50\d|ENOTCACHED/.test(text)) return { status: 'unreachable' };
  return { status: 'failed' };
}

function installed() {
  try {
    const lock = JSON.parse(fs.readFileSync(`${HOME}/node_modules/.package-lock.json`, 'utf8'));
    return Object.fromEntries(Object.entries(lock.packages || {}).map(([k, v]) => [k.replace(/^.*node_modules\//, ''), String(v.version)]));
  } catch {
    return {};
  }
}

function call(npm, verb, options, names) {
  const p = spawnSync(process.execPath, [npm, ...verb, ...options, '--', ...names],
    { cwd: HOME, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 8 << 20 });
  const text = `${p.stdout}${p.stderr}`;
  console.log(text);
  if (p.status === 0) return { status: 'ok', packages: installed() };
  const lines = text.split('\n').filter((l) => l.startsWith('npm error') || l.startsWith('npm ERR!'));
  return { name: '', ...explain(text), detail: lines.slice(0, 4).join(' ').slice(0, 500) };
}

function installLock(npm, options, file) {
  const lock = JSON.parse(fs.readFileSync(file, 'utf8'));
  const { name = 'work', version = '0.0.0', dependencies = {}, devDependencies = {}, optionalDependencies = {} } = (lock.packages || {})[''] || {};
  fs.copyFileSync(file, `${HOME}/package-lock.json`);
  fs.writeFileSync(`${HOME}/package.json`, JSON.stringify({ name, version, dependencies, devDependencies, optionalDependencies }));
  return call(npm, ['ci', '--omit=dev'], options, []);
}

function run(npm, r) {
  const options = [`--prefix=${HOME}`, '--no-audit', '--no-fund', '--no-update-notifier', '--cache=/tmp/npm', '--userconfig=/dev/null',
    '--globalconfig=/tmp/npmrc', '--fetch-retries=1', '--fetch-timeout=20000', '--fetch-retry-mintimeout=100', '--loglevel=error', '--no-progress',
    r.url ? `--registry=${r.url}` : '--offline'];
  // Scripts of packages are programs of the workspace.
  if (!r.build) options.push('--ignore-scripts');
  const locked = r.lock ? installLock(npm, options, r.lock) : null;
  if (locked && (locked.status !== 'ok' || !r.names.length)) return locked;
  const found = r.folder ? fromFolder(require('node:module').createRequire(npm)('semver'), r.folder, r.names) : { names: r.names };
  return found.failure || call(npm, ['install', '--no-save', '--omit=dev'], options, found.names);
}

const npm = findNpm();
npm ? run(npm, request) : { status: 'missing', detail: 'npm (Debian package: npm)' };

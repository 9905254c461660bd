// harness.mjs - the SDKs of one folder, unmodified, and checks named by the methods and options that they call. TAP.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

export const folder = process.env.E2B_SDK;
const require = createRequire(path.join(folder, 'package.json'));
export const e2b = require('e2b');
export const ci = require('@e2b/code-interpreter');
export { assert };

const SECONDS = 90; // of one check
const declared = new Set((process.env.E2B_DECLARED ?? '').split('\n').filter(Boolean));
const checks = [];

/** One function for one or several methods and options; each is a line of the result. Those that these SDKs do not have are left out. */
export function check(ids, fn) {
  ids = [ids].flat();
  const known = declared.size ? ids.filter((id) => declared.has(id) || id.startsWith('+')) : ids;
  if (known.length) checks.push({ ids: known, fn });
}

/** Code interpreter sandboxes that end with the checks. */
const made = [];
export async function create(...args) {
  const s = await ci.Sandbox.create(...args);
  made.push(s);
  return s;
}

let shared;
/** One that checks share, as long as they leave it as it was. */
export async function box() {
  shared ??= await create({ timeoutMs: 600_000 });
  return shared;
}

export async function rejects(promise, type, pattern) {
  try {
    await promise;
  } catch (e) {
    if (type) assert.ok(e instanceof type, `${e?.constructor?.name}: ${e?.message}`);
    if (pattern) assert.match(String(e?.message), pattern);
    return e;
  }
  assert.fail('it did not fail');
}

/** Waits until fn returns something; ends without it. */
export async function until(fn, what) {
  for (let i = 0; i < 1500; i++) {
    const v = await fn();
    if (v) return v;
    await new Promise((r) => setTimeout(r, 20));
  }
  assert.fail(`${what} did not happen`);
}

/** What this server does not have: an answer 501 with a sentence. */
export async function missing(call) {
  const e = await rejects(call());
  assert.match(`${e.statusCode ?? ''} ${e.message}`, /501/);
  assert.match(e.message, /[a-z]+ [a-z]+/);
}

function late() {
  let timer;
  const promise = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not done after ${SECONDS} s`)), SECONDS * 1000); });
  return [promise, () => clearTimeout(timer)];
}

export async function run() {
  const word = process.env.E2B_WORD;
  if (process.env.E2B_LIST) {
    console.log(checks.flatMap((c) => c.ids).join('\n'));
    process.exit(0);
  }
  let n = 0, bad = 0;
  for (const c of checks) {
    if (word && !c.ids.some((id) => id.includes(word))) continue;
    const [clock, stop] = late();
    let error = null;
    try {
      await Promise.race([c.fn(), clock]);
    } catch (e) {
      error = e;
    }
    stop();
    for (const id of c.ids) {
      console.log(`${error ? 'not ok' : 'ok'} ${++n} - ${id}`);
      bad += error ? 1 : 0;
    }
    if (error) console.log(String(error?.stack ?? error).split('\n').slice(0, 12).map((l) => `# ${l}`).join('\n'));
  }
  await Promise.allSettled(made.map((s) => s.kill()));
  console.log(`1..${n}`);
  process.exit(bad ? 1 : 0);
}

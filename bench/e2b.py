#!/usr/bin/python3
"""The E2B-compatible API through the unmodified SDK: create + runCode + kill, and each call of a sandbox that lives."""
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2b"))
sys.dont_write_bytecode = True

import sdks  # noqa: E402
import server  # noqa: E402

ROUNDS = os.environ.get("ROUNDS") or "200"
SCRIPT = """
import { createRequire } from 'node:module';
const { Sandbox } = createRequire(process.env.E2B_SDK + '/package.json')('@e2b/code-interpreter');
const rounds = Number(process.env.ROUNDS);
const at = (times, q) => times.sort((a, b) => a - b)[Math.floor(times.length * q)].toFixed(2).padStart(8);
async function measure(name, fn, n = rounds) {
  for (let i = 0; i < 10; i++) await fn();
  const times = [];
  for (let i = 0; i < n; i++) {
    const begin = performance.now();
    await fn();
    times.push(performance.now() - begin);
  }
  console.log(`  ${name.padEnd(34)} p50 ${at(times, 0.5)} ms   p95 ${at(times, 0.95)} ms`);
}
await measure('create + runCode + kill', async () => { const s = await Sandbox.create(); await s.runCode('1+1'); await s.kill(); });
await measure('create + kill', async () => { const s = await Sandbox.create(); await s.kill(); });
const s = await Sandbox.create();
await measure('runCode 1+1', () => s.runCode('1+1'));
await measure('commands.run true', () => s.commands.run('true'));
await measure('files.write, 1 kB', () => s.files.write('x', 'x'.repeat(1000)));
await measure('files.read, 1 kB', () => s.files.read('x'));
await measure('files.list', () => s.files.list('.'));
await measure('isRunning', () => s.isRunning());
await s.kill();
"""


def main():
    try:
        folder, node = sdks.find("current"), sdks.node()
    except sdks.Need as why:
        print("bench/e2b: %s" % why)
        return 0
    with server.Server() as s:
        time.sleep(1)  # the template gets warm
        env = dict(os.environ, E2B_SDK=folder, E2B_API_URL=s.url, E2B_SANDBOX_URL=s.url, E2B_API_KEY=s.key, ROUNDS=ROUNDS)
        print("through @e2b/code-interpreter, %s rounds, load %.1f" % (ROUNDS, os.getloadavg()[0]))
        sys.stdout.flush()
        return subprocess.run([node, "--input-type=module", "-e", SCRIPT], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())

// suite.mjs - all checks, with the SDKs in $E2B_SDK against the server at $E2B_API_URL. The frameworks run with the current SDKs.
import { run } from './harness.mjs';

const names = ['sandbox', 'commands', 'files', 'code', 'client', 'git', 'ports', 'missing'];
if (process.env.E2B_FRAMEWORKS) names.push('frameworks');
for (const name of names) await import(`./checks/${name}.mjs`);
await run();

// tests/dropin/test_codepod.mjs - what codepod's TypeScript tests of public behaviour expect, by their names, of our Sandbox. Each expectation
// holds, or is listed in codepod/differences.mjs with a reason that clients/node/README.md gives too. TAP; a last line has the figures.
// -k WORD: only tests with this word, as "pod/mount".
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { differences, reasons } from "./codepod/differences.mjs";

const here = dirname(fileURLToPath(import.meta.url)), root = process.env.SRC ?? join(here, "..", "..");
process.env.CORDON ??= join(process.env.BUILD ?? join(root, "build"), "cordon");
const cordon = await import(pathToFileURL(join(root, "clients", "node", "index.js")));
const FILES = ["sandbox", "security", "adversarial", "mount", "persistence", "providers", "extensions", "python"];
const word = process.argv[2] === "-k" ? process.argv[3] : "";
const strict = process.env.CORDON_NEEDS === "strict";

let count = 0, failed = 0;
const figures = { holds: 0, differs: 0, fails: 0 };

function say(ok, name, note = "") {
  count++;
  failed += !ok;
  console.log(`${ok ? "ok" : "not ok"} ${count} - ${name}`);
  for (const line of note.split("\n").filter(Boolean)) console.log(`# ${line}`);
}

/** What a test opens is destroyed after it. */
async function attempt(fn, guest) {
  const opened = [];
  const open = async (options = {}) => {
    const sb = await cordon.Sandbox.create({ guest, ...options });
    opened.push(sb);
    return sb;
  };
  try {
    await fn({ open, guest, cordon, assert });
    return null;
  } catch (e) {
    return e;
  } finally {
    for (const sb of opened) await sb.destroy().catch(() => {});
  }
}

async function runFile(file, guest) {
  const tests = (await import(`./codepod/${file}.mjs`)).default;
  for (const [name, fn] of Object.entries(tests)) {
    const key = `${file}: ${name}`, listed = differences[key], differs = listed && (!listed.guest || listed.guest === guest);
    if (!`${guest}/${key}`.includes(word)) continue;
    const error = await attempt(fn, guest);
    if (differs) say(error !== null, `${guest}/${key} (differs: ${listed.why})`, error ? "" : "it is listed as a difference, but it holds");
    else say(error === null, `${guest}/${key}`, error ? String(error.stack ?? error) : "");
    figures[differs ? (error ? "differs" : "fails") : error ? "fails" : "holds"]++;
  }
  return Object.keys(tests).map((name) => `${file}: ${name}`);
}

async function hasPod() {
  const error = await attempt(async ({ open }) => (await open()).run("true"), "pod");
  if (error) console.log(`# pod: ${error.message}`);
  return error === null;
}

/** Nothing is listed that is not tested, and the client's page has every reason. */
function checkList(known) {
  const readme = readFileSync(join(root, "clients", "node", "README.md"), "utf8").replace(/\s+/g, " ");
  const unknown = Object.keys(differences).filter((key) => !known.includes(key));
  say(unknown.length === 0, "every listed difference is a test", unknown.join("\n"));
  for (const [why, text] of Object.entries(reasons)) {
    const isUsed = Object.values(differences).some((d) => d.why === why);
    const isTold = readme.includes(text);
    say(isUsed && isTold, `the README says why: ${why}`, !isUsed ? "no test has it" : isTold ? "" : `not in the README: ${text}`);
  }
}

const known = new Set();
for (const guest of ["sh", "pod"]) {
  if (guest === "pod" && !(await hasPod())) {
    if (strict) say(false, "pod", "there is no image");
    else console.log(`ok ${++count} - pod # SKIP there is no image`);
    continue;
  }
  for (const file of FILES) for (const key of await runFile(file, guest)) known.add(key);
}
checkList([...known]);
await cordon.shutdown();
console.log(`# codepod's TypeScript tests: ${figures.holds} expectations hold, ${figures.differs} differ with a reason, ${figures.fails} fail`);
console.log(`1..${count}`);
process.exitCode = failed ? 1 : 0;

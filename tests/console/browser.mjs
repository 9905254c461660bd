// browser.mjs FOLDER CHROMIUM URL KEY KEYLESS_URL HOME WORD - runs the tests whose names have the word. Prints "ok - NAME" and "not ok - NAME".
import path from "node:path";
import { Console, browser, tests } from "./harness.mjs";
import "./frame.mjs";
import "./playground.mjs";
import "./approval.mjs";
import "./views.mjs";
import "./hostile.mjs";
import "./ports.mjs";
import "./access.mjs";

const word = process.argv[8];

async function run({ name, fn, options }) {
	let c = null;
	let why = null;
	try {
		c = await Console.open(options);
		await fn(c);
	} catch (e) {
		why = e.stack ?? String(e);
		if (process.env.CONSOLE_SHOTS && c) await c.page.screenshot({ path: path.join(process.env.CONSOLE_SHOTS, `${name.replace(/\W+/g, "-")}.png`) }).catch(() => {});
	}
	const faults = c ? await c.close() : [];
	if (!why && faults.length) why = faults.join("\n");
	process.stdout.write(`${why ? "not ok" : "ok"} - ${name}\n${why ? why.split("\n").slice(0, 14).map((l) => `# ${l}\n`).join("") : ""}`);
	return !why;
}

for (const t of tests) if (!word || t.name.includes(word)) await run(t);
await browser.close();
process.stdout.write("# end\n");

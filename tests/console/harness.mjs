// harness.mjs - a page of the console in a real browser, and the list of tests. A test fails as well if the page logs an error or breaks its content policy, unless the test expects it.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [, , folder, chromium, url, key, keylessUrl, home] = process.argv;
const require = createRequire(path.join(folder, "node_modules", "x.js"));
const playwright = require("playwright-core");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const STATE_MS = Number(process.env.CONSOLE_STATE_MS ?? 60000); // a state that does not come

const axeSource = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const browser = await playwright.chromium.launch({ executablePath: chromium, args: FLAGS, env: { ...process.env, HOME: home } });

/** A page of its own, with what went wrong in it. */
class Console {
	static async open({ at = url, signIn = true, options = {} } = {}) {
		const self = new Console();
		self.context = await browser.newContext({ viewport: { width: 1280, height: 860 }, acceptDownloads: true, reducedMotion: "reduce", ...options });
		self.page = await self.context.newPage();
		self.page.setDefaultTimeout(STATE_MS);
		Object.assign(self, { at, faults: [], expected: [] });
		self.page.on("console", (m) => m.type() === "error" && self.faults.push(`console: ${m.text()}`));
		self.page.on("pageerror", (e) => self.faults.push(`error: ${e.stack ?? e}`));
		self.page.on("dialog", (d) => {
			self.faults.push(`dialog: ${d.message()}`);
			d.dismiss();
		});
		await self.page.addInitScript(() => document.addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
		await self.page.goto(at);
		if (signIn) await self.signIn();
		return self;
	}

	async signIn(text = key) {
		await this.page.fill("#key", text);
		await this.page.keyboard.press("Enter");
		await this.page.waitForSelector("#main h1");
	}

	expect(pattern) {
		this.expected.push(pattern);
	}

	async view(name) {
		await this.page.evaluate((n) => { location.hash = `#/${n}`; }, name);
		await this.page.waitForFunction((n) => document.querySelector("#nav a[aria-current]")?.dataset.view === n.split("?")[0], name);
		await this.page.waitForSelector("#main h1");
	}

	/** Puts code into the playground; run: presses Run and waits for the end. */
	async code(text, { run = true, language } = {}) {
		if (language) await this.page.selectOption("#language", language);
		await this.page.fill(".code-panel .editor-area", text);
		if (!run) return;
		await this.page.click("#run");
		await this.ended();
	}

	async ended() {
		await this.page.waitForFunction(() => /^(success|failed)$/.test(document.getElementById("run-state").dataset.state) && !document.getElementById("run").disabled);
	}

	text(selector) {
		return this.page.locator(selector).innerText();
	}

	/** A request to the API with the page's key. */
	async api(method, where, body) {
		const response = await fetch(this.at + where, { method, headers: { Authorization: `Bearer ${this.key ?? key}`, ...(typeof body === "object" ? { "Content-Type": "application/json" } : {}) }, body: typeof body === "object" ? JSON.stringify(body) : body });
		const text = await response.text();
		if (!response.ok) throw new Error(`${method} ${where}: ${response.status} ${text}`);
		return text && response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text;
	}

	/** The session of the playground. */
	session() {
		return this.page.evaluate(() => JSON.parse(sessionStorage.getItem("cordon-playground"))?.session ?? null);
	}

	async axe() {
		await this.page.evaluate(axeSource);
		const { violations } = await this.page.evaluate(() => window.axe.run(document, { preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
		return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
	}

	async close() {
		await this.context.close();
		return this.faults.filter((f) => !this.expected.some((e) => e.test(f)));
	}
}

export const tests = [];

/** fn(console): options of Console.open. */
export function test(name, fn, options) {
	tests.push({ name, fn, options });
}

export function check(value, text) {
	if (!value) throw new Error(text ?? "check failed");
}

export function equal(seen, wanted, text = "") {
	const [a, b] = [JSON.stringify(seen), JSON.stringify(wanted)];
	if (a !== b) throw new Error(`${text} saw ${a?.slice(0, 600)}, wanted ${b?.slice(0, 600)}`);
}

export { Console, home, key, keylessUrl, url };

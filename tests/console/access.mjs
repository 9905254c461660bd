// access.mjs - for everybody: axe's rules in both themes, a phone of 320 px, the keyboard alone.
import { Console, check, equal, key, test } from "./harness.mjs";

const VIEWS = ["playground", "sessions", "executions", "approvals", "files", "policy", "doctor", "audit", "keys"];
const READY = { sessions: "[data-session], .empty", executions: "tbody tr, .empty", approvals: ".question, .empty", files: ".crumbs, .empty", policy: ".editor", doctor: ".layer", audit: "tbody tr, .empty", keys: "tbody tr, .empty", playground: "#run" };

/** A session with all kinds of results, so that the views have something to show. */
async function prepare(c) {
	await c.page.selectOption("#level", "strict");
	await c.code("import subprocess\nprint('out')\nsubprocess.run(['ls'])");
	await c.page.click("text=See the policy change");
	await c.page.waitForSelector(".diff li");
}

for (const colorScheme of ["light", "dark"]) {
	test(`axe finds nothing in ${colorScheme}`, async (c) => {
		const first = await Console.open({ signIn: false, options: { colorScheme } });
		equal(await first.axe(), [], "sign-in");
		equal(await first.close(), []);
		await prepare(c);
		for (const name of VIEWS) {
			await c.view(name);
			await c.page.waitForSelector(READY[name]);
			equal(await c.axe(), [], name);
		}
		await c.page.locator("button:has-text('New key')").first().click();
		equal(await c.axe(), [], "dialog");
	}, { options: { colorScheme } });
}

test("a phone of 320 pixels needs no sideways scrolling", async (c) => {
	await prepareOnPhone(c);
	for (const name of VIEWS) {
		await c.page.click("#menu");
		await c.page.click(`#nav a[data-view="${name}"]`);
		await c.page.waitForSelector(READY[name]);
		check(!await c.page.locator("#nav").isVisible(), `${name}: the menu stays open`);
		const over = await c.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
		check(over <= 0, `${name}: ${over} px too wide`);
		const small = await c.page.locator("#main button:visible, #main a.button:visible, #main select:visible").evaluateAll((all) => all.map((b) => [b.textContent || b.ariaLabel, b.getBoundingClientRect().height, b.getBoundingClientRect().width]).filter(([, height, width]) => height < 24 || width < 24));
		equal(small, [], `${name}: too small to touch`);
	}
	equal(await c.axe(), []);
}, { options: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true } });

async function prepareOnPhone(c) {
	await c.page.selectOption("#level", "strict");
	await c.code("import subprocess\nprint('wide ' * 200)\nsubprocess.run(['ls'])");
	const over = await c.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
	check(over <= 0, `${over} px too wide`);
}

const focused = (c) => c.page.evaluate(() => {
	const e = document.activeElement;
	return e.id || e.dataset.view || e.getAttribute("aria-label") || e.textContent.trim().slice(0, 40) || e.tagName;
});

/** Presses Tab until an element has the focus. */
async function tabTo(c, name, max = 60) {
	for (let i = 0; i < max; i++) {
		await c.page.keyboard.press("Tab");
		if (await focused(c) === name) return;
	}
	throw new Error(`Tab does not reach ${name}; it is at ${await focused(c)}`);
}

test("everything is reached by keyboard", async (c) => {
	await c.page.waitForSelector("#key");
	equal(await focused(c), "key");
	await c.page.keyboard.type(key);
	await c.page.keyboard.press("Enter");
	await c.page.waitForSelector("#main h1");
	await c.page.evaluate(() => document.activeElement.blur());
	await c.page.keyboard.press("Tab");
	equal(await focused(c), "Skip to the content");
	await c.page.keyboard.press("Enter");
	equal(await focused(c), "Playground");
	await tabTo(c, "language");
	await tabTo(c, "Code");
	await c.page.keyboard.press("Control+A");
	await c.page.keyboard.type("if True:\nprint('typed')", { delay: 0 });
	equal(await c.page.inputValue(".code-panel .editor-area"), "if True:\n    print('typed')");
	await c.page.keyboard.press("Tab");
	check((await c.page.inputValue(".code-panel .editor-area")).endsWith("    "), "Tab indents");
	await c.page.keyboard.press("Control+Enter");
	await c.ended();
	equal((await c.text(".term-body")).trim(), "typed");
	equal(await focused(c), "Code");
	await c.page.keyboard.press("Escape");
	await c.page.keyboard.press("Tab");
	check(await focused(c) !== "Code", "Escape and Tab do not leave the editor");
	await c.page.evaluate(() => document.querySelector("#nav a").focus());
	await tabTo(c, "sessions");
	await c.page.keyboard.press("Enter");
	await c.page.waitForFunction(() => document.activeElement.tagName === "H1" && document.activeElement.textContent === "Sessions");
	await c.page.waitForSelector("[data-session]");
	const kill = await c.page.locator("button:has-text('Kill')").first().getAttribute("aria-label");
	await tabTo(c, kill);
	await c.page.keyboard.press("Enter");
	await c.page.waitForSelector("dialog[open]");
	await c.page.keyboard.press("Escape");
	await c.page.waitForSelector("dialog", { state: "detached" });
	equal(await focused(c), kill, "the focus after a dialog");
}, { signIn: false });

test("the focus is visible", async (c) => {
	for (const selector of ["#nav a", "#run", "#language", ".code-panel .editor-area", "summary"]) {
		const place = c.page.locator(selector).first();
		await place.focus();
		await c.page.keyboard.press("Shift");
		const outline = await place.evaluate((e) => [getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]);
		check(outline[0] !== "none" && outline[1] >= 1.5, `${selector}: ${outline}`);
	}
});

// browser.mjs PEERS CHROMIUM SITE - the site in Chromium, opened from its folder. Prints "ok - NAME" and "not ok - NAME".
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [, , peers, chromium, site] = process.argv;
const { chromium: driver } = createRequire(path.join(peers, "package.json"))("playwright-core");
const axe = path.join(peers, "node_modules", "axe-core", "axe.min.js");
const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox"] });
const address = (name) => pathToFileURL(path.join(site, name)).href;

async function test(name, options, fn) {
	const context = await browser.newContext(options);
	const page = await context.newPage();
	const faults = [];
	page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) faults.push(`it asks for ${request.url()}`); });
	page.on("pageerror", (error) => faults.push(String(error)));
	try {
		await fn(page);
	} catch (error) {
		faults.push(error.stack ?? String(error));
	}
	await context.close();
	process.stdout.write(`${faults.length ? "not ok" : "ok"} - ${name}\n${faults.join("\n")}${faults.length ? "\n" : ""}`);
}

function expect(value, wanted) {
	if (value !== wanted) throw new Error(`${JSON.stringify(value)} instead of ${JSON.stringify(wanted)}`);
}

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

await test("search by keyboard leads to a section", {}, async (page) => {
	await page.goto(address("index.html"));
	await page.keyboard.press("/");
	await page.keyboard.type("apparmor ubuntu");
	await page.waitForSelector("#found a mark");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.waitForURL(/install\.html#/);
});
await test("Enter opens the first result, Escape hides them", {}, async (page) => {
	await page.goto(address("policy.html"));
	await page.fill("#search input", "ten minutes");
	await page.waitForSelector("#found a");
	await page.keyboard.press("Escape");
	expect(await page.isVisible("#found"), false);
	await page.fill("#search input", "ten minutes with");
	await page.waitForSelector("#found a");
	await page.press("#search input", "Enter");
	await page.waitForURL(/ten-minutes\.html/);
});
await test("a query is text, not HTML", {}, async (page) => {
	await page.goto(address("index.html"));
	await page.fill("#search input", "<img src=x onerror=alert(1)>");
	await page.waitForSelector("#found p");
	expect(await page.locator("#found img").count(), 0);
});
await test("dark follows the machine", { colorScheme: "dark" }, async (page) => {
	await page.goto(address("index.html"));
	expect(await background(page), "rgb(20, 23, 26)");
});
await test("the button chooses, also for the next page", { colorScheme: "light" }, async (page) => {
	await page.goto(address("index.html"));
	expect(await background(page), "rgb(255, 255, 255)");
	await page.click("#theme");
	expect(await background(page), "rgb(20, 23, 26)");
	await page.goto(address("policy.html"));
	expect(await background(page), "rgb(20, 23, 26)");
});
await test("a phone: the menu is folded, nothing is wider than the page", { viewport: { width: 380, height: 700 } }, async (page) => {
	for (const name of ["index.html", "policy.html", "cookbook.html", "performance.html"]) {
		await page.goto(address(name));
		expect(await page.isVisible("nav ul"), false);
		expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
	}
	await page.click("nav summary");
	expect(await page.locator("nav li a").first().isVisible(), true);
});
await test("without scripts the pages can be read", { javaScriptEnabled: false }, async (page) => {
	await page.goto(address("index.html"));
	expect(await page.isVisible("nav ul"), true);
	expect(await page.isVisible("#theme"), false);
});
for (const colorScheme of ["light", "dark"]) {
	await test(`axe finds no fault, ${colorScheme}`, { colorScheme }, async (page) => {
		for (const name of ["index.html", "policy.html", "cookbook.html", "console.html"]) {
			await page.goto(address(name));
			await page.addScriptTag({ path: axe });
			const { violations } = await page.evaluate(() => window.axe.run());
			expect(violations.map((v) => `${v.id}: ${v.nodes[0].html}`).join("\n"), "");
		}
	});
}
await browser.close();

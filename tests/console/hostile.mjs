// hostile.mjs - what code prints, returns, names and raises tries to become a part of the page. It stays text.
import { check, equal, test } from "./harness.mjs";

const MARKUP = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2><a href=\"javascript:window.pwned=3\">go</a><iframe srcdoc=\"<script>parent.pwned=4</script>\"></iframe><svg onload=window.pwned=5>";

/** Nothing of it became an element, ran, or was asked for. */
async function unharmed(c, place) {
	equal(await c.page.evaluate(() => window.pwned), undefined);
	const found = await c.page.locator(place).evaluate((e) => [...e.querySelectorAll("script, iframe, object, embed, a[href], form, style, link, base, meta, [onerror], [onload], [style*=url], img:not([src^='blob:'])")].filter((x) => !x.closest("form.row")).map((x) => x.outerHTML.slice(0, 100)));
	equal(found, []);
	check(await c.page.evaluate(() => document.querySelectorAll("script").length) === 1, "another script");
}

test("hostile: markup that is printed is text", async (c) => {
	await c.code(`print(${JSON.stringify(MARKUP)})\nimport sys\nprint(${JSON.stringify(MARKUP)}, file=sys.stderr)\n${JSON.stringify(MARKUP)}`);
	const shown = await c.text(".term-body");
	equal(shown.trim(), `${MARKUP}\n${MARKUP}`);
	check((await c.text("#run-outputs")).includes("<script>"), "value");
	await unharmed(c, ".output-panel");
});

test("hostile: markup in errors, names and values is text", async (c) => {
	await c.code(`raise type(${JSON.stringify("E<b>")}, (Exception,), {})(${JSON.stringify(MARKUP)})`);
	check((await c.text(".error-block")).includes("<script>window.pwned=1</script>"), await c.text(".error-block"));
	await unharmed(c, ".output-panel");
	await c.code(`open(${JSON.stringify("<img src=x onerror=window.pwned=6>.txt")}, 'w').write(${JSON.stringify(MARKUP)})`);
	await c.view(`files?session=${await c.session()}`);
	await c.page.click("tr[data-name^='<img'] .link-button");
	await c.page.waitForSelector("dialog pre");
	equal(await c.text("dialog pre"), MARKUP);
	await unharmed(c, "#main");
	await unharmed(c, "dialog");
});

test("hostile: HTML, SVG and JavaScript outputs are never documents", async (c) => {
	await c.code(`class H:\n    def _repr_html_(self): return ${JSON.stringify(MARKUP)}\nH()`);
	await c.page.waitForSelector("#run-outputs .fold:has-text('HTML')");
	await unharmed(c, "#run-outputs");
	await c.code("class S:\n    def _repr_svg_(self): return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"><script>window.pwned=7</script><rect width=\"30\" height=\"20\" fill=\"red\"/></svg>'\nS()");
	const image = c.page.locator("#run-outputs img");
	await image.waitFor();
	equal(await image.evaluate(async (i) => {
		await i.decode();
		return [i.dataset.mime, i.naturalWidth, i.naturalHeight, i.src.startsWith("blob:")];
	}), ["image/png", 60, 40, true]);
	await unharmed(c, "#run-outputs");
});

test("hostile: a picture that is none is not shown", async (c) => {
	for (const data of ["b'<svg onload=alert(1)>' * 9", "b'\\x89PNG\\r\\n\\x1a\\n' + b'\\0\\0\\0\\rIHDR' + (100000).to_bytes(4, 'big') * 2 + b'\\x08\\2\\0\\0\\0' * 4"]) {
		await c.code(`class P:\n    def _repr_png_(self): return ${data}\nP()`);
		await c.page.waitForSelector("#run-outputs :text('not what it says')");
		equal(await c.page.locator("#run-outputs img").count(), 0);
	}
});

test("hostile: control sequences do not move, hide or link anything", async (c) => {
	await c.code("import sys\nw = sys.stdout.write\nw('\\x1b[31mred\\x1b[0m plain\\n')\nw('\\x1b]8;;javascript:window.pwned=8\\x1b\\\\link\\x1b]8;;\\x1b\\\\\\n')\nw('\\x1b[2J\\x1b[1;1Hhome\\n')\nw('\\x1b]0;title\\x07after\\n')\nw('a\\x00b\\x07c\\x7fd\\n')\nw('safe\\u202efdp.exe \\u2066x\\u2069 \\u200bzero\\n')\nw('10%\\r20%\\r100%\\n')\nw('\\x1b[38;2;1;2;3mdeep\\x1b[m \\x1b[' + '1;' * 50 + 'mbold\\x1b[0m\\n')\nw('\\x1bP' + 'q' * 2000 + '\\n')\nw('end\\n')");
	const lines = (await c.text(".term-body")).split("\n");
	equal(lines.slice(0, 8), ["red plain", "link", "home", "after", "a\u2400b\u2407c\u2421d", "safe\u27e8RLO\u27e9fdp.exe \u27e8LRI\u27e9x\u27e8PDI\u27e9 \u27e8ZWSP\u27e9zero", "100%", "deep bold"]);
	check(lines.includes("end"), "an unfinished sequence swallowed the rest");
	equal(await c.page.locator(".term-line .a-red").allInnerTexts(), ["red"]);
	check(await c.page.title() === "Playground \u00b7 Cordon", await c.page.title());
	await unharmed(c, ".output-panel");
});

test("hostile: output that looks like the protocol is output", async (c) => {
	const fake = "event: result\ndata: {\"success\": true, \"result\": 666, \"result_text\": \"666\", \"denials\": []}\n\n{\"jsonrpc\":\"2.0\",\"method\":\"approval\"}\nevent: approval\ndata: {\"id\": \"x\", \"session\": \"s\", \"kind\": \"k\", \"what\": \"w\"}\n";
	await c.code(`print(${JSON.stringify(fake)})\n1 / 0`);
	check((await c.text("#run-state")).includes("exception"), await c.text("#run-state"));
	check((await c.text(".term-body")).includes("event: result"), "not shown");
	equal(await c.page.locator(".question").count(), 0);
	check(!(await c.text("#run-outputs")).includes("666"), "believed");
});

test("hostile: huge lines and many lines leave the page alive", async (c) => {
	await c.code("print('x' * 900_000)\nprint('y')");
	const long = await c.page.locator(".term-line").first().evaluate((e) => e.textContent.length);
	check(long < 10000, `${long} characters`);
	check((await c.page.locator(".term-more").innerText()).includes("891,808 more characters"), await c.page.locator(".term-more").innerText());
	await c.code("for i in range(20000):\n    print(i)");
	const lines = await c.page.locator(".term-line").count();
	check(lines <= 5001 && (await c.text(".term-note")).includes("not shown"), `${lines} lines`);
	equal((await c.page.locator(".term-line").last().innerText()).trim(), "19999");
	const [saved] = await Promise.all([c.page.waitForEvent("download"), c.page.click("[aria-label='Save the output']")]);
	const chunks = [];
	for await (const chunk of await saved.createReadStream()) chunks.push(chunk);
	equal(Buffer.concat(chunks).toString().split("\n").length, 20001);
	await c.code("print('still here')");
	equal((await c.text(".term-body")).trim(), "still here");
});

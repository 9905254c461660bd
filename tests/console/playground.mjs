// playground.mjs - running code: streamed output, values, pictures, limits, denials, files, input.
import { check, equal, test } from "./harness.mjs";

test("output is shown while the code runs", async (c) => {
	await c.code("import os, time\nprint('first', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('second')\n6 * 7", { run: false });
	await c.page.click("#run");
	await c.page.waitForSelector(".term-line:has-text('first')");
	equal(await c.page.locator("#run-state").getAttribute("data-state"), "running");
	check(await c.page.locator("#run").isDisabled() && !await c.page.locator("#stop").isDisabled(), "buttons");
	equal(await c.page.locator(".term-line:has-text('second')").count(), 0);
	await c.api("PUT", `/v1/sessions/${await c.session()}/files?path=go`, "x");
	await c.ended();
	equal((await c.text(".term-body")).trim(), "first\nsecond");
	equal((await c.text("#run-outputs")).trim(), "42");
	check((await c.text("#run-state")).includes("success"), "state");
});

test("variables stay until a new session", async (c) => {
	await c.code("x = 20");
	const first = await c.session();
	await c.code("x + 1");
	equal((await c.text("#run-outputs")).trim(), "21");
	equal(await c.session(), first);
	await c.page.click("text=New session");
	await c.page.waitForSelector("text=The first run opens a session");
	await c.code("'x' in globals()");
	equal((await c.text("#run-outputs")).trim(), "False");
	check(await c.session() !== first, "the same session");
});

test("usage is shown against the limits of the policy", async (c) => {
	await c.page.selectOption("#level", "strict");
	await c.code("print('x' * 1000)");
	const meters = await c.page.locator("[role=meter]").evaluateAll((all) => all.map((m) => [m.getAttribute("aria-label"), Number(m.getAttribute("aria-valuenow")), m.getAttribute("aria-valuetext")]));
	equal(meters.map((m) => m[0]), ["Time", "CPU", "Memory", "Output"]);
	for (const [name, now, text] of meters) check(now >= 0 && now <= 100 && /, of \d/.test(text), `${name} ${now} ${text}`);
	check(meters[2][2].endsWith("of 256 MiB") && meters[0][2].endsWith("of 10 s"), JSON.stringify(meters));
});

test("an endless loop is stopped", async (c) => {
	await c.code("print('begun', flush=True)\nwhile True:\n    pass", { run: false });
	await c.page.click("#run");
	await c.page.waitForSelector(".term-line:has-text('begun')");
	await c.page.click("#stop");
	await c.ended();
	check((await c.text("#run-state")).includes("cancelled"), await c.text("#run-state"));
	await c.code("1 + 1");
	equal((await c.text("#run-outputs")).trim(), "2");
});

test("what is denied has a remedy, which one click shows as a policy change and another uses", async (c) => {
	await c.page.selectOption("#level", "strict");
	await c.code("import subprocess\nsubprocess.run(['ls', '/'], capture_output=True).returncode");
	check((await c.text("#run-state")).includes("denied"), await c.text("#run-state"));
	check((await c.text(".denial")).includes("commands+=ls"), await c.text(".denial"));
	await c.page.click("text=See the policy change");
	await c.page.waitForSelector(".denial .diff li");
	const diff = await c.text(".denial .diff");
	check(/^commands: .*"ls"/.test(diff) && diff.includes("looser"), diff);
	const first = await c.session();
	await c.page.click("text=Use it in the next run");
	await c.page.waitForSelector(".chip:has-text('commands+=ls')");
	await c.page.click("#run");
	await c.ended();
	equal((await c.text("#run-outputs")).trim(), "0");
	check(await c.session() !== first, "the old session had the old policy");
	await c.page.click("[aria-label='Remove commands+=ls']");
	await c.page.click("#run");
	await c.ended();
	check((await c.text("#run-state")).includes("denied"), "still allowed");
});

test("a remedy that leaves the value to the person takes one", async (c) => {
	await c.code("import urllib.request\nurllib.request.urlopen('http://example.org')");
	await c.page.fill("[aria-label='Value for network.allow']", "example.org");
	await c.page.click(".denial button:has-text('See the policy change')");
	await c.page.waitForSelector(".denial .diff li");
	check((await c.text(".denial .diff")).includes("example.org"), await c.text(".denial .diff"));
});

test("an error has its traceback, and a wrong policy its reason", async (c) => {
	await c.code("def f():\n    raise ValueError('no <b>good</b>')\nf()");
	check((await c.text("#run-state")).includes("exception"), "state");
	check((await c.text(".error-block")).includes("ValueError: no <b>good</b>"), await c.text(".error-block"));
	c.expect(/status of 400/);
	await c.page.click("summary:has-text('Policy changes')");
	await c.page.fill("[aria-label='A change, FIELD=VALUE']", "no_such_field=1");
	await c.page.keyboard.press("Enter");
	await c.page.click("#run");
	await c.ended();
	check((await c.text("#run-result .notice.bad")).includes("no_such_field"), await c.text("#run-result"));
});

test("files are copied in, and stdin is read", async (c) => {
	await c.page.click("summary:has-text('Files')");
	await c.page.setInputFiles("[aria-label='Choose files']", { name: "data.txt", mimeType: "text/plain", buffer: Buffer.from("one\ntwo\n") });
	await c.page.click("summary:has-text('Standard input')");
	await c.page.fill("text=What the code reads from stdin", "typed");
	await c.code("import sys\nprint(open('data.txt').read() + sys.stdin.read())");
	equal((await c.text(".term-body")).trim(), "one\ntwo\ntyped");
});

test("each language runs and is coloured", async (c) => {
	const { guests } = await c.api("GET", "/v1/doctor");
	const codes = { python: ["def f():\n    return 'py'\nprint(f())  # note", "py"], r: ["x <- \"er\" # note\ncat(x)", "er"], node: ["const x = 'js'; // note\nconsole.log(x);", "js"], sh: ["x=shell # note\necho \"$x\"", "shell"] };
	for (const { guest } of guests.filter((g) => g.there && codes[g.guest])) {
		await c.code(codes[guest][0], { language: guest });
		equal((await c.text(".term-body")).trim(), codes[guest][1], guest);
		const kinds = await c.page.locator(".code-panel .editor-copy span").evaluateAll((all) => [...new Set(all.map((s) => s.className))]);
		check(kinds.includes("t-string") && kinds.includes("t-comment"), `${guest}: ${kinds}`);
		equal(await c.page.locator(".code-panel .editor-copy").evaluate((e) => e.textContent), `${codes[guest][0]}\n`, guest);
	}
});

test("pictures and tables are shown", async (c) => {
	await c.code("import struct, zlib\nchunk = lambda k, d: struct.pack('>I', len(d)) + k + d + struct.pack('>I', zlib.crc32(k + d))\npng = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 40, 20, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress((b'\\0' + b'\\x20\\x60\\xd0' * 40) * 20)) + chunk(b'IEND', b'')\nclass P:\n    def _repr_png_(self): return png\nP()");
	const image = c.page.locator("#run-outputs img");
	await image.waitFor();
	equal(await image.evaluate(async (i) => {
		await i.decode();
		return [i.naturalWidth, i.naturalHeight, i.src.startsWith("blob:"), i.dataset.mime];
	}), [40, 20, true, "image/png"]);
	await c.code("try:\n    import pandas\nexcept ImportError:\n    pandas = None\npandas and pandas.DataFrame({'n': [1, 2], '<i>': ['a', None]})");
	if ((await c.text("#run-outputs")).trim() === "None") return;
	equal(await c.page.locator(".frame thead th").allInnerTexts(), ["row", "n", "<i>"]);
	equal(await c.page.locator(".frame tbody tr").count(), 2);
	equal(await c.page.locator("#run-outputs .fold").count(), 0, "other forms of the table");
});

test("the draft survives a reload", async (c) => {
	await c.code("kept = 'yes'");
	await c.page.reload();
	await c.page.waitForSelector("#run");
	equal(await c.page.inputValue(".code-panel .editor-area"), "kept = 'yes'");
	await c.code("kept");
	equal((await c.text("#run-outputs")).trim(), "'yes'");
});

test("a session that is gone is replaced", async (c) => {
	c.expect(/status of 404/);
	await c.code("1");
	await c.api("DELETE", `/v1/sessions/${await c.session()}`);
	await c.page.click("#run");
	await c.page.waitForSelector("#run-result .notice.bad");
	await c.page.click("#run-result .notice.bad button");
	await c.page.waitForSelector("#run-state[data-state=success]");
});

// views.mjs - sessions, executions, files, policy, doctor, audit, keys.
import fs from "node:fs";
import { Console, check, equal, test } from "./harness.mjs";

test("sessions: what they use, interrupt, kill", async (c) => {
	await c.code("import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)", { run: false });
	await c.page.click("#run");
	await c.page.waitForSelector(".term-line:has-text('begun')");
	const id = await c.session();
	await c.view("sessions");
	const row = c.page.locator(`tr[data-session="${id}"]`);
	await row.locator(".badge:has-text('executing')").waitFor();
	const cells = Object.fromEntries(await row.locator("td").evaluateAll((all) => all.map((td) => [td.dataset.title, td.innerText.trim()])));
	check(/\d+ (s|min)/.test(cells.Age) && /\d (KiB|MiB)/.test(cells["Memory (peak)"]) && Number(cells.Processes) >= 1 && /in \d/.test(cells.Files), JSON.stringify(cells));
	check(cells.Guest === "Python" && cells.Executions === "1", JSON.stringify(cells));
	await row.locator("[aria-label^=Interrupt]").click();
	await c.page.waitForSelector(`tr[data-session="${id}"] .badge:has-text("idle")`);
	await row.locator("button:has-text('Kill')").click();
	await c.page.click("dialog button:has-text('Keep it')");
	equal(await row.count(), 1);
	await row.locator("button:has-text('Kill')").click();
	await c.page.click("dialog button:has-text('Kill it')");
	await c.page.waitForSelector(`tr[data-session="${id}"]`, { state: "detached" });
});

test("sessions: one of the API is opened in the playground", async (c) => {
	const { session } = await c.api("POST", "/v1/sessions", { guest: "sh" });
	await c.api("POST", `/v1/sessions/${session}/executions`, { code: "word=carried" });
	await c.view("sessions");
	await c.page.click(`tr[data-session="${session}"] a:has-text("Open")`);
	await c.page.waitForFunction(() => document.getElementById("language")?.value === "sh");
	await c.code("echo \"$word\"");
	equal((await c.text(".term-body")).trim(), "carried");
	equal(await c.session(), session);
	await c.api("DELETE", `/v1/sessions/${session}`);
});

test("executions: filters, and the figures of what is left", async (c) => {
	const { session } = await c.api("POST", "/v1/sessions", { guest: "sh" });
	for (let i = 0; i < 4; i++) await c.api("POST", `/v1/sessions/${session}/executions`, { code: i ? "true" : "exit 3" });
	await c.view("executions");
	await c.page.fill("input[type=search]", session);
	await c.page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 4);
	const figures = () => c.page.locator(".figure").evaluateAll((all) => Object.fromEntries(all.map((f) => [f.firstChild.textContent, f.lastChild.textContent])));
	const seen = await figures();
	check(seen.Shown === "4" && seen.Running === "0" && /\d m?s$/.test(seen.p50) && /\d m?s$/.test(seen.p95), JSON.stringify(seen));
	check(await c.page.locator(".strip line").count() === 4, "strip");
	await c.page.fill("input[type=search]", "no such execution");
	await c.page.waitForSelector(".empty:has-text('Nothing fits')");
	await c.page.click("text=Clear the filter");
	await c.page.waitForSelector("tbody tr");
	await c.api("DELETE", `/v1/sessions/${session}`);
});

test("executions: a running one is cancelled", async (c) => {
	await c.code("print('begun', flush=True)\nwhile True:\n    pass", { run: false });
	await c.page.click("#run");
	await c.page.waitForSelector(".term-line:has-text('begun')");
	await c.view("executions");
	await c.page.selectOption("text=Outcome", "running");
	await c.page.click("button:has-text('Cancel')");
	await c.page.waitForSelector(".empty:has-text('Nothing fits')");
	await c.view("playground");
	await c.ended();
	check((await c.text("#run-state")).includes("cancelled"), await c.text("#run-state"));
});

test("files: up, down, look, make, rename, remove", async (c) => {
	const { session } = await c.api("POST", "/v1/sessions", { guest: "sh" });
	await c.view(`files?session=${session}`);
	await c.page.waitForSelector(".crumbs");
	const bytes = Buffer.from([0, 1, 2, 250, 255, 10, 13]);
	await c.page.setInputFiles("#upload-input", [{ name: "blob.bin", mimeType: "text/html", buffer: bytes }, { name: "a note.txt", mimeType: "text/plain", buffer: Buffer.from("<script>alert(1)</script>\u202etxt") }]);
	await c.page.waitForSelector("tr[data-name='blob.bin']");
	const [saved] = await Promise.all([c.page.waitForEvent("download"), c.page.click("[aria-label='Download blob.bin']")]);
	equal([...fs.readFileSync(await saved.path())], [...bytes]);
	equal(saved.suggestedFilename(), "blob.bin");
	await c.page.click("tr[data-name='a note.txt'] .link-button");
	await c.page.waitForSelector("dialog pre");
	equal(await c.text("dialog pre"), "<script>alert(1)</script>\u27e8RLO\u27e9txt");
	await c.page.keyboard.press("Escape");
	await c.page.waitForSelector("dialog", { state: "detached" });
	await c.page.click("text=New folder");
	await c.page.fill("dialog input", "sub");
	await c.page.keyboard.press("Enter");
	await c.page.click("tr[data-name=sub] .link-button");
	await c.page.waitForSelector(".empty:has-text('empty')");
	await c.page.click(".crumbs li:nth-last-child(2) button");
	await c.page.click("[aria-label='Rename blob.bin']");
	await c.page.fill("dialog input", "other.bin");
	await c.page.keyboard.press("Enter");
	await c.page.waitForSelector("tr[data-name='other.bin']");
	await c.page.click("[aria-label='Remove sub']");
	await c.page.click("dialog button:has-text('Remove')");
	await c.page.waitForSelector("tr[data-name=sub]", { state: "detached" });
	const [tar] = await Promise.all([c.page.waitForEvent("download"), c.page.click("text=Save as tar")]);
	check(fs.readFileSync(await tar.path()).includes("other.bin"), "tar");
	await c.api("DELETE", `/v1/sessions/${session}`);
});

test("policy: check, explain, show, compare, use", async (c) => {
	await c.view("policy");
	const write = (text) => c.page.fill(".editor-area", text);
	const press = (name) => c.page.click(`button:has-text("${name}")`);
	await write("{\"timout_ms\": 1}");
	await press("Check");
	await c.page.waitForSelector("#policy-answer .notice.bad");
	check((await c.text("#policy-answer")).includes("timeout_ms"), await c.text("#policy-answer"));
	await write("{broken");
	await press("Check");
	await c.page.waitForSelector("#policy-answer:has-text('not JSON')");
	await write("{\"timeout_ms\": 2500}");
	await press("Check");
	await c.page.waitForSelector("#policy-answer .notice.good");
	await press("Explain");
	await c.page.waitForSelector(".sentences li:has-text('2500 ms')");
	await press("Show whole");
	await c.page.waitForSelector("#policy-answer pre");
	equal(JSON.parse(await c.text("#policy-answer pre")).timeout_ms, 2500);
	await press("Compare");
	await c.page.waitForSelector("#policy-answer .diff li:has-text('timeout_ms')");
	await press("Use in the playground");
	await c.page.waitForSelector("#run");
	await c.code("1");
	check((await c.page.locator("[role=meter]").first().getAttribute("aria-valuetext")).endsWith("of 2.50 s"), "limit");
});

test("doctor: layers, guests, and the proof of one attack", async (c) => {
	await c.view("doctor");
	await c.page.waitForSelector(".layer:has-text('seccomp')");
	check((await c.text("#main")).includes("Python"), "guests");
	await c.page.fill("text=Attack", "chroot");
	await c.page.click("text=Run the proof");
	await c.page.waitForSelector("#proof .notice, #proof .table");
	check((await c.text("#proof .notice")).includes("No attack succeeded"), await c.text("#proof"));
	await c.page.waitForSelector("tr[data-attack=chroot] .badge:has-text('held')");
	check(await c.page.locator("tr[data-attack=chroot]").count() >= 2, "not in all sandboxes");
});

test("audit: events are found, and the log is verified", async (c) => {
	await c.code("print('audited-words')");
	await c.view("audit");
	await c.page.fill("input[type=search]", "audited-words");
	await c.page.waitForSelector("tbody tr:has-text('execute_start')");
	await c.page.click("tbody tr summary");
	check((await c.text("tbody tr pre")).includes("audited-words"), "details");
	await c.page.click("button:has-text('Verify')");
	await c.page.waitForSelector("#verification .notice.good");
	check(/\d+ lines/.test(await c.text("#verification")), await c.text("#verification"));
});

test("keys: made, shown once, used, revoked", async (c) => {
	await c.view("keys");
	await c.page.locator("button:has-text('New key')").first().click();
	await c.page.fill("dialog >> text=Name", "bob");
	await c.page.fill("dialog >> text=Policy", "{\"level\": \"strict\"}");
	await c.page.click("text=Make the key");
	const text = (await c.page.locator("#new-key").innerText()).trim();
	check(/^cordon_[0-9a-f]+$/.test(text), text);
	await c.page.click("dialog button:has-text('Done')");
	await c.page.waitForSelector("tr[data-key=bob] .badge:has-text('valid')");
	check(!(await c.page.content()).includes(text), "still shown");
	const other = await Console.open({ signIn: false });
	other.key = text;
	await other.signIn(text);
	equal(await other.page.locator("#nav a[data-view=keys]").count(), 0);
	await other.code("1 + 1");
	check((await other.page.locator("[role=meter]").first().getAttribute("aria-valuetext")).endsWith("of 10 s"), "not the policy of the key");
	const hers = await other.session();
	await other.view("sessions");
	await other.page.waitForSelector(`tr[data-session="${hers}"]`);
	equal(await other.page.locator("tbody tr").count(), 1);
	await c.view("sessions");
	await c.page.waitForSelector(`tr[data-session="${hers}"]:has-text("bob")`);
	await c.view("keys");
	await c.page.click("[aria-label='Revoke bob']");
	await c.page.click("dialog button:has-text('Revoke')");
	await c.page.waitForSelector("tr[data-key=bob] .badge:has-text('revoked'), .empty:has-text('No keys')");
	other.expect(/status of 401/);
	await other.page.waitForSelector("#key");
	check((await other.text(".notice.bad")).includes("no longer takes the key"), "no reason");
	await other.signIn();
	await other.view("playground");
	equal((await other.text("#run-outputs")).trim(), "", "the last key's output");
	equal(await other.session(), null, "the last key's session");
	equal(await other.close(), []);
});

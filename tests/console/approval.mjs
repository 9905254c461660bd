// approval.mjs - code that waits for a person: allow, deny, answer.
import { check, equal, test } from "./harness.mjs";

const TOOLS = JSON.stringify([{ name: "pay", description: "Pays.", args: { amount: "integer" }, approval: true }, { name: "ask", args: { what: "string" } }]);

async function begin(c, code) {
	await c.page.click("summary:has-text('Tools that you answer')");
	await c.page.fill("text=A list of tools, as JSON", TOOLS);
	await c.code(code, { run: false });
	await c.page.click("#run");
}

test("a tool call is answered in the playground", async (c) => {
	await begin(c, "ask(what='<img src=x onerror=alert(1)>')");
	await c.page.waitForSelector("#run-questions .question");
	check((await c.text("#run-questions .question")).includes("<img src=x onerror=alert(1)>"), "the argument is not text");
	await c.page.fill("#run-questions textarea", "{\"n\": 7}");
	await c.page.click("#run-questions button:has-text('Answer')");
	await c.ended();
	equal((await c.text("#run-outputs")).trim(), "{'n': 7}");
});

test("an approval that is allowed lets the tool be called", async (c) => {
	await begin(c, "pay(amount=5)");
	await c.page.waitForSelector("#run-questions button:has-text('Allow')");
	await c.page.waitForSelector("#waiting:not([hidden])");
	await c.page.click("#run-questions button:has-text('Allow')");
	await c.page.waitForSelector("#run-questions .question:has-text('Tool call')");
	await c.page.locator("#run-questions .question:has-text('Tool call')").locator("textarea").fill("paid");
	await c.page.locator("#run-questions .question:has-text('Tool call')").locator("button:has-text('Answer')").click();
	await c.ended();
	equal((await c.text("#run-outputs")).trim(), "'paid'");
	await c.page.waitForSelector("#waiting", { state: "hidden" });
});

test("an approval is denied in its own view, with a reason", async (c) => {
	await begin(c, "pay(amount=6)");
	await c.page.waitForSelector("#run-questions .question");
	await c.view("approvals");
	await c.page.waitForSelector(".questions .question");
	await c.page.click(".questions summary");
	await c.page.fill(".questions input", "too much");
	await c.page.click(".questions button:has-text('Deny')");
	await c.page.waitForSelector(".questions .question.is-done .badge:has-text('denied')");
	await c.view("playground");
	await c.ended();
	check((await c.text(".error-block")).includes("too much"), await c.text(".error-block"));
});

test("an approval is answered in place of the tool", async (c) => {
	await begin(c, "pay(amount=7)");
	await c.page.waitForSelector("#run-questions .question");
	await c.view("approvals");
	await c.page.waitForSelector(".questions .question");
	await c.page.click(".questions button:has-text('Answer')");
	await c.page.keyboard.type("[1, 2]");
	await c.page.click(".questions button:has-text('Answer')");
	await c.view("playground");
	await c.ended();
	equal((await c.text("#run-outputs")).trim(), "[1, 2]");
});

test("what is answered elsewhere is told", async (c) => {
	c.expect(/status of 404|status of 409|status of 400/);
	await begin(c, "ask(what='x')");
	await c.page.waitForSelector("#run-questions .question");
	const { tool_calls: [call] } = await c.api("GET", "/v1/questions");
	await c.page.route("**/tool_calls/**", (route) => route.continue({ url: route.request().url().replace(call.id, "cb_0") }));
	await c.page.click("#run-questions button:has-text('Answer')");
	await c.page.waitForSelector("#run-questions .notice.bad");
	await c.page.unroute("**/tool_calls/**");
	await c.page.click("#run-questions button:has-text('Fail')");
	await c.ended();
	check((await c.text("#run-state")).includes("tool"), await c.text("#run-state"));
});

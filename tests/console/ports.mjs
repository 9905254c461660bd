// ports.mjs - pages of a server in a sandbox: never with the console's origin, and with an origin of their own they get nothing of the console.
import { check, equal, keylessUrl, test } from "./harness.mjs";

const { port } = new URL(keylessUrl);
// Tries what it can as soon as it is shown, and says so in its title.
const PAGE = `<!doctype html><title>shown</title><script>
document.title = "ran";
sessionStorage.setItem("cordon-key", "from a sandbox");
const tries = ["http://localhost:${port}/v1/sessions", "http://127.0.0.1:${port}/v1/sessions", "http://127.0.0.1:${port}/v1/executions"];
Promise.all(tries.map((at, i) => fetch(at, i < 2 ? {} : { method: "POST", mode: "no-cors", body: "{}" }).then((r) => r.type === "opaque" ? "sent" : r.status, () => "refused")))
	.then((got) => { document.title = "ran " + got.join(" "); });
</script>`;
const SERVER = `import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_script = self.path.endswith(".js")
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_script else "text/html")
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Set-Cookie", "from=sandbox; Path=/")
        self.end_headers()
        self.wfile.write(b"self.ran = true" if is_script else open("page.html", "rb").read())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), H).serve_forever()`;

async function until(fn) {
	for (let i = 0; i < 600; i++) {
		if (await fn()) return;
		await new Promise((r) => setTimeout(r, 50));
	}
	throw new Error("it did not happen");
}

test("a page of a sandbox is not shown with the console's origin", async (c) => {
	c.expect(/status of 40[34]|ServiceWorker|TrustedScriptURL|requires 'Trusted|policy: /);
	const { session } = await c.api("POST", "/v1/sessions", { guest: "python", languages: ["python", "sh"], policy: { expose: [8000] } });
	const at = `/v1/sessions/${session}`;
	try {
		await c.api("PUT", `${at}/files?path=page.html`, PAGE);
		await c.api("PUT", `${at}/files?path=server.py`, SERVER);
		await c.api("POST", `${at}/commands`, { command: "python3 server.py", background: true });
		const shown = `${at}/ports/8000/`;
		await until(() => c.api("GET", shown).then(() => true, () => false));
		// The console may read it, as text.
		check((await c.page.evaluate((where) => fetch(where).then((r) => r.text()), shown)).includes("<!doctype html>"), "not read");
		equal(await c.page.evaluate(() => document.cookie), "");
		// Nothing may be made of it.
		const tried = await c.page.evaluate(async (where) => {
			const worker = await navigator.serviceWorker.register(`${where}sw.js`, { scope: "/" }).then(() => "registered", () => "refused");
			return { worker, workers: (await navigator.serviceWorker.getRegistrations()).length };
		}, shown);
		equal(tried, { worker: "refused", workers: 0 });
		const answer = await c.page.goto(keylessUrl + shown);
		equal(answer.status(), 403);
		check((await c.page.title()) !== "shown" && !(await c.page.title()).startsWith("ran"), await c.page.title());
		check((await answer.text()).includes("name of the port"), await answer.text());
	} finally {
		await c.api("DELETE", at);
	}
}, { at: keylessUrl, signIn: false });

test("a page of a sandbox with an origin of its own gets nothing of the console", async (c) => {
	c.expect(/status of (40[34]|502)|CORS policy|ERR_FAILED|ERR_BLOCKED/);
	const before = (await c.api("GET", "/v1/executions")).executions.length;
	const made = await c.api("POST", "/v2/sandboxes", { templateID: "web", timeout: 120, network: { allowPublicTraffic: true } });
	const headers = { "E2b-Sandbox-Id": made.sandboxID, "X-Access-Token": made.envdAccessToken };
	const put = (name, text) => fetch(`${keylessUrl}/files?path=${name}`, { method: "POST", headers: { ...headers, "Content-Type": "application/octet-stream" }, body: text });
	const start = JSON.stringify({ process: { cmd: "/bin/bash", args: ["-c", "cd; exec python3 server.py"] }, stdin: false });
	const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), Buffer.from(start)]);
	frame.writeUInt32BE(Buffer.byteLength(start), 1);
	try {
		await put("page.html", PAGE);
		await put("server.py", SERVER);
		const running = await fetch(`${keylessUrl}/process.Process/Start`, { method: "POST", headers: { ...headers, "Content-Type": "application/connect+json" }, body: frame });
		const at = `http://8000-${made.sandboxID}.${made.domain}/`;
		equal(made.domain, `localhost:${port}`);
		await until(async () => (await c.page.goto(at)).status() === 200);
		await c.page.waitForFunction(() => document.title.split(" ").length === 4);
		equal((await c.page.title()).split(" ").slice(0, 3).join(" "), "ran refused refused");
		equal((await c.api("GET", "/v1/executions")).executions.length, before);
		await c.page.goto(keylessUrl);
		equal(await c.page.evaluate(() => [sessionStorage.getItem("cordon-key"), document.cookie]), [null, ""]);
		await running.body.cancel();
	} finally {
		await c.api("DELETE", `/sandboxes/${made.sandboxID}`);
	}
}, { at: keylessUrl, signIn: false });

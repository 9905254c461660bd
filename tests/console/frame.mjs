// frame.mjs - signing in, navigation, themes, and a server that is gone.
import { check, equal, key, keylessUrl, test } from "./harness.mjs";

test("a wrong key is refused with a way out", async (c) => {
	c.expect(/status of 401/);
	await c.page.fill("#key", "cordon_00ff");
	await c.page.click("text=Connect");
	await c.page.waitForSelector(".notice.bad");
	check((await c.text(".notice.bad")).includes("cordon serve"), "no remedy");
	equal(await c.page.evaluate(() => sessionStorage.getItem("cordon-key")), null);
	await c.signIn();
}, { signIn: false });

test("the key is in sessionStorage and nowhere else", async (c) => {
	const kept = await c.page.evaluate(() => ({ session: sessionStorage.getItem("cordon-key"), local: JSON.stringify(localStorage), cookie: document.cookie, text: document.documentElement.outerHTML, address: location.href }));
	equal(kept.session, key);
	const hex = key.split("_")[1];
	for (const place of ["local", "cookie", "text", "address"]) check(!kept[place].includes(hex), `the key is in ${place}`);
	await c.page.reload();
	await c.page.waitForSelector("#main h1");
	await c.page.click("[aria-label='Forget the key']");
	await c.page.waitForSelector("#key");
	equal(await c.page.evaluate(() => sessionStorage.length), 0);
});

test("a server without keys asks for none", async (c) => {
	await c.page.waitForSelector("#main h1");
	equal(await c.page.locator("#key").count(), 0);
	equal(await c.page.locator("[aria-label='Forget the key']").count(), 0);
}, { at: keylessUrl, signIn: false });

test("each view has its address, title and heading", async (c) => {
	for (const name of ["sessions", "executions", "approvals", "files", "policy", "doctor", "audit", "keys", "playground"]) {
		await c.page.click(`#nav a[data-view="${name}"]`);
		await c.page.waitForFunction((n) => location.hash === `#/${n}` && document.querySelector("#nav a[aria-current]")?.dataset.view === n, name);
		const heading = await c.text("#main h1");
		equal(heading.toLowerCase(), name);
		check((await c.page.title()).startsWith(heading), await c.page.title());
		equal(await c.page.locator("#main h1").count(), 1);
	}
	await c.page.goBack();
	await c.page.waitForFunction(() => document.querySelector("#main h1")?.textContent === "Keys");
});

test("the theme follows the system and can be set", async (c) => {
	const back = () => c.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	await c.page.emulateMedia({ colorScheme: "light" });
	const light = await back();
	await c.page.emulateMedia({ colorScheme: "dark" });
	const dark = await back();
	check(light !== dark, `both are ${light}`);
	await c.page.click("[aria-label='Theme: as the system']");
	equal(await back(), light, "set to light");
	await c.page.click("[aria-label='Theme: light']");
	await c.page.emulateMedia({ colorScheme: "light" });
	equal(await back(), dark, "set to dark");
	await c.page.reload();
	await c.page.waitForSelector("#main h1");
	equal(await back(), dark, "after a reload");
});

test("motion stops if the person asks for it", async (c) => {
	const seconds = await c.page.evaluate(() => {
		const spinner = document.body.appendChild(document.createElement("span"));
		spinner.className = "spinner";
		return parseFloat(getComputedStyle(spinner).animationDuration);
	});
	check(seconds < 0.01, `${seconds} s`);
});

test("a server that does not answer is told, with what to do", async (c) => {
	c.expect(/ERR_FAILED/);
	await c.page.route("**/console/sessions", (route) => route.abort());
	await c.page.route("**/v1/questions", (route) => route.abort());
	await c.view("sessions");
	await c.page.waitForSelector("#main .notice.bad");
	check((await c.text("#main .notice.bad")).includes("cordon serve runs"), await c.text("#main .notice.bad"));
	await c.page.waitForSelector("#dot.is-off");
	await c.page.unroute("**/console/sessions");
	await c.page.unroute("**/v1/questions");
	await c.page.click("#main .notice.bad button");
	await c.page.waitForSelector("#main .empty, #main [data-session]");
	await c.page.waitForSelector("#dot:not(.is-off)");
});

test("a page cannot turn text into HTML or run what is not its own", async (c) => {
	c.expect(/policy: |TrustedHTML|Content Security Policy|requires 'Trusted/);
	const outcome = await c.page.evaluate(async () => {
		const tried = {};
		try {
			document.body.insertAdjacentHTML("beforeend", "<b id=made>x</b>");
			tried.html = "made";
		} catch (e) {
			tried.html = e.name;
		}
		const image = new Image();
		tried.image = await new Promise((resolve) => {
			image.onload = () => resolve("loaded");
			image.onerror = () => resolve("refused");
			image.src = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
		});
		const frame = document.createElement("iframe");
		frame.src = "/";
		document.body.append(frame);
		await new Promise((resolve) => {
			frame.onload = resolve;
			frame.onerror = resolve;
		});
		try {
			tried.frame = frame.contentDocument?.getElementById("app") ? "shown" : "refused";
		} catch {
			tried.frame = "refused";
		}
		return tried;
	});
	equal(outcome, { html: "TypeError", image: "refused", frame: "refused" });
});

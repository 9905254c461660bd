// main.js - the frame: sign-in, navigation, theme, and the view that the address names.
import { Problem, get, hasKey, me, poll, setKey, whenRefused } from "./api.js";
import approvals from "./approvals.js";
import audit from "./audit.js";
import doctor from "./doctor.js";
import { fill, h, visible } from "./dom.js";
import executions from "./executions.js";
import files from "./files.js";
import { icon, mark } from "./icons.js";
import keys from "./keys.js";
import { button, field, problemBox } from "./parts.js";
import playground from "./playground.js";
import policy from "./policy.js";
import sessions from "./sessions.js";

const VIEWS = { playground, sessions, executions, approvals, files, policy, doctor, audit, keys };
const THEMES = ["auto", "light", "dark"];
const app = document.getElementById("app");
let leave = null; // ends what the shown view does in the background
let about = { keys: true };

function setTheme(name) {
	if (name === "auto") delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = name;
	localStorage.setItem("cordon-theme", name);
}

function themeButton() {
	const names = { auto: ["auto", "Theme: as the system"], light: ["sun", "Theme: light"], dark: ["moon", "Theme: dark"] };
	let current = THEMES.includes(localStorage.getItem("cordon-theme")) ? localStorage.getItem("cordon-theme") : "auto";
	const element = button("", { kind: "ghost", label: names[current][1], onclick: () => {
		current = THEMES[(THEMES.indexOf(current) + 1) % THEMES.length];
		setTheme(current);
		draw();
	} });
	const draw = () => {
		element.setAttribute("aria-label", names[current][1]);
		element.title = names[current][1];
		fill(element, icon(names[current][0]));
	};
	setTheme(current);
	draw();
	return element;
}

function signOut() {
	setKey("");
	sessionStorage.clear();
	location.reload();
}

/** The page for a key. message: why we are here again. */
function signIn(message) {
	leave?.abort();
	const problems = h("div", {}, message ? problemBox(message) : null);
	const input = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", autocapitalize: "off", required: true });
	const submit = h("button", { type: "submit", class: "button primary wide-button" }, "Connect");
	const form = h("form", { class: "card signin", on: { submit: async (e) => {
		e.preventDefault();
		submit.disabled = true;
		setKey(input.value.trim());
		try {
			await start();
		} catch (problem) {
			setKey("");
			fill(problems, problemBox(problem.status === 401 ? new Problem({ status: 401, detail: "The server does not know this key.", remedy: "cordon serve prints the administrator's key when it starts; cordon serve key add makes another." }) : problem));
			input.select();
			input.focus();
		}
		submit.disabled = false;
	} } }, mark(), h("h1", {}, "Cordon"), h("p", { class: "muted" }, "This console needs a key of the server. It stays in this tab and is forgotten when you close it."), field("Key", input), problems, submit);
	fill(app, h("main", { class: "signin-page" }, form));
	document.title = "Cordon: connect";
	input.focus();
}

function navigation() {
	const shown = Object.entries(VIEWS).filter(([name]) => name !== "keys" || me.admin);
	const items = shown.map(([name, v]) => h("li", {}, h("a", { href: `#/${name}`, data: { view: name } }, icon(name), h("span", {}, v.title), name === "approvals" ? h("span", { class: "count", id: "waiting", hidden: true }) : null)));
	return h("nav", { id: "nav", "aria-label": "Views" }, h("ul", {}, items));
}

function setMenu(isOpen) {
	document.body.classList.toggle("menu-open", isOpen);
	const toggle = document.getElementById("menu");
	toggle?.setAttribute("aria-expanded", String(isOpen));
	toggle?.setAttribute("aria-label", isOpen ? "Close the menu" : "Menu");
}

function frame(version) {
	const menu = button("", { icon: "menu", kind: "ghost", label: "Menu", id: "menu", "aria-expanded": "false", "aria-controls": "side", onclick: () => setMenu(!document.body.classList.contains("menu-open")) });
	const skip = h("a", { class: "skip", href: "#main", on: { click: (e) => {
		e.preventDefault();
		document.querySelector("#main h1")?.focus();
	} } }, "Skip to the content");
	fill(app, skip,
		h("header", { class: "top" }, menu, h("span", { class: "brand" }, mark(), h("span", {}, "Cordon")), h("span", { class: "grow" })),
		h("aside", { class: "side", id: "side", "aria-label": "Menu" }, h("div", { class: "brand side-brand" }, mark(), h("span", {}, "Cordon")), navigation(),
			h("footer", { class: "side-foot" }, h("span", { class: "dot", id: "dot", title: "The server answers" }), h("span", { class: "muted small grow", title: visible(`${version.name} ${version.version}`) }, visible(me.name)), themeButton(), about.keys ? button("", { icon: "out", kind: "ghost", label: "Forget the key", onclick: signOut }) : null)),
		h("main", { id: "main", tabindex: "-1" }));
	document.addEventListener("keydown", (e) => e.key === "Escape" && setMenu(false));
}

function setWaiting(n) {
	const element = document.getElementById("waiting");
	if (!element) return;
	element.hidden = !n;
	fill(element, n ? [String(n), h("span", { class: "sr" }, " waiting")] : null);
}

/** Looks every few seconds whether something waits for a person; that also tells whether the server answers. */
function watch() {
	const refresh = poll(3000, async () => {
		const dot = document.getElementById("dot");
		if (about.keys && !hasKey()) return;
		try {
			const q = await get("/v1/questions");
			setWaiting(q.approvals.length + q.tool_calls.length);
			dot?.classList.remove("is-off");
			if (dot) dot.title = "The server answers";
		} catch (e) {
			dot?.classList.toggle("is-off", !e.status);
			if (dot) dot.title = e.status ? visible(e.detail) : "The server does not answer";
		}
	}, new AbortController().signal);
	window.addEventListener("cordon-questions", refresh);
	window.addEventListener("cordon-waiting", (e) => setWaiting(e.detail));
}

function showView() {
	const [name, search] = location.hash.replace(/^#\/?/, "").split("?");
	const view = VIEWS[name] ?? VIEWS.playground;
	leave?.abort();
	leave = new AbortController();
	const main = document.getElementById("main");
	if (!main) return;
	setMenu(false);
	fill(main);
	for (const a of document.querySelectorAll("#nav a")) {
		if (VIEWS[a.dataset.view] === view) a.setAttribute("aria-current", "page");
		else a.removeAttribute("aria-current");
	}
	document.title = `${view.title} \u00b7 Cordon`;
	view.mount(main, new URLSearchParams(search ?? ""), leave.signal);
	window.scrollTo(0, 0);
}

let started = false;

async function start() {
	const version = await get("/v1/version");
	if (started) {
		location.reload(); // nothing of the last key stays
		return;
	}
	Object.assign(me, await get("/console/me"));
	frame(version);
	started = true;
	watch();
	window.addEventListener("hashchange", () => {
		showView();
		document.querySelector("#main h1")?.focus({ preventScroll: true });
	});
	showView();
}

async function boot() {
	setTheme(localStorage.getItem("cordon-theme") ?? "auto");
	whenRefused(() => {
		if (!started || !hasKey()) return;
		sessionStorage.clear();
		setKey("");
		signIn({ detail: "The server no longer takes the key.", remedy: "It was revoked or has expired, or the server was started with another one. Type a valid one." });
	});
	try {
		about = await get("/console/about");
		if (about.keys && !hasKey()) {
			signIn();
			return;
		}
		await start();
	} catch (problem) {
		if (problem.status === 401) setKey("");
		signIn(problem.status === 401 ? { detail: "The server no longer takes the key.", remedy: "Type a valid one." } : problem);
	}
}

boot();

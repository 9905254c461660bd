// setup.js - what a run of the playground is made with: language, policy, files, input, tools. Survives a reload of the page.
import { fill, guestText, h } from "./dom.js";
import { TOOLS } from "./examples.js";
import { bytes } from "./format.js";
import { badge, button, field } from "./parts.js";

const STORE = "cordon-playground";
const LEVELS = ["strict", "standard", "permissive"];
export const LEVEL_OPTIONS = [["", "of the key"], ...LEVELS.map((l) => [l, l])];

function stored() {
	try {
		return JSON.parse(sessionStorage.getItem(STORE)) ?? {};
	} catch {
		return {};
	}
}

/** The settings, and what is remembered of them. */
export const setup = { language: "python", level: "", set: [], policy: null, code: null, stdin: "", tools: "", session: null, made: null, keep: true, files: [], ...stored() };
setup.files = [];

export function remember() {
	const { files: _files, ...rest } = setup;
	try {
		sessionStorage.setItem(STORE, JSON.stringify(rest));
	} catch {
		// Full: the page works, only a reload forgets.
	}
}

/** The policy as the API takes it. */
export function choiceOf() {
	return { ...(setup.level ? { level: setup.level } : {}), ...(setup.policy ? { policy: setup.policy } : {}), ...(setup.set.length ? { set: setup.set } : {}) };
}

/** The tools as a list; throws if the text is not one. */
export function toolsOf() {
	if (!setup.tools.trim()) return [];
	let list = null;
	try {
		list = JSON.parse(setup.tools);
	} catch (e) {
		throw new Error(`The tools are not JSON: ${e.message}`);
	}
	if (!Array.isArray(list)) throw new Error("The tools are a list of objects, each with a name.");
	return list;
}

/** What a session is opened with. Another value needs another session. */
export function openParams() {
	const tools = toolsOf();
	return { guest: setup.language, ...choiceOf(), ...(tools.length ? { tools } : {}) };
}

function fold(title, place, number) {
	return h("details", { class: "fold" }, h("summary", {}, h("span", {}, title), number), place);
}

/** Changes of the policy as chips that can be taken away again. */
export function policySection(onchange) {
	const place = h("div", {});
	const number = h("span", {});
	const input = h("input", { type: "text", class: "mono", "aria-label": "A change, FIELD=VALUE", placeholder: "timeout_ms=5000", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
	const chip = (text, fn) => h("li", { class: "chip" }, h("code", {}, guestText(text, 80)), button("", { icon: "close", kind: "ghost small", label: `Remove ${text}`, onclick: fn }));
	const draw = () => {
		const list = setup.set.map((s) => chip(s, () => change(() => setup.set.splice(setup.set.indexOf(s), 1))));
		if (setup.policy) list.unshift(chip("policy of the editor", () => change(() => { setup.policy = null; })));
		fill(number, list.length ? badge(String(list.length), "info") : null);
		fill(place, list.length ? h("ul", { class: "chips plain" }, list) : h("p", { class: "muted small" }, "None. A denial has a button that adds one; here you can type one."),
			h("form", { class: "row", on: { submit: (e) => {
				e.preventDefault();
				const text = input.value.trim();
				if (text) change(() => setup.set.push(text));
				input.value = "";
			} } }, input, h("button", { type: "submit", class: "button small" }, "Add")));
	};
	const change = (fn) => {
		fn();
		draw();
		onchange();
	};
	draw();
	const element = fold("Policy changes", place, number);
	return { element, draw, add(text) {
		if (!setup.set.includes(text)) change(() => setup.set.push(text));
		element.open = true;
	} };
}

/** Files that are copied into the session before the run. */
export function filesSection() {
	const list = h("ul", { class: "plain file-list" });
	const number = h("span", {});
	const draw = () => {
		fill(number, setup.files.length ? badge(String(setup.files.length), "info") : null);
		fill(list, setup.files.map((f) => h("li", { class: "row" }, guestText(f.name, 60), h("span", { class: "muted small" }, bytes(f.size)), h("span", { class: "grow" }), button("", { icon: "close", kind: "ghost small", label: `Remove ${f.name}`, onclick: () => {
			setup.files.splice(setup.files.indexOf(f), 1);
			draw();
		} }))));
	};
	const add = (files) => {
		for (const f of files) {
			setup.files = setup.files.filter((other) => other.name !== f.name);
			setup.files.push(f);
		}
		draw();
	};
	const input = h("input", { type: "file", multiple: true, "aria-label": "Choose files", on: { change: (e) => {
		add(e.target.files);
		e.target.value = "";
	} } });
	const place = h("div", { class: "drop", on: { dragover: (e) => e.preventDefault(), drop: (e) => {
		e.preventDefault();
		add(e.dataTransfer.files);
	} } }, h("p", { class: "muted small" }, "They are copied into the session's directory before the run. Choose, or drop them here."), input, list);
	return { element: fold("Files", place, number), draw };
}

export function inputSection() {
	const area = h("textarea", { rows: 3, class: "mono", spellcheck: "false", value: setup.stdin, on: { input: (e) => {
		setup.stdin = e.target.value;
		remember();
	} } });
	return { element: fold("Standard input", field("What the code reads from stdin", area)) };
}

export function toolsSection(onchange) {
	const area = h("textarea", { rows: 6, class: "mono", spellcheck: "false", value: setup.tools, on: { change: (e) => {
		setup.tools = e.target.value;
		onchange();
	} } });
	const example = button("Insert an example", { kind: "small", onclick: () => {
		area.value = JSON.stringify(TOOLS, null, 1);
		setup.tools = area.value;
		onchange();
	} });
	return { element: fold("Tools that you answer", [field("A list of tools, as JSON", area, "Code calls them by name. Calls, and approvals if a tool asks for them, wait for your answer here and in Approvals."), h("div", { class: "row" }, example)]) };
}

// parts.js - the parts that views are made of: buttons, fields, tables, states, dialogs, notices.
import { fill, freshId, h, visible } from "./dom.js";
import { icon } from "./icons.js";

export function button(text, { icon: name, kind = "", onclick, label, ...rest } = {}) {
	return h("button", { type: "button", class: `button ${kind}`.trim(), "aria-label": label, title: label, on: onclick ? { click: onclick } : null, ...rest },
		name ? icon(name) : null, text ? h("span", {}, text) : null);
}

export function badge(text, tone = "") {
	return h("span", { class: `badge ${tone}`.trim() }, text);
}

const OUTCOMES = { success: "good", running: "info", cancelled: "", timeout: "warn", denied: "warn", approved: "good" };

/** How an execution ended, as a badge. */
export function outcomeBadge(outcome) {
	return badge(outcome, OUTCOMES[outcome] ?? "bad");
}

export function field(label, control, hint) {
	const id = control.id || (control.id = freshId("field"));
	const hintId = hint ? `${id}-hint` : null;
	if (hintId) control.setAttribute("aria-describedby", hintId);
	return h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? h("p", { class: "hint", id: hintId }, hint) : null);
}

/** options: [value, text] pairs. */
export function select(options, value, onchange, props = {}) {
	return h("select", { ...props, on: onchange ? { change: (e) => onchange(e.target.value) } : null },
		options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
}

export function checkbox(label, checked, onchange) {
	return h("label", { class: "check" }, h("input", { type: "checkbox", checked, on: { change: (e) => onchange(e.target.checked) } }), h("span", {}, label));
}

/** A bar: how much of a limit was used. max null: there is no limit. */
export function meter(label, value, max, text, note) {
	const share = max ? Math.min(1, Math.max(0, value / max)) : 0;
	const bar = h("div", { class: "meter-bar" });
	bar.style.width = `${Math.max(share * 100, value > 0 && max ? 1.5 : 0)}%`;
	return h("div", { class: `meter ${share >= 0.9 ? "high" : share >= 0.7 ? "mid" : ""}`.trim() },
		h("div", { class: "meter-label" }, label),
		h("div", { class: "meter-track", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100), "aria-valuetext": note ? `${text}, ${note}` : text }, bar),
		h("div", { class: "meter-note" }, h("strong", {}, text), note ? ` ${note}` : null));
}

/** columns: [{ title, cell(row), class }]; on a phone each cell shows its title. */
export function table(caption, columns, rows, props = {}) {
	return h("div", { class: "table-frame", role: "region", "aria-label": caption, tabindex: "0" },
		h("table", { class: "table", ...props }, h("caption", { class: "sr" }, caption),
			h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: c.class }, c.title || h("span", { class: "sr" }, c.name ?? "actions"))))),
			h("tbody", {}, rows.map((row) => h("tr", { data: row.data }, columns.map((c) => h("td", { class: c.class, "data-title": c.title }, c.cell(row))))))));
}

/** Nothing there yet: what it is, and what to do. */
export function emptyState(name, title, text, ...actions) {
	return h("div", { class: "empty" }, icon(name), h("h2", {}, title), h("p", {}, text), actions.length ? h("div", { class: "row center" }, actions) : null);
}

/** An error: what happened and what may help. */
export function problemBox(problem, retry) {
	return h("div", { class: "notice bad", role: "alert" }, icon("warn"),
		h("div", { class: "grow" }, h("p", { class: "strong" }, visible(problem.detail ?? problem.message ?? problem)), problem.remedy ? h("p", {}, visible(`What may help: ${problem.remedy}`)) : null),
		retry ? button("Try again", { icon: "refresh", kind: "small", onclick: retry }) : null);
}

export function notice(tone, name, ...children) {
	return h("div", { class: `notice ${tone}`, role: "status" }, icon(name), h("div", { class: "grow" }, children));
}

export function panel(title, { actions, level = 2, ...props } = {}, ...children) {
	const id = freshId("panel");
	return h("section", { class: `panel ${props.class ?? ""}`.trim(), "aria-labelledby": id },
		h("header", { class: "panel-head" }, h(`h${level}`, { id, class: "panel-title" }, title), actions ? h("div", { class: "row" }, actions) : null), children);
}

/** The head of a view. */
export function viewHead(title, text, ...actions) {
	return h("header", { class: "view-head" }, h("div", {}, h("h1", { tabindex: "-1" }, title), text ? h("p", { class: "muted" }, text) : null), h("div", { class: "row" }, actions));
}

export function loading(text = "Loading\u2026") {
	return h("div", { class: "loading", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), text);
}

/** A dialog. build(close) gives its content; the promise has what close was called with, or undefined. */
export function dialog(title, build) {
	return new Promise((resolve) => {
		const id = freshId("dialog");
		const before = document.activeElement;
		let value;
		const element = h("dialog", { class: "dialog", "aria-labelledby": id });
		const close = (v) => {
			value = v;
			element.close();
		};
		element.append(h("header", { class: "panel-head" }, h("h2", { id }, title), button("", { icon: "close", kind: "ghost", label: "Close", onclick: () => close() })), h("div", { class: "dialog-body" }, build(close)));
		element.addEventListener("close", () => {
			element.remove();
			if (before instanceof HTMLElement && before.isConnected) before.focus();
			resolve(value);
		});
		document.body.append(element);
		element.showModal();
	});
}

export function confirmDialog(title, text, verb) {
	return dialog(title, (close) => [h("p", {}, text),
		h("div", { class: "row end" }, button("Keep it", { onclick: () => close(false) }), button(verb, { kind: "danger", onclick: () => close(true) }))]);
}

/** A short notice in the corner that goes away by itself, and is read out. */
export function toast(text, tone = "good") {
	let place = document.getElementById("toasts");
	if (!place) {
		place = h("div", { id: "toasts", role: "status", "aria-live": "polite" });
		document.body.append(place);
	}
	const one = h("div", { class: `toast ${tone}` }, icon(tone === "bad" ? "warn" : "check"), h("span", { class: "grow" }, visible(text)), button("", { icon: "close", kind: "ghost small", label: "Dismiss", onclick: () => one.remove() }));
	place.append(one);
	while (place.children.length > 3) place.firstChild.remove();
	setTimeout(() => one.remove(), tone === "bad" ? 12000 : 5000);
}

export function toastProblem(e) {
	if (e.name === "AbortError") return;
	toast([e.detail ?? e.message, e.remedy].filter(Boolean).join(" \u2014 "), "bad");
}

/** Gives the person a file. The blob never has a type that a browser would show as a page. */
export function save(blob, name) {
	const url = URL.createObjectURL(blob);
	const link = h("a", { href: url, download: name });
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		toast("Copied.");
	} catch {
		toast("The browser does not let the page copy; select the text and copy it.", "bad");
	}
}

/** Renews what is in a place; the control that had the focus there has it again, found by its name. */
export function refill(place, ...children) {
	const name = (e) => e.getAttribute("aria-label") ?? e.textContent;
	const held = place.contains(document.activeElement) ? document.activeElement : null;
	fill(place, ...children);
	if (!held) return;
	const same = [...place.querySelectorAll("a, button, summary, [tabindex]")].find((e) => name(e) === name(held));
	(same ?? document.querySelector("#main h1"))?.focus({ preventScroll: true });
}

/** Shows the state of something that is loaded: fn gives its content, an error says what to do. */
export async function load(place, fn, { quiet = false } = {}) {
	if (!quiet) fill(place, loading());
	try {
		fill(place, await fn());
		return true;
	} catch (e) {
		if (e.name !== "AbortError") fill(place, problemBox(e, () => load(place, fn)));
		return false;
	}
}

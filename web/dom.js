// dom.js - builds elements. Strings only ever become text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element. props: attributes, and class, on {event: fn}, data {name: value}. Children: nodes, texts, arrays, null. */
export function h(tag, props, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
	append(element, children);
	return element;
}

function setProp(element, name, value) {
	if (value === null || value === undefined || value === false) return;
	if (name === "on") {
		for (const [event, fn] of Object.entries(value)) element.addEventListener(event, fn);
	} else if (name === "data") {
		Object.assign(element.dataset, value);
	} else if (name === "value" || name === "checked" || name === "selected" || name === "disabled" || name === "open") {
		element[name] = value;
	} else if (/^(href|src)$/.test(name) && !/^(#|blob:)/.test(value)) {
		throw new Error(`not a link of the console: ${value}`);
	} else if (/^(on|style$|srcdoc$)/i.test(name)) {
		throw new Error(`not an attribute of the console: ${name}`);
	} else {
		element.setAttribute(name, value === true ? "" : String(value));
	}
}

export function append(element, children) {
	for (const child of [children].flat(Infinity)) {
		if (child === null || child === undefined || child === false) continue;
		element.append(child instanceof Node ? child : String(child));
	}
	return element;
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
	element.replaceChildren();
	return append(element, children);
}

export function svg(tag, attributes, ...children) {
	const element = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, String(value));
	element.append(...children);
	return element;
}

const NAMES = {
	0x061c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
	0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM", 0x2028: "LSEP", 0x2029: "PSEP",
};
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu;

function show(character) {
	const code = character.codePointAt(0);
	if (code < 0x20) return String.fromCodePoint(0x2400 + code);
	if (code === 0x7f) return "\u2421";
	return `\u27e8${NAMES[code] ?? "U+" + code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** Text of the guest in which nothing hides: control and direction characters become visible. Tabs and newlines stay. */
export function visible(text) {
	return String(text).replace(HIDDEN, show);
}

/** Such a text on one line, in an element that keeps its direction to itself. */
export function guestText(text, max = 200) {
	const whole = visible(text).replace(/[\n\t]/g, (c) => (c === "\n" ? "\u23ce" : " "));
	return h("bdi", { class: "guest", title: whole.length > max ? whole.slice(0, 2000) : null }, whole.length > max ? whole.slice(0, max) + "\u2026" : whole);
}

let counter = 0;
/** An id that no other element has. */
export function freshId(word) {
	counter += 1;
	return `${word}-${counter}`;
}

// Search, dark mode and copying of blocks. Nothing is loaded but index.js beside this file, and that when somebody searches: a page that
// was opened from a folder may load scripts, but no other files.
"use strict";

const MOST = 12; // results shown
const AROUND = 60; // characters of the text on each side of what was found

// rows: [address, title of the page, heading, text]. All words must be there; headings weigh more than text.
function search(rows, query) {
	const words = query.toLowerCase().split(/\s+/).filter(Boolean);
	const found = [];
	for (const row of words.length ? rows : []) {
		const [, page, heading, text] = row.map((part) => part.toLowerCase());
		let weight = 0;
		for (const word of words) {
			const times = text.split(word).length - 1;
			const one = (heading.includes(word) ? 20 : 0) + (page.includes(word) ? 8 : 0) + Math.min(times, 5);
			if (!one) { weight = 0; break; }
			weight += one;
		}
		if (weight) found.push({ row, weight });
	}
	// A sort that keeps the order of the menu among equals.
	return found.sort((a, b) => b.weight - a.weight).slice(0, MOST).map(({ row }) => ({ address: row[0], page: row[1], heading: row[2], text: excerpt(row[3], words) }));
}

// A piece of the text around the first word that is in it, as [text, isFound] pairs.
function excerpt(text, words) {
	const lower = text.toLowerCase();
	const places = words.map((word) => [lower.indexOf(word), word.length]).filter(([at]) => at >= 0).sort((a, b) => a[0] - b[0]);
	const [at, length] = places[0] || [0, 0];
	const from = Math.max(0, at - AROUND);
	return [[text.slice(from, at), false], [text.slice(at, at + length), true], [text.slice(at + length, at + length + AROUND), false]];
}

function element(name, text) {
	const made = document.createElement(name);
	if (text) made.textContent = text; // never as HTML
	return made;
}

function loadIndex(then) {
	if (window.cordonIndex) return then(window.cordonIndex);
	const script = element("script");
	script.src = "index.js";
	script.onload = () => then(window.cordonIndex);
	document.head.append(script);
}

function show(list, query, rows) {
	const results = search(rows, query);
	list.replaceChildren(...results.map((result) => {
		const link = element("a", result.heading === result.page ? result.page : `${result.page}: ${result.heading}`);
		link.href = result.address;
		const small = element("small");
		for (const [text, isFound] of result.text) small.append(isFound ? element("mark", text) : text);
		link.append(small);
		const item = element("li");
		item.append(link);
		return item;
	}));
	if (!results.length) list.append(element("p", "Nothing found."));
	list.hidden = !query.trim();
}

function startSearch() {
	const form = document.getElementById("search"), input = form.querySelector("input"), list = document.getElementById("found");
	input.addEventListener("focus", () => loadIndex(() => {}));
	input.addEventListener("input", () => loadIndex((rows) => show(list, input.value, rows)));
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		list.querySelector("a")?.click();
	});
	document.addEventListener("keydown", (event) => {
		const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
		if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
			event.preventDefault();
			input.focus();
		} else if (event.key === "Escape") {
			list.hidden = true;
		} else if (!list.hidden && form.contains(document.activeElement) && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
			event.preventDefault();
			(links[at + (event.key === "ArrowDown" ? 1 : -1)] || input).focus();
		}
	});
	document.addEventListener("click", (event) => { if (!form.contains(event.target) || event.target.closest("a")) list.hidden = true; });
}

// A browser may refuse to remember anything for pages of a folder.
function remembered(value) {
	try {
		if (value) localStorage.setItem("cordon-theme", value);
		return localStorage.getItem("cordon-theme");
	} catch {
		return null;
	}
}

function startTheme() {
	const root = document.documentElement, button = document.getElementById("theme");
	const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
	const label = () => { button.textContent = isDark() ? "light" : "dark"; };
	if (remembered()) root.dataset.theme = remembered();
	button.hidden = false;
	button.addEventListener("click", () => {
		root.dataset.theme = isDark() ? "light" : "dark";
		remembered(root.dataset.theme);
		label();
	});
	label();
}

// Of a transcript only the commands are copied.
function startCopy() {
	for (const block of navigator.clipboard ? document.querySelectorAll("pre") : []) {
		const button = element("button", "copy");
		const commands = [...block.querySelectorAll("b")].map((b) => b.textContent.replace(/^[$>] /gm, ""));
		const text = commands.length ? commands.join("\n") : block.textContent;
		button.type = "button";
		button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "copied"; }));
		block.append(button);
	}
}

if (typeof document !== "undefined") {
	startTheme();
	startSearch();
	startCopy();
	if (matchMedia("(max-width: 52rem)").matches) document.getElementById("menu").open = false;
}

// editor.js - a text area over its own coloured copy: the browser edits, we only paint.
import { freshId, h } from "./dom.js";
import { paint } from "./highlight.js";

const INDENT = { python: "    ", r: "  ", node: "  ", sh: "  ", pod: "  ", json: "  " };

function insert(area, text) {
	// The old command is the one that keeps the browser's undo.
	if (!document.execCommand("insertText", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

/** { element, area, value, setValue(text), setLanguage(name), focus() } */
export function editor({ label, language = "python", value = "", rows = 14, onrun, onchange }) {
	const hint = freshId("editor-hint");
	const copy = h("pre", { class: "editor-copy", "aria-hidden": "true" });
	const gutter = h("pre", { class: "editor-gutter", "aria-hidden": "true" });
	const area = h("textarea", { class: "editor-area", "aria-label": label, "aria-describedby": hint, spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off", wrap: "off", rows, value });
	const state = { language, leaves: false };
	const element = h("div", { class: "editor" }, gutter, h("div", { class: "editor-text" }, copy, area),
		h("p", { class: "sr", id: hint }, `Tab indents. Escape, then Tab, leaves the editor.${onrun ? " Control and Enter runs it." : ""}`));

	const sync = () => {
		copy.scrollTop = area.scrollTop;
		copy.scrollLeft = area.scrollLeft;
		gutter.scrollTop = area.scrollTop;
	};
	const draw = () => {
		paint(copy, state.language, `${area.value}\n`);
		const lines = area.value.split("\n").length;
		if (gutter.dataset.lines !== String(lines)) {
			gutter.dataset.lines = String(lines);
			gutter.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n") + "\n";
		}
		sync();
	};
	const onkeydown = (e) => {
		if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && onrun) {
			e.preventDefault();
			onrun();
		} else if (e.key === "Escape") {
			state.leaves = true;
		} else if (e.key === "Tab" && !state.leaves && !e.shiftKey && !e.altKey && !e.ctrlKey && !e.metaKey) {
			e.preventDefault();
			insert(area, INDENT[state.language] ?? "  ");
		} else if (e.key === "Enter" && !e.isComposing) {
			e.preventDefault();
			const before = area.value.slice(0, area.selectionStart);
			const line = before.slice(before.lastIndexOf("\n") + 1);
			insert(area, `\n${/^[ \t]*/.exec(line)[0]}${/[:{([]\s*$/.test(line) ? INDENT[state.language] ?? "  " : ""}`);
		} else if (e.key !== "Shift" && e.key !== "Tab") {
			state.leaves = false;
		}
	};
	area.addEventListener("keydown", onkeydown);
	area.addEventListener("blur", () => { state.leaves = false; });
	area.addEventListener("scroll", sync, { passive: true });
	area.addEventListener("input", () => {
		draw();
		onchange?.(area.value);
	});
	draw();
	return {
		element, area,
		get value() { return area.value; },
		setValue(text) {
			area.value = text;
			draw();
			onchange?.(text);
		},
		setLanguage(name) {
			state.language = name;
			draw();
		},
		focus() { area.focus(); },
	};
}

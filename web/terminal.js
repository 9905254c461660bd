// terminal.js - shows what code prints. Its bytes are hostile: they become text, colours of a fixed list, and nothing else.
import { h, visible } from "./dom.js";
import { count } from "./format.js";

const LINES_MAX = 5000; // shown
const LINE_MAX = 8192; // characters of a line that are shown
const KEPT_MAX = 16 << 20; // characters kept for the download
const QUEUE_MAX = 2 << 20; // characters between two frames; of more, the end is shown
const ESCAPE_MAX = 512;
// Colours (SGR), other control sequences, strings for the terminal (titles, links), two-character escapes.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])/y;
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The class names after a colour sequence. */
function restyle(style, parameters) {
	const next = { ...style };
	const codes = (parameters || "0").split(/[;:]/).map(Number);
	for (let i = 0; i < codes.length; i++) {
		const c = codes[i];
		if (c === 0) for (const k of Object.keys(next)) delete next[k];
		else if (c === 1) next.bold = "a-bold";
		else if (c === 2) next.dim = "a-dim";
		else if (c === 3) next.italic = "a-italic";
		else if (c === 4) next.under = "a-under";
		else if (c === 22) delete next.bold, delete next.dim;
		else if (c === 23) delete next.italic;
		else if (c === 24) delete next.under;
		else if (c >= 30 && c <= 37) next.fore = `a-${NAMES[c - 30]}`;
		else if (c >= 90 && c <= 97) next.fore = `a-${NAMES[c - 90]}`;
		else if (c === 39) delete next.fore;
		else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : 4;
	}
	return next;
}

export class Terminal {
	constructor({ label = "What the code printed" } = {}) {
		this.body = h("div", { class: "term-body" });
		this.note = h("p", { class: "term-note", hidden: true });
		this.element = h("div", { class: "term", role: "region", "aria-label": label, tabindex: "0" }, this.note, this.body);
		this.clear();
	}

	clear() {
		clearTimeout(this.timer);
		Object.assign(this, { queue: [], queued: 0, kept: [], keptSize: 0, total: 0, hiddenLines: 0, skipped: 0, timer: 0, line: null, lineSize: 0, returns: false });
		this.channels = { stdout: { style: {}, rest: "" }, stderr: { style: {}, rest: "" } };
		this.body.replaceChildren();
		this.note.hidden = true;
	}

	get isEmpty() {
		return this.total === 0;
	}

	/** channel: stdout or stderr. */
	write(text, channel) {
		if (!text) return;
		this.total += text.length;
		if (this.keptSize < KEPT_MAX) {
			this.kept.push(text);
			this.keptSize += text.length;
		}
		this.queue.push([channel, text]);
		this.queued += text.length;
		while (this.queued > QUEUE_MAX && this.queue.length > 1) {
			const dropped = this.queue.shift()[1].length;
			this.queued -= dropped;
			this.skipped += dropped;
		}
		this.timer ||= setTimeout(() => this.flush(), 24);
	}

	text() {
		return this.kept.join("");
	}

	flush() {
		clearTimeout(this.timer);
		const { queue } = this;
		Object.assign(this, { timer: 0, queue: [], queued: 0 });
		const isAtEnd = this.element.scrollHeight - this.element.scrollTop - this.element.clientHeight < 40;
		for (const [channel, text] of queue) this.parse(text, channel);
		while (this.body.childElementCount > LINES_MAX) {
			this.body.firstElementChild.remove();
			this.hiddenLines += 1;
		}
		this.tell();
		if (isAtEnd) this.element.scrollTop = this.element.scrollHeight;
	}

	tell() {
		const parts = [];
		if (this.hiddenLines) parts.push(`${count(this.hiddenLines)} earlier lines are not shown.`);
		if (this.skipped) parts.push(`${count(this.skipped)} characters came too fast to show.`);
		this.note.hidden = parts.length === 0;
		this.note.textContent = parts.join(" ") + (this.keptSize < KEPT_MAX ? " Save has all of it." : ` Save has the first ${count(KEPT_MAX)} characters.`);
	}

	parse(text, channel) {
		const state = this.channels[channel];
		const all = state.rest + text;
		state.rest = "";
		let at = 0;
		while (at < all.length) {
			const escape = all.indexOf("\x1b", at);
			this.print(all.slice(at, escape < 0 ? undefined : escape), channel, state.style);
			if (escape < 0) return;
			ESCAPE.lastIndex = escape;
			const found = ESCAPE.exec(all);
			if (found) {
				if (found[2] === "m") state.style = restyle(state.style, found[1]);
				at = escape + found[0].length;
			} else if (all.length - escape < ESCAPE_MAX) {
				state.rest = all.slice(escape); // it may go on in the next piece
				return;
			} else {
				this.print("\x1b", channel, state.style);
				at = escape + 1;
			}
		}
	}

	print(text, channel, style) {
		let first = true;
		for (const line of text.split("\n")) {
			if (!first) this.endLine();
			first = false;
			this.printLine(line.endsWith("\r") ? line.slice(0, -1) : line, channel, style);
			if (line.endsWith("\r")) this.returns = true;
		}
	}

	endLine() {
		this.current();
		this.line = null;
		this.returns = false;
	}

	current() {
		if (!this.line) {
			this.line = h("div", { class: "term-line" });
			this.lineSize = 0;
			this.body.append(this.line);
		}
		return this.line;
	}

	// A carriage return begins the line anew, as progress bars expect.
	printLine(text, channel, style) {
		const last = text.lastIndexOf("\r");
		const part = text.slice(last + 1);
		if (!part && last < 0) return;
		if ((last >= 0 || this.returns) && this.line) {
			this.line.replaceChildren();
			this.lineSize = 0;
		}
		this.returns = false;
		const line = this.current();
		const room = LINE_MAX - this.lineSize;
		this.lineSize += part.length;
		if (room > 0) line.append(h("span", { class: [channel === "stderr" ? "is-err" : "", ...Object.values(style)].join(" ").trim() || null }, visible(part.slice(0, room))));
		if (this.lineSize > LINE_MAX) this.markLong(line);
	}

	markLong(line) {
		const mark = line.querySelector(".term-more") ?? line.appendChild(h("span", { class: "term-more" }));
		mark.textContent = ` \u2026 ${count(this.lineSize - LINE_MAX)} more characters on this line`;
	}
}

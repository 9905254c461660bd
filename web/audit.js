// audit.js - the last events of the audit log, and whether its chain is whole.
import { get } from "./api.js";
import { fill, guestText, h, visible } from "./dom.js";
import { clock, count, day, shortId } from "./format.js";
import { badge, button, emptyState, field, load, loading, notice, select, table, viewHead } from "./parts.js";

const filter = { text: "", session: "", limit: "200" };
const HIDDEN = new Set(["timestamp", "event", "session_id", "prev", "hash"]);

function tone(event) {
	if (/denied|refused|error|lost|timeout|exceeded/.test(event)) return "warn";
	if (/complete|result|start|open|resolved/.test(event)) return "good";
	return "";
}

function details(e) {
	const rest = Object.fromEntries(Object.entries(e).filter(([k]) => !HIDDEN.has(k)));
	const text = JSON.stringify(rest);
	if (text === "{}") return "";
	return h("details", { class: "fold inline" }, h("summary", {}, guestText(text, 90)), h("pre", { class: "guest-block", tabindex: "0" }, visible(JSON.stringify(rest, null, 2).slice(0, 20000))), e.hash ? h("p", { class: "muted small" }, "hash ", h("code", {}, visible(e.hash))) : null);
}

const COLUMNS = [
	{ title: "Time", cell: (e) => h("span", { title: day(Date.parse(e.timestamp)) }, clock(Date.parse(e.timestamp))) },
	{ title: "Event", cell: (e) => badge(visible(e.event), tone(e.event)) },
	{ title: "Session", cell: (e) => (e.session_id ? h("code", { title: e.session_id }, shortId(e.session_id)) : "\u2013") },
	{ title: "Details", class: "wide", cell: details },
];

function verdict(v) {
	if (v.whole) return notice("good", "approvals", h("p", { class: "strong" }, "The log is whole."), h("p", {}, `${count(v.lines)} lines, each with the hash of the one before.`), v.head ? h("p", { class: "small" }, "Head ", h("code", { class: "break" }, visible(v.head))) : null);
	return notice("bad", "warn", h("p", { class: "strong" }, "The log is not whole."), h("p", {}, visible(v.reason ? `Line ${count(v.broken_line)}: ${v.reason}` : `Something after ${count(v.lines)} lines is missing or was changed.`)), h("p", {}, "Compare it with a copy; docs/audit.md says what each finding means."));
}

export default {
	title: "Audit",
	mount(place, query, signal) {
		if (query.get("session")) filter.session = query.get("session");
		const list = h("div", {}, loading());
		const verification = h("div", { id: "verification" });
		let events = [];
		const shown = () => {
			const word = filter.text.trim().toLowerCase();
			const rows = events.filter((e) => !word || JSON.stringify(e).toLowerCase().includes(word));
			return rows.length ? table("Events", COLUMNS, rows) : emptyState("audit", events.length ? "Nothing fits the filter" : "The log has no events", events.length ? "Change the filter to see the others." : "Sessions of this key write here.");
		};
		const draw = () => fill(list, shown());
		const refresh = () => load(list, async () => {
			const search = new URLSearchParams({ limit: filter.limit, ...(filter.session ? { session: filter.session } : {}) });
			events = (await get(`/v1/audit?${search}`, { signal })).events;
			return shown();
		});
		const verify = () => load(verification, async () => verdict(await get("/v1/audit/verification", { signal })));
		const text = h("input", { type: "search", value: filter.text, placeholder: "event, tool, text", on: { input: (e) => {
			filter.text = e.target.value;
			draw();
		} } });
		const session = h("input", { type: "text", value: filter.session, placeholder: "all", spellcheck: "false", on: { change: (e) => {
			filter.session = e.target.value.trim();
			refresh();
		} } });
		const limit = select([["50", "50"], ["200", "200"], ["1000", "1000"]], filter.limit, (v) => {
			filter.limit = v;
			refresh();
		});
		place.append(h("div", { class: "view" }, viewHead("Audit", "What happened, in a log whose lines are chained by their hashes.", button("Verify", { icon: "approvals", kind: "primary", onclick: verify }), button("Refresh", { icon: "refresh", onclick: refresh })), verification,
			h("div", { class: "filters" }, field("Filter", text), field("Session", session), field("Last", limit)), list));
		refresh();
	},
};

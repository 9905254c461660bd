// sessions.js - sessions that live now: age, memory, CPU, processes, files; open, interrupt, kill.
import { get, me, path, poll, post, remove } from "./api.js";
import { fill, guestText, h } from "./dom.js";
import { age, bytes, count, languageName, milliseconds, shortId } from "./format.js";
import { icon } from "./icons.js";
import { badge, button, confirmDialog, emptyState, problemBox, refill, table, toast, toastProblem, viewHead, loading } from "./parts.js";

/** All sessions with what they use; the youngest first. */
export async function listSessions(signal) {
	const { sessions } = await get("/console/sessions", { signal });
	return sessions.sort((a, b) => (a.age_ms ?? 1e15) - (b.age_ms ?? 1e15) || a.session.localeCompare(b.session));
}

function stateOf(s) {
	if (s.parked) return h("span", { class: "badge", title: "Its files are kept; the next use brings it back." }, "parked");
	return s.running ? badge("executing", "info") : badge("idle", "good");
}

function bar(value, max, text) {
	if (value === undefined || value === null) return "\u2013";
	const track = h("span", { class: "tiny-track", "aria-hidden": "true" });
	const inner = h("span", { class: "tiny-bar" });
	inner.style.width = `${max ? Math.min(100, Math.max(2, (value / max) * 100)) : 0}%`;
	track.append(inner);
	return h("span", { class: "tiny" }, h("span", {}, text), max ? track : null);
}

const USAGE = [
	{ title: "Age", cell: (s) => age(s.age_ms) },
	{ title: "Memory (peak)", cell: (s) => bar(s.memory_peak_bytes, s.memory_max_bytes, bytes(s.memory_peak_bytes)) },
	{ title: "CPU", class: "num", cell: (s) => milliseconds(s.cpu_ms) },
	{ title: "Processes", class: "num", cell: (s) => count(s.processes) },
	{ title: "Files", cell: (s) => bar(s.disk_bytes, s.disk_max_bytes, `${bytes(s.disk_bytes)} in ${count(s.files)}`) },
	{ title: "Executions", class: "num", cell: (s) => count(s.executions) },
];

async function act(fn, words, refresh) {
	try {
		await fn();
		toast(words);
	} catch (e) {
		toastProblem(e);
	}
	refresh();
}

/** The address of a session: its own in API v1, or as an administrator that of another key. */
function address(s, isOwn) {
	return isOwn ? path`/v1/sessions/${s.session}` : path`/console/tenants/${s.tenant}/sessions/${s.session}`;
}

function actions(s, isOwn, refresh) {
	const id = s.session;
	const name = shortId(id);
	const open = isOwn ? [h("a", { class: "button small", href: `#/playground?session=${encodeURIComponent(id)}`, "aria-label": `Open ${name} in the playground` }, "Open"),
		h("a", { class: "button small", href: `#/files?session=${encodeURIComponent(id)}`, "aria-label": `Files of ${name}`, title: `Files of ${name}` }, icon("files"))] : null;
	return h("div", { class: "row actions" }, open,
		button("", { icon: "pause", kind: "small", label: `Interrupt ${name}`, onclick: () => act(() => post(`${address(s, isOwn)}/interrupt`), `${name} got an interrupt.`, refresh) }),
		button("Kill", { kind: "small danger", label: `Kill ${name}`, onclick: async () => {
			if (await confirmDialog("Kill this session?", `${id} ends at once. Its variables and files are gone.`, "Kill it")) await act(() => remove(address(s, isOwn)), `${name} has ended.`, refresh);
		} }));
}

export default {
	title: "Sessions",
	mount(place, _query, signal) {
		const list = h("div", {}, loading());
		const figures = h("div", { class: "figures" });
		let refresh = () => {};
		place.append(h("div", { class: "view" }, viewHead("Sessions", "What lives now. The list renews itself.", button("Refresh", { icon: "refresh", onclick: () => refresh() })), figures, list));
		const columns = (rows) => [
			{ title: "Session", cell: (s) => h("code", { title: s.session }, shortId(s.session)) },
			...(rows.some((s) => s.tenant !== me.name) ? [{ title: "Key", cell: (s) => guestText(s.tenant, 24) }] : []),
			{ title: "Guest", cell: (s) => languageName(s.guest) },
			{ title: "State", cell: stateOf },
			...USAGE,
			{ title: "", cell: (s) => actions(s, s.tenant === me.name, () => refresh()) },
		];
		refresh = poll(2500, async () => {
			try {
				const rows = await listSessions(signal);
				const sum = (key) => rows.reduce((all, s) => all + (Number(s[key]) || 0), 0);
				fill(figures, figure("Sessions", count(rows.length)), figure("Executing", count(rows.filter((s) => s.running).length)), figure("Memory (peak)", bytes(sum("memory_peak_bytes"))), figure("Executions", count(sum("executions"))));
				redraw(list, rows, columns(rows));
			} catch (e) {
				if (e.name !== "AbortError") fill(list, problemBox(e, () => refresh()));
			}
		}, signal);
	},
};

export function figure(label, value) {
	return h("div", { class: "figure" }, h("span", { class: "figure-label" }, label), h("span", { class: "figure-value" }, value));
}

function redraw(list, rows, columns) {
	refill(list, rows.length ? table("Sessions", columns, rows.map((s) => ({ ...s, data: { session: s.session } }))) : emptyState("sessions", "No session is open", "Run something in the playground, or open one with the API.", h("a", { class: "button primary", href: "#/playground" }, "To the playground")));
}

// executions.js - running and recent executions, with filters and the figures of what is left: p50, p95.
import { get, me, path, poll, post, remove } from "./api.js";
import { fill, guestText, h, svg } from "./dom.js";
import { clock, count, day, languageName, milliseconds, percentile, shortId } from "./format.js";
import { button, emptyState, field, loading, outcomeBadge, problemBox, refill, select, table, toast, toastProblem, viewHead } from "./parts.js";
import { figure } from "./sessions.js";

const filter = { text: "", language: "", outcome: "" };

function outcomeOf(e) {
	return e.state === "running" ? "running" : e.outcome || "ended";
}

/** Those that fit the filter. */
export function matching(list, { text, language, outcome }) {
	const word = text.trim().toLowerCase();
	return list.filter((e) => (!language || e.language === language) && (!outcome || (outcome === "failed" ? !["success", "running"].includes(outcomeOf(e)) : outcomeOf(e) === outcome)) &&
		(!word || `${e.tenant ?? ""} ${e.execution} ${e.session} ${e.language ?? ""} ${outcomeOf(e)}`.toLowerCase().includes(word)));
}

function markAt(share, name, at) {
	const element = h("span", { class: "strip-mark" }, name);
	element.style.left = `${at}%`;
	element.dataset.side = at > 90 ? "left" : "right";
	element.title = `${name}: ${Math.round(share * 100)} of 100 took no longer`;
	return element;
}

/** Durations on a logarithmic scale, one stroke each: where they crowd, most executions are. */
function strip(ended) {
	const sorted = ended.map((e) => Math.max(0.1, e.ms)).sort((a, b) => a - b);
	const low = Math.log10(sorted[0]);
	const high = Math.max(low + 0.5, Math.log10(sorted.at(-1)));
	const x = (ms) => 1 + ((Math.log10(Math.max(0.1, ms)) - low) / (high - low)) * 98;
	const strokes = ended.map((e) => svg("line", { x1: x(e.ms), x2: x(e.ms), y1: 0, y2: 20, class: e.outcome === "success" ? "strip-good" : "strip-bad" }));
	return h("figure", { class: "strip-figure" },
		h("div", { class: "strip-marks", "aria-hidden": "true" }, [[0.5, "p50"], [0.95, "p95"]].map(([share, name]) => markAt(share, name, x(percentile(sorted, share))))),
		svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", class: "strip", role: "img", "aria-label": `Durations from ${milliseconds(sorted[0])} to ${milliseconds(sorted.at(-1))}` }, ...strokes),
		h("figcaption", { class: "row" }, h("span", {}, milliseconds(sorted[0])), h("span", { class: "grow" }), h("span", {}, milliseconds(sorted.at(-1)))));
}

function summary(list) {
	const ended = list.filter((e) => e.state !== "running");
	const sorted = ended.map((e) => e.ms).sort((a, b) => a - b);
	const good = ended.filter((e) => e.outcome === "success").length;
	return [h("div", { class: "figures" }, figure("Shown", count(list.length)), figure("Running", count(list.length - ended.length)), figure("Succeeded", ended.length ? `${Math.round((good / ended.length) * 100)} %` : "\u2013"), figure("p50", milliseconds(percentile(sorted, 0.5))), figure("p95", milliseconds(percentile(sorted, 0.95)))),
		ended.length > 1 ? strip(ended) : null];
}

function columns(rows, refresh) {
	return [
		{ title: "Began", cell: (e) => h("span", { title: day(e.begun_ms) }, clock(e.begun_ms)) },
		...(rows.some((e) => e.tenant !== me.name) ? [{ title: "Key", cell: (e) => guestText(e.tenant, 24) }] : []),
		{ title: "Execution", cell: (e) => h("code", { title: e.execution }, shortId(e.execution)) },
		{ title: "Session", cell: (e) => h("code", { title: e.session }, shortId(e.session)) },
		{ title: "Language", cell: (e) => languageName(e.language) },
		{ title: "Outcome", cell: (e) => outcomeBadge(outcomeOf(e)) },
		{ title: "Time", class: "num", cell: (e) => milliseconds(e.ms) },
		{ title: "", cell: (e) => (e.state === "running" ? button("Cancel", { kind: "small danger", label: `Cancel ${shortId(e.execution)}`, onclick: async () => {
			try {
				if (e.tenant === me.name) await remove(path`/v1/sessions/${e.session}/executions/${e.execution}`);
				else await post(path`/console/tenants/${e.tenant}/sessions/${e.session}/cancel`);
				toast("It was told to stop.");
			} catch (problem) {
				toastProblem(problem);
			}
			refresh();
		} }) : "") },
	];
}

export default {
	title: "Executions",
	mount(place, query, signal) {
		if (query.get("session")) filter.text = query.get("session");
		const figures = h("div", {});
		const list = h("div", {}, loading());
		let all = [];
		let refresh = () => {};
		const draw = () => {
			const rows = matching(all, filter);
			fill(figures, summary(rows));
			if (rows.length) refill(list, table("Executions", columns(rows, () => refresh()), rows.slice(0, 300)));
			else if (all.length) refill(list, emptyState("executions", "Nothing fits the filter", "Change the filter to see the others.", button("Clear the filter", { onclick: clear })));
			else refill(list, emptyState("executions", "Nothing ran yet", "The last 256 executions of this key are listed here.", h("a", { class: "button primary", href: "#/playground" }, "To the playground")));
		};
		const text = h("input", { type: "search", value: filter.text, placeholder: "id, session, outcome", on: { input: (e) => {
			filter.text = e.target.value;
			draw();
		} } });
		const language = select([["", "all"], ["python", "Python"], ["r", "R"], ["node", "JavaScript"], ["sh", "Shell"], ["pod", "Pod"]], filter.language, (v) => {
			filter.language = v;
			draw();
		});
		const outcome = select([["", "all"], ["running", "running"], ["success", "success"], ["failed", "any failure"], ...["exception", "syntax", "denied", "timeout", "memory", "cpu", "cancelled", "crashed"].map((o) => [o, o])], filter.outcome, (v) => {
			filter.outcome = v;
			draw();
		});
		const clear = () => {
			Object.assign(filter, { text: "", language: "", outcome: "" });
			text.value = language.value = outcome.value = "";
			draw();
			text.focus();
		};
		place.append(h("div", { class: "view" }, viewHead("Executions", "Running and recent ones, the newest first.", button("Refresh", { icon: "refresh", onclick: () => refresh() })),
			h("div", { class: "filters" }, field("Filter", text), field("Language", language), field("Outcome", outcome)), figures, list));
		refresh = poll(2500, async () => {
			try {
				const next = (await get("/console/executions", { signal })).executions.sort((a, b) => b.begun_ms - a.begun_ms);
				const isSame = JSON.stringify(next) === JSON.stringify(all) && all.length > 0;
				all = next;
				if (!isSame) draw();
			} catch (e) {
				if (e.name !== "AbortError") fill(list, problemBox(e, () => refresh()));
			}
		}, signal);
	},
};

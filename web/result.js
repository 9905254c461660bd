// result.js - what came of an execution: why it ended, what it used, what was denied and how to allow it.
import { post } from "./api.js";
import { fill, guestText, h, visible } from "./dom.js";
import { bytes, milliseconds } from "./format.js";
import { icon } from "./icons.js";
import { badge, button, loading, meter, problemBox } from "./parts.js";

const CAUSES = {
	exception: "The code raised an error.", syntax: "The code is not valid.", timeout: "The time limit ended it.", cpu: "The limit of CPU time ended it.", memory: "It reached the limit of memory.",
	processes: "It reached the limit of processes.", file_size: "A file reached its limit.", disk: "The workspace is full.", output: "It reached the limit of output.", denied: "The policy denied something.",
	tool: "A tool call failed.", cancelled: "It was stopped.", crashed: "The interpreter crashed.", protocol: "The guest broke the protocol.", internal: "Cordon failed.",
};

/** "Success", or the cause in a sentence. */
export function causeText(result) {
	if (result.success) return "Success";
	return CAUSES[result.error_kind] ?? "It failed.";
}

export function causeBadge(result) {
	if (result.success) return badge("success", "good");
	return badge(result.error_kind ?? "failed", result.error_kind === "cancelled" ? "" : ["denied", "timeout"].includes(result.error_kind) ? "warn" : "bad");
}

/** The bars: time, CPU, memory, output, each against the limit of the policy. */
export function usageView(result, policy = {}) {
	const printed = (result.stdout?.length ?? 0) + (result.stderr?.length ?? 0);
	const rows = [
		["Time", result.execution_time_ms, policy.timeout_ms, milliseconds],
		["CPU", result.cpu_time_ms, policy.cpu_seconds ? policy.cpu_seconds * 1000 : null, milliseconds],
		["Memory", (result.memory_used_mb ?? 0) * 1048576, policy.memory_bytes, bytes],
		["Output", printed, policy.stdout_bytes, bytes],
	];
	return h("div", { class: "meters" }, rows.map(([label, value, max, show]) => meter(label, value ?? 0, max, show(value ?? 0), max ? `of ${show(max)}` : "no limit")));
}

/** The assignment that a remedy ends with: "commands+=git"; null: none. */
export function assignmentOf(remedy) {
	const found = /\(([a-z_.]+\+?=[^()]*)\)\s*$/.exec(remedy ?? "");
	return found ? found[1] : null;
}

/** The policy field that a remedy names, for one that leaves the value to the reader. */
export function fieldOf(remedy) {
	const found = /^([a-z_]+(?:\.[a-z_]+)*): /.exec(remedy ?? "");
	return found ? found[1] : null;
}

/** Lines of a policy difference, each with its direction. */
export function diffView(text) {
	const lines = text.split("\n").filter(Boolean);
	if (!lines.length) return h("p", { class: "muted" }, "Nothing changes.");
	return h("ul", { class: "diff" }, lines.map((line) => {
		const way = /\((looser|stricter|narrower|tighter)\)\s*$/.exec(line)?.[1];
		const words = way ? line.slice(0, line.lastIndexOf("(")).trimEnd() : line;
		const [name, ...rest] = words.split(": ");
		return h("li", {}, h("code", {}, h("strong", {}, name), rest.length ? `: ${visible(rest.join(": "))}` : ""), way ? badge(way, way === "looser" ? "warn" : "good") : null);
	}));
}

function changeView(choice, assignment, onuse) {
	const place = h("div", { class: "change" }, loading("Comparing\u2026"));
	const a = choice;
	const b = { ...choice, set: [...(choice.set ?? []), assignment] };
	post("/v1/policies/diff", { a, b }).then(
		({ diff }) => fill(place, h("p", { class: "small" }, "With ", h("code", {}, visible(assignment)), " the policy changes so:"), diffView(diff),
			h("div", { class: "row" }, button("Use it in the next run", { icon: "check", kind: "small primary", onclick: () => onuse(assignment) }))),
		(e) => fill(place, problemBox(e)));
	return place;
}

function remedyActions(denial, choice, onuse) {
	const assignment = assignmentOf(denial.remedy);
	const field = fieldOf(denial.remedy);
	const place = h("div", {});
	if (assignment) {
		const open = button("See the policy change", { icon: "policy", kind: "small", "aria-expanded": "false", onclick: () => {
			const isOpen = place.childElementCount > 0;
			open.setAttribute("aria-expanded", String(!isOpen));
			fill(place, isOpen ? null : changeView(choice, assignment, onuse));
		} });
		return [h("div", { class: "row" }, open), place];
	}
	if (!field || !/^(network\.allow|mounts|commands|modules|env|tools|expose)$/.test(field)) return [];
	const input = h("input", { type: "text", "aria-label": `Value for ${field}`, placeholder: field === "network.allow" ? "api.example.org" : "value", spellcheck: "false", autocapitalize: "off" });
	const form = h("form", { class: "row", on: { submit: (e) => {
		e.preventDefault();
		if (input.value.trim()) fill(place, changeView(choice, `${field}+=${input.value.trim()}`, onuse));
	} } }, h("code", {}, `${field}+=`), input, h("button", { class: "button small", type: "submit" }, icon("policy"), h("span", {}, "See the policy change")));
	return [form, place];
}

/** One thing that was denied. choice: the policy of the run, {level, policy, set}. onuse(assignment): allow it next time. */
function denialView(denial, choice, onuse) {
	return h("li", { class: "denial" },
		h("div", { class: "row wrap" }, icon("shield"), h("strong", {}, guestText(denial.operation, 60)), denial.target ? h("code", {}, guestText(denial.target, 120)) : null,
			denial.count > 1 ? badge(`${denial.count} times`) : null, badge(denial.layer ?? "policy"), denial.claimed ? h("span", { class: "badge", title: "Only the guest says so; what Cordon saw itself has no such mark." }, "claimed") : null),
		denial.rule ? h("p", { class: "muted small" }, visible(denial.rule)) : null,
		denial.remedy ? h("p", { class: "small" }, h("strong", {}, "Remedy: "), visible(denial.remedy)) : null,
		remedyActions(denial, choice, onuse));
}

export function denialsView(result, choice, onuse) {
	if (!result.denials?.length) return null;
	return h("section", { class: "block", "aria-label": "Denied" }, h("h3", {}, `Denied (${result.denials.length})`), h("ul", { class: "plain" }, result.denials.map((d) => denialView(d, choice, onuse))));
}

export function errorView(result) {
	if (result.success || !result.error) return null;
	const trace = result.exception?.traceback;
	return h("section", { class: "block error-block", "aria-label": "Error" },
		h("p", { class: "strong" }, icon("warn"), " ", guestText(result.error, 600)), result.claimed ? h("p", { class: "muted small" }, "Only the guest says that it is of this kind.") : null,
		trace ? h("details", { class: "fold", open: trace.length < 1500 }, h("summary", {}, "Traceback"), h("pre", { class: "guest-block", tabindex: "0" }, visible(trace.slice(0, 20000)))) : null);
}

export function warningsView(result) {
	const list = [...(result.warnings ?? []), ...(result.restarted ? [`The session was restarted: ${result.restart_reason ?? "its variables are gone"}`] : []),
		...(result.truncated?.stdout || result.truncated?.stderr ? ["The output was longer than the policy keeps; the stream above shows all that came."] : [])];
	return list.length ? h("section", { class: "block", "aria-label": "Warnings" }, h("ul", { class: "warnings" }, list.map((w) => h("li", {}, icon("warn"), h("span", {}, visible(typeof w === "string" ? w : JSON.stringify(w))))))) : null;
}

/** The layers that were verified for this run. */
export function assuranceView(assurance) {
	if (!assurance) return null;
	const items = [...(assurance.namespaces ?? []).map((n) => `${n} namespace`), assurance.landlock ? `Landlock ${assurance.landlock}` : null, assurance.seccomp ? "seccomp" : null,
		assurance.no_new_privs ? "no new privileges" : null, assurance.capabilities === false ? "no capabilities" : null, assurance.cgroups ? `control groups ${assurance.cgroups}` : null].filter(Boolean);
	return h("details", { class: "fold" }, h("summary", {}, icon("approvals"), h("span", {}, `${items.length} layers verified`), assurance.lacks?.length ? badge(`${assurance.lacks.length} missing`, "warn") : null),
		h("div", { class: "chips" }, items.map((i) => badge(i, "good"))), assurance.lacks?.length ? h("ul", {}, assurance.lacks.map((l) => h("li", {}, visible(l)))) : null);
}

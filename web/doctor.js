// doctor.js - what this machine can enforce, and the proof: attacks that run against a sandbox.
import { get, post } from "./api.js";
import { fill, guestText, h, visible } from "./dom.js";
import { languageName } from "./format.js";
import { icon } from "./icons.js";
import { badge, button, checkbox, field, load, loading, notice, panel, problemBox, select, table, viewHead } from "./parts.js";
import { figure } from "./sessions.js";

const RUNGS = { full: ["good", "Every layer is there."], partial: ["warn", "Some layers are missing."], "without namespaces": ["warn", "There are no user namespaces here; other layers do their work."], none: ["bad", "Nothing can be enforced here."] };

function layerRow(l) {
	return h("li", { class: `layer ${l.there ? "" : "is-missing"}`.trim() }, icon(l.there ? "check" : "cross"), h("div", { class: "grow" }, h("p", {}, h("strong", {}, l.layer), h("span", { class: "sr" }, l.there ? " is there" : " is missing")), h("p", { class: "muted small" }, visible(l.what ?? "")),
		l.why ? h("p", { class: "small" }, visible(l.why)) : null, l.remedy ? h("p", { class: "small" }, h("strong", {}, "Remedy: "), visible(l.remedy)) : null));
}

function guestRow(g) {
	return h("li", { class: `layer ${g.there ? "" : "is-missing"}`.trim() }, icon(g.there ? "check" : "cross"), h("div", { class: "grow" }, h("p", {}, h("strong", {}, languageName(g.guest)), h("span", { class: "sr" }, g.there ? " is there" : " is missing")), h("p", { class: "muted small" }, visible(g.version ?? g.why ?? ""))));
}

function report(d) {
	const [tone, sentence] = RUNGS[d.rung] ?? ["", ""];
	return [notice(tone, tone === "good" ? "approvals" : "warn", h("p", { class: "strong" }, `The sandbox is ${d.rung} on this machine.`), h("p", {}, sentence)),
		h("div", { class: "figures" }, figure("Kernel", visible(d.kernel)), figure("Landlock ABI", d.landlock_abi ?? "\u2013"), figure("Control groups", d.cgroups?.version ?? "none"), figure("Runs as", visible(d.user ?? "\u2013")), figure("Cordon", visible(d.version))),
		h("div", { class: "split even" }, panel("Layers", {}, h("ul", { class: "plain layers" }, d.layers.map(layerRow))), panel("Guests", {}, h("ul", { class: "plain layers" }, d.guests.map(guestRow))))];
}

const TONES = { held: "good", open: "bad", broken: "warn", lacking: "warn" };

function proofView(p) {
	const place = (list, where) => (list ?? []).map((a) => ({ ...a, where, data: { attack: a.name } }));
	const rows = [...place(p.attacks, "session"), ...place(p.place, "several languages"), ...place(p.pod, "pod")];
	const tone = p.open || p.broken ? "bad" : "good";
	return [notice(tone, tone === "good" ? "approvals" : "warn", h("p", { class: "strong" }, p.open ? `${p.open} attacks succeeded.` : "No attack succeeded."), h("p", {}, `${p.held} held, ${p.open} open, ${p.broken} could not be judged.`)),
		table("Attacks", [
			{ title: "Attack", class: "text", cell: (a) => [h("code", {}, visible(a.name)), h("div", { class: "muted small" }, visible(a.attack ?? ""))] },
			{ title: "Sandbox", cell: (a) => a.where },
			{ title: "Outcome", cell: (a) => badge(a.outcome, TONES[a.outcome] ?? "") },
			{ title: "Stopped by", class: "text", cell: (a) => ((a.layers ?? []).length ? h("div", { class: "chips" }, a.layers.map((l) => badge(visible(typeof l === "string" ? l : l.layer ?? JSON.stringify(l))))) : "\u2013") },
			{ title: "What it said", class: "text", cell: (a) => guestText(a.said ?? "", 140) },
		], rows)];
}

function proofPanel(signal) {
	const options = { quick: true, control: false, attack: "" };
	const answer = h("div", { class: "pad", id: "proof" }, h("p", { class: "muted" }, "The proof starts a sandbox and attacks it from inside, through the same path as all code. It needs an administrator's key and takes from seconds to minutes."));
	const attack = h("input", { type: "text", placeholder: "all", spellcheck: "false", autocapitalize: "off", on: { input: (e) => { options.attack = e.target.value.trim(); } } });
	const guest = select([["", "all"], ["python", "Python"], ["r", "R"], ["node", "JavaScript"], ["sh", "Shell"]], "", (v) => { options.guest = v; });
	const start = button("Run the proof", { icon: "shield", kind: "primary", onclick: async () => {
		start.disabled = true;
		fill(answer, loading("Attacking\u2026"));
		try {
			fill(answer, proofView(await post("/v1/doctor/proof", { quick: options.quick, control: options.control, ...(options.attack ? { attack: options.attack } : {}), ...(options.guest ? { guest: options.guest } : {}) }, { signal })));
		} catch (e) {
			if (e.name !== "AbortError") fill(answer, problemBox(e));
		}
		start.disabled = false;
	} });
	return panel("Proof", { actions: [start] }, h("div", { class: "filters pad" }, field("Attack", attack), field("Guest", guest), checkbox("Quick: do not find out which layer stopped it", true, (v) => { options.quick = v; }), checkbox("Control: try each outside too", false, (v) => { options.control = v; })), answer);
}

export default {
	title: "Doctor",
	mount(place, _query, signal) {
		const body = h("div", { class: "stack" });
		const fetchReport = () => load(body, async () => report(await get("/v1/doctor", { signal })));
		place.append(h("div", { class: "view" }, viewHead("Doctor", "What this machine can enforce, found by trying.", button("Look again", { icon: "refresh", onclick: fetchReport })), body, proofPanel(signal)));
		fetchReport();
	},
};

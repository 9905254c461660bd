// policy.js - a policy as text: checked, explained in sentences, shown whole, compared with a level.
import { post } from "./api.js";
import { fill, h, visible } from "./dom.js";
import { editor } from "./editor.js";
import { button, field, load, notice, panel, problemBox, select, toast, viewHead } from "./parts.js";
import { diffView } from "./result.js";
import { LEVEL_OPTIONS, remember, setup } from "./setup.js";
import { tokens } from "./highlight.js";

const draft = { level: "strict", set: "", text: "{\n  \"timeout_ms\": 5000,\n  \"commands\": [\"git\"],\n  \"network\": {\"allow\": [\"api.example.org\"]}\n}\n" };

/** {level, policy, set} of what is typed; throws with a sentence. */
function readDraft() {
	let policy = null;
	try {
		policy = draft.text.trim() ? JSON.parse(draft.text) : null;
	} catch (e) {
		throw new Error(`This is not JSON: ${e.message}`);
	}
	if (policy !== null && (typeof policy !== "object" || Array.isArray(policy))) throw new Error("A policy is a JSON object.");
	const set = draft.set.split("\n").map((s) => s.trim()).filter(Boolean);
	return { ...(draft.level ? { level: draft.level } : {}), ...(policy ? { policy } : {}), ...(set.length ? { set } : {}) };
}

function code(language, text) {
	return h("pre", { class: "guest-block tall", tabindex: "0" }, tokens(language, visible(text)).map(([kind, part]) => (kind ? h("span", { class: `t-${kind}` }, part) : part)));
}

function explanation(text) {
	const lines = text.split("\n").filter(Boolean);
	const notes = lines.filter((l) => l.startsWith("Note: "));
	return [h("ul", { class: "sentences" }, lines.filter((l) => !l.startsWith("Note: ")).map((l) => h("li", {}, visible(l)))), notes.length ? h("div", { class: "stack" }, notes.map((n) => notice("info", "warn", visible(n.slice(6))))) : null];
}

const ACTIONS = {
	async check(choice) {
		const { valid, error } = await post("/v1/policies/check", choice);
		return valid ? notice("good", "check", h("p", { class: "strong" }, "The policy is valid.")) : notice("bad", "cross", h("p", { class: "strong" }, "The policy is not valid."), h("p", {}, visible(error ?? "")));
	},
	async explain(choice) {
		const { valid, error, explanation: text } = await post("/v1/policies/check", choice);
		return valid ? explanation(text ?? "") : notice("bad", "cross", h("p", { class: "strong" }, "The policy is not valid."), h("p", {}, visible(error ?? "")));
	},
	async show(choice) {
		const { policy } = await post("/v1/policies/show", choice);
		return code("json", JSON.stringify(policy, null, 2));
	},
	async diff(choice) {
		const base = choice.level ?? "standard";
		const { diff } = await post("/v1/policies/diff", { a: { level: base }, b: choice });
		return [h("p", { class: "muted" }, `Compared with level ${base}:`), diffView(diff)];
	},
};

export default {
	title: "Policy",
	mount(place) {
		const answer = h("div", { class: "answer", id: "policy-answer" }, h("p", { class: "muted" }, "Check says whether the policy is valid; Explain says in sentences what it permits."));
		const run = (name) => {
			let choice = null;
			try {
				choice = readDraft();
			} catch (e) {
				fill(answer, problemBox({ detail: e.message, remedy: "Correct the text and try again." }));
				return;
			}
			load(answer, () => ACTIONS[name](choice));
		};
		const use = () => {
			try {
				const choice = readDraft();
				Object.assign(setup, { level: choice.level ?? "", policy: choice.policy ?? null, set: choice.set ?? [] });
				remember();
				toast("The playground has this policy now.");
				location.hash = "#/playground";
			} catch (e) {
				fill(answer, problemBox({ detail: e.message }));
			}
		};
		const text = editor({ label: "Policy as JSON", language: "json", value: draft.text, onrun: () => run("check"), onchange: (v) => { draft.text = v; } });
		const level = select(LEVEL_OPTIONS, draft.level, (v) => { draft.level = v; });
		const set = h("textarea", { rows: 2, class: "mono", spellcheck: "false", placeholder: "network.allow+=api.example.org", value: draft.set, on: { input: (e) => { draft.set = e.target.value; } } });
		place.append(h("div", { class: "view" }, viewHead("Policy", "What code may do. The level fills every field; the text and the changes come on top."),
			h("div", { class: "split" },
				h("section", { class: "panel", "aria-label": "Policy" }, h("div", { class: "toolbar" }, field("Level", level), h("span", { class: "grow" }), button("Use in the playground", { icon: "playground", kind: "small", onclick: use })), text.element,
					h("div", { class: "pad" }, field("Changes, one per line (FIELD=VALUE)", set)),
					h("div", { class: "row wrap pad" }, button("Check", { icon: "check", kind: "primary", onclick: () => run("check") }), button("Explain", { icon: "policy", onclick: () => run("explain") }), button("Show whole", { icon: "file", onclick: () => run("show") }), button("Compare with the level", { icon: "executions", onclick: () => run("diff") }))),
				panel("Answer", {}, answer))));
	},
};

// keys.js - who may use this server: keys with a policy and quotas. For administrators.
import { get, path, post, remove } from "./api.js";
import { fill, guestText, h, visible } from "./dom.js";
import { bytes, count, day } from "./format.js";
import { badge, button, checkbox, confirmDialog, copy, dialog, emptyState, field, load, notice, problemBox, table, toast, toastProblem, viewHead } from "./parts.js";

function limit(n, show = count) {
	return n ? show(n) : "no limit";
}

function stateOf(k) {
	if (k.revoked) return badge("revoked", "bad");
	if (k.expires && Date.parse(k.expires) < Date.now()) return badge("expired", "warn");
	return badge("valid", "good");
}

function columns(refresh) {
	return [
		{ title: "Name", cell: (k) => [h("strong", {}, guestText(k.name, 48)), k.admin ? [" ", badge("admin", "info")] : null] },
		{ title: "State", cell: stateOf },
		{ title: "Sessions", class: "num", cell: (k) => limit(k.max_sessions) },
		{ title: "At once", class: "num", cell: (k) => limit(k.max_executions) },
		{ title: "Memory", class: "num", cell: (k) => limit(k.max_memory_bytes, bytes) },
		{ title: "Rate", class: "num", cell: (k) => (k.rate ? `${k.rate}/s` : "no limit") },
		{ title: "Expires", cell: (k) => (k.expires ? day(Date.parse(k.expires)) : "never") },
		{ title: "", cell: (k) => (k.revoked ? "" : button("Revoke", { kind: "small danger", label: `Revoke ${visible(k.name)}`, onclick: async () => {
			if (!await confirmDialog("Revoke this key?", `Requests with the key of ${visible(k.name)} are refused from now on, and its sessions end.`, "Revoke")) return;
			try {
				await remove(path`/v1/keys/${k.name}`);
				toast(`The key of ${visible(k.name)} is revoked.`);
			} catch (e) {
				toastProblem(e);
			}
			refresh();
		} })) },
	];
}

function numberField(label, value, hint, props = {}) {
	const input = h("input", { type: "number", min: "0", step: "1", inputmode: "numeric", value, ...props });
	return { input, element: field(label, input, hint) };
}

function readKey(form) {
	const policy = form.policy.value.trim();
	const days = Number(form.days.input.value);
	return {
		name: form.name.value.trim(), ...(form.admin ? { admin: true } : {}), ...(policy ? { policy: JSON.parse(policy) } : {}),
		...(Number(form.sessions.input.value) ? { max_sessions: Number(form.sessions.input.value) } : {}), ...(Number(form.executions.input.value) ? { max_executions: Number(form.executions.input.value) } : {}),
		...(Number(form.memory.input.value) ? { max_memory_bytes: Number(form.memory.input.value) * 1048576 } : {}), ...(Number(form.rate.input.value) ? { rate: Number(form.rate.input.value) } : {}), ...(days ? { expires_s: Math.round(days * 86400) } : {}),
	};
}

function shownOnce(place, name, key, close) {
	fill(place, notice("good", "check", h("p", { class: "strong" }, `The key of ${visible(name)}. It is shown only now.`), h("p", { class: "secret", id: "new-key" }, h("code", { class: "break" }, key))),
		h("div", { class: "row end" }, button("Copy", { icon: "copy", onclick: () => copy(key) }), button("Done", { kind: "primary", onclick: () => close(true) })));
}

function addDialog() {
	return dialog("New key", (close) => {
		const problems = h("div", {});
		const form = {
			admin: false, name: h("input", { type: "text", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,47}", autocomplete: "off", spellcheck: "false" }),
			policy: h("textarea", { rows: 4, class: "mono", spellcheck: "false", placeholder: "{\"level\": \"strict\"}" }),
			sessions: numberField("Sessions at once", "8"), executions: numberField("Executions at once", "8"), memory: numberField("Memory in all, MiB", "", "Empty: no limit."), rate: numberField("Requests per second", "", "Empty: no limit.", { step: "any" }), days: numberField("Expires after days", "", "Empty: never.", { step: "any" }),
		};
		const place = h("div", {});
		const submit = async (e) => {
			e.preventDefault();
			try {
				const { name, key } = await post("/v1/keys", readKey(form));
				shownOnce(place, name, key, close);
			} catch (problem) {
				fill(problems, problemBox(problem.detail ? problem : { detail: `The policy is not JSON: ${problem.message}` }));
			}
		};
		fill(place, h("form", { class: "stack", on: { submit } }, field("Name", form.name, "Letters, digits, dot, dash, underscore."), field("Policy", form.policy, "JSON. Sessions of this key can only narrow it. Empty: the server's."),
			h("div", { class: "fields" }, form.sessions.element, form.executions.element, form.memory.element, form.rate.element, form.days.element), checkbox("Administrator", false, (v) => { form.admin = v; }), problems,
			h("div", { class: "row end" }, button("Cancel", { onclick: () => close(false) }), h("button", { type: "submit", class: "button primary" }, "Make the key"))));
		return place;
	});
}

export default {
	title: "Keys",
	mount(place, _query, signal) {
		const list = h("div", {});
		const refresh = () => load(list, async () => {
			const { keys } = await get("/v1/keys", { signal });
			return keys.length ? table("Keys", columns(refresh), keys.map((k) => ({ ...k, data: { key: k.name } }))) : emptyState("keys", "No keys yet", "The administrator's key of the start works. Make one for each program or person.", button("New key", { kind: "primary", icon: "plus", onclick: add }));
		});
		const add = async () => {
			await addDialog();
			refresh();
		};
		place.append(h("div", { class: "view" }, viewHead("Keys", "Each key sees only its own sessions, files and audit.", button("New key", { icon: "plus", kind: "primary", onclick: add })), list));
		refresh();
	},
};

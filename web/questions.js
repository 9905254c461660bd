// questions.js - what running code waits for: approvals (allow, deny, answer) and tool calls (answer, fail).
import { path, post } from "./api.js";
import { guestText, h, visible } from "./dom.js";
import { shortId } from "./format.js";
import { icon } from "./icons.js";
import { badge, button, field, problemBox, toast } from "./parts.js";

/** Text as JSON; text that is no JSON is a string. */
export function valueOf(text) {
	const trimmed = text.trim();
	if (!trimmed) return null;
	try {
		return JSON.parse(trimmed);
	} catch {
		return text;
	}
}

function asJson(value) {
	const text = JSON.stringify(value, null, 2) ?? "null";
	return text.length > 20000 ? `${text.slice(0, 20000)}\n\u2026` : text;
}

/** A card with its own state: buttons are off while an answer is on its way. */
function card(question, title, what, details, form, doAnswer) {
	const place = h("div", {});
	const element = h("article", { class: "question", "aria-label": `${title}: ${visible(what ?? "")}`, data: { id: question.id } },
		h("header", { class: "row wrap" }, icon("approvals"), h("strong", {}, title), h("code", {}, guestText(what ?? "", 120)), h("span", { class: "grow" }), h("span", { class: "muted small", title: question.session }, shortId(question.session))),
		h("pre", { class: "guest-block", tabindex: "0" }, visible(asJson(details))), form.extra, h("div", { class: "row wrap" }, form.buttons), place);
	const answer = async (body, words) => {
		for (const b of element.querySelectorAll("button")) b.disabled = true;
		try {
			await doAnswer(body);
			element.classList.add("is-done");
			element.querySelector(".row.wrap:last-of-type").replaceChildren(badge(words, words === "denied" ? "bad" : "good"));
			toast(`${title}: ${words}.`);
			element.dispatchEvent(new CustomEvent("answered", { bubbles: true }));
		} catch (e) {
			for (const b of element.querySelectorAll("button")) b.disabled = false;
			place.replaceChildren(problemBox(e));
		}
	};
	return { element, answer };
}

/** An approval: {id, session, kind, what, detail}. */
export function approvalCard(q) {
	const reason = h("input", { type: "text", placeholder: "optional", autocomplete: "off" });
	const value = h("textarea", { rows: 2, class: "mono", placeholder: "{\"ok\": true}", spellcheck: "false" });
	const extra = h("details", { class: "fold" }, h("summary", {}, "Reason, or an answer in place of the tool"), field("Reason", reason, "Goes to the audit log; with Deny also to the code."), field("Answer", value, "JSON, or a text. The code gets it, and the tool does not run."));
	const body = (more) => ({ ...more, ...(reason.value ? { reason: reason.value } : {}) });
	let c = null;
	const buttons = [
		button("Allow", { icon: "check", kind: "primary", onclick: () => c.answer(body({ allow: true }), "allowed") }),
		button("Deny", { icon: "cross", kind: "danger", onclick: () => c.answer(body({ allow: false }), "denied") }),
		button("Answer", { icon: "pencil", onclick: () => {
			extra.open = true;
			if (value.value.trim()) c.answer(body({ allow: true, value: valueOf(value.value) }), "answered");
			else value.focus();
		} }),
	];
	c = card(q, `Approval of ${q.kind ?? "a call"}`, q.what, q.detail, { extra, buttons }, (b) => post(path`/v1/sessions/${q.session}/approvals/${q.id}`, b));
	return c.element;
}

/** A call of a tool that a person answers: {id, session, tool, args}. */
export function toolCallCard(q) {
	const value = h("textarea", { rows: 2, class: "mono", spellcheck: "false", placeholder: "42" });
	const extra = field("Value or error", value, "JSON, or a text: what the tool returns.");
	let c = null;
	const buttons = [
		button("Answer", { icon: "check", kind: "primary", onclick: () => c.answer({ value: valueOf(value.value) }, "answered") }),
		button("Fail", { icon: "cross", kind: "danger", onclick: () => c.answer({ error: value.value.trim() || "the person at the console refused" }, "failed") }),
	];
	c = card(q, "Tool call", q.tool, q.args, { extra, buttons }, (b) => post(path`/v1/sessions/${q.session}/tool_calls/${q.id}`, b));
	return c.element;
}

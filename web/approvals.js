// approvals.js - everything that waits for a person, in all sessions of the key.
import { get, poll } from "./api.js";
import { fill, h } from "./dom.js";
import { button, emptyState, loading, problemBox, viewHead } from "./parts.js";
import { approvalCard, toolCallCard } from "./questions.js";

/** Keeps cards that are there, so that what a person types stays. */
function merge(place, cards) {
	const ids = new Set(cards.map(([id]) => id));
	for (const old of [...place.querySelectorAll(".question")]) if (!ids.has(old.dataset.id) && !old.classList.contains("is-done")) old.remove();
	for (const [id, make] of cards) if (!place.querySelector(`.question[data-id="${CSS.escape(id)}"]`)) place.append(make());
}

export default {
	title: "Approvals",
	mount(place, _query, signal) {
		const cards = h("div", { class: "stack questions" });
		const state = h("div", {}, loading());
		let refresh = () => {};
		place.append(h("div", { class: "view narrow" }, viewHead("Approvals", "Code stops here until you answer. Without an answer it is denied when its time is over.", button("Refresh", { icon: "refresh", onclick: () => refresh() })), state, cards));
		cards.addEventListener("answered", () => setTimeout(() => refresh(), 0));
		refresh = poll(1500, async () => {
			try {
				const { approvals, tool_calls: calls } = await get("/v1/questions", { signal });
				merge(cards, [...approvals.map((q) => [q.id, () => approvalCard(q)]), ...calls.map((q) => [q.id, () => toolCallCard(q)])]);
				fill(state, approvals.length + calls.length || cards.childElementCount ? null : emptyState("approvals", "Nothing waits", "Calls of tools that need an approval, and tools that a person answers, appear here while their code runs."));
				window.dispatchEvent(new CustomEvent("cordon-waiting", { detail: approvals.length + calls.length }));
			} catch (e) {
				if (e.name !== "AbortError") fill(state, problemBox(e, () => refresh()));
			}
		}, signal);
	},
};

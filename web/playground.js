// playground.js - the view in which code is written, run and watched.
import { get, path, post, put, remove, stream } from "./api.js";
import { fill, h } from "./dom.js";
import { editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { LANGUAGES, milliseconds, shortId } from "./format.js";
import { outputList, outputView, valueView } from "./outputs.js";
import { badge, button, copy, field, panel, problemBox, save, select, toast, toastProblem, viewHead } from "./parts.js";
import { approvalCard, toolCallCard } from "./questions.js";
import { assuranceView, causeBadge, causeText, denialsView, errorView, usageView, warningsView } from "./result.js";
import { LEVEL_OPTIONS, choiceOf, filesSection, inputSection, openParams, policySection, remember, setup, toolsSection } from "./setup.js";
import { Terminal } from "./terminal.js";

let view = null; // made once: a run goes on while other views are open

const running = { abort: null, execution: null, began: 0, timer: 0 };

function forgetSession() {
	Object.assign(setup, { session: null, made: null });
	remember();
}

/** Ends the playground's session, if it made it. */
async function closeSession() {
	const { session, made } = setup;
	forgetSession();
	if (session && made) await remove(path`/v1/sessions/${session}`).catch(() => {});
}

/** The id of a session with the chosen language and policy. */
async function ensureSession(signal) {
	const params = openParams();
	const made = JSON.stringify(params);
	if (setup.session && (setup.made === null || setup.made === made)) return setup.session;
	await closeSession();
	const { session } = await post("/v1/sessions", params, { signal });
	Object.assign(setup, { session, made });
	view.limits = null;
	remember();
	return session;
}

async function limitsOf(session) {
	view.limits ??= (await get(path`/v1/sessions/${session}`)).policy ?? {};
	return view.limits;
}

function setState(name, words) {
	view.state.dataset.state = name;
	fill(view.state, words);
}

function tick() {
	setState("running", [badge("running", "info"), h("span", { class: "muted" }, milliseconds(Math.floor((performance.now() - running.began) / 100) * 100))]);
}

function begin() {
	running.abort = new AbortController();
	running.began = performance.now();
	view.term.clear();
	for (const place of [view.outputs, view.result, view.questions, view.usage]) fill(place);
	view.hint.hidden = true;
	view.run.disabled = true;
	view.stop.disabled = false;
	running.timer = setInterval(tick, 100);
	tick();
	view.live.textContent = "Running.";
}

function end() {
	clearInterval(running.timer);
	running.abort = null;
	running.execution = null;
	view.run.disabled = false;
	view.stop.disabled = true;
	view.term.flush();
	fill(view.questions);
	drawSession();
}

function showResult(result) {
	fill(view.outputs, valueView(result), outputList(result).map(outputView));
	fill(view.usage, usageView(result, view.limits ?? {}));
	fill(view.result, errorView(result), denialsView(result, choiceOf(), (assignment) => {
		view.policy.add(assignment);
		toast(`The next run has ${assignment}, in a new session.`);
	}), warningsView(result), assuranceView(result.assurance));
	setState(result.success ? "success" : "failed", [causeBadge(result), result.success ? null : h("span", {}, causeText(result)), h("span", { class: "muted" }, `exit ${result.exit_code}, ${milliseconds(result.execution_time_ms)}`)]);
	view.live.textContent = `Ended. ${causeText(result)}`;
	view.term.element.hidden = view.term.isEmpty;
}

function showProblem(problem) {
	if (problem.status === 404) forgetSession();
	fill(view.result, problemBox(problem, run));
	view.term.element.hidden = view.term.isEmpty;
	setState("failed", [badge(problem.code || "error", "bad"), h("span", {}, "It did not run.")]);
	view.live.textContent = "It did not run.";
}

function onEvent(name, value) {
	if (name === "stdout" || name === "stderr") view.term.write(String(value.data ?? ""), name);
	else if (name === "started") running.execution = value.execution;
	else if (name === "output") view.outputs.append(outputView(value));
	else if (name === "approval") view.questions.append(approvalCard(value));
	else if (name === "tool_call") view.questions.append(toolCallCard(value));
	else if (name === "result") running.result = value;
	else if (name === "problem") running.problem = value;
	if (name === "approval" || name === "tool_call") {
		view.live.textContent = "The code waits for your answer.";
		window.dispatchEvent(new Event("cordon-questions"));
	}
}

async function upload(session, signal) {
	for (const f of setup.files) await put(`${path`/v1/sessions/${session}/files`}?path=${encodeURIComponent(f.name)}`, f, { signal, headers: { "Content-Type": "application/octet-stream" } });
}

async function run() {
	if (running.abort) return;
	begin();
	const { signal } = running.abort;
	Object.assign(running, { result: null, problem: null });
	view.term.element.hidden = false;
	try {
		const session = await ensureSession(signal);
		await upload(session, signal);
		await limitsOf(session);
		await stream(path`/v1/sessions/${session}/executions`, { code: view.editor.value, ...(setup.stdin ? { stdin: setup.stdin } : {}) }, onEvent, signal);
		if (running.problem) showProblem(running.problem);
		else if (running.result) showResult(running.result);
		else showProblem({ detail: "The stream ended without a result.", remedy: "The server may have stopped; try again." });
		if (!setup.keep) await closeSession();
	} catch (e) {
		if (e.name === "AbortError") showProblem({ code: "cancelled", detail: "It was cancelled before there was a result." });
		else showProblem(e.detail ? e : { code: "invalid", detail: e.message });
	} finally {
		end();
	}
}

/** Asks the code to stop; the server ends it if it does not. A second press gives up waiting. */
async function stop() {
	if (!running.abort) return;
	if (!setup.session || view.stop.dataset.asked === "1") running.abort.abort();
	view.stop.dataset.asked = "1";
	try {
		if (setup.session) await post(path`/v1/sessions/${setup.session}/cancel`);
	} catch (e) {
		toastProblem(e);
	} finally {
		view.stop.dataset.asked = "";
	}
}

function drawSession() {
	const { session } = setup;
	fill(view.session, session ? [h("span", { class: "muted small" }, "Session ", h("code", { title: session }, shortId(session))), h("a", { class: "small", href: `#/files?session=${encodeURIComponent(session)}` }, "Its files"),
		button("New session", { kind: "small", icon: "refresh", onclick: async () => {
			await closeSession();
			drawSession();
			toast("The next run begins in a new session.");
		} })] : h("span", { class: "muted small" }, "The first run opens a session."));
}

function changed() {
	remember();
	drawSession();
}

function examplesSelect() {
	const list = EXAMPLES[setup.language] ?? [];
	const element = select([["", "Examples"], ...list.map(([title], i) => [String(i), title])], "", (i) => {
		if (i === "") return;
		view.editor.setValue(list[Number(i)][1]);
		view.editor.focus();
		element.value = "";
	}, { "aria-label": "Examples", id: "examples" });
	return element;
}

function setLanguage(language) {
	const list = EXAMPLES[setup.language] ?? [];
	const isExample = !view.editor.value.trim() || list.some(([, code]) => code === view.editor.value);
	setup.language = language;
	view.editor.setLanguage(language);
	if (isExample) view.editor.setValue(EXAMPLES[language]?.[0]?.[1] ?? "");
	view.examples.replaceWith(view.examples = examplesSelect());
	changed();
}

function codePanel() {
	view.editor = editor({ label: "Code", language: setup.language, value: setup.code ?? EXAMPLES[setup.language]?.[0]?.[1] ?? "", onrun: run, onchange: (text) => {
		setup.code = text;
		remember();
	} });
	view.examples = examplesSelect();
	view.language = select(Object.entries(LANGUAGES), setup.language, setLanguage, { id: "language" });
	view.level = select(LEVEL_OPTIONS, setup.level, (v) => {
		setup.level = v;
		changed();
	}, { id: "level" });
	view.run = button("Run", { icon: "play", kind: "primary", id: "run", title: "Control and Enter", onclick: run });
	view.stop = button("Stop", { icon: "stop", id: "stop", onclick: stop });
	view.stop.disabled = true;
	return h("section", { class: "panel code-panel", "aria-label": "Code" },
		h("div", { class: "toolbar" }, field("Language", view.language), field("Policy level", view.level), h("span", { class: "grow" }), h("div", { class: "row" }, view.stop, view.run)), view.editor.element);
}

function outputPanel() {
	view.term = new Terminal();
	view.term.element.hidden = true;
	view.state = h("div", { class: "row wrap run-state", id: "run-state", data: { state: "idle" } }, badge("idle"));
	view.live = h("p", { class: "sr", role: "status", "aria-live": "polite" });
	for (const name of ["outputs", "result", "questions", "usage"]) view[name] = h("div", { class: `run-${name}`, id: `run-${name}` });
	view.hint = h("div", { class: "empty small-empty" }, h("p", {}, "Output, pictures and tables appear here. Press ", h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), " to run."));
	const actions = [button("", { icon: "copy", kind: "ghost small", label: "Copy the output", onclick: () => copy(view.term.text()) }),
		button("", { icon: "download", kind: "ghost small", label: "Save the output", onclick: () => save(new Blob([view.term.text()], { type: "application/octet-stream" }), "output.txt") })];
	return panel("Output", { class: "output-panel", actions: [view.state, ...actions] }, view.live, view.questions, view.usage, view.hint, view.term.element, view.outputs, view.result);
}

function build() {
	view = {};
	const code = codePanel();
	view.policy = policySection(changed);
	view.session = h("div", { class: "row wrap session-row" });
	const keep = h("label", { class: "check" }, h("input", { type: "checkbox", checked: setup.keep, on: { change: (e) => {
		setup.keep = e.target.checked;
		remember();
	} } }), h("span", {}, "Keep variables and files between runs"));
	view.element = h("div", { class: "view playground" }, viewHead("Playground", "Run code in a sandbox and see what it did, what it used and what it was denied.", view.examples),
		h("div", { class: "bench" }, code, outputPanel(), h("div", { class: "stack bench-setup" }, h("div", { class: "folds" }, view.policy.element, filesSection().element, inputSection().element, toolsSection(changed).element), keep, view.session)));
	drawSession();
}

/** A session of the list is used as it is; it is not closed when settings change. */
function attach(session) {
	if (!session || session === setup.session) return;
	Object.assign(setup, { session, made: null });
	get(path`/v1/sessions/${session}`).then((s) => {
		view.limits = s.policy;
		if (LANGUAGES[s.guest]) {
			view.language.value = s.guest;
			setLanguage(s.guest);
		}
	}, (e) => {
		forgetSession();
		drawSession();
		toastProblem(e);
	});
	changed();
}

export default {
	title: "Playground",
	mount(place, query) {
		if (!view) build();
		view.policy.draw();
		view.level.value = setup.level;
		attach(query.get("session"));
		place.append(view.element);
	},
};

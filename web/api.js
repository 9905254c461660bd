// api.js - requests to API v1 of this server. The key is in memory and in sessionStorage, nowhere else.

const STORE = "cordon-key";

/** An error of the server (a problem document), or one that the browser saw. */
export class Problem extends Error {
	constructor({ status = 0, code = "os", detail, remedy }) {
		super(detail);
		Object.assign(this, { status, code, detail, remedy });
	}
}

/** Who the key belongs to: its name, and whether it is an administrator's. */
export const me = { name: "", admin: false };

let key = sessionStorage.getItem(STORE) ?? "";
let onRefused = () => {};

export function setKey(text) {
	key = text;
	if (text) sessionStorage.setItem(STORE, text);
	else sessionStorage.removeItem(STORE);
}

export function hasKey() {
	return key !== "";
}

/** fn is called if the server no longer takes the key. */
export function whenRefused(fn) {
	onRefused = fn;
}

/** A path with its parts encoded: path`/v1/sessions/${id}`. */
export function path(strings, ...values) {
	return strings.reduce((all, s, i) => all + encodeURIComponent(values[i - 1]) + s);
}

async function send(method, url, { body, json, accept, headers, signal } = {}) {
	const all = { ...headers };
	if (key) all.Authorization = `Bearer ${key}`;
	if (accept) all.Accept = accept;
	if (json !== undefined) all["Content-Type"] = "application/json";
	try {
		return await fetch(url, {
			method, headers: all, signal, body: json !== undefined ? JSON.stringify(json) : body,
			cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
		});
	} catch (e) {
		if (e.name === "AbortError") throw e;
		throw new Problem({ code: "offline", detail: "The server does not answer.", remedy: "Check that cordon serve runs and that this address is still right, then try again." });
	}
}

async function problemOf(response) {
	let document = {};
	try {
		document = await response.json();
	} catch {
		document = { detail: `The server answered ${response.status}.` };
	}
	if (response.status === 401) onRefused();
	return new Problem({ status: response.status, code: String(document.code ?? ""), detail: String(document.detail ?? document.title ?? "The request failed."), remedy: document.remedy });
}

/** The answer as JSON; null: it has no body. Throws Problem. */
export async function call(method, url, options) {
	const response = await send(method, url, options);
	if (!response.ok) throw await problemOf(response);
	if (response.status === 204) return null;
	const text = await response.text();
	return text ? JSON.parse(text) : null;
}

/** The answer as a Blob without a type, so that no browser opens it as a page. */
export async function download(url, options) {
	const response = await send("GET", url, options);
	if (!response.ok) throw await problemOf(response);
	return new Blob([await response.arrayBuffer()], { type: "application/octet-stream" });
}

export const get = (url, options) => call("GET", url, options);
export const post = (url, json, options) => call("POST", url, { json: json ?? {}, ...options });
export const put = (url, body, options) => call("PUT", url, { body, ...options });
export const remove = (url, options) => call("DELETE", url, options);

/** Splits a stream of events into [name, data] as they come. */
export class EventParser {
	constructor(fn) {
		Object.assign(this, { fn, pieces: [], name: "", data: [] });
	}

	push(text) {
		// A result may be one line of megabytes: its pieces are joined once.
		this.pieces.push(text);
		if (!text.includes("\n")) return;
		const lines = this.pieces.join("").split("\n");
		this.pieces = [lines.pop()];
		for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
	}

	line(line) {
		if (line === "") {
			if (this.data.length) this.fn(this.name || "message", this.data.join("\n"));
			this.name = "";
			this.data = [];
		} else if (line.startsWith("event:")) {
			this.name = line.slice(6).trim();
		} else if (line.startsWith("data:")) {
			this.data.push(line.slice(line[5] === " " ? 6 : 5));
		}
	}
}

/** Sends JSON and calls onEvent(name, value) for each event until the stream ends. Throws Problem. */
export async function stream(url, json, onEvent, signal) {
	const response = await send("POST", url, { json, accept: "text/event-stream", signal });
	if (!response.ok) throw await problemOf(response);
	const parser = new EventParser((name, data) => onEvent(name, JSON.parse(data)));
	const reader = response.body.getReader();
	const decoder = new TextDecoder();
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		parser.push(decoder.decode(value, { stream: true }));
	}
}

/** Calls fn now and then every ms milliseconds while the page is visible, until the signal aborts. Returns a function that calls it at once. */
export function poll(ms, fn, signal) {
	let timer = 0;
	let running = null;
	const run = () => {
		clearTimeout(timer);
		running ??= Promise.resolve(fn()).finally(() => {
			running = null;
			if (!signal.aborted) timer = setTimeout(() => (document.hidden ? wait() : run()), ms);
		});
		return running;
	};
	const wait = () => document.addEventListener("visibilitychange", run, { once: true, signal });
	signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
	run();
	// What is running may have asked before the change that the caller made: ask again.
	return async () => {
		if (running) await running;
		return signal.aborted ? undefined : run();
	};
}

// format.js - numbers, sizes, times and ids for people.

export function bytes(n) {
	if (n === null || n === undefined || !Number.isFinite(n)) return "\u2013";
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	let value = n;
	while (value >= 1024 && i < units.length - 1) {
		value /= 1024;
		i += 1;
	}
	return `${i === 0 || value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[i]}`;
}

export function milliseconds(ms) {
	if (ms === null || ms === undefined || !Number.isFinite(ms)) return "\u2013";
	if (ms < 1) return `${ms.toFixed(2)} ms`;
	if (ms < 10) return `${ms.toFixed(1)} ms`;
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 120000) return `${Number.isInteger(ms / 1000) ? ms / 1000 : (ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
	return age(ms);
}

/** A longer time: "3 min", "2 h 05 min", "4 d". */
export function age(ms) {
	if (ms === null || ms === undefined || !Number.isFinite(ms)) return "\u2013";
	const seconds = Math.max(0, Math.floor(ms / 1000));
	if (seconds < 60) return `${seconds} s`;
	const minutes = Math.floor(seconds / 60);
	if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
	const hours = Math.floor(minutes / 60);
	if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
	return `${Math.floor(hours / 24)} d`;
}

export function clock(ms) {
	const d = new Date(ms);
	return Number.isNaN(d.getTime()) ? "\u2013" : d.toLocaleTimeString([], { hour12: false });
}

export function day(ms) {
	const d = new Date(ms);
	return Number.isNaN(d.getTime()) ? "\u2013" : d.toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false });
}

export function count(n) {
	return n === null || n === undefined || !Number.isFinite(n) ? "\u2013" : n.toLocaleString("en");
}

/** "sess_d8a4e194…" */
export function shortId(id) {
	const text = String(id);
	return text.length > 16 ? `${text.slice(0, 13)}\u2026` : text;
}

/** The value below which a share of the sorted numbers lies (nearest rank); null: there are none. */
export function percentile(sorted, share) {
	if (sorted.length === 0) return null;
	return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

export const LANGUAGES = { python: "Python", r: "R", node: "JavaScript", sh: "Shell", pod: "Pod" };

export function languageName(id) {
	return LANGUAGES[id] ?? id ?? "\u2013";
}

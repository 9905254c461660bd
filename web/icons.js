// icons.js - line icons, drawn on a grid of 24.
import { svg } from "./dom.js";

const PATHS = {
	play: ["M8 5.5v13l10.5-6.5z"],
	stop: ["M7 7h10v10H7z"],
	playground: ["M4 5h16v14H4z", "m8 10 2.5 2L8 14", "M13 14.5h3.5"],
	sessions: ["M4 5h16v6H4z", "M4 13h16v6H4z", "M7.5 8h.01", "M7.5 16h.01"],
	executions: ["M4 18h16", "M6.5 18v-5", "M11 18V7", "M15.5 18v-8", "M19 18V5"],
	approvals: ["M12 3.5 5 6v5.5c0 4.2 2.9 7.4 7 9 4.1-1.6 7-4.8 7-9V6z", "m9 11.8 2.2 2.2 4-4.2"],
	files: ["M4 6.5h6l2 2.2h8V18H4z"],
	policy: ["M6 3.5h9l3.5 3.5v13.5H6z", "M9 11h6.5", "M9 14.5h6.5", "M9 7.5h3"],
	doctor: ["M3.5 12.5h4l2.2-6 4 12 2.6-6h4.2"],
	audit: ["M8 6h11", "M8 12h11", "M8 18h11", "M4.5 6h.01", "M4.5 12h.01", "M4.5 18h.01"],
	keys: ["M8 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z", "M11.5 12h9", "M17 12v3", "M20.5 12v2.5"],
	menu: ["M4 7h16", "M4 12h16", "M4 17h16"],
	close: ["m6 6 12 12", "M18 6 6 18"],
	sun: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2.5v2", "M12 19.5v2", "M2.5 12h2", "M19.5 12h2", "m5.3 5.3 1.4 1.4", "m17.3 17.3 1.4 1.4", "m5.3 18.7 1.4-1.4", "m17.3 6.7 1.4-1.4"],
	moon: ["M19.5 14.2A8 8 0 0 1 9.8 4.5a8 8 0 1 0 9.7 9.7z"],
	auto: ["M12 4a8 8 0 1 0 0 16z", "M12 4a8 8 0 0 1 0 16"],
	out: ["M14 5h5v14h-5", "M4 12h10", "m10.5 8.5 3.5 3.5-3.5 3.5"],
	refresh: ["M19.5 12a7.5 7.5 0 1 1-2.2-5.3L19.5 9", "M19.5 4.5V9H15"],
	upload: ["M12 16V5", "m7.5 9 4.5-4.5L16.5 9", "M5 19.5h14"],
	download: ["M12 4.5v11", "m7.5 11.5 4.5 4.5 4.5-4.5", "M5 19.5h14"],
	trash: ["M5 7h14", "M9.5 7V4.5h5V7", "m6.5 7 1 12.5h9l1-12.5"],
	folder: ["M4 6.5h6l2 2.2h8V18H4z"],
	file: ["M6.5 3.5h7.5l3.5 3.5v13.5h-11z", "M13.5 3.5V7.5h4"],
	link: ["M10 14 19.5 4.5", "M13 4.5h6.5V11", "M17 14v5.5H4.5V7H10"],
	plus: ["M12 5v14", "M5 12h14"],
	check: ["m5 12.5 4.5 4.5L19 7.5"],
	cross: ["m7 7 10 10", "M17 7 7 17"],
	warn: ["M12 4 2.8 19.5h18.4z", "M12 10v4", "M12 16.8h.01"],
	shield: ["M12 3.5 5 6v5.5c0 4.2 2.9 7.4 7 9 4.1-1.6 7-4.8 7-9V6z"],
	copy: ["M9 9h10.5v10.5H9z", "M15 9V4.5H4.5V15H9"],
	pencil: ["m4.5 19.5 1-4L16 5l3 3L8.5 18.5z"],
	pause: ["M9 6v12", "M15 6v12"],
	clock: ["M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z", "M12 8v4.5l3 2"],
};

/** An icon for the eye only: the text beside it says the same. */
export function icon(name) {
	const paths = (PATHS[name] ?? []).map((d) => svg("path", { d }));
	return svg("svg", { class: `icon icon-${name}`, viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, ...paths);
}

/** The mark of Cordon. */
export function mark() {
	return svg("svg", { class: "mark", viewBox: "0 0 32 32", "aria-hidden": "true", focusable: "false" },
		svg("rect", { width: 32, height: 32, rx: 8, class: "mark-back" }),
		svg("path", { d: "M22.5 11.2A8 8 0 1 0 22.5 20.8", class: "mark-line" }), svg("circle", { cx: 16.4, cy: 16, r: 2.6, class: "mark-dot" }));
}

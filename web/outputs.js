// outputs.js - values and rich outputs of an execution: pictures, tables, text. HTML of the guest is only shown as its source.
import { guestText, h, visible } from "./dom.js";
import { bytes, count } from "./format.js";
import { button, save } from "./parts.js";
import { drawSvg, outputBytes, pictureBlob } from "./bitmap.js";

const ROWS_MAX = 200;
const COLUMNS_MAX = 40;
const TEXT_MAX = 100000;
const SVG_MAX = 1 << 20;

function preText(text) {
	const cut = text.length > TEXT_MAX;
	return h("pre", { class: "guest-block", tabindex: "0" }, visible(cut ? text.slice(0, TEXT_MAX) : text), cut ? h("span", { class: "term-more" }, ` \u2026 ${count(text.length - TEXT_MAX)} more characters`) : null);
}

function source(title, text) {
	return h("details", { class: "fold" }, h("summary", {}, title), preText(text));
}

/** One value in the forms of docs/values.md, as a cell's text. */
export function cellText(v) {
	if (v === null || v === undefined) return "";
	if (typeof v !== "object") return String(v);
	if (Array.isArray(v)) return v.map(cellText).join(", ");
	return "v" in v ? cellText(v.v) : JSON.stringify(v);
}

function column(form, i) {
	const values = Array.isArray(form) ? form : form?.v;
	if (!Array.isArray(values)) return "";
	if (form.$ === "factor") return values[i] === null ? "" : cellText(form.levels?.[values[i] - 1]);
	return cellText(values[i]);
}

function isNumeric(form) {
	return form?.t === "int" || form?.t === "float";
}

/** A data frame as a table. */
export function frameTable(frame) {
	const names = (frame.names ?? []).slice(0, COLUMNS_MAX);
	const rows = Math.min(ROWS_MAX, Number(frame.rows) || 0);
	const head = h("tr", {}, h("th", { scope: "col", class: "index" }, h("span", { class: "sr" }, "row")), names.map((n, i) => h("th", { scope: "col", class: isNumeric(frame.columns[i]) ? "num" : null }, guestText(n, 60))));
	const body = Array.from({ length: rows }, (_, r) => h("tr", {}, h("th", { scope: "row", class: "index" }, guestText(frame.index ? column(frame.index, r) : r, 40)),
		names.map((_n, i) => h("td", { class: isNumeric(frame.columns[i]) ? "num" : null }, guestText(column(frame.columns[i], r), 120)))));
	const more = [];
	if (frame.rows > rows) more.push(`${count(frame.rows - rows)} more rows`);
	if ((frame.names?.length ?? 0) > names.length) more.push(`${count(frame.names.length - names.length)} more columns`);
	return h("figure", { class: "output" }, h("div", { class: "frame-scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", { class: "frame" }, h("thead", {}, head), h("tbody", {}, body))),
		h("figcaption", {}, `${count(frame.rows)} rows, ${count(frame.names?.length ?? 0)} columns${more.length ? `; not shown: ${more.join(", ")}` : ""}`));
}

function shown(found, name) {
	const url = URL.createObjectURL(found.blob);
	const image = h("img", { src: url, alt: "Picture made by the code", width: found.width, height: found.height, data: { mime: found.mime } });
	return h("figure", { class: "output picture" }, image,
		h("figcaption", {}, h("span", {}, `${found.width} \u00d7 ${found.height}, ${bytes(found.blob.size)}`), button("Save", { icon: "download", kind: "ghost small", label: "Save the picture", onclick: () => save(found.blob, name) })));
}

/** A picture of checked bytes; null: the bytes are no picture that we show. */
export function picture(data, name = "picture.png") {
	const found = pictureBlob(data);
	return found ? shown(found, name) : null;
}

function svgOutput(text) {
	const place = h("div", { class: "output" }, source("SVG source", text));
	if (text.length <= SVG_MAX) drawSvg(text).then((found) => found && place.prepend(shown(found, "picture.png")));
	return place;
}

const TITLES = { "text/html": "HTML, as its source", "application/json": "JSON", "text/latex": "LaTeX", "text/markdown": "Markdown", "application/javascript": "JavaScript, as its source" };

/** A rich output {mime, encoding, data} as an element. */
export function outputView(output) {
	const mime = String(output.mime ?? "");
	if (mime === "image/svg+xml") return svgOutput(output.encoding === "base64" ? new TextDecoder().decode(outputBytes(output) ?? new Uint8Array()) : String(output.data));
	if (mime.startsWith("image/")) {
		const data = outputBytes(output);
		return picture(data) ?? h("p", { class: "muted" }, "A picture that is too large, or not what it says (", guestText(mime, 60), "). ",
			data ? button("Save the bytes", { icon: "download", kind: "small", onclick: () => save(new Blob([data], { type: "application/octet-stream" }), "picture.bin") }) : null);
	}
	const text = output.encoding === "base64" ? `${bytes(outputBytes(output)?.length ?? 0)} of data` : String(output.data ?? "");
	return mime === "text/plain" ? preText(text) : h("div", { class: "output" }, source(TITLES[mime] ?? visible(mime), text));
}

/** The value of an execution: as a table if it is one, otherwise as the language prints it. null: there is none. */
export function valueView(result) {
	if (result.result?.$ === "frame" && Array.isArray(result.result.columns)) return frameTable(result.result);
	const text = result.result_text ?? (result.result === null || result.result === undefined ? "" : JSON.stringify(result.result, null, 1));
	return text ? h("div", { class: "output" }, preText(text)) : null;
}

/** Outputs that say something the value does not: forms of a value that is shown as a table are left out. */
export function outputList(result) {
	const isTable = result.result?.$ === "frame";
	return (result.outputs ?? []).filter((o) => !(isTable && o.value) && !(o.value && /^text\/plain/.test(o.mime)));
}

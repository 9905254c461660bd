// files.js - the files of a session: look, upload, download, make, rename, remove.
import { download, get, me, path, post, put, remove } from "./api.js";
import { fill, guestText, h, visible } from "./dom.js";
import { bytes, day, languageName, shortId } from "./format.js";
import { icon } from "./icons.js";
import { button, confirmDialog, dialog, emptyState, field, load, save, select, table, toast, toastProblem, viewHead } from "./parts.js";
import { picture } from "./outputs.js";
import { listSessions } from "./sessions.js";

const PREVIEW = 65536;
const PICTURE_MAX = 16 << 20;

function join(directory, name) {
	return directory.endsWith("/") ? directory + name : `${directory}/${name}`;
}

function isDirectory(entry) {
	return entry.type === "directory" || entry.type === "dir";
}

class Browser {
	constructor(session, directory, signal) {
		Object.assign(this, { session, directory, signal });
		this.list = h("div", {});
		this.crumbs = h("nav", { class: "crumbs", "aria-label": "Directory" });
		const input = h("input", { type: "file", multiple: true, class: "sr", tabindex: "-1", "aria-label": "Files to upload", id: "upload-input", on: { change: (e) => {
			this.upload([...e.target.files]);
			e.target.value = "";
		} } });
		this.element = h("section", { class: "panel", "aria-label": "Files" },
			h("div", { class: "toolbar" }, this.crumbs, h("span", { class: "grow" }), input, button("Upload", { icon: "upload", kind: "small primary", onclick: () => input.click() }), button("New folder", { icon: "plus", kind: "small", onclick: () => this.makeFolder() }),
				button("Save as tar", { icon: "download", kind: "small", onclick: () => this.tar() })),
			h("div", { class: "drop", on: { dragover: (e) => e.preventDefault(), drop: (e) => {
				e.preventDefault();
				this.upload([...e.dataTransfer.files]);
			} } }, this.list));
	}

	url(rest, file) {
		return `${path`/v1/sessions/${this.session}`}${rest}?path=${encodeURIComponent(file)}`;
	}

	open(directory) {
		this.directory = directory;
		this.drawCrumbs();
		return this.refresh();
	}

	drawCrumbs() {
		const parts = this.directory.split("/").filter(Boolean);
		const steps = parts.map((name, i) => [name, `/${parts.slice(0, i + 1).join("/")}`]);
		fill(this.crumbs, h("ol", {}, [["root", "/"], ...steps].map(([name, to], i, all) => h("li", {}, h("button", { type: "button", class: "button ghost small", "aria-current": i === all.length - 1 ? "location" : null, on: { click: () => this.open(to) } }, guestText(name, 40))))));
	}

	refresh() {
		return load(this.list, async () => {
			const { entries } = await get(this.url("/files/list", this.directory), { signal: this.signal });
			const sorted = [...entries].sort((a, b) => isDirectory(b) - isDirectory(a) || a.name.localeCompare(b.name));
			if (!sorted.length) return [emptyState("folder", "This directory is empty", "Upload files, or drop them here.")];
			return [table("Files", this.columns(), sorted.map((e) => ({ ...e, data: { name: e.name } })))];
		});
	}

	columns() {
		const name = (e) => {
			const open = h("button", { type: "button", class: "link-button", on: { click: () => (isDirectory(e) ? this.open(join(this.directory, e.name)) : this.preview(e)) } }, icon(isDirectory(e) ? "folder" : e.type === "symlink" ? "link" : "file"), guestText(e.name, 80));
			return open;
		};
		return [
			{ title: "Name", class: "wide", cell: name },
			{ title: "Size", class: "num", cell: (e) => (isDirectory(e) ? "\u2013" : bytes(e.size)) },
			{ title: "Changed", cell: (e) => (e.mtime ? day(e.mtime * 1000) : "\u2013") },
			{ title: "", cell: (e) => this.actions(e) },
		];
	}

	actions(e) {
		const name = visible(e.name);
		return h("div", { class: "row actions" }, e.type === "file" ? button("", { icon: "download", kind: "ghost small", label: `Download ${name}`, onclick: () => this.fetch(e) }) : null,
			button("", { icon: "pencil", kind: "ghost small", label: `Rename ${name}`, onclick: () => this.rename(e) }), button("", { icon: "trash", kind: "ghost small", label: `Remove ${name}`, onclick: () => this.remove(e) }));
	}

	async act(fn, words) {
		try {
			await fn();
			if (words) toast(words);
		} catch (e) {
			toastProblem(e);
		}
		return this.refresh();
	}

	upload(files) {
		return this.act(async () => {
			for (const f of files) await put(this.url("/files", join(this.directory, f.name)), f, { headers: { "Content-Type": "application/octet-stream" } });
		}, files.length === 1 ? `${files[0].name} is there.` : `${files.length} files are there.`);
	}

	async fetch(e) {
		try {
			save(await download(this.url("/files", join(this.directory, e.name))), e.name);
		} catch (problem) {
			toastProblem(problem);
		}
	}

	async tar() {
		try {
			save(await download(this.url("/tar", this.directory)), `${this.directory.split("/").filter(Boolean).pop() ?? "root"}.tar`);
		} catch (problem) {
			toastProblem(problem);
		}
	}

	async ask(title, label, value) {
		const input = h("input", { type: "text", value, required: true, autocomplete: "off", spellcheck: "false" });
		const name = await dialog(title, (close) => h("form", { method: "dialog", on: { submit: (e) => {
			e.preventDefault();
			close(input.value);
		} } }, field(label, input), h("div", { class: "row end" }, h("button", { type: "submit", class: "button primary" }, "OK"))));
		return name && !name.includes("/") ? name : name && (toast("A name has no slash.", "bad"), null);
	}

	async makeFolder() {
		const name = await this.ask("New folder", "Name", "");
		if (name) await this.act(() => post(path`/v1/sessions/${this.session}/files/directories`, { path: join(this.directory, name) }), null);
	}

	async rename(e) {
		const name = await this.ask("Rename", "New name", e.name);
		if (name && name !== e.name) await this.act(() => post(path`/v1/sessions/${this.session}/files/move`, { from: join(this.directory, e.name), to: join(this.directory, name) }), null);
	}

	async remove(e) {
		if (!await confirmDialog("Remove it?", `${visible(e.name)} is gone then.`, "Remove")) return;
		await this.act(() => remove(this.url("/files", join(this.directory, e.name)) + (isDirectory(e) ? "&recursive=true" : "")), `${visible(e.name)} was removed.`);
	}

	/** The first bytes as text, or a picture: never as a page. */
	async preview(e) {
		const file = join(this.directory, e.name);
		const place = h("div", { class: "preview" });
		const shown = dialog(visible(e.name), (close) => [place, h("div", { class: "row end" }, button("Download", { icon: "download", onclick: () => this.fetch(e) }), button("Close", { onclick: () => close() }))]);
		await load(place, async () => {
			const isPicture = /\.(png|jpe?g|gif|webp)$/i.test(e.name) && e.size <= PICTURE_MAX;
			if (!e.size) return h("p", { class: "muted" }, "The file is empty.");
			const blob = await download(this.url("/files", file), isPicture || e.size <= PREVIEW ? {} : { headers: { Range: `bytes=0-${PREVIEW - 1}` } });
			const data = new Uint8Array(await blob.arrayBuffer());
			const image = isPicture ? picture(data, e.name) : null;
			if (image) return image;
			const text = new TextDecoder().decode(data.subarray(0, PREVIEW));
			return [h("pre", { class: "guest-block tall", tabindex: "0" }, visible(text)), e.size > PREVIEW ? h("p", { class: "muted small" }, `The first ${bytes(PREVIEW)} of ${bytes(e.size)}.`) : null];
		});
		return shown;
	}
}

export default {
	title: "Files",
	mount(place, query, signal) {
		const body = h("div", {});
		place.append(h("div", { class: "view" }, viewHead("Files", "The files of a session. What you open here is shown as text or picture, never as a page."), body));
		load(body, async () => {
			const rows = (await listSessions(signal)).filter((s) => s.tenant === me.name);
			if (!rows.length) return emptyState("files", "No session is open", "Files belong to a session. Run something in the playground first.", h("a", { class: "button primary", href: "#/playground" }, "To the playground"));
			const wanted = rows.find((s) => s.session === query.get("session")) ?? rows[0];
			const holder = h("div", {});
			const show = async (id) => {
				const details = await get(path`/v1/sessions/${id}`, { signal }).catch(() => ({}));
				const browser = new Browser(id, details.directory ?? "/home/user", signal);
				fill(holder, browser.element);
				await browser.open(browser.directory);
			};
			const chooser = select(rows.map((s) => [s.session, `${languageName(s.guest)} \u00b7 ${shortId(s.session)}`]), wanted.session, show, { id: "file-session" });
			show(wanted.session);
			return h("div", { class: "stack" }, h("div", { class: "filters" }, field("Session", chooser)), holder);
		});
	},
};

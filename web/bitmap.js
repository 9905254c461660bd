// bitmap.js - pictures that code made. Only bitmaps are shown, as blobs, after their first bytes were checked.

const BYTES_MAX = 16 << 20;
const PIXELS_MAX = 40e6; // larger ones are only offered as a file: a small file can unpack to gigabytes

function ascii(bytes, at, n) {
	return String.fromCharCode(...bytes.subarray(at, at + n));
}

function jpegSize(b) {
	for (let at = 2; at + 9 < b.length;) {
		if (b[at] !== 0xff) return null;
		const kind = b[at + 1];
		if (kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind)) return [(b[at + 7] << 8) | b[at + 8], (b[at + 5] << 8) | b[at + 6]];
		at += 2 + ((b[at + 2] << 8) | b[at + 3]);
	}
	return null;
}

function webpSize(b) {
	const v = new DataView(b.buffer, b.byteOffset, b.byteLength);
	const chunk = ascii(b, 12, 4);
	if (chunk === "VP8X") return [1 + (v.getUint32(24, true) & 0xffffff), 1 + (v.getUint32(26, true) >>> 8)];
	if (chunk === "VP8 ") return [v.getUint16(26, true) & 0x3fff, v.getUint16(28, true) & 0x3fff];
	if (chunk === "VP8L") return [1 + (v.getUint32(21, true) & 0x3fff), 1 + ((v.getUint32(21, true) >> 14) & 0x3fff)];
	return null;
}

/** { mime, width, height } by the bytes themselves; null: not a picture that we show. */
export function inspect(bytes) {
	if (bytes.length < 32 || bytes.length > BYTES_MAX) return null;
	const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	let mime = null;
	let size = null;
	if (v.getUint32(0) === 0x89504e47 && ascii(bytes, 12, 4) === "IHDR") [mime, size] = ["image/png", [v.getUint32(16), v.getUint32(20)]];
	else if (/^GIF8[79]a$/.test(ascii(bytes, 0, 6))) [mime, size] = ["image/gif", [v.getUint16(6, true), v.getUint16(8, true)]];
	else if (v.getUint16(0) === 0xffd8) [mime, size] = ["image/jpeg", jpegSize(bytes)];
	else if (ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 4) === "WEBP") [mime, size] = ["image/webp", webpSize(bytes)];
	if (!size || !size[0] || !size[1] || size[0] * size[1] > PIXELS_MAX) return null;
	return { mime, width: size[0], height: size[1] };
}

/** The bytes of a rich output: { encoding, data }. null: it is not base64. */
export function outputBytes(output) {
	if (output.encoding !== "base64") return new TextEncoder().encode(output.data);
	try {
		return Uint8Array.from(atob(output.data.replace(/\s+/g, "")), (c) => c.charCodeAt(0));
	} catch {
		return null;
	}
}

/** A picture as a blob that an <img> may show; null: none. */
export function pictureBlob(bytes) {
	const found = bytes && inspect(bytes);
	return found ? { ...found, blob: new Blob([bytes], { type: found.mime }) } : null;
}

/** An SVG drawn to a PNG. The document itself is never in the page: in an <img> it runs nothing and loads nothing. */
export async function drawSvg(text, max = 1600) {
	const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
	try {
		const image = new Image();
		image.src = url;
		await image.decode();
		const scale = Math.min(2, max / Math.max(1, image.naturalWidth), max / Math.max(1, image.naturalHeight));
		const canvas = document.createElement("canvas");
		canvas.width = Math.max(1, Math.round(image.naturalWidth * scale));
		canvas.height = Math.max(1, Math.round(image.naturalHeight * scale));
		canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
		const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
		return blob ? { mime: "image/png", width: Math.round(canvas.width / scale), height: Math.round(canvas.height / scale), blob } : null;
	} catch {
		return null; // not an SVG, or one that the browser does not let us read back
	} finally {
		URL.revokeObjectURL(url);
	}
}

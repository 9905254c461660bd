// What the other files check, convert and load.
import { createRequire } from "node:module";

/** A module of Node's that few programs need, and that takes milliseconds to load: an import would load it for all of them. */
export const rare = (name) => createRequire(import.meta.url)(name);

/** What is misspelt might be what the caller relies on. */
export function refuseUnknown(options, known, where) {
  if (typeof options !== "object") throw new TypeError(`${where} takes an object of options: ${known.join(", ")}`);
  for (const key of Object.keys(options)) if (!known.includes(key)) throw new TypeError(`${where} has no option '${key}'; there are: ${known.join(", ")}`);
}

export const toBuffer = (data) => (typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer ?? data, data.byteOffset, data.byteLength));

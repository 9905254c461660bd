// The program that the optional package of this platform carries, if it is installed.
import { createRequire } from "node:module";

/** Its path, or undefined: then `cordon` on the PATH is meant. */
export function carriedProgram(platform = process.platform, arch = process.arch) {
  try {
    return createRequire(import.meta.url).resolve(`cordon-${platform}-${arch}/bin/cordon`);
  } catch {
    return undefined;
  }
}

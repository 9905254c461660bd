// The way to a `cordon serve`: its address, the greeting over HTTP, and what a server far away cannot do: use files of this machine.
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { open, readFile, unlink, writeFile } from "node:fs/promises";
import { createConnection, isIP } from "node:net";
import { homedir } from "node:os";
import { resolve as resolvePath } from "node:path";
import { rare } from "./options.js";

const PROTOCOL = "cordon-rpc/1", GREETING_MS = 30000, HEAD_MAX = 64 << 10, PIECE = 4 << 20;
const REASONS = { 401: "the server knows no such key", 403: "this key may not do that, or the server does not know this host name",
  404: "no such path: is it a cordon serve?", 429: "too many requests or connections with this key", 503: "the server is busy or stopping" };
const REMEDIES = { 401: "give the option key, or set CORDON_KEY", 403: "ask who runs the server; --host names further host names", 404: "check the address",
  429: "close connections that are not used, or try again later", 503: "try again later" };

/** There is no connection to a `cordon serve`. status: of HTTP, if it answered. */
export class ConnectFailed extends Error {
  constructor(message, status) {
    super(message);
    this.name = new.target.name;
    this.status = status;
  }
}
/** Nothing answers there, its certificate is not good, or it is no `cordon serve`. */
export class ServerUnreachable extends ConnectFailed {}
/** The server knows no such key, or it may not do that. */
export class KeyRefused extends ConnectFailed {}
/** Too many connections or requests, or the server is stopping. */
export class ServerBusy extends ConnectFailed {}

const isLoopback = (host) => host === "localhost" || host.endsWith(".localhost") || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

function parseServer(server) {
  if (server.startsWith("unix:") && server.length > 5)
    return { scheme: "unix", path: resolvePath(server.slice(5).replace(/^~(?=\/)/, homedir())), text: server };
  let url;
  try {
    url = new URL(server);
  } catch {
    url = { protocol: "" };
  }
  if (!["http:", "https:"].includes(url.protocol) || !url.hostname || url.pathname !== "/" || url.search || url.hash || url.username || url.password)
    throw new ConnectFailed("a server is https://HOST[:PORT], http://HOST[:PORT] on the loopback, or unix:PATH; the key is an option of its own");
  const host = url.hostname.replace(/^\[|\]$/g, ""), scheme = url.protocol.slice(0, -1);
  if (scheme === "http" && !isLoopback(host)) throw new ConnectFailed("http:// would show the key and the code to the network: use https://");
  const port = Number(url.port) || (scheme === "https" ? 443 : 80);
  return { scheme, host, port, name: `${url.hostname}:${port}`, text: `${scheme}://${url.hostname}:${port}` };
}

/** What was given, or $CORDON_SERVER, $CORDON_KEY and $CORDON_CA. null: the local program. */
export function findServer({ server = process.env.CORDON_SERVER || undefined, key, caFile = process.env.CORDON_CA || undefined } = {}) {
  if (server === undefined) {
    if (key !== undefined) throw new ConnectFailed("a key needs a server, or the environment variable CORDON_SERVER");
    return null;
  }
  key ??= process.env.CORDON_KEY || undefined;
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) throw new ConnectFailed("a key has only visible ASCII characters and no blanks");
  const address = { ...parseServer(String(server)), key, caFile };
  address.shareName = JSON.stringify([address.text, rare("node:crypto").createHash("sha256").update(key ?? "").digest("hex"), caFile ?? ""]);
  return address;
}

function greeting(a) {
  const lines = ["GET /v1/rpc HTTP/1.1", `Host: ${a.scheme === "unix" ? "localhost" : a.name}`, "Connection: Upgrade", `Upgrade: ${PROTOCOL}`,
    "User-Agent: cordon-node"];
  if (a.key) lines.push(`Authorization: Bearer ${a.key}`);
  return lines.join("\r\n") + "\r\n\r\n";
}

/** What the server said instead of a welcome; null: it is one. undefined: not all of the answer is there. */
function judge(a, head, body, isOver) {
  const lines = head.split("\r\n"), status = Number(/^HTTP\/1\.\d (\d{3})/.exec(lines[0])?.[1]);
  if (!status) return new ServerUnreachable(`what listens at ${a.text} is no cordon serve`);
  const headers = Object.fromEntries(lines.slice(1).map((l) => [l.slice(0, l.indexOf(":")).toLowerCase(), l.slice(l.indexOf(":") + 1).trim()]));
  if (status === 101) return headers.upgrade === PROTOCOL ? null : new ServerUnreachable(`what listens at ${a.text} speaks another protocol`);
  if (!isOver && body.length < Math.min(Number(headers["content-length"] ?? 0), HEAD_MAX)) return undefined;
  let said = {};
  try {
    said = JSON.parse(body.toString()) ?? {};
  } catch { /* no problem document */ }
  const text = REASONS[status] ?? said.detail ?? `it answered with status ${status}`, remedy = REMEDIES[status] ?? said.remedy;
  const Kind = status === 401 || status === 403 ? KeyRefused : status === 429 || status === 503 ? ServerBusy : ServerUnreachable;
  return new Kind(`${a.text}: ${text}${remedy ? `; ${remedy}` : ""}`, status);
}

function unreachable(a, e) {
  let why = `${e.code ?? e.message}: is \`cordon serve\` running there?`;
  if (e.code?.startsWith("CERT_") || /certificate|altname/i.test(`${e.code} ${e.message}`))
    why = `its certificate is not good (${e.message}); name its authority with caFile, or CORDON_CA`;
  else if (e.code?.startsWith("ERR_SSL") || e.code === "EPROTO") why = `TLS failed (${e.reason ?? e.code}): does it speak https?`;
  else if (e.code === "ECONNRESET" || e.code === "EPIPE") why = "it closed the connection: is it stopping, or not a cordon serve?";
  return new ServerUnreachable(`cannot connect to ${a.text}: ${why}`);
}

function dial(a) {
  if (a.scheme === "unix") return createConnection(a.path);
  if (a.scheme === "http") return createConnection({ host: a.host, port: a.port });
  let ca;
  try {
    ca = a.caFile && readFileSync(a.caFile);
  } catch (e) {
    throw new ServerUnreachable(`the authorities in '${a.caFile}' cannot be read (${e.code}): name a file with certificates in PEM`);
  }
  return rare("node:tls").connect({ host: a.host, port: a.port, servername: isIP(a.host) ? undefined : a.host, ca, ALPNProtocols: ["http/1.1"], minVersion: "TLSv1.2" });
}

/** A stream that speaks the protocol of `cordon rpc` once the server has welcomed it; what is written before waits. */
export class Link {
  #socket;
  #queue = [];
  #state = "greeting"; // then "open", "over"
  #onLost;

  /** onData(bytes); onLost(why): an Error if there never was a connection, a text if it ended. */
  constructor(address, onData, onLost) {
    let got = Buffer.alloc(0);
    this.#onLost = onLost;
    const socket = (this.#socket = dial(address));
    socket.setNoDelay?.(true);
    socket.setKeepAlive?.(true, 60000);
    const timer = setTimeout(() => this.#fail(new ServerUnreachable(`cannot connect to ${address.text}: it did not answer within ${GREETING_MS / 1000} s`)), GREETING_MS);
    const greet = (data, isOver) => {
      got = Buffer.concat([got, data]);
      const end = got.indexOf("\r\n\r\n");
      if (end < 0) return isOver || got.length > HEAD_MAX ? this.#fail(unreachable(address, { code: "ECONNRESET" })) : undefined;
      const refusal = judge(address, got.subarray(0, end).toString("latin1"), got.subarray(end + 4), isOver);
      if (refusal === undefined) return undefined;
      clearTimeout(timer);
      if (refusal) return this.#fail(refusal);
      this.#state = "open";
      for (const part of this.#queue.splice(0)) socket.write(part);
      if (got.length > end + 4) onData(got.subarray(end + 4));
      return undefined;
    };
    socket.on("data", (data) => (this.#state === "open" ? onData(data) : greet(data, false)));
    socket.on("error", (e) => this.#fail(this.#state === "open" ? "the server is gone" : unreachable(address, e)));
    socket.on("end", () => (this.#state === "greeting" ? greet(Buffer.alloc(0), true) : this.#fail("the server is gone")));
    socket.on("close", () => { clearTimeout(timer); this.#fail("the server is gone"); });
    socket.write(greeting(address));
  }

  #fail(why) {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#socket.destroy();
    this.#onLost(why);
  }

  get destroyed() {
    return this.#state === "over";
  }
  write(data) {
    if (this.#state === "greeting") this.#queue.push(data);
    else if (this.#state === "open") this.#socket.write(data);
  }
  end(last) {
    if (this.#state === "open") this.#socket.end(last);
    else this.#socket.destroy();
    this.#state = "over";
  }
  ref() {
    this.#socket.ref();
  }
  unref() {
    this.#socket.unref();
  }
}

async function upload(params, ask) {
  const { from, offset = 0, length = PIECE, ...rest } = params, file = await open(from, "r");
  try {
    const { size } = await file.stat(), room = Buffer.alloc(Math.min(length, PIECE));
    const { bytesRead } = await file.read(room, 0, room.length, offset);
    await ask(offset ? "files.append" : "files.write", { ...rest, data: room.subarray(0, bytesRead).toString("base64") });
    return { length: bytesRead, eof: offset + bytesRead >= size, size };
  } finally {
    await file.close();
  }
}

async function download(params, ask) {
  const { to, ...rest } = params, { offset = 0 } = params;
  const r = await ask("files.read", { ...rest, length: Math.min(params.length ?? PIECE, PIECE) }), data = Buffer.from(r.data, "base64");
  const file = await open(to, "r+");
  try {
    await file.write(data, 0, data.length, offset);
  } finally {
    await file.close();
  }
  return { length: data.length, eof: r.eof, size: Math.max(r.size ?? 0, offset + data.length) };
}

/** A request about files of this machine, by value; null: it is sent as it is. ask(method, params, attached) */
export function byValue(method, params, ask) {
  if (method === "files.upload") return upload(params, ask);
  if (method === "files.download") return download(params, ask);
  const { from, to, ...rest } = params;
  if (["files.put_tar", "files.import"].includes(method) && from !== undefined)
    return readFile(from).then((data) => ask(method, { ...rest, attached: true }, { bytes: data.length, parts: data.length ? [data] : [] }));
  if (["files.get_tar", "files.export"].includes(method) && to !== undefined)
    return (async () => {
      await writeFile(to, "", { flag: "wx", mode: 0o600 });
      try {
        const r = await ask(method, { ...rest, attach: true });
        if (r.buffer.data) await writeFile(to, new Uint8Array(r.buffer.data));
        return { length: r.length, report: r.report };
      } catch (e) {
        await unlink(to);
        throw e;
      }
    })();
  return null;
}

// functions.ts - one session with the functions that @hey-api/openapi-ts makes of docs/openapi.json.
import { client } from "./client/client.gen.js";
import { closeSession, describeSession, execute, openPort, openSession, readFile, type Port } from "./client/index.js";

client.setConfig({ baseUrl: process.env.CORDON_SERVER!, auth: () => process.env.CORDON_KEY! });
const opened = await openSession({ body: { guest: "python", policy: { expose: [8000] } }, throwOnError: true });
const path = { session: opened.data.session };

const ran = await execute({ path, body: { code: "open('a.txt', 'w').write('made inside'); 6 * 7" }, throwOnError: true });
const file = await readFile({ path, query: { path: "a.txt" }, parseAs: "text", throwOnError: true });
const text = String(file.data);

const ports = await openPort({ path: { ...path, port: 8000 }, throwOnError: true });
const port: Port = ports.data;
const refused = await openPort({ path: { ...path, port: 9000 } });

await closeSession({ path, throwOnError: true });
const gone = await describeSession({ path });
const result: unknown = ran.data;
if (typeof result !== "object" || result === null || !("result" in result) || !("success" in result)) throw new Error("no result");
console.log(JSON.stringify({ value: result.result, success: result.success, text, port: port.port, path: port.path.endsWith("/ports/8000/"),
	code: refused.error?.code, gone: gone.response?.status }));

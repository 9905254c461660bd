// fetch.ts - one session with the types that openapi-typescript makes of docs/openapi.json, and openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

function need<T>(value: T | undefined, error: { code: string; detail: string } | undefined): T {
	if (error) throw new Error(`${error.code}: ${error.detail}`);
	if (value === undefined) throw new Error("there is no answer");
	return value;
}

const client = createClient<paths>({ baseUrl: process.env.CORDON_SERVER!, headers: { Authorization: `Bearer ${process.env.CORDON_KEY!}` } });
const opened = await client.POST("/v1/sessions", { body: { guest: "python", policy: { expose: [8000] } } });
const { session } = need(opened.data, opened.error);
const params = { path: { session } };

const ran = await client.POST("/v1/sessions/{session}/executions", { params, body: { code: "open('a.txt', 'w').write('made inside'); 6 * 7" } });
const result = need(ran.data, ran.error);
if (typeof result === "string") throw new Error("events were not asked for");
const value: unknown = result.result;

const file = await client.GET("/v1/sessions/{session}/files", { params: { ...params, query: { path: "a.txt" } }, parseAs: "text" });
const text: string = need(file.data as string | undefined, file.error);

const ports = await client.PUT("/v1/sessions/{session}/ports/{port}", { params: { path: { session, port: 8000 } } });
const { port, path } = need(ports.data, ports.error);

const refused = await client.PUT("/v1/sessions/{session}/ports/{port}", { params: { path: { session, port: 9000 } } });
const code: string | undefined = refused.error?.code;

await client.DELETE("/v1/sessions/{session}", { params });
const gone = await client.GET("/v1/sessions/{session}", { params });
console.log(JSON.stringify({ value, success: result.success, text, port, path: path.endsWith("/ports/8000/"), code, gone: gone.response.status }));

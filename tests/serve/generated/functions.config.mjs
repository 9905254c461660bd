// functions.config.mjs - for @hey-api/openapi-ts; Node needs the extensions.
export default { output: { path: "client", importFileExtension: ".js", module: { extension: ".js" } }, plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"] };

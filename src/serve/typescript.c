/* serve/typescript.c - see typescript.h. */
#include "serve/typescript.h"

#include <string.h>

#include "base/json.h"

#define CODE                                                                                       \
	"(() => { const m = require('node:module'); const f = m.stripTypeScriptTypes; "            \
	"return { version: process.version, code: f ? f(source) : null } })()"

static int take(const char *json, struct buf *code, struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;

	if (json_parse(json, strlen(json), code->max, &j, reterr) < 0)
		return err_wrap(reterr, -CORDON_PROTOCOL, "strip the types");
	const json_t *text = json_object_get(j, "code");
	const char *version = json_string_value(json_object_get(j, "version"));
	if (!json_is_string(text))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "TypeScript needs Node 22.13 or later, which can strip types; this "
			       "machine has %s",
			       version ? version : "another");
	buf_clear(code);
	return buf_add(code, json_string_value(text), json_string_length(text));
}

int typescript_strip(const struct cordon_policy *policy, struct buf *code,
		     struct cordon_error **reterr)
{
	json_t *source = json_stringn(buf_text(code), code->len);
	cleanup_json json_t *variables = source ? json_pack("{s:o}", "source", source) : NULL;
	cleanup_free char *context = variables ? json_text(variables, NULL) : NULL;
	struct cordon_session_options session = { .guest = "node", .policy = policy };
	struct cordon_execute_options o = { .code = CODE, .context_json = context };
	struct cordon_result *result = NULL;

	if (!context)
		return err_set(reterr, CORDON_INVALID, "the code is not valid UTF-8");
	int r = cordon_run(&session, &o, &result, reterr);
	if (r < 0)
		return r;
	if (cordon_result_success(result))
		r = take(cordon_result_value_json(result), code, reterr);
	else
		r = err_set(reterr, CORDON_INVALID, "TypeScript: %s", cordon_result_error(result));
	cordon_result_free(result);
	return r;
}

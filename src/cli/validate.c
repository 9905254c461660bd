/* cli/validate.c - `cordon validate`: checks syntax and prints warnings without running the
 * code. */
#include <cordon/cordon.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/language.h"
#include "cli/verb.h"
#include "serve/typescript.h"

enum { MAX_CODE = 16 << 20 };

static int print(const struct cli *c, const char *json)
{
	cleanup_json json_t *j = NULL;
	size_t i;
	json_t *w;

	if (json_parse(json, strlen(json), 0, &j, NULL) < 0)
		return 125;
	bool valid = json_is_true(json_object_get(j, "valid"));
	if (cli_has(c, "json")) {
		puts(json);
		return !valid;
	}
	if (!valid)
		printf("invalid: line %lld: %s\n",
		       (long long)json_integer_value(json_object_get(j, "line")),
		       json_string_value(json_object_get(j, "error")));
	json_array_foreach(json_object_get(j, "warnings"), i, w)
		printf("warning: %s\n", json_string_value(w));
	if (valid && json_array_size(json_object_get(j, "warnings")) == 0)
		puts("valid");
	return !valid;
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf code = { 0 };
	cleanup_free char *json = NULL;
	const char *text = cli_value(c, "eval");

	buf_init(&code, MAX_CODE);
	if (text ? buf_add_str(&code, text) < 0
		 : file_load(argc ? argv[0] : "-", MAX_CODE, &code, &e) < 0)
		return choice_fail(c, e);
	struct language l = { .guest = cli_value(c, "guest") };
	bool has_name = !text && argc && !str_eq(argv[0], "-");
	if (language_of(has_name ? argv[0] : NULL, buf_text(&code), code.len, &l, &e) < 0)
		return choice_fail(c, e);
	if (l.is_typescript && typescript_strip(NULL, &code, &e) < 0)
		return cordon_error_code(e) == CORDON_INVALID ? (cli_fail(c, e), 1)
							      : cli_fail(c, e);
	if (cordon_validate(l.guest, buf_text(&code), code.len, &json, &e) < 0)
		return cli_fail(c, e);
	return print(c, json);
}

static const struct cli_option options[] = {
	{ "eval", 'e', "CODE", "the code itself instead of a file", false },
	{ "guest", 'g', "GUEST",
	  "python, r, node or sh; default: by the file's #! line, then by its name", false },
	{ "json", 'j', NULL, "print the outcome as JSON", false },
	{ 0 },
};

const struct verb verb_validate = {
	.name = "validate",
	.summary = "check code without running it",
	.usage = "[OPTION...] [FILE]",
	.options = options,
	.run = run,
	.about = "Parses the code with the language's own parser, in a sandbox, and names calls "
		 "that the sandbox may restrict. The warnings are advice; the sandbox is the "
		 "security boundary.\n\n"
		 "Exit status: 0 valid, 1 invalid, 2 wrong usage or no such file.",
	.max_operands = 1,
};

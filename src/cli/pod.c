/* cli/pod.c - `cordon pod`: lists the commands of the pod's image, adds and removes WASI
 * programs. */
#include <cordon/cordon.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/choice.h"
#include "cli/verb.h"
#include "policy/policy.h"

enum { MODULE_BYTES = 33 << 20 }; /* above the library's own limit, which reports itself */

static int parse_timeout(const struct cli *c, uint64_t *ret)
{
	enum { DAY_MS = 86400000 };
	const char *text = cli_value(c, "timeout");
	cleanup_free char *value = text ? choice_seconds(text) : NULL;
	uint64_t ms = 0;

	if (!text)
		return 0;
	if (!value || policy_parse_duration(value, &ms, NULL) < 0 || ms > DAY_MS)
		return cli_usage(c,
				 "--timeout takes seconds (30, 0.5) or a number with ms, s, m or "
				 "h, at most a day; got '%s'",
				 text);
	*ret = ms;
	return 0;
}

static int add(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf bytes = { 0 };
	struct cordon_pod_add_options o = { .replace = cli_has(c, "force") };

	if (argc != 3)
		return cli_usage(c, "add needs a file and a name: cordon pod add FILE.wasm NAME");
	int status = parse_timeout(c, &o.timeout_ms);
	if (status)
		return status;
	buf_init(&bytes, MODULE_BYTES);
	if (file_load(argv[1], MODULE_BYTES, &bytes, &e) < 0 ||
	    cordon_pod_add(argv[2], buf_text(&bytes), bytes.len, &o, &e) < 0)
		return cli_fail(c, e);
	return 0;
}

static int remove_one(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;

	if (argc != 2)
		return cli_usage(c, "remove needs the name of an added command");
	return cordon_pod_remove(argv[1], &e) < 0 ? cli_fail(c, e) : 0;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "-";
}

static void print_programs(const json_t *programs)
{
	size_t i, k;
	json_t *one, *command;

	json_array_foreach(programs, i, one)
	{
		printf("%-12s %-24s", text_of(one, "name"), text_of(one, "version"));
		json_array_foreach(json_object_get(one, "commands"), k, command)
			printf(" %s", json_string_value(command));
		putchar('\n');
	}
}

static void print_added(const json_t *added)
{
	size_t i;
	json_t *one;

	json_array_foreach(added, i, one)
	{
		bool is_current = json_is_true(json_object_get(one, "is_current"));

		printf("%-12s %-24s %s (%lld bytes)%s\n", text_of(one, "name"), "added",
		       text_of(one, "sha256"),
		       (long long)json_integer_value(json_object_get(one, "bytes")),
		       is_current ? "" : ", of another version: add it again");
	}
}

static int list(const struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *json = NULL;
	cleanup_json json_t *j = NULL;

	(void)argv;
	if (argc != 1)
		return cli_usage(c, "list takes no operand");
	if (cordon_pod_list(&json, &e) < 0)
		return cli_fail(c, e);
	if (cli_has(c, "json")) {
		puts(json);
		return 0;
	}
	if (json_parse(json, strlen(json), 0, &j, &e) < 0)
		return cli_fail(c, e);
	if (json_is_null(json_object_get(j, "image")))
		cli_error(c, "there is no pod image on this machine: build one with `make pod`");
	print_programs(json_object_get(j, "programs"));
	print_added(json_object_get(j, "added"));
	return 0;
}

static int run(struct cli *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct cli *c, int argc, char **argv);
	} table[] = { { "add", add }, { "list", list }, { "remove", remove_one } };

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(argv[0], table[i].name))
			return table[i].run(c, argc, argv);
	return cli_usage(c, "unknown: %s", argv[0]);
}

static const struct cli_option options[] = {
	{ "force", 'f', NULL, "add: replace a command that was added before", false },
	{ "timeout", 't', "TIME", "add: time limit for compiling: seconds, 30s or 5m; default 10m",
	  false },
	{ "json", 'j', NULL, "list: as JSON", false },
	{ 0 },
};

static const char *const words[] = { "add", "list", "remove", NULL };

static const struct cli_example examples[] = {
	{ "cordon pod add tool.wasm tool", "make a WASI program a command" },
	{ "cordon run --guest pod -e 'tool < /etc/passwd | sort'",
	  "use it like any other command" },
	{ "cordon pod list", "programs, versions and commands" },
	{ "cordon pod remove tool", "remove it; new sessions do not have it" },
	{ 0 },
};

const struct verb verb_pod = {
	.name = "pod",
	.summary = "list the commands of the pod; add and remove WASI programs",
	.usage = "add|list|remove [OPTION...] [FILE.wasm] [NAME]",
	.options = options,
	.run = run,
	.about = "add takes a WebAssembly module of WASI preview 1 with a _start function. It "
		 "checks the module, translates it to C and compiles it, in a sandbox of its "
		 "own. From then on it is a command of every pod session of this user. A name "
		 "has 1 to 32 letters, digits or _ + . - and is not one of the image's "
		 "commands.",
	.words = words,
	.min_operands = 1,
	.max_operands = 3,
	.examples = examples,
};

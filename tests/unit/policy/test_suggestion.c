/* unit/policy/test_suggestion.c - from the denials of results to a change of the policy. */
#include <string.h>

#include "base/str.h"
#include "harness/test.h"
#include "policy/suggestion.h"

#define COMMAND(name, more)                                                                        \
	"{\"operation\": \"execute\", \"target\": \"" name "\", \"remedy\": "                      \
	"\"commands: name the program in the policy (commands+=" name ")\"" more "}"
#define REMEDY(text) "{\"operation\": \"o\", \"remedy\": \"" text "\"}"

static int add(struct suggestion *s, const char *text)
{
	cleanup_json json_t *j = NULL;

	return json_parse(text, strlen(text), 0, &j, NULL) < 0 ? -1 : suggestion_add(s, j, NULL);
}

static void begin(struct suggestion *s, const char *assignment)
{
	cleanup_policy struct policy p = { 0 };

	ASSERT_EQ(policy_init_level(&p, LEVEL_STRICT, NULL), 0);
	ASSERT_EQ(assignment ? policy_apply_set(&p, assignment, NULL) : 0, 0);
	ASSERT_EQ(suggestion_init(s, &p, NULL), 0);
}

TEST(takes_the_remedies_of_several_results)
{
	cleanup_suggestion struct suggestion s = { 0 };

	begin(&s, NULL);
	ASSERT_EQ(add(&s, "{\"denials\": [" COMMAND("git", "") "]}"), 0);
	ASSERT_EQ(add(&s, "[{\"denials\": [" COMMAND("git", "") "," COMMAND("cat", "") "]}]"), 0);
	ASSERT_EQ(add(&s, "{\"jsonrpc\": \"2.0\", \"result\": {\"denials\": []}}"), 0);
	cleanup_json json_t *j = suggestion_json(&s);
	const json_t *change = json_array_get(json_object_get(j, "changes"), 0);
	ASSERT_EQ(json_array_size(json_object_get(j, "changes")), 1);
	ASSERT_EQ(json_array_size(json_object_get(change, "assignments")), 2);
	ASSERT_EQ(json_array_size(json_object_get(change, "denials")), 2);
	ASSERT_STREQ(json_string_value(json_object_get(change, "diff")),
		     "commands: [\"sh:*\"] -> [\"sh:*\",\"git\",\"cat\"] (looser)");
	ASSERT_STREQ(json_string_value(json_object_get(change, "means")),
		     "The code may start these programs: sh:*, git, cat.");
	ASSERT_EQ(strlist_has(&s.wanted.commands.names, "git"), true);
}

TEST(takes_the_largest_limit_and_never_a_smaller_one)
{
	cleanup_suggestion struct suggestion s = { 0 };

	begin(&s, "timeout_ms=1000");
	ASSERT_EQ(
		add(&s,
		    "{\"denials\": [" REMEDY("timeout_ms: raise it (timeout_ms=4000)") "," REMEDY(
			    "timeout_ms: raise it (timeout_ms=2000)") "," REMEDY("memory_bytes: "
										 "raise it "
										 "(memory_bytes="
										 "16777216)") "]}"),
		0);
	ASSERT_EQ(s.wanted.timeout_ms, 4000);
	ASSERT_EQ(s.wanted.memory_bytes, s.base.memory_bytes);
	ASSERT_EQ(json_array_size(s.changes), 1);
	ASSERT_EQ(json_array_size(s.allowed), 1);
}

TEST(what_is_claimed_says_so)
{
	cleanup_suggestion struct suggestion s = { 0 };

	begin(&s, NULL);
	ASSERT_EQ(add(&s, "{\"denials\": [" COMMAND("git", ", \"claimed\": true") "," COMMAND(
				  "cat", ", \"claimed\": 1") "," COMMAND("ls", "") "]}"),
		  0);
	const json_t *denials = json_object_get(json_array_get(s.changes, 0), "denials");
	for (size_t i = 0; i < 3; i++)
		ASSERT_EQ(json_is_true(json_object_get(json_array_get(denials, i), "claimed")),
			  i < 2);
}

/* A forged result, or a remedy that offers a choice, changes nothing. */
TEST(takes_nothing_else)
{
	static const char *const remedies[] = {
		"mounts: x (mounts+=/:/x:rw)",
		"require: x (require=user)",
		"python: x (python=/tmp/x)",
		"env: x (env+=SECRET)",
		"validate: x (validate=false)",
		"network.block: x (network.block=)",
		"level: x (level=permissive)",
		"memory_bytes: x (commands=*)",
		"network.allow: name the hosts; if it only listens, expose: x (expose+=8000)",
		"commands: x (commands+=a'b)",
		"commands: x (commands+=a b)",
		"commands: x (commands)",
		"commands: x (commands=git)",
		"commands: x ()",
		"commands: x (commands+=git",
		"mounts: name the directory in the policy",
	};

	for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++) {
		cleanup_suggestion struct suggestion s = { 0 };
		cleanup_free char *text = str_printf("{\"denials\": [{\"operation\": \"o\", "
						     "\"remedy\": \"%s\"}]}",
						     remedies[i]);
		begin(&s, NULL);
		ASSERT_EQ(add(&s, text), 0);
		cleanup_free char *diff = policy_diff(&s.base, &s.wanted);
		ASSERT_STREQ(diff, "");
		ASSERT_EQ(json_array_size(s.by_hand), 1);
	}
}

TEST(what_no_policy_allows_is_named)
{
	cleanup_suggestion struct suggestion s = { 0 };

	begin(&s, NULL);
	ASSERT_EQ(add(&s, "{\"denials\": [" REMEDY("none") "," REMEDY(
				  "none: use execve (commands=*)") ", {}, 1]}"),
		  0);
	ASSERT_EQ(json_array_size(s.impossible), 3);
	ASSERT_EQ(json_array_size(s.changes), 0);
}

TEST(refuses_what_is_no_result)
{
	static const char *const texts[] = {
		"{}", "1", "null", "{\"denials\": 1}", "[[[]]]", "[1]"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		cleanup_suggestion struct suggestion s = { 0 };
		begin(&s, NULL);
		ASSERT_EQ(add(&s, texts[i]), -CORDON_INVALID);
	}
}

TEST(has_a_limit)
{
	cleanup_suggestion struct suggestion s = { 0 };
	int r = 0;

	begin(&s, NULL);
	for (size_t i = 0; r == 0 && i < 2000; i++)
		r = add(&s, "{\"denials\": [{}]}");
	ASSERT_EQ(r, -CORDON_LIMIT);
}

/* unit/policy/test_public.c - the handle, the sentences, the differences, and the table in docs/.
 */
#include "base/buf.h"
#include "base/file.h"
#include "harness/test.h"
#include "policy/field.h"
#include "policy/kind.h"
#include "policy/public.h"

static struct cordon_policy *fresh(const char *level)
{
	struct cordon_policy *p = NULL;

	ASSERT(cordon_policy_new(level, &p, NULL) == 0);
	return p;
}

static void set(struct cordon_policy *p, const char *assignment)
{
	cleanup_error struct cordon_error *e = NULL;

	if (cordon_policy_set(p, assignment, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
}

static bool has_line(const char *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	return false;
}

TEST(a_handle_is_standard_unless_told)
{
	struct cordon_policy *p = fresh(NULL), *none = NULL;
	cleanup_error struct cordon_error *e = NULL;

	ASSERT_EQ(p->p.level, LEVEL_STANDARD);
	ASSERT_EQ(cordon_policy_new("lax", &none, &e), -CORDON_INVALID);
	ASSERT_HAS(cordon_error_message(e),
		   "level must be permissive, standard or strict, got: lax");
	ASSERT(!none);
	cordon_policy_free(p);
	ASSERT(!cordon_policy_free(NULL));
}

TEST(a_refused_change_leaves_no_trace)
{
	struct cordon_policy *p = fresh("strict");
	uint8_t before[32], after[32];

	ASSERT(policy_hash(&p->p, before) == 0);
	ASSERT(cordon_policy_apply_json(p, "{\"level\": \"standard\", \"timeout_ms\": 5, \"x\": 1}",
					NULL) < 0);
	ASSERT(cordon_policy_apply_json(p, "{\"timeout_ms\": 5", NULL) < 0);
	ASSERT(cordon_policy_apply_file(p, "/nonexistent", NULL) < 0);
	ASSERT(cordon_policy_set(p, "timeout_ms=0", NULL) < 0);
	ASSERT(policy_hash(&p->p, after) == 0 && memcmp(before, after, 32) == 0);
	ASSERT(cordon_policy_apply_json(p, "{\"timeout_ms\": 5}", NULL) == 0);
	ASSERT_EQ(p->p.timeout_ms, 5);
	cordon_policy_free(p);
}

TEST(a_handle_copies_and_prints)
{
	struct cordon_policy *p = fresh("strict");

	set(p, "network.allow=a.org");
	struct cordon_policy *copy = cordon_policy_copy(p, NULL);
	cordon_policy_free(p);
	ASSERT(copy && cordon_policy_check(copy, NULL) == 0);
	cleanup_free char *text = cordon_policy_json(copy);
	cleanup_json json_t *j = NULL;
	ASSERT(json_parse(text, strlen(text), 0, &j, NULL) == 0);
	ASSERT_STREQ(json_string_value(json_object_get(j, "level")), "strict");
	cordon_policy_free(copy);
}

TEST(lists_can_be_added_to)
{
	struct cordon_policy *p = fresh(NULL);

	set(p, "mounts=/a:/b");
	set(p, "mounts+=/c:/d:ro");
	ASSERT_EQ(p->p.mount_count, 2);
	set(p, "network.allow+=a.org");
	set(p, "network.allow+=b.org");
	ASSERT_EQ(p->p.network.allow_count, 2);
	set(p, "modules+=math");
	ASSERT(p->p.modules.all);
	set(p, "modules=json");
	set(p, "modules+=math");
	ASSERT_EQ(p->p.modules.names.count, 2);
	ASSERT_EQ(cordon_policy_set(p, "timeout_ms+=5", NULL), -CORDON_INVALID);
	ASSERT_EQ(cordon_policy_set(p, "+=5", NULL), -CORDON_INVALID);
	cordon_policy_free(p);
}

TEST(sentences)
{
	struct cordon_policy *p = fresh("strict");
	cleanup_free char *usual = cordon_policy_explain(p);

	ASSERT(has_line(usual, "Level strict."));
	ASSERT(has_line(usual, "An execution is ended after 10 s of wall clock time."));
	ASSERT(has_line(usual, "Memory: at most 256 MiB."));
	ASSERT(has_line(usual, "It reaches no network at all."));
	ASSERT(has_line(usual, "Python may import every module."));
	ASSERT(!strstr(usual, "A request may send"));
	ASSERT(!strstr(usual, "{}"));
	set(p, "timeout_ms=none");
	set(p, "cpu_seconds=none");
	set(p, "modules=math,json");
	set(p, "mounts=/a:/b:rw");
	set(p, "network.allow=a.org:8443");
	set(p, "secrets=[{\"name\": \"K\", \"value\": \"hunter2\", \"host\": \"a.org\"}]");
	set(p, "require=user");
	set(p, "file_bytes=1G");
	cleanup_free char *text = cordon_policy_explain(p);
	ASSERT(has_line(text, "An execution may take any time by the wall clock."));
	ASSERT(has_line(text, "Python may import math, json (advisory)."));
	ASSERT(has_line(text, "It sees of the host: /a as /b (live and WRITABLE)."));
	ASSERT(has_line(text, "Through the gateway it reaches a.org port 8443."));
	ASSERT(has_line(text, "A request may send 10 MiB."));
	ASSERT_HAS(text, "K to a.org in Authorization");
	ASSERT(!strstr(text, "hunter2"));
	ASSERT_HAS(text, "Level strict, changed in timeout_ms, cpu_seconds, file_bytes, modules, ");
	ASSERT_HAS(text, "Note: nothing ends code that runs for ever");
	ASSERT_HAS(text, "Note: file_bytes is more than fs_bytes");
	ASSERT_HAS(text, "Note: seccomp or landlock is not required");
	cordon_policy_free(p);
}

/* A policy where every field has another extent than usual still has a sentence for each. */
static void check_range(const struct field *f)
{
	ASSERT(f->min >= 1 || f->says_none);
	ASSERT(f->max >= f->min && f->max <= INT64_MAX);
}

TEST(every_field_has_its_sentences)
{
	for (size_t i = 0; i < field_count; i++) {
		const struct field *f = &field_table[i];
		bool flag = f->kind == &kind_flag, number = f->kind == &kind_number;
		ASSERT(f->enforced && (f->says || flag));
		if (flag || (number && f->unlimited) || f->kind == &kind_list)
			ASSERT(f->says_all);
		if (!number && f->kind != &kind_level)
			ASSERT(f->says_none);
		if (number)
			check_range(f);
		if (f->says && !flag)
			ASSERT_HAS(f->says, "{}");
	}
}

TEST(differences)
{
	struct cordon_policy *a = fresh("standard"), *b = fresh("standard");
	cleanup_free char *none = cordon_policy_diff(a, b);

	ASSERT_STREQ(none, "");
	set(a, "timeout_ms=none");
	set(a, "network.allow=h.org");
	set(b, "network.allow=h.org");
	set(a, "secrets=[{\"name\": \"K\", \"value\": \"hunter1\", \"host\": \"h.org\"}]");
	set(b, "secrets=[{\"name\": \"K\", \"value\": \"hunter2\", \"host\": \"h.org\"}]");
	set(b, "memory_bytes=1G");
	set(b, "modules=math");
	set(b, "network.allow+=x.org");
	set(b, "require=user");
	set(b, "tools=a,b");
	set(a, "tools=b,c");
	set(b, "validate=off");
	cleanup_free char *text = cordon_policy_diff(a, b);
	ASSERT(has_line(text, "timeout_ms: none -> 30000 (tighter)"));
	ASSERT(has_line(text, "memory_bytes: 536870912 -> 1073741824 (looser)"));
	ASSERT(has_line(text, "modules: \"*\" -> [\"math\"] (tighter)"));
	ASSERT(has_line(text, "network.allow: [\"h.org\"] -> [\"h.org\",\"x.org\"] (looser)"));
	ASSERT(has_line(text, "tools: [\"b\",\"c\"] -> [\"a\",\"b\"]"));
	ASSERT(has_line(text, "validate: true -> false (looser)"));
	ASSERT(has_line(text, "secrets: the values differ"));
	ASSERT_HAS(text, "-> [\"user\"] (looser)");
	ASSERT(!strstr(text, "hunter"));
	cordon_policy_free(a);
	cordon_policy_free(b);
}

/* The page is written by hand around the table; the rows are the program's own. */
TEST(the_page_has_a_row_for_every_field)
{
	cleanup_buf struct buf page = { 0 };
	size_t missing = 0;

	ASSERT(file_load(DOCS_DIR "/policy.md", 1 << 20, &page, NULL) == 0);
	for (size_t i = 0; i < field_count; i++) {
		cleanup_free char *row = field_doc_row(&field_table[i]);
		ASSERT(row);
		cleanup_free char *range = field_doc_range(&field_table[i]);
		ASSERT(range);
		if (has_line(buf_text(&page), row) && (!*range || has_line(buf_text(&page), range)))
			continue;
		fprintf(stderr, "%s\n%s\n", row, range);
		missing++;
	}
	if (missing)
		test_fail(__FILE__, __LINE__, "docs/policy.md lacks rows of these %zu fields",
			  missing);
	for (const char *at = buf_text(&page); (at = strstr(at, "\n| `")); at++) {
		cleanup_free char *name = str_ndup(at + 4, strcspn(at + 4, "`"));
		if (!field_find(name))
			test_fail(__FILE__, __LINE__, "docs/policy.md has a row for '%s'", name);
	}
}

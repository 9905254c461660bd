/* tests/behaviour/places_forked.c - guests join a place that a template has forked. */
#include "place_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

#define WAITS "echo waits; read line; echo over"

static json_t *part(const json_t *assurance, const char *name)
{
	return json_object_get(assurance, name);
}

static bool is_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b);
}

TEST(a_guest_that_joins_a_forked_place_has_every_layer)
{
	struct tenant t;
	struct site s, cold;

	site_fork(&s, NULL);
	site_open(&cold, WAITS, NULL);
	tenant_await(&cold.first, "waits");
	site_join(&s, &t, GUEST_KIND_SH, WAITS);
	tenant_await(&t, "waits");
	cleanup_json json_t *joined = box_assurance(t.box, &s.policy),
			    *forked = box_assurance(s.first.box, &s.policy),
			    *first = box_assurance(cold.first.box, &s.policy);
	static const char *const same[] = { "namespaces",   "landlock", "no_new_privs",
					    "capabilities", "cgroups",  "lacks" };
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		ASSERT(is_same(part(joined, same[i]), part(first, same[i])));
		ASSERT(is_same(part(joined, same[i]), part(forked, same[i])));
	}
	/* Two filters: the template's and its own. */
	ASSERT(json_is_string(part(joined, "seccomp")));
	ASSERT(!json_equal(part(joined, "seccomp"), part(first, "seccomp")));
	ASSERT(!json_equal(part(joined, "seccomp"), part(forked, "seccomp")));
	const char *own = site_run(&s, GUEST_KIND_SH,
				   "grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status", NULL);
	ASSERT_HAS(own, "CapBnd:\t0000000000000000");
	ASSERT_HAS(own, "CapPrm:\t0000000000000000");
	ASSERT_HAS(own, "NoNewPrivs:\t1");
	ASSERT_HAS(own, "Seccomp:\t2");
	tenant_done(&t);
	site_close(&cold);
	site_close(&s);
}

TEST(all_languages_join_a_forked_place)
{
	static const struct {
		enum guest_kind kind;
		const char *code;
	} table[] = {
		{ GUEST_KIND_SH, "echo x >/workspace/a; printf x" },
		{ GUEST_KIND_PYTHON, "print(open('/workspace/a').read().strip(), end='')" },
		{ GUEST_KIND_R, "cat(readLines('/workspace/a'))" },
		{ GUEST_KIND_NODE, "process.stdout.write("
				   "require('fs').readFileSync('/workspace/a','utf8').trim())" },
	};
	struct site s;

	site_fork(&s, NULL);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		int status = -1;

		if (!site_has(table[i].kind))
			continue;
		ASSERT_EQ(site_run(&s, table[i].kind, table[i].code, &status)[0], 'x');
		ASSERT_EQ(status, 0);
	}
	site_close(&s);
}

TEST(each_guest_of_a_forked_place_ends_alone)
{
	struct tenant a, b;
	struct site s;

	site_fork(&s, NULL);
	site_join(&s, &a, GUEST_KIND_SH, "sleep 7005 & " WAITS);
	site_join(&s, &b, GUEST_KIND_SH, WAITS "; exit 6");
	tenant_await(&a, "waits");
	ASSERT_EQ(box_wait_ready(s.first.box, deadline_after_ms(60000), NULL), 0);
	pid_t of_a = box_pid(a.box), of_first = box_pid(s.first.box);
	ASSERT(of_a > 0 && of_first > 0 && of_a != of_first);
	box_kill(a.box);
	ASSERT_EQ(WTERMSIG(tenant_wait(&a)), SIGKILL);
	ASSERT(!box_has_ended(s.first.box) && !box_has_ended(b.box));
	/* The session that was forked is one guest among others. */
	box_kill(s.first.box);
	ASSERT_EQ(WTERMSIG(tenant_wait(&s.first)), SIGKILL);
	ASSERT(!box_has_ended(s.place) && !box_has_ended(b.box));
	close_fdp(&b.in);
	ASSERT_EQ(WEXITSTATUS(tenant_wait(&b)), 6);
	ASSERT_STREQ(site_run(&s, GUEST_KIND_SH, "echo still", NULL), "still\n");
	box_kill(s.place);
	ASSERT(box_has_ended(s.place));
	tenant_done(&a);
	tenant_done(&b);
	site_close(&s);
}

TEST(nobody_joins_a_template)
{
	struct launch l = { .filter = LAUNCH_SH };
	struct box *b = NULL;
	struct site s;

	site_fork(&s, NULL);
	struct box_options o = { .policy = &s.policy,
				 .launch = &l,
				 .stdin_fd = -1,
				 .stdout_fd = -1,
				 .stderr_fd = -1,
				 .wire_fd = -1 };
	ASSERT_EQ(box_join(s.template, &o, &b, NULL), -CORDON_UNSUPPORTED);
	site_close(&s);
}

TEST(a_template_of_places_ends_with_its_guest)
{
	struct site s;

	site_fork(&s, NULL);
	close_fdp(&s.keep.wire);
	ASSERT(box_wait_gone(s.template, deadline_after_ms(60000)));
	ASSERT(box_wait_gone(s.place, deadline_after_ms(60000)));
	site_close(&s);
}

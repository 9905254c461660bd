/* The table of guests and the launch of each, without starting an interpreter. */
#include "guest/guest.h"

#include <string.h>
#include <unistd.h>

#include "harness/test.h"

static const struct {
	enum guest_kind kind;
	const char *name, *program;
} guests[] = {
	{ GUEST_KIND_PYTHON, "python", "/usr/bin/python3" },
	{ GUEST_KIND_R, "r", "/usr/bin/R" },
	{ GUEST_KIND_NODE, "node", "/usr/bin/node" },
	{ GUEST_KIND_SH, "sh", "/bin/bash" },
};

TEST(names_are_names_of_one_guest)
{
	static const struct {
		const char *name;
		enum guest_kind kind;
	} table[] = {
		{ "python", GUEST_KIND_PYTHON },
		{ "python3", GUEST_KIND_PYTHON },
		{ "r", GUEST_KIND_R },
		{ "R", GUEST_KIND_R },
		{ "node", GUEST_KIND_NODE },
		{ "js", GUEST_KIND_NODE },
		{ "javascript", GUEST_KIND_NODE },
		{ "sh", GUEST_KIND_SH },
		{ "bash", GUEST_KIND_SH },
		{ "pod", GUEST_KIND_POD },
		{ "Python", GUEST_KIND_PYTHON },
		{ "Node.js 20", GUEST_KIND_NODE },
		{ "Bash", GUEST_KIND_SH },
		{ "pythonic", GUEST_KIND_NONE },
		{ "", GUEST_KIND_NONE },
		{ "ruby", GUEST_KIND_NONE },
		{ "../python", GUEST_KIND_NONE },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		ASSERT_EQ(guest_from_name(table[i].name), table[i].kind);
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		ASSERT_STREQ(guest_name(guests[i].kind), guests[i].name);
	ASSERT_STREQ(guest_name(GUEST_KIND_NONE), "none");
}

TEST(only_node_is_told_a_heap_and_within_the_memory)
{
	for (enum policy_level level = LEVEL_PERMISSIVE; level <= LEVEL_STRICT; level++) {
		cleanup_policy struct policy p = { 0 };

		ASSERT_EQ(policy_init_level(&p, level, NULL), 0);
		for (enum guest_kind k = GUEST_KIND_PYTHON; k <= GUEST_KIND_POD; k++)
			ASSERT_EQ(guest_heap_bytes(k, &p) > 0, k == GUEST_KIND_NODE);
		ASSERT(guest_heap_bytes(GUEST_KIND_NODE, &p) < p.memory_bytes);
	}
}

static bool has_env(const struct launch *l, const char *start)
{
	for (size_t i = 0; i < l->env.count; i++)
		if (strncmp(l->env.items[i], start, strlen(start)) == 0)
			return true;
	return false;
}

/* Of the host a guest gets what the policy names, and nothing that it could write to. */
TEST(a_launch_has_nothing_of_the_hosts_own)
{
	(void)setenv("HOST_SECRET", "of nobody's concern", 1);
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++) {
		cleanup_policy struct policy p = { 0 };
		cleanup_launch struct launch l = { 0 };

		needs(access(guests[i].program, X_OK) == 0, guests[i].program);
		ASSERT_EQ(policy_init_level(&p, LEVEL_STRICT, NULL), 0);
		struct guest_options o = { .kind = guests[i].kind,
					   .mode = GUEST_SESSION,
					   .policy = &p,
					   .token = "secret-token" };
		ASSERT_EQ(guest_launch(&o, &l, NULL), 0);
		ASSERT(l.executable && l.executable[0] == '/' && l.argv.count > 0);
		ASSERT(!l.has_network && !l.is_template && l.relay_port_count == 0);
		ASSERT(!has_env(&l, "HOST_SECRET="));
		ASSERT(has_env(&l, "CORDON_TOKEN=secret-token"));
		for (size_t k = 0; k < l.bind_count; k++) {
			ASSERT(!(l.binds[k].flags & BIND_WRITABLE));
			ASSERT(l.binds[k].guest[0] == '/');
			ASSERT(strncmp(l.binds[k].host, "/root", 5) != 0);
			ASSERT(strncmp(l.binds[k].host, "/home", 5) != 0);
		}
	}
}

TEST(a_template_says_so)
{
	cleanup_policy struct policy p = { 0 };
	cleanup_launch struct launch l = { 0 };

	needs(access("/usr/bin/python3", X_OK) == 0, "Python");
	ASSERT_EQ(policy_init_level(&p, LEVEL_STANDARD, NULL), 0);
	struct guest_options o = { .kind = GUEST_KIND_PYTHON,
				   .mode = GUEST_TEMPLATE,
				   .policy = &p };
	ASSERT_EQ(guest_launch(&o, &l, NULL), 0);
	ASSERT(l.is_template && guest_can_fork(GUEST_KIND_PYTHON));
	ASSERT(!guest_can_fork(GUEST_KIND_NODE) && !guest_can_fork(GUEST_KIND_NONE));
}

TEST(an_interpreter_that_is_not_there_is_told)
{
	cleanup_policy struct policy p = { 0 };
	cleanup_launch struct launch l = { 0 };
	cleanup_error struct cordon_error *e = NULL;

	ASSERT_EQ(policy_init_level(&p, LEVEL_STANDARD, NULL), 0);
	struct guest_options o = { .kind = GUEST_KIND_NONE, .mode = GUEST_SESSION, .policy = &p };
	ASSERT(guest_launch(&o, &l, &e) < 0);
	ASSERT_EQ(l.bind_count, 0);
}

static struct launch launch_of(enum guest_kind kind, const char *commands, enum policy_level level)
{
	cleanup_policy struct policy p = { 0 };
	cleanup_error struct cordon_error *e = NULL;
	struct launch l = { 0 };

	ASSERT_EQ(policy_init_level(&p, level, NULL), 0);
	if (commands)
		ASSERT_EQ(policy_apply_set(&p, commands, NULL), 0);
	struct guest_options o = {
		.kind = kind, .mode = GUEST_SESSION, .policy = &p, .token = "t"
	};
	if (guest_launch(&o, &l, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return l;
}

static const struct launch_bind *bind_at(const struct launch *l, const char *guest)
{
	for (size_t i = 0; i < l->bind_count; i++)
		if (strcmp(l->binds[i].guest, guest) == 0)
			return &l->binds[i];
	return NULL;
}

/* Building the root fails if two things have one name. */
static void assert_names_differ(const struct launch *l)
{
	for (size_t i = 0; i < l->link_count; i++) {
		ASSERT(!bind_at(l, l->links[i].guest));
		for (size_t k = 0; k < i; k++)
			ASSERT(strcmp(l->links[i].guest, l->links[k].guest) != 0);
		for (size_t k = 0; k < l->file_count; k++)
			ASSERT(strcmp(l->links[i].guest, l->files[k].guest) != 0);
	}
	for (size_t i = 0; i < l->bind_count; i++)
		ASSERT(bind_at(l, l->binds[i].guest) == &l->binds[i]);
}

TEST(a_program_that_is_needed_anyway_may_be_named)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++) {
		needs(access(guests[i].program, X_OK) == 0, guests[i].program);
		cleanup_launch struct launch l = launch_of(
			guests[i].kind, "commands=sh,dash,bash,python3,node,R,which,awk,sleep,ls",
			LEVEL_STANDARD);

		assert_names_differ(&l);
		ASSERT(bind_at(&l, "/usr/bin/sleep")->flags & BIND_EXEC);
		ASSERT(!bind_at(&l, "/usr") && !bind_at(&l, "/usr/bin/cat"));
	}
}

TEST(all_commands_are_all_of_usr_and_that_once)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++) {
		needs(access(guests[i].program, X_OK) == 0, guests[i].program);
		cleanup_launch struct launch l = launch_of(guests[i].kind, NULL, LEVEL_STANDARD);

		ASSERT(bind_at(&l, "/usr")->flags & BIND_EXEC);
		for (size_t k = 0; k < l.bind_count; k++)
			ASSERT(strncmp(l.binds[k].guest, "/usr/", 5) != 0);
		for (size_t k = 0; k < l.exec_paths.count; k++)
			ASSERT(strncmp(l.exec_paths.items[k], "/usr/", 5) != 0);
		assert_names_differ(&l);
	}
}

/* Beside its own interpreter. */
static size_t count_programs(const struct launch *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->bind_count; i++)
		n += (l->binds[i].flags & BIND_EXEC) &&
		     strncmp(l->binds[i].guest, "/usr/bin/", 9) == 0 &&
		     !strstr(l->binds[i].guest, "/python3") && !strstr(l->binds[i].guest, "/node");
	return n;
}

TEST(strict_gives_programs_to_shells_only_unless_they_are_named)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++) {
		needs(access(guests[i].program, X_OK) == 0, guests[i].program);
		cleanup_launch struct launch l = launch_of(guests[i].kind, NULL, LEVEL_STRICT),
					     named = launch_of(guests[i].kind, "commands+=sleep",
							       LEVEL_STRICT),
					     none = launch_of(guests[i].kind, "commands=[]",
							      LEVEL_STANDARD);
		bool is_shell = guests[i].kind == GUEST_KIND_SH;

		ASSERT_EQ(bind_at(&l, "/usr") != NULL, is_shell);
		ASSERT_EQ(bind_at(&named, "/usr") != NULL, is_shell);
		if (is_shell)
			continue;
		ASSERT_EQ(count_programs(&l), 0);
		ASSERT_EQ(count_programs(&none), 0);
		ASSERT(bind_at(&named, "/usr/bin/sleep"));
		/* R starts it through a shell. */
		ASSERT_EQ(count_programs(&named), guests[i].kind == GUEST_KIND_R ? 2 : 1);
	}
}

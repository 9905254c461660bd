/* fault/fault_policy.c - the policy room when memory runs out. */
#include "harness/fault.h"
#include "policy/public.h"

static const char document[] =
	"{\"level\": \"strict\", \"timeout_ms\": 5, \"limits\": {\"cpu\": 3},"
	" \"modules\": \"strict\", \"env\": [\"LANG\"], \"env_set\": {\"A\": \"1\"},"
	" \"mounts\": [\"/a:/b:ro\", {\"guest\": \"/c\", \"bytes_base64\": \"AAEC\"}],"
	" \"network\": {\"allow\": [\"a.org\", {\"host\": \"b.org\", \"methods\": [\"GET\"],"
	" \"path\": \"/v\"}], \"block\": [\"c.org\"]}, \"require\": [\"user\"],"
	" \"secrets\": [{\"name\": \"K\", \"value\": \"v\", \"host\": \"a.org\"}],"
	" \"python\": \"/p\"}";

TEST(levels)
{
	FAULT_LOOP
	{
		struct policy p = { 0 };
		struct cordon_error *e = NULL;
		int r = policy_init_level(&p, LEVEL_STANDARD, &e);
		ASSERT_FAULT(r);
		ASSERT((r < 0) == (e != NULL));
		cordon_error_free(e);
		policy_done(&p);
	}
}

TEST(documents)
{
	json_t *j = NULL;

	ASSERT_EQ(json_parse(document, strlen(document), 0, &j, NULL), 0);
	FAULT_LOOP
	{
		struct policy p = { 0 };
		struct cordon_error *e = NULL;
		int r = policy_init_level(&p, LEVEL_STANDARD, &e);
		if (r == 0)
			r = policy_apply_json(&p, j, &e);
		if (r == 0)
			r = policy_check(&p, &e);
		ASSERT_FAULT(r);
		cordon_error_free(e);
		policy_done(&p);
	}
	json_decref(j);
}

static struct cordon_policy *rich(void)
{
	struct cordon_policy *p = NULL;

	ASSERT_EQ(cordon_policy_new("strict", &p, NULL), 0);
	ASSERT_EQ(cordon_policy_apply_json(p, document, NULL), 0);
	return p;
}

TEST(copies_and_fingerprints)
{
	struct cordon_policy *p = rich();

	FAULT_LOOP
	{
		struct policy copy = { 0 };
		uint8_t hash[32];
		int r = policy_copy(&copy, &p->p, NULL);
		if (r == 0)
			r = policy_hash(&copy, hash);
		ASSERT_FAULT(r);
		policy_done(&copy);
	}
	cordon_policy_free(p);
}

TEST(json_is_whole_or_nothing)
{
	struct cordon_policy *p = rich();

	FAULT_LOOP
	{
		char *json = cordon_policy_json(p);
		ASSERT((json == NULL) == fault_was_hit());
		free(json);
	}
	cordon_policy_free(p);
}

TEST(sentences_are_whole_or_nothing)
{
	struct cordon_policy *p = rich();

	FAULT_LOOP
	{
		char *text = cordon_policy_explain(p);
		ASSERT((text == NULL) == fault_was_hit());
		free(text);
	}
	cordon_policy_free(p);
}

TEST(differences_are_whole_or_nothing)
{
	struct cordon_policy *p = rich(), *standard = NULL;

	ASSERT_EQ(cordon_policy_new(NULL, &standard, NULL), 0);
	FAULT_LOOP
	{
		char *text = cordon_policy_diff(standard, p);
		ASSERT((text == NULL) == fault_was_hit());
		free(text);
	}
	cordon_policy_free(p);
	cordon_policy_free(standard);
}

TEST(a_failed_change_leaves_the_policy_as_it_was)
{
	static const char *const changes[] = { "timeout_ms=7s", "modules=a,b", "mounts+=/x:/y",
					       "env_set.B=2", "limits.cpu=4" };
	struct cordon_policy *p = rich();
	uint8_t before[32], after[32];

	ASSERT_EQ(policy_hash(&p->p, before), 0);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		FAULT_LOOP
		{
			struct cordon_policy *copy = cordon_policy_copy(p, NULL);
			struct cordon_error *e = NULL;
			if (!copy) {
				ASSERT(fault_was_hit());
				continue;
			}
			int r = cordon_policy_set(copy, changes[i], &e);
			ASSERT_FAULT(r);
			cordon_error_free(e);
			if (r < 0 && policy_hash(&copy->p, after) == 0)
				ASSERT(memcmp(before, after, 32) == 0);
			cordon_policy_free(copy);
		}
	cordon_policy_free(p);
}

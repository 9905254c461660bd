/* unit/base/test_error.c - errors and their chain of causes. */
#include "base/error.h"
#include "harness/fault.h"

#include <errno.h>

TEST(a_chain_keeps_code_errno_and_words)
{
	struct cordon_error *e = NULL;

	ASSERT_EQ(err_errno(&e, ENOENT, "open '%s'", "x"), -CORDON_NOT_FOUND);
	ASSERT_EQ(err_wrap(&e, -CORDON_NOT_FOUND, "read the policy"), -CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_error_code(e), CORDON_NOT_FOUND);
	ASSERT_EQ(cordon_error_errno(e), ENOENT);
	ASSERT_STREQ(cordon_error_message(e), "read the policy");
	ASSERT_STREQ(cordon_error_message(cordon_error_cause(e)), "open 'x'");
	ASSERT(!cordon_error_cause(cordon_error_cause(e)));
	ASSERT(!cordon_error_free(e));
}

TEST(a_caller_may_want_only_the_code)
{
	ASSERT_EQ(err_set(NULL, CORDON_LIMIT, "x"), -CORDON_LIMIT);
	ASSERT_EQ(err_wrap(NULL, -CORDON_LIMIT, "x"), -CORDON_LIMIT);
	ASSERT_EQ(cordon_error_code(NULL), CORDON_OK);
	ASSERT_EQ(cordon_error_errno(NULL), 0);
	ASSERT(!cordon_error_free(NULL));
}

TEST(errno_says_what_the_caller_can_do)
{
	static const struct {
		int os_errno;
		enum cordon_code code;
	} cases[] = {
		{ EPERM, CORDON_DENIED },
		{ EXDEV, CORDON_DENIED },
		{ ELOOP, CORDON_DENIED },
		{ ENOMEM, CORDON_NOMEM },
		{ ENOSYS, CORDON_UNSUPPORTED },
		{ EEXIST, CORDON_EXISTS },
		{ ENOSPC, CORDON_LIMIT },
		{ EMFILE, CORDON_LIMIT },
		{ EISDIR, CORDON_INVALID },
		{ ENOENT, CORDON_NOT_FOUND },
		{ EIO, CORDON_OS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ASSERT_EQ(err_errno(NULL, cases[i].os_errno, "x"), -(int)cases[i].code);
}

TEST(every_code_has_its_facts)
{
	ASSERT_STREQ(cordon_code_name(CORDON_DENIED), "denied");
	ASSERT_EQ(cordon_code_exit_status(CORDON_DENIED), 126);
	ASSERT_EQ(cordon_code_exit_status(CORDON_TIMEOUT), 124);
	ASSERT_EQ(cordon_code_exit_status(CORDON_INVALID), 2);
	ASSERT_EQ(cordon_code_rpc(CORDON_INVALID), -32602);
	ASSERT_STREQ(cordon_code_name((enum cordon_code)999), "os");
}

TEST(an_error_without_memory_is_still_an_error)
{
	FAULT_LOOP
	{
		struct cordon_error *e = NULL;
		int r = err_set(&e, CORDON_DENIED, "no %d", 1);
		r = err_wrap(&e, r, "context");
		ASSERT(e);
		ASSERT(r == -CORDON_DENIED || r == -CORDON_NOMEM);
		ASSERT_EQ(cordon_error_code(e), fault_was_hit() ? CORDON_NOMEM : CORDON_DENIED);
		/* A later frame may find memory again; it then stands on the failure. */
		if (!fault_was_hit() || cordon_error_cause(e))
			ASSERT_STREQ(cordon_error_message(e), "context");
		else
			ASSERT_STREQ(cordon_error_message(e), "out of memory");
		cordon_error_free(e);
	}
}

TEST(a_limit_says_whether_another_try_helps)
{
	cleanup_error struct cordon_error *passing = NULL, *lasting = NULL, *copy = NULL;

	ASSERT_EQ(err_set(&passing, CORDON_LIMIT, "too many"), -CORDON_LIMIT);
	ASSERT_EQ(err_limit_of(passing), ERR_LIMIT_PASSING);
	ASSERT_EQ(err_limit_of(NULL), ERR_LIMIT_PASSING);
	int r = err_limit(&lasting, ERR_LIMIT_LENGTH, "%d is too long", 7);
	ASSERT_EQ(err_wrap(&lasting, r, "execute"), -CORDON_LIMIT);
	ASSERT_EQ(cordon_error_code(lasting), CORDON_LIMIT);
	ASSERT_EQ(err_limit_of(lasting), ERR_LIMIT_LENGTH);
	ASSERT_EQ(err_copy(&copy, lasting), -CORDON_LIMIT);
	ASSERT_EQ(err_limit_of(copy), ERR_LIMIT_LENGTH);
	ASSERT_STREQ(cordon_error_message(copy), "execute");
	ASSERT_EQ(err_copy(NULL, lasting), -CORDON_LIMIT);
	ASSERT_EQ(err_copy(NULL, NULL), -CORDON_NOMEM);
}

TEST(a_copy_without_memory_is_still_an_error)
{
	cleanup_error struct cordon_error *e = NULL;

	(void)err_limit(&e, ERR_LIMIT_SPENT, "no more");
	FAULT_LOOP
	{
		cleanup_error struct cordon_error *copy = NULL;
		int r = err_copy(&copy, e);
		ASSERT_EQ(r, fault_was_hit() ? -CORDON_NOMEM : -CORDON_LIMIT);
		ASSERT_EQ(err_limit_of(copy),
			  fault_was_hit() ? ERR_LIMIT_PASSING : ERR_LIMIT_SPENT);
	}
}

TEST(the_text_tells_the_reason_once)
{
	static const struct {
		int os_errno;
		const char *message, *text;
	} cases[] = {
		{ EMFILE, "open the guest's pipes", "open the guest's pipes: Too many open files" },
		{ ENOSPC, "ENOSPC: file count limit exceeded",
		  "ENOSPC: file count limit exceeded" },
		{ ENOENT, "the guest said: No such file or directory",
		  "the guest said: No such file or directory" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup_error struct cordon_error *e = NULL;
		(void)err_errno(&e, cases[i].os_errno, "%s", cases[i].message);
		cleanup_free char *text = err_text(e);
		ASSERT_STREQ(text, cases[i].text);
	}
}

/* tests/behaviour/stdin.c - each execution of a session has its own stdin, in every guest. */
#include "dialect.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "harness/test.h"

static int refuse_any(const char *name, const struct cordon_file_info *info, void *arg)
{
	(void)info, (void)arg;
	return strncmp(name, ".cordon-", 8) == 0 ? -1 : 0;
}

static void fed(struct cordon_session *s, const struct dialect *d, const char *code,
		const struct cordon_execute_options *in, const char *printed)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = *in;
	struct cordon_result *r = NULL;

	o.code = code;
	o.timeout_ms = 10000;
	if (cordon_session_execute(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", d->guest, cordon_error_message(e));
	if (!cordon_result_success(r) || strcmp(cordon_result_stdout(r, NULL), printed) != 0)
		test_fail(__FILE__, __LINE__, "%s: %s: '%.200s' (%s)", d->guest, code,
			  cordon_result_stdout(r, NULL), cordon_result_error(r));
	cordon_result_free(r);
}

static struct cordon_execute_options in_bytes(const char *text)
{
	return (struct cordon_execute_options){ .stdin_bytes = text, .stdin_len = strlen(text) };
}

TEST(each_execution_has_a_stdin_of_its_own)
{
	struct cordon_execute_options none = { 0 }, one = in_bytes("a\nb\n"),
				      two = in_bytes("c\nd\n");

	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);

		fed(s, d, d->read_line, &one, "a\n");
		fed(s, d, d->read_all, &none, ""); /* not what the first left unread */
		fed(s, d, d->read_line, &two, "c\n");
		fed(s, d, d->read_all, &two, "c\nd\n");
		fed(s, d, d->read_all, &none, "");
		fed(s, d, d->read_all, &one, "a\nb\n");
		/* Nothing of it stays in the workspace. */
		ASSERT_EQ(cordon_file_list(s, "/tmp", refuse_any, NULL, NULL), 0);
		cordon_session_close(s);
	}
}

/* More than a pipe holds, and a descriptor in the place of bytes. */
TEST(stdin_is_fed_as_it_is_read)
{
	enum { SIZE = 1000000 };
	char *big = malloc(SIZE);
	int ends[2];

	memset(big, 'x', SIZE);
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);
		struct cordon_execute_options o = { .stdin_bytes = big, .stdin_len = SIZE };

		for (int i = 0; i < 2; i++)
			fed(s, d, d->close_stdin, &o, "on\n"); /* and the host lives */
		ASSERT_EQ(cordon_session_restart(s, NULL), 0);
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(pipe(ends), 0);
			ASSERT_EQ(write(ends[1], "piped\n", 6), 6);
			close(ends[1]);
			o = (struct cordon_execute_options){ .stdin_fd = ends[0] };
			fed(s, d, d->read_all, &o, "piped\n");
			close(ends[0]);
		}
		cordon_session_close(s);
	}
	free(big);
}

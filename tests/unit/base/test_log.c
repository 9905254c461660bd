/* unit/base/test_log.c - one line per message, whatever is in it. */
#include "base/file.h"
#include "base/log.h"
#include "harness/test.h"

#include <errno.h>
#include <fcntl.h>

/* What the function writes to stderr; to be freed. */
static char *capture(void (*fn)(void))
{
	int pipe_fds[2], saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	struct buf b;

	ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
	ASSERT_EQ(dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
	close(pipe_fds[1]);
	fn();
	ASSERT_EQ(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	buf_init(&b, 1 << 20);
	ASSERT_EQ(file_read_to_end(pipe_fds[0], &b, NULL), 0);
	close(pipe_fds[0]);
	return buf_take(&b);
}

static void say_hostile(void)
{
	log_error("%s", "a\nb\033[31m\x7f\xc2\x85\xff \xc3\xa9");
}

TEST(control_characters_are_spelled_out)
{
	char *text = capture(say_hostile);

	ASSERT_HAS(text, ": a\\x0ab\\x1b[31m\\x7f\\xc2\\x85\\xff \xc3\xa9\n");
	ASSERT(strchr(text, '\n') == text + strlen(text) - 1);
	free(text);
}

static void say_chain(void)
{
	struct cordon_error *e = NULL;

	err_errno(&e, ENOENT, "open '%s'", "p.json");
	err_wrap(&e, -CORDON_NOT_FOUND, "read the policy");
	log_error_chain("run", e);
	cordon_error_free(e);
}

static void say_a_guests_words(void)
{
	struct cordon_error *e = NULL;

	err_errno(&e, ENOENT, "ENOENT: No such file or directory: '/x'");
	log_error_chain("run", e);
	cordon_error_free(e);
}

TEST(what_the_message_says_is_not_said_twice)
{
	char *text = capture(say_a_guests_words);

	ASSERT_HAS(text, ": run: ENOENT: No such file or directory: '/x'\n");
	free(text);
}

TEST(a_chain_is_one_line_from_outside_in)
{
	char *text = capture(say_chain);

	ASSERT_HAS(text, ": run: read the policy: open 'p.json': No such file or directory\n");
	free(text);
}

static void say_much(void)
{
	char *much = malloc(100001);

	memset(much, 'x', 100000);
	much[100000] = '\0';
	log_error("%s", much);
	free(much);
}

TEST(a_line_has_a_limit_and_an_end)
{
	char *text;

	text = capture(say_much);
	ASSERT(strlen(text) <= 65536);
	ASSERT_EQ(text[strlen(text) - 1], '\n');
	free(text);
}

/* Lines over a pipe: whole, limited, from many threads. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/test.h"
#include "serve/rpc/line.h"

static void feed(int fd, const char *bytes, size_t len)
{
	ASSERT(write(fd, bytes, len) == (ssize_t)len);
}

TEST(line_lines_come_whole)
{
	int p[2];
	char *line;
	size_t len;
	struct linein in;

	ASSERT(pipe(p) == 0);
	linein_init(&in, p[0], -1, 100);
	feed(p[1], "one\n\ntw", 7);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 3 && !strcmp(line, "one"));
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 0);
	feed(p[1], "o\nthr", 5);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 3 && !strcmp(line, "two"));
	close(p[1]);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 3 && !strcmp(line, "thr"));
	ASSERT(linein_next(&in, &line, &len) == LINE_END);
	ASSERT(linein_next(&in, &line, &len) == LINE_END);
	linein_done(&in);
	close(p[0]);
}

TEST(line_too_long_is_told_once)
{
	int p[2];
	char *line;
	size_t len;
	struct linein in;
	static char big[60000];

	ASSERT(pipe(p) == 0);
	linein_init(&in, p[0], -1, 10);
	memset(big, 'x', sizeof(big));
	feed(p[1], "0123456789\n", 11);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 10);
	feed(p[1], "01234567890\nok\n", 15);
	ASSERT(linein_next(&in, &line, &len) == LINE_TOO_LONG);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && !strcmp(line, "ok"));
	feed(p[1], big, sizeof(big));
	ASSERT(linein_next(&in, &line, &len) == LINE_TOO_LONG);
	feed(p[1], "rest\nafter\n", 11);
	ASSERT(linein_next(&in, &line, &len) == LINE_OK && !strcmp(line, "after"));
	linein_done(&in);
	close(p[0]);
	close(p[1]);
}

TEST(line_dead_reader_ends_the_input)
{
	int p[2], q[2];
	char *line;
	size_t len;
	struct linein in;

	ASSERT(pipe(p) == 0 && pipe(q) == 0);
	linein_init(&in, p[0], q[1], 10);
	close(q[0]);
	ASSERT(linein_next(&in, &line, &len) == LINE_END);
	linein_done(&in);
	close(p[0]);
	close(p[1]);
	close(q[1]);
}

static void *send_many(void *arg)
{
	static char text[3000];
	struct line_part parts[3] = { { "<", 1 }, { text, sizeof(text) }, { ">", 1 } };

	memset(text, 'y', sizeof(text));
	for (int i = 0; i < 50; i++)
		if (!lineout_send(arg, parts, 3))
			return arg;
	return NULL;
}

TEST(line_threads_do_not_mix)
{
	int p[2];
	char *line;
	size_t len;
	struct linein in;
	struct lineout out;
	pthread_t threads[4];

	ASSERT(pipe(p) == 0);
	ASSERT(fcntl(p[1], F_SETFL, O_NONBLOCK) == 0);
	linein_init(&in, p[0], -1, 5000);
	lineout_init(&out, p[1]);
	for (int i = 0; i < 4; i++)
		ASSERT(pthread_create(&threads[i], NULL, send_many, &out) == 0);
	for (int i = 0; i < 200; i++) {
		ASSERT(linein_next(&in, &line, &len) == LINE_OK && len == 3002);
		ASSERT(line[0] == '<' && line[1] == 'y' && line[3000] == 'y' && line[3001] == '>');
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	close(p[0]);
	ASSERT(send_many(&out) == &out);
	ASSERT(out.is_broken);
	lineout_done(&out);
	linein_done(&in);
	close(p[1]);
}

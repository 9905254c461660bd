/* unit/session/test_stdin_feed.c - stdin of one execution, through pipes that stand for a guest. */
#include "session/stdin_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/str.h"
#include "unit/files/fixture.h"
#include "unit/session/faked_box.h"

struct ends {
	int guest, host;
};

/* Non-blocking on both sides: a test never waits for itself. */
static struct ends pipe_pair(void)
{
	int fds[2];

	ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	return (struct ends){ .guest = fds[0], .host = fds[1] };
}

static void begin(struct stdin_feed *feed, struct faked_box *f, struct workspace *ws,
		  const struct cordon_execute_options *o)
{
	ASSERT_EQ(stdin_feed_begin(feed, &f->engine, ws, o, NULL), 0);
}

/* What the guest reads next: text, "(end)" or "(nothing)". */
static const char *read_by_guest(int fd)
{
	static char text[64];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return errno == EAGAIN ? "(nothing)" : "(error)";
	text[n] = '\0';
	return n == 0 ? "(end)" : text;
}

TEST(bytes_go_to_the_first_pipe_which_is_closed_then)
{
	struct cordon_execute_options o = { .stdin_bytes = "hello", .stdin_len = 5 };
	struct ends p = pipe_pair();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	ASSERT_EQ(f.engine.stdin_fd, -1);
	ASSERT_STREQ(feed.told, NULL);
	ASSERT_EQ(stdin_feed_to_fd(&feed), p.host);
	ASSERT_EQ(stdin_feed_patience_ms(&feed), -1);
	stdin_feed_go_on(&feed, false);
	ASSERT_EQ(stdin_feed_to_fd(&feed), -1);
	ASSERT_STREQ(read_by_guest(p.guest), "hello");
	ASSERT_STREQ(read_by_guest(p.guest), "(end)");
	ASSERT_EQ(f.engine.stdin_written, 5);
	stdin_feed_end(&feed);
}

TEST(without_stdin_the_guest_reads_its_end)
{
	struct cordon_execute_options o = { 0 };
	struct ends p = pipe_pair();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	stdin_feed_go_on(&feed, false);
	ASSERT_STREQ(read_by_guest(p.guest), "(end)");
	stdin_feed_end(&feed);
}

TEST(a_full_pipe_is_waited_for)
{
	static char many[1 << 20];
	struct cordon_execute_options o = { .stdin_bytes = many, .stdin_len = sizeof(many) };
	struct ends p = pipe_pair();
	struct faked_box f;
	size_t got = 0;
	ssize_t n = 0;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	stdin_feed_go_on(&feed, false);
	ASSERT_EQ(stdin_feed_to_fd(&feed), p.host); /* poll for room */
	ASSERT(f.engine.stdin_written > 0 && f.engine.stdin_written < sizeof(many));
	while (got < sizeof(many)) {
		char text[65536];

		n = read(p.guest, text, sizeof(text));
		ASSERT(n > 0);
		got += (size_t)n;
		stdin_feed_go_on(&feed, false);
	}
	ASSERT_EQ(f.engine.stdin_written, sizeof(many));
	ASSERT_STREQ(read_by_guest(p.guest), "(end)");
	stdin_feed_end(&feed);
}

static ssize_t read_line(int fd, void *bytes, size_t size, void *arg)
{
	(*(int *)arg)++;
	return read(fd, bytes, size < 4 ? size : 4);
}

static char given_back[16];

static void give_back(const char *bytes, size_t len, void *arg)
{
	(void)arg;
	snprintf(given_back, sizeof(given_back), "%.*s", (int)len, bytes);
}

TEST(a_terminal_is_read_when_the_guest_has_read)
{
	struct ends source = pipe_pair(), p = pipe_pair();
	int reads = 0;
	struct cordon_execute_options o = { .stdin_fd = source.guest,
					    .stdin_read = read_line,
					    .stdin_unread = give_back,
					    .stdin_arg = &reads };
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	ASSERT_EQ(write(source.host, "one\ntwo\n", 8), 8);
	stdin_feed_go_on(&feed, true);
	ASSERT_EQ(reads, 1);
	ASSERT_EQ(stdin_feed_source_fd(&feed), -1); /* the guest has not read it */
	ASSERT(stdin_feed_patience_ms(&feed) > 0);
	stdin_feed_go_on(&feed, true);
	ASSERT_EQ(reads, 1);
	ASSERT_STREQ(read_by_guest(p.guest), "one\n");
	ASSERT_EQ(stdin_feed_source_fd(&feed), source.guest);
	stdin_feed_go_on(&feed, true);
	ASSERT_EQ(reads, 2);
	char c;
	ASSERT_EQ(read(p.guest, &c, 1), 1);
	stdin_feed_end(&feed);
	ASSERT_STREQ(given_back, "wo\n");
}

TEST(a_descriptor_is_read_when_it_is_ready)
{
	struct ends source = pipe_pair(), p = pipe_pair();
	struct cordon_execute_options o = { .stdin_fd = source.guest };
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	ASSERT_EQ(stdin_feed_source_fd(&feed), source.guest);
	ASSERT_EQ(stdin_feed_to_fd(&feed), -1);
	ASSERT_EQ(write(source.host, "one", 3), 3);
	stdin_feed_go_on(&feed, false); /* nobody said that there is something */
	ASSERT_STREQ(read_by_guest(p.guest), "(nothing)");
	stdin_feed_go_on(&feed, true);
	ASSERT_STREQ(read_by_guest(p.guest), "one");
	stdin_feed_go_on(&feed, true); /* ready, and then nothing there: EAGAIN is no end */
	ASSERT_EQ(stdin_feed_source_fd(&feed), source.guest);
	close(source.host);
	stdin_feed_go_on(&feed, true);
	ASSERT_EQ(stdin_feed_source_fd(&feed), -1);
	ASSERT_STREQ(read_by_guest(p.guest), "(end)");
	stdin_feed_end(&feed);
	ASSERT(fcntl(source.guest, F_GETFD) >= 0); /* it is the caller's */
}

/* SIGPIPE would kill a host that has not asked to ignore it. */
TEST(a_guest_that_closes_stdin_does_not_kill_the_host)
{
	struct cordon_execute_options o = { .stdin_bytes = "hello", .stdin_len = 5 };
	struct ends p = pipe_pair();
	struct faked_box f;

	ASSERT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.engine.stdin_fd = p.host;
	struct stdin_feed feed;
	begin(&feed, &f, NULL, &o);
	close(p.guest);
	stdin_feed_go_on(&feed, false);
	ASSERT_EQ(stdin_feed_to_fd(&feed), -1);
	ASSERT_EQ(stdin_feed_source_fd(&feed), -1);
	ASSERT_EQ(f.engine.stdin_written, 0);
	stdin_feed_end(&feed);
}

TEST(a_pod_keeps_its_one_pipe)
{
	struct cordon_execute_options o = { .stdin_bytes = "ab", .stdin_len = 2 };
	struct ends p = pipe_pair();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_POD);
	f.engine.stdin_fd = p.host;
	for (int i = 1; i <= 2; i++) {
		struct stdin_feed feed;
		begin(&feed, &f, NULL, &o);

		stdin_feed_go_on(&feed, false);
		ASSERT_STREQ(read_by_guest(p.guest), "ab");
		ASSERT_STREQ(read_by_guest(p.guest), "(nothing)");
		stdin_feed_end(&feed);
		ASSERT_EQ(f.engine.stdin_fd, p.host);
		ASSERT_EQ(f.engine.stdin_written, 2 * i);
	}
}

/* The guest's view of a FIFO: opened for reading, without waiting. */
static int open_as_guest(struct fixture *w, const char *path)
{
	char name[80];

	snprintf(name, sizeof(name), "tmp/%s", strrchr(path, '/') + 1);
	return openat(w->root_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

TEST(a_later_execution_has_a_fifo)
{
	struct cordon_execute_options o = { .stdin_bytes = "again", .stdin_len = 5 };
	cleanup_fixture struct fixture w = fixture_plain();
	struct faked_box f;
	int patience = 0;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	struct stdin_feed feed;
	begin(&feed, &f, w.ws, &o);
	ASSERT_STREQ(feed.told, feed.path);
	ASSERT_HAS(feed.told, "/tmp/.cordon-stdin-");
	for (int i = 0; i < 100; i++) { /* it looks more rarely, and never stops */
		int ms = stdin_feed_patience_ms(&feed);

		ASSERT(ms >= 1 && ms <= 50 && ms >= patience);
		patience = ms;
		stdin_feed_go_on(&feed, false);
	}
	int guest = open_as_guest(&w, feed.path);
	ASSERT(guest >= 0);
	stdin_feed_go_on(&feed, false);
	ASSERT_STREQ(read_by_guest(guest), "again");
	ASSERT_STREQ(read_by_guest(guest), "(end)");
	ASSERT_EQ(stdin_feed_patience_ms(&feed), -1);
	ASSERT_EQ(feed.path[0], '\0'); /* and is removed */
	stdin_feed_end(&feed);
	close(guest);
}

TEST(what_the_last_execution_left_is_not_the_next_ones)
{
	struct cordon_execute_options given = { .stdin_bytes = "x", .stdin_len = 1 }, none = { 0 };
	cleanup_fixture struct fixture w = fixture_plain();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	struct stdin_feed first;
	begin(&first, &f, w.ws, &given);
	char path[80];
	snprintf(path, sizeof(path), "%s", first.path);
	stdin_feed_end(&first);
	ASSERT(open_as_guest(&w, path) < 0); /* nobody opened it, and it is gone */
	struct stdin_feed second;
	begin(&second, &f, w.ws, &none);
	ASSERT_STREQ(second.told, "/dev/null");
	stdin_feed_end(&second);
	struct stdin_feed third;
	begin(&third, &f, w.ws, &none);
	ASSERT_STREQ(third.told, NULL);
	stdin_feed_end(&third);
}

/* A guest may put anything in the FIFO's place; the host neither waits nor writes there. */
TEST(a_file_in_the_fifos_place_gets_nothing)
{
	struct cordon_execute_options o = { .stdin_bytes = "secret", .stdin_len = 6 };
	cleanup_fixture struct fixture w = fixture_plain();
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	struct stdin_feed feed;
	begin(&feed, &f, w.ws, &o);
	char path[80];
	snprintf(path, sizeof(path), "%s", feed.path);
	ASSERT_EQ(workspace_remove(w.ws, path, false, NULL), 0);
	fixture_put(&w, path, "");
	stdin_feed_go_on(&feed, false);
	ASSERT_EQ(stdin_feed_patience_ms(&feed), -1);
	ASSERT_EQ(stdin_feed_to_fd(&feed), -1);
	ASSERT_EQ(f.engine.stdin_written, 0);
	stdin_feed_end(&feed);
}

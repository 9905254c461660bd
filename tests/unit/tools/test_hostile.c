/* unit/tools/test_hostile.c - a guest that writes the wire by hand, against wire and tool calls in
 * the loop that a session runs. Whatever it sends: no handler runs that should not, the host's
 * memory stays bounded, and the loop ends. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/file.h"
#include "unit/tools/bench.h"
#include "wire/wire.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HELLO "{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "\"}\n"
#define CALL(n, rest) "{\"type\":\"tool_call\",\"id\":1,\"call\":" n "," rest "}\n"
#define GOOD(n) CALL(n, "\"tool\":\"add\",\"args\":{\"a\":1,\"b\":1}")
#define END "{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":1}\n"

enum outcome { ENDED = 1, CLOSED, BROKEN };

struct host {
	struct bench b;
	struct seen seen;
	struct wire *w;
	pid_t guest;
	enum outcome outcome;
	char error[300];
	int values, errors, unknown;
	long grown_kb;
};

static long peak_kb(void)
{
	struct rusage u;
	ASSERT_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

static void answer(struct host *h, const struct tool_calls_answer *a)
{
	*(a->is_error ? &h->errors : &h->values) += 1;
	int r = a->is_error ? wire_send_tool_error(h->w, 1, a->call, a->text, NULL)
			    : wire_send_tool_value(h->w, 1, a->call, a->text, a->len, NULL);
	ASSERT(r >= 0);
}

static void take(struct host *h, const struct wire_message *m)
{
	struct tool_calls_answer a;

	if (m->type == WIRE_RESULT)
		h->outcome = ENDED;
	h->unknown += m->type == WIRE_UNKNOWN;
	if (m->type != WIRE_TOOL_CALL)
		return;
	int r = tool_calls_dispatch(h->b.calls, m->call, m->tool.data, m->args.data, m->args.len,
				    &a, NULL);
	ASSERT(r >= 0);
	if (r > 0)
		answer(h, &a);
}

static void step(struct host *h, short wire_revents)
{
	cleanup_error struct cordon_error *e = NULL;
	struct wire_message m;
	struct tool_calls_answer a;
	int r = 0;

	if (wire_revents & (POLLIN | POLLHUP))
		r = wire_fill(h->w, &e);
	if (r >= 0 && wire_revents & POLLOUT)
		r = wire_flush(h->w, &e);
	while (r >= 0 && !h->outcome && (r = wire_next(h->w, &m, &e)) > 0)
		take(h, &m);
	if (r < 0) {
		h->outcome = BROKEN;
		ASSERT(str_copy(h->error, sizeof(h->error), cordon_error_message(e)));
	} else if (!h->outcome && wire_is_closed(h->w)) {
		h->outcome = CLOSED;
	}
	while (tool_calls_next(h->b.calls, &a, NULL) > 0)
		answer(h, &a);
}

/* The session's loop, until the guest is through or broke the rules. */
static void serve(struct host *h, uint64_t tool_calls)
{
	long before = peak_kb();

	wire_begin(h->w, 1, tool_calls);
	tool_calls_begin(h->b.calls, tool_calls);
	step(h, 0); /* what came along with the hello */
	while (!h->outcome) {
		struct pollfd p[] = { { .fd = wire_fd(h->w), .events = wire_events(h->w) },
				      { .fd = tool_calls_fd(h->b.calls), .events = POLLIN } };
		ASSERT(poll(p, 2, 15000) > 0);
		step(h, p[0].revents);
	}
	h->grown_kb = peak_kb() - before;
}

static void run(struct host *h, void (*guest)(int fd), uint64_t tool_calls)
{
	struct wire_options opts = { .token = TOKEN };
	struct wire_message m;
	int fds[2];

	*h = (struct host){ 0 };
	bench_init(&h->b, tools_new(), NULL);
	tools_put(h->b.tools,
		  (struct cordon_tool){ .name = "add",
					.fn = add_numbers,
					.arg = &h->seen,
					.args_json = "{\"a\":\"number\",\"b\":\"number\"}" });
	bench_open(&h->b, NULL, NULL, NULL);
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	h->guest = fork();
	ASSERT(h->guest >= 0);
	if (h->guest == 0) {
		close(fds[0]);
		signal(SIGPIPE, SIG_DFL);
		(void)!write(fds[1], HELLO, strlen(HELLO));
		guest(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	ASSERT_EQ(wire_new(fds[0], &opts, &h->w, NULL), 0);
	while (wire_next(h->w, &m, NULL) == 0) {
		struct pollfd p = { .fd = wire_fd(h->w), .events = POLLIN };
		ASSERT(poll(&p, 1, 5000) > 0);
		ASSERT(wire_fill(h->w, NULL) >= 0);
	}
	serve(h, tool_calls);
	wire_free(h->w);
	bench_done(&h->b);
	ASSERT_EQ(waitpid(h->guest, NULL, 0), h->guest);
}

static void say(int fd, const char *text)
{
	if (file_write_all(fd, text, strlen(text)) < 0)
		_exit(1);
}

/* Reads answers until there are this many. */
static void hear(int fd, int lines)
{
	char chunk[4096];

	while (lines > 0) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			_exit(1);
		for (ssize_t i = 0; i < n; i++)
			lines -= chunk[i] == '\n';
	}
}

static void good_guest(int fd)
{
	say(fd, GOOD("1") GOOD("2"));
	hear(fd, 2);
	say(fd, END);
}

TEST(a_good_guest)
{
	struct host h;
	run(&h, good_guest, UINT64_MAX);
	ASSERT_EQ(h.outcome, ENDED);
	ASSERT_EQ(h.values, 2);
	ASSERT_EQ(h.seen.calls, 2);
}

static void wrong_calls(int fd)
{
	say(fd,
	    CALL("1", "\"tool\":\"nope\"") CALL("2",
						"\"tool\":\"add\",\"args\":{\"a\":\"x\",\"b\":1}")
		    CALL("3", "\"tool\":\"add\",\"args\":{\"a\":1,\"b\":1,\"c\":1}")
			    CALL("4", "\"tool\":\"add\"") CALL("5", "\"tool\":\"\",\"args\":null")
				    CALL("6", "\"tool\":\"add\",\"args\":{\"a\":{\"$\":\"float\","
					      "\"v\":[]},\"b\":1}"));
	hear(fd, 6);
	say(fd, "{\"type\":\"tool_result\",\"id\":1,\"call\":1,\"value\":1}\n" END);
}

TEST(wrong_calls_never_reach_a_handler)
{
	struct host h;
	run(&h, wrong_calls, UINT64_MAX);
	ASSERT_EQ(h.outcome, ENDED);
	ASSERT_EQ(h.seen.calls, 0);
	ASSERT_EQ(h.errors, 6);
	ASSERT_EQ(h.unknown, 1);
}

static void replays(int fd)
{
	say(fd, GOOD("1") GOOD("1") GOOD("1"));
	hear(fd, 1);
	say(fd, GOOD("1") "{\"type\":\"tool_call\",\"id\":2,\"call\":2,\"tool\":\"add\","
			  "\"args\":{\"a\":1,\"b\":1}}\n"
			  "{\"type\":\"result\",\"id\":9,\"ok\":true}\n" END);
}

TEST(replays_are_answered_once)
{
	struct host h;
	run(&h, replays, UINT64_MAX);
	ASSERT_EQ(h.outcome, ENDED);
	ASSERT_EQ(h.seen.calls, 1);
	ASSERT_EQ(h.values, 1);
}

static void call_forever(int fd)
{
	char line[200];

	for (int i = 1;; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":1,\"call\":%d,"
			 "\"tool\":\"add\",\"args\":{\"a\":1,\"b\":1}}\n",
			 i);
		say(fd, line);
		hear(fd, 1);
	}
}

TEST(calls_over_the_budget_end_it)
{
	struct host h;
	run(&h, call_forever, 3);
	ASSERT_EQ(h.outcome, BROKEN);
	ASSERT_STREQ(h.error, "Maximum IPC messages (40) exceeded; possible flood attack");
	ASSERT_EQ(h.seen.calls, 3);
	ASSERT_EQ(h.errors, 40);
}

static void half_frame(int fd)
{
	say(fd, "{\"type\":\"tool_call\",\"id\":1,");
}

static void close_at_once(int fd)
{
	close(fd);
}

TEST(closing_early_is_seen)
{
	struct host h;
	run(&h, half_frame, UINT64_MAX);
	ASSERT_EQ(h.outcome, CLOSED);
	run(&h, close_at_once, UINT64_MAX);
	ASSERT_EQ(h.outcome, CLOSED);
}

static void endless_line(int fd)
{
	static char junk[1 << 20];

	memset(junk, 'x', sizeof(junk) - 1);
	say(fd, "{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":\"");
	for (int i = 0; i < 1024; i++)
		say(fd, junk);
}

TEST(a_gigabyte_without_newline)
{
	struct host h;
	run(&h, endless_line, UINT64_MAX);
	ASSERT_EQ(h.outcome, BROKEN);
	ASSERT(strstr(h.error, "IPC message too large (") && strstr(h.error, "max 8388608)"));
	ASSERT(h.grown_kb < 40000);
}

static void deep(int fd)
{
	static char line[300000];
	int n = sprintf(line,
			"{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"add\",\"args\":");

	for (int i = 0; i < 40000; i++)
		n += sprintf(line + n, "{\"a\":");
	n += sprintf(line + n, "1");
	for (int i = 0; i < 40001; i++)
		line[n++] = '}';
	line[n++] = '\n';
	say(fd, line);
}

TEST(deep_nesting)
{
	struct host h;
	run(&h, deep, UINT64_MAX);
	ASSERT_EQ(h.outcome, BROKEN);
	ASSERT_STREQ(h.error, "Malformed IPC message: nested deeper than 64 levels");
	ASSERT_EQ(h.seen.calls, 0);
}

static void junk_messages(int fd)
{
	for (int i = 0; i < 100000; i++)
		say(fd, "{\"type\":\"junk\",\"x\":[[],[],[],[],[]]}\n");
	say(fd, END);
}

TEST(a_hundred_thousand_junk_messages)
{
	struct host h;
	run(&h, junk_messages, UINT64_MAX);
	ASSERT_EQ(h.outcome, BROKEN);
	ASSERT_STREQ(h.error, "Maximum IPC messages (10000) exceeded; possible flood attack");
	ASSERT(h.grown_kb < 4000);
}

static void many_values(int fd)
{
	static char line[1 << 20];
	int n = sprintf(
		line,
		"{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"add\",\"args\":{\"a\":[");

	while (n < 1000000)
		n += sprintf(line + n, "{},");
	n += sprintf(line + n, "{}],\"b\":1}}\n");
	say(fd, line);
	hear(fd, 1);
	say(fd, END);
}

TEST(a_megabyte_of_empty_objects)
{
	struct host h;
	run(&h, many_values, UINT64_MAX);
	ASSERT_EQ(h.outcome, ENDED);
	ASSERT_EQ(h.errors, 1);
	ASSERT_EQ(h.seen.calls, 0);
#ifndef __SANITIZE_ADDRESS__
	ASSERT(h.grown_kb < 200000);
#endif
}

static void ask_and_never_listen(int fd)
{
	char line[200];

	for (int i = 1; i <= 200000; i++) {
		snprintf(line, sizeof(line),
			 "{\"type\":\"tool_call\",\"id\":1,\"call\":%d,"
			 "\"tool\":\"add\",\"args\":{\"a\":1,\"b\":1}}\n",
			 i);
		if (send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			usleep(300000); /* the host is waiting for us: it must not be in pain */
			_exit(0);
		}
	}
}

TEST(a_guest_that_never_listens)
{
	struct host h;
	run(&h, ask_and_never_listen, UINT64_MAX);
	ASSERT_EQ(h.outcome, CLOSED);
#ifndef __SANITIZE_ADDRESS__
	ASSERT(h.grown_kb < 8000);
#endif
}

static void random_bytes_guest(int fd)
{
	unsigned state = 12345;
	char bytes[5000];

	for (size_t i = 0; i < sizeof(bytes); i++) {
		state = state * 1103515245 + 12345;
		bytes[i] = (char)(state >> 16);
	}
	(void)file_write_all(fd, bytes, sizeof(bytes));
	say(fd, "\n");
}

TEST(garbage)
{
	struct host h;
	run(&h, random_bytes_guest, UINT64_MAX);
	ASSERT_EQ(h.outcome, BROKEN);
	ASSERT(str_starts(h.error, "Malformed IPC message: "));
}

/* cli/outlet.c - see outlet.h. */
#include "cli/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

void outlet_begin(struct outlet *o, const struct cordon_policy *p)
{
	*o = (struct outlet){ .policy = p, .started = clock_now_ns() };
	for (int i = 0; i < 2; i++) {
		buf_init(&o->rest[i], SIZE_MAX / 2);
		o->is_shown[i] = isatty(i + 1);
	}
}

void outlet_done(struct outlet *o)
{
	progress_end(&o->waiting);
	for (int i = 0; i < 2; i++)
		buf_done(&o->rest[i]);
}

/* Computed only if a reader makes us wait. */
static deadline_ns deadline_of(struct outlet *o)
{
	if (o->deadline)
		return o->deadline;
	cleanup_free char *text = cordon_policy_json(o->policy);
	cleanup_json json_t *j = NULL;
	if (text && json_parse(text, strlen(text), 0, &j, NULL) == 0) {
		json_int_t ms = json_integer_value(json_object_get(j, "timeout_ms"));
		o->deadline = ms > 0 ? o->started + (deadline_ns)ms * 1000000 : UINT64_MAX;
	} else {
		o->deadline = o->started;
	}
	return o->deadline;
}

/* Waits until fd can be written, at most until the code's deadline. True also for a closed
 * descriptor: the write then reports the error. */
static bool is_ready(struct outlet *o, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int r = poll(&p, 1, 0);

	while (r == 0 || (r < 0 && errno == EINTR)) {
		deadline_ns d = deadline_of(o);
		if (d != UINT64_MAX && deadline_is_over(d))
			return false;
		r = poll(&p, 1, d == UINT64_MAX ? -1 : deadline_poll_ms(d));
	}
	return true;
}

/* A reader that closed its end is not an error: the result still counts. */
static void write_out(struct outlet *o, int fd, const char *bytes, size_t len)
{
	int r = file_write_all(fd, bytes, len);

	if (r < 0 && r != -EPIPE && fd == STDOUT_FILENO)
		o->failed = -r;
}

void outlet_pass(int stream, const char *bytes, size_t len, void *arg)
{
	struct outlet *o = arg;
	struct buf *rest = &o->rest[stream - 1];

	if (o->is_shown[stream - 1])
		progress_end(&o->waiting);
	while (len > 0 && rest->len == 0 && is_ready(o, stream)) {
		size_t n = len < PIPE_BUF ? len : PIPE_BUF; /* a pipe takes this much at once */
		write_out(o, stream, bytes, n);
		bytes += n;
		len -= n;
	}
	if (len > 0 && buf_add(rest, bytes, len) < 0)
		o->failed = ENOMEM;
}

void outlet_end(struct outlet *o, const char *line)
{
	for (int i = 0; i < 2; i++)
		if (o->rest[i].len > 0)
			write_out(o, i + 1, o->rest[i].data, o->rest[i].len);
	if (!line)
		return;
	write_out(o, STDOUT_FILENO, line, strlen(line));
	write_out(o, STDOUT_FILENO, "\n", 1);
}

/* inside/pod/runtime/input.c - see input.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK = 65536 };

static void stop(struct input *i)
{
	if (i->feed >= 0)
		close(i->feed);
	i->feed = -1;
	i->at = i->kept = 0;
}

void input_given(struct input *i)
{
	if (i->guest > 2)
		close(i->guest);
	i->guest = -1;
}

void input_close(struct input *i)
{
	if (i->feed >= 0)
		stop(i);
	input_given(i);
}

void input_open(struct input *i, struct json spec, int null)
{
	uint64_t bytes = json_number(json_get(spec, "bytes"), 0);
	int pair[2];

	input_close(i);
	i->from = json_number(json_get(spec, "from"), 0);
	i->until = i->from + bytes;
	if (!i->chunk)
		i->chunk = bytes ? malloc(CHUNK) : NULL;
	if (json_kind(spec) == 't') {
		i->guest = 0;
	} else if (bytes && i->chunk && !pipe2(pair, O_CLOEXEC)) {
		fcntl(pair[1], F_SETFL, O_NONBLOCK); /* the guest's end blocks, ours does not */
		i->guest = pair[0];
		i->feed = pair[1];
	} else {
		i->guest = fcntl(null, F_DUPFD_CLOEXEC, 3);
	}
}

struct pollfd input_poll(const struct input *i)
{
	if (i->feed < 0)
		return (struct pollfd){ .fd = -1 };
	if (i->at < i->kept)
		return (struct pollfd){ .fd = i->feed, .events = POLLOUT };
	return (struct pollfd){ .fd = 0, .events = POLLIN };
}

static void pass_on(struct input *i)
{
	ssize_t n = write(i->feed, i->chunk + i->at, i->kept - i->at);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		stop(i); /* the reader is gone */
	else if (n > 0)
		i->at += (size_t)n;
}

static void take(struct input *i)
{
	bool is_old = i->seen < i->from;
	uint64_t want = (is_old ? i->from : i->until) - i->seen;
	ssize_t n = read(0, i->chunk, want < CHUNK ? want : CHUNK);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		i->until = i->seen; /* the host closed it */
		return;
	}
	i->seen += (uint64_t)n;
	i->at = 0;
	i->kept = is_old ? 0 : (size_t)n;
}

void input_feed(struct input *i)
{
	if (i->feed < 0)
		return; /* the execution has just ended */
	if (i->at < i->kept)
		pass_on(i);
	else
		take(i);
	if (i->feed >= 0 && i->at == i->kept && i->seen >= i->until)
		stop(i);
}

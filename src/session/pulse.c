/* session/pulse.c - see pulse.h. */
#include "session/pulse.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* LOOK_MS: how long nothing may arrive before the processes are checked. STOPS: how many checks in
 * a row must find them stopped, because the processes of a program that is continued at a terminal
 * continue one after the other. FULLS: the same for a place without room; long enough for a guest
 * that needs no more processes than it has. */
enum { LOOK_MS = 500, STOPS = 2, FULLS = 20 };

struct pulse pulse_begin(const struct box *carrier, deadline_ns deadline)
{
	return (struct pulse){ .carrier = carrier, .deadline = deadline };
}

/* The next wait ends at the next check, or at the deadline if that comes first. */
static deadline_ns next_look(const struct pulse *p)
{
	deadline_ns look = deadline_after_ms(LOOK_MS);

	return p->deadline && p->deadline < look ? p->deadline : look;
}

static bool is_full(const struct pulse *p)
{
	return p->place && box_processes(p->place, BOX_TASKS_NOW, p->tasks_max) + 1 >= p->tasks_max;
}

/* Called when nothing arrived in time. */
static int look(struct pulse *p, struct cordon_error **reterr)
{
	p->stops = p->carrier && box_is_stopped(p->carrier) ? p->stops + 1 : 0;
	if (p->stops >= STOPS)
		return err_set(reterr, CORDON_STATE, "the sandbox was stopped while it started");
	p->fulls = is_full(p) ? p->fulls + 1 : 0;
	if (p->fulls >= FULLS)
		return err_set(reterr, CORDON_LIMIT, "it did not start");
	if (deadline_is_over(p->deadline))
		return err_set(reterr, CORDON_TIMEOUT, "the sandbox did not start in time");
	return 0;
}

int pulse_wait(struct pulse *p, int fd, short events, struct cordon_error **reterr)
{
	for (;;) {
		struct pollfd one = { .fd = fd, .events = events };
		int n = poll(&one, 1, deadline_poll_ms(next_look(p)));

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return err_set(reterr, CORDON_OS, "wait for the sandbox: %s",
				       strerror(errno));
		int r = look(p, reterr);
		if (r < 0)
			return r;
	}
}

int pulse_wait_ready(struct pulse *p, struct box *b, struct cordon_error **reterr)
{
	for (;;) {
		struct cordon_error *e = NULL;
		int r = box_wait_ready(b, next_look(p), &e);

		if (r != -CORDON_TIMEOUT) {
			if (reterr)
				*reterr = e;
			else
				cordon_error_free(e);
			return r;
		}
		cordon_error_free(e);
		r = look(p, reterr);
		if (r < 0)
			return r;
	}
}

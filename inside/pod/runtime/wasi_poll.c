/* inside/pod/runtime/wasi_poll.c - waits for clocks and descriptors, for a WASI program. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/wasi.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "inside/pod/runtime/signals.h"

#define SUBSCRIPTION 48
#define EVENT 32
#define MAX_SUBSCRIPTIONS 1024
#define SECOND 1000000000ull
#define FOREVER (400ull * 86400 * SECOND) /* longer than anything that waits here lives */

enum kind { KIND_CLOCK, KIND_READ, KIND_WRITE };

struct subscription {
	uint64_t data;
	uint8_t kind;
	int fd;           /* of this process */
	uint64_t wait_ns; /* of a clock, from now */
	uint16_t error;   /* it is already due, with this error */
	bool has_failed;
};

struct poller {
	struct subscription *all;
	struct pollfd *fds;
	uint32_t count;
	uint64_t wait_ns; /* the shortest clock */
	bool has_clock, is_ready;
};

static uint64_t get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof v);
	return v;
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof v);
	return v;
}

static void read_clock(struct poller *w, struct subscription *s, const uint8_t *in)
{
	uint32_t clock = get32(in + 16);
	uint64_t until = get64(in + 24);
	bool is_absolute = in[40] & 1;
	struct timespec ts;

	if (clock > 1 || clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &ts)) {
		s->error = clock > 3 ? WASI_INVAL : WASI_NOTSUP;
		s->has_failed = w->is_ready = true;
		return;
	}
	if (is_absolute) {
		uint64_t now = (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;

		until = until > now ? until - now : 0;
	}
	s->wait_ns = until < FOREVER ? until : FOREVER;
	if (!w->has_clock || s->wait_ns < w->wait_ns)
		w->wait_ns = s->wait_ns;
	w->has_clock = true;
}

static uint32_t read_one(struct w2c_sys *p, struct poller *w, const uint8_t *in, uint32_t i)
{
	struct subscription *s = &w->all[i];
	struct wasi_fd *f;

	s->data = get64(in);
	s->kind = in[8];
	w->fds[i].fd = -1;
	if (s->kind == KIND_CLOCK) {
		read_clock(w, s, in);
		return WASI_OK;
	}
	if (s->kind > KIND_WRITE)
		return WASI_INVAL;
	s->error = (uint16_t)wasi_find(p, get32(in + 16), WASI_POLL, &f);
	if (s->error) {
		s->has_failed = w->is_ready = true;
		return WASI_OK;
	}
	s->fd = w->fds[i].fd = f->fd;
	w->fds[i].events = s->kind == KIND_READ ? POLLIN : POLLOUT;
	return WASI_OK;
}

static uint64_t bytes_of(const struct subscription *s)
{
	struct stat st;
	int n = 0;

	if (s->kind == KIND_WRITE)
		return 4096;
	if (!fstat(s->fd, &st) && S_ISREG(st.st_mode)) {
		off_t at = lseek(s->fd, 0, SEEK_CUR);

		return at >= 0 && at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
	}
	return ioctl(s->fd, FIONREAD, &n) || n < 0 ? 0 : (uint64_t)n;
}

/* True if the event is due; has_elapsed: the shortest clock has expired. */
static bool fill_event(const struct poller *w, uint32_t i, bool has_elapsed, uint8_t out[EVENT])
{
	const struct subscription *s = &w->all[i];
	short seen = w->fds[i].revents;
	uint16_t error = s->error, hangup = 0;
	uint64_t bytes = 0;

	if (!s->has_failed && s->kind == KIND_CLOCK && !(has_elapsed && s->wait_ns <= w->wait_ns))
		return false;
	if (!s->has_failed && s->kind != KIND_CLOCK) {
		if (!seen)
			return false;
		bytes = bytes_of(s);
		hangup = seen & POLLHUP ? 1 : 0;
		error = seen & POLLNVAL ? WASI_BADF : seen & POLLERR ? 64 /* EPIPE */ : 0;
	}
	memset(out, 0, EVENT);
	memcpy(out, &s->data, 8);
	memcpy(out + 8, &error, 2);
	out[10] = s->kind;
	memcpy(out + 16, &bytes, 8);
	memcpy(out + 24, &hangup, 2);
	return true;
}

static uint32_t wait(struct w2c_sys *p, struct poller *w, const uint64_t a[WASI_ARGS])
{
	struct timespec ts = { 0 };
	uint32_t events = 0;
	int64_t r;

	if (!w->is_ready) {
		ts.tv_sec = (time_t)(w->wait_ns / SECOND);
		ts.tv_nsec = (long)(w->wait_ns % SECOND);
	}
	r = signals_call(SYS_ppoll, (long)w->fds, w->count,
			 w->is_ready || w->has_clock ? (long)&ts : 0, 0, 8, 0);
	if (r < 0)
		return wasi_error(r);
	for (uint32_t i = 0; i < w->count; i++) {
		uint8_t event[EVENT];

		if (fill_event(w, i, !r && !w->is_ready, event) &&
		    !wasi_put(p, a[1] + (uint64_t)EVENT * events++, event, EVENT))
			return WASI_FAULT;
	}
	return wasi_put32(p, a[3], events) ? WASI_OK : WASI_FAULT;
}

WASI_FN(poll_oneoff)
{
	struct poller w = { .count = (uint32_t)a[2] };
	const uint8_t *in;
	uint32_t e = WASI_OK;

	if (!w.count || w.count > MAX_SUBSCRIPTIONS)
		return WASI_INVAL;
	in = wasi_at(p, a[0], (uint64_t)SUBSCRIPTION * w.count);
	if (!in || !wasi_at(p, a[1], (uint64_t)EVENT * w.count) || !wasi_at(p, a[3], 4))
		return WASI_FAULT;
	w.all = calloc(w.count, sizeof *w.all);
	w.fds = calloc(w.count, sizeof *w.fds);
	if (w.all && w.fds) {
		for (uint32_t i = 0; !e && i < w.count; i++)
			e = read_one(p, &w, in + (size_t)SUBSCRIPTION * i, i);
		if (!e)
			e = wait(p, &w, a);
	} else {
		e = wasi_error(-ENOMEM);
	}
	free(w.all);
	free(w.fds);
	return e;
}

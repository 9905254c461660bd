/* base/linux/loop.c - see loop.h: over epoll. Every source is a descriptor: timers are timerfds,
 * and loop_wake is an eventfd. */
#include "base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/mem.h"

/* Equal numbers, so that events need no translation. */
_Static_assert(LOOP_IN == (int)EPOLLIN && LOOP_OUT == (int)EPOLLOUT && LOOP_ERR == (int)EPOLLERR &&
		       LOOP_HUP == (int)EPOLLHUP,
	       "the kernel's numbers");

enum source_kind { SOURCE_FD, SOURCE_TIMER };

struct loop_source {
	struct loop *loop;
	struct loop_source *prev, *next;
	enum source_kind kind;
	int fd;
	bool is_removed; /* in the graveyard until the current batch of events is done */
	union {
		loop_fd_fn fd_fn;
		loop_timer_fn timer_fn;
	};
	void *arg;
};

struct wake {
	struct wake *next;
	loop_timer_fn fn;
	void *arg;
};

struct loop {
	int epoll_fd, wake_fd;
	bool is_stopped, is_dispatching;
	struct loop_source *first, *graveyard;
	pthread_mutex_t wake_lock;
	struct wake *wakes, **last_wake;
};

int loop_new(struct loop **ret, struct cordon_error **reterr)
{
	cleanup_loop struct loop *l = mem_alloc(sizeof(*l));
	if (!l)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	l->last_wake = &l->wakes;
	(void)pthread_mutex_init(&l->wake_lock, NULL);
	l->wake_fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return err_errno(reterr, errno, "epoll_create1");
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		return err_errno(reterr, errno, "eventfd");
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &ev) < 0)
		return err_errno(reterr, errno, "watch the eventfd");
	*ret = TAKE_PTR(l);
	return 0;
}

static void free_list(struct loop_source *s)
{
	while (s) {
		struct loop_source *next = s->next;
		free(s);
		s = next;
	}
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	while (l->first)
		(void)loop_source_remove(l->first);
	free_list(l->graveyard);
	while (l->wakes) {
		struct wake *next = l->wakes->next;
		free(l->wakes);
		l->wakes = next;
	}
	(void)pthread_mutex_destroy(&l->wake_lock);
	close_fdp(&l->wake_fd);
	close_fdp(&l->epoll_fd);
	free(l);
	return NULL;
}

/* Adds a source whose other fields are those of proto. Takes ownership of fd (except SOURCE_FD's),
 * also on failure. */
static int add(struct loop *l, const struct loop_source *proto, uint32_t events,
	       struct loop_source **ret, struct cordon_error **reterr)
{
	cleanup_close int own = proto->kind == SOURCE_FD ? -1 : proto->fd;
	cleanup_free struct loop_source *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*s = *proto;
	s->loop = l;
	struct epoll_event ev = { .events = events, .data.ptr = s };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) < 0)
		return err_errno(reterr, errno, "watch descriptor %d", s->fd);
	s->next = l->first;
	if (s->next)
		s->next->prev = s;
	l->first = s;
	own = -1;
	if (ret)
		*ret = s;
	s = NULL;
	return 0;
}

int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *arg,
		struct loop_source **ret, struct cordon_error **reterr)
{
	struct loop_source s = { .kind = SOURCE_FD, .fd = fd, .fd_fn = fn, .arg = arg };

	return add(l, &s, events, ret, reterr);
}

int loop_change_fd(struct loop_source *s, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	return epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev) < 0 ? -CORDON_OS : 0;
}

int loop_add_timer(struct loop *l, deadline_ns at, loop_timer_fn fn, void *arg,
		   struct loop_source **ret, struct cordon_error **reterr)
{
	enum { NS_PER_SECOND = 1000000000 };
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(at / NS_PER_SECOND),
						 .tv_nsec = (long)(at % NS_PER_SECOND) } };
	struct loop_source s = { .kind = SOURCE_TIMER, .timer_fn = fn, .arg = arg };

	s.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s.fd < 0)
		return err_errno(reterr, errno, "timerfd_create");
	/* 0 means never: an all-zero time leaves a timerfd unarmed. */
	if (timerfd_settime(s.fd, TFD_TIMER_ABSTIME, &when, NULL) < 0) {
		int os_errno = errno;
		(void)close(s.fd);
		return err_errno(reterr, os_errno, "timerfd_settime");
	}
	return add(l, &s, EPOLLIN, ret, reterr);
}

struct loop_source *loop_source_remove(struct loop_source *s)
{
	if (!s || s->is_removed)
		return NULL;
	struct loop *l = s->loop;
	s->is_removed = true;
	/* Before the descriptor is closed: epoll follows the open file, not the number. */
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->kind != SOURCE_FD)
		(void)close(s->fd);
	if (s->prev)
		s->prev->next = s->next;
	else
		l->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (l->is_dispatching) {
		/* Events of this batch may still point to it. */
		s->next = l->graveyard;
		l->graveyard = s;
	} else {
		free(s);
	}
	return NULL;
}

static void dispatch(struct loop *l, struct loop_source *s, uint32_t events)
{
	uint64_t count;

	switch (s->kind) {
	case SOURCE_FD:
		s->fd_fn(l, s->fd, events, s->arg);
		break;
	case SOURCE_TIMER:
		if (read(s->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
			s->timer_fn(l, s->arg);
		break;
	}
}

static void run_wakes(struct loop *l)
{
	uint64_t count;

	(void)!read(l->wake_fd, &count, sizeof(count));
	(void)pthread_mutex_lock(&l->wake_lock);
	struct wake *w = l->wakes;
	l->wakes = NULL;
	l->last_wake = &l->wakes;
	(void)pthread_mutex_unlock(&l->wake_lock);
	while (w) {
		struct wake *next = w->next;
		w->fn(l, w->arg);
		free(w);
		w = next;
	}
}

int loop_run(struct loop *l, struct cordon_error **reterr)
{
	enum { BATCH = 64 };
	struct epoll_event ready[BATCH];

	while (!l->is_stopped) {
		int n = epoll_wait(l->epoll_fd, ready, BATCH, -1);
		if (n < 0 && errno != EINTR)
			return err_errno(reterr, errno, "epoll_wait");
		l->is_dispatching = true;
		for (int i = 0; i < n && !l->is_stopped; i++) {
			struct loop_source *s = ready[i].data.ptr;
			if (!s)
				run_wakes(l);
			else if (!s->is_removed)
				dispatch(l, s, ready[i].events);
		}
		l->is_dispatching = false;
		free_list(l->graveyard);
		l->graveyard = NULL;
	}
	l->is_stopped = false;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->is_stopped = true;
}

int loop_wake(struct loop *l, loop_timer_fn fn, void *arg)
{
	struct wake *w = mem_alloc(sizeof(*w));
	uint64_t one = 1;

	if (!w)
		return -CORDON_NOMEM;
	w->fn = fn;
	w->arg = arg;
	(void)pthread_mutex_lock(&l->wake_lock);
	*l->last_wake = w;
	l->last_wake = &w->next;
	(void)pthread_mutex_unlock(&l->wake_lock);
	/* EAGAIN: the counter is full, so the loop wakes up anyway. */
	(void)!write(l->wake_fd, &one, sizeof(one));
	return 0;
}

/* serve/http/hangup.c - see hangup.h. */
#include "serve/http/hangup.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"

struct hangup {
	int set_fd, end_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the list, and is held while an fn runs */
	struct hangup_entry *first;
};

/* Called with the lock held. */
static void forget(struct hangup *h, struct hangup_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		h->first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	e->prev = e->next = NULL;
	e->is_watched = false;
	os_watch_remove(h->set_fd, e->fd);
}

/* The tag may be of an entry that was removed meanwhile, so it is looked for. */
static void tell(struct hangup *h, const void *tag)
{
	struct hangup_entry *e;

	pthread_mutex_lock(&h->lock);
	for (e = h->first; e && e != tag; e = e->next)
		;
	if (e) {
		forget(h, e);
		e->fn(e->arg);
	}
	pthread_mutex_unlock(&h->lock);
}

static void *watch(void *arg)
{
	struct hangup *h = arg;
	struct pollfd p[2] = { { .fd = h->set_fd, .events = POLLIN },
			       { .fd = h->end_fd, .events = POLLIN } };
	void *tag;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		while (os_watch_next(h->set_fd, &tag))
			tell(h, tag);
	}
}

int hangup_new(struct hangup **ret, struct cordon_error **reterr)
{
	struct hangup *h = mem_alloc(sizeof(*h));

	if (!h)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	pthread_mutex_init(&h->lock, NULL);
	h->set_fd = os_watch_open();
	h->end_fd = os_event_open();
	int problem = h->set_fd < 0 || h->end_fd < 0 ? EMFILE
						     : pthread_create(&h->thread, NULL, watch, h);
	if (problem) {
		close_fdp(&h->set_fd);
		close_fdp(&h->end_fd);
		free(h);
		return err_errno(reterr, problem, "watch connections");
	}
	*ret = h;
	return 0;
}

struct hangup *hangup_free(struct hangup *h)
{
	if (!h)
		return NULL;
	(void)os_event_set(h->end_fd);
	(void)pthread_join(h->thread, NULL);
	close(h->set_fd);
	close(h->end_fd);
	pthread_mutex_destroy(&h->lock);
	free(h);
	return NULL;
}

bool hangup_add(struct hangup *h, struct hangup_entry *e)
{
	pthread_mutex_lock(&h->lock);
	bool is_open = !e->is_ended;
	if (is_open && !e->is_watched && os_watch_add_hangup(h->set_fd, e->fd, e) == 0) {
		e->is_watched = true;
		e->prev = NULL;
		e->next = h->first;
		if (e->next)
			e->next->prev = e;
		h->first = e;
	}
	pthread_mutex_unlock(&h->lock);
	return is_open;
}

void hangup_remove(struct hangup *h, struct hangup_entry *e)
{
	pthread_mutex_lock(&h->lock);
	if (e->is_watched)
		forget(h, e);
	pthread_mutex_unlock(&h->lock);
}

void hangup_end(struct hangup *h, struct hangup_entry *e)
{
	pthread_mutex_lock(&h->lock);
	e->is_ended = true;
	if (e->is_watched) {
		forget(h, e);
		e->fn(e->arg);
	}
	pthread_mutex_unlock(&h->lock);
}

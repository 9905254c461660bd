/* net/gateway/resolve.c - see resolve.h. */
#include "net/gateway/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct resolve_job {
	struct resolver *owner;
	struct resolve_job *next;
	struct host name;
	struct resolve_result result;
	resolve_fn fn;
	void *arg;
	bool is_cancelled, is_known;
	bool is_waiting; /* for a thread; guarded by the resolver's lock */
};

struct entry {
	struct host name;
	struct resolve_result result;
	deadline_ns until; /* 0: for ever */
};

struct resolver {
	struct loop *loop;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct resolve_job *first, **last; /* waiting for a thread */
	unsigned waiting;
	resolve_lookup_fn look_up;
	pthread_t threads[RESOLVE_THREADS];
	unsigned thread_count, idle;
	bool is_stopping;
	struct entry cache[RESOLVE_CACHE]; /* used only by the loop's thread */
	unsigned next_entry;
};

static void look_up(const struct host *name, struct resolve_result *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	struct addrinfo *list = NULL;
	char absolute[HOST_TEXT_SIZE + 1];
	uint16_t port;

	/* The trailing dot makes the name absolute, so no search list is tried. */
	(void)snprintf(absolute, sizeof(absolute), "%s.", name->name);
	int r = getaddrinfo(absolute, NULL, &hints, &list);
	if (r != 0) {
		(void)str_copy(ret->problem, sizeof(ret->problem), gai_strerror(r));
		return;
	}
	for (struct addrinfo *a = list; a && ret->count < RESOLVE_ADDRESSES; a = a->ai_next)
		ret->count += address_from_sockaddr(a->ai_addr, &ret->addresses[ret->count], &port);
	freeaddrinfo(list);
	if (ret->count == 0)
		(void)str_copy(ret->problem, sizeof(ret->problem), "no address");
}

int resolver_new(struct loop *l, struct resolver **ret, struct cordon_error **reterr)
{
	struct resolver *r = mem_alloc(sizeof(*r));
	if (!r)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r->loop = l;
	r->look_up = look_up;
	r->last = &r->first;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->work, NULL);
	*ret = r;
	return 0;
}

static void keep(struct resolver *r, const struct resolve_job *j)
{
	struct entry *e = NULL;

	for (unsigned i = 0; i < RESOLVE_CACHE && !e; i++)
		if (strcmp(r->cache[i].name.name, j->name.name) == 0)
			e = &r->cache[i];
	for (unsigned i = 0; i < RESOLVE_CACHE && !e; i++) {
		struct entry *slot = &r->cache[r->next_entry++ % RESOLVE_CACHE];
		if (!slot->name.name[0] || slot->until != 0)
			e = slot;
	}
	if (e)
		*e = (struct entry){ j->name, j->result, deadline_after_ms(RESOLVE_KEEP_MS) };
}

/* Runs on the loop's thread. */
static void deliver(struct loop *l, void *arg)
{
	struct resolve_job *j = arg;

	(void)l;
	if (!j->is_known && j->result.count > 0)
		keep(j->owner, j);
	if (!j->is_cancelled)
		j->fn(&j->result, j->arg);
	free(j);
}

/* Called with the lock held. */
static void unlink_job(struct resolver *r, struct resolve_job **p)
{
	struct resolve_job *j = *p;

	*p = j->next;
	if (r->last == &j->next)
		r->last = p;
	j->is_waiting = false;
	r->waiting--;
}

static void *work(void *arg)
{
	struct resolver *r = arg;

	(void)pthread_mutex_lock(&r->lock);
	for (;;) {
		r->idle++;
		while (!r->first && !r->is_stopping)
			(void)pthread_cond_wait(&r->work, &r->lock);
		r->idle--;
		if (r->is_stopping)
			break;
		struct resolve_job *j = r->first;
		unlink_job(r, &r->first);
		(void)pthread_mutex_unlock(&r->lock);
		r->look_up(&j->name, &j->result);
		/* Without memory the job is lost, but its owner can still cancel it. */
		(void)loop_wake(r->loop, deliver, j);
		(void)pthread_mutex_lock(&r->lock);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

struct resolver *resolver_free(struct resolver *r)
{
	if (!r)
		return NULL;
	(void)pthread_mutex_lock(&r->lock);
	r->is_stopping = true;
	(void)pthread_cond_broadcast(&r->work);
	(void)pthread_mutex_unlock(&r->lock);
	for (unsigned i = 0; i < r->thread_count; i++)
		(void)pthread_join(r->threads[i], NULL);
	while (r->first) {
		struct resolve_job *next = r->first->next;
		free(r->first);
		r->first = next;
	}
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_cond_destroy(&r->work);
	free(r);
	return NULL;
}

static struct entry *find(struct resolver *r, const struct host *name)
{
	for (unsigned i = 0; i < RESOLVE_CACHE; i++)
		if (host_equal(&r->cache[i].name, name) &&
		    (r->cache[i].until == 0 || !deadline_is_over(r->cache[i].until)))
			return &r->cache[i];
	return NULL;
}

int resolver_pin(struct resolver *r, const struct host *name, const struct address *a,
		 struct cordon_error **reterr)
{
	struct entry *e = find(r, name);

	if (!e && r->next_entry < RESOLVE_CACHE / 2) {
		e = &r->cache[r->next_entry++];
		e->name = *name;
	}
	if (!e || e->result.count == RESOLVE_ADDRESSES)
		return err_set(reterr, CORDON_LIMIT, "too many pinned addresses");
	e->result.addresses[e->result.count++] = *a;
	return 0;
}

static int enqueue(struct resolver *r, struct resolve_job *j, struct cordon_error **reterr)
{
	int problem = 0;

	(void)pthread_mutex_lock(&r->lock);
	if (r->waiting >= RESOLVE_WAITING) {
		(void)pthread_mutex_unlock(&r->lock);
		return err_set(reterr, CORDON_LIMIT, "%d names wait to be looked up",
			       RESOLVE_WAITING);
	}
	if (r->idle == 0 && r->thread_count < RESOLVE_THREADS) {
		problem = pthread_create(&r->threads[r->thread_count], NULL, work, r);
		r->thread_count += problem == 0;
	}
	if (r->thread_count > 0) {
		j->is_waiting = true;
		r->waiting++;
		*r->last = j;
		r->last = &j->next;
		(void)pthread_cond_signal(&r->work);
	}
	(void)pthread_mutex_unlock(&r->lock);
	return r->thread_count > 0 ? 0 : err_errno(reterr, problem, "start a resolver thread");
}

int resolver_start(struct resolver *r, const struct host *name, resolve_fn fn, void *arg,
		   struct resolve_job **ret, struct cordon_error **reterr)
{
	struct resolve_job *j = mem_alloc(sizeof(*j));
	if (!j)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*j = (struct resolve_job){ .owner = r, .name = *name, .fn = fn, .arg = arg };

	struct entry *known = find(r, name);
	int e;
	if (known) {
		j->is_known = true;
		j->result = known->result;
		e = loop_wake(r->loop, deliver, j);
		if (e < 0)
			(void)err_set(reterr, CORDON_NOMEM, "out of memory");
	} else {
		e = enqueue(r, j, reterr);
	}
	if (e < 0) {
		free(j);
		return e;
	}
	*ret = j;
	return 0;
}

void resolver_cancel(struct resolve_job *j)
{
	struct resolver *r = j->owner;
	struct resolve_job **p = &r->first;

	j->is_cancelled = true;
	(void)pthread_mutex_lock(&r->lock);
	bool was_waiting = j->is_waiting;
	while (was_waiting && *p != j)
		p = &(*p)->next;
	if (was_waiting)
		unlink_job(r, p);
	(void)pthread_mutex_unlock(&r->lock);
	if (was_waiting)
		free(j);
}

void resolver_set_lookup(struct resolver *r, resolve_lookup_fn fn)
{
	r->look_up = fn;
}

unsigned resolver_waiting(struct resolver *r)
{
	(void)pthread_mutex_lock(&r->lock);
	unsigned n = r->waiting;
	(void)pthread_mutex_unlock(&r->lock);
	return n;
}

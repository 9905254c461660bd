/* session/network_stock.c - see network_stock.h. */
#include "session/network_stock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"

struct network_stock {
	const struct policy *policy;
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	struct network_spare *spare; /* NULL: none is ready */
	bool is_busy;                /* a thread starts one */
};

int network_stock_open(const struct policy *p, struct network_stock **ret,
		       struct cordon_error **reterr)
{
	if (!gateway_is_needed(p))
		return 0;
	struct network_stock *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_errno(reterr, ENOMEM, "open the gateway");
	s->policy = p;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	int r = network_spare_new(p, &s->spare, reterr);
	if (r < 0) {
		network_stock_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct network_stock *network_stock_close(struct network_stock *s)
{
	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	while (s->is_busy)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	network_spare_free(s->spare);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

int network_stock_fill(const struct network_stock *s, bool is_pod, struct launch *l,
		       struct cordon_error **reterr)
{
	return s ? network_fill_template(s->spare, s->policy, is_pod, l, reterr) : 0;
}

struct network_spare *network_stock_take(struct network_stock *s)
{
	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	struct network_spare *spare = TAKE_PTR(s->spare);
	pthread_mutex_unlock(&s->lock);
	return spare;
}

static void *renew(void *arg)
{
	struct network_stock *s = arg;
	struct network_spare *spare = NULL;

	(void)network_spare_new(s->policy, &spare, NULL);
	pthread_mutex_lock(&s->lock);
	s->spare = spare;
	s->is_busy = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock); /* the last use of it: whoever closes it waits for this */
	return NULL;
}

/* Signals are blocked, so that they go to the host's own threads. */
void network_stock_renew(struct network_stock *s)
{
	sigset_t all, before;
	pthread_t thread;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	if (!s->spare && !s->is_busy) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		s->is_busy = pthread_create(&thread, NULL, renew, s) == 0;
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (s->is_busy)
			(void)pthread_detach(thread);
	}
	pthread_mutex_unlock(&s->lock);
}

/* serve/http/httpdoor.c - see httpdoor.h. */
#include "serve/http/httpdoor.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/condvar.h"
#include "base/mem.h"

enum { LOOK_MS = 250, HURRY_MS = 1000 };

enum state {
	STATE_UNKNOWN, /* not authenticated */
	STATE_IDLE,    /* authenticated, between two requests */
	STATE_SENDING, /* being served: the body is arriving */
	STATE_SERVED,
	STATE_UPGRADED, /* it speaks another protocol */
};

struct httpdoor_guest {
	int fd;
	enum state state;
	bool is_put_out;
	bool is_hurried;   /* the rest of the body must come within HURRY_MS */
	uint64_t since_ns; /* when this state began */
	struct httpdoor_guest *prev, *next;
};

struct httpdoor {
	pthread_mutex_t lock; /* guards the fields below and the connections */
	pthread_cond_t changed;
	pthread_t thread;
	struct httpdoor_options options;
	struct httpdoor_guest *first;
	unsigned connected, served;
	bool is_over;
};

static bool is_served(const struct httpdoor_guest *g)
{
	return g->state == STATE_SENDING || g->state == STATE_SERVED;
}

/* Whether the door leaves it alone. */
static bool is_kept(const struct httpdoor_guest *g)
{
	return is_served(g) || g->state == STATE_UPGRADED;
}

/* Closes the connection as if the peer had left; its own thread cleans up. Called with the lock
 * held. */
static void put_out(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (g->is_put_out)
		return;
	g->is_put_out = true;
	d->connected--;
	(void)shutdown(g->fd, SHUT_RDWR);
}

static bool is_late(const struct httpdoor *d, const struct httpdoor_guest *g, uint64_t now)
{
	uint64_t most_ms = g->state == STATE_UNKNOWN   ? d->options.header_ms
			   : g->state == STATE_SENDING ? d->options.body_ms
						       : 0;

	if (g->state == STATE_SENDING && g->is_hurried)
		most_ms = HURRY_MS;

	return most_ms && now - g->since_ns > most_ms * 1000000;
}

static void *watch(void *arg)
{
	struct httpdoor *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!d->is_over) {
		uint64_t now = clock_now_ns();
		for (struct httpdoor_guest *g = d->first; g; g = g->next)
			if (is_late(d, g, now))
				put_out(d, g);
		(void)condvar_wait(&d->changed, &d->lock, deadline_after_ms(LOOK_MS));
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

int httpdoor_new(const struct httpdoor_options *o, struct httpdoor **ret,
		 struct cordon_error **reterr)
{
	struct httpdoor *d = mem_alloc(sizeof(*d));

	if (!d)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	d->options = *o;
	pthread_mutex_init(&d->lock, NULL);
	condvar_init(&d->changed);
	int problem = pthread_create(&d->thread, NULL, watch, d);
	if (problem) {
		free(d);
		return err_errno(reterr, problem, "start a thread");
	}
	*ret = d;
	return 0;
}

struct httpdoor *httpdoor_free(struct httpdoor *d)
{
	if (!d)
		return NULL;
	pthread_mutex_lock(&d->lock);
	d->is_over = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	(void)pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return NULL;
}

/* Chooses a connection to close among those not being served: first those without a valid token, of
 * these the oldest. */
static struct httpdoor_guest *find_superfluous(struct httpdoor *d)
{
	struct httpdoor_guest *found = NULL;

	for (struct httpdoor_guest *g = d->first; g; g = g->next) {
		if (g->is_put_out || is_kept(g))
			continue;
		if (!found || g->state < found->state ||
		    (g->state == found->state && g->since_ns <= found->since_ns))
			found = g;
	}
	return found;
}

struct httpdoor_guest *httpdoor_enter(struct httpdoor *d, int fd)
{
	struct httpdoor_guest *g = mem_alloc(sizeof(*g));

	if (!g)
		return NULL;
	g->fd = fd;
	g->since_ns = clock_now_ns();
	pthread_mutex_lock(&d->lock);
	struct httpdoor_guest *other =
		d->connected >= d->options.connected ? find_superfluous(d) : NULL;
	if (other)
		put_out(d, other);
	d->connected++;
	g->next = d->first;
	if (g->next)
		g->next->prev = g;
	d->first = g;
	pthread_mutex_unlock(&d->lock);
	return g;
}

void httpdoor_leave(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	httpdoor_end(d, g);
	pthread_mutex_lock(&d->lock);
	if (g->prev)
		g->prev->next = g->next;
	else
		d->first = g->next;
	if (g->next)
		g->next->prev = g->prev;
	if (!g->is_put_out)
		d->connected--;
	pthread_mutex_unlock(&d->lock);
	free(g);
}

bool httpdoor_begin(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return false;
	pthread_mutex_lock(&d->lock);
	bool fits = d->served < d->options.served;
	if (fits && !is_served(g))
		d->served++;
	g->state = fits ? STATE_SENDING : STATE_IDLE;
	g->is_hurried = false;
	g->since_ns = clock_now_ns();
	pthread_mutex_unlock(&d->lock);
	return fits;
}

void httpdoor_progress(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&d->lock);
	g->since_ns = clock_now_ns();
	pthread_mutex_unlock(&d->lock);
}

void httpdoor_hurry(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&d->lock);
	g->is_hurried = true;
	g->since_ns = clock_now_ns();
	pthread_mutex_unlock(&d->lock);
}

void httpdoor_received(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&d->lock);
	if (g->state == STATE_SENDING)
		g->state = STATE_SERVED;
	pthread_mutex_unlock(&d->lock);
}

void httpdoor_upgrade(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	httpdoor_end(d, g);
	pthread_mutex_lock(&d->lock);
	g->state = STATE_UPGRADED;
	pthread_mutex_unlock(&d->lock);
}

void httpdoor_end(struct httpdoor *d, struct httpdoor_guest *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&d->lock);
	if (is_served(g)) {
		d->served--;
		g->state = STATE_IDLE;
		g->since_ns = clock_now_ns();
	}
	pthread_mutex_unlock(&d->lock);
}

void httpdoor_close(struct httpdoor *d, bool all)
{
	pthread_mutex_lock(&d->lock);
	for (struct httpdoor_guest *g = d->first; g; g = g->next)
		if (all || !is_kept(g))
			put_out(d, g);
	pthread_mutex_unlock(&d->lock);
}

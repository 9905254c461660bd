/* serve/mcp/mcpclient.c - see mcpclient.h. */
#include "serve/mcp/mcpclient.h"

#include <string.h>

#include "base/clock.h"
#include "base/condvar.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"

enum {
	ID_HEX = 32,
	END_SECONDS = 2,
};

static bool make_room(void *arg);

void mcpclients_init(struct mcpclients *t, const struct mcp_options *o, unsigned max,
		     unsigned sandboxes)
{
	*t = (struct mcpclients){ .options = *o, .max = max };
	t->quota.max = sandboxes;
	t->quota.make_room = make_room;
	t->quota.arg = t;
	t->options.quota = &t->quota;
	pthread_mutex_init(&t->lock, NULL);
	condvar_init(&t->changed);
}

void mcpclients_on_loss(struct mcpclients *t, void (*fn)(const char *text, void *arg), void *arg)
{
	t->lost = fn;
	t->lost_arg = arg;
}

void mcpclients_done(struct mcpclients *t)
{
	free(t->loss);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
}

/* Called with the lock held. */
static struct mcpclient *add(struct mcpclients *t, const char *principal, bool is_stateless)
{
	struct mcp_options o = t->options;
	struct mcpclient *c;

	if (t->is_closing || t->count >= t->max || !(c = mem_alloc(sizeof(*c))))
		return NULL;
	o.is_stateless = is_stateless;
	mcp_init(&c->mcp, &o);
	if (!is_stateless)
		random_hex(c->id, ID_HEX);
	(void)str_copy(c->principal, sizeof(c->principal), principal);
	c->refs = 2;
	c->used_ns = clock_now_ns();
	c->next = t->first;
	t->first = c;
	t->count++;
	t->alive++;
	return c;
}

static void unlink_client(struct mcpclients *t, struct mcpclient *c)
{
	for (struct mcpclient **p = &t->first; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			c->refs--;
			t->count--;
			return;
		}
}

/* Nobody waits for the end of what was ended here, so the server itself is told. Called without the
 * lock. */
static void tell_loss(struct mcpclients *t, struct mcpclient *c)
{
	char *text = client_sessions_take_loss(&c->mcp.sessions);

	if (!text)
		return;
	if (t->lost)
		t->lost(text, t->lost_arg);
	pthread_mutex_lock(&t->lock);
	if (!t->loss)
		t->loss = TAKE_PTR(text);
	pthread_mutex_unlock(&t->lock);
	free(text);
}

/* Like mcpclient_put, but does not count as a use. */
static void leave(struct mcpclients *t, struct mcpclient *c)
{
	pthread_mutex_lock(&t->lock);
	bool is_last = --c->refs == 0;
	pthread_mutex_unlock(&t->lock);
	if (!is_last)
		return;
	tell_loss(t, c);
	mcp_done(&c->mcp);
	free(c);
	pthread_mutex_lock(&t->lock);
	t->alive--;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* The client that was unused for longest, if it was not used since before_ns. Called with the lock
 * held. */
static struct mcpclient *find_idle(struct mcpclients *t, uint64_t before_ns)
{
	struct mcpclient *oldest = NULL;

	for (struct mcpclient *c = t->first; c; c = c->next)
		if (c->refs == 1 && c->used_ns < before_ns &&
		    (!oldest || c->used_ns < oldest->used_ns))
			oldest = c;
	return oldest;
}

/* Ends the client that was unused for longest. False: all are in use. */
static bool end_idle(struct mcpclients *t, uint64_t before_ns)
{
	pthread_mutex_lock(&t->lock);
	struct mcpclient *c = find_idle(t, before_ns);
	if (c)
		c->refs++;
	pthread_mutex_unlock(&t->lock);
	if (c)
		mcpclient_end(t, c);
	return c != NULL;
}

/* A client that left without closing its session looks like an idle one. So the client that was
 * idle for longest makes room for a new one. Called without the lock. */
static void find_place(struct mcpclients *t)
{
	for (bool goes_on = true; goes_on;) {
		pthread_mutex_lock(&t->lock);
		bool is_full = t->count >= t->max && !t->is_closing;
		pthread_mutex_unlock(&t->lock);
		goes_on = is_full && end_idle(t, UINT64_MAX);
	}
}

/* Ends the sandbox that was unused for longest, whichever client owns it. */
static bool make_room(void *arg)
{
	struct mcpclients *t = arg;
	struct mcpclient *owner = NULL;
	uint64_t oldest_ns = UINT64_MAX;

	pthread_mutex_lock(&t->lock);
	for (struct mcpclient *c = t->first; c; c = c->next) {
		uint64_t ns = client_sessions_oldest_ns(&c->mcp.sessions);
		if (ns < oldest_ns) {
			oldest_ns = ns;
			owner = c;
		}
	}
	if (owner)
		owner->refs++;
	pthread_mutex_unlock(&t->lock);
	if (!owner)
		return false;
	client_sessions_expire(&owner->mcp.sessions, oldest_ns + 1, false, 0);
	tell_loss(t, owner);
	leave(t, owner);
	return true;
}

struct mcpclient *mcpclient_new(struct mcpclients *t, const char *principal)
{
	find_place(t);
	pthread_mutex_lock(&t->lock);
	struct mcpclient *c = add(t, principal, false);
	pthread_mutex_unlock(&t->lock);
	return c;
}

static struct mcpclient *find(struct mcpclients *t, const char *id, const char *principal)
{
	for (struct mcpclient *c = t->first; c; c = c->next)
		if (str_eq(c->id, id) && str_eq(c->principal, principal)) {
			c->refs++;
			c->used_ns = clock_now_ns();
			return c;
		}
	return NULL;
}

struct mcpclient *mcpclient_get(struct mcpclients *t, const char *id, const char *principal)
{
	pthread_mutex_lock(&t->lock);
	struct mcpclient *c = id[0] && !t->is_closing ? find(t, id, principal) : NULL;
	pthread_mutex_unlock(&t->lock);
	return c;
}

struct mcpclient *mcpclient_stateless(struct mcpclients *t, const char *principal)
{
	pthread_mutex_lock(&t->lock);
	struct mcpclient *c = t->is_closing ? NULL : find(t, "", principal);
	pthread_mutex_unlock(&t->lock);
	if (c)
		return c;
	find_place(t);
	pthread_mutex_lock(&t->lock);
	c = t->is_closing ? NULL : find(t, "", principal); /* another thread may have added it */
	if (!c)
		c = add(t, principal, true);
	pthread_mutex_unlock(&t->lock);
	return c;
}

struct mcpclient *mcpclient_ref(struct mcpclients *t, struct mcpclient *c)
{
	pthread_mutex_lock(&t->lock);
	c->refs++;
	pthread_mutex_unlock(&t->lock);
	return c;
}

void mcpclient_put(struct mcpclients *t, struct mcpclient *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&t->lock);
	c->used_ns = clock_now_ns();
	pthread_mutex_unlock(&t->lock);
	leave(t, c);
}

void mcpclient_end(struct mcpclients *t, struct mcpclient *c)
{
	pthread_mutex_lock(&t->lock);
	unlink_client(t, c);
	pthread_mutex_unlock(&t->lock);
	client_sessions_close(&c->mcp.sessions);
	tell_loss(t, c);
	mcpclient_put(t, c);
}

/* The i-th stateless client, with a reference. */
static struct mcpclient *nth_stateless(struct mcpclients *t, unsigned i)
{
	pthread_mutex_lock(&t->lock);
	struct mcpclient *c = t->first;
	while (c && (c->id[0] || i-- > 0))
		c = c->next;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&t->lock);
	return c;
}

void mcpclients_expire(struct mcpclients *t, uint64_t before_ns)
{
	struct mcpclient *c;

	while (end_idle(t, before_ns))
		;
	/* Sandboxes without a protocol session are ended only here. */
	for (unsigned i = 0; (c = nth_stateless(t, i)); i++) {
		client_sessions_expire(&c->mcp.sessions, before_ns, false, 0);
		tell_loss(t, c);
		leave(t, c);
	}
}

/* Waits until no client is in use, for a limited time. */
static bool wait_all(struct mcpclients *t)
{
	deadline_ns deadline = deadline_after_ms(END_SECONDS * 1000ULL);

	while (t->alive > 0 && condvar_wait(&t->changed, &t->lock, deadline))
		;
	return t->alive == 0;
}

bool mcpclients_close(struct mcpclients *t)
{
	pthread_mutex_lock(&t->lock);
	t->is_closing = true;
	while (t->first) {
		struct mcpclient *c = t->first;
		c->refs++;
		pthread_mutex_unlock(&t->lock);
		mcpclient_end(t, c);
		pthread_mutex_lock(&t->lock);
	}
	bool is_quiet = wait_all(t);
	pthread_mutex_unlock(&t->lock);
	return is_quiet;
}

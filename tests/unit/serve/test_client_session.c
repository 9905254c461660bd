/* Client sessions: who waits for whom. An offloaded client session has no session, so nothing is
 * started here. */
#include "serve/rpc/client_session.h"

#include "base/str.h"
#include "harness/test.h"

struct scene {
	struct client_sessions sessions;
	struct client_session *cs;
	int result;
	bool was_cancelled;
};

static void set_scene(struct scene *x)
{
	*x = (struct scene){ 0 };
	client_sessions_init(&x->sessions);
	ASSERT_EQ(client_session_new(&x->sessions, false, &x->cs, NULL), 0);
	x->cs->is_offloaded = true;
	(void)str_copy(x->cs->id, sizeof(x->cs->id), "s1");
}

/* Waits until another thread has set a field of the client session. */
static void wait_until(struct scene *x, const bool *field)
{
	pthread_mutex_lock(&x->sessions.lock);
	while (!*field)
		pthread_cond_wait(&x->sessions.changed, &x->sessions.lock);
	pthread_mutex_unlock(&x->sessions.lock);
}

static pthread_t start(void *(*fn)(void *), struct scene *x)
{
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, fn, x), 0);
	return thread;
}

/* As mount, offload and rehydrate do. */
static void *move(void *arg)
{
	struct scene *x = arg;
	struct client_session *mine =
		client_session_get(&x->sessions, "s1", CLIENT_SESSION_SESSION);

	x->result = mine ? client_session_lock(&x->sessions, mine, 1, NULL) : -CORDON_NOT_FOUND;
	if (x->result == 0)
		(void)client_session_unlock(&x->sessions, mine, NULL);
	client_session_end(&x->sessions, x->cs);
	client_session_put(&x->sessions, mine);
	return NULL;
}

static void *cancel(void *arg)
{
	struct scene *x = arg;
	struct client_session *mine =
		client_session_get(&x->sessions, "s1", CLIENT_SESSION_SESSION);

	x->was_cancelled = client_session_cancel(&x->sessions, mine);
	client_session_put(&x->sessions, mine);
	return NULL;
}

static void *close_it(void *arg)
{
	struct scene *x = arg;

	client_session_close(&x->sessions,
			     client_session_get(&x->sessions, "s1", CLIENT_SESSION_SESSION));
	return NULL;
}

static void finish(struct scene *x)
{
	client_session_put(&x->sessions, x->cs);
	client_sessions_close(&x->sessions);
	client_sessions_done(&x->sessions);
}

/* The exchange waits for a reference of who cancels, who waits for the end of the exchange. */
TEST(client_session_cancel_after_the_lock)
{
	struct scene x;

	set_scene(&x);
	struct client_session *user = client_session_get(&x.sessions, "s1", CLIENT_SESSION_SESSION);
	ASSERT_EQ(client_session_begin(&x.sessions, x.cs, NULL, NULL), 0);
	pthread_t mover = start(move, &x);
	wait_until(&x, &x.cs->is_moving);
	pthread_t canceller = start(cancel, &x);
	pthread_join(canceller, NULL);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	ASSERT(x.was_cancelled);
	ASSERT(!x.cs->is_moving && !x.cs->is_exchanging);
	client_session_put(&x.sessions, user);
	finish(&x);
}

TEST(client_session_cancel_before_the_lock)
{
	struct scene x;

	set_scene(&x);
	ASSERT_EQ(client_session_begin(&x.sessions, x.cs, NULL, NULL), 0);
	pthread_t canceller = start(cancel, &x);
	wait_until(&x, &x.cs->is_unwanted);
	pthread_t mover = start(move, &x);
	pthread_join(canceller, NULL);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	ASSERT(x.was_cancelled);
	finish(&x);
}

/* Once nobody else has it the exchange goes on to its end, and a cancel does not wait for that. */
TEST(client_session_cancel_of_an_exchange)
{
	struct scene x;

	set_scene(&x);
	ASSERT_EQ(client_session_begin(&x.sessions, x.cs, NULL, NULL), 0);
	ASSERT_EQ(client_session_lock(&x.sessions, x.cs, 0, NULL), 0);
	struct client_session *user = client_session_get(&x.sessions, "s1", CLIENT_SESSION_SESSION);
	ASSERT(!client_session_cancel(&x.sessions, user));
	client_session_put(&x.sessions, user);
	(void)client_session_unlock(&x.sessions, x.cs, NULL);
	client_session_end(&x.sessions, x.cs);
	finish(&x);
}

TEST(client_session_close_during_the_lock)
{
	struct scene x;

	set_scene(&x);
	struct client_session *user = client_session_get(&x.sessions, "s1", CLIENT_SESSION_SESSION);
	ASSERT_EQ(client_session_begin(&x.sessions, x.cs, NULL, NULL), 0);
	pthread_t mover = start(move, &x);
	wait_until(&x, &x.cs->is_moving);
	pthread_t closer = start(close_it, &x);
	pthread_join(mover, NULL);
	ASSERT_EQ(x.result, -CORDON_CANCELLED);
	client_session_put(&x.sessions, user);
	client_session_put(&x.sessions, x.cs);
	pthread_join(closer, NULL);
	ASSERT(!x.sessions.first && x.sessions.sessions == 0);
	client_sessions_done(&x.sessions);
}

/* Eight threads, whatever they meet. */
static void *mix(void *arg)
{
	struct scene *x = arg;

	for (int i = 0; i < 3000; i++) {
		struct client_session *mine =
			client_session_get(&x->sessions, "s1", CLIENT_SESSION_SESSION);
		if (client_session_begin(&x->sessions, mine, NULL, NULL) < 0) {
			(void)client_session_cancel(&x->sessions, mine);
		} else {
			if (client_session_lock(&x->sessions, mine, 1, NULL) == 0)
				(void)client_session_unlock(&x->sessions, mine, NULL);
			client_session_end(&x->sessions, mine);
		}
		client_session_put(&x->sessions, mine);
	}
	return NULL;
}

TEST(client_session_exchanges_and_cancels_by_eight)
{
	struct scene x;
	pthread_t threads[8];

	set_scene(&x);
	for (int i = 0; i < 8; i++)
		threads[i] = start(mix, &x);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(x.cs->refs, 2);
	finish(&x);
}

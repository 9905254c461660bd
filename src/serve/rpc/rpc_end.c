/* serve/rpc/rpc_end.c - how a client ends, with everything it owned. See rpc.h. */
#include <string.h>
#include <sys/socket.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "serve/rpc/prove_methods.h"
#include "serve/rpc/rpc.h"

/* END_MS: long enough to save a workspace to a slow disk at the end. */
enum { CLOSERS = 4, END_MS = 30000, LOOK_MS = 50 };

static void *end_sessions(void *arg)
{
	struct rpc *c = arg;

	client_sessions_close(&c->sessions);
	rpc_leave(c);
	return NULL;
}

/* Several threads, because closing a session takes milliseconds. */
static void start_closers(struct rpc *c)
{
	pthread_t thread;

	callbacks_close(&c->callbacks);
	waitlist_close(c);
	(void)proof_cancel(c, NULL);
	pthread_mutex_lock(&c->lock);
	struct client_session *home = TAKE_PTR(c->home);
	c->threads += CLOSERS;
	pthread_mutex_unlock(&c->lock);
	client_session_put(&c->sessions, home);
	for (int i = 0; i < CLOSERS; i++) {
		if (pthread_create(&thread, NULL, end_sessions, c) == 0)
			(void)pthread_detach(thread);
		else
			(void)end_sessions(c);
	}
}

/* Answers requests that came before the input ended, as long as someone reads the answers. Requests
 * that wait for an answer of the client fail. */
static void answer_the_rest(struct rpc *c)
{
	callbacks_close(&c->callbacks);
	client_sessions_drain(&c->sessions);
	pthread_mutex_lock(&c->lock);
	while (c->busy > 0 && lineout_has_reader(&c->out))
		(void)condvar_wait(&c->changed, &c->lock, deadline_after_ms(LOOK_MS));
	pthread_mutex_unlock(&c->lock);
}

/* Ends everything within END_MS. */
static int end(struct rpc *c, struct cordon_error **reterr)
{
	deadline_ns deadline = deadline_after_ms(END_MS);

	/* A thread that writes to a client which does not read must not block the others. */
	(void)shutdown(c->out.fd, SHUT_RDWR);
	start_closers(c);
	pthread_mutex_lock(&c->lock);
	while (c->threads > 0 && condvar_wait(&c->changed, &c->lock, deadline))
		;
	bool is_quiet = c->threads == 0;
	pthread_mutex_unlock(&c->lock);
	return is_quiet ? 0
			: err_set(reterr, CORDON_TIMEOUT, "not everything ended within %d ms",
				  END_MS);
}

void rpc_done(struct rpc *c)
{
	linein_done(&c->in);
	lineout_done(&c->out);
	callbacks_done(&c->callbacks);
	waitlist_done(&c->waits);
	client_sessions_done(&c->sessions);
	pthread_mutex_destroy(&c->reading);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

void rpc_cancel(struct rpc *c)
{
	struct client_sessions *t = &c->sessions;

	callbacks_close(&c->callbacks);
	pthread_mutex_lock(&t->lock);
	t->is_draining = true;
	for (struct client_session *s = t->first; s; s = s->next)
		if (s->execution && s->session && !s->is_exchanging) {
			s->is_unwanted = true;
			(void)cordon_session_cancel(s->session, NULL);
		}
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void rpc_close(struct rpc *c)
{
	callbacks_close(&c->callbacks);
	(void)proof_cancel(c, NULL);
	client_sessions_close(&c->sessions);
}

void rpc_free(struct rpc *c)
{
	callbacks_close(&c->callbacks);
	client_session_put(&c->sessions, TAKE_PTR(c->home));
	client_sessions_close(&c->sessions);
	rpc_done(c);
}

int rpc_finish(struct rpc *c, struct cordon_error **reterr)
{
	if (c->is_at_end)
		answer_the_rest(c);
	int r = end(c, reterr);
	if (r < 0) /* a thread still uses it */
		return r;
	cleanup_free char *loss = client_sessions_take_loss(&c->sessions);
	rpc_done(c);
	return loss ? err_set(reterr, CORDON_OS, "%s", loss) : 0;
}

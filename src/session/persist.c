/* session/persist.c - see persist.h. */
#include "session/persist.h"

#include <errno.h>

#include "base/mem.h"
#include "base/str.h"
#include "files/autosave.h"
#include "files/store.h"
#include "session/result.h"

struct persist {
	struct cordon_session *session;
	char *name;
	struct store *store;
	struct autosave *autosave;
	pthread_mutex_t lock; /* while held, the session's workspace stays */
};

static int save(void *arg, struct cordon_error **reterr)
{
	struct persist *p = arg;
	int r = 0;

	pthread_mutex_lock(&p->lock);
	if (p->session->workspace && !workspace_is_offloaded(p->session->workspace)) {
		cleanup_free char *state = session_state_text(p->session);

		r = store_save(p->store, p->session->workspace, state, reterr);
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

int persist_open(struct cordon_session *s, const char *name, struct persist **ret,
		 struct cordon_error **reterr)
{
	if (!name)
		return 0;
	struct persist *p = mem_alloc(sizeof(*p));
	if (!p)
		return err_errno(reterr, ENOMEM, "open the workspace '%s'", name);
	p->session = s;
	p->name = str_dup(name);
	pthread_mutex_init(&p->lock, NULL);
	int r = p->name ? store_open(NULL, name, &p->store, reterr)
			: err_errno(reterr, ENOMEM, "open the workspace '%s'", name);
	if (r == 0)
		r = autosave_new(0, save, p, &p->autosave, reterr);
	if (r < 0) {
		persist_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

int persist_load(struct persist *p, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *state = NULL;

	if (!p)
		return 0;
	int r = store_load(p->store, p->session->workspace, &state, &e);
	if (r == -CORDON_NOT_FOUND)
		return 0; /* nothing was saved yet */
	if (r < 0) {
		if (reterr)
			*reterr = TAKE_PTR(e);
		return r;
	}
	session_take_state(p->session, state);
	return 0;
}

int persist_save(struct persist *p, struct cordon_error **reterr)
{
	int r = p ? autosave_flush(p->autosave, reterr) : 0;

	return r < 0 ? err_wrap(reterr, r, "the workspace '%s' is not saved", p->name) : 0;
}

void persist_warn(struct persist *p, struct cordon_result *result)
{
	cleanup_free char *why = p ? autosave_failure(p->autosave) : NULL;
	cleanup_free char *text =
		why ? str_printf("the workspace '%s' is not saved: %s", p->name, why) : NULL;

	if (why)
		(void)result_lose(result, text ? text : "the workspace is not saved");
}

void persist_touch(struct persist *p)
{
	if (p)
		autosave_touch(p->autosave);
}

void persist_lock(struct persist *p)
{
	if (p)
		pthread_mutex_lock(&p->lock);
}

void persist_unlock(struct persist *p)
{
	if (p)
		pthread_mutex_unlock(&p->lock);
}

struct persist *persist_close(struct persist *p)
{
	if (!p)
		return NULL;
	autosave_free(p->autosave);
	store_close(p->store);
	pthread_mutex_destroy(&p->lock);
	free(p->name);
	free(p);
	return NULL;
}

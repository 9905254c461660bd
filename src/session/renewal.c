/* session/renewal.c - see renewal.h. */
#include "session/renewal.h"

#include "base/str.h"
#include "files/snapshot.h"
#include "session/chronicle.h"
#include "session/persist.h"
#include "session/result.h"

#define LOST "not all files could be kept: %s"

/* ret_lost: the new guest is there, and why not all of the files are. */
static int replace(struct cordon_session *s, struct cordon_error **ret_lost,
		   struct cordon_error **reterr)
{
	persist_lock(s->persist);
	pthread_mutex_lock(&s->files_lock);
	struct workspace *old = TAKE_PTR(s->workspace);

	session_drop_engine(s);
	if (!s->is_moved) { /* the new one is where sessions start */
		free(s->cwd);
		s->cwd = NULL;
	}
	int r = session_start_engine(s, reterr);
	if (r == 0 && old)
		(void)snapshot_fork(old, s->workspace, ret_lost);
	workspace_close(old);
	pthread_mutex_unlock(&s->files_lock);
	persist_unlock(s->persist);
	return r;
}

int renewal_start(struct cordon_session *s, struct cordon_error **reterr)
{
	pthread_mutex_lock(&s->files_lock);
	int r = session_start_engine(s, reterr);
	pthread_mutex_unlock(&s->files_lock);
	return r;
}

int renewal_after(struct cordon_session *s, struct cordon_result **result,
		  struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *lost = NULL;
	int r = s->is_closed ? 0 : replace(s, &lost, reterr);

	(*result)->restarted = true;
	if (lost) {
		cleanup_free char *text = str_printf(LOST, cordon_error_message(lost));
		(void)result_warn(*result, text ? text : "not all files could be kept");
	}
	if (r < 0)
		*result = cordon_result_free(*result);
	return r;
}

int cordon_session_restart(struct cordon_session *s, struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *lost = NULL;
	int r = session_hold(s, "Cannot restart while an execution is in progress.", reterr);

	if (r < 0)
		return r;
	r = replace(s, &lost, reterr);
	if (lost)
		r = err_set(reterr, cordon_error_code(lost), LOST, cordon_error_message(lost));
	if (r == 0)
		r = chronicle_session(s, "session_restart", reterr);
	session_let_go(s);
	return r;
}

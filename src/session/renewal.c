/* session/renewal.c - see renewal.h. */
#include "session/renewal.h"

#include "base/str.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/result.h"
#include "session/session_audit.h"
#include "session/startup.h"

#define LOST "not all files could be kept: %s"

/* Only this guest is replaced; the files stay where they are. If the place is gone too, there is a
 * new one afterwards, with the same files. */
static int replace_in_place(struct cordon_session *s, char **ret_lost, struct cordon_error **reterr)
{
	persist_lock(s->persist);
	session_drop_engine(s);
	if (!s->is_moved)
		session_set_cwd(s, NULL);
	persist_unlock(s->persist);
	return startup_join(s, NULL, ret_lost, reterr);
}

/* The session keeps the old workspace until the new one has its files. If no new guest starts, the
 * next execution tries again with the old workspace. */
static int replace(struct cordon_session *s, char **ret_lost, struct cordon_error **reterr)
{
	struct startup u = { 0 };

	if (session_root(s)->languages)
		return replace_in_place(s, ret_lost, reterr);
	persist_lock(s->persist);
	pthread_mutex_lock(&s->files_lock);
	session_drop_engine(s);
	if (!s->is_moved) /* a new guest begins where sessions start */
		session_set_cwd(s, NULL);
	int r = startup_make(s, s->workspace, &u, ret_lost, reterr);
	if (r == 0) {
		workspace_close(TAKE_PTR(s->workspace));
		startup_install(&u, s);
	}
	pthread_mutex_unlock(&s->files_lock);
	persist_unlock(s->persist);
	return r;
}

int renewal_start(struct cordon_session *s, char **ret_lost, struct cordon_error **reterr)
{
	return replace(s, ret_lost, reterr);
}

void renewal_tell(struct cordon_result *result, const char *lost)
{
	cleanup_free char *text = lost ? str_printf(LOST, lost) : NULL;

	if (lost)
		(void)result_lose(result, text ? text : "not all files could be kept");
}

void renewal_after(struct cordon_session *s, struct cordon_result *result)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *lost = NULL;

	result_restarted(result, result->error ? result->error : "the guest ended");
	if (session_is_closed(s))
		return;
	if (replace(s, &lost, &e) == 0) {
		renewal_tell(result, lost);
		return;
	}
	cleanup_free char *why = err_text(e);
	cleanup_free char *text = str_printf("the guest could not be replaced; the files are kept, "
					     "and the next execution tries again: %s",
					     why ? why : cordon_error_message(e));
	(void)result_warn(result, text ? text : "the guest could not be replaced");
}

int cordon_session_restart(struct cordon_session *s, struct cordon_error **reterr)
{
	cleanup_free char *lost = NULL;
	static const char busy[] = "Cannot restart while an execution is in progress.";
	int r = s->owner ? session_hold(s, busy, reterr) : session_hold_whole(s, busy, reterr);

	if (r < 0)
		return r;
	if (session_is_offloaded(s))
		r = err_set(reterr, CORDON_STATE,
			    "Sandbox is offloaded \xe2\x80\x94 call rehydrate() first");
	if (r == 0 && s->place) /* all of it: every context tells that it was restarted */
		place_end(s->place);
	if (r == 0)
		r = replace(s, &lost, reterr);
	if (lost)
		r = err_set(reterr, CORDON_LIMIT, LOST, lost);
	if (r == 0)
		r = session_audit_session(s, "session_restart", reterr);
	session_let_go(s);
	return r;
}

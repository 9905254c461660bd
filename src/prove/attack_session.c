/* prove/attack_session.c - see attack_session.h. The first session runs attack_NAME. For
 * PROBE_IDLE, no execution runs after that, and the host waits for the file that shows success or
 * for the end of the guest. For PROBE_SIBLING, a second session is opened then and runs
 * sibling_NAME, which says "worked" if it was harmed. */
#include "prove/attack_session.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cordon/files.h"
#include "cordon/session.h"
#include "policy/public.h"
#include "prove/attack_python.h"
#include "wall/wall.h"

/* An attack that is held takes a second or two; this is only the upper limit. */
enum { IDLE_MS = 120000, LOOK_MS = 20 };

#define DONE_FILE "/tmp/cordon-attack-done"

static int open_session(const struct trial_options *o, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	struct cordon_policy policy = { 0 };
	struct cordon_session_options options = { .guest = "python", .policy = &policy };

	int r = policy_copy(&policy.p, o->policy, reterr);
	if (r < 0)
		return r;
	r = cordon_session_open(&options, ret, reterr);
	policy_done(&policy.p);
	return r;
}

static int execute(struct cordon_session *s, const struct trial_options *o, const char *role,
		   struct trial *t, struct cordon_error **reterr)
{
	cleanup_buf struct buf code = { 0 };
	cleanup_free char *context = NULL;
	struct cordon_result *result = NULL;

	int r = attack_python_code(o, role, &code, &context, reterr);
	if (r < 0)
		return r;
	struct cordon_execute_options options = { .code = buf_text(&code),
						  .code_len = code.len,
						  .context_json = context };
	r = cordon_session_execute(s, &options, &result, reterr);
	if (r < 0)
		return r;
	attack_python_judge(result, t);
	cordon_result_free(result);
	return 0;
}

/* Waits until the guest is gone or the attack has succeeded. */
static void wait_idle(struct cordon_session *s, struct trial *t)
{
	deadline_ns deadline = deadline_after_ms(IDLE_MS);
	struct cordon_file_info info;

	while (!deadline_is_over(deadline)) {
		if (!cordon_session_is_alive(s)) {
			t->outcome = TRIAL_HELD;
			strcpy(t->said, "ended");
			return;
		}
		if (cordon_file_stat(s, DONE_FILE, &info, NULL) == 0) {
			t->outcome = TRIAL_OPEN;
			strcpy(t->said, "worked");
			return;
		}
		(void)poll(NULL, 0, LOOK_MS);
	}
	t->outcome = TRIAL_BROKEN;
	strcpy(t->said, "neither ended nor done");
}

/* If no second session can be opened, the attack has succeeded. */
static int try_sibling(const struct trial_options *o, struct trial *t, struct cordon_error **reterr)
{
	struct cordon_session *s = NULL;
	cleanup_error struct cordon_error *why = NULL;

	if (open_session(o, &s, &why) < 0) {
		t->outcome = TRIAL_OPEN;
		snprintf(t->said, sizeof(t->said), "%.60s", cordon_error_message(why));
		return 0;
	}
	int r = execute(s, o, "sibling_", t, reterr);
	cordon_session_close(s);
	return r;
}

int attack_session_inside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr)
{
	struct cordon_session *s = NULL;
	struct trial t = { .outcome = TRIAL_BROKEN };

	int r = open_session(o, &s, reterr);
	if (r < 0)
		return r;
	r = execute(s, o, "attack_", &t, reterr);
	if (r == 0 && t.outcome == TRIAL_OPEN && (o->attack->flags & PROBE_IDLE))
		wait_idle(s, &t);
	else if (r == 0 && t.outcome == TRIAL_OPEN)
		r = try_sibling(o, &t, reterr);
	cordon_session_close(s);
	*ret = t;
	return r;
}

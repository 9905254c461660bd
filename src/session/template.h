/* session/template.h - a guest that is started, sandboxed and warmed up once; sessions are forked
 * from it. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"

struct template;

/* Returns a template for this guest and policy, shared within this process. Starts a new one if
 * there is none, or if it has forked too often or is too old. Any thread may call these functions.
 * Only threads that need a starting template wait for it. */
int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr);
struct template *template_put(struct template *t); /* always returns NULL */
struct template *template_ref(struct template *t); /* accepts NULL */
/* Called after a failed fork. True: the template is dead or stopped. It is then retired: the next
 * caller gets a new one, while its sessions go on. is_silent: it did not answer in time and is
 * retired in any case. */
bool template_check(struct template *t, bool is_silent);
/* wall/wall.h says what other threads may do with it. */
const struct box *template_box(const struct template *t);
/* Forks a new session into e. Any thread may call it. */
int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr);
/* Ends every template that no session uses. */
void template_release_all(void);

/* session/template.h - a guest started, warmed and walled once, from which sessions are forked. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"

struct template;

/* One for this guest and policy, shared within this process; started when there is none yet, when
 * it has forked too often or is too old. */
int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr);
struct template *template_put(struct template *t); /* always returns NULL */
/* Fills an engine with a fresh session. Safe from several threads. */
int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr);
/* Ends every template that no session uses. */
void template_release_all(void);

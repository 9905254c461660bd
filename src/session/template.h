/* session/template.h - a guest started, warmed and walled once, from which sessions are forked. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"

struct template;

/* One for this guest and policy, shared within this process; started when there is none yet, when
 * it has forked too often or is too old. Any thread may call all of these; while one starts, only
 * those wait who want that very one. */
int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr);
struct template *template_put(struct template *t); /* always returns NULL */
struct template *template_ref(struct template *t); /* accepts NULL */
/* A session could not be had from it. True when it is dead or stopped: it is retired then, so that
 * another one is started for whoever comes next, and lives on for the sessions that it has.
 * is_silent: it did not answer in all the time there was, and is retired in any case. */
bool template_check(struct template *t, bool is_silent);
/* For what box.h lets other threads do. */
const struct box *template_box(const struct template *t);
/* Fills an engine with a fresh session. Safe from several threads. */
int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr);
/* Ends every template that no session uses. */
void template_release_all(void);

/* session/template.h - a guest that is started, sandboxed and warmed up once; sessions are forked
 * from it. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"

struct template;

/* A template for this guest and policy, shared within this process. A new one is started if there
 * is none, or if it forked too often or is too old. Any thread may call these functions. While a
 * template starts, only threads that want that one wait. */
int template_get(enum guest_kind kind, const struct policy *p, struct template **ret,
		 struct cordon_error **reterr);
struct template *template_put(struct template *t); /* always returns NULL */
struct template *template_ref(struct template *t); /* accepts NULL */
/* Called when a fork failed. True: the template is dead or stopped. It is then retired: the next
 * caller gets a new one, and it lives on for its sessions. is_silent: it did not answer in time,
 * and is retired in any case. */
bool template_check(struct template *t, bool is_silent);
/* For what box.h lets other threads do. */
const struct box *template_box(const struct template *t);
/* Fills an engine with a fresh session. Safe from several threads. */
int template_fork(struct template *t, struct engine *e, struct cordon_error **reterr);
/* Ends every template that no session uses. */
void template_release_all(void);

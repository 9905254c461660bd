/* session/template.h - a guest that is started, sandboxed and warmed up once; sessions are forked
 * from it. */
#pragma once

#include "base/error.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "session/engine.h"

struct network;
struct network_stock;
struct template;

/* What a template serves. Only equal ones share it. */
struct template_key {
	enum guest_kind kind;
	const struct policy *policy;
	/* Of places (place.h): the languages that may join, as bits, and the host tools whose names
	 * their shells see. 0: of sessions with one language. */
	unsigned languages;
	const struct strlist *tools;
};

/* Returns a template for this key, shared within this process. Starts a new one if there is none,
 * or if it has forked too often or is too old. Any thread may call these functions. Only threads
 * that need a starting template wait for it. */
int template_get(const struct template_key *key, struct template **ret,
		 struct cordon_error **reterr);
/* Whether template_get would not wait. If there is none, one is started in the background. */
bool template_is_ready(const struct template_key *key);
enum guest_kind template_kind(const struct template *t);
struct template *template_put(struct template *t); /* always returns NULL */
struct template *template_ref(struct template *t); /* accepts NULL */
/* Called after a failed fork. True: the template is dead or stopped. It is then retired: the next
 * caller gets a new one, while its sessions go on. is_silent: it did not answer in time and is
 * retired in any case. */
bool template_check(struct template *t, bool is_silent);
/* wall/wall.h says what other threads may do with it. */
const struct box *template_box(const struct template *t);
/* Where its sessions take their gateways from; NULL: the policy opens no network. */
struct network_stock *template_stock(const struct template *t);
/* Forks a new session into e, with this gateway (NULL: none). *ret_box becomes its box: that of e,
 * or that of a place of which e will be the first guest. Any thread may call it. */
int template_fork(struct template *t, struct network *n, struct engine *e, struct box **ret_box,
		  struct cordon_error **reterr);
/* Ends every template that no session uses. */
void template_release_all(void);

/* serve/e2b/e2b_spares.h - sandboxes that are made before anybody asks, for each policy that
 * templates and keys gave lately. Other threads make and close them, so taking and giving back cost
 * little. */
#pragma once

#include <cordon/session.h>

#include "base/error.h"

struct e2b_spares;

int e2b_spares_new(struct e2b_spares **ret, struct cordon_error **reterr);
/* All sessions were given back. Accepts NULL; always returns NULL. */
struct e2b_spares *e2b_spares_free(struct e2b_spares *s);
/* A fresh session with this policy. env: of this session, ended by NULL. */
int e2b_spares_take(struct e2b_spares *s, const struct cordon_policy *policy,
		    const char *const *env, struct cordon_session **ret,
		    struct cordon_error **reterr);
/* Closes it, soon. Always returns NULL. */
struct cordon_session *e2b_spares_give_back(struct e2b_spares *s, struct cordon_session *session);

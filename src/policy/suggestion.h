/* policy/suggestion.h - the smallest change of a policy that allows what was denied. The remedies
 * of the denials say what that is (docs/result.md). Results are untrusted: of what they name, only
 * limits, switches and lists of names and hosts are taken, and only to make the policy looser. */
#pragma once

#include "policy/policy.h"

struct suggestion {
	struct policy base, wanted; /* before and after */
	/* Denials by what can be done about them. */
	json_t *changes;    /* {"field", "assignments", "denials"} for each field that changes */
	json_t *by_hand;    /* the remedy leaves something to decide */
	json_t *impossible; /* no policy allows it */
	json_t *allowed;    /* the base allows it already */
	size_t count;       /* denials read so far */
};

/* Fills *ret (uninitialised memory). base is copied. */
int suggestion_init(struct suggestion *ret, const struct policy *base,
		    struct cordon_error **reterr);
void suggestion_done(struct suggestion *s);
#define cleanup_suggestion CLEANUP(suggestion_done)

/* Adds the denials of a result, of the reply of a server that has one, or of an array of these. */
int suggestion_add(struct suggestion *s, const json_t *results, struct cordon_error **reterr);
/* {"changes", "by_hand", "impossible", "allowed"}: each change also has its "diff" as a line and
 * what it "means" as a sentence. A new reference; NULL: out of memory. */
json_t *suggestion_json(const struct suggestion *s);

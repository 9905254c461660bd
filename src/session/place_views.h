/* session/place_views.h - the launches of all languages of a place: its root has their files, so
 * that their guests can join later. */
#pragma once

#include "guest/guest.h"

enum { PLACE_LANGUAGES_MAX = GUEST_KIND_POD + 1 };

struct place_views {
	struct launch views[PLACE_LANGUAGES_MAX];
	const struct launch *list[PLACE_LANGUAGES_MAX]; /* box_options.also */
	size_t count;
};

/* languages: bits of 1 << enum guest_kind. A language that cannot be started here has none; its
 * contexts are refused with the reason. */
int place_views_make(unsigned languages, const struct policy *p, const struct strlist *tools,
		     struct place_views *ret, struct cordon_error **reterr);
void place_views_done(struct place_views *v);

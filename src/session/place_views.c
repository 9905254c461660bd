/* session/place_views.c - see place_views.h. */
#include "session/place_views.h"

int place_views_make(unsigned languages, const struct policy *p, const struct strlist *tools,
		     struct place_views *ret, struct cordon_error **reterr)
{
	for (enum guest_kind kind = GUEST_KIND_PYTHON; kind < GUEST_KIND_POD; kind++) {
		cleanup_error struct cordon_error *e = NULL;
		struct guest_options o = {
			.kind = kind, .mode = GUEST_SESSION, .policy = p, .tools = tools
		};

		if (!(languages & 1U << kind))
			continue;
		int r = guest_launch(&o, &ret->views[ret->count], &e);
		if (r == -CORDON_NOMEM)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		if (r < 0)
			continue;
		ret->list[ret->count] = &ret->views[ret->count];
		ret->count++;
	}
	return 0;
}

void place_views_done(struct place_views *v)
{
	for (size_t i = 0; i < PLACE_LANGUAGES_MAX; i++)
		launch_done(&v->views[i]);
	v->count = 0;
}

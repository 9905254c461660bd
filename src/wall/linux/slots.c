/* wall/linux/slots.c - see slots.h. */
#include "wall/linux/slots.h"

#include <string.h>

void slots_init(struct slots *s)
{
	pthread_mutex_init(&s->lock, NULL);
	s->count = 0;
}

void slots_done(struct slots *s)
{
	for (unsigned i = 0; i < s->count; i++)
		cgroup_done(&s->groups[i]);
	s->count = 0;
	pthread_mutex_destroy(&s->lock);
}

static void remove_at(struct slots *s, unsigned i)
{
	s->count--;
	memmove(&s->groups[i], &s->groups[i + 1], (s->count - i) * sizeof(s->groups[0]));
}

bool slots_take(struct slots *s, struct cgroup *ret)
{
	bool found = false;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; !found && i < s->count;) {
		int r = cgroup_renew(&s->groups[i]);

		if (r == 0) {
			i++;
			continue;
		}
		*ret = s->groups[i];
		remove_at(s, i);
		found = r > 0;
		if (!found)
			cgroup_done(ret);
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

void slots_give(struct slots *s, struct cgroup *c)
{
	struct cgroup out = { 0 };

	pthread_mutex_lock(&s->lock);
	if (s->count == SLOTS_MAX) { /* the oldest is the likeliest to be empty */
		out = s->groups[0];
		remove_at(s, 0);
	}
	s->groups[s->count++] = *c;
	pthread_mutex_unlock(&s->lock);
	*c = (struct cgroup){ 0 };
	cgroup_done(&out);
}

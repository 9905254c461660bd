/* wall/wall.c - see wall.h. The only file that knows which walls there are. */
#include "wall/wall.h"

#include "wall/linux/linux_wall.h"

const struct wall *wall_choose(const struct policy *p)
{
	(void)p;
	return &linux_wall;
}

void wall_probe(const struct policy *p, struct wall_probe *ret, json_t *report)
{
	wall_choose(p)->probe(ret, report);
}

bool wall_can_fork(const struct policy *p)
{
	return wall_choose(p)->can_fork(p);
}

uid_t wall_worker_uid(void)
{
	return wall_choose(NULL)->worker_uid();
}

int wall_take_socket(int from)
{
	return wall_choose(NULL)->take_socket(from);
}

int box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr)
{
	return wall_choose(o->policy)->start(o, ret, reterr);
}

int box_prepare(const struct policy *p, struct box *template, struct box **ret,
		struct box_fork_fds *ret_fds, struct cordon_error **reterr)
{
	return template->wall->prepare(p, template, ret, ret_fds, reterr);
}

int box_join(struct box *place, const struct box_options *o, struct box **ret,
	     struct cordon_error **reterr)
{
	return place->wall->join(place, o, ret, reterr);
}

int box_first(struct box *place, struct box **ret, struct cordon_error **reterr)
{
	return place->wall->join(place, NULL, ret, reterr);
}

void box_fork_fds_done(struct box_fork_fds *s)
{
	for (unsigned i = 0; i < s->owned; i++)
		close_fdp(&s->fds[i]);
	s->owned = 0;
}

struct box *box_free(struct box *b)
{
	if (b)
		b->wall->free(b);
	return NULL;
}

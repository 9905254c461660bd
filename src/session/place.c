/* session/place.c - see place.h. */
#include "session/place.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "session/network_stock.h"
#include "session/place_views.h"
#include "session/pulse.h"
#include "session/session.h"
#include "session/template.h"

struct place {
	struct cordon_session *root;
	struct box *box; /* set by the first place_start, before other threads know the place */
	struct network *network; /* NULL: the policy opens none */
	/* A reference: it forked the place, or will. NULL: the place is started cold. */
	struct template *template;
	_Atomic(struct engine *) waiting; /* place_keep */
	_Atomic unsigned refs;
	_Atomic bool is_spent;
};

int place_new(struct cordon_session *root, struct template *t, struct place **ret,
	      struct cordon_error **reterr)
{
	struct place *p = mem_alloc(sizeof(*p));

	if (!p)
		return err_errno(reterr, ENOMEM, "open a sandbox");
	p->root = root;
	p->refs = 1;
	p->template = template_ref(t);
	int r = network_open(root, t ? network_stock_take(template_stock(t)) : NULL, &p->network,
			     reterr);
	if (r < 0) {
		place_put(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct place *place_ref(struct place *p)
{
	if (p)
		p->refs++;
	return p;
}

struct place *place_put(struct place *p)
{
	if (!p || --p->refs > 0)
		return NULL;
	engine_free(p->waiting);
	box_free(p->box);
	network_close(p->network);
	template_put(p->template);
	free(p);
	return NULL;
}

int place_freeze(struct cordon_session *root, bool frozen, struct cordon_error **reterr)
{
	pthread_mutex_lock(&root->lock);
	struct place *p = place_ref(root->place);
	pthread_mutex_unlock(&root->lock);
	if (!p)
		return err_set(reterr, CORDON_UNSUPPORTED, "the session has one language only");
	int r = p->box ? box_freeze(p->box, frozen) : 0;
	place_put(p);
	return r < 0 ? err_errno(reterr, -r, "stop the processes of the sandbox") : 0;
}

void place_end(struct place *p)
{
	if (p && p->box)
		box_kill(p->box);
}

void place_spend(struct place *p)
{
	p->is_spent = true;
	box_end(p->box);
}

struct box *place_box(const struct place *p)
{
	return p->box;
}

struct network *place_network(const struct place *p)
{
	return p->network;
}

const char *place_lost(const struct place *p)
{
	if (p->is_spent)
		return "processes left by the last execution used up the CPU time and were "
		       "ended: this ran in a new guest with the same files";
	if (network_is_lost(p->network))
		return "the gateway had ended: this ran with a new one, in a new guest with "
		       "the same files";
	if (box_has_ended(p->box))
		return "the sandbox had ended: this ran in a new one with the same files";
	return NULL;
}

bool place_await_loss(const struct place *p, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = p->box->control_fd, .events = POLLRDHUP },
				{ .fd = p->box->end_fd, .events = POLLIN } };

	return place_lost(p) || (poll(fds, 2, timeout_ms) > 0 && place_lost(p));
}

static int start_first(struct place *p, const struct box_options *o, struct box **ret,
		       struct cordon_error **reterr)
{
	cleanup_strlist struct strlist tools = { 0 };
	struct place_views views = { 0 };
	struct box_options place = *o;
	int r = tool_calls_names(p->root->calls, &tools) < 0
			? err_errno(reterr, ENOMEM, "open a sandbox")
			: place_views_make(p->root->languages, &p->root->policy, &tools, &views,
					   reterr);

	place.stays = true;
	place.also = views.list;
	place.also_count = views.count;
	if (r == 0)
		r = box_start(&place, &p->box, reterr);
	network_launched(p->network);
	place_views_done(&views);
	if (r == 0)
		r = box_wait_ready(p->box, deadline_after_ms(ENGINE_START_MS), reterr);
	return r < 0 ? r : box_first(p->box, ret, reterr);
}

/* Pid 1 of the place is there when its root is ready; until then the template does the work. */
static int fork_first(struct place *p, struct engine *e, struct cordon_error **reterr)
{
	int r = template_fork(p->template, p->network, e, &p->box, reterr);
	struct pulse pulse =
		pulse_begin(template_box(p->template), deadline_after_ms(ENGINE_START_MS));

	if (r == 0)
		r = pulse_wait_ready(&pulse, p->box, reterr);
	return r < 0 ? r : box_first(p->box, &e->box, reterr);
}

bool place_is_forked(const struct place *p)
{
	return p->template != NULL;
}

bool place_forks(const struct place *p)
{
	return p->template && !p->box;
}

int place_fork(struct place *p, struct engine *e, struct cordon_error **reterr)
{
	int r = fork_first(p, e, reterr);

	network_stock_renew(template_stock(p->template));
	return r;
}

void place_keep(struct place *p, struct engine *e)
{
	e->place = place_put(e->place); /* it belongs to the place now */
	e->timeline = NULL;
	p->waiting = e;
}

struct engine *place_take(struct place *p, enum guest_kind kind)
{
	struct engine *e = p->template && template_kind(p->template) == kind
				   ? atomic_exchange(&p->waiting, NULL)
				   : NULL;

	if (e)
		e->place = place_ref(p);
	return e;
}

int place_start(struct place *p, const struct box_options *o, struct box **ret,
		struct cordon_error **reterr)
{
	return p->box ? box_join(p->box, o, ret, reterr) : start_first(p, o, ret, reterr);
}

int place_languages(const char *const *names, enum guest_kind first, unsigned *ret,
		    struct cordon_error **reterr)
{
	unsigned bits = 0;

	if (!names)
		return 0;
	for (; *names; names++) {
		enum guest_kind kind = guest_from_name(*names);

		if (kind == GUEST_KIND_NONE)
			return err_set(reterr, CORDON_INVALID,
				       "unknown language '%s'; there are: python, r, node, sh",
				       *names);
		bits |= 1U << kind;
	}
	bits |= 1U << first;
	if (bits & 1U << GUEST_KIND_POD)
		return err_set(reterr, CORDON_INVALID,
			       "a pod cannot be one of several languages: it has bash and Python "
			       "already");
	*ret = bits;
	return 0;
}

unsigned place_tasks(unsigned languages)
{
	unsigned tasks = 0;

	for (enum guest_kind kind = GUEST_KIND_PYTHON; kind < GUEST_KIND_POD; kind++)
		if (languages & 1U << kind)
			tasks += guest_tasks(kind);
	return tasks;
}

const char *const *place_names(const struct cordon_session *root, const char **room)
{
	size_t count = 0;

	for (enum guest_kind kind = GUEST_KIND_PYTHON; kind < GUEST_KIND_POD; kind++)
		if (root->languages & 1U << kind)
			room[count++] = guest_name(kind);
	room[count] = NULL;
	return count ? room : NULL;
}

int place_check_language(const struct cordon_session *root, enum guest_kind kind,
			 struct cordon_error **reterr)
{
	if (!root->languages)
		return err_set(reterr, CORDON_INVALID,
			       "the session was opened for one language: open it with `languages` "
			       "for contexts and commands");
	if (!(root->languages & 1U << kind))
		return err_set(reterr, CORDON_STATE,
			       "the session was opened without '%s': name it in `languages`",
			       guest_name(kind));
	return 0;
}

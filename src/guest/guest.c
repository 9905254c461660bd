/* guest/guest.c - see guest.h. The table of guests and what they share. */
#include "guest/guest.h"

#include <errno.h>
#include <string.h>

#include "base/language_name.h"
#include "guest/languages.h"
#include "guest/mounts.h"
#include "guest/view.h"

static const struct {
	enum guest_kind kind;
	const char *name;
	bool can_fork;
	unsigned tasks;
	int (*fill)(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
} guests[] = {
	{ GUEST_KIND_PYTHON, "python", true, 2, python_launch },
	{ GUEST_KIND_R, "r", true, 2, r_launch },
	{ GUEST_KIND_NODE, "node", false, 14, node_launch },
	{ GUEST_KIND_SH, "sh", false, 3, sh_launch },
	{ GUEST_KIND_POD, "pod", true, 3, pod_launch },
};

enum guest_kind guest_from_name(const char *name)
{
	struct language_name known = { 0 };

	if (!language_name_find(name, &known))
		return GUEST_KIND_NONE;
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (str_eq(guests[i].name, known.guest))
			return guests[i].kind;
	return GUEST_KIND_NONE;
}

const char *guest_name(enum guest_kind kind)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (guests[i].kind == kind)
			return guests[i].name;
	return "none";
}

bool guest_can_fork(enum guest_kind kind)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (guests[i].kind == kind)
			return guests[i].can_fork;
	return false;
}

unsigned guest_tasks(enum guest_kind kind)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (guests[i].kind == kind)
			return guests[i].tasks;
	return 0;
}

/* Removing a token from the environment would leave its bytes in memory. Erasing those would need
 * ctypes in Python, which costs too much at start. */
bool guest_reads_token(enum guest_kind kind)
{
	return kind == GUEST_KIND_PYTHON;
}

uint64_t guest_heap_bytes(enum guest_kind kind, const struct policy *p)
{
	return kind == GUEST_KIND_NODE ? node_heap_bytes(p) : 0;
}

/* Nothing in a pod listens. */
static bool has_network(const struct guest_options *o)
{
	const struct policy_network *n = &o->policy->network;

	return o->kind == GUEST_KIND_POD ? n->allow_count > 0 || n->block_count > 0
					 : policy_has_sockets(o->policy);
}

int guest_launch(const struct guest_options *o, struct launch *ret, struct cordon_error **reterr)
{
	cleanup_launch struct launch l = { 0 };
	int r = -CORDON_INVALID;

	l.has_exec = o->policy->workspace_exec && o->kind != GUEST_KIND_POD;
	l.is_template = o->mode == GUEST_TEMPLATE;
	l.has_network = has_network(o);
	l.cwd = str_dup(o->directory);
	if (o->directory && !l.cwd)
		return err_errno(reterr, ENOMEM, "the launch");
	if (view_environment(&l, o->policy) < 0)
		return err_errno(reterr, ENOMEM, "the environment");
	if (o->token && launch_env(&l, "CORDON_TOKEN", o->token) < 0)
		return err_errno(reterr, ENOMEM, "the environment");
	/* Without LD_BIND_NOW the loader would resolve symbols later, again in every session, and
	 * each session would copy those pages. The runtimes remove it from the environment. */
	if (l.is_template && o->kind != GUEST_KIND_POD && launch_env(&l, "LD_BIND_NOW", "1") < 0)
		return err_errno(reterr, ENOMEM, "the environment");
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (guests[i].kind == o->kind)
			r = guests[i].fill(o, &l, reterr);
	if (r == 0)
		r = mounts_add(&l, o->policy, reterr);
	if (r < 0)
		return r;
	*ret = l;
	l = (struct launch){ 0 };
	return 0;
}

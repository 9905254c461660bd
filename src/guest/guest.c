/* guest/guest.c - see guest.h. The table of guests and what they share. */
#include "guest/guest.h"

#include <errno.h>
#include <string.h>

#include "guest/languages.h"
#include "guest/mounts.h"
#include "guest/view.h"

static const struct {
	enum guest_kind kind;
	const char *name;
	bool can_fork;
	int (*fill)(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
} guests[] = {
	{ GUEST_KIND_PYTHON, "python", true, python_launch },
	{ GUEST_KIND_R, "r", true, r_launch },
	{ GUEST_KIND_NODE, "node", false, node_launch },
	{ GUEST_KIND_SH, "sh", false, sh_launch },
	{ GUEST_KIND_POD, "pod", true, pod_launch },
};

enum guest_kind guest_from_name(const char *name)
{
	for (size_t i = 0; i < sizeof(guests) / sizeof(*guests); i++)
		if (str_eq(guests[i].name, name))
			return guests[i].kind;
	if (str_eq(name, "python3"))
		return GUEST_KIND_PYTHON;
	if (str_eq(name, "R"))
		return GUEST_KIND_R;
	if (str_eq(name, "bash") || str_eq(name, "shell"))
		return GUEST_KIND_SH;
	if (str_eq(name, "js") || str_eq(name, "javascript"))
		return GUEST_KIND_NODE;
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

int guest_launch(const struct guest_options *o, struct launch *ret, struct cordon_error **reterr)
{
	cleanup_launch struct launch l = { 0 };
	int r = -CORDON_INVALID;

	l.is_template = o->mode == GUEST_TEMPLATE;
	l.has_network = o->policy->network.allow_count > 0 || o->policy->network.block_count > 0;
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

/* policy/check.c - refuses policies that contradict themselves, naming the fields. */
#include <inttypes.h>
#include <string.h>

#include "policy/document.h"
#include "policy/kind.h"
#include "policy/name.h"
#include "policy/pattern.h"

/* Paths that the sandbox itself provides, including everything below. */
static const char *const wall_trees[] = {
	"/usr",    "/bin",  "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/proc", "/dev",  "/sys", "/etc",
};
/* Paths that a mount must not hide; below them mounts are allowed. */
static const char *const wall_places[] = { "/", "/home", "/home/user", "/tmp", "/workspace" };
/* Paths that would expose the host, in any mode. */
static const char *const host_doors[] = { "/proc", "/sys", "/dev" };

bool policy_is_own_path(const char *guest_path)
{
	for (size_t i = 0; i < sizeof(wall_trees) / sizeof(*wall_trees); i++)
		if (name_is_below(guest_path, wall_trees[i]))
			return true;
	return name_is_below(guest_path, "/run/cordon") || str_eq(guest_path, "/run/.landlock");
}

/* Passes every value through its reader again, so that a policy built in C is checked too. */
static int check_fields(const struct policy *p, struct cordon_error **reterr)
{
	cleanup_policy struct policy scratch = { 0 };
	cleanup_json json_t *j = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < field_count; i++) {
		const struct field *f = &field_table[i];
		json_decrefp(&j);
		j = f->kind->write(f, p, true);
		if (!j)
			return kind_nomem(reterr);
		r = f->kind->read(f, &scratch, j, reterr);
	}
	return r;
}

static int check_mount(const struct policy *p, size_t index, struct cordon_error **reterr)
{
	const struct policy_mount *m = &p->mounts[index];

	for (size_t i = 0; i < sizeof(wall_trees) / sizeof(*wall_trees); i++)
		if (name_is_below(m->guest, wall_trees[i]))
			return err_set(reterr, CORDON_INVALID,
				       "mounts[%zu]: %s belongs to the wall, mount it elsewhere",
				       index, m->guest);
	for (size_t i = 0; i < sizeof(wall_places) / sizeof(*wall_places); i++)
		if (str_eq(m->guest, wall_places[i]))
			return err_set(reterr, CORDON_INVALID,
				       "mounts[%zu]: %s would hide the workspace, mount it below "
				       "or elsewhere",
				       index, m->guest);
	for (size_t i = 0; m->host && i < sizeof(host_doors) / sizeof(*host_doors); i++)
		if (name_is_below(m->host, host_doors[i]) || str_eq(m->host, "/"))
			return err_set(reterr, CORDON_INVALID,
				       "mounts[%zu]: %s of the host would open the host itself",
				       index, m->host);
	for (size_t i = 0; i < index; i++) {
		const char *other = p->mounts[i].guest;
		if (name_is_below(m->guest, other) || name_is_below(other, m->guest))
			return err_set(reterr, CORDON_INVALID,
				       "mounts[%zu] and mounts[%zu] overlap: %s and %s", i, index,
				       other, m->guest);
	}
	return 0;
}

static bool any_covers(const struct policy_net_rule *rules, size_t count, const char *host)
{
	for (size_t i = 0; i < count; i++)
		if (pattern_covers(rules[i].host, host))
			return true;
	return false;
}

/* Allow wins over block. A block list alone allows the rest. */
static bool network_allows(const struct policy_network *n, const char *host)
{
	if (n->allow_count)
		return any_covers(n->allow, n->allow_count, host);
	return n->block_count && !any_covers(n->block, n->block_count, host);
}

static int check_secret(const struct policy *p, size_t index, struct cordon_error **reterr)
{
	const struct policy_secret *s = &p->secrets[index];

	if (!network_allows(&p->network, s->host))
		return err_set(reterr, CORDON_INVALID,
			       "secrets[%zu]: %s is for %s, which network.allow does not allow",
			       index, s->name, s->host);
	for (size_t i = 0; i < index; i++)
		if (str_eq(s->name, p->secrets[i].name))
			return err_set(reterr, CORDON_INVALID,
				       "secrets[%zu]: the name %s is taken already", index,
				       s->name);
	return 0;
}

/* "os.path" is allowed if "os" is. */
static bool allows_module(const struct policy_list *modules, const char *name)
{
	for (size_t i = 0; i < modules->names.count; i++) {
		const char *allowed = modules->names.items[i];
		size_t len = strlen(allowed);
		if (str_starts(name, allowed) && (name[len] == '\0' || name[len] == '.'))
			return true;
	}
	return modules->all;
}

static int check_preload(const struct policy *p, struct cordon_error **reterr)
{
	for (size_t i = 0; i < p->preload.count; i++)
		if (!allows_module(&p->modules, p->preload.items[i]))
			return err_set(reterr, CORDON_INVALID,
				       "preload names %s, which modules does not allow",
				       p->preload.items[i]);
	return 0;
}

static int check_expose(const struct policy *p, struct cordon_error **reterr)
{
	unsigned port = policy_gateway_port(p);

	return port ? err_set(reterr, CORDON_INVALID,
			      "expose has the port %u, on which the gateway listens in the sandbox",
			      port)
		    : 0;
}

int policy_check(const struct policy *p, struct cordon_error **reterr)
{
	int r = check_fields(p, reterr);

	if (r == 0 && p->stack_bytes > p->memory_bytes)
		r = err_set(reterr, CORDON_INVALID,
			    "stack_bytes (%" PRIu64 ") is more than memory_bytes (%" PRIu64 ")",
			    p->stack_bytes, p->memory_bytes);
	for (size_t i = 0; r == 0 && i < p->mount_count; i++)
		r = check_mount(p, i, reterr);
	for (size_t i = 0; r == 0 && i < p->secret_count; i++)
		r = check_secret(p, i, reterr);
	if (r == 0)
		r = check_preload(p, reterr);
	return r < 0 ? r : check_expose(p, reterr);
}

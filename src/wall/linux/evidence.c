/* wall/linux/evidence.c - see evidence.h. */
#include "wall/linux/evidence.h"

#include <linux/seccomp.h>
#include <sodium.h>
#include <string.h>
#include <sys/resource.h>

#include "base/random.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/linux_box.h"

static const struct {
	unsigned resource;
	const char *name;
} rlimit_names[] = {
	{ RLIMIT_CPU, "cpu_seconds" },   { RLIMIT_DATA, "memory_bytes" },
	{ RLIMIT_FSIZE, "file_bytes" },  { RLIMIT_NPROC, "processes" },
	{ RLIMIT_NOFILE, "open_files" }, { RLIMIT_STACK, "stack_bytes" },
	{ RLIMIT_CORE, "core_bytes" },
};

static json_t *number(uint64_t n)
{
	return n > INT64_MAX ? json_null() : json_integer((json_int_t)n);
}

static json_t *limits_json(const struct linux_box *b)
{
	const struct status *s = b->status;
	const struct cgroup *c = &linux_box_whole(b)->cgroup;
	json_t *o = json_object();

	for (uint32_t i = 0; i < s->rlimit_count && i < PLAN_RLIMITS; i++)
		for (size_t k = 0; k < sizeof(rlimit_names) / sizeof(*rlimit_names); k++)
			if (rlimit_names[k].resource == s->rlimits[i].resource)
				json_object_set_new(o, rlimit_names[k].name,
						    number(s->rlimits[i].soft));
	if (c->count > 0) {
		json_object_set_new(o, "cgroup_memory_bytes", number(c->memory_bytes));
		json_object_set_new(o, "cgroup_processes", number(c->processes));
		json_object_set_new(o, "cpu_percent", number(c->cpu_percent));
	}
	return o;
}

static json_t *namespaces_json(const struct linux_box *b)
{
	static const char *const names[PLAN_NAMESPACES] = { "user", "pid", "mount", "net",
							    "ipc",  "uts", "cgroup" };
	const uint64_t *ours = b->machine.namespaces, *theirs = b->status->namespaces;
	json_t *a = json_array();

	/* A namespace counts if it differs from the host's. */
	for (int i = 0; i < PLAN_NAMESPACES; i++)
		if (ours[i] && theirs[i] && ours[i] != theirs[i])
			json_array_append_new(a, json_string(names[i]));
	return a;
}

/* SHA-256 of the system call filters of its guest. */
static void filter_hash(const struct linux_box *b, uint8_t ret[static 32])
{
	const struct blueprint_seal seal = { .filter = b->filter,
					     .has_network = b->has_network,
					     .is_forked = b->is_forked,
					     .joins = b->place && b->status != b->place->status,
					     .template_filter = linux_box_whole(b)->filter,
					     .is_nonotify = b->status->is_nonotify };

	blueprint_filter_hash(&seal, ret);
}

static json_t *filter_json(const struct linux_box *b)
{
	if (b->status->seccomp_mode != SECCOMP_MODE_FILTER)
		return json_null();
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[8 + 2 * sizeof(hash)] = "sha256:";

	filter_hash(b, hash);
	hex_encode(text + 7, hash, sizeof(hash));
	return json_string(text);
}

/* Without namespaces: what is missing. */
static void lacks_namespaces(const struct machine *m, json_t *a)
{
	static const char *const words[] = {
		("no user namespace: the code has the sandbox's uid on the host, and per-user "
		 "limits of the kernel (queued signals) are shared with other processes of that "
		 "uid"),
		"no pid namespace: the code can probe for process ids of the host",
		"no mount namespace: the code sees the names of host files but cannot read them; "
		"the workspace is a host directory",
		"no ipc namespace: only the filter refuses System V objects",
		"no uts namespace: the host's name can be read",
		"no cgroup namespace",
		"no quota: fs_bytes and file_count are not enforced, file_bytes is",
		"no noexec mount: the loader can start programs from the workspace, in the same "
		"sandbox",
		"chmod, chown, times and extended attributes are refused everywhere",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		json_array_append_new(a, json_string(words[i]));
	json_array_append_new(a, json_string(m->landlock_abi < 4
						     ? "no network namespace: the filter alone "
						       "refuses sockets"
						     : "no network namespace: the filter and "
						       "Landlock's TCP rules refuse sockets"));
	if (m->landlock_abi < 5)
		json_array_append_new(a, json_string("no Landlock rule for device ioctls: only the "
						     "filter refuses them"));
	if (m->landlock_abi < 6)
		json_array_append_new(a, json_string("no signal scope: the filter lets the code "
						     "signal only itself and its process group"));
	if (!m->is_root)
		json_array_append_new(a, json_string("the capability bounding set is not empty; "
						     "no_new_privs prevents gaining any of it"));
	if (!m->cgroup_dir[0][0])
		json_array_append_new(
			a,
			json_string(
				"processes are counted together with all others of the same user"));
}

#define NO_GROUP                                                                                   \
	"no control group: memory is limited process by process, and what the kernel holds for "   \
	"the code (pipes, sockets) is not counted"

json_t *evidence_lacks(const struct machine *m)
{
	/* What an older Landlock does not support, and which layers still enforce it. */
	static const struct {
		int abi;
		const char *words;
	} parts[] = {
		{ 1, "no Landlock: only the mount view and the filter protect files" },
		{ 3, "no Landlock rule for truncation: only read-only mounts prevent it" },
		{ 4, "no Landlock rules for TCP: only the network namespace and the filter prevent "
		     "it" },
		{ 5, "no Landlock rule for device ioctls: only the filter refuses them" },
		{ 6, "no Landlock scopes: only the pid and network namespaces separate processes" },
	};
	json_t *a = json_array();

	if (!m->has_userns)
		lacks_namespaces(m, a);
	for (size_t i = 0; m->has_userns && i < sizeof(parts) / sizeof(*parts); i++)
		if (m->landlock_abi < parts[i].abi) {
			json_array_append_new(a, json_string(parts[i].words));
			if (m->landlock_abi == 0)
				break;
		}
	if (!m->cgroup_dir[0][0])
		json_array_append_new(a, json_string(NO_GROUP));
	return a;
}

json_t *evidence_assurance(const struct box *box, const struct policy *p)
{
	const struct linux_box *b = linux_box(box);
	const struct cgroup *c = &linux_box_whole(b)->cgroup;
	const struct status *s = b->status;
	json_t *o = json_object();

	(void)p;
	json_object_set_new(o, "wall", json_string(box->wall->name));
	json_object_set_new(o, "namespaces", namespaces_json(b));
	json_t *lacks = evidence_lacks(&b->machine);
	if (s->is_nonotify)
		json_array_append_new(lacks,
				      json_string("the filter has no listener: refused calls are "
						  "not reported, and file locks are not counted"));
	if (c->count == 0 && b->machine.cgroup_dir[0][0])
		json_array_append_new(lacks, json_string(NO_GROUP));
	if (b->is_stuck)
		json_array_append_new(
			lacks, json_string("killed, but a process has not ended: it waits in the "
					   "kernel, for example for a mount that does not answer"));
	if (json_array_size(lacks) > 0)
		json_object_set(o, "lacks", lacks);
	json_decref(lacks);
	json_object_set_new(o, "landlock",
			    s->landlock_proven ? json_integer(b->machine.landlock_abi)
					       : json_null());
	json_object_set_new(o, "seccomp", filter_json(b));
	json_object_set_new(o, "no_new_privs", json_boolean(s->no_new_privs == 1));
	json_object_set_new(o, "capabilities",
			    json_boolean((s->cap_eff | s->cap_prm |
					  (b->machine.has_userns ? s->cap_bnd : 0)) != 0));
	json_object_set_new(o, "cgroups",
			    c->count == 0 ? json_null()
			    : c->is_v2    ? json_string("v2")
					  : json_string("v1"));
	json_object_set_new(o, "limits", limits_json(b));
	return o;
}

void evidence_usage(struct box *box, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes)
{
	const struct linux_box *b = linux_box(box), *whole = linux_box_whole(b);

	*ret_cpu_us = b->status->cpu_us;
	*ret_peak_bytes = cgroup_read_peak(&whole->cgroup);
	if (*ret_peak_bytes == 0) {
		uint64_t seen = whole->status->memory_peak_kib, reaped = b->status->max_rss_kib;

		*ret_peak_bytes = (seen > reaped ? seen : reaped) * 1024;
	}
}

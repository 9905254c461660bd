/* wall/linux/evidence.c - what the status page and the control groups prove, as JSON for the
 * result. */
#include <errno.h>
#include <linux/seccomp.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/random.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/box.h"

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

static json_t *limits_json(const struct box *b)
{
	const struct status *s = box_status(b);
	const struct cgroup *c = box_cgroup(b);
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

static json_t *namespaces_json(const struct box *b)
{
	static const char *const names[PLAN_NAMESPACES] = { "user", "pid", "mount", "net",
							    "ipc",  "uts", "cgroup" };
	const uint64_t *ours = box_machine(b)->namespaces, *theirs = box_status(b)->namespaces;
	json_t *a = json_array();

	/* A namespace counts when it is another one than the host's. */
	for (int i = 0; i < PLAN_NAMESPACES; i++)
		if (ours[i] && theirs[i] && ours[i] != theirs[i])
			json_array_append_new(a, json_string(names[i]));
	return a;
}

static json_t *filter_json(const struct box *b)
{
	if (box_status(b)->seccomp_mode != SECCOMP_MODE_FILTER)
		return json_null();
	unsigned char hash[crypto_hash_sha256_BYTES];
	char text[8 + 2 * sizeof(hash)] = "sha256:";

	box_filter_hash(b, hash);
	hex_encode(text + 7, hash, sizeof(hash));
	return json_string(text);
}

/* Without namespaces: what is missing. */
static void lacks_namespaces(const struct machine *m, json_t *a)
{
	static const char *const words[] = {
		("no user namespace: the code has the uid of the sandbox on the host, and what the "
		 "kernel counts by user (queued signals) is counted with that uid's others"),
		"no pid namespace: numbers of the host's processes can be tried",
		"no mount namespace: the host's files can be seen, not read; the workspace is one",
		"no ipc namespace: the filter alone refuses System V objects",
		"no uts namespace: the host's name can be read",
		"no cgroup namespace",
		"no quota: fs_bytes and file_count are not enforced, file_bytes is",
		"no noexec mount: the loader can start a program of the workspace, walled alike",
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
		json_array_append_new(a, json_string("no Landlock rule for device ioctls: the "
						     "filter holds alone"));
	if (m->landlock_abi < 6)
		json_array_append_new(a, json_string("no signal scope: the code may signal itself "
						     "and its group only"));
	if (!m->is_root)
		json_array_append_new(a, json_string("the bounding set is not empty; no_new_privs "
						     "leaves nothing to gain from it"));
	if (!m->cgroup_dir[0][0])
		json_array_append_new(
			a, json_string("processes: counted with all others of the same user"));
}

#define NO_GROUP                                                                                   \
	"no control group: memory is limited process by process, and what the kernel holds for "   \
	"the code (pipes, sockets) is not counted"

json_t *box_lacks(const struct machine *m)
{
	/* What an older Landlock does not support, and which layers still enforce it. */
	static const struct {
		int abi;
		const char *words;
	} parts[] = {
		{ 1, "no Landlock: the mount view and the filter hold alone" },
		{ 3, "no Landlock rule for truncation: read-only mounts hold alone" },
		{ 4, "no Landlock rules for TCP: the network namespace and the filter hold alone" },
		{ 5, "no Landlock rule for device ioctls: the filter holds alone" },
		{ 6, "no Landlock scopes: the pid and network namespaces hold alone" },
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

json_t *box_assurance(const struct box *b, const struct policy *p)
{
	const struct status *s = box_status(b);
	json_t *o = json_object();

	(void)p;
	json_object_set_new(o, "wall", json_string("linux"));
	json_object_set_new(o, "namespaces", namespaces_json(b));
	json_t *lacks = box_lacks(box_machine(b));
	if (s->is_deaf)
		json_array_append_new(lacks,
				      json_string("no listener of the filter: what it refuses "
						  "is not explained, and file locks are not "
						  "counted"));
	if (box_cgroup(b)->count == 0 && box_machine(b)->cgroup_dir[0][0])
		json_array_append_new(lacks, json_string(NO_GROUP));
	if (box_is_stuck(b))
		json_array_append_new(lacks, json_string("killed, and not all of it has ended: a "
							 "process waits in the kernel, as for a "
							 "mount that does not answer"));
	if (json_array_size(lacks) > 0)
		json_object_set(o, "lacks", lacks);
	json_decref(lacks);
	json_object_set_new(o, "landlock",
			    s->landlock_proven ? json_integer(box_machine(b)->landlock_abi)
					       : json_null());
	json_object_set_new(o, "seccomp", filter_json(b));
	json_object_set_new(o, "no_new_privs", json_boolean(s->no_new_privs == 1));
	json_object_set_new(o, "capabilities",
			    json_boolean((s->cap_eff | s->cap_prm |
					  (box_machine(b)->has_userns ? s->cap_bnd : 0)) != 0));
	json_object_set_new(o, "cgroups",
			    box_cgroup(b)->count == 0 ? json_null()
			    : box_cgroup(b)->is_v2    ? json_string("v2")
						      : json_string("v1"));
	json_object_set_new(o, "limits", limits_json(b));
	return o;
}

/* Families worth a sentence: what was tried, and the smallest policy change that allows it. */
static const struct explanation {
	long nr;
	const char *operation, *remedy;
} explanations[] = {
	{ SYS_socket, "socket", "network.allow: name the hosts; the gateway then carries HTTP(S)" },
	{ SYS_connect, "connect",
	  "network.allow: name the hosts; the gateway then carries HTTP(S)" },
	{ SYS_bind, "bind", "none: a sandbox never listens" },
	{ SYS_listen, "listen", "none: a sandbox never listens" },
	{ SYS_accept, "accept", "none: a sandbox never listens" },
	{ SYS_accept4, "accept", "none: a sandbox never listens" },
	{ SYS_ptrace, "ptrace", "none" },
	{ SYS_process_vm_readv, "read another process", "none" },
	{ SYS_process_vm_writev, "write another process", "none" },
	{ SYS_mount, "mount", "mounts: name the directory in the policy" },
	{ SYS_umount2, "umount", "none" },
	{ SYS_unshare, "make a namespace", "none" },
	{ SYS_setns, "enter a namespace", "none" },
	{ SYS_clone, "make a namespace", "none" },
	{ SYS_keyctl, "use the kernel keyring", "none" },
	{ SYS_add_key, "use the kernel keyring", "none" },
	{ SYS_request_key, "use the kernel keyring", "none" },
	{ SYS_memfd_create, "make an executable memory file", "none: pass MFD_NOEXEC_SEAL" },
	{ SYS_mknod, "make a device", "none" },
	{ SYS_mknodat, "make a device", "none" },
	{ SYS_execveat, "execute a descriptor", "none: use execve" },
	{ SYS_io_uring_setup, "io_uring", "none" },
	{ SYS_bpf, "bpf", "none" },
	{ SYS_perf_event_open, "perf events", "none" },
	{ SYS_userfaultfd, "userfaultfd", "none" },
};

static const char *family_name(uint64_t family)
{
	switch (family) {
	case AF_UNIX:
		return "AF_UNIX";
	case AF_INET:
		return "AF_INET";
	case AF_INET6:
		return "AF_INET6";
	case AF_NETLINK:
		return "AF_NETLINK";
	case AF_PACKET:
		return "AF_PACKET";
	case AF_VSOCK:
		return "AF_VSOCK";
	case AF_ALG:
		return "AF_ALG";
	default:
		return NULL;
	}
}

/* What neither the view nor Landlock lets start. */
static json_t *exec_denial_json(const struct status_denial *d, uint32_t times)
{
	bool is_absent = d->arg == EXEC_ABSENT;

	return json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:I}", "operation", "execute", "target",
		d->is_rest ? json_null()
			   : json_string_lossy(d->target, strnlen(d->target, STATUS_TARGET)),
		"layer", is_absent ? "mount" : "landlock", "rule",
		is_absent ? "only the commands of the policy are there"
			  : "no right to execute this file was given",
		"remedy", "commands: name the program in the policy", "count", (json_int_t)times);
}

static json_t *denial_json(const struct status_denial *d, uint32_t times)
{
	if (d->syscall_nr == SYS_execve)
		return exec_denial_json(d, times);
	const struct explanation *e = NULL;
	char text[160];

	for (size_t i = 0; !e && i < sizeof(explanations) / sizeof(*explanations); i++)
		if (explanations[i].nr == (long)d->syscall_nr)
			e = &explanations[i];
	snprintf(text, sizeof(text), "system call %u", d->syscall_nr);
	json_t *o = json_object();
	json_object_set_new(o, "operation", json_string(e ? e->operation : text));
	const char *family =
		d->syscall_nr == SYS_socket && !d->is_rest ? family_name(d->arg) : NULL;
	if (family)
		json_object_set_new(o, "target", json_string(family));
	else if (d->target[0])
		json_object_set_new(
			o, "target",
			json_string_lossy(d->target, strnlen(d->target, STATUS_TARGET)));
	else
		json_object_set_new(o, "target", json_null());
	json_object_set_new(o, "layer", json_string("seccomp"));
	snprintf(text, sizeof(text), "system call %u is not allowed", d->syscall_nr);
	json_object_set_new(o, "rule", json_string(text));
	json_object_set_new(o, "remedy", json_string(e ? e->remedy : "none"));
	json_object_set_new(o, "count", json_integer(times));
	return o;
}

static bool is_unseen_exec(const struct status_denial *d)
{
	return d->syscall_nr == SYS_execve && d->arg == EXEC_UNSEEN;
}

void box_count_denials(const struct box *b, uint32_t ret[static BOX_DENIAL_COUNTS])
{
	const struct status *s = box_status(b);

	for (uint32_t i = 0; i < STATUS_DENIALS; i++)
		ret[i] = s->denials[i].count;
	ret[STATUS_DENIALS] = s->denials_lost;
}

/* What was refused when there was no room left to tell it apart. */
static void add_lost(json_t *a, uint32_t times)
{
	if (times > 0)
		json_array_append_new(
			a, json_pack("{s:s, s:n, s:s, s:s, s:s, s:I}", "operation",
				     "other system calls", "target", "layer", "seccomp", "rule",
				     "system calls that are not allowed, more than are told apart",
				     "remedy", "none", "count", (json_int_t)times));
}

bool box_saw_exec(const struct box *b, const uint32_t *before)
{
	const struct status *s = box_status(b);

	for (uint32_t i = 0; i < s->denial_count && i < STATUS_DENIALS; i++)
		if (is_unseen_exec(&s->denials[i]) && s->denials[i].count > before[i])
			return true;
	return false;
}

json_t *box_denials(const struct box *b, const uint32_t *before)
{
	const struct status *s = box_status(b);
	json_t *a = json_array();
	uint32_t count = s->denial_count < STATUS_DENIALS ? s->denial_count : STATUS_DENIALS;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t times = s->denials[i].count - (before ? before[i] : 0);

		if (times > 0 && !is_unseen_exec(&s->denials[i]))
			json_array_append_new(a, denial_json(&s->denials[i], times));
	}
	add_lost(a, s->denials_lost - (before ? before[STATUS_DENIALS] : 0));
	return a;
}

void box_usage(struct box *b, uint64_t *ret_cpu_us, uint64_t *ret_peak_bytes)
{
	*ret_cpu_us = box_status(b)->cpu_us;
	*ret_peak_bytes = cgroup_read_peak(box_cgroup(b));
	if (*ret_peak_bytes == 0) {
		uint64_t seen = box_status(b)->memory_peak_kib, reaped = box_status(b)->max_rss_kib;

		*ret_peak_bytes = (seen > reaped ? seen : reaped) * 1024;
	}
}

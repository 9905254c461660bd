/* wall/linux/denials.c - see denials.h. */
#include "wall/linux/denials.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "wall/linux/linux_box.h"

_Static_assert(BOX_DENIAL_COUNTS == STATUS_DENIALS + 1, "the rest is counted too");

#define REMEDY_CONNECT "network.allow: name the hosts; the gateway then carries HTTP(S)"
#define REMEDY_LISTEN "expose: name the port (expose+=8000)"
/* A socket is refused before the code can say what it is for. */
#define REMEDY_SOCKET                                                                              \
	"network.allow: name the hosts that it connects to; if it only listens, expose: name the " \
	"port (expose+=8000)"

/* Calls that get a sentence: what was tried, and the smallest policy change that allows it. */
static const struct explanation {
	long nr;
	const char *operation, *remedy;
} explanations[] = {
	{ SYS_socket, "socket", REMEDY_SOCKET },
	{ SYS_connect, "connect", REMEDY_CONNECT },
	{ SYS_bind, "bind", REMEDY_LISTEN },
	{ SYS_listen, "listen", REMEDY_LISTEN },
	{ SYS_accept, "accept", REMEDY_LISTEN },
	{ SYS_accept4, "accept", REMEDY_LISTEN },
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

static const char *socket_word(uint64_t arg)
{
	if (!(arg & STATUS_DATAGRAM))
		return "";
	return arg & STATUS_LOOKUP ? " nonblocking datagram" : " datagram";
}

/* A program that the view does not contain or Landlock does not allow. */
static json_t *exec_denial_json(const struct status_denial *d, uint32_t times)
{
	bool is_absent = d->arg == EXEC_ABSENT;

	return json_pack(
		"{s:s, s:o, s:s, s:s, s:s, s:I}", "operation", "execute", "target",
		d->is_rest ? json_null()
			   : json_string_lossy(d->target, strnlen(d->target, STATUS_TARGET)),
		"layer", is_absent ? "mount" : "landlock", "rule",
		is_absent ? "only the commands of the policy are there"
			  : "the policy does not allow executing this file",
		"remedy", "commands: name the program in the policy", "count", (json_int_t)times);
}

static const char *remedy_of(const struct status_denial *d, const char *usual)
{
	if (d->syscall_nr != SYS_socket || d->is_rest)
		return usual;
	switch (d->arg) {
	case AF_INET:
	case AF_INET6:
		return REMEDY_SOCKET;
	case AF_UNIX:
	case AF_UNIX | STATUS_DATAGRAM:
	case AF_UNIX | STATUS_DATAGRAM | STATUS_LOOKUP:
		return "none: there are only unnamed pairs; use a pipe or socketpair()";
	default:
		return REMEDY_CONNECT;
	}
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
	bool is_socket = d->syscall_nr == SYS_socket && !d->is_rest;
	const char *family = is_socket ? family_name((uint32_t)d->arg) : NULL;
	if (family)
		json_object_set_new(o, "target", json_sprintf("%s%s", family, socket_word(d->arg)));
	else if (d->target[0])
		json_object_set_new(
			o, "target",
			json_string_lossy(d->target, strnlen(d->target, STATUS_TARGET)));
	else
		json_object_set_new(o, "target", json_null());
	json_object_set_new(o, "layer", json_string("seccomp"));
	snprintf(text, sizeof(text), "system call %u is not allowed", d->syscall_nr);
	json_object_set_new(o, "rule", json_string(text));
	json_object_set_new(o, "remedy", json_string(remedy_of(d, e ? e->remedy : "none")));
	json_object_set_new(o, "count", json_integer(times));
	return o;
}

static bool is_unseen_exec(const struct status_denial *d)
{
	return d->syscall_nr == SYS_execve && d->arg == EXEC_UNSEEN;
}

void denials_count(const struct box *box, uint32_t ret[static BOX_DENIAL_COUNTS])
{
	const struct status *s = linux_box_status(box);

	for (uint32_t i = 0; i < STATUS_DENIALS; i++)
		ret[i] = s->denials[i].count;
	ret[STATUS_DENIALS] = s->denials_lost;
}

/* Refusals that did not fit the list. */
static void add_lost(json_t *a, uint32_t times)
{
	if (times > 0)
		json_array_append_new(
			a, json_pack("{s:s, s:n, s:s, s:s, s:s, s:I}", "operation",
				     "other system calls", "target", "layer", "seccomp", "rule",
				     "system calls that are not allowed; too many to list",
				     "remedy", "none", "count", (json_int_t)times));
}

bool denials_saw_exec(const struct box *box, const uint32_t *before)
{
	const struct status *s = linux_box_status(box);

	for (uint32_t i = 0; i < s->denial_count && i < STATUS_DENIALS; i++)
		if (is_unseen_exec(&s->denials[i]) && s->denials[i].count > before[i])
			return true;
	return false;
}

json_t *denials_list(const struct box *box, const uint32_t *before)
{
	const struct status *s = linux_box_status(box);
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

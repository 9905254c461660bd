/* wall/linux/filter/generate.c - build-time program: compiles the lists of calls.c with
 * libseccomp's binary tree, shrinks them (compact.h) and prints the BPF programs as C. Compiling at
 * every start would take a millisecond; the kernel loads these in a tenth of that. */
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wall/linux/filter/calls.h"
#include "wall/linux/filter/compact.h"
#include "wall/linux/format.h"

#define MUST(expr)                                                                                 \
	do {                                                                                       \
		int r_ = (expr);                                                                   \
		if (r_ < 0) {                                                                      \
			fprintf(stderr, "%s: %s\n", #expr, strerror(-r_));                         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define DENY SCMP_ACT_ERRNO(EPERM)
#define NAMESPACE_FLAGS 0x7e020000ULL
#define SHARE_FILES 0x400ULL
#define BE_THREAD 0x10000ULL
#define MFD_NOEXEC 8ULL
#define FAMILIES 48ULL
/* The kernel reads an int, so bits above it in the register must be ignored. */
#define FAMILY(family) SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, family)

static int number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	/* Older versions of libseccomp do not know the newest names. */
	static const struct {
		const char *name;
		int nr;
	} newer[] = { { "futex_waitv", 449 }, { "memfd_secret", 447 }, { "process_madvise", 440 } };
	for (size_t i = 0; nr == __NR_SCMP_ERROR && i < sizeof(newer) / sizeof(*newer); i++)
		if (strcmp(newer[i].name, name) == 0)
			nr = newer[i].nr;
	if (nr == __NR_SCMP_ERROR) {
		fprintf(stderr, "unknown system call %s\n", name);
		exit(1);
	}
	return nr;
}

static void add(scmp_filter_ctx c, uint32_t action, const char *name)
{
	int nr = number(name);

	if (nr >= 0) /* negative: this architecture does not have it */
		MUST(seccomp_rule_add(c, action, nr, 0));
}

static void add_if(scmp_filter_ctx c, uint32_t action, const char *name, struct scmp_arg_cmp cmp)
{
	int nr = number(name);

	if (nr >= 0)
		MUST(seccomp_rule_add(c, action, nr, 1, cmp));
}

/* A part of an argument that is a number below 64. */
struct field {
	const char *call;
	unsigned arg;
	uint64_t mask;
};

/* The kernel checks and compiles every comparison for every sandbox. So a set of numbers is not
 * compared one by one, but by aligned blocks: those of 4 to 7 differ from others in what is left
 * without the two lowest bits. */
static void add_set(scmp_filter_ctx c, uint32_t action, const struct field *f, uint64_t numbers)
{
	const uint64_t unit = f->mask & -f->mask;
	uint64_t size;

	for (uint64_t from = 0; from < 64; from += size) {
		uint64_t block = 1;

		for (size = 1; size < 32 && from % (2 * size) == 0; size *= 2) {
			uint64_t wider = block | block << size;

			if ((numbers >> from & wider) != wider)
				break;
			block = wider;
		}
		if (numbers >> from & 1)
			add_if(c, action, f->call,
			       SCMP_CMP64(f->arg, SCMP_CMP_MASKED_EQ,
					  f->mask & ~((size - 1) * unit), from * unit));
	}
}

static bool is_setup(const char *name)
{
	for (const char *const *p = calls_setup; *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

static void lock_rules(scmp_filter_ctx c, uint32_t action)
{
	for (const uint64_t *p = calls_locks; *p != CALLS_END; p++)
		add_if(c, action, "fcntl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, *p));
}

/* clone without new namespaces; with them it is refused and reported. Only threads may share
 * descriptors: otherwise the locks of a dead process, whose descriptor table lives on, could not be
 * attributed. */
static void clone_rules(scmp_filter_ctx c, uint32_t allow, uint32_t refuse)
{
	add_if(c, allow, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS | SHARE_FILES, 0));
	add_if(c, allow, "clone",
	       SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS | SHARE_FILES | BE_THREAD,
		       SHARE_FILES | BE_THREAD));
	for (uint64_t bit = 1; bit < 1ULL << 32; bit <<= 1)
		if (bit & NAMESPACE_FLAGS)
			add_if(c, refuse, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
}

static const uint64_t kinds[] = { 0, 0100000, 0010000 }; /* regular files and FIFOs */
static const uint64_t devices[] = { 0020000, 0060000 };

/* In a session of a template, which allows every mknod. */
static void refuse_kinds(scmp_filter_ctx c)
{
	static const struct field calls[] = { { "mknod", 1, 0170000 }, { "mknodat", 2, 0170000 } };
	uint64_t told = 0, allowed = 0;

	for (size_t i = 0; i < 2; i++)
		told |= 1ULL << (devices[i] >> 12);
	for (size_t i = 0; i < 3; i++)
		allowed |= 1ULL << (kinds[i] >> 12);
	for (size_t i = 0; i < 2; i++) {
		add_set(c, SCMP_ACT_NOTIFY, &calls[i], told);
		add_set(c, DENY, &calls[i], 0xffff & ~(told | allowed));
	}
}

static void file_rules(scmp_filter_ctx c, uint32_t allow, uint32_t refuse)
{
	for (size_t i = 0; i < 3; i++) {
		add_if(c, allow, "mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, 0170000, kinds[i]));
		add_if(c, allow, "mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, 0170000, kinds[i]));
	}
	for (size_t i = 0; i < 2; i++) {
		add_if(c, refuse, "mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, 0170000, devices[i]));
		add_if(c, refuse, "mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, 0170000, devices[i]));
	}
	/* Landlock does not cover memfds, so they must be created without execute permission. */
	add_if(c, allow, "memfd_create", SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_NOEXEC, MFD_NOEXEC));
	add_if(c, refuse, "memfd_create", SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_NOEXEC, 0));
}

/* Reports every address family, except one that the C library tries by itself before it resolves a
 * name: AF_NETLINK for the machine's addresses. */
static void refuse_sockets(scmp_filter_ctx c, bool net)
{
	static const struct field family = { "socket", 0, 0xffffffff };
	const uint64_t told = (1ULL << FAMILIES) - 1;
	const uint64_t others = 1ULL << AF_INET | 1ULL << AF_INET6 | 1ULL << AF_NETLINK;

	add_set(c, SCMP_ACT_NOTIFY, &family, net ? told & ~others : told);
	if (net)
		add_if(c, SCMP_ACT_ERRNO(EACCES), "socket", FAMILY(AF_NETLINK));
}

/* Only pairs with one fixed peer. Each socket of a datagram pair could send, with descriptors, to
 * any named socket: sendmsg has the address in memory, which a filter cannot read. A raw Unix
 * socket is a datagram socket to the kernel. */
static bool is_pair(uint64_t type)
{
	return type == SOCK_STREAM || type == SOCK_SEQPACKET;
}

static void allow_pairs(scmp_filter_ctx c)
{
	for (uint64_t type = 0; type < 16; type++)
		if (is_pair(type))
			MUST(seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 2,
					      FAMILY(AF_UNIX),
					      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, type)));
}

static void refuse_pairs(scmp_filter_ctx c)
{
	static const struct field kind = { "socketpair", 1, 0xf };
	uint64_t refused = 0;

	for (uint64_t type = 0; type < 16; type++)
		refused |= (uint64_t)!is_pair(type) << type;
	add_set(c, DENY, &kind, refused);
}

static void socket_rules(scmp_filter_ctx c, bool net)
{
	allow_pairs(c);
	refuse_sockets(c, net);
	add_if(c, SCMP_ACT_ALLOW, "sendto", SCMP_A4(SCMP_CMP_EQ, 0));
	if (!net)
		return;
	/* TCP, which ends at the relay on loopback; the resolver uses it too (use-vc). Datagrams,
	 * SCTP and MPTCP are not needed. */
	static const uint64_t families[] = { AF_INET, AF_INET6 }, protocols[] = { 0, IPPROTO_TCP };
	for (size_t i = 0; i < 4; i++)
		MUST(seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
				      SCMP_A0(SCMP_CMP_EQ, families[i % 2]),
				      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM),
				      SCMP_A2(SCMP_CMP_EQ, protocols[i / 2])));
	static const char *const calls[] = { "connect", "bind", "listen", "accept", "accept4" };
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		add(c, SCMP_ACT_ALLOW, calls[i]);
}

static bool is_net_call(const char *name)
{
	return !strcmp(name, "connect") || !strcmp(name, "bind") || !strcmp(name, "listen") ||
	       !strcmp(name, "accept") || !strcmp(name, "accept4");
}

static void argument_rules(scmp_filter_ctx c, bool net)
{
	for (const uint64_t *p = calls_ioctls; *p; p++)
		add_if(c, SCMP_ACT_ALLOW, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, *p));
	for (const uint64_t *p = calls_prctls; *p; p++)
		add_if(c, SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, *p));
	for (const uint64_t *p = calls_fcntls; *p != CALLS_END; p++)
		add_if(c, SCMP_ACT_ALLOW, "fcntl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, *p));
	for (const struct call_sockopt *p = calls_sockopts; p->level != CALLS_END; p++)
		if (net || p->level == SOL_SOCKET)
			MUST(seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
					      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, p->level),
					      SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, p->name)));
	add_if(c, SCMP_ACT_ALLOW, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
	add_if(c, SCMP_ACT_ALLOW, "personality", SCMP_A0(SCMP_CMP_EQ, 0xffffffff));
}

/* In guests that rarely start programs, exec is reported: pid 1 lets it continue and notes whether
 * the view or Landlock will refuse it. For shells that would only cost time. */
static bool is_exec_told(uint32_t guest)
{
	return guest != GUEST_SH && guest != GUEST_POD;
}

static void allowed_calls(scmp_filter_ctx c, uint32_t guest, bool is_last)
{
	for (const struct call *p = calls_allowed; p->name; p++) {
		bool is_told = is_last && ((is_exec_told(guest) && !strcmp(p->name, "execve")) ||
					   !strcmp(p->name, "flock"));

		if (p->guests & guest)
			add(c, is_told ? SCMP_ACT_NOTIFY : SCMP_ACT_ALLOW, p->name);
	}
}

static void explained_calls(scmp_filter_ctx c, bool net, uint32_t action)
{
	for (const char *const *p = calls_explained; *p; p++)
		if (!(net && is_net_call(*p)))
			add(c, action, *p);
}

static scmp_filter_ctx new_filter(uint32_t fallback)
{
	scmp_filter_ctx c = seccomp_init(fallback);

	if (!c)
		exit(1);
	MUST(seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
	MUST(seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2));
	return c;
}

static scmp_filter_ctx whole(uint32_t guest, bool net)
{
	scmp_filter_ctx c = new_filter(DENY);

	allowed_calls(c, guest, true);
	argument_rules(c, net);
	if (guest == GUEST_POD) /* a pod loads a further filter, which can only remove rights */
		add_if(c, SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, 22 /* SET_SECCOMP */));
	lock_rules(c, SCMP_ACT_NOTIFY);
	clone_rules(c, SCMP_ACT_ALLOW, SCMP_ACT_NOTIFY);
	file_rules(c, SCMP_ACT_ALLOW, SCMP_ACT_NOTIFY);
	socket_rules(c, net);
	explained_calls(c, net, SCMP_ACT_NOTIFY);
	add(c, SCMP_ACT_ERRNO(ENOSYS), "clone3"); /* the C library then uses clone */
	return c;
}

/* prctl options of seal.c, allowed in a template and refused in its sessions. */
static const uint64_t sealing_prctls[] = { 22 /* SET_SECCOMP */, 24 /* CAPBSET_DROP */,
					   28 /* SET_SECUREBITS */, 47 /* CAP_AMBIENT */ };

/* The reapers of a template answer notifications. */
static void listener_rules(scmp_filter_ctx c, uint32_t action)
{
	static const uint64_t requests[] = { SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
					     NOTIFY_SET_FLAGS };

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		add_if(c, action, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, requests[i]));
}

/* What relay.c needs beyond the guests' own calls, to open a session's loopback: allowed in a
 * template and refused in its sessions. */
static void relay_rules(scmp_filter_ctx c, uint32_t action)
{
	static const uint64_t interface[] = { SIOCGIFFLAGS, SIOCSIFFLAGS };

	for (size_t i = 0; i < sizeof(interface) / sizeof(*interface); i++)
		add_if(c, action, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, interface[i]));
	MUST(seccomp_rule_add(c, action, SCMP_SYS(setsockopt), 2,
			      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, SOL_SOCKET),
			      SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, SO_ATTACH_FILTER)));
}

/* ERRNO of one filter takes precedence over NOTIFY of another. So calls that the final filter
 * reports are allowed here; a template runs no untrusted code. */
static scmp_filter_ctx template(uint32_t guest, bool net)
{
	static const char *const wide[] = { "clone", "mknod", "mknodat", "memfd_create", "socket" };
	scmp_filter_ctx c = new_filter(DENY);

	allowed_calls(c, guest, false);
	argument_rules(c, net);
	for (size_t i = 0; i < sizeof(sealing_prctls) / sizeof(*sealing_prctls); i++)
		add_if(c, SCMP_ACT_ALLOW, "prctl", SCMP_A0(SCMP_CMP_EQ, sealing_prctls[i]));
	listener_rules(c, SCMP_ACT_ALLOW);
	/* Its sessions prove their namespaces with PIDFD_GET_*_NAMESPACE, all of ioctl type
	 * 0xff. */
	add_if(c, SCMP_ACT_ALLOW, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xfffffff0, 0xff00));
	add_if(c, SCMP_ACT_ALLOW, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
		add(c, SCMP_ACT_ALLOW, wide[i]);
	add_if(c, SCMP_ACT_ALLOW, "sendto", SCMP_A4(SCMP_CMP_EQ, 0));
	if (net)
		relay_rules(c, SCMP_ACT_ALLOW);
	lock_rules(c, SCMP_ACT_ALLOW);
	for (const char *const *p = calls_explained; *p; p++)
		if (!is_setup(*p))
			add(c, SCMP_ACT_ALLOW, *p);
	for (const char *const *p = calls_setup; *p; p++)
		add(c, SCMP_ACT_ALLOW, *p);
	return c;
}

/* Refuses everything but TCP, which the relay carries. */
static void refuse_but_tcp(scmp_filter_ctx c, uint64_t family)
{
	for (uint64_t type = 0; type < 16; type++)
		if (type != SOCK_STREAM)
			MUST(seccomp_rule_add(c, SCMP_ACT_NOTIFY, SCMP_SYS(socket), 2,
					      FAMILY(family),
					      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, type)));
	for (uint64_t protocol = 1; protocol < IPPROTO_TCP; protocol++)
		MUST(seccomp_rule_add(c, SCMP_ACT_NOTIFY, SCMP_SYS(socket), 2, FAMILY(family),
				      SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffff, protocol)));
	MUST(seccomp_rule_add(c, SCMP_ACT_NOTIFY, SCMP_SYS(socket), 2, FAMILY(family),
			      SCMP_A2(SCMP_CMP_GT, IPPROTO_TCP)));
}

static void final_sockets(scmp_filter_ctx c, bool net)
{
	refuse_sockets(c, net);
	add_if(c, DENY, "socket", SCMP_A0(SCMP_CMP_GE, FAMILIES)); /* no kernel has them yet */
	if (net) {
		refuse_but_tcp(c, AF_INET);
		refuse_but_tcp(c, AF_INET6);
		relay_rules(c, DENY);
	}
}

/* No signals to pid 1, and no other priority for it: see forbid_first in init/seal.c, which loads
 * the same as a filter of its own where this one is not loaded. */
static void refuse_first(scmp_filter_ctx c)
{
	static const char *const calls[] = {
		"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		add_if(c, DENY, calls[i], SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, 1));
	add_if(c, DENY, "setpriority", SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, PRIO_USER));
	MUST(seccomp_rule_add(c, DENY, SCMP_SYS(setpriority), 2,
			      SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff, PRIO_PROCESS),
			      SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, 1)));
}

/* Loaded in each session on top of the template's filter: set-up is over. */
static scmp_filter_ctx final(uint32_t guest, bool net)
{
	static const char *const silent[] = { "capset",
					      "seccomp",
					      "landlock_create_ruleset",
					      "landlock_add_rule",
					      "landlock_restrict_self",
					      "sethostname",
					      "setdomainname" };
	scmp_filter_ctx c = new_filter(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++)
		add(c, DENY, silent[i]);
	for (size_t i = 0; i < sizeof(sealing_prctls) / sizeof(*sealing_prctls); i++)
		/* A pod loads a further filter, which can only remove rights. */
		if (guest != GUEST_POD || sealing_prctls[i] != 22)
			add_if(c, DENY, "prctl", SCMP_A0(SCMP_CMP_EQ, sealing_prctls[i]));
	add_if(c, DENY, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xfffffff0, 0xff00));
	listener_rules(c, DENY);
	add(c, SCMP_ACT_ERRNO(ENOSYS), "clone3");
	explained_calls(c, net, SCMP_ACT_NOTIFY);
	if (is_exec_told(guest))
		add(c, SCMP_ACT_NOTIFY, "execve");
	final_sockets(c, net);
	refuse_pairs(c);
	lock_rules(c, SCMP_ACT_NOTIFY);
	add(c, SCMP_ACT_NOTIFY, "flock");
	add_if(c, DENY, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, SHARE_FILES | BE_THREAD, SHARE_FILES));
	for (uint64_t bit = 1; bit < 1ULL << 32; bit <<= 1)
		if (bit & NAMESPACE_FLAGS)
			add_if(c, SCMP_ACT_NOTIFY, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
	refuse_kinds(c);
	add_if(c, SCMP_ACT_NOTIFY, "memfd_create", SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_NOEXEC, 0));
	refuse_first(c);
	return c;
}

static void print(scmp_filter_ctx c, const char *name)
{
	FILE *f = tmpfile();
	static struct program whole, small;

	if (!f)
		exit(1);
	MUST(seccomp_export_bpf(c, fileno(f)));
	rewind(f);
	whole.len = fread(whole.code, sizeof(*whole.code), COMPACT_MAX, f);
	fclose(f);
	if (whole.len == 0 || whole.len == COMPACT_MAX)
		exit(1);
	compact(&whole, &small);
	const unsigned char *bytes = (const unsigned char *)small.code;
	size_t n = small.len * sizeof(*small.code);
	printf("static const unsigned char %s[%zu] __attribute__((aligned(8))) = {", name, n);
	for (size_t i = 0; i < n; i++)
		printf("%s%u,", i % 24 ? "" : "\n", bytes[i]);
	printf("\n};\n");
	seccomp_release(c);
}

int main(void)
{
	static const char *const names[] = { "python", "r", "node", "sh", "pod" };
	char name[64];

	printf("/* Generated by wall/linux/filter/generate.c. */\n");
	for (int net = 0; net < 2; net++) {
		for (uint32_t g = 0; g < 5; g++) {
			snprintf(name, sizeof(name), "filter_%s_whole_%d", names[g], net);
			print(whole(1U << g, net), name);
			snprintf(name, sizeof(name), "filter_%s_template_%d", names[g], net);
			print(template(1U << g, net), name);
			snprintf(name, sizeof(name), "filter_%s_final_%d", names[g], net);
			print(final(1U << g, net), name);
		}
	}
	return 0;
}

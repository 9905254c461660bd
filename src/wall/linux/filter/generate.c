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

static void file_rules(scmp_filter_ctx c, uint32_t allow, uint32_t refuse)
{
	static const uint64_t kinds[] = { 0, 0100000, 0010000 }; /* regular files and FIFOs */
	static const uint64_t devices[] = { 0020000, 0060000 };

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

/* Reports every address family, except those that the C library tries by itself: AF_UNIX for a name
 * service daemon and, before resolving, AF_NETLINK for the machine's addresses. */
static void refuse_sockets(scmp_filter_ctx c, bool net)
{
	for (uint64_t family = 0; family < 48; family++)
		if (family == AF_UNIX || (net && family == AF_NETLINK))
			add_if(c, SCMP_ACT_ERRNO(EACCES), "socket", FAMILY(family));
		else if (!net || (family != AF_INET && family != AF_INET6))
			add_if(c, SCMP_ACT_NOTIFY, "socket", FAMILY(family));
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
	for (uint64_t type = 0; type < 16; type++)
		if (!is_pair(type))
			add_if(c, DENY, "socketpair", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, type));
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
	/* Its reapers answer notifications. */
	add_if(c, SCMP_ACT_ALLOW, "ioctl",
	       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, SECCOMP_IOCTL_NOTIF_RECV));
	add_if(c, SCMP_ACT_ALLOW, "ioctl",
	       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, SECCOMP_IOCTL_NOTIF_SEND));
	add_if(c, SCMP_ACT_ALLOW, "ioctl",
	       SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, NOTIFY_SET_FLAGS));
	/* Its sessions prove their namespaces with PIDFD_GET_*_NAMESPACE, all of ioctl type
	 * 0xff. */
	add_if(c, SCMP_ACT_ALLOW, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xfffffff0, 0xff00));
	add_if(c, SCMP_ACT_ALLOW, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
		add(c, SCMP_ACT_ALLOW, wide[i]);
	if (net)
		add(c, SCMP_ACT_ALLOW, "sendto");
	else
		add_if(c, SCMP_ACT_ALLOW, "sendto", SCMP_A4(SCMP_CMP_EQ, 0));
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
	if (net) {
		refuse_but_tcp(c, AF_INET);
		refuse_but_tcp(c, AF_INET6);
	}
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
	static const uint64_t devices[] = { 0020000, 0060000 };
	scmp_filter_ctx c = new_filter(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++)
		add(c, DENY, silent[i]);
	for (size_t i = 0; i < sizeof(sealing_prctls) / sizeof(*sealing_prctls); i++)
		/* A pod loads a further filter, which can only remove rights. */
		if (guest != GUEST_POD || sealing_prctls[i] != 22)
			add_if(c, DENY, "prctl", SCMP_A0(SCMP_CMP_EQ, sealing_prctls[i]));
	add_if(c, DENY, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xfffffff0, 0xff00));
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
	for (size_t i = 0; i < 2; i++) {
		add_if(c, SCMP_ACT_NOTIFY, "mknod",
		       SCMP_A1(SCMP_CMP_MASKED_EQ, 0170000, devices[i]));
		add_if(c, SCMP_ACT_NOTIFY, "mknodat",
		       SCMP_A2(SCMP_CMP_MASKED_EQ, 0170000, devices[i]));
	}
	add_if(c, SCMP_ACT_NOTIFY, "memfd_create", SCMP_A1(SCMP_CMP_MASKED_EQ, MFD_NOEXEC, 0));
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

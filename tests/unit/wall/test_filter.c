/* unit/wall/test_filter.c - the compiled filters, run on single calls without loading them. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "harness/test.h"
#include "wall/linux/blueprint.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static uint32_t word_of(const struct seccomp_data *d, uint32_t offset)
{
	uint32_t word;

	ASSERT(offset <= sizeof(*d) - sizeof(word));
	memcpy(&word, (const char *)d + offset, sizeof(word));
	return word;
}

static bool is_true(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	default:
		return a & k; /* BPF_JSET */
	}
}

/* What the kernel would do with the call. */
static uint32_t verdict(const struct sock_filter *f, size_t count, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < count; pc++) {
		const struct sock_filter *i = &f[pc];

		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			a = word_of(d, i->k);
			break;
		case BPF_ALU:
			ASSERT_EQ(BPF_OP(i->code), BPF_AND);
			a &= i->k;
			break;
		case BPF_JMP:
			if (BPF_OP(i->code) == BPF_JA)
				pc += i->k;
			else
				pc += is_true(i->code, a, i->k) ? i->jt : i->jf;
			break;
		default:
			ASSERT_EQ(BPF_CLASS(i->code), BPF_RET);
			return i->k;
		}
	}
	test_fail(__FILE__, __LINE__, "the filter has no end");
	return 0;
}

static bool is_allowed(enum launch_filter guest, bool net, enum plan_filter which, uint64_t type)
{
	size_t len;
	const struct sock_filter *f = blueprint_filter(guest, net, which, &len);
	struct seccomp_data d = { .nr = SYS_socketpair, .arch = ARCH, .args = { AF_UNIX, type } };

	return verdict(f, len / sizeof(*f), &d) == SECCOMP_RET_ALLOW;
}

/* From a pair of any other type a message can be sent to a name, with descriptors. */
TEST(only_pairs_with_one_peer_for_life)
{
	static const int guests[] = { LAUNCH_PYTHON, LAUNCH_R, LAUNCH_NODE, LAUNCH_SH, LAUNCH_POD };
	static const enum plan_filter last[] = { FILTER_WHOLE, FILTER_FINAL };

	for (size_t g = 0; g < sizeof(guests) / sizeof(*guests); g++)
		for (int net = 0; net < 2; net++)
			for (size_t w = 0; w < 2; w++)
				for (uint64_t type = 0; type < 16; type++) {
					bool is_one = type == SOCK_STREAM || type == SOCK_SEQPACKET;

					ASSERT_EQ(is_allowed(guests[g], net, last[w],
							     type | SOCK_CLOEXEC | SOCK_NONBLOCK),
						  is_one);
				}
}

static uint32_t verdict_of(enum launch_filter guest, bool net, enum plan_filter which,
			   const struct seccomp_data *d)
{
	size_t len;
	const struct sock_filter *f = blueprint_filter(guest, net, which, &len);

	return verdict(f, len / sizeof(*f), d);
}

static bool passes(enum launch_filter guest, bool net, enum plan_filter which,
		   const struct seccomp_data *d)
{
	return verdict_of(guest, net, which, d) == SECCOMP_RET_ALLOW;
}

/* What a reported call may do is up to pid 1. */
static bool is_refused(enum launch_filter guest, bool net, const struct seccomp_data *d)
{
	uint32_t v = verdict_of(guest, net, FILTER_WHOLE, d);

	return v != SECCOMP_RET_ALLOW && v != SECCOMP_RET_USER_NOTIF;
}

/* What a session that was forked from a template may do, one that was started alone may too. */
static void must_not_be_wider(const struct seccomp_data *d)
{
	static const int guests[] = { LAUNCH_PYTHON, LAUNCH_R, LAUNCH_NODE, LAUNCH_SH, LAUNCH_POD };

	for (size_t g = 0; g < sizeof(guests) / sizeof(*guests); g++)
		for (int net = 0; net < 2; net++)
			if (passes(guests[g], net, FILTER_TEMPLATE, d) &&
			    passes(guests[g], net, FILTER_FINAL, d) &&
			    is_refused(guests[g], net, d))
				test_fail(__FILE__, __LINE__,
					  "guest %zu, net %d: call %d (%llx, %llx, %llx) is wider",
					  g, net, d->nr, (unsigned long long)d->args[0],
					  (unsigned long long)d->args[1],
					  (unsigned long long)d->args[2]);
}

enum { CALLS = 500, FAMILIES = 50, TYPES = 16, PROTOCOLS = 300, OPTIONS = 128 };

TEST(a_forked_session_may_call_nothing_more)
{
	for (int nr = 0; nr < CALLS; nr++)
		for (uint64_t arg = 0; arg < OPTIONS; arg++)
			for (unsigned at = 0; at < 6; at++) {
				struct seccomp_data d = { .nr = nr, .arch = ARCH };

				d.args[at] = arg;
				must_not_be_wider(&d);
				d.args[at] = 1ULL << (arg % 64);
				must_not_be_wider(&d);
			}
}

TEST(a_forked_session_has_no_other_sockets)
{
	struct seccomp_data d = { .nr = SYS_socket, .arch = ARCH };

	for (d.args[0] = 0; d.args[0] < FAMILIES; d.args[0]++)
		for (d.args[1] = 0; d.args[1] < TYPES; d.args[1]++)
			for (d.args[2] = 0; d.args[2] < PROTOCOLS; d.args[2]++)
				must_not_be_wider(&d);
	d.nr = SYS_setsockopt;
	for (d.args[1] = 0; d.args[1] < PROTOCOLS; d.args[1]++)
		for (d.args[2] = 0; d.args[2] < OPTIONS; d.args[2]++)
			must_not_be_wider(&d);
}

TEST(a_forked_session_has_no_other_requests)
{
	struct seccomp_data d = { .nr = SYS_ioctl, .arch = ARCH };

	for (d.args[1] = 0; d.args[1] < 0x10000; d.args[1]++)
		must_not_be_wider(&d);
	static const uint64_t of_listeners[] = { SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
						 SECCOMP_IOCTL_NOTIF_ADDFD };
	for (size_t i = 0; i < sizeof(of_listeners) / sizeof(*of_listeners); i++) {
		d.args[1] = of_listeners[i];
		must_not_be_wider(&d);
	}
	d.nr = SYS_fcntl;
	for (d.args[1] = 0; d.args[1] < 2048; d.args[1]++)
		must_not_be_wider(&d);
}

enum { REFUSED = SECCOMP_RET_ERRNO | EPERM };

static void must_be(int nr, const uint64_t args[static 3], uint32_t expected)
{
	static const int guests[] = { LAUNCH_PYTHON, LAUNCH_R, LAUNCH_NODE, LAUNCH_SH, LAUNCH_POD };
	struct seccomp_data d = { .nr = nr, .arch = ARCH, .args = { args[0], args[1], args[2] } };

	for (size_t g = 0; g < sizeof(guests) / sizeof(*guests); g++)
		for (int net = 0; net < 2; net++)
			ASSERT_EQ(verdict_of(guests[g], net, FILTER_FINAL, &d), expected);
}

/* The kernel reads ints, whatever is above them in the register. */
#define ABOVE (5ULL << 32)

TEST(a_forked_session_does_not_reach_pid_1)
{
	static const int calls[] = {
		SYS_kill,      SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
		SYS_pidfd_open
	};
	static const uint64_t others[] = { 0, 2, 3, UINT32_MAX, ABOVE | 2 };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		must_be(calls[i], (uint64_t[]){ 1, 1, 1 }, REFUSED);
		must_be(calls[i], (uint64_t[]){ ABOVE | 1, 0, 0 }, REFUSED);
		for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
			must_be(calls[i], (uint64_t[]){ others[k], 1, 1 }, SECCOMP_RET_ALLOW);
	}
	must_be(SYS_setpriority, (uint64_t[]){ PRIO_PROCESS, 1, 19 }, REFUSED);
	must_be(SYS_setpriority, (uint64_t[]){ ABOVE | PRIO_PROCESS, ABOVE | 1, 19 }, REFUSED);
	must_be(SYS_setpriority, (uint64_t[]){ PRIO_USER, 0, 19 }, REFUSED);
	must_be(SYS_setpriority, (uint64_t[]){ PRIO_PROCESS, 0, 19 }, SECCOMP_RET_ALLOW);
	must_be(SYS_setpriority, (uint64_t[]){ PRIO_PROCESS, 2, 1 }, SECCOMP_RET_ALLOW);
	must_be(SYS_setpriority, (uint64_t[]){ PRIO_PGRP, 1, 1 }, SECCOMP_RET_ALLOW);
}

/* Of the sixteen kinds of a file, each by its number and not by its neighbours'. */
TEST(a_forked_session_makes_files_and_fifos_only)
{
	for (uint64_t kind = 0; kind < 16; kind++) {
		uint64_t mode = kind << 12 | 0644;
		uint32_t expected = kind == 0 || kind == 1 || kind == 8 ? SECCOMP_RET_ALLOW
				    : kind == 2 || kind == 6 ? (uint32_t)SECCOMP_RET_USER_NOTIF
							     : REFUSED;

#ifdef SYS_mknod
		must_be(SYS_mknod, (uint64_t[]){ 0, mode, 0 }, expected);
#endif
		must_be(SYS_mknodat, (uint64_t[]){ 0, 0, ABOVE | mode }, expected);
	}
}

/* Both filters: every family that the kernel has is reported, and those of a network only there. */
TEST(sockets_of_all_families_are_reported)
{
	static const enum plan_filter last[] = { FILTER_WHOLE, FILTER_FINAL };
	struct seccomp_data d = { .nr = SYS_socket, .arch = ARCH, .args = { 0, SOCK_STREAM, 0 } };

	for (uint64_t family = 0; family < 48; family++)
		for (size_t w = 0; w < 2; w++) {
			bool is_inet = family == AF_INET || family == AF_INET6;
			uint32_t netted = is_inet                ? SECCOMP_RET_ALLOW
					  : family == AF_NETLINK ? SECCOMP_RET_ERRNO | EACCES
								 : SECCOMP_RET_USER_NOTIF;

			d.args[0] = family;
			ASSERT_EQ(verdict_of(LAUNCH_PYTHON, true, last[w], &d), netted);
			ASSERT_EQ(verdict_of(LAUNCH_PYTHON, false, last[w], &d),
				  SECCOMP_RET_USER_NOTIF);
		}
}

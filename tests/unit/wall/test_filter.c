/* unit/wall/test_filter.c - the compiled filters, run on single calls without loading them. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

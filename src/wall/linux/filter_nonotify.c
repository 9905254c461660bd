/* wall/linux/filter_nonotify.c - see filter_nonotify.h. */
#include "wall/linux/filter_nonotify.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

size_t filter_nonotify_make(const struct sock_filter *from, size_t count, struct sock_filter *ret)
{
	const struct sock_filter start[FILTER_NONOTIFY_MORE] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 9),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 6),
		/* File locks, because no listener counts them. */
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6 /* F_SETLK */, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 7 /* F_SETLKW */, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 37 /* F_OFD_SETLK */, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 38 /* F_OFD_SETLKW */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	memcpy(ret, start, sizeof(start));
	for (size_t i = 0; i < count; i++) {
		ret[FILTER_NONOTIFY_MORE + i] = from[i];
		if (from[i].code == (BPF_RET | BPF_K) && from[i].k == SECCOMP_RET_USER_NOTIF)
			ret[FILTER_NONOTIFY_MORE + i].k = SECCOMP_RET_ERRNO | EPERM;
	}
	return count + FILTER_NONOTIFY_MORE;
}

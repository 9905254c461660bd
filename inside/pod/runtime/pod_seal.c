/* inside/pod/runtime/pod_seal.c - see pod_seal.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/pod_seal.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/pod/runtime/door.h"

#define MAX_NUMBERS 256
#define MAX_PROGRAM (MAX_NUMBERS * 6 + 32)
#define X32_BIT 0x40000000u

/* Calls that the runtime itself needs. execve is in neither list: a pod's exec stays in the
 * process. */
static const int own[] = {
	SYS_rt_sigaction, SYS_rt_sigreturn,      SYS_munmap,     SYS_mprotect, SYS_brk,
	SYS_openat2,      SYS_restart_syscall,   SYS_exit_group, SYS_recvmsg,  SYS_sendmsg,
	SYS_pidfd_open,   SYS_pidfd_send_signal, SYS_lseek,
};

/* In the door's list, but answered without the kernel or with a narrower call. */
static const int not_made[] = {
	SYS_execve,   SYS_vfork,       SYS_splice,    SYS_copy_file_range, SYS_sync,
	SYS_syncfs,   SYS_sigaltstack, SYS_setuid,    SYS_setgid,          SYS_setreuid,
	SYS_setregid, SYS_setresuid,   SYS_setresgid, SYS_mknod,           SYS_creat,
};

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Only if the session has a gateway. */
static const int network[] = { SYS_socket, SYS_connect };

static bool is_in(const int *list, size_t count, int number)
{
	while (count)
		if (list[--count] == number)
			return true;
	return false;
}

static size_t collect(int numbers[MAX_NUMBERS], bool has_network)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < door_count && n < MAX_NUMBERS; i++) {
		int number = door_table[i].number;

		if (number < DOOR_ARGS_SIZE &&
		    !is_in(not_made, sizeof not_made / sizeof *not_made, number) &&
		    (has_network || !is_in(network, sizeof network / sizeof *network, number)))
			numbers[n++] = number;
	}
	for (size_t i = 0; i < sizeof own / sizeof *own && n < MAX_NUMBERS; i++)
		numbers[n++] = own[i];
	qsort(numbers, n, sizeof *numbers, compare);
	for (size_t i = 0; i < n; i++)
		if (!i || numbers[i] != numbers[i - 1])
			numbers[kept++] = numbers[i];
	return kept;
}

struct writer {
	struct sock_filter *at;
	size_t n;
};

static void emit(struct writer *w, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	w->at[w->n++] = (struct sock_filter){ code, yes, no, k };
}

/* Binary search: every leaf allows one number or refuses. */
static void tree(struct writer *w, const int *numbers, size_t n)
{
	size_t half = n / 2, jump;

	if (n == 1) {
		emit(w, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[0], 0, 1);
		emit(w, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
		emit(w, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
		return;
	}
	emit(w, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)numbers[half], 0, 1);
	jump = w->n;
	emit(w, BPF_JMP | BPF_JA, 0, 0, 0);
	tree(w, numbers, half);
	w->at[jump].k = (uint32_t)(w->n - jump - 1);
	tree(w, numbers + half, n - half);
}

/* Allows mmap and mprotect only without PROT_EXEC: no code is created after this. */
static void no_code(struct writer *w, int number)
{
	emit(w, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	emit(w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]), 0, 0);
	emit(w, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	emit(w, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES, 0, 0);
	emit(w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* No pairs of datagram sockets, because each end could send to any named socket. */
static void no_datagrams(struct writer *w)
{
	emit(w, BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 6);
	emit(w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]), 0, 0);
	emit(w, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
	emit(w, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0);
	emit(w, BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0);
	emit(w, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	emit(w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

static size_t compose(struct sock_filter *program, bool has_network)
{
	struct writer w = { program, 0 };
	int numbers[MAX_NUMBERS];
	size_t n = collect(numbers, has_network);

	emit(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(&w, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	emit(&w, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&w, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	emit(&w, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	emit(&w, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	no_code(&w, SYS_mmap);
	no_code(&w, SYS_mprotect);
	no_datagrams(&w);
	tree(&w, numbers, n);
	return w.n;
}

int seal_install(bool has_network)
{
	struct sock_filter program[MAX_PROGRAM];
	struct sock_fprog prog = { .filter = program };

	prog.len = (unsigned short)compose(program, has_network);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

void seal_print(bool has_network)
{
	struct sock_filter program[MAX_PROGRAM];
	size_t bytes = compose(program, has_network) * sizeof *program;

	for (size_t i = 0; i < bytes; i++)
		printf("%02x", ((const unsigned char *)program)[i]);
	putchar('\n');
}

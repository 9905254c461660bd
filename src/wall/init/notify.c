/* wall/init/notify.c - see notify.h. What is recorded here is evidence for the result; the refusal
 * itself does not depend on it: when this process is gone the kernel answers ENOSYS. */
#include "wall/init/notify.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Best effort: the path argument as the guest's memory has it now. */
static void read_path(pid_t pid, uint64_t address, char *ret, size_t size)
{
	struct iovec local = { .iov_base = ret, .iov_len = size - 1 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size - 1 };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	/* A read over the end of a mapping fails whole: take what is before the page's end. */
	if (n < 0) {
		size_t left = 4096 - (address & 4095);
		local.iov_len = remote.iov_len = left < size - 1 ? left : size - 1;
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	}
	ret[n > 0 ? n : 0] = '\0';
}

static struct status_denial *find(struct status *s, uint32_t nr, uint64_t arg, const char *target)
{
	for (uint32_t i = 0; i < s->denial_count; i++) {
		struct status_denial *d = &s->denials[i];

		if (d->syscall_nr == nr && d->arg == arg && strcmp(d->target, target) == 0)
			return d;
	}
	if (s->denial_count == STATUS_DENIALS) {
		s->denials_lost++;
		return NULL;
	}
	struct status_denial *d = &s->denials[s->denial_count];
	d->syscall_nr = nr;
	d->arg = arg;
	memcpy(d->target, target, strnlen(target, sizeof(d->target) - 1));
	s->denial_count++;
	return d;
}

static uint64_t telling_arg(const struct seccomp_data *d)
{
	switch (d->nr) {
	case SYS_socket:
	case SYS_clone:
	case SYS_unshare:
	case SYS_ptrace:
	case SYS_keyctl:
	case SYS_bpf:
	case SYS_prctl:
		return d->args[0];
	case SYS_setns:
	case SYS_memfd_create:
	case SYS_ioctl:
		return d->args[1];
	default:
		return 0;
	}
}

static bool has_path(int nr, int *ret_arg)
{
	switch (nr) {
	case SYS_mount:
		*ret_arg = 1;
		return true;
	case SYS_umount2:
	case SYS_chroot:
	case SYS_mknod:
		*ret_arg = 0;
		return true;
	case SYS_mknodat:
		*ret_arg = 1;
		return true;
	default:
		return false;
	}
}

static int refusal(int nr)
{
	return nr == SYS_socket ? EACCES : EPERM;
}

void notify_answer(struct job *j, int listener)
{
	struct seccomp_notif req = { 0 };
	struct seccomp_notif_resp resp = { 0 };
	char target[STATUS_TARGET] = "";
	int arg;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) != 0)
		return;
	if (has_path(req.data.nr, &arg))
		read_path((pid_t)req.pid, req.data.args[arg], target, sizeof(target));
	struct status_denial *d =
		find(j->status, (uint32_t)req.data.nr, telling_arg(&req.data), target);
	if (d)
		d->count++;
	resp.id = req.id;
	resp.error = -refusal(req.data.nr);
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

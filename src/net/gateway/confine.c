/* net/gateway/confine.c - see confine.h. */
#include "net/gateway/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int add_path(int ruleset, const char *path, __u64 access)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return 0; /* a missing file needs no rule */
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	long r = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (r < 0 && errno == EINVAL) { /* a file: it cannot have the right to list */
		rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
		r = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	}
	(void)close(fd);
	return r < 0 ? -1 : 0;
}

/* Files that the resolver, its modules and TLS read. */
static const char *const readable[] = {
	"/etc/resolv.conf",
	"/etc/hosts",
	"/etc/nsswitch.conf",
	"/etc/host.conf",
	"/etc/gai.conf",
	"/etc/services",
	"/etc/ld.so.cache",
	"/etc/ssl",
	"/etc/pki",
	"/usr/lib/ssl",
	"/usr/share/ca-certificates",
	"/usr/lib",
	"/usr/lib64",
	"/lib",
	"/lib64",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
	"/usr/local/share/ca-certificates",
};

/* The user's own certificate authorities: TLS loads them on first use. */
static int add_authorities(int ruleset, __u64 access)
{
	const char *file = getenv("SSL_CERT_FILE"), *folders = getenv("SSL_CERT_DIR");
	int r = file ? add_path(ruleset, file, access) : 0;

	while (folders && *folders && r == 0) {
		char one[PATH_MAX];
		size_t len = strcspn(folders, ":");

		if (len > 0 && len < sizeof(one)) {
			memcpy(one, folders, len);
			one[len] = '\0';
			r = add_path(ruleset, one, access);
		}
		folders += len + (folders[len] == ':');
	}
	return r;
}

static bool restrict_files(const char *ca_file)
{
	struct landlock_ruleset_attr attr = {
		.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1,
	};
	__u64 read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (fd < 0)
		return false;
	int r = ca_file ? add_path(fd, ca_file, read) : add_authorities(fd, read);
	for (size_t i = 0; i < sizeof(readable) / sizeof(*readable) && r == 0; i++)
		r = add_path(fd, readable[i], read);
	if (r == 0)
		r = (int)syscall(SYS_landlock_restrict_self, fd, 0);
	(void)close(fd);
	return r == 0;
}

static const int denied[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(kcmp),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsmount),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	SCMP_SYS(memfd_create),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(personality),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(listen),
	SCMP_SYS(setuid),
	SCMP_SYS(setresuid),
	SCMP_SYS(setgid),
	SCMP_SYS(setresgid),
	SCMP_SYS(setgroups),
	SCMP_SYS(capset),
	SCMP_SYS(chmod),
	SCMP_SYS(fchmodat),
	SCMP_SYS(chown),
	SCMP_SYS(fchownat),
	SCMP_SYS(iopl),
	SCMP_SYS(ioperm),
	SCMP_SYS(syslog),
	SCMP_SYS(acct),
	SCMP_SYS(quotactl),
};

static int add_rules(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(denied) / sizeof(*denied) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
	/* Allow threads, not processes. A filter cannot see the flags of clone3, so that is refused
	 * and libc falls back to clone. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* No raw or packet sockets. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
				     SCMP_A0(SCMP_CMP_GT, 16)); /* above AF_NETLINK */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1,
				     SCMP_A0(SCMP_CMP_EQ, PR_SET_DUMPABLE));
	return r;
}

static bool restrict_calls(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (!ctx)
		return false;
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	bool ok = add_rules(ctx) == 0 && seccomp_load(ctx) == 0;
	seccomp_release(ctx);
	return ok;
}

int confine_self(const char *ca_file, struct confine_result *ret, struct cordon_error **reterr)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(reterr, errno, "no_new_privs");
	ret->has_landlock = restrict_files(ca_file);
	ret->has_seccomp = restrict_calls();
	return 0;
}

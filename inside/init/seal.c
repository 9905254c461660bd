/* inside/init/seal.c - see seal.h. The order matters: mounts are impossible after Landlock,
 * Landlock needs no_new_privs, and the filter comes last because it forbids all of this. */
#include "inside/init/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "wall/linux/filter_nonotify.h"
#include "wall/linux/kernel.h"
#include "wall/linux/namespaces.h"

static int set_limit(const struct plan_rlimit *l)
{
	struct rlimit has, r = { .rlim_cur = l->soft, .rlim_max = l->hard };

	if (setrlimit((int)l->resource, &r) == 0)
		return 0;
	/* The host's own hard limit is lower: stricter than requested, and read back. */
	if (errno != EPERM || getrlimit((int)l->resource, &has) != 0)
		return -1;
	r.rlim_max = r.rlim_max < has.rlim_max ? r.rlim_max : has.rlim_max;
	r.rlim_cur = r.rlim_cur < r.rlim_max ? r.rlim_cur : r.rlim_max;
	return setrlimit((int)l->resource, &r);
}

/* Sets the limit on descriptors, or all the others. */
static int set_limits(struct job *j, bool of_files)
{
	for (uint32_t i = 0; i < j->plan->rlimit_count; i++) {
		const struct plan_rlimit *l = &j->plan->rlimits[i];

		if ((l->resource == RLIMIT_NOFILE) == of_files && set_limit(l) != 0)
			return plan_fail(j, STAGE_RLIMITS, i, errno);
	}
	return 0;
}

int seal_rlimits(struct job *j)
{
	return set_limits(j, false);
}

int seal_open_files(struct job *j)
{
	return set_limits(j, true);
}

int seal_bounding(struct job *j)
{
	/* EINVAL: beyond this kernel's last capability. EPERM: we may not drop it, and then we have
	 * none either (an ordinary user without namespaces). */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno != EINVAL && errno != EPERM)
				return plan_fail(j, STAGE_CAPABILITIES, 2, errno);
			break;
		}
	return 0;
}

int seal_privileges(struct job *j)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	(void)prctl(PR_SET_SECUREBITS,
		    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		    0, 0, 0);
	if (syscall(SYS_capset, &head, none) != 0)
		return plan_fail(j, STAGE_CAPABILITIES, 0, errno);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return plan_fail(j, STAGE_CAPABILITIES, 1, errno);
	return 0;
}

int seal_capabilities(struct job *j)
{
	return seal_bounding(j) < 0 ? -1 : seal_privileges(j);
}

static int add_rule(struct job *j, int ruleset, const struct plan_rule *rule)
{
	struct stat st;
	int fd = kernel_open(plan_text(j, rule->path), O_PATH | O_CLOEXEC, 0);

	if (fd < 0)
		return rule->optional ? 0 : -errno;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return -errno;
	}
	struct ll_path_attr attr = { .access = rule->access & j->plan->landlock_fs, .fd = fd };
	if (!S_ISDIR(st.st_mode)) /* rights for directories are refused on files */
		attr.access &= LL_FS_EXECUTE | LL_FS_WRITE_FILE | LL_FS_READ_FILE | LL_FS_TRUNCATE |
			       LL_FS_IOCTL_DEV;
	int r = syscall(SYS_landlock_add_rule, ruleset, 1, &attr, 0) != 0 ? -errno : 0;
	close(fd);
	return r;
}

int seal_landlock(struct job *j)
{
	const struct plan *p = j->plan;
	const struct plan_rule *rules = plan_at(j, p->rules);
	struct ll_ruleset_attr attr = { p->landlock_fs, p->landlock_net, p->landlock_scoped };
	size_t size = p->landlock_scoped ? 24 : p->landlock_net ? 16 : 8;

	if ((j->flags & PLANF_NO_LANDLOCK) || !p->landlock_fs)
		return 0;
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return plan_fail(j, STAGE_LANDLOCK, UINT32_MAX, errno);
	for (uint32_t i = 0; i < p->rule_count; i++) {
		int r = add_rule(j, ruleset, &rules[i]);
		if (r < 0) {
			close(ruleset);
			return plan_fail(j, STAGE_LANDLOCK, i, -r);
		}
	}
	long r = syscall(SYS_landlock_restrict_self, ruleset, 0);
	int e = errno;
	close(ruleset);
	return r != 0 ? plan_fail(j, STAGE_LANDLOCK, UINT32_MAX - 1, e) : 0;
}

/* If the supervisor checks memory, no memory may exist that no process has mapped: memory files are
 * refused with ENOSYS, as on a kernel without them. The main filter refuses other architectures. */
static long forbid_memory_files(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

#define REFUSE(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, REFUSED)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

/* Without namespaces the guest is one of the user's processes, and Landlock covers neither file
 * attributes nor process priorities nor datagrams to named sockets. So these calls are refused,
 * whatever their target. */
static long forbid_neighbours(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		REFUSE(SYS_chmod),
		REFUSE(SYS_fchmod),
		REFUSE(SYS_fchmodat),
		REFUSE(452 /* fchmodat2 */),
		REFUSE(SYS_chown),
		REFUSE(SYS_fchown),
		REFUSE(SYS_lchown),
		REFUSE(SYS_fchownat),
		REFUSE(SYS_utime),
		REFUSE(SYS_utimes),
		REFUSE(SYS_futimesat),
		REFUSE(SYS_utimensat),
		REFUSE(SYS_setxattr),
		REFUSE(SYS_lsetxattr),
		REFUSE(SYS_fsetxattr),
		REFUSE(SYS_removexattr),
		REFUSE(SYS_lremovexattr),
		REFUSE(SYS_fremovexattr),
		REFUSE(SYS_inotify_init), /* limited per user */
		REFUSE(SYS_inotify_init1),
		REFUSE(SYS_inotify_add_watch),
		REFUSE(SYS_setpriority),
		REFUSE(SYS_pidfd_open),
		/* kill(-1) returns success even if Landlock prevented every signal. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 7),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 5),
		LOAD(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* SOCK_STREAM */, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 5 /* SOCK_SEQPACKET */, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* Jumps in a filter of which the positions are counted: to the check of an argument, over the check
 * of another, to the refusal at the end. */
enum { ID_CALLS = 8, ID_UIDS = ID_CALLS + 2, ID_GIDS = ID_UIDS + 10, ID_END = ID_GIDS + 10 };
#define ID_CALL(at, nr, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, (to) - (at)-1, 0)
#define ID_ARGUMENT(at, n, id)                                                                     \
	LOAD(args[n]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, id, 1, 0),                              \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, ID_END - (at)-3)

/* Without a user namespace, which has no other ids: lets a process set its ids only to what they
 * are; -1 leaves one as it is. The kernel would refuse the rest too, as long as the process has no
 * capabilities. */
static long forbid_ids(void)
{
	const uint32_t uid = (uint32_t)geteuid(), gid = (uint32_t)getegid();
	struct sock_filter code[] = {
		LOAD(nr),
		ID_CALL(1, SYS_setresuid, ID_UIDS),
		ID_CALL(2, SYS_setreuid, ID_UIDS + 3),
		ID_CALL(3, SYS_setuid, ID_UIDS + 6),
		ID_CALL(4, SYS_setfsuid, ID_UIDS + 6),
		ID_CALL(5, SYS_setresgid, ID_GIDS),
		ID_CALL(6, SYS_setregid, ID_GIDS + 3),
		ID_CALL(7, SYS_setgid, ID_GIDS + 6),
		ID_CALL(8, SYS_setfsgid, ID_GIDS + 6),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		ID_ARGUMENT(ID_UIDS, 2, uid),
		ID_ARGUMENT(ID_UIDS + 3, 1, uid),
		ID_ARGUMENT(ID_UIDS + 6, 0, uid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		ID_ARGUMENT(ID_GIDS, 2, gid),
		ID_ARGUMENT(ID_GIDS + 3, 1, gid),
		ID_ARGUMENT(ID_GIDS + 6, 0, gid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	_Static_assert(sizeof(code) / sizeof(*code) == ID_END + 1, "the positions are counted");
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* Without Landlock's scopes: allows signals only to the process itself and its group, and no
 * ownership of a descriptor's events by other processes. */
static long forbid_signals(void)
{
	uint32_t self = (uint32_t)getpid();
	struct sock_filter code[] = {
		LOAD(nr),
		REFUSE(SYS_tkill),
		REFUSE(SYS_rt_sigqueueinfo),
		REFUSE(SYS_rt_tgsigqueueinfo),
		REFUSE(SYS_pidfd_send_signal),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 6, 0),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 8 /* F_SETOWN */, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 15 /* F_SETOWN_EX */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* With a pid namespace, pid 1 is the only process that is not the guest's. Signals do not harm it,
 * but the guest has no reason to send any. With a low priority it would hardly run beside a busy
 * guest, and the host would wait for it. */
static long forbid_first(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigqueueinfo, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_tgsigqueueinfo, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 2, 8),
		LOAD(args[0]), /* whom it signals or opens */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 5, 6),
		LOAD(args[0]), /* which processes get the priority: all of a user's, or one */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PRIO_USER, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PRIO_PROCESS, 0, 3),
		LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, REFUSED),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* Adds filters for what Landlock or the namespaces do not cover on this machine. The final filter
 * of a template's session, which always has namespaces, has the rules of forbid_first: a second
 * filter would cost every session a third of the time that the first one takes to load. */
static long forbid_more(const struct job *j, enum plan_filter which)
{
	bool scoped = j->plan->landlock_scoped & LL_SCOPE_SIGNAL;

	if (j->flags & PLANF_USERNS)
		return which == FILTER_FINAL ? 0 : forbid_first();
	long r = forbid_neighbours();
	if (r == 0)
		r = forbid_ids();
	return r != 0 || scoped ? r : forbid_signals();
}

static long load_nonotify(const struct sock_fprog *prog)
{
	static struct sock_filter code[BPF_MAXINSNS];
	struct sock_fprog nonotify = { .filter = code };

	if (prog->len + FILTER_NONOTIFY_MORE > BPF_MAXINSNS) {
		errno = E2BIG;
		return -1;
	}
	nonotify.len = (unsigned short)filter_nonotify_make(prog->filter, prog->len, code);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &nonotify);
}

/* All filters of a process share one listener. It may belong to a container's manager already, or
 * an old kernel has none. Then refused calls are not reported. */
static long load(struct job *j, const struct sock_fprog *prog, bool listens)
{
	unsigned long flags = listens ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);

	if (r >= 0 || !listens || (errno != EBUSY && errno != EINVAL))
		return r;
	r = load_nonotify(prog);
	j->status->is_nonotify = r == 0;
	return r;
}

int seal_seccomp(struct job *j, enum plan_filter which, int *ret_listener)
{
	struct sock_fprog prog = {
		.len = (unsigned short)(j->plan->filter_len[which] / sizeof(struct sock_filter)),
		.filter = (struct sock_filter *)(uintptr_t)plan_at(j, j->plan->filter[which]),
	};

	if (j->flags & PLANF_NO_SECCOMP)
		return 0;
	if ((j->flags & PLANF_WATCH_MEMORY) && which != FILTER_TEMPLATE &&
	    forbid_memory_files() != 0)
		return plan_fail(j, STAGE_SECCOMP, 8, errno);
	if (which != FILTER_TEMPLATE && forbid_more(j, which) != 0)
		return plan_fail(j, STAGE_SECCOMP, 7, errno);
	long fd = load(j, &prog, ret_listener != NULL);
	if (fd < 0)
		return plan_fail(j, STAGE_SECCOMP, which, errno);
	if (ret_listener && !j->status->is_nonotify)
		*ret_listener = (int)fd;
	return 0;
}

/* One "Name:\thex or decimal" line of /proc/self/status. */
static uint64_t status_field(const char *text, const char *name, int base)
{
	const char *p = strstr(text, name);
	uint64_t v = 0;

	if (!p)
		return UINT64_MAX;
	for (p += strlen(name); *p == '\t' || *p == ' '; p++)
		;
	for (;; p++) {
		int digit = *p >= '0' && *p <= '9'   ? *p - '0'
			    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
						     : base;
		if (digit >= base)
			return v;
		v = v * (uint64_t)base + (uint64_t)digit;
	}
}

int seal_open_status(struct job *j)
{
	int fd = kernel_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0);

	return fd < 0 ? plan_fail(j, STAGE_PROOF, 0, errno) : fd;
}

static int prove_status_file(struct job *j, int fd)
{
	struct status *s = j->status;
	char text[4096];

	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return plan_fail(j, STAGE_PROOF, 1, EIO);
	text[n] = '\0';
	s->cap_prm = status_field(text, "\nCapPrm:", 16);
	s->cap_eff = status_field(text, "\nCapEff:", 16);
	s->cap_bnd = status_field(text, "\nCapBnd:", 16);
	s->no_new_privs = (uint32_t)status_field(text, "\nNoNewPrivs:", 10);
	s->seccomp_mode = (uint32_t)status_field(text, "\nSeccomp:", 10);
	s->seccomp_filters = (uint32_t)status_field(text, "\nSeccomp_filters:", 10);
	return 0;
}

int seal_prove_namespaces(struct job *j)
{
	namespaces_read(j->status->namespaces);
	return 0;
}

int seal_prove_process(struct job *j, int status_fd)
{
	struct status *s = j->status;

	s->rlimit_count = j->plan->rlimit_count;
	for (uint32_t i = 0; i < s->rlimit_count; i++) {
		struct rlimit r = { 0 };

		if (getrlimit((int)j->plan->rlimits[i].resource, &r) != 0)
			return plan_fail(j, STAGE_PROOF, 2, errno);
		s->rlimits[i] = (struct plan_rlimit){ .resource = j->plan->rlimits[i].resource,
						      .soft = r.rlim_cur,
						      .hard = r.rlim_max };
	}
	/* No rule covers these, so EACCES can only come from Landlock: for the first the process is
	 * the owner, and the second anyone may list. */
	bool spaced = j->flags & PLANF_USERNS;
	int fd = kernel_open(spaced ? "/run/.landlock" : "/", O_RDONLY | O_CLOEXEC, 0);
	s->landlock_proven = fd < 0 && errno == EACCES;
	if (fd >= 0)
		close(fd);
	return prove_status_file(j, status_fd);
}

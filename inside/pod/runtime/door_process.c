/* inside/pod/runtime/door_process.c - processes of this pod: fork, wait, kill, limits, and facts
 * about the system. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/checkpoint.h"
#include "inside/pod/runtime/door.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/pod/runtime/guest_layout.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/signals.h"

DOOR_FN(fork)
{
	int64_t r;

	(void)p;
	(void)a;
	/* Signals that arrived for the parent have not arrived for the child. */
	signals_hold();
	r = DOOR_RET(syscall(SYS_fork));
	if (!r)
		signals_forked();
	signals_release();
	return r;
}

DOOR_FN(vfork)
{
	return door_fork(p, a);
}

DOOR_FN(execve)
{
	return image_exec(p, a[0], a[1], a[2]);
}

DOOR_FN(exit)
{
	(void)p;
	_exit(guest_int(a[0]));
}

DOOR_FN(exit_group)
{
	if (p->learning)
		checkpoint_learn();
	_exit(guest_int(a[0]));
}

DOOR_FN(wait4)
{
	void *status, *usage;
	struct rusage ru;
	int64_t r;

	if (!guest_opt(p, a[1], 4, &status) || !guest_opt(p, a[3], GUEST_RUSAGE, &usage))
		return -EFAULT;
	if (guest_int(a[2]) & ~(WNOHANG | WUNTRACED | WCONTINUED))
		return -EINVAL;
	r = signals_call(SYS_wait4, guest_int(a[0]), (long)status, guest_int(a[2]), (long)&ru, 0,
			 0);
	if (r > 0 && usage)
		guest_put_rusage(usage, &ru);
	return r;
}

DOOR_FN(waitid)
{
	siginfo_t info = { 0 };
	void *usage;
	int32_t *out;
	void *at;
	struct rusage ru;
	int64_t r;

	if (!guest_opt(p, a[2], 128, &at) || !guest_opt(p, a[4], GUEST_RUSAGE, &usage))
		return -EFAULT;
	if (guest_int(a[0]) < P_ALL || guest_int(a[0]) > P_PGID)
		return -EINVAL; /* not by descriptor: the door makes no pidfds */
	r = signals_call(SYS_waitid, guest_int(a[0]), guest_int(a[1]), (long)&info, guest_int(a[3]),
			 (long)&ru, 0);
	out = at;
	if (r >= 0 && out) {
		memset(out, 0, 128);
		out[0] = info.si_signo;
		out[2] = info.si_code;
		out[3] = info.si_pid;
		out[4] = (int32_t)info.si_uid;
		out[5] = info.si_status;
	}
	if (r >= 0 && usage)
		guest_put_rusage(usage, &ru);
	return r;
}

/* In a sandbox every visible process belongs to this pod, except init and the agent. Without one,
 * only processes of our own session do. */
static bool may_signal(const struct w2c_sys *p, pid_t pid)
{
	if (pid == -1 || pid == 1 || pid == INT_MIN)
		return false;
	if (p->agent && (pid == p->agent || pid == -p->agent))
		return false;
	if (!p->rooted || pid == 0)
		return true;
	return getsid(pid < 0 ? -pid : pid) == getsid(0);
}

DOOR_FN(kill)
{
	pid_t pid = guest_int(a[0]);

	if (!may_signal(p, pid))
		return pid == -1 || pid == 1 || pid == p->agent || kill(pid, 0) == 0 ? -EPERM
										     : -ESRCH;
	return DOOR_RET(kill(pid, guest_int(a[1])));
}

/* Each process has one thread, so a thread id is a process id. */
DOOR_FN(tkill)
{
	return door_kill(p, a);
}

DOOR_FN(tgkill)
{
	const uint64_t to[6] = { a[1], a[2] };

	return guest_int(a[0]) == guest_int(a[1]) ? door_kill(p, to) : -ESRCH;
}

#define PLAIN(name, value)                                                                         \
	DOOR_FN(name)                                                                              \
	{                                                                                          \
		(void)p;                                                                           \
		(void)a;                                                                           \
		return DOOR_RET(value);                                                            \
	}
PLAIN(getpid, getpid())
PLAIN(gettid, getpid())
PLAIN(getppid, getppid())
PLAIN(getuid, getuid())
PLAIN(geteuid, geteuid())
PLAIN(getgid, getgid())
PLAIN(getegid, getegid())
PLAIN(getpgid, getpgid(guest_int(a[0])))
PLAIN(getpgrp, getpgrp())
PLAIN(setpgid, setpgid(guest_int(a[0]), guest_int(a[1])))
PLAIN(getsid, getsid(guest_int(a[0])))
PLAIN(setsid, setsid())
PLAIN(getpriority, syscall(SYS_getpriority, guest_int(a[0]), guest_int(a[1])))
PLAIN(sched_yield, sched_yield())

/* Ids cannot be changed here: success if they stay the same, an error otherwise. */
static int64_t same_id(const uint64_t *a, int n, uint32_t now)
{
	for (int i = 0; i < n; i++)
		if ((uint32_t)a[i] != now && (uint32_t)a[i] != UINT32_MAX)
			return -EPERM;
	return 0;
}

#define SAME(name, n, id)                                                                          \
	DOOR_FN(name)                                                                              \
	{                                                                                          \
		(void)p;                                                                           \
		return same_id(a, n, id());                                                        \
	}
SAME(setuid, 1, getuid)
SAME(setgid, 1, getgid)
SAME(setreuid, 2, getuid)
SAME(setregid, 2, getgid)
SAME(setresuid, 3, getuid)
SAME(setresgid, 3, getgid)

static int64_t put_ids(struct w2c_sys *p, const uint64_t a[6], uint32_t id)
{
	for (int i = 0; i < 3; i++) {
		uint32_t *out = guest_at(p, a[i], sizeof *out);

		if (!out)
			return -EFAULT;
		*out = id;
	}
	return 0;
}

DOOR_FN(getresuid)
{
	return put_ids(p, a, getuid());
}

DOOR_FN(getresgid)
{
	return put_ids(p, a, getgid());
}

/* The host's groups are not shown. */
DOOR_FN(getgroups)
{
	(void)p;
	return guest_int(a[0]) < 0 ? -EINVAL : 0;
}

/* Descriptors: the guest's limit is below ours. Address space: our reservations would not fit. */
static int set_limit(struct w2c_sys *p, int which, const struct rlimit *old, struct rlimit set)
{
	if (which == RLIMIT_NOFILE) {
		if (set.rlim_cur > old->rlim_max || set.rlim_max > old->rlim_max)
			return -EPERM;
		if (set.rlim_cur > 2)
			p->fd_soft = (int)set.rlim_cur;
		return 0;
	}
	if (which == RLIMIT_AS || which == RLIMIT_STACK || which == RLIMIT_DATA)
		return 0;
	return setrlimit(which, &set) ? -errno : 0;
}

static int64_t limit(struct w2c_sys *p, int which, uint64_t in, uint64_t out)
{
	struct rlimit old;
	void *set, *get;
	int r = 0;

	if (which < 0 || which >= RLIM_NLIMITS)
		return -EINVAL;
	if (!guest_opt(p, in, sizeof old, &set) || !guest_opt(p, out, sizeof old, &get))
		return -EFAULT;
	if (getrlimit(which, &old))
		return -errno;
	if (which == RLIMIT_NOFILE) {
		old.rlim_cur = (rlim_t)p->fd_soft;
		old.rlim_max = (rlim_t)p->fd_limit;
	}
	if (set)
		r = set_limit(p, which, &old, *(struct rlimit *)set);
	if (!r && get)
		memcpy(get, &old, sizeof old);
	return r;
}

DOOR_FN(prlimit64)
{
	if (guest_int(a[0]) && guest_int(a[0]) != getpid())
		return -EPERM;
	return limit(p, guest_int(a[1]), a[2], a[3]);
}

DOOR_FN(getrlimit)
{
	return a[1] ? limit(p, guest_int(a[0]), 0, a[1]) : -EFAULT;
}

DOOR_FN(setrlimit)
{
	return a[1] ? limit(p, guest_int(a[0]), a[1], 0) : -EFAULT;
}

DOOR_FN(getrusage)
{
	void *out = guest_at(p, a[1], GUEST_RUSAGE);
	struct rusage usage;

	if (!out)
		return -EFAULT;
	if (getrusage(guest_int(a[0]), &usage))
		return -errno;
	guest_put_rusage(out, &usage);
	return 0;
}

DOOR_FN(times)
{
	struct tms t;
	clock_t now = times(&t);
	uint32_t *out;
	void *at;

	if (!guest_opt(p, a[0], 16, &at))
		return -EFAULT;
	out = at;
	if (out) {
		out[0] = (uint32_t)t.tms_utime;
		out[1] = (uint32_t)t.tms_stime;
		out[2] = (uint32_t)t.tms_cutime;
		out[3] = (uint32_t)t.tms_cstime;
	}
	return now & 0x7fffffff;
}

DOOR_FN(setpriority)
{
	int who = guest_int(a[1]);

	(void)p;
	if (guest_int(a[0]) != PRIO_PROCESS || (who && who != getpid()))
		return -EPERM;
	return DOOR_RET(setpriority(PRIO_PROCESS, 0, guest_int(a[2])));
}

/* Does not show the host's kernel name and version. */
DOOR_FN(uname)
{
	static const char *const text[6] = { "Linux",         "pod",    "6.1.0-cordon",
					     "#1 cordon pod", "x86_64", "(none)" };
	const size_t field = 65;
	char *out = guest_at(p, a[0], 6 * field);

	if (!out)
		return -EFAULT;
	memset(out, 0, 6 * field);
	for (size_t i = 0; i < 6; i++)
		memcpy(out + field * i, text[i], strlen(text[i]));
	return 0;
}

/* Uptime, and as memory the limit of one process. */
DOOR_FN(sysinfo)
{
	uint32_t *out = guest_at(p, a[0], 64);
	struct timespec up;

	if (!out)
		return -EFAULT;
	clock_gettime(CLOCK_MONOTONIC, &up);
	memset(out, 0, 64);
	out[0] = (uint32_t)up.tv_sec;
	out[4] = (uint32_t)(p->memory->max_pages * 16); /* in units of 4 KiB, see the unit below */
	out[5] = out[4] / 2;
	out[13] = 4096;
	return 0;
}

DOOR_FN(prctl)
{
	char name[PATH_MAX];

	if (guest_int(a[0]) != PR_SET_NAME)
		return -EINVAL;
	if (guest_path(p, a[1], name))
		return -EFAULT;
	return DOOR_RET(prctl(PR_SET_NAME, name)); /* the kernel uses 15 bytes */
}

DOOR_FN(sched_getaffinity)
{
	uint64_t len = (uint32_t)a[1];
	void *out;

	if (guest_int(a[0]) && guest_int(a[0]) != getpid())
		return -EPERM;
	if (len > 128)
		len = 128;
	if (len < 8 || len % 8)
		return -EINVAL;
	out = guest_at(p, a[2], len);
	return out ? DOOR_RET(syscall(SYS_sched_getaffinity, 0, len, out)) : -EFAULT;
}

DOOR_FN(getrandom)
{
	uint64_t len = (uint32_t)a[1];
	void *out = len ? guest_at(p, a[0], len) : p->memory->data;

	if (!out)
		return -EFAULT;
	if ((uint32_t)a[2] & ~3u)
		return -EINVAL;
	return DOOR_RET(syscall(SYS_getrandom, out, len, 0));
}

DOOR_FN(own_args_size)
{
	(void)a;
	return (int64_t)(4 * (p->argv.count + p->envp.count + 3) + p->argv.bytes + p->envp.bytes);
}

DOOR_FN(own_args_copy)
{
	size_t total = (size_t)door_own_args_size(p, a), words = p->argv.count + p->envp.count + 3;
	const struct vector *parts[2] = { &p->argv, &p->envp };
	uint32_t at = (uint32_t)(a[0] + 4 * words), *out = guest_at(p, a[0], total);

	if (!out || (uint32_t)a[1] < total || a[0] % 4)
		return -EFAULT;
	*out++ = (uint32_t)p->argv.count;
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < parts[i]->count; k++) {
			size_t n = strlen(parts[i]->at[k]) + 1;

			memcpy(p->memory->data + at, parts[i]->at[k], n);
			*out++ = at;
			at += (uint32_t)n;
		}
		*out++ = 0;
	}
	return 0;
}

DOOR_FN(own_program)
{
	size_t n = strlen(p->command->name) + 1;
	char *out = guest_at(p, a[0], n);

	if (!out || (uint32_t)a[1] < n)
		return -EFAULT;
	memcpy(out, p->command->name, n);
	return 0;
}

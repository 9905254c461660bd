/* wall/linux/cgroup.c - see cgroup.h. Processes are never attached through cgroup.procs: on an idle
 * machine that waits milliseconds for an RCU grace period. */
#include "wall/linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

/* The supervisor and pid 1 count as well as the guest's processes. */
enum { OWN_PROCESSES = 2 };

/* Sockets of a sandbox may hold this fraction of its memory limit. */
enum { TCP_SHARE = 8 };

#define SUPERVISORS "supervisors"

/* ret_is, if not NULL: the value that the kernel reports afterwards; UINT64_MAX: not a number. */
static int write_at(int dir, const char *file, uint64_t value, uint64_t *ret_is)
{
	char text[32];
	int fd = openat(dir, file, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	int r = write(fd, text, (size_t)n) < 0 ? -errno : 0;
	if (r == 0 && ret_is) {
		ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

		text[got > 0 ? got : 0] = '\0';
		*ret_is = text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
	}
	close(fd);
	return r;
}

static int write_text_at(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* Opens a group that we just made. The host's umask may have removed our own rights. */
static int open_made(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0755, 0) == 0)
		fd = openat(parent, name, flags);
	return fd;
}

/* Each supervisor has its own uid, but all have the same group. */
static int give(int dir, const char *file, gid_t owner, mode_t mode)
{
	struct stat st;

	if (owner == (gid_t)-1)
		return 0;
	if (fstatat(dir, file, &st, AT_EMPTY_PATH) != 0)
		return -1;
	if (st.st_uid == 0 && st.st_gid == owner && (st.st_mode & 0777) == mode)
		return 0;
	if (fchownat(dir, file, 0, owner, AT_EMPTY_PATH) != 0)
		return -1;
	return file[0] ? fchmodat(dir, file, mode, 0) : fchmod(dir, mode);
}

/* A directory for our groups below a controller's, created if missing. The supervisor gets write
 * access. */
static int open_folder(const char *path, gid_t owner, bool is_v2)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && (mkdir(path, 0755) == 0 || errno == EEXIST))
		fd = open_made(AT_FDCWD, path);
	if (fd < 0)
		return -errno;
	/* So that the supervisor can remove our groups after the host has died. */
	bool good = give(fd, "", owner, 0775) == 0 &&
		    faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
	if (good && is_v2) {
		/* And, with v2, move its sessions into them. */
		(void)write_text_at(fd, "cgroup.subtree_control", "+memory +pids");
		(void)write_text_at(fd, "cgroup.subtree_control", "+cpu");
		good = give(fd, "cgroup.procs", owner, 0664) == 0;
	}
	if (!good) {
		int e = errno;
		close(fd);
		return -e;
	}
	return fd;
}

static bool is_foreign(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

/* The directory `cordon`. If that belongs to someone else (the machine's root, seen from a
 * container with the same groups, or another user), one with our own uid in its name. */
static int open_parent(const char *dir, gid_t owner, bool is_v2)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/cordon", dir);
	int fd = open_folder(path, owner, is_v2);
	if (!is_foreign(fd))
		return fd;
	snprintf(path, sizeof(path), "%s/cordon-%u", dir,
		 owner == (gid_t)-1 ? (unsigned)geteuid() : (unsigned)owner);
	return open_folder(path, owner, is_v2);
}

/* The number after a word at the start of a line; word NULL: the file is only a number. */
static uint64_t number_in(int dir, const char *file, const char *word)
{
	char text[2048];
	int fd = dir < 0 ? -1 : openat(dir, file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return UINT64_MAX;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return UINT64_MAX;
	text[n] = '\0';
	const char *p = text;
	if (word) {
		p = strstr(text, word);
		if (!p)
			return UINT64_MAX;
		p += strlen(word);
	}
	while (*p == ' ')
		p++;
	return *p >= '0' && *p <= '9' ? strtoull(p, NULL, 10) : UINT64_MAX;
}

static int limit_v1(struct cgroup *c, const struct policy *p)
{
	int r = write_at(c->dir_fds[CONTROLLER_MEMORY], "memory.limit_in_bytes", p->memory_bytes,
			 &c->memory_bytes);

	if (r < 0)
		return r;
	/* With swap accounting, allow no swap in addition. Without it the file is missing. */
	r = write_at(c->dir_fds[CONTROLLER_MEMORY], "memory.memsw.limit_in_bytes", p->memory_bytes,
		     NULL);
	if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	/* v1 accounts TCP buffers separately, and only if there is a limit. */
	r = write_at(c->dir_fds[CONTROLLER_MEMORY], "memory.kmem.tcp.limit_in_bytes",
		     p->memory_bytes / TCP_SHARE, NULL);
	if (r < 0 && r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	r = write_at(c->dir_fds[CONTROLLER_PIDS], "pids.max", policy_tasks(p) + OWN_PROCESSES,
		     &c->processes);
	if (r < 0 || !c->has_cpu || p->cpu_percent == POLICY_UNLIMITED)
		return r;
	return write_at(c->dir_fds[CONTROLLER_CPU], "cpu.cfs_quota_us", p->cpu_percent * 1000,
			&c->cpu_percent);
}

static int limit_v2(struct cgroup *c, const struct policy *p)
{
	char quota[64];
	int r = write_at(c->dir_fds[0], "memory.max", p->memory_bytes, &c->memory_bytes);

	if (r < 0)
		return r;
	r = write_at(c->dir_fds[0], "memory.swap.max", 0, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	r = write_at(c->dir_fds[0], "pids.max", policy_tasks(p) + OWN_PROCESSES, &c->processes);
	if (r < 0 || p->cpu_percent == POLICY_UNLIMITED)
		return r;
	/* Without this file the group has no cpu controller, because its parents do not pass it
	 * on. */
	snprintf(quota, sizeof(quota), "%llu 100000", (unsigned long long)p->cpu_percent * 1000);
	r = write_text_at(c->dir_fds[0], "cpu.max", quota);
	c->has_cpu = r == 0;
	if (r == 0)
		c->cpu_percent = number_in(c->dir_fds[0], "cpu.max", NULL);
	return r == -ENOENT ? 0 : r; /* the cpu controller may not be delegated */
}

/* v2: the group for supervisors, beside the groups that they remove. */
static int open_supervisors(struct cgroup *c)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, parent = c->parent_fds[0];

	c->supervisor_fd = openat(parent, SUPERVISORS, flags);
	if (c->supervisor_fd < 0 && errno == ENOENT &&
	    (mkdirat(parent, SUPERVISORS, 0755) == 0 || errno == EEXIST))
		c->supervisor_fd = open_made(parent, SUPERVISORS);
	return c->supervisor_fd < 0 ? -errno : 0;
}

static int make_one(struct cgroup *c, const char *dir, uint32_t i,
		    const struct cgroup_options *opts)
{
	gid_t owner = opts->owner_gid;

	c->parent_fds[i] = opts->below && c->is_below ? opts->below->parent_fds[i]
						      : open_parent(dir, owner, c->is_v2);
	if (c->parent_fds[i] < 0)
		return c->parent_fds[i];
	c->count = i + 1; /* from here on cgroup_done() closes and removes them */
	if (mkdirat(c->parent_fds[i], c->name, 0755) != 0)
		return -errno;
	c->dir_fds[i] = open_made(c->parent_fds[i], c->name);
	if (c->dir_fds[i] < 0)
		return -errno;
	/* The supervisor and templates start the processes in it, not we. */
	if (c->is_v2 && give(c->dir_fds[i], "cgroup.procs", owner, 0664) != 0)
		return -errno;
	c->join_fds[i] =
		c->is_v2 ? c->dir_fds[i] : openat(c->dir_fds[i], "tasks", O_WRONLY | O_CLOEXEC);
	return c->join_fds[i] < 0 ? -errno : 0;
}

/* Converts the kernel's values to the policy's units. A limit that could not be read back counts as
 * none. */
static int read_back(struct cgroup *c, const struct policy *p)
{
	if (c->memory_bytes == UINT64_MAX || c->processes == UINT64_MAX)
		return -EIO;
	c->processes -= OWN_PROCESSES;
	if (!c->has_cpu || p->cpu_percent == POLICY_UNLIMITED)
		return 0;
	if (c->cpu_percent == UINT64_MAX)
		return -EIO;
	c->cpu_percent /= 1000;
	return 0;
}

static void name_group(struct cgroup *c, const struct cgroup_options *opts)
{
	char tail[17];

	random_hex(tail, 16);
	if (opts->below)
		snprintf(c->name, sizeof(c->name), "%.40s.%s", opts->below->name, tail);
	else
		snprintf(c->name, sizeof(c->name), "%d-%s", (int)getpid(), tail);
}

static int limit(struct cgroup *c, const struct policy *p)
{
	int r = c->is_v2 ? limit_v2(c, p) : limit_v1(c, p);

	if (r == 0)
		r = read_back(c, p);
	if (r == 0)
		c->peak_fd = openat(c->dir_fds[0],
				    c->is_v2 ? "memory.peak" : "memory.max_usage_in_bytes",
				    O_RDONLY | O_CLOEXEC);
	return r;
}

int cgroup_limit(struct cgroup *c, const struct policy *p, struct cordon_error **reterr)
{
	int r = c->count > 0 ? limit(c, p) : 0;

	return r < 0 ? err_errno(reterr, -r, "limit the control group '%s'", c->name) : 0;
}

static int make_all(const struct machine *m, const struct policy *p,
		    const struct cgroup_options *opts, struct cgroup *c)
{
	uint32_t want = m->cgroup_v2 ? 1 : c->has_cpu ? 3 : 2;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < want; i++)
		r = make_one(c, m->cgroup_dir[i], i, opts);
	if (r == 0 && c->is_v2 && !opts->below)
		r = open_supervisors(c);
	return r == 0 && !opts->limits_later ? limit(c, p) : r;
}

int cgroup_make(const struct machine *m, const struct policy *p, const struct cgroup_options *opts,
		struct cgroup *ret, struct cordon_error **reterr)
{
	struct cgroup c = { .is_v2 = m->cgroup_v2,
			    .has_cpu = m->cgroup_dir[CONTROLLER_CPU][0],
			    .is_below = opts->below && opts->below->count > 0,
			    .memory_bytes = UINT64_MAX,
			    .processes = UINT64_MAX,
			    .cpu_percent = UINT64_MAX };
	bool is_required = p->require & LAYER_CGROUPS;

	for (int i = 0; i < MACHINE_CONTROLLERS; i++)
		c.parent_fds[i] = c.dir_fds[i] = c.join_fds[i] = -1;
	c.peak_fd = c.supervisor_fd = -1;
	if (!m->cgroup_dir[0][0]) {
		*ret = c;
		return 0;
	}
	name_group(&c, opts);
	int r = make_all(m, p, opts, &c);
	if (r == 0 && !c.has_cpu && is_required && p->cpu_percent != POLICY_UNLIMITED) {
		cgroup_done(&c);
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the policy requires the layer 'cgroups' and limits cpu_percent, "
			       "but the cpu controller is not delegated; remedy: run as root, "
			       "delegate the cpu controller, or cpu_percent=none");
	}
	if (r < 0) {
		cgroup_done(&c);
		/* Visible but not ours to write (a container's): treated as missing, unless
		 * required. */
		if (!is_foreign(r) || is_required)
			return err_errno(reterr, -r, "make a control group in '%s'",
					 m->cgroup_dir[0]);
		c.has_cpu = false;
		*ret = c;
		return 0;
	}
	*ret = c;
	return 0;
}

static uint64_t or_zero(uint64_t n)
{
	return n == UINT64_MAX ? 0 : n;
}

uint64_t cgroup_read_peak(const struct cgroup *c)
{
	char text[32];
	ssize_t n = c->count && c->peak_fd >= 0 ? pread(c->peak_fd, text, sizeof(text) - 1, 0) : -1;

	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

uint64_t cgroup_pids_peak(const struct cgroup *c)
{
	if (c->count == 0)
		return 0;
	int pids = c->is_v2 ? c->dir_fds[0] : c->dir_fds[CONTROLLER_PIDS];
	uint64_t peak = or_zero(number_in(pids, "pids.peak", NULL));

	return peak ? peak : or_zero(number_in(pids, "pids.current", NULL));
}

uint64_t cgroup_pids_now(const struct cgroup *c)
{
	if (c->count == 0)
		return 0;
	int pids = c->is_v2 ? c->dir_fds[0] : c->dir_fds[CONTROLLER_PIDS];

	return or_zero(number_in(pids, "pids.current", NULL));
}

uint64_t cgroup_tasks_most(const struct cgroup *c)
{
	int pids = c->count == 0 ? -1 : c->is_v2 ? c->dir_fds[0] : c->dir_fds[CONTROLLER_PIDS];

	return or_zero(number_in(pids, "pids.peak", NULL));
}

void cgroup_read(const struct cgroup *c, struct box_counts *ret)
{
	*ret = (struct box_counts){ 0 };
	if (c->count == 0)
		return;
	int memory = c->dir_fds[0], pids = c->is_v2 ? c->dir_fds[0] : c->dir_fds[CONTROLLER_PIDS];

	ret->oom_kills = or_zero(
		number_in(memory, c->is_v2 ? "memory.events" : "memory.oom_control", "oom_kill "));
	ret->pids_refused = or_zero(number_in(pids, "pids.events", "max "));
	ret->memory_peak_bytes = cgroup_read_peak(c);
}

uint64_t cgroup_read_cpu(const struct cgroup *c)
{
	if (c->count == 0)
		return 0;
	if (c->is_v2)
		return or_zero(number_in(c->dir_fds[0], "cpu.stat", "usage_usec "));
	/* v1: needs the cpu and cpuacct controllers mounted together, as systemd does. */
	return c->has_cpu ? or_zero(number_in(c->dir_fds[CONTROLLER_CPU], "cpuacct.usage", NULL)) /
				    1000
			  : 0;
}

/* Memory of earlier use that may stay charged: per-CPU caches and kernel objects. */
enum { RENEW_BYTES = 4 << 20, RENEW_SHARE = 64 };

int cgroup_renew(struct cgroup *c)
{
	struct box_counts counts;

	/* On most kernels the peaks of v2 cannot be reset. */
	if (c->count == 0 || c->is_v2)
		return -1;
	/* A supervisor that cannot see us from its pid namespace takes old, empty groups for those
	 * of a dead host. This makes the group look new, unless it was already removed. */
	for (uint32_t i = 0; i < c->count; i++)
		if (futimens(c->dir_fds[i], NULL) != 0 && errno == ENOENT)
			return -1;
	if (number_in(c->dir_fds[CONTROLLER_PIDS], "pids.current", NULL) != 0)
		return 0;
	cgroup_read(c, &counts);
	if (counts.oom_kills || counts.pids_refused || cgroup_pids_peak(c) >= c->processes)
		return -1;
	uint64_t used = number_in(c->dir_fds[CONTROLLER_MEMORY], "memory.usage_in_bytes", NULL);
	if (used > RENEW_BYTES || used > c->memory_bytes / RENEW_SHARE)
		return 0; /* its last processes may still be exiting */
	return write_at(c->dir_fds[CONTROLLER_MEMORY], "memory.max_usage_in_bytes", 0, NULL) < 0
		       ? -1
		       : 1;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* EBUSY: the last task is still exiting, which takes long on a busy machine. While this process
 * lives nobody else removes its groups. */
static void remove_group(int parent_fd, const char *name, deadline_ns deadline)
{
	long pause_ns = 1000000;

	while (unlinkat(parent_fd, name, AT_REMOVEDIR) != 0 && errno == EBUSY &&
	       !deadline_is_over(deadline)) {
		nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
		pause_ns = pause_ns < 50000000 ? 2 * pause_ns : pause_ns;
	}
}

enum { REMOVE_MS = 2000 };

void cgroup_done(struct cgroup *c)
{
	deadline_ns deadline = deadline_after_ms(REMOVE_MS);

	if (c->count > 0) {
		close_one(&c->peak_fd);
		close_one(&c->supervisor_fd);
	}
	for (uint32_t i = 0; i < c->count; i++) {
		remove_group(c->parent_fds[i], c->name, deadline);
		if (!c->is_v2)
			close_one(&c->join_fds[i]);
		close_one(&c->dir_fds[i]);
		if (!c->is_below)
			close_one(&c->parent_fds[i]);
	}
	c->count = 0;
}

/* wall/linux/procfiles.c - see procfiles.h. */
#include "wall/linux/procfiles.h"

#include <sched.h>
#include <sys/utsname.h>
#include <time.h>

#include "wall/linux/format.h"

enum { TEXT_MAX = 256 * 1024, CPUS_MAX = 1024 };

const char *const procfiles_names[PROCFILES] = { PROC_FILES };

static int count_cpus(const struct procfiles_options *o)
{
	cpu_set_t set;

	if (o->has_one_core || sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	int n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > CPUS_MAX ? CPUS_MAX : n;
}

static int tell_cpuinfo(struct buf *b, int cpus)
{
	int r = 0;

	for (int i = 0; r == 0 && i < cpus; i++)
		r = buf_printf(
			b,
			"processor\t: %d\nvendor_id\t: unknown\nmodel name\t: a processor of "
			"the sandbox\nphysical id\t: 0\nsiblings\t: %d\ncore id\t\t: %d\n"
			"cpu cores\t: %d\n\n",
			i, cpus, i, cpus);
	return r;
}

/* Shows all memory as free, because the used part is not known here. */
static int tell_meminfo(struct buf *b, unsigned long long kib)
{
	static const char *const none[] = {
		"Buffers",  "Cached",       "SwapCached", "Active",     "Inactive",    "SwapTotal",
		"SwapFree", "Dirty",        "Writeback",  "AnonPages",  "Mapped",      "Shmem",
		"Slab",     "SReclaimable", "SUnreclaim", "PageTables", "Committed_AS"
	};
	int r = buf_printf(b,
			   "MemTotal:       %8llu kB\nMemFree:        %8llu kB\n"
			   "MemAvailable:   %8llu kB\n",
			   kib, kib, kib);

	for (size_t i = 0; r == 0 && i < sizeof(none) / sizeof(*none); i++)
		r = buf_printf(b, "%s:%*d kB\n", none[i], 24 - (int)__builtin_strlen(none[i]) - 1,
			       0);
	return r;
}

/* Shows no CPU time used. The boot time is the kernel's: process start times count from it, and any
 * clock reveals it anyway. */
static int tell_stat(struct buf *b, int cpus, long long started)
{
	int r = buf_printf(b, "cpu  0 0 0 0 0 0 0 0 0 0\n");

	for (int i = 0; r == 0 && i < cpus; i++)
		r = buf_printf(b, "cpu%d 0 0 0 0 0 0 0 0 0 0\n", i);
	if (r == 0)
		r = buf_printf(b,
			       "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\n"
			       "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
			       started);
	return r;
}

int procfiles_make(const struct procfiles_options *o, struct buf ret[static PROCFILES])
{
	struct timespec up = { 0 };
	struct utsname names;
	int cpus = count_cpus(o);

	for (int i = 0; i < PROCFILES; i++)
		buf_init(&ret[i], TEXT_MAX);
	clock_gettime(CLOCK_BOOTTIME, &up);
	const char *release = uname(&names) == 0 ? names.release : "";
	bool good = tell_cpuinfo(&ret[0], cpus) == 0 &&
		    tell_meminfo(&ret[1], o->memory_bytes / 1024) == 0 &&
		    buf_printf(&ret[2], "%lld.%02ld 0.00\n", (long long)up.tv_sec,
			       up.tv_nsec / 10000000) == 0 &&
		    buf_printf(&ret[3], "0.00 0.00 0.00 1/1 1\n") == 0 &&
		    tell_stat(&ret[4], cpus, (long long)time(NULL) - up.tv_sec) == 0 &&
		    buf_printf(&ret[5], "Linux version %s (Cordon sandbox)\n", release) == 0;
	/* The last one, `locks`, is empty: pid 1 reads the kernel's (init/locks.h). */
	return good ? 0 : -1;
}

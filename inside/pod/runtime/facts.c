/* inside/pod/runtime/facts.c - see facts.h. The text is in a pipe, so that the seal needs to allow
 * no other call. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096, PAGE_KIB = 64, MAX_CPUS = 32 };

static int cpu_count(void)
{
	unsigned long mask[16] = { 0 };
	long n = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
	int count = 0;

	for (long i = 0; i < n / (long)sizeof *mask; i++)
		count += __builtin_popcountl(mask[i]);
	return count < 1 ? 1 : count > MAX_CPUS ? MAX_CPUS : count;
}

static void tell_uptime(const struct w2c_sys *p, FILE *out)
{
	struct timespec up;

	(void)p;
	clock_gettime(CLOCK_MONOTONIC, &up);
	fprintf(out, "%lld.%02ld 0.00\n", (long long)up.tv_sec, up.tv_nsec / 10000000);
}

/* The same figures as sysinfo. */
static void tell_meminfo(const struct w2c_sys *p, FILE *out)
{
	unsigned long long total = p->memory->max_pages * PAGE_KIB;

	fprintf(out,
		"MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n"
		"Buffers:               0 kB\nCached:                0 kB\nShmem:                 "
		"0 kB\n"
		"SReclaimable:          0 kB\nSwapTotal:             0 kB\nSwapFree:              "
		"0 kB\n",
		total, total / 2, total / 2);
}

static void tell_cpuinfo(const struct w2c_sys *p, FILE *out)
{
	int count = cpu_count();

	(void)p;
	for (int i = 0; i < count; i++)
		fprintf(out, "processor\t: %d\nmodel name\t: WebAssembly in a Cordon pod\n\n", i);
}

static void tell_loadavg(const struct w2c_sys *p, FILE *out)
{
	(void)p;
	fprintf(out, "0.00 0.00 0.00 1/1 %d\n", (int)getpid());
}

static void tell_version(const struct w2c_sys *p, FILE *out)
{
	(void)p;
	fputs("Linux version (Cordon pod, WebAssembly)\n", out);
}

/* The program's own arguments. The runtime's never change, because an exec here is none for the
 * kernel. */
static void tell_cmdline(const struct w2c_sys *p, FILE *out)
{
	if (p->argv.strings)
		fwrite(p->argv.strings, 1, p->argv.bytes, out);
}

static const struct fact {
	const char *path;
	void (*tell)(const struct w2c_sys *p, FILE *out);
} facts[] = {
	{ "/proc/uptime", tell_uptime },   { "/proc/meminfo", tell_meminfo },
	{ "/proc/cpuinfo", tell_cpuinfo }, { "/proc/loadavg", tell_loadavg },
	{ "/proc/version", tell_version }, { "/proc/self/cmdline", tell_cmdline },
};

static const struct fact *find(const char *path)
{
	char own[sizeof "/proc//cmdline" + 3 * sizeof(pid_t)];

	snprintf(own, sizeof own, "/proc/%d/cmdline", (int)getpid());
	if (!strcmp(path, own))
		path = "/proc/self/cmdline";
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (!strcmp(path, facts[i].path))
			return &facts[i];
	return NULL;
}

bool facts_is(const char *path)
{
	return path[0] == '/' && path[1] == 'p' && find(path);
}

int facts_open(const struct w2c_sys *p, const char *path, int flags)
{
	const struct fact *fact = find(path);
	char text[TEXT_BYTES];
	int ends[2];
	FILE *out;
	long n;

	if (!fact)
		return -ENOENT;
	if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))
		return -EROFS;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	out = fmemopen(text, sizeof text, "w");
	if (!out)
		return -ENOMEM;
	fact->tell(p, out);
	n = ftell(out);
	(void)fclose(out);
	if (n < 0 || pipe2(ends, flags & (O_CLOEXEC | O_NONBLOCK)) < 0)
		return n < 0 ? -EIO : -errno;
	/* A new pipe takes a page at once. */
	n = write(ends[1], text, (size_t)n) == n ? 0 : -EIO;
	close(ends[1]);
	if (n < 0)
		close(ends[0]);
	return n < 0 ? (int)n : ends[0];
}

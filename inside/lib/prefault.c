/* inside/lib/prefault.c - see prefault.h. */
#include "inside/lib/prefault.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum { PAGE = 4096, RUNS = 512, AT_ONCE = 256 };

/* Bits of an entry in pagemap (the kernel's admin-guide/mm/pagemap). */
static const uint64_t PRESENT = 1ULL << 63, OF_A_FILE = 1ULL << 61, ITS_OWN = 1ULL << 56;

static struct {
	struct run {
		uintptr_t start;
		size_t len;
	} runs[RUNS];
	unsigned count;
} hot;

static void add(uintptr_t page)
{
	struct run *last = hot.count ? &hot.runs[hot.count - 1] : NULL;

	if (last && last->start + last->len == page)
		last->len += PAGE;
	else if (hot.count < RUNS)
		hot.runs[hot.count++] = (struct run){ page, PAGE };
}

static void look_at(int pagemap, uintptr_t start, uintptr_t end)
{
	uint64_t entries[AT_ONCE];

	while (start < end) {
		size_t count = (end - start) / PAGE < AT_ONCE ? (end - start) / PAGE : AT_ONCE;
		ssize_t n = pread(pagemap, entries, count * sizeof(*entries),
				  (off_t)(start / PAGE * sizeof(*entries)));

		if (n < (ssize_t)sizeof(*entries))
			return;
		count = (size_t)n / sizeof(*entries);
		for (size_t i = 0; i < count; i++)
			if ((entries[i] & (PRESENT | OF_A_FILE | ITS_OWN)) == (PRESENT | ITS_OWN))
				add(start + i * PAGE);
		start += count * PAGE;
	}
}

void prefault_learn(pid_t pid)
{
	char path[64], line[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	int pagemap = open(path, O_RDONLY | O_CLOEXEC);
	FILE *f = fopen("/proc/self/maps", "re");

	hot.count = 0;
	while (f && pagemap >= 0 && fgets(line, sizeof(line), f)) {
		char *at = NULL;
		uintptr_t start = strtoul(line, &at, 16);
		uintptr_t end = *at == '-' ? strtoul(at + 1, &at, 16) : 0;

		if (end > start && strncmp(at, " rw-p ", 6) == 0)
			look_at(pagemap, start, end);
	}
	if (f)
		fclose(f);
	if (pagemap >= 0)
		close(pagemap);
}

void prefault_copy(void)
{
	for (unsigned i = 0; i < hot.count; i++)
		(void)madvise((void *)hot.runs[i].start, hot.runs[i].len, MADV_POPULATE_WRITE);
}

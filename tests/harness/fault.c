/* harness/fault.c - see fault.h. */
#include "harness/fault.h"

#include <dirent.h>
#include <stdatomic.h>

#include "base/json.h"
#include "base/mem.h"

enum { ROUNDS_MAX = 100000 };

static atomic_ulong countdown; /* 0: nothing fails */
static atomic_bool sticky, hit;

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

bool mem_fault_hook(void)
{
	if (atomic_load(&countdown) == 0)
		return false;
	if (atomic_fetch_sub(&countdown, 1) > 1)
		return false;
	if (atomic_load(&sticky))
		atomic_store(&countdown, 1);
	atomic_store(&hit, true);
	return true;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	if (!d)
		return -1;
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

static void *json_alloc(size_t size)
{
	return mem_fault() ? NULL : malloc(size);
}

struct fault fault_begin(const char *file, int line)
{
	json_set_alloc_funcs(json_alloc, free);
	return (struct fault){ .file = file, .line = line, .open_fds = -1 };
}

static void check_round(const struct fault *f)
{
	int fds = count_fds();

	if (fds != f->open_fds)
		test_fail(f->file, f->line, "round %lu%s: %d descriptors, %d before", f->n,
			  f->sticky ? " (sticky)" : "", fds, f->open_fds);
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
		test_fail(f->file, f->line, "round %lu%s: a leak", f->n,
			  f->sticky ? " (sticky)" : "");
}

bool fault_next(struct fault *f)
{
	bool was_hit = atomic_load(&hit);

	atomic_store(&countdown, 0);
	if (f->open_fds < 0) { /* the undisturbed round is still to come */
		f->open_fds = count_fds();
		atomic_store(&hit, false);
		return true;
	}
	check_round(f);
	if (f->n > 0 && !was_hit) {
		if (f->sticky)
			return false;
		f->sticky = true;
		f->n = 0;
	}
	if (++f->n > ROUNDS_MAX)
		test_fail(f->file, f->line, "no end after %d rounds", ROUNDS_MAX);
	atomic_store(&sticky, f->sticky);
	atomic_store(&hit, false);
	atomic_store(&countdown, f->n);
	return true;
}

bool fault_was_hit(void)
{
	return atomic_load(&hit);
}

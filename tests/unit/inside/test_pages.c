/* unit/inside/test_pages.c - the memory of a template: moved into sealed files, and copied ahead of
 * use in a session. */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "inside/lib/pages.h"
#include "inside/lib/prefault.h"

enum { PAGE = 4096, PAGES = 64 };

static char data[PAGES * PAGE] = { 1 }; /* of this program's file, and writable */

static long faults(void)
{
	struct rusage usage;

	ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_minflt;
}

/* How many faults it takes to write to every second page. */
static long write_half(char *at)
{
	long before = faults();

	for (int i = 0; i < PAGES; i += 2)
		at[i * PAGE] = 3;
	return faults() - before;
}

static int status_of(pid_t pid)
{
	int status;

	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(pages_that_one_session_has_written_are_copied_at_once_in_the_next)
{
	char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	int ready[2], end[2];
	char byte;

	ASSERT(at != MAP_FAILED && pipe(ready) == 0 && pipe(end) == 0);
	(void)madvise(at, PAGES * PAGE, MADV_NOHUGEPAGE);
	memset(at, 2, PAGES * PAGE);
	pid_t first = fork();
	if (first == 0) {
		close(end[1]);
		ASSERT(write_half(at) >= PAGES / 2);
		ASSERT_EQ(write(ready[1], "r", 1), 1);
		_exit(read(end[0], &byte, 1) != 0);
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	prefault_learn(first);
	close(end[1]);
	ASSERT_EQ(status_of(first), 0);
	pid_t second = fork();
	if (second == 0) {
		prefault_copy();
		for (int i = 0; i < PAGES; i++)
			if (at[i * PAGE] != 2)
				_exit(2);
		/* It may meet a page of the stack or of the C library on its way. */
		_exit(write_half(at) > PAGES / 4);
	}
	ASSERT_EQ(status_of(second), 0);
}

TEST(learning_from_a_process_that_has_gone_does_nothing)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ASSERT_EQ(status_of(pid), 0);
	prefault_learn(pid);
	prefault_copy();
}

/* The line of /proc/self/maps with this address. */
static void mapping_of(const void *address, char *ret, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "re");

	ASSERT(f);
	while (fgets(ret, (int)size, f)) {
		char *at;
		unsigned long start = strtoul(ret, &at, 16), end = strtoul(at + 1, NULL, 16);
		if (start <= (unsigned long)address && (unsigned long)address < end) {
			fclose(f);
			return;
		}
	}
	test_fail(__FILE__, __LINE__, "no such mapping");
}

TEST(memory_keeps_its_bytes_in_a_sealed_file)
{
	char line[512];

	for (int i = 0; i < PAGES * PAGE; i++)
		data[i] = (char)(i % 251);
	pages_put_into_files();
	for (int i = 0; i < PAGES * PAGE; i++)
		ASSERT_EQ(data[i], (char)(i % 251));
	mapping_of(data + PAGES / 2 * PAGE, line, sizeof(line));
	ASSERT_HAS(line, "cordon-image");
	ASSERT_HAS(line, " rw-p ");
	pid_t pid = fork();
	if (pid == 0) {
		memset(data, 9, sizeof(data));
		_exit(0);
	}
	ASSERT_EQ(status_of(pid), 0);
	ASSERT_EQ(data[PAGE], (char)(PAGE % 251));
	/* madvise() that would punch a hole into a file, for all who map it */
	ASSERT(madvise(data, sizeof(data), MADV_REMOVE) != 0);
}

TEST(a_limit_of_files_leaves_memory_where_it_is)
{
	struct rlimit small = { PAGE, PAGE };
	char line[512];

	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
	data[PAGE] = 7;
	pages_put_into_files();
	mapping_of(data + PAGES / 2 * PAGE, line, sizeof(line));
	ASSERT(!strstr(line, "cordon-image"));
	ASSERT_EQ(data[PAGE], 7);
}

/* inside/pod/runtime/checkpoint.c - see checkpoint.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/checkpoint.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/pod/runtime/door.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/instance.h"
#include "inside/pod/runtime/run.h"

#define PAGE 4096u
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MAX_RUNS 512u
#define RED_ZONE 1024u /* below the saved stack pointer: belongs to the frame that saves */

/* All processes of a pod are forks of one, so they have the same addresses: memory, tables and
 * stack are restored in place. Shared with the child that fills it. */
struct snapshot {
	bool ready;
	const struct program *program;
	wasm_rt_memory_t *memory;
	jmp_buf *unwind_top;
	jmp_buf at;
	uint8_t *stack; /* lowest saved byte */
	size_t memory_bytes, tables_bytes, stack_bytes, instance_bytes;
	off_t tables_at, stack_at, instance_at; /* memory is at 0 */
	size_t run_count; /* runs of pages that a program writes before it does anything of its own
			   */
	struct run {
		uint32_t first, count;
	} runs[MAX_RUNS];
};

static struct snapshot *snapshot;
static int file = -1;

static bool is_zero(const uint8_t *page)
{
	return !page[0] && !memcmp(page, page + 1, PAGE - 1);
}

/* Pages of zeros stay holes. */
static int save(const uint8_t *from, size_t bytes, off_t at)
{
	if (ftruncate(file, at + (off_t)bytes))
		return -1;
	for (size_t i = 0; i < bytes; i += PAGE) {
		size_t n = bytes - i < PAGE ? bytes - i : PAGE;

		if (n == PAGE && is_zero(from + i))
			continue;
		if (pwrite(file, from + i, n, at + (off_t)i) != (ssize_t)n)
			return -1;
	}
	return 0;
}

static off_t next_page(off_t at, size_t bytes)
{
	return (at + (off_t)bytes + PAGE - 1) / PAGE * PAGE;
}

static int save_all(struct w2c_sys *p)
{
	const struct program *program = p->command->program;
	struct snapshot *s = snapshot;
	uint8_t *top = instance.stack + INSTANCE_STACK_GUARD + INSTANCE_STACK;

	s->program = program;
	s->memory = p->memory;
	s->unwind_top = wasm_rt_unwind_top;
	s->stack = (uint8_t *)__builtin_frame_address(0) - RED_ZONE;
	s->stack_bytes = (size_t)(top - s->stack);
	s->memory_bytes = instance.memory_used;
	s->tables_bytes = instance.tables_used;
	s->instance_bytes = program->instance_bytes;
	s->tables_at = next_page(0, s->memory_bytes);
	s->stack_at = next_page(s->tables_at, s->tables_bytes);
	s->instance_at = next_page(s->stack_at, s->stack_bytes);
	if (save(instance.memory, s->memory_bytes, 0) ||
	    save(instance.tables, s->tables_bytes, s->tables_at) ||
	    save(s->stack, s->stack_bytes, s->stack_at) ||
	    save(program->instance, s->instance_bytes, s->instance_at))
		return -1;
	s->ready = true;
	return 0;
}

/* 0: is a checkpoint wanted here? 1: take it; returns 1 when resumed. 2: start this program without
 * one. */
DOOR_FN(own_checkpoint)
{
	switch (a[0]) {
	case 0:
		return p->warming;
	case 1:
		if (!p->warming)
			return 0;
		if (_setjmp(snapshot->at))
			return 1;
		_exit(save_all(p) ? 1 : 0);
	case 2:
		p->cold = true;
		p->next = p->command;
		_longjmp(p->exec, 1);
	default:
		return -EINVAL;
	}
}

__attribute__((noreturn)) static void warm_up(struct w2c_sys *p)
{
	static char *const argv[] = { "python3", NULL };
	static char *const envp[] = { "PATH=/usr/bin", "HOME=/home/user", "LANG=C.UTF-8", NULL };

	for (int fd = 0; fd < 3; fd++)
		dup2(p->fds[PRIVATE_NULL], fd);
	alarm(20);
	p->warming = true;
	if (image_choose(p, "python3") || image_arguments(p, argv, envp))
		_exit(1);
	run_programs(p);
}

static void add_page(struct snapshot *s, size_t page)
{
	struct run *last = s->run_count ? &s->runs[s->run_count - 1] : NULL;

	/* One extra page costs less than one extra call. */
	if (last && page <= last->first + last->count + 1)
		last->count = (uint32_t)(page + 1 - last->first);
	else if (s->run_count < MAX_RUNS)
		s->runs[s->run_count++] = (struct run){ (uint32_t)page, 1 };
}

/* Finds which pages are this process's own copies. No guest code has run in it. */
void checkpoint_learn(void)
{
	const uint64_t present = 1ull << 63, of_file = 1ull << 61;
	uint64_t entries[512];
	size_t pages = snapshot->memory_bytes / PAGE;
	int fd;

	prctl(PR_SET_DUMPABLE, 1); /* otherwise it cannot read its own page map */
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (size_t at = 0; fd >= 0 && at < pages;) {
		off_t from = (off_t)(((uintptr_t)instance.memory / PAGE + at) * sizeof *entries);
		ssize_t n = pread(fd, entries, sizeof entries, from);

		if (n < (ssize_t)sizeof *entries)
			break;
		for (size_t i = 0; i < (size_t)n / sizeof *entries && at < pages; i++, at++)
			if ((entries[i] & (present | of_file)) == present)
				add_page(snapshot, at);
	}
	_exit(0);
}

__attribute__((noreturn)) static void try_out(struct w2c_sys *p)
{
	static char *const argv[] = { "python3", "-c", "print(1)", NULL };
	static char *const envp[] = { "PATH=/usr/bin", "HOME=/home/user", "LANG=C.UTF-8", NULL };

	for (int fd = 0; fd < 3; fd++)
		dup2(p->fds[PRIVATE_NULL], fd);
	alarm(20);
	p->learning = true;
	if (image_choose(p, "python3") || image_arguments(p, argv, envp))
		_exit(1);
	run_programs(p);
}

static void in_child(struct w2c_sys *p, void (*fn)(struct w2c_sys *))
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (!pid)
		fn(p);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void checkpoint_make(struct w2c_sys *p)
{
	int made = (int)syscall(SYS_memfd_create, "pod",
				MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (made < 0 || !image_find("python3"))
		return;
	file = fcntl(made, F_DUPFD_CLOEXEC, p->fd_limit);
	close(made);
	snapshot = mmap(NULL, sizeof *snapshot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (file < 0 || snapshot == MAP_FAILED) {
		snapshot = NULL;
		return;
	}
	in_child(p, warm_up);
	/* From here on the file cannot be written. */
	fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	if (snapshot->ready)
		in_child(p, try_out);
	mprotect(snapshot, sizeof *snapshot, PROT_READ);
}

static int map(uint8_t *to, size_t bytes, off_t at, int prot)
{
	return bytes && mmap(to, bytes, prot, MAP_PRIVATE | MAP_FIXED, file, at) == MAP_FAILED;
}

/* Faults these pages in at once instead of one by one. If the kernel cannot, they fault later. */
static void populate(const struct snapshot *s)
{
	for (size_t i = 0; i < s->run_count; i++)
		if (madvise(instance.memory + (size_t)s->runs[i].first * PAGE,
			    (size_t)s->runs[i].count * PAGE, MADV_POPULATE_WRITE))
			break;
}

void checkpoint_resume(struct w2c_sys *p)
{
	const struct snapshot *s = snapshot;
	const struct program *program = p->command->program;
	bool cold = p->cold || p->warming;

	p->cold = false;
	if (!s || !s->ready || cold || program != s->program)
		return;
	if (map(instance.memory, s->memory_bytes, 0, PROT_READ | PROT_WRITE) ||
	    map(instance.tables, s->tables_bytes, s->tables_at, PROT_READ) ||
	    pread(file, s->stack, s->stack_bytes, s->stack_at) != (ssize_t)s->stack_bytes ||
	    pread(file, program->instance, s->instance_bytes, s->instance_at) !=
		    (ssize_t)s->instance_bytes)
		_exit(126);
	populate(s);
	instance.memory_used = s->memory_bytes;
	instance.tables_used = s->tables_bytes;
	wasm_rt_unwind_top = s->unwind_top;
	p->memory = s->memory;
	_longjmp(*(jmp_buf *)(uintptr_t)&s->at, 1);
}

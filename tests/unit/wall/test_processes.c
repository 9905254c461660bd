/* unit/wall/test_processes.c - CPU time and processes of a box, with ordinary processes of ours in
 * their place. */
#include "wall/linux/processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "unit/session/faked_box.h"

/* Uses at least so much CPU time, of its own clock. */
static void burn(long ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

/* A process that has children, and each of them burnt so much before this returns. */
static pid_t family(int children, long ms)
{
	int ready[2];
	char byte;

	ASSERT_EQ(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < children; i++)
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				burn(ms);
				(void)!write(ready[1], "", 1);
				pause();
			}
		if (children == 0)
			(void)!write(ready[1], "", 1);
		pause();
	}
	for (int i = 0; i < (children ? children : 1); i++)
		ASSERT_EQ(read(ready[0], &byte, 1), 1);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(a_box_without_processes)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.status.cpu_us = 77;
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 10), 0);
	ASSERT_EQ(processes_cpu_us(&f.box.base, BOX_CPU_GUEST), 0);
	ASSERT_EQ(processes_cpu_us(&f.box.base, BOX_CPU_ALL), 77); /* what was reaped */
}

TEST(a_control_group_counts_everything)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	faked_box_add_group(&f);
	faked_box_count(&f, "cpu.stat", "usage_usec 1234\n");
	f.status.cpu_us = 77;
	ASSERT_EQ(processes_cpu_us(&f.box.base, BOX_CPU_ALL), 1234);
	faked_box_done(&f);
}

TEST(processes_are_counted_until_there_are_enough)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.status.init_pid = family(3, 0);
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 100), 4);
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 4), 4);
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 2), 2);
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 1), 1);
	end(f.status.init_pid);
	f.box.is_gone = true;
	ASSERT_EQ(processes_count(&f.box.base, BOX_PROCESSES_NOW, 100), 0);
}

TEST(the_guest_is_the_first_child_and_all_are_all)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.status.init_pid = family(2, 30);
	uint64_t guest = processes_cpu_us(&f.box.base, BOX_CPU_GUEST),
		 all = processes_cpu_us(&f.box.base, BOX_CPU_ALL);
	ASSERT(guest >= 30000);
	ASSERT(all >= guest + 30000);
	end(f.status.init_pid);
}

/* One process besides pid 1 ever: its clock and what was reaped, and no look into /proc. */
TEST(without_others_the_guest_is_all)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	faked_box_add_group(&f);
	faked_box_count(&f, "pids.peak", "2\n");
	f.status.init_pid = family(2, 30);
	f.status.cpu_us = 5;
	uint64_t guest = processes_cpu_us(&f.box.base, BOX_CPU_GUEST),
		 all = processes_cpu_us(&f.box.base, BOX_CPU_ALL);
	ASSERT(guest >= 30000);
	ASSERT(all >= guest + 5 && all < guest + 30000);
	end(f.status.init_pid);
	faked_box_done(&f);
}

/* A process whose only child has an only child, which has burnt so much. */
static pid_t lineage(long ms)
{
	int ready[2];
	char byte;

	ASSERT_EQ(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				burn(ms);
				(void)!write(ready[1], "", 1);
			}
			pause();
		}
		pause();
	}
	ASSERT_EQ(read(ready[0], &byte, 1), 1);
	return pid;
}

/* Three processes ever: an agent and its shell, which is not looked for twice while it lives. */
TEST(the_shell_of_an_agent_counts)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_SH);
	faked_box_add_group(&f);
	faked_box_count(&f, "pids.peak", "3\n");
	f.status.init_pid = lineage(30);
	f.status.cpu_us = 5;
	uint64_t guest = processes_cpu_us(&f.box.base, BOX_CPU_GUEST),
		 all = processes_cpu_us(&f.box.base, BOX_CPU_ALL);
	pid_t shell = f.box.shell_pid;
	ASSERT(all >= guest + 30000 + 5);
	ASSERT(shell > 0 && shell != f.box.guest_pid);
	f.box.ended_us += 1000000; /* so it shows whether that was used */
	ASSERT(processes_cpu_us(&f.box.base, BOX_CPU_ALL) >= all + 1000000);
	f.box.shell_pid = getpid(); /* as if the shell had gone and its number were another's */
	ASSERT(processes_cpu_us(&f.box.base, BOX_CPU_ALL) < all + 1000000);
	ASSERT_EQ(f.box.shell_pid, shell);
	end(f.status.init_pid);
	faked_box_done(&f);
}

TEST(a_third_process_that_is_no_shell_counts)
{
	struct faked_box f;

	faked_box_init(&f, GUEST_KIND_PYTHON);
	faked_box_add_group(&f);
	faked_box_count(&f, "pids.peak", "3\n");
	f.status.init_pid = family(2, 30);
	uint64_t guest = processes_cpu_us(&f.box.base, BOX_CPU_GUEST);
	ASSERT(processes_cpu_us(&f.box.base, BOX_CPU_ALL) >= guest + 30000);
	ASSERT_EQ(f.box.shell_pid, 0);
	end(f.status.init_pid);
	faked_box_done(&f);
}

TEST(reaped_children_count)
{
	struct faked_box f;
	pid_t pid = fork();

	if (pid == 0) {
		burn(50);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	faked_box_init(&f, GUEST_KIND_PYTHON);
	f.status.init_pid = getpid();
	f.box.guest_pid = getpid();
	ASSERT(processes_cpu_us(&f.box.base, BOX_CPU_ALL) >=
	       30000); /* the kernel tells it in ticks */
}

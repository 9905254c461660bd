/* tests/pod/fuzz_door.c - random arguments at the door; libFuzzer's entry, and a main without it.
 */
#include "door_fixture.h"

#include <signal.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls that end, split, wait or signal by design. */
static bool is_left_out(int number)
{
	static const int out[] = { SYS_exit,
				   SYS_exit_group,
				   SYS_pause,
				   SYS_rt_sigsuspend,
				   SYS_fork,
				   SYS_vfork,
				   SYS_kill,
				   SYS_tkill,
				   SYS_tgkill,
				   SYS_nanosleep,
				   SYS_clock_nanosleep,
				   SYS_poll,
				   SYS_ppoll,
				   SYS_select,
				   SYS_pselect6,
				   SYS_alarm,
				   SYS_setitimer,
				   SYS_rt_sigtimedwait,
				   SYS_setrlimit,
				   SYS_prlimit64,
				   SYS_mmap,
				   SYS_flock,
				   SYS_fcntl,
				   SYS_rt_sigprocmask,
				   SYS_setpriority,
				   DOOR_SIGACTION };

	for (size_t i = 0; i < sizeof out / sizeof *out; i++)
		if (out[i] == number)
			return true;
	return false;
}

static void on_tick(int sig)
{
	(void)sig;
}

/* What blocks comes back: a full pipe, a FIFO without another end. Not by SIGALRM, which is the
 * deadline of whoever runs this. Only while calls are made: the search for leaks stops the process
 * by ptrace, which a tick would undo. */
static void tick(bool on)
{
	static timer_t timer;
	static bool made;
	struct sigaction sa = { .sa_handler = on_tick };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct itimerspec every = { { 0, on ? 5000000 : 0 }, { 0, on ? 5000000 : 0 } };

	if (!made) {
		signal(SIGPIPE, SIG_IGN);
		sigaction(SIGUSR2, &sa, NULL);
		if (timer_create(CLOCK_MONOTONIC, &event, &timer))
			abort();
		made = true;
	}
	if (timer_settime(timer, 0, &every, NULL))
		abort();
}

/* A pipe that a call has left in their place would fill with what the fuzzer says, and stop it. */
static void leave(void)
{
	tick(false);
	fixture_public_stdio();
}

/* A byte chooses the call, then six of kind and value: small, an address, or anything. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
	static bool open;
	const uint8_t *volatile data = input;
	volatile size_t size = length;

	if (!open) {
		fixture_open();
		open = true;
	}
	fixture_again();
	fixture_private_stdio();
	tick(true);
	if (_setjmp(fixture.exec)) {
		leave();
		return 0;
	}
	while (size >= 1 + 6 * 5) {
		const struct door_entry *entry = &door_table[*data % door_count];
		uint64_t a[6];

		data = data + 1;
		size = size - 1;
		for (int i = 0; i < 6; i++, data = data + 5, size = size - 5) {
			uint32_t v;

			memcpy(&v, data + 1, 4);
			a[i] = data[0] % 3 == 0   ? v % 70
			       : data[0] % 3 == 1 ? v % (FIXTURE_BYTES + 64)
						  : v;
			if (data[0] == 255)
				a[i] |= (uint64_t)v << 32;
		}
		if (!is_left_out(entry->number))
			entry->fn(&fixture, a);
	}
	leave();
	return 0;
}

#ifndef WITH_LIBFUZZER
int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
	time_t end = time(NULL) + seconds;
	unsigned long runs = 0;
	uint8_t data[31 * 8];

	srandom(argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL));
	while (time(NULL) < end) {
		for (int k = 0; k < 1000; k++, runs++) {
			for (size_t i = 0; i < sizeof data; i++)
				data[i] = (uint8_t)random();
			LLVMFuzzerTestOneInput(data, sizeof data);
		}
	}
	printf("ok 1 - %lu random sequences of calls, no fault\n1..1\n", runs);
	return 0;
}
#endif

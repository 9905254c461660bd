/* cli/progress.h - one line on a terminal about what takes longer than a second. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;      /* borrowed: "import mine" */
	uint64_t total;        /* bytes; 0: unknown */
	_Atomic uint64_t done; /* bytes so far; 0: not counted */
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool is_over, is_running, spins;
	pthread_t thread;
};

/* Shows nothing in the first second, or if standard error is not a terminal that can clear a
 * line. */
void progress_begin(struct progress *p, const char *what, uint64_t total);
/* The same for work of unknown size, with a sign that turns. */
void progress_spin(struct progress *p, const char *what);
/* Clears the line, before it returns. Nothing to do if none was begun, or twice. Any thread, one at
 * a time. */
void progress_end(struct progress *p);
#define cleanup_progress __attribute__((cleanup(progress_end)))

/* cli/progress.h - one line on a terminal about a transfer that takes longer than a second. */
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
	bool is_over, is_running;
	pthread_t thread;
};

/* Shows nothing in the first second, or if standard error is not a terminal. */
void progress_begin(struct progress *p, const char *what, uint64_t total);
/* Clears the line. */
void progress_end(struct progress *p);
#define cleanup_progress __attribute__((cleanup(progress_end)))

/* cli/progress.h - one line on a terminal about a transfer that takes longer than a second. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;      /* borrowed: "import mine" */
	uint64_t total;        /* bytes; 0: not known */
	_Atomic uint64_t done; /* bytes; the caller counts, or leaves it at 0 */
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool is_over, is_running;
	pthread_t thread;
};

/* Nothing is shown in the first second, or where standard error is no terminal. */
void progress_begin(struct progress *p, const char *what, uint64_t total);
/* Takes the line away again. */
void progress_end(struct progress *p);
#define cleanup_progress __attribute__((cleanup(progress_end)))

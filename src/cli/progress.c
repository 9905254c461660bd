/* cli/progress.c - see progress.h. Uses a thread, because a transfer is often one long call. */
#include "cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/condvar.h"
#include "base/str.h"

enum { FIRST_MS = 1000, EVERY_MS = 250, BAR = 20, NAME_MAX_BYTES = 64 << 10 };

/* The name may be the guest's. */
static void draw(const struct progress *p, double seconds)
{
	cleanup_buf struct buf name = { 0 };
	uint64_t done = p->done;
	double mib = (double)done / (1 << 20);

	buf_init(&name, NAME_MAX_BYTES);
	(void)buf_add_printable(&name, p->what);
	fputs("\r\033[K", stderr);
	if (p->spins)
		fprintf(stderr, "%c ", "|/-\\"[(int)(seconds * 1000 / EVERY_MS) % 4]);
	fprintf(stderr, "%.60s: %.0f s", buf_text(&name), seconds);
	if (done && p->total) {
		double part = done < p->total ? (double)done / (double)p->total : 1;
		int filled = (int)(part * BAR);

		fprintf(stderr, " [%.*s%*s] %.0f %% of %.1f MiB", filled, "####################",
			BAR - filled, "", 100.0 * part, (double)p->total / (1 << 20));
	} else if (done)
		fprintf(stderr, ", %.1f MiB", mib);
	else if (p->total)
		fprintf(stderr, ", %.1f MiB in all", (double)p->total / (1 << 20));
	fflush(stderr);
}

static void *show(void *arg)
{
	struct progress *p = arg;
	uint64_t start = clock_now_ns();
	deadline_ns until = deadline_after_ms(FIRST_MS);
	bool is_shown = false;

	pthread_mutex_lock(&p->lock);
	while (!p->is_over) {
		if (condvar_wait(&p->end, &p->lock, until))
			continue;
		draw(p, (double)(clock_now_ns() - start) / 1e9);
		is_shown = true;
		until = deadline_after_ms(EVERY_MS);
	}
	pthread_mutex_unlock(&p->lock);
	if (is_shown)
		fputs("\r\033[K", stderr);
	return NULL;
}

/* A dumb one cannot clear what was drawn. */
static bool is_capable(void)
{
	return isatty(STDERR_FILENO) && !str_eq(getenv("TERM"), "dumb");
}

static void begin(struct progress *p)
{
	if (!is_capable())
		return;
	pthread_mutex_init(&p->lock, NULL);
	condvar_init(&p->end);
	p->is_running = pthread_create(&p->thread, NULL, show, p) == 0;
}

void progress_begin(struct progress *p, const char *what, uint64_t total)
{
	memset(p, 0, sizeof(*p));
	p->what = what;
	p->total = total;
	begin(p);
}

void progress_spin(struct progress *p, const char *what)
{
	memset(p, 0, sizeof(*p));
	p->what = what;
	p->spins = true;
	begin(p);
}

void progress_end(struct progress *p)
{
	if (!p->is_running)
		return;
	pthread_mutex_lock(&p->lock);
	p->is_over = true;
	pthread_cond_signal(&p->end);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->is_running = false;
}

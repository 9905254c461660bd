/* session/stdin_feed.c - see stdin_feed.h. */
#include "session/stdin_feed.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

enum { CHUNK = 65536, LONGEST_MS = 50, HELD_MS = 20 };

int stdin_feed_begin(struct stdin_feed *f, struct engine *e, struct workspace *ws,
		     const struct cordon_execute_options *o, struct cordon_error **reterr)
{
	bool given = o->stdin_bytes || o->stdin_fd > 0;

	*f = (struct stdin_feed){ .engine = e,
				  .workspace = ws,
				  .bytes = o->stdin_bytes,
				  .left = o->stdin_bytes ? o->stdin_len : 0,
				  .source = o->stdin_fd > 0 ? o->stdin_fd : -1,
				  .options = o };
	f->to = TAKE_FD(e->stdin_fd);
	f->is_kept = e->kind == GUEST_KIND_POD && f->source < 0;
	if (e->kind == GUEST_KIND_POD)
		return 0;
	if (f->to < 0 && given) {
		int r = stdin_fifo_make(ws, f->path, reterr);
		if (r < 0)
			return r;
		f->is_awaited = true;
		f->told = f->path;
	} else if (f->to < 0 && e->had_stdin) {
		f->told = "/dev/null"; /* so that it does not read what the last execution left */
	}
	e->had_stdin = given;
	return 0;
}

/* The guest opens the FIFO when its execution begins, or never. */
static void look(struct stdin_feed *f)
{
	int r = stdin_fifo_open(f->workspace, f->path, &f->to);

	f->looks++;
	if (r == 0)
		return;
	f->is_awaited = false;
	stdin_fifo_remove(f->workspace, f->path);
	f->path[0] = '\0';
}

static ssize_t read_some(struct stdin_feed *f)
{
	const struct cordon_execute_options *o = f->options;

	return o->stdin_read ? o->stdin_read(f->source, f->chunk, CHUNK, o->stdin_arg)
			     : read(f->source, f->chunk, CHUNK);
}

static void read_source(struct stdin_feed *f)
{
	if (!f->chunk)
		f->chunk = mem_alloc(CHUNK);
	ssize_t n = f->chunk ? read_some(f) : 0;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		f->source = -1;
	f->bytes = f->chunk;
	f->left = f->chunk_len = n > 0 ? (size_t)n : 0;
}

/* How much of the last chunk the guest has not read. The guest may write to its stdin, too. */
static size_t unread(const struct stdin_feed *f)
{
	int waiting = 0;

	if (f->to >= 0)
		(void)ioctl(f->to, FIONREAD, &waiting);
	size_t all = f->left + (waiting > 0 ? (size_t)waiting : 0);
	return all < f->chunk_len ? all : f->chunk_len;
}

/* Whether the source must not be read yet. */
static bool is_held(const struct stdin_feed *f)
{
	return f->options->stdin_read && f->source >= 0 && f->to >= 0 && unread(f) > 0;
}

static bool may_read(struct stdin_feed *f)
{
	f->held = is_held(f) ? f->held + 1 : 0;
	return f->left == 0 && f->source >= 0 && f->held == 0;
}

/* write(2) without SIGPIPE: a guest that closes its stdin must not kill the host. */
static ssize_t write_quietly(int fd, const char *bytes, size_t len)
{
	sigset_t pipe, before, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	ssize_t n = write(fd, bytes, len);
	int e = errno;
	if (n < 0 && e == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &(struct timespec){ 0 });
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = e;
	return n;
}

void stdin_feed_go_on(struct stdin_feed *f, bool source_ready)
{
	if (f->is_awaited)
		look(f);
	if (f->to < 0)
		return;
	if (may_read(f) && source_ready)
		read_source(f);
	while (f->left > 0) {
		ssize_t n = write_quietly(f->to, f->bytes, f->left);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) { /* the guest no longer reads */
			f->left = 0;
			f->source = -1;
			break;
		}
		f->bytes += n;
		f->left -= (size_t)n;
		f->engine->stdin_written += (uint64_t)n;
	}
	if (f->left == 0 && f->source < 0 && !f->is_kept)
		close_fdp(&f->to);
}

int stdin_feed_to_fd(const struct stdin_feed *f)
{
	return f->left > 0 ? f->to : -1;
}

int stdin_feed_source_fd(const struct stdin_feed *f)
{
	return f->left == 0 && f->to >= 0 && !is_held(f) ? f->source : -1;
}

int stdin_feed_patience_ms(const struct stdin_feed *f)
{
	if (is_held(f))
		return f->held < 5 ? 1 << f->held : HELD_MS;
	if (!f->is_awaited)
		return -1;
	return f->looks < 6 ? 1 << f->looks : LONGEST_MS;
}

void stdin_feed_end(struct stdin_feed *f)
{
	size_t n = f->options->stdin_unread ? unread(f) : 0;

	if (n > 0)
		f->options->stdin_unread(f->chunk + f->chunk_len - n, n, f->options->stdin_arg);
	if (f->is_kept)
		f->engine->stdin_fd = TAKE_FD(f->to);
	close_fdp(&f->to);
	if (f->path[0])
		stdin_fifo_remove(f->workspace, f->path);
	f->path[0] = '\0';
	free(f->chunk);
	f->chunk = NULL;
}

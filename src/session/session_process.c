/* session/session_process.c - see session_process.h. */
#include "session/session_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/condvar.h"
#include "base/mem.h"
#include "session/context.h"
#include "session/result.h"
#include "session/session_command.h"

/* COMMAND_CHARS: as much of a command as a list shows. PROCESSES_MAX: in all. WAITED_MAX: of them
 * those that somebody has waited for; they are kept so that a second handle is not left without. */
enum { LOG_MAX = 256 << 10, COMMAND_CHARS = 200, PROCESSES_MAX = 64, WAITED_MAX = 16 };

/* The exit code of what SIGKILL has ended. */
enum { KILLED = 128 + SIGKILL };

/* The end of one stream. */
struct tail {
	struct buf bytes;
	uint64_t dropped; /* before them */
};

struct process {
	uint64_t id;
	struct processes *of;
	struct cordon_session *context;        /* NULL: it has ended */
	struct cordon_command_options options; /* points to the copies below */
	char *command, *stdin_bytes;
	int stdin_write, stdin_read; /* -1: stdin_bytes is all of its stdin, or it was closed */
	bool is_killed;
	struct tail tails[2];
	bool is_over, is_waited;
	struct cordon_result *result;
	struct cordon_error *error; /* instead of a result */
	struct process *next;
};

struct processes {
	pthread_mutex_t lock;   /* guards everything here and in the processes; taken last */
	pthread_cond_t changed; /* one has ended */
	struct process *first;  /* the newest first */
	unsigned count, threads;
	uint64_t last_id;
};

static struct process *process_free(struct process *p)
{
	if (!p)
		return NULL;
	close_fdp(&p->stdin_write);
	close_fdp(&p->stdin_read);
	for (int i = 0; i < 2; i++)
		buf_done(&p->tails[i].bytes);
	cordon_result_free(p->result);
	cordon_error_free(p->error);
	free(p->command);
	free(p->stdin_bytes);
	free(p);
	return NULL;
}

/* Made on first use, freed with the session. */
static struct processes *processes_of(struct cordon_session *root)
{
	pthread_mutex_lock(&root->contexts_lock);
	if (!root->processes && (root->processes = mem_alloc(sizeof(*root->processes)))) {
		pthread_mutex_init(&root->processes->lock, NULL);
		condvar_init(&root->processes->changed);
	}
	struct processes *all = root->processes;
	pthread_mutex_unlock(&root->contexts_lock);
	return all;
}

static struct process *find(const struct processes *all, uint64_t id)
{
	for (struct process *p = all->first; p; p = p->next)
		if (p->id == id)
			return p;
	return NULL;
}

static void unlink_process(struct processes *all, struct process *p)
{
	for (struct process **at = &all->first; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			all->count--;
			return;
		}
}

static int not_found(uint64_t process, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOT_FOUND, "there is no process %llu",
		       (unsigned long long)process);
}

/* Finds the process and locks the list, which the caller unlocks. NULL: nothing is locked. */
static struct process *lock_process(struct cordon_session *s, uint64_t id,
				    struct cordon_error **reterr)
{
	struct processes *all = processes_of(session_root(s));
	struct process *p = NULL;

	if (all) {
		pthread_mutex_lock(&all->lock);
		p = find(all, id);
		if (!p)
			pthread_mutex_unlock(&all->lock);
	}
	if (!p)
		(void)not_found(id, reterr);
	return p;
}

static void keep(struct tail *t, const char *bytes, size_t len)
{
	size_t over = len > LOG_MAX ? len - LOG_MAX : 0;

	t->dropped += over;
	bytes += over;
	len -= over;
	if (t->bytes.len + len > 2 * (size_t)LOG_MAX) {
		size_t drop = t->bytes.len + len - LOG_MAX;

		drop = drop < t->bytes.len ? drop : t->bytes.len;
		buf_consume(&t->bytes, drop);
		t->dropped += drop;
	}
	if (buf_add(&t->bytes, bytes, len) < 0)
		t->dropped += len;
}

static void take_output(int stream, const char *bytes, size_t len, void *arg)
{
	struct process *p = arg;

	pthread_mutex_lock(&p->of->lock);
	keep(&p->tails[stream == 2], bytes, len);
	pthread_mutex_unlock(&p->of->lock);
	if (p->options.output)
		p->options.output(stream, bytes, len, p->options.output_arg);
}

/* The thread of one process. */
static void *run(void *arg)
{
	struct process *p = arg;
	struct processes *all = p->of;
	struct cordon_session *c = p->context;
	struct cordon_command_options o = p->options;
	struct cordon_result *result = NULL;
	struct cordon_error *e = NULL;

	o.output = take_output;
	o.output_arg = p;
	int r = session_command_run(c, &o, p->stdin_read, &result, &e);
	pthread_mutex_lock(&all->lock);
	p->context = NULL;
	close_fdp(&p->stdin_write);
	close_fdp(&p->stdin_read);
	if (r < 0 && p->is_killed && (result = result_new())) { /* before it began */
		(void)result_fail(result, "cancelled", "execution cancelled");
		result->exit_code = 125;
	}
	if (result && p->is_killed && !o.forget && str_eq(result->kind, "cancelled"))
		result->exit_code = KILLED;
	p->result = result;
	p->error = e;
	pthread_mutex_unlock(&all->lock);
	if (o.ended)
		o.ended(p->id, o.ended_arg);
	pthread_mutex_lock(&all->lock);
	p->is_over = true;
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
	context_close(c);
	pthread_mutex_lock(&all->lock);
	all->threads--;
	pthread_cond_broadcast(&all->changed);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Signals go to the host's own threads. */
static int start_thread(struct process *p)
{
	sigset_t blocked, before;
	pthread_t thread;

	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	int e = pthread_create(&thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e == 0)
		(void)pthread_detach(thread);
	return e;
}

/* Forgets the oldest one that has ended; one that was waited for, if there is one. */
static bool forget_oldest(struct processes *all)
{
	struct process *oldest = NULL;

	for (struct process *p = all->first; p; p = p->next)
		if (p->is_over && (p->is_waited || !oldest || !oldest->is_waited))
			oldest = p;
	if (oldest)
		unlink_process(all, oldest);
	process_free(oldest);
	return oldest != NULL;
}

/* Makes room for one more. Called with the lock held. */
static bool make_room(struct processes *all)
{
	return all->count < PROCESSES_MAX || forget_oldest(all);
}

/* Called with the lock held. */
static void mark_waited(struct processes *all, struct process *p)
{
	unsigned waited = 0;

	p->is_waited = true;
	for (const struct process *q = all->first; q; q = q->next)
		waited += q->is_waited;
	if (waited > WAITED_MAX)
		(void)forget_oldest(all);
}

static int copy_options(struct process *p, const struct cordon_command_options *o,
			struct cordon_error **reterr)
{
	int fds[2];

	p->options = *o;
	p->options.command = p->command = str_dup(o->command);
	p->options.directory = NULL; /* the context has it and the environment */
	p->options.env = NULL;
	for (int i = 0; i < 2; i++)
		buf_init(&p->tails[i].bytes, 4 * (size_t)LOG_MAX);
	if (o->stdin_bytes)
		p->options.stdin_bytes = p->stdin_bytes = mem_dup(o->stdin_bytes, o->stdin_len);
	if (!p->command || (o->stdin_bytes && !p->stdin_bytes))
		return err_errno(reterr, ENOMEM, "run a command");
	if (o->stdin_bytes)
		return 0;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return err_errno(reterr, errno, "open a pipe for a command");
	p->stdin_read = fds[0];
	p->stdin_write = fds[1];
	return 0;
}

static int add(struct processes *all, struct process *p, struct cordon_error **reterr)
{
	int r = 0;

	pthread_mutex_lock(&all->lock);
	if (!make_room(all)) {
		r = err_set(reterr, CORDON_LIMIT, "a session has at most %d processes at a time",
			    PROCESSES_MAX);
	} else {
		p->of = all;
		p->id = ++all->last_id;
		p->next = all->first;
		all->first = p;
		all->count++;
		all->threads++;
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

static void remove_process(struct processes *all, struct process *p)
{
	pthread_mutex_lock(&all->lock);
	unlink_process(all, p);
	all->threads--;
	pthread_mutex_unlock(&all->lock);
}

int cordon_process_start(struct cordon_session *s, const struct cordon_command_options *o,
			 uint64_t *ret, struct cordon_error **reterr)
{
	struct cordon_session *c = NULL;
	int r = session_command_context(s, o, &c, reterr);

	if (r < 0 || !c)
		return r;
	struct processes *all = processes_of(session_root(s));
	struct process *p = mem_alloc(sizeof(*p));
	if (!all || !p) {
		free(p);
		context_close(c);
		return err_errno(reterr, ENOMEM, "run a command");
	}
	p->stdin_read = p->stdin_write = -1;
	p->context = c;
	r = copy_options(p, o, reterr);
	if (r == 0)
		r = add(all, p, reterr);
	if (r == 0) {
		*ret = p->id;
		int e = start_thread(p);
		if (e == 0)
			return 0;
		remove_process(all, p);
		r = err_errno(reterr, e, "start a thread for a command");
	}
	process_free(p);
	context_close(c);
	return r;
}

/* The end of a process that is over, for the caller to keep. Called with the lock held. */
static int copy_end(struct process *p, struct cordon_result **ret, struct cordon_error **reterr)
{
	if (!p->result)
		return err_copy(reterr, p->error);
	if (p->options.forget) {
		*ret = TAKE_PTR(p->result);
		return 0;
	}
	struct cordon_result *copy = result_copy(p->result);
	if (!copy)
		return err_errno(reterr, ENOMEM, "copy a result");
	*ret = copy;
	return 0;
}

int cordon_process_wait(struct cordon_session *s, uint64_t process, uint64_t wait_ms,
			struct cordon_result **ret, struct cordon_error **reterr)
{
	deadline_ns deadline = wait_ms == UINT64_MAX ? 0 : deadline_after_ms(wait_ms);
	struct process *p = lock_process(s, process, reterr);
	int r;

	if (!p)
		return -CORDON_NOT_FOUND;
	struct processes *all = p->of;
	bool in_time = true;
	while (p && !p->is_over && in_time) {
		in_time = condvar_wait(&all->changed, &all->lock, deadline);
		p = find(all, process); /* another thread may have waited for it */
	}
	if (!p)
		r = not_found(process, reterr);
	else if (!p->is_over)
		r = err_set(reterr, CORDON_TIMEOUT, "process %llu still runs",
			    (unsigned long long)process);
	else
		r = copy_end(p, ret, reterr);
	if (p && p->is_over && p->options.forget) {
		unlink_process(all, p);
		process_free(p);
	} else if (p && p->is_over) {
		mark_waited(all, p);
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

int cordon_process_kill(struct cordon_session *s, uint64_t process, struct cordon_error **reterr)
{
	struct processes *all = processes_of(session_root(s));

	if (!all)
		return err_errno(reterr, ENOMEM, "end a process");
	pthread_mutex_lock(&all->lock);
	struct process *p = find(all, process);
	if (p && !p->is_over)
		p->is_killed = true;
	if (p && p->context)
		session_doom(p->context);
	bool was_there = process > 0 && process <= all->last_id; /* it may be forgotten */
	pthread_mutex_unlock(&all->lock);
	return was_there ? 0 : not_found(process, reterr);
}

int cordon_process_write(struct cordon_session *s, uint64_t process, const void *bytes, size_t len,
			 size_t *ret_len, struct cordon_error **reterr)
{
	struct process *p = lock_process(s, process, reterr);
	ssize_t n = 0;
	int r = 0;

	if (!p)
		return -CORDON_NOT_FOUND;
	struct processes *all = p->of;
	if (p->stdin_write < 0)
		r = err_set(reterr, CORDON_STATE, "the stdin of process %llu is closed",
			    (unsigned long long)process);
	else if (len == 0 && !p->options.pty)
		close_fdp(&p->stdin_write);
	else if ((n = write(p->stdin_write, len ? bytes : "\4", len ? len : 1)) < 0 &&
		 errno != EAGAIN)
		r = err_errno(reterr, errno, "write to process %llu", (unsigned long long)process);
	pthread_mutex_unlock(&all->lock);
	if (r == 0)
		*ret_len = n > 0 ? (size_t)n : 0;
	return r;
}

int cordon_process_resize(struct cordon_session *s, uint64_t process, unsigned rows,
			  unsigned columns, struct cordon_error **reterr)
{
	int r = 0;

	if (rows == 0 || rows > UINT16_MAX || columns == 0 || columns > UINT16_MAX)
		return err_set(reterr, CORDON_INVALID, "a terminal has 1 to %d rows and columns",
			       UINT16_MAX);
	struct process *p = lock_process(s, process, reterr);
	if (!p)
		return -CORDON_NOT_FOUND;
	struct processes *all = p->of;
	struct cordon_session *c = p->context;
	if (!p->options.pty) {
		r = err_set(reterr, CORDON_STATE, "process %llu has no terminal",
			    (unsigned long long)process);
	} else if (c) {
		pthread_mutex_lock(&c->lock);
		c->terminal = (struct engine_terminal){ .rows = (uint16_t)rows,
							.columns = (uint16_t)columns };
		if (c->engine)
			(void)engine_resize(c->engine, &c->terminal);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

int cordon_process_signal(struct cordon_session *s, uint64_t process, int signal_number,
			  struct cordon_error **reterr)
{
	int r = 0;

	if (signal_number < 1 || signal_number > SIGRTMAX)
		return err_set(reterr, CORDON_INVALID, "there is no signal %d", signal_number);
	struct process *p = lock_process(s, process, reterr);
	if (!p)
		return -CORDON_NOT_FOUND;
	struct processes *all = p->of;
	struct cordon_session *c = p->context;
	if (c) {
		pthread_mutex_lock(&c->lock);
		if (c->engine)
			engine_signal(c->engine, signal_number);
		else
			r = err_set(reterr, CORDON_STATE, "process %llu has not begun yet",
				    (unsigned long long)process);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

int cordon_process_output(struct cordon_session *s, uint64_t process, int stream, uint64_t offset,
			  char **ret, size_t *ret_len, uint64_t *ret_offset,
			  struct cordon_error **reterr)
{
	struct process *p = lock_process(s, process, reterr);

	if (!p)
		return -CORDON_NOT_FOUND;
	struct processes *all = p->of;
	const struct tail *t = &p->tails[stream == 2];
	uint64_t end = t->dropped + t->bytes.len;
	uint64_t from = offset < t->dropped ? t->dropped : offset > end ? end : offset;
	size_t len = (size_t)(end - from);
	char *copy = mem_alloc(len + 1); /* NUL ends it, and may be in it */
	if (copy && len > 0)
		memcpy(copy, buf_text(&t->bytes) + (from - t->dropped), len);

	pthread_mutex_unlock(&all->lock);
	if (!copy)
		return err_errno(reterr, ENOMEM, "read the output of a process");
	*ret = copy;
	*ret_len = len;
	*ret_offset = from;
	return 0;
}

static json_t *describe(const struct process *p)
{
	size_t len = strlen(p->command);
	json_t *j = json_object();

	json_object_set_new(j, "process", json_integer((json_int_t)p->id));
	json_object_set_new(
		j, "command",
		json_string_lossy(p->command, len < COMMAND_CHARS ? len : COMMAND_CHARS));
	json_object_set_new(j, "state", json_string(p->is_over ? "ended" : "running"));
	json_object_set_new(j, "exit_code",
			    p->result ? json_integer(p->result->exit_code) : json_null());
	return j;
}

uint64_t session_process_running(struct cordon_session *root)
{
	struct processes *all = processes_of(root);
	uint64_t id = 0;

	if (!all)
		return 0;
	pthread_mutex_lock(&all->lock);
	for (const struct process *p = all->first; p; p = p->next)
		if (!p->is_over && !p->options.forget)
			id = p->id;
	pthread_mutex_unlock(&all->lock);
	return id;
}

pid_t session_process_pid(struct cordon_session *s, uint64_t process)
{
	struct process *p = lock_process(s, process, NULL);
	pid_t pid = p && p->context ? 0 : -1;

	if (pid == 0) {
		pthread_mutex_lock(&p->context->lock);
		if (p->context->engine)
			pid = box_inner_pid(p->context->engine->box);
		pthread_mutex_unlock(&p->context->lock);
	}
	if (p)
		pthread_mutex_unlock(&p->of->lock);
	return pid;
}

struct cordon_result *session_process_result(struct cordon_session *s, uint64_t process)
{
	struct process *p = lock_process(s, process, NULL);
	struct cordon_result *r = p && p->result ? result_copy(p->result) : NULL;

	if (p)
		pthread_mutex_unlock(&p->of->lock);
	return r;
}

json_t *session_process_json(struct cordon_session *root)
{
	struct processes *all = processes_of(root);
	json_t *a = json_array();

	if (!all)
		return a;
	pthread_mutex_lock(&all->lock);
	for (const struct process *p = all->first; p; p = p->next)
		if (!p->is_waited)
			json_array_insert_new(a, 0, describe(p));
	pthread_mutex_unlock(&all->lock);
	return a;
}

char *cordon_process_list(struct cordon_session *s)
{
	cleanup_json json_t *a = session_process_json(session_root(s));

	return json_text(a, NULL);
}

void session_process_end_all(struct cordon_session *root)
{
	struct processes *all = root->processes;

	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	while (all->threads > 0)
		pthread_cond_wait(&all->changed, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

struct processes *session_process_free_all(struct processes *all)
{
	if (!all)
		return NULL;
	while (all->first) {
		struct process *p = all->first;

		all->first = p->next;
		process_free(p);
	}
	pthread_cond_destroy(&all->changed);
	pthread_mutex_destroy(&all->lock);
	free(all);
	return NULL;
}

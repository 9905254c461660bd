/* serve/rpc/prove_methods.c - see prove_methods.h. */
#include "serve/rpc/prove_methods.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/rpc/target.h"

struct proof {
	pid_t pid; /* 0: it has ended */
	const json_t *request;
	bool is_cancelled;
};

bool proof_cancel(struct rpc *c, const json_t *request)
{
	pthread_mutex_lock(&c->lock);
	struct proof *p = c->proof;
	bool is_meant = p && (!request || (p->request && json_equal(p->request, request)));
	if (is_meant) {
		p->is_cancelled = true;
		if (p->pid > 0)
			(void)kill(p->pid, SIGKILL);
	}
	pthread_mutex_unlock(&c->lock);
	return is_meant;
}

static int add_arg(struct strlist *args, const char *name, const char *value)
{
	cleanup_free char *arg =
		value ? str_printf("--%s=%s", name, value) : str_printf("--%s", name);

	return arg ? strlist_add(args, arg) : -CORDON_NOMEM;
}

static int read_args(const struct request *q, struct strlist *args, struct cordon_error **reterr)
{
	static const char *const texts[][2] = { { "attack", "attack" },
						{ "guest", "guest" },
						{ "allow_host", "allow-host" } };
	static const char *const flags[] = { "control", "quick" };
	int r = strlist_add(args, "cordon");

	if (r == 0)
		r = strlist_add(args, "doctor");
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = add_arg(args, ((const char *const[]){ "prove", "json", "progress" })[i], NULL);
	if (r < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && r == 0; i++) {
		const char *value = NULL;
		r = target_string(q, texts[i][0], &value, reterr);
		if (r == 0 && value && add_arg(args, texts[i][1], value) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags) && r == 0; i++) {
		bool is_set = false;
		r = target_bool(q, flags[i], &is_set, reterr);
		if (r == 0 && is_set && add_arg(args, flags[i], NULL) < 0)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return r;
}

/* Starts this same program with its stdout in a pipe and no other descriptor of ours. */
static int start(const char *program, char *const *args, pid_t *ret_pid, int *ret_fd,
		 struct cordon_error **reterr)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t broken_pipe;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(reterr, errno, "make a pipe");
	cleanup_close int in = fds[0];
	cleanup_close int out = fds[1];
	/* If we die, it ends when it next writes: it must not inherit that we ignore SIGPIPE. */
	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	(void)posix_spawnattr_init(&attr); /* this and the next two calls cannot fail here */
	(void)posix_spawnattr_setsigdefault(&attr, &broken_pipe);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	int e = posix_spawn_file_actions_init(&actions);
	if (e == 0) {
		e = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
		if (e == 0)
			e = posix_spawn_file_actions_adddup2(&actions, out, 1);
		if (e == 0)
			e = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
		if (e == 0)
			e = posix_spawn(ret_pid, program, &actions, &attr, args, environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)posix_spawnattr_destroy(&attr);
	if (e != 0)
		return err_errno(reterr, e, "start the proof");
	*ret_fd = TAKE_FD(in);
	return 0;
}

/* Reports one finished attack: {"attack", "outcome"}. */
static void tell(struct request *q, json_t *step)
{
	size_t len = 0;

	if (q->id && json_object_set(step, "request_id", q->id) != 0)
		return;
	cleanup_free char *text = json_text(step, &len);
	if (text)
		(void)rpc_notify(q->rpc, "progress", text, len);
}

/* Reads lines of JSON: one per step, and the report at the end. */
static int follow(struct request *q, int fd, struct buf *ret, struct cordon_error **reterr)
{
	struct linein in;
	char *line;
	size_t len;
	int r = 0;

	linein_init(&in, fd, -1, RPC_LINE_MAX);
	while (r == 0 && linein_next(&in, &line, &len) == LINE_OK) {
		cleanup_json json_t *step = NULL;
		r = json_parse(line, len, 0, &step, reterr);
		if (r == 0 && json_object_get(step, "attacks"))
			r = buf_add(ret, line, len);
		else if (r == 0)
			tell(q, step);
	}
	linein_done(&in);
	return r;
}

static int finish(struct rpc *c, struct proof *p, pid_t pid, int r, const struct buf *report,
		  struct cordon_error **reterr)
{
	siginfo_t info = { 0 };

	if (r < 0) /* it may still be writing */
		(void)kill(pid, SIGKILL);
	/* Once the process is reaped, its pid may be reused. So wait without reaping, then forget
	 * the pid. */
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	pthread_mutex_lock(&c->lock);
	c->proof = NULL;
	bool is_cancelled = p->is_cancelled;
	pthread_mutex_unlock(&c->lock);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	if (is_cancelled)
		return err_set(reterr, CORDON_CANCELLED, "the proof was cancelled");
	if (r == 0 && report->len == 0)
		return err_set(reterr, CORDON_INVALID,
			       "the proof ended with status %d and no report; the log says why",
			       info.si_status);
	return r;
}

static int prove(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_strlist struct strlist args = { 0 };
	struct proof proof = { .request = q->id };
	struct rpc *c = q->rpc;
	cleanup_close int fd = -1;
	int r = read_args(q, &args, reterr);

	if (r == 0 && !c->program)
		r = err_set(reterr, CORDON_UNSUPPORTED, "this server cannot run the attacks");
	if (r < 0)
		return r;
	pthread_mutex_lock(&c->lock);
	if (c->proof || c->is_over)
		r = err_set(reterr, CORDON_STATE, "a proof is already running");
	if (r == 0)
		r = start(c->program, args.items, &proof.pid, &fd, reterr);
	if (r == 0)
		c->proof = &proof;
	pthread_mutex_unlock(&c->lock);
	if (r < 0)
		return r;
	r = follow(q, fd, ret, reterr);
	return finish(c, &proof, proof.pid, r, ret, reterr);
}

const struct rpc_method rpc_proof_methods[] = {
	{ "doctor.prove", prove, RPC_SLOW, "attack guest allow_host control quick" },
	{ 0 },
};

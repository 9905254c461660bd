/* tools/command.c - see command.h. */
#include "tools/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"

enum { STDERR_MAX_BYTES = 65536, CHUNK_BYTES = 65536, DRAIN_CHUNKS = 64 };

extern char **environ;

struct command_run {
	const struct command *command;
	pid_t pid; /* also its process group; 0: reaped */
	int pidfd, out_fd, err_fd;
	int watch_fd; /* owned by the caller */
	struct buf out, err;
	bool is_too_large;
	int status; /* si_code and si_status of waitid */
	int code;
};

struct command *command_free(struct command *c)
{
	if (!c)
		return NULL;
	strlist_done(&c->argv);
	strlist_done(&c->env);
	strlist_done(&c->env_pass);
	free(c->directory);
	free(c);
	return NULL;
}

/* Closing is not enough to leave the caller's set: a child that another thread is just starting
 * may hold a copy for a moment, and the set would keep reporting it. */
static void close_watched(const struct command_run *run, int *fd)
{
	if (*fd >= 0)
		os_watch_remove(run->watch_fd, *fd);
	close_fdp(fd);
}

/* Kills the whole group. The leader is still a zombie then, so the group's number cannot have been
 * reused. */
static void kill_group(const struct command_run *run)
{
	if (run->pid > 0)
		(void)kill(-run->pid, SIGKILL);
}

static void reap(struct command_run *run)
{
	siginfo_t info = { 0 };

	if (run->pid <= 0)
		return;
	while (waitid(P_PID, (id_t)run->pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	run->pid = 0;
	run->code = info.si_code;
	run->status = info.si_status;
}

struct command_run *command_run_free(struct command_run *run)
{
	if (!run)
		return NULL;
	kill_group(run);
	reap(run);
	close_watched(run, &run->pidfd);
	close_watched(run, &run->out_fd);
	close_watched(run, &run->err_fd);
	buf_done(&run->out);
	buf_done(&run->err);
	free(run);
	return NULL;
}

static int add_env(struct strlist *list, const char *name, const char *value)
{
	cleanup_free char *entry = str_printf("%s=%s", name, value);

	return entry ? strlist_add(list, entry) : -CORDON_NOMEM;
}

static int build_env(const struct command *c, const struct command_start *start,
		     struct strlist *ret)
{
	static const char *const usual[] = { "PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR" };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(usual) / sizeof(*usual); i++) {
		const char *value = getenv(usual[i]);
		if (!value && i == 0)
			value = "/usr/local/bin:/usr/bin:/bin";
		if (value)
			r = add_env(ret, usual[i], value);
	}
	for (size_t i = 0; r >= 0 && i < c->env_pass.count; i++) {
		const char *value = getenv(c->env_pass.items[i]);
		if (value)
			r = add_env(ret, c->env_pass.items[i], value);
	}
	for (size_t i = 0; r >= 0 && i < c->env.count; i++)
		r = strlist_add(ret, c->env.items[i]);
	if (r >= 0)
		r = add_env(ret, "CORDON_SESSION", start->session);
	return r < 0 ? r : add_env(ret, "CORDON_TOOL", start->tool);
}

/* The call's arguments follow the command's own. Only strings, numbers and booleans can become
 * arguments. */
static int build_argv(const struct command *c, const struct command_start *start,
		      struct strlist *ret, struct cordon_error **reterr)
{
	json_t *arg;
	size_t i;

	if (strlist_copy(ret, &c->argv) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!c->is_plain)
		return 0;
	json_array_foreach(json_object_get(start->args, "args"), i, arg)
	{
		cleanup_free char *text = json_is_string(arg) ? str_dup(json_string_value(arg))
							      : json_text(arg, NULL);
		if (json_is_string(arg) &&
		    strlen(json_string_value(arg)) != json_string_length(arg))
			return err_set(reterr, CORDON_INVALID,
				       "Tool '%s': an argument has a NUL character", start->tool);
		if (!text || strlist_add(ret, text) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

/* stdin is a sealed memory file, so nothing has to be written while the command runs. */
static int open_stdin(const struct command *c, const struct command_start *start, int *ret,
		      struct cordon_error **reterr)
{
	const json_t *text = json_object_get(start->args, "stdin");
	const json_t *coded = json_object_get(text, "v"); /* {"$": "bytes", "v": base64} */
	cleanup_free void *bytes = NULL;
	size_t len = 0;

	if (c->is_plain && json_is_string(coded)) {
		int r = base64_decode(json_string_value(coded), json_string_length(coded), &bytes,
				      &len, reterr);
		return r < 0 ? r : file_from_bytes("stdin", bytes, len, ret, reterr);
	}
	if (c->is_plain)
		return file_from_bytes("stdin", json_is_string(text) ? json_string_value(text) : "",
				       json_string_length(text), ret, reterr);
	return file_from_bytes("arguments", start->args_text, start->args_len, ret, reterr);
}

/* The child gets default signal handlers, a process group of its own and only these descriptors. */
static int spawn(const struct command *c, const struct strlist *argv, const struct strlist *env,
		 const int fds[3], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	int e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							POSIX_SPAWN_SETSIGDEF);
	e = e ? e : posix_spawnattr_setpgroup(&attr, 0);
	e = e ? e : posix_spawnattr_setsigmask(&attr, &none);
	e = e ? e : posix_spawnattr_setsigdefault(&attr, &all);
	for (int i = 0; e == 0 && i < 3; i++)
		e = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	e = e ? e : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (e == 0 && c->directory)
		e = posix_spawn_file_actions_addchdir_np(&actions, c->directory);
	if (e == 0)
		e = posix_spawnp(ret_pid, argv->items[0], &actions, &attr, argv->items, env->items);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return e;
}

/* Makes a pipe: the read end, non-blocking, is for the host, the write end for the child. Numbers
 * below 3 are avoided, because spawn would overwrite them. */
static int make_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		int high = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		int e = errno;
		close(fds[i]);
		fds[i] = high;
		if (high < 0) {
			if (i == 0)
				close(fds[1]);
			else
				close(fds[0]);
			return -e;
		}
	}
	*ret_read = fds[0];
	*ret_write = fds[1];
	return file_set_nonblock(fds[0], true);
}

static int watch(const struct command_run *run, const struct command_start *start)
{
	const int fds[] = { run->pidfd, run->out_fd, run->err_fd };

	int r = 0;

	for (size_t i = 0; r == 0 && i < 3; i++)
		r = os_watch_add(start->watch_fd, fds[i], start->watch_tag);
	return r;
}

static int launch(struct command_run *run, const struct command_start *start,
		  struct cordon_error **reterr)
{
	cleanup_strlist struct strlist argv = { 0 }, env = { 0 };
	cleanup_close int in = -1, high_in = -1, out = -1, err = -1;
	int r = build_argv(run->command, start, &argv, reterr);

	if (r < 0)
		return r;
	if (build_env(run->command, start, &env) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = open_stdin(run->command, start, &in, reterr);
	if (r < 0)
		return r;
	high_in = fcntl(in, F_DUPFD_CLOEXEC, 3);
	r = high_in < 0 ? -errno : make_pipe(&run->out_fd, &out);
	r = r < 0 ? r : make_pipe(&run->err_fd, &err);
	if (r < 0)
		return err_errno(reterr, -r, "make the pipes of tool '%s'", start->tool);
	r = spawn(run->command, &argv, &env, (const int[]){ high_in, out, err }, &run->pid);
	if (r != 0) {
		run->pid = 0;
		return err_errno(reterr, r, "start the command of tool '%s'", start->tool);
	}
	run->pidfd = os_process_open(run->pid);
	r = run->pidfd < 0 ? run->pidfd : watch(run, start);
	return r < 0 ? err_errno(reterr, -r, "watch the command of tool '%s'", start->tool) : 0;
}

int command_start(const struct command *c, const struct command_start *start,
		  struct command_run **ret, struct cordon_error **reterr)
{
	struct command_run *run = mem_alloc(sizeof(*run));

	if (!run)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	run->command = c;
	run->watch_fd = start->watch_fd;
	run->pidfd = run->out_fd = run->err_fd = -1;
	buf_init(&run->out, start->result_bytes);
	buf_init(&run->err, STDERR_MAX_BYTES);
	int r = launch(run, start, reterr);
	if (r < 0) {
		command_run_free(run);
		return r;
	}
	*ret = run;
	return 0;
}

/* Reads a bounded number of chunks. What does not fit is dropped, so that the command never blocks.
 * False: something was dropped. */
static bool drain(const struct command_run *run, int *fd, struct buf *b)
{
	char chunk[CHUNK_BYTES];
	bool fits = true;

	for (int i = 0; *fd >= 0 && i < DRAIN_CHUNKS; i++) {
		ssize_t n = read(*fd, chunk, sizeof(chunk));
		if (n > 0)
			fits = buf_add(b, chunk, (size_t)n) >= 0 && fits;
		else if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0 && errno == EAGAIN)
			break;
		else
			close_watched(run, fd);
	}
	return fits;
}

int command_step(struct command_run *run)
{
	struct pollfd p = { .fd = run->pidfd, .events = POLLIN };

	/* Check for the end before reading the pipes: then everything written before the end is
	 * read. */
	bool has_ended = poll(&p, 1, 0) > 0;
	if (!drain(run, &run->out_fd, &run->out)) {
		run->is_too_large = true;
		has_ended = true;
	}
	(void)drain(run, &run->err_fd, &run->err);
	if (!has_ended)
		return 0;
	kill_group(run); /* no process of it may outlive the call */
	reap(run);
	close_watched(run, &run->pidfd);
	close_watched(run, &run->out_fd);
	close_watched(run, &run->err_fd);
	return 1;
}

/* Valid text becomes a string, anything else bytes, so output arrives unchanged. */
static json_t *output_json(const struct buf *b)
{
	if (str_is_utf8(b->data, b->len) && !memchr(buf_text(b), '\0', b->len))
		return json_string_lossy(buf_text(b), b->len);
	cleanup_free char *coded = base64_encode(b->data, b->len, NULL);
	return coded ? json_pack("{s:s,s:s}", "$", "bytes", "v", coded) : NULL;
}

size_t command_held(const struct command_run *run)
{
	return run->out.len + run->err.len;
}

static int answer_plain(struct command_run *run, char **ret_json, struct cordon_error **reterr)
{
	int code = run->code == CLD_EXITED ? run->status : 128 + run->status;
	json_t *out = output_json(&run->out), *err = output_json(&run->err);
	cleanup_json json_t *j =
		json_pack("{s:o,s:o,s:i}", "stdout", out, "stderr", err, "exit_code", code);
	char *text = j ? json_text(j, NULL) : NULL;

	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret_json = text;
	return 0;
}

static void trim(struct buf *b)
{
	while (b->len > 0 && strchr(" \t\r\n", b->data[b->len - 1]))
		b->data[--b->len] = '\0';
}

int command_answer(struct command_run *run, char **ret_json, struct cordon_error **reterr)
{
	if (run->is_too_large)
		return err_set(reterr, CORDON_LIMIT, "result too large (more than %zu bytes)",
			       run->out.max);
	if (run->command->is_plain)
		return answer_plain(run, ret_json, reterr);
	trim(&run->out);
	trim(&run->err);
	if (run->code != CLD_EXITED)
		return err_set(reterr, CORDON_OS, "the command was ended by signal %d",
			       run->status);
	if (run->status != 0 && run->err.len > 0)
		return err_set(reterr, CORDON_OS, "%s", buf_text(&run->err));
	if (run->status != 0)
		return err_set(reterr, CORDON_OS, "the command failed with status %d", run->status);
	char *text = run->out.len > 0 ? buf_take(&run->out) : str_dup("null");
	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret_json = text;
	return 0;
}

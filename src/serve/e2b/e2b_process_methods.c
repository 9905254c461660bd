/* serve/e2b/e2b_process_methods.c - envd's process.Process: start, follow, feed, signal. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "serve/e2b/connect_rpc.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/e2b_process.h"
#include "serve/e2b/e2b_state.h"

/* COMMAND_MAX: as the library takes one. FEED_MS: how long input waits for a program that does not
 * read. */
enum { COMMAND_MAX = 256 << 10, FEED_MS = 10000, NAP_NS = 2000000 };

/* ---- what a request names */

/* The sandbox and the message; false: the answer is given. */
static bool begin(struct httpd_exchange *x, void *arg, struct e2b_sandbox **ret,
		  json_t **ret_message)
{
	cleanup_error struct cordon_error *e = NULL;

	*ret = e2b_target(arg, x);
	if (!*ret)
		return false;
	if (connect_rpc_read(x, ret_message, &e) == 0)
		return true;
	connect_rpc_fail(x, e);
	return false;
}

/* {"process": {"pid": 1}} or {"process": {"tag": "a"}}; with a reference. */
static struct e2b_process *select_process(struct e2b_sandbox *b, const json_t *message,
					  struct cordon_error **reterr)
{
	const json_t *s = json_object_get(message, "process");
	const json_t *pid = json_object_get(s, "pid"), *tag = json_object_get(s, "tag");
	json_int_t n = json_integer_value(pid);
	struct e2b_process *p = NULL;

	if (json_is_string(tag))
		p = e2b_process_get(b, 0, json_string_value(tag));
	else if (json_is_integer(pid) && n > 0 && n <= UINT32_MAX)
		p = e2b_process_get(b, (uint32_t)n, NULL);
	else {
		(void)err_set(reterr, CORDON_INVALID, "process must have a pid or a tag");
		return NULL;
	}
	if (!p && json_is_string(tag))
		(void)err_set(reterr, CORDON_NOT_FOUND, "there is no process with tag '%.64s'",
			      json_string_value(tag));
	else if (!p)
		(void)err_set(reterr, CORDON_NOT_FOUND, "there is no process with pid %lld",
			      (long long)n);
	return p;
}

/* ---- start */

static int quote(struct buf *b, const char *word)
{
	int r = buf_add_char(b, '\'');

	for (; *word && r == 0; word++)
		r = *word == '\'' ? buf_add_str(b, "'\\''") : buf_add_char(b, *word);
	return r == 0 ? buf_add_char(b, '\'') : r;
}

/* `bash -l -c TEXT`, as clients start everything, is the text; anything else is quoted word by
 * word. */
static int command_line(const char *cmd, const json_t *args, struct buf *ret,
			struct cordon_error **reterr)
{
	size_t n = json_array_size(args), i;
	const char *first = json_string_value(json_array_get(args, 0));
	const char *last = json_string_value(json_array_get(args, n - 1));
	const json_t *word;
	int r = 0;

	json_array_foreach((json_t *)(uintptr_t)args, i, word)
	{
		if (!json_is_string(word))
			return err_set(reterr, CORDON_INVALID, "process.args must be texts");
	}
	bool is_bash = str_eq(cmd, "/bin/bash") || str_eq(cmd, "bash");
	if (is_bash && n == 3 && str_eq(first, "-l") &&
	    str_eq(json_string_value(json_array_get(args, 1)), "-c")) {
		r = buf_add_str(ret, last);
	} else {
		r = buf_add_str(ret, "exec ");
		if (r == 0)
			r = quote(ret, cmd);
		json_array_foreach((json_t *)(uintptr_t)args, i, word)
		{
			if (r == 0)
				r = buf_add_char(ret, ' ');
			if (r == 0)
				r = quote(ret, json_string_value(word));
		}
	}
	return r < 0 ? err_set(reterr, CORDON_LIMIT, "the command is too long") : 0;
}

static int read_envs(const json_t *envs, struct strlist *ret, struct cordon_error **reterr)
{
	const char *name;
	json_t *value;

	if (envs && !json_is_null(envs) && !json_is_object(envs))
		return err_set(reterr, CORDON_INVALID, "process.envs must be an object");
	json_object_foreach((json_t *)(uintptr_t)envs, name, value)
	{
		bool good = json_is_string(value) && *name && !strchr(name, '=');
		cleanup_free char *pair =
			good ? str_printf("%s=%s", name, json_string_value(value)) : NULL;

		if (!good)
			return err_set(reterr, CORDON_INVALID,
				       "process.envs: '%.64s' must be a text", name);
		if (!pair || strlist_add(ret, pair) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	return 0;
}

static int read_size(const json_t *pty, uint16_t *ret_rows, uint16_t *ret_columns,
		     struct cordon_error **reterr)
{
	const json_t *size = json_object_get(pty, "size");
	json_int_t rows = json_integer_value(json_object_get(size, "rows"));
	json_int_t columns = json_integer_value(json_object_get(size, "cols"));

	if (rows < 0 || rows > UINT16_MAX || columns < 0 || columns > UINT16_MAX)
		return err_set(reterr, CORDON_INVALID, "a terminal has at most %d rows and columns",
			       UINT16_MAX);
	*ret_rows = (uint16_t)rows;
	*ret_columns = (uint16_t)columns;
	return 0;
}

/* Whether the directory is there, so that the client hears of it before anything starts. */
static int check_directory(struct e2b_sandbox *b, const char *path, struct cordon_error **reterr)
{
	static const char *const ours[] = { "/home/user", "/tmp", "/workspace" };
	struct cordon_file_info info;
	bool is_ours = path[0] != '/';

	for (size_t i = 0; i < 3; i++)
		is_ours = is_ours || str_starts(path, ours[i]);
	if (!is_ours ||
	    (cordon_file_stat(b->session, path, &info, NULL) == 0 && info.type != CORDON_FILE))
		return 0;
	return err_set(reterr, CORDON_INVALID, "cwd '%.200s' does not exist", path);
}

/* As it is listed. */
static json_t *config_of(const char *cmd, const json_t *process, const char *cwd)
{
	const json_t *args = json_object_get(process, "args");
	const json_t *envs = json_object_get(process, "envs");
	json_t *j = json_object();

	json_object_set_new(j, "cmd", json_string(cmd));
	json_object_set_new(j, "args", args ? json_deep_copy(args) : json_array());
	json_object_set_new(j, "envs",
			    json_object_size(envs) ? json_deep_copy(envs) : json_object());
	if (cwd)
		json_object_set_new(j, "cwd", json_string(cwd));
	return j;
}

static int start(struct e2b_sandbox *b, struct httpd_exchange *x, const json_t *m, struct buf *line,
		 struct strlist *env, struct cordon_error **reterr)
{
	const json_t *process = json_object_get(m, "process"), *pty = json_object_get(m, "pty");
	const json_t *args = json_object_get(process, "args");
	const char *cmd = json_string_value(json_object_get(process, "cmd"));
	const char *cwd = json_string_value(json_object_get(process, "cwd"));
	cleanup_free char *directory = cwd && *cwd ? e2b_entry_path(cwd) : NULL;
	struct e2b_process_options o = { .directory = directory,
					 .tag = json_string_value(json_object_get(m, "tag")),
					 .has_terminal = json_is_object(pty),
					 .has_stdin = !json_is_false(json_object_get(m, "stdin")),
					 .timeout_ms = connect_rpc_timeout_ms(x) };

	if (!cmd || !*cmd || (args && !json_is_array(args)))
		return err_set(reterr, CORDON_INVALID, "process must have cmd and args");
	int r = command_line(cmd, args, line, reterr);
	if (r == 0)
		r = read_envs(json_object_get(process, "envs"), env, reterr);
	if (r == 0 && o.has_terminal)
		r = read_size(pty, &o.rows, &o.columns, reterr);
	if (r == 0 && directory)
		r = check_directory(b, directory, reterr);
	if (r < 0)
		return r;
	cleanup_json json_t *config = config_of(cmd, process, directory);
	o.config = config;
	o.command = buf_text(line);
	o.env = (const char *const *)env->items;
	return e2b_process_run(b, &o, x, reterr);
}

void e2b_process_start(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = NULL;
	cleanup_json json_t *m = NULL;
	cleanup_buf struct buf line = { 0 };
	cleanup_strlist struct strlist env = { 0 };

	buf_init(&line, COMMAND_MAX);
	if (!begin(x, arg, &b, &m))
		return;
	if (start(b, x, m, &line, &env, &e) < 0)
		connect_rpc_fail(x, e);
}

void e2b_process_connect(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = NULL;
	cleanup_json json_t *m = NULL;

	if (!begin(x, arg, &b, &m))
		return;
	struct e2b_process *p = select_process(b, m, &e);
	if (!p || e2b_process_follow(p, x, &e) < 0)
		connect_rpc_fail(x, e);
	if (p)
		e2b_process_put(p);
}

/* ---- list */

void e2b_process_list(struct httpd_exchange *x, void *arg)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = NULL;
	cleanup_json json_t *m = NULL;
	json_t *all, *j;

	if (!begin(x, arg, &b, &m))
		return;
	all = json_array();
	pthread_mutex_lock(&b->lock);
	for (const struct e2b_process *p = b->processes; p; p = p->next) {
		j = json_object();
		json_object_set_new(j, "config", json_deep_copy(p->config));
		json_object_set_new(j, "pid", json_integer((json_int_t)p->pid));
		if (p->tag)
			json_object_set_new(j, "tag", json_string(p->tag));
		json_array_insert_new(all, 0, j);
	}
	pthread_mutex_unlock(&b->lock);
	j = json_object();
	json_object_set_new(j, "processes", all);
	connect_rpc_answer(x, j);
}

/* ---- input */

/* Waits while the program does not read, but not for long. */
static int feed(struct e2b_process *p, const char *bytes, size_t len, struct cordon_error **reterr)
{
	deadline_ns until = deadline_after_ms(FEED_MS);

	while (len > 0) {
		size_t n = 0;
		int r = cordon_process_write(p->sandbox->session, p->number, bytes, len, &n,
					     reterr);

		if (r < 0)
			return r;
		bytes += n;
		len -= n;
		if (n > 0)
			continue;
		if (deadline_is_over(until) || e2b_sandbox_state(p->sandbox) != E2B_RUNNING)
			return err_set(reterr, CORDON_LIMIT, "the process does not read its input");
		(void)nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
	return 0;
}

/* {"stdin": base64} or {"pty": base64} */
static int feed_input(struct e2b_process *p, const json_t *input, struct cordon_error **reterr)
{
	const json_t *text = json_object_get(input, p->has_terminal ? "pty" : "stdin");
	cleanup_free void *bytes = NULL;
	size_t len = 0;

	if (!json_is_string(text))
		return err_set(reterr, CORDON_INVALID, "input must have %s, in base64",
			       p->has_terminal ? "pty" : "stdin");
	int r = base64_decode(json_string_value(text), json_string_length(text), &bytes, &len,
			      reterr);
	return r < 0 ? r : feed(p, bytes, len, reterr);
}

/* Runs fn for the process that the request names, and answers with an empty message. */
static void with_process(struct httpd_exchange *x, void *arg,
			 int (*fn)(struct e2b_process *p, const json_t *m,
				   struct cordon_error **reterr))
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = NULL;
	cleanup_json json_t *m = NULL;

	if (!begin(x, arg, &b, &m))
		return;
	struct e2b_process *p = select_process(b, m, &e);
	int r = p ? fn(p, m, &e) : -1;
	if (r < 0)
		connect_rpc_fail(x, e);
	else
		connect_rpc_answer(x, json_object());
	if (p)
		e2b_process_put(p);
}

static int input(struct e2b_process *p, const json_t *m, struct cordon_error **reterr)
{
	return feed_input(p, json_object_get(m, "input"), reterr);
}

void e2b_process_input(struct httpd_exchange *x, void *arg)
{
	with_process(x, arg, input);
}

/* A body of messages: first the process, then its input. */
void e2b_process_stream_input(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_target(arg, x);
	cleanup_json json_t *all = NULL;
	struct e2b_process *p = NULL;
	json_t *m;
	size_t i;

	if (!b)
		return;
	int r = connect_rpc_read_all(x, &all, &e);
	json_array_foreach(all, i, m)
	{
		const json_t *first = json_object_get(m, "start");
		const json_t *data = json_object_get(m, "data");

		if (r == 0 && first && !p && !(p = select_process(b, first, &e)))
			r = -CORDON_NOT_FOUND;
		if (r == 0 && data && !p)
			r = err_set(&e, CORDON_INVALID, "the first message must be start");
		if (r == 0 && data && p)
			r = feed_input(p, json_object_get(data, "input"), &e);
	}
	if (p)
		e2b_process_put(p);
	if (r < 0) {
		connect_rpc_fail(x, e);
		return;
	}
	connect_rpc_begin(x);
	(void)connect_rpc_send(x, json_object());
	connect_rpc_end(x, NULL, NULL);
}

static int close_stdin(struct e2b_process *p, const json_t *m, struct cordon_error **reterr)
{
	size_t n = 0;

	(void)m;
	return cordon_process_write(p->sandbox->session, p->number, NULL, 0, &n, reterr);
}

void e2b_process_close_stdin(struct httpd_exchange *x, void *arg)
{
	with_process(x, arg, close_stdin);
}

/* ---- signals and size */

static int send_signal(struct e2b_process *p, const json_t *m, struct cordon_error **reterr)
{
	const char *name = json_string_value(json_object_get(m, "signal"));

	if (str_eq(name, "SIGNAL_SIGKILL"))
		return e2b_process_kill(p, reterr);
	if (str_eq(name, "SIGNAL_SIGTERM"))
		return cordon_process_signal(p->sandbox->session, p->number, SIGTERM, reterr);
	return err_set(reterr, CORDON_INVALID, "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL");
}

void e2b_process_signal(struct httpd_exchange *x, void *arg)
{
	with_process(x, arg, send_signal);
}

static int update(struct e2b_process *p, const json_t *m, struct cordon_error **reterr)
{
	const json_t *pty = json_object_get(m, "pty");
	uint16_t rows = 0, columns = 0;
	int r = pty ? read_size(pty, &rows, &columns, reterr) : 0;

	if (r < 0 || !pty)
		return r;
	return cordon_process_resize(p->sandbox->session, p->number, rows, columns, reterr);
}

void e2b_process_update(struct httpd_exchange *x, void *arg)
{
	with_process(x, arg, update);
}

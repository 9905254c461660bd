/* session/engine.c - see engine.h. */
#include "session/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "session/network.h"
#include "session/place.h"
#include "session/pulse.h"
#include "session/template.h"
#include "session/timeline.h"

enum { TOKEN_DIGITS = 64 };

static int open_pipe(int *ret_read, int *ret_write, bool host_reads)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return -errno;
	*ret_read = p[0];
	*ret_write = p[1];
	return file_set_nonblock(host_reads ? p[0] : p[1], true);
}

int engine_ends_open(struct engine_ends *ret, bool has_wire, struct cordon_error **reterr)
{
	struct engine_ends e = ENGINE_ENDS_NONE;
	int pair[2], r = open_pipe(&e.in, &e.host_in, false);

	if (r == 0)
		r = open_pipe(&e.host_out, &e.out, true);
	if (r == 0)
		r = open_pipe(&e.host_err, &e.err, true);
	if (r == 0 && has_wire) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
			r = -errno;
		} else {
			e.host_wire = pair[0];
			e.wire = pair[1];
		}
	}
	if (r < 0) {
		engine_ends_done(&e);
		return err_errno(reterr, -r, "open the guest's pipes");
	}
	*ret = e;
	return 0;
}

/* Both directions of a terminal are one descriptor, which is closed twice. */
static int open_terminal(const struct engine_options *o, struct engine_ends *ret,
			 struct cordon_error **reterr)
{
	struct box_terminal t;
	struct winsize size = { .ws_row = o->terminal->rows, .ws_col = o->terminal->columns };
	int r = box_terminal(place_box(o->place), &t, reterr);

	if (r < 0)
		return r;
	ret->terminal = t.guest_fd;
	ret->host_out = t.host_fd;
	ret->host_in = fcntl(t.host_fd, F_DUPFD_CLOEXEC, 3);
	if (ret->host_in < 0 || ioctl(t.guest_fd, TIOCSWINSZ, &size) != 0)
		return err_errno(reterr, errno, "make a terminal");
	return 0;
}

int engine_resize(const struct engine *e, const struct engine_terminal *size)
{
	struct winsize w = { .ws_row = size->rows, .ws_col = size->columns };

	return e->terminal_fd >= 0 && ioctl(e->terminal_fd, TIOCSWINSZ, &w) != 0 ? -errno : 0;
}

void engine_signal(struct engine *e, int signo)
{
	bool is_key = signo == SIGINT || signo == SIGQUIT || signo == SIGTSTP;

	if (!is_key || e->terminal_fd < 0 || ioctl(e->stdout_fd, TIOCSIG, signo) != 0)
		(void)box_signal(e->box, signo);
}

void engine_ends_done(struct engine_ends *e)
{
	close_fdp(&e->terminal);
	close_fdp(&e->wire);
	close_fdp(&e->in);
	close_fdp(&e->out);
	close_fdp(&e->err);
	close_fdp(&e->host_wire);
	close_fdp(&e->host_in);
	close_fdp(&e->host_out);
	close_fdp(&e->host_err);
}

int engine_adopt(struct engine *e, struct engine_ends *ends, const struct policy *p,
		 const char *token, struct cordon_error **reterr)
{
	if (ends->host_wire >= 0) {
		struct wire_options o = { .message_bytes = p->message_bytes,
					  .rpc_bytes = p->rpc_bytes,
					  .token = token };
		int r = wire_new(ends->host_wire, &o, &e->wire, reterr);
		if (r < 0)
			return r;
		ends->host_wire = -1;
	}
	e->stdin_fd = TAKE_FD(ends->host_in);
	e->stdout_fd = TAKE_FD(ends->host_out);
	e->stderr_fd = TAKE_FD(ends->host_err);
	e->terminal_fd = TAKE_FD(ends->terminal);
	return 0;
}

static int send_token(const struct engine_ends *ends, const char *token,
		      struct cordon_error **reterr)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "{\"type\":\"token\",\"token\":\"%s\"}\n", token);

	if (write(ends->host_wire, line, (size_t)len) != len)
		return err_errno(reterr, errno, "give the guest its token");
	return 0;
}

static int add_env(struct launch *l, const json_t *env, struct cordon_error **reterr)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		const char *text = json_string_value(value);

		if (text && launch_env(l, name, text) < 0)
			return err_errno(reterr, ENOMEM, "the environment");
	}
	return 0;
}

/* The size is the terminal's, not that of the host's; and programs need to know what it can do. */
static int add_terminal_env(struct launch *l, struct cordon_error **reterr)
{
	bool has_term = false;

	for (size_t i = 0; i < l->env.count; i++) {
		const char *v = l->env.items[i];

		has_term |= str_starts(v, "TERM=") && !str_eq(v, "TERM=dumb") && v[5];
	}
	launch_unset(l, "LINES");
	launch_unset(l, "COLUMNS");
	return !has_term && launch_env(l, "TERM", "xterm-256color") < 0
		       ? err_errno(reterr, ENOMEM, "the environment")
		       : 0;
}

/* The launch's environment, and its streams. */
static int prepare(const struct engine_options *o, struct launch *l, struct engine_ends *ret,
		   struct cordon_error **reterr)
{
	int r = network_prepare(o->network, l, reterr);

	if (r == 0 && o->terminal)
		r = add_terminal_env(l, reterr);
	if (r == 0)
		r = add_env(l, o->env, reterr);
	if (r < 0)
		return r;
	return o->terminal ? open_terminal(o, ret, reterr)
			   : engine_ends_open(ret, !o->script, reterr);
}

static int start_box(struct engine *e, const struct engine_options *o, const struct launch *l,
		     const struct engine_ends *ends, struct cordon_error **reterr)
{
	struct box_options box = { .policy = o->policy,
				   .launch = l,
				   .stdin_fd = ends->in,
				   .stdout_fd = ends->out,
				   .stderr_fd = ends->err,
				   .wire_fd = ends->wire,
				   .layers_off = o->layers_off };

	if (o->terminal) {
		box.stdin_fd = box.stdout_fd = box.stderr_fd = ends->terminal;
		box.on_terminal = true;
	}
	if (o->place)
		return place_start(o->place, &box, &e->box, reterr);
	int r = box_start(&box, &e->box, reterr);
	network_launched(o->network);
	return r;
}

static int start_cold(struct engine *e, const struct engine_options *o,
		      struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];
	struct engine_ends ends = ENGINE_ENDS_NONE;
	cleanup_launch struct launch launch = { 0 };
	bool reads_token = !o->script && guest_reads_token(o->kind);
	struct guest_options guest = { .kind = o->kind,
				       .mode = !o->script ? GUEST_SESSION
					       : o->place ? GUEST_COMMAND
							  : GUEST_SCRIPT,
				       .policy = o->policy,
				       .token = o->script || reads_token ? NULL : token,
				       .code = o->script,
				       .code_len = o->script_len,
				       .args = o->args,
				       .directory = o->directory,
				       .tools = o->tools };

	random_hex(token, TOKEN_DIGITS);
	int r = guest_launch(&guest, &launch, reterr);
	if (r < 0)
		return r;
	r = prepare(o, &launch, &ends, reterr);
	if (r == 0 && reads_token)
		r = send_token(&ends, token, reterr);
	if (r == 0)
		r = start_box(e, o, &launch, &ends, reterr);
	if (r == 0)
		r = engine_adopt(e, &ends, o->policy, token, reterr);
	engine_ends_done(&ends);
	return r;
}

int engine_start(const struct engine_options *o, struct engine **ret, struct cordon_error **reterr)
{
	cleanup_engine struct engine *e = mem_alloc(sizeof(*e));

	if (!e) {
		template_put(o->template);
		return err_errno(reterr, ENOMEM, "start a guest");
	}
	e->kind = o->kind;
	e->template = o->template;
	e->place = place_ref(o->place);
	e->tasks_max = policy_tasks(o->policy);
	e->timeline = o->timeline;
	e->stdin_fd = e->stdout_fd = e->stderr_fd = e->terminal_fd = -1;
	int r = o->template ? template_fork(o->template, o->network, e, &e->box, reterr)
		: o->place && place_forks(o->place) ? place_fork(o->place, e, reterr)
						    : start_cold(e, o, reterr);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

struct engine *engine_free(struct engine *e)
{
	if (!e)
		return NULL;
	box_free(e->box);
	wire_free(e->wire);
	close_fdp(&e->stdin_fd);
	close_fdp(&e->stdout_fd);
	close_fdp(&e->stderr_fd);
	close_fdp(&e->terminal_fd);
	template_put(e->template);
	place_put(e->place);
	free(e->assurance);
	free(e);
	return NULL;
}

/* The end of the guest's stderr: an interpreter that cannot start says why there. */
static void last_words(struct engine *e, char *ret, size_t size)
{
	ssize_t n = read(e->stderr_fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	for (size_t len = strlen(ret); len > 0 && ret[len - 1] == '\n'; len--)
		ret[len - 1] = '\0';
}

/* The guest ended before its hello: returns an error that says why. */
static int explain_death(struct engine *e, struct cordon_error **reterr)
{
	char words[600];

	(void)box_wait_gone(e->box, deadline_after_ms(2000));
	int r = box_failure(e->box, reterr);
	if (r < 0)
		return r;
	last_words(e, words, sizeof(words));
	int status = box_look(e->box).wait_status;
	if (WIFSIGNALED(status))
		return err_set(reterr, CORDON_OS,
			       "the %s guest was killed by %s while it started%s%s",
			       guest_name(e->kind), strsignal(WTERMSIG(status)),
			       words[0] ? ": " : "", words);
	return err_set(reterr, CORDON_OS, "the %s guest ended with status %d while it started%s%s",
		       guest_name(e->kind), WEXITSTATUS(status), words[0] ? ": " : "", words);
}

int engine_greet(struct engine *e, const char *welcome, size_t len, deadline_ns deadline,
		 struct cordon_error **reterr)
{
	struct wire_message m = { 0 };
	/* A forked guest is started by its template, so watch the template's processes. The
	 * neighbours of a guest in a place may stop it. */
	const struct box *carrier = e->template ? template_box(e->template) : e->box;
	struct pulse pulse = pulse_begin(carrier, deadline);
	if (e->place) {
		pulse.place = e->box;
		pulse.tasks_max = e->tasks_max;
	}
	int r = pulse_wait_ready(&pulse, e->box, reterr);

	if (r == 0 && e->place)
		box_find_guest(e->box);
	timeline_mark(e->timeline, TIMELINE_ROOT);
	while (r == 0 && (r = wire_next(e->wire, &m, reterr)) == 0) {
		if (wire_is_closed(e->wire))
			return explain_death(e, reterr);
		r = pulse_wait(&pulse, wire_fd(e->wire), POLLIN, reterr);
		if (r == 0)
			r = wire_fill(e->wire, reterr);
		r = r < 0 ? r : 0;
	}
	if (r < 0)
		return r;
	timeline_mark(e->timeline, TIMELINE_HELLO);
	if (m.language.data)
		(void)str_copy(e->language, sizeof(e->language), m.language.data);
	r = wire_send_line(e->wire, welcome, len, reterr);
	e->is_ready = r >= 0;
	return r < 0 ? r : 0;
}

bool engine_is_agent(const struct engine *e)
{
	return e->kind == GUEST_KIND_POD || e->kind == GUEST_KIND_SH;
}

json_t *engine_assurance_json(const struct engine *e, const struct policy *p)
{
	if (box_look(e->box).stage < BOX_RUNNING)
		return NULL;
	json_t *j = box_assurance(e->box, p);
	/* A pod's code always runs as WebAssembly: cordon-pod can run nothing else. */
	if (j && e->kind == GUEST_KIND_POD)
		json_object_set_new(j, "wasm", json_string("cordon-pod"));
	return j;
}

const char *engine_assurance(struct engine *e, const struct policy *p)
{
	if (box_look(e->box).is_stuck) { /* the assurance must say so */
		free(e->assurance);
		e->assurance = NULL;
	}
	if (!e->assurance) {
		cleanup_json json_t *j = engine_assurance_json(e, p);

		e->assurance = j ? json_text(j, NULL) : NULL;
	}
	return e->assurance;
}

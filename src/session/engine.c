/* session/engine.c - see engine.h. */
#include "session/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "session/network.h"
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
	struct engine_ends e = { -1, -1, -1, -1, -1, -1, -1, -1 };
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

void engine_ends_done(struct engine_ends *e)
{
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

static int start_cold(struct engine *e, const struct engine_options *o,
		      struct cordon_error **reterr)
{
	char token[TOKEN_DIGITS + 1];
	struct engine_ends ends = ENGINE_ENDS_NONE;
	cleanup_launch struct launch launch = { 0 };
	bool reads_token = !o->script && guest_reads_token(o->kind);
	struct guest_options guest = { .kind = o->kind,
				       .mode = o->script ? GUEST_SCRIPT : GUEST_SESSION,
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
	r = network_prepare(o->network, &launch, reterr);
	if (r == 0)
		r = engine_ends_open(&ends, !o->script, reterr);
	if (r == 0 && reads_token)
		r = send_token(&ends, token, reterr);
	if (r < 0) {
		engine_ends_done(&ends);
		return r;
	}
	struct box_options box = { .policy = o->policy,
				   .launch = &launch,
				   .stdin_fd = ends.in,
				   .stdout_fd = ends.out,
				   .stderr_fd = ends.err,
				   .wire_fd = ends.wire,
				   .layers_off = o->layers_off };
	r = box_start(&box, &e->box, reterr);
	network_launched(o->network);
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
	e->timeline = o->timeline;
	e->stdin_fd = e->stdout_fd = e->stderr_fd = -1;
	int r = o->template ? template_fork(o->template, e, reterr) : start_cold(e, o, reterr);
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
	template_put(e->template);
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
	struct wire_message m;
	/* A forked guest is started by its template, so watch the template's processes. */
	struct pulse pulse =
		pulse_begin(e->template ? template_box(e->template) : e->box, deadline);
	int r = pulse_wait_ready(&pulse, e->box, reterr);

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

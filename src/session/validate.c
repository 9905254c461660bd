/* session/validate.c - checks syntax without running the code, with the language's own parser in a
 * sandboxed process, never in the host. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "cordon/session.h"
#include "session/engine.h"
#include "session/output_stream.h"

enum { VALIDATE_MS = 30000, ANSWER_MAX = 1 << 20 };

static int start(enum guest_kind kind, const struct policy *p, struct engine_ends *ends,
		 struct box **ret, struct cordon_error **reterr)
{
	cleanup_launch struct launch launch = { 0 };
	struct guest_options guest = { .kind = kind, .mode = GUEST_VALIDATE, .policy = p };
	int r = guest_launch(&guest, &launch, reterr);

	if (r < 0)
		return r;
	struct box_options box = { .policy = p,
				   .launch = &launch,
				   .stdin_fd = ends->in,
				   .stdout_fd = ends->out,
				   .stderr_fd = ends->err,
				   .wire_fd = -1 };
	return box_start(&box, ret, reterr);
}

/* Sends the code and reads the parser's answer, over pipes of ours. */
static void converse(struct engine_ends *ends, const char *code, size_t len,
		     struct output_stream *out)
{
	deadline_ns deadline = deadline_after_ms(VALIDATE_MS);

	if (len == 0)
		close_fdp(&ends->host_in);
	while (out->fd >= 0 && !deadline_is_over(deadline)) {
		struct pollfd p[2] = { { .fd = len ? ends->host_in : -1, .events = POLLOUT },
				       { .fd = out->fd, .events = POLLIN } };

		int ready = poll(p, 2, deadline_poll_ms(deadline));
		if (ready < 0 && errno != EINTR)
			return;
		if (ready < 0)
			continue;
		if (p[0].revents) {
			ssize_t n = write(ends->host_in, code, len);
			size_t done = n > 0 ? (size_t)n : errno == EAGAIN ? 0 : len;
			code += done;
			len -= done;
		}
		if (len == 0)
			close_fdp(&ends->host_in);
		if (p[1].revents)
			(void)output_stream_read(out);
	}
}

int cordon_validate(const char *guest, const char *code, size_t len, char **ret_json,
		    struct cordon_error **reterr)
{
	cleanup_policy struct policy p = { 0 };
	cleanup_box struct box *box = NULL;
	cleanup_json json_t *verdict = NULL;
	struct engine_ends ends = { 0 };
	struct output_stream out;
	enum guest_kind kind = guest_from_name(guest ? guest : "python");

	if (kind == GUEST_KIND_NONE)
		return err_set(reterr, CORDON_INVALID,
			       "unknown guest '%s'; there are: python, r, node, sh, pod", guest);
	int r = policy_init_level(&p, LEVEL_STRICT, reterr);
	if (r == 0)
		r = engine_ends_open(&ends, false, reterr);
	if (r < 0)
		return r;
	output_stream_begin(&out, ends.host_out,
			    &(struct stream_options){ .number = 1,
						      .max_bytes = ANSWER_MAX,
						      .max_lines = UINT64_MAX });
	r = start(kind, &p, &ends, &box, reterr);
	if (r == 0) {
		close_fdp(&ends.out);
		converse(&ends, code, len, &out);
		r = box_failure(box, reterr);
	}
	if (r == 0 && json_parse(buf_text(&out.kept), out.kept.len, ANSWER_MAX, &verdict, NULL) < 0)
		r = err_set(reterr, CORDON_OS, "the %s parser did not answer", guest_name(kind));
	if (r == 0)
		*ret_json = json_text(verdict, NULL);
	buf_done(&out.kept);
	engine_ends_done(&ends);
	return r;
}

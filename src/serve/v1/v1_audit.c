/* serve/v1/v1_audit.c - the audit log of the tenant's sessions. */
#include <cordon/audit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/v1/v1.h"

enum { LIMIT = 100, LIMIT_MAX = 1000, TAIL_BYTES = 4 << 20 };

/* The end of the log: whole lines. */
static int read_tail(const char *path, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_errno(reterr, errno, "read the audit log");
	off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
	if (lseek(fd, from, SEEK_SET) < 0)
		return err_errno(reterr, errno, "read the audit log");
	buf_init(ret, 2 * (size_t)TAIL_BYTES);
	int r = file_read_to_end(fd, ret, reterr);
	const char *line = r == 0 && from > 0 ? strchr(buf_text(ret), '\n') : NULL;
	if (line)
		buf_consume(ret, (size_t)(line + 1 - ret->data));
	return r;
}

/* Newest first. */
static json_t *pick(const struct buf *tail, const char *session, size_t limit)
{
	json_t *events = json_array();
	const char *start = buf_text(tail), *end = start + tail->len;

	while (end > start && json_array_size(events) < limit) {
		const char *line = end - 1;
		while (line > start && line[-1] != '\n')
			line--;
		json_t *event = NULL;
		size_t len = (size_t)(end - line);
		if (len > 1 && json_parse(line, len, 0, &event, NULL) == 0 &&
		    (!session ||
		     str_eq(json_string_value(json_object_get(event, "session_id")), session)))
			json_array_append(events, event);
		json_decref(event);
		end = line;
	}
	return events;
}

void v1_list_audit(struct httpd_exchange *x, void *server)
{
	static const struct v1_method m = { .query = "limit# session" };
	struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf tail = { 0 };
	cleanup_json json_t *params = NULL;
	uint64_t limit = LIMIT;

	(void)server;
	int r = v1_read_params(x, &m, &params, &e);
	if (r == 0)
		r = json_get_uint(params, "", "limit", &limit, &e);
	if (r == 0)
		r = read_tail(t->audit, &tail, &e);
	if (r < 0) {
		problem_answer(x, e);
		return;
	}
	json_t *events = pick(&tail, json_string_value(json_object_get(params, "session")),
			      limit < LIMIT_MAX ? (size_t)limit : (size_t)LIMIT_MAX);
	cleanup_json json_t *answer = json_pack("{s:o}", "events", events);
	v1_answer_json(x, 200, answer);
}

void v1_verify_audit(struct httpd_exchange *x, void *server)
{
	struct tenant *t = httpd_tenant(x);
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_audit_report report = { .is_whole = true };

	(void)server;
	int r = 0;
	if (access(t->audit, F_OK) == 0)
		r = cordon_audit_verify(t->audit, NULL, &report, &e);
	else if (errno != ENOENT) /* nothing was done yet */
		r = err_errno(&e, errno, "read the audit log");
	if (r < 0) {
		problem_answer(x, e);
		return;
	}
	cleanup_json json_t *j =
		json_pack("{s:b,s:I,s:I,s:s?,s:I,s:I,s:s}", "whole", report.is_whole, "lines",
			  (json_int_t)report.lines, "broken_line", (json_int_t)report.broken_line,
			  "reason", report.reason, "recovered", (json_int_t)report.recovered,
			  "lost", (json_int_t)report.lost, "head", report.head);
	v1_answer_json(x, 200, j);
}

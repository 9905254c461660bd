/* serve/v1/v1_files.c - files as raw bytes: whole, in ranges, as tar, as an export. */
#include <cordon/files.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/v1/v1.h"

enum {
	PIECE = 256 << 10,
	SKIPPED_BYTES = 2048, /* of a header, which must fit into the memory of a connection */
};

#define TYPE "application/octet-stream"

/* The session of a request, found and kept until target_done. */
struct place {
	struct tenant *tenant;
	struct client_session *cs;
	const char *path;
};

static int find(struct httpd_exchange *x, bool needs_path, struct place *ret,
		struct cordon_error **reterr)
{
	const char *id = httpd_param(x, "session");
	struct tenant *t = httpd_tenant(x);

	*ret = (struct place){ .tenant = t, .path = httpd_query(x, "path") };
	if (needs_path && !ret->path)
		return err_set(reterr, CORDON_INVALID,
			       "the query needs a path: ?path=/home/user/NAME");
	return tenant_session(t, id, &ret->cs, reterr);
}

static void done(struct place *p)
{
	if (p->cs)
		client_session_put(&p->tenant->rpc->sessions, p->cs);
	p->cs = NULL;
}
#define cleanup_place CLEANUP(done)

/* ---- reading */

struct range {
	uint64_t first, bytes;
	bool is_part;
};

/* "-n": the last n bytes. False: there are none. */
static bool read_suffix(const char *at, uint64_t size, struct range *ret)
{
	unsigned long long n = strtoull(at + 1, NULL, 10);

	if (n == 0 || size == 0)
		return false;
	uint64_t first = n < size ? size - n : 0;
	*ret = (struct range){ first, size - first, true };
	return true;
}

/* "bytes=a-b", "bytes=a-" or "bytes=-n". False: it lies outside the file. Anything else is ignored,
 * as RFC 9110 asks for. */
static bool read_range(const char *header, uint64_t size, struct range *ret)
{
	const char *at = header && str_starts(header, "bytes=") ? header + 6 : "";
	char *dash = NULL;

	*ret = (struct range){ 0, size, false };
	if (strchr(at, ','))
		return true;
	if (at[0] == '-' && isdigit((unsigned char)at[1]))
		return read_suffix(at, size, ret);
	if (!isdigit((unsigned char)at[0]))
		return true;
	uint64_t first = strtoull(at, &dash, 10), last = size;
	if (*dash != '-')
		return true;
	if (isdigit((unsigned char)dash[1]))
		last = strtoull(dash + 1, NULL, 10);
	if (first >= size || last < first)
		return false;
	if (last >= size)
		last = size - 1;
	*ret = (struct range){ first, last - first + 1, true };
	return true;
}

static void add_range(struct httpd_exchange *x, const struct cordon_file_info *info,
		      const struct range *r)
{
	char text[96];

	httpd_add_header(x, "Accept-Ranges", "bytes");
	if (!r->is_part)
		return;
	(void)snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, r->first,
		       r->first + r->bytes - 1, info->size);
	httpd_add_header(x, "Content-Range", text);
}

/* The next piece. Looked up again each time: while a client reads slowly, nothing must wait for the
 * session's end. */
static int read_next(struct tenant *t, const char *id, const char *path, uint64_t at, char *piece,
		     size_t want, size_t *ret_got)
{
	struct client_session *cs = NULL;
	int r = tenant_session(t, id, &cs, NULL);

	if (r == 0)
		r = cordon_file_read_at(cs->session, path, at, piece, want, ret_got, NULL);
	client_session_put(&t->rpc->sessions, cs);
	return r;
}

/* The rest after the first piece. False: it has become shorter, or somebody left. */
static bool send_rest(struct httpd_exchange *x, struct tenant *t, const char *id, const char *path,
		      const struct range *r, char *piece)
{
	uint64_t sent = PIECE;
	size_t got = PIECE;

	while (httpd_stream_write(x, piece, got)) {
		size_t want = r->bytes - sent < PIECE ? (size_t)(r->bytes - sent) : (size_t)PIECE;

		if (want == 0)
			return true;
		if (read_next(t, id, path, r->first + sent, piece, want, &got) < 0)
			return false;
		if (got == 0)
			return r->bytes == HTTPD_UNKNOWN_BYTES;
		sent += got;
	}
	return false;
}

/* In pieces: neither this nor the session has more of it in memory. */
static void send_file(struct httpd_exchange *x, struct place *p,
		      const struct cordon_file_info *info, struct range *r, char *piece)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *id = str_dup(httpd_param(x, "session")), *path = str_dup(p->path);
	size_t want = r->bytes < PIECE ? (size_t)r->bytes : (size_t)PIECE, got = 0;
	int code = want && id && path ? cordon_file_read_at(p->cs->session, path, r->first, piece,
							    want, &got, &e)
				      : 0;

	done(p);
	if (code < 0 || !id || !path) {
		problem_answer(x, e);
		return;
	}
	if (got < PIECE) /* it may have become shorter */
		r->bytes = got;
	add_range(x, info, r);
	if (got == r->bytes) {
		httpd_answer(x, r->is_part ? 206 : 200, TYPE, piece, got);
		return;
	}
	httpd_stream_begin_sized(x, r->is_part ? 206 : 200, TYPE, r->bytes);
	httpd_stream_end(x, send_rest(x, p->tenant, id, path, r, piece));
}

void v1_read_file(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	cleanup_free char *piece = mem_alloc(PIECE);
	struct cordon_file_info info = { 0 };
	struct range range = { 0 };

	(void)server;
	int r = piece ? find(x, true, &p, &e) : err_set(&e, CORDON_NOMEM, "out of memory");
	if (r == 0)
		r = cordon_file_stat(p.cs->session, p.path, &info, &e);
	if (r == 0 && info.type == CORDON_DIRECTORY)
		r = err_set(&e, CORDON_INVALID,
			    "'%.200s' is a directory: get it as tar, from …/tar", p.path);
	if (info.type == CORDON_SYMLINK) /* the size is that of the link */
		range.bytes = HTTPD_UNKNOWN_BYTES;
	else if (r == 0 && !read_range(httpd_header(x, "Range"), info.size, &range)) {
		problem_answer_as(x, 416, "invalid", "the range lies outside the file", NULL);
		return;
	}
	if (r < 0)
		problem_answer(x, e);
	else
		send_file(x, &p, &info, &range, piece);
}

/* ---- writing */

void v1_write_file(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	uint64_t bytes = 0;
	int fd = httpd_body_fd(x, &bytes);
	void *map = MAP_FAILED;

	(void)server;
	int r = find(x, true, &p, &e);
	if (r == 0 && bytes > 0) {
		map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			r = err_errno(&e, errno, "read the body");
	}
	if (r == 0)
		r = cordon_file_write(p.cs->session, p.path, bytes > 0 ? map : "", bytes, &e);
	if (map != MAP_FAILED)
		(void)munmap(map, bytes);
	if (r < 0)
		problem_answer(x, e);
	else
		httpd_answer(x, 204, NULL, NULL, 0);
}

/* ---- archives */

static void answer_archive(struct httpd_exchange *x, const char *type, int fd)
{
	off_t bytes = lseek(fd, 0, SEEK_END);

	httpd_answer_fd(x, 200, type, fd, 0, bytes > 0 ? (uint64_t)bytes : 0);
}

/* What is not in the archive, in a header: the body is the archive's. Names are the guest's: ASCII,
 * without controls, and as many as fit. */
static void add_skipped(struct httpd_exchange *x, const char *report)
{
	cleanup_json json_t *j = json_loads(report, 0, NULL);
	json_t *all = json_object_get(j, "skipped");
	const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII;

	if (json_array_size(all) == 0)
		return;
	while (json_array_size(all) > 0 && json_dumpb(j, NULL, 0, flags) > SKIPPED_BYTES)
		(void)json_array_remove(all, json_array_size(all) - 1);
	cleanup_free char *text = json_dumps(j, flags);
	for (char *at = text; at && *at; at++)
		*at = *at == 0x7f ? '?' : *at;
	if (text)
		httpd_add_header(x, "Cordon-Skipped", text);
}

void v1_get_tar(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	cleanup_free char *report = NULL;
	cleanup_close int fd = file_scratch();

	(void)server;
	int r = find(x, true, &p, &e);
	if (r == 0)
		r = cordon_file_get_tar(p.cs->session, p.path, fd, &report, &e);
	if (r < 0) {
		problem_answer(x, e);
		return;
	}
	add_skipped(x, report);
	answer_archive(x, "application/x-tar", TAKE_FD(fd));
}

static void answer_report(struct httpd_exchange *x, const char *report)
{
	cleanup_free char *text = str_printf("{\"report\":%s}", report ? report : "null");

	httpd_answer(x, text ? 200 : 500, "application/json", text, text ? strlen(text) : 0);
}

void v1_put_tar(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	cleanup_free char *report = NULL;
	uint64_t bytes = 0;
	int fd = httpd_body_fd(x, &bytes);

	(void)server;
	int r = find(x, true, &p, &e);
	if (r == 0 && bytes == 0)
		r = err_set(&e, CORDON_INVALID, "the body is empty: send a tar");
	if (r == 0)
		r = cordon_file_put_tar(p.cs->session, p.path, fd, &report, &e);
	if (r < 0)
		problem_answer(x, e);
	else
		answer_report(x, report);
}

void v1_export(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	cleanup_close int fd = file_scratch();

	(void)server;
	int r = find(x, false, &p, &e);
	if (r == 0)
		r = cordon_files_export(p.cs->session, fd, &e);
	if (r < 0)
		problem_answer(x, e);
	else
		answer_archive(x, "application/octet-stream", TAKE_FD(fd));
}

void v1_import(struct httpd_exchange *x, void *server)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_place struct place p = { 0 };
	cleanup_free char *report = NULL;
	uint64_t bytes = 0;
	int fd = httpd_body_fd(x, &bytes);

	(void)server;
	int r = find(x, false, &p, &e);
	if (r == 0 && bytes == 0)
		r = err_set(&e, CORDON_INVALID, "the body is empty: send what GET …/export gave");
	if (r == 0)
		r = cordon_files_import(p.cs->session, fd, &report, &e);
	if (r < 0)
		problem_answer(x, e);
	else
		answer_report(x, report);
}

/* serve/e2b/e2b_files.c - /files: the content of files, up and down. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/e2b_state.h"
#include "serve/e2b/gzip.h"
#include "serve/e2b/multipart.h"
#include "session/session.h"

/* WHOLE: a smaller file is sent at once, with its length. */
enum { WHOLE = 1 << 20, PIECE = 256 << 10, PACKED_MAX = 4 << 20, PARTS_MAX = 1000 };

static void fail(struct httpd_exchange *x, const struct cordon_error *e)
{
	int code = cordon_error_errno(e);

	if (code == ENOSPC || code == EDQUOT)
		e2b_fail(x, 507, cordon_error_message(e));
	else
		e2b_fail_error(x, e);
}

/* The sandbox, unless the address is expired. NULL: the answer is given. */
static struct e2b_sandbox *begin(struct httpd_exchange *x, void *arg)
{
	struct e2b_sandbox *b = NULL;

	if (e2b_is_expired(arg, x))
		e2b_fail(x, 401, "signature is already expired");
	else
		b = e2b_target(arg, x);
	return b;
}

/* ---- down */

/* False: the sandbox is gone, or the file. */
static bool read_piece(struct e2b *e, const char *id, const char *path, uint64_t offset,
		       char *piece, size_t *ret)
{
	cleanup_e2b_sandbox struct e2b_sandbox *b = e2b_sandbox_get(e, id, NULL);

	return b && cordon_file_read_at(b->session, path, offset, piece, PIECE, ret, NULL) == 0;
}

/* In pieces: neither side has more of it in memory. The reference is dropped: the end of a sandbox
 * waits for all of them, and a client may read as slowly as it likes. */
static void send_pieces(struct httpd_exchange *x, struct e2b_sandbox **b, const char *path,
			char *piece)
{
	struct e2b *e = (*b)->e2b;
	char id[E2B_ID_BYTES];
	uint64_t offset = 0;
	size_t n = PIECE;
	bool good = str_copy(id, sizeof(id), (*b)->id);

	*b = e2b_sandbox_put(*b);
	httpd_stream_begin(x, 200, "application/octet-stream");
	while (good && n == PIECE) {
		n = 0;
		good = read_piece(e, id, path, offset, piece, &n) &&
		       (n == 0 || httpd_stream_write(x, piece, n));
		offset += n;
	}
	httpd_stream_end(x, good);
}

static int send_packed(struct httpd_exchange *x, const char *bytes, size_t len,
		       struct cordon_error **reterr)
{
	cleanup_buf struct buf packed = { 0 };

	buf_init(&packed, 2 * (size_t)PACKED_MAX);
	int r = gzip_pack(bytes, len, &packed, reterr);
	if (r < 0)
		return r;
	httpd_add_header(x, "Content-Encoding", "gzip");
	httpd_answer(x, 200, "application/octet-stream", packed.data, packed.len);
	return 0;
}

static int send_file(struct httpd_exchange *x, struct e2b_sandbox **b, const char *path,
		     struct cordon_error **reterr)
{
	bool is_packed = str_eq(httpd_header(x, "Accept-Encoding"), "gzip");
	struct cordon_file_info info;
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = cordon_file_stat((*b)->session, path, &info, reterr);

	if (r < 0)
		return r;
	if (info.type == CORDON_DIRECTORY)
		return err_set(reterr, CORDON_INVALID, "path '%s' is a directory", path);
	if (info.type == CORDON_FILE && info.size > (is_packed ? PACKED_MAX : WHOLE)) {
		cleanup_free char *piece = mem_alloc(PIECE);

		if (!piece)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		send_pieces(x, b, path, piece);
		return 0;
	}
	r = cordon_file_read((*b)->session, path, &bytes, &len, reterr);
	if (r == 0 && is_packed)
		return send_packed(x, bytes, len, reterr);
	if (r == 0)
		httpd_answer(x, 200, "application/octet-stream", bytes, len);
	return r;
}

void e2b_files_read(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = begin(x, arg);
	const char *given = b ? httpd_query(x, "path") : NULL;
	cleanup_free char *path = given ? e2b_entry_path(given) : NULL;

	if (!b)
		return;
	int r = path ? send_file(x, &b, path, &e)
		     : err_set(&e, CORDON_INVALID, "path is missing or too long");
	if (r < 0)
		fail(x, e);
}

/* ---- up */

struct upload {
	struct e2b_sandbox *b;
	json_t *metadata; /* of every file */
	json_t *written;
};

static int put_file(struct upload *u, const char *given, const char *bytes, size_t len,
		    struct cordon_error **reterr)
{
	cleanup_free char *path = e2b_entry_path(given);
	struct cordon_file_info info;
	json_t *j = NULL;

	if (!path)
		return err_set(reterr, CORDON_LIMIT, "the path is too long");
	if (cordon_file_stat(u->b->session, path, &info, NULL) == 0 &&
	    info.type == CORDON_DIRECTORY)
		return err_set(reterr, CORDON_INVALID, "path '%s' is a directory", path);
	int r = cordon_file_write(u->b->session, path, len ? bytes : "", len, reterr);
	if (r == 0 && json_object_size(u->metadata))
		r = e2b_entry_set_metadata(u->b->session, path, u->metadata, reterr);
	if (r == 0)
		r = e2b_entry_written(u->b->session, path, &j, reterr);
	if (r == 0)
		json_array_append_new(u->written, j);
	return r;
}

/* path: of the only file; NULL: each part's own. */
static int put_parts(struct upload *u, struct multipart *m, const char *path,
		     struct cordon_error **reterr)
{
	for (unsigned count = 0;; count++) {
		cleanup_multipart_part struct multipart_part part = { 0 };
		int r = multipart_next(m, &part, reterr);

		if (r <= 0)
			return r;
		if (count >= PARTS_MAX)
			return err_set(reterr, CORDON_LIMIT, "there are more than %d files",
				       PARTS_MAX);
		if (!str_eq(part.name, "file"))
			continue;
		const char *target = path && *path ? path : part.filename;
		if (!target || !*target)
			return err_set(reterr, CORDON_INVALID,
				       "a file has no path: neither ?path= nor a filename");
		r = put_file(u, target, part.bytes, part.len, reterr);
		if (r < 0)
			return r;
	}
}

static int put_raw(struct upload *u, const char *path, const char *encoding, const char *bytes,
		   size_t len, struct cordon_error **reterr)
{
	cleanup_close int fd = -1;
	uint64_t n = 0;

	if (!path || !*path)
		return err_set(reterr, CORDON_INVALID, "path is missing");
	if (!encoding || !*encoding || strcasecmp(encoding, "identity") == 0)
		return put_file(u, path, bytes, len, reterr);
	if (strcasecmp(encoding, "gzip") != 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "only gzip is unpacked");
	/* Not in memory: a small body may become very large, and many may come at once. */
	fd = file_scratch();
	int r = gzip_unpack(bytes, len, u->b->session->policy.fs_bytes, fd, &n, reterr);
	if (r < 0)
		return r;
	void *plain = n ? mmap(NULL, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	if (plain == MAP_FAILED)
		return err_errno(reterr, errno, "read the unpacked content");
	r = put_file(u, path, plain, (size_t)n, reterr);
	if (plain)
		(void)munmap(plain, (size_t)n);
	return r;
}

/* X-Metadata-NAME: value. Names of headers have no case. */
static bool take_metadata(const char *name, const char *value, void *arg)
{
	static const char prefix[] = "X-Metadata-";
	json_t *metadata = arg;
	char lower[128];

	if (strncasecmp(name, prefix, sizeof(prefix) - 1) != 0)
		return true;
	name += sizeof(prefix) - 1;
	if (!*name || !str_copy(lower, sizeof(lower), name) ||
	    json_object_size(metadata) >= E2B_METADATA_MAX)
		return true;
	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	json_object_set_new(metadata, lower, json_string(value));
	return true;
}

static int put_body(struct upload *u, struct httpd_exchange *x, const char *bytes, size_t len,
		    struct cordon_error **reterr)
{
	const char *type = httpd_header(x, "Content-Type"), *path = httpd_query(x, "path");
	struct multipart m;

	httpd_visit_headers(x, take_metadata, u->metadata);
	if (type && strncasecmp(type, "multipart/form-data", 19) == 0) {
		int r = multipart_init(&m, type, bytes, len, reterr);
		return r < 0 ? r : put_parts(u, &m, path, reterr);
	}
	if (type && strncasecmp(type, "application/octet-stream", 24) != 0)
		return err_set(reterr, CORDON_INVALID,
			       "the type must be multipart/form-data or application/octet-stream");
	return put_raw(u, path, httpd_header(x, "Content-Encoding"), bytes, len, reterr);
}

void e2b_files_write(struct httpd_exchange *x, void *arg)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_e2b_sandbox struct e2b_sandbox *b = begin(x, arg);
	struct upload u = { .b = b };
	uint64_t len = 0;

	if (!b)
		return;
	int fd = httpd_body_fd(x, &len);
	void *bytes = len ? mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
	u.metadata = json_object();
	u.written = json_array();
	int r = bytes == MAP_FAILED ? err_errno(&e, errno, "read the body")
				    : put_body(&u, x, bytes ? bytes : "", (size_t)len, &e);
	if (len && bytes != MAP_FAILED)
		(void)munmap(bytes, (size_t)len);
	if (r < 0)
		fail(x, e);
	else
		e2b_answer_json(x, 200, json_incref(u.written));
	json_decref(u.metadata);
	json_decref(u.written);
}

/* serve/rpc/session_files.c - methods for a session's files. Bytes are base64; large files are
 * transferred in pieces. */
#include <cordon/files.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "serve/rpc/filetype.h"
#include "serve/rpc/target.h"

enum { WHOLE_MAX = 32 << 20, PIECE_MAX = 8 << 20 };

static int add_bytes(struct buf *ret, const void *bytes, size_t len, bool is_end,
		     struct cordon_error **reterr)
{
	cleanup_free char *text = base64_encode(bytes, len, NULL);

	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = buf_add_str(ret, "{\"data\":\"");
	if (r == 0)
		r = buf_add_str(ret, text);
	if (r == 0)
		r = buf_printf(ret, "\",\"length\":%zu,\"eof\":%s}", len,
			       is_end ? "true" : "false");
	return r;
}

static int read_whole(struct request *q, const char *path, struct buf *ret,
		      struct cordon_error **reterr)
{
	struct cordon_file_info info = { 0 };
	char *bytes = NULL;
	size_t len = 0;
	int r = cordon_file_stat(q->cs->session, path, &info, reterr);

	if (r == 0 && info.type == CORDON_FILE && info.size > WHOLE_MAX)
		return err_set(reterr, CORDON_LIMIT,
			       "a file over %d MiB is read in pieces: give offset and length",
			       WHOLE_MAX >> 20);
	if (r == 0)
		r = cordon_file_read(q->cs->session, path, &bytes, &len, reterr);
	if (r == 0)
		r = add_bytes(ret, bytes, len, true, reterr);
	free(bytes);
	return r;
}

static int read_file(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	uint64_t offset = 0, length = 0;
	const char *path = NULL;
	size_t got = 0;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_uint(q, "offset", &offset, reterr);
	if (r == 0)
		r = target_uint(q, "length", &length, reterr);
	if (r < 0)
		return r;
	if (!json_object_get(q->params, "offset") && !json_object_get(q->params, "length"))
		return read_whole(q, path, ret, reterr);
	if (length > PIECE_MAX)
		return err_set(reterr, CORDON_INVALID, "/params/length must be at most %d",
			       PIECE_MAX);
	if (length == 0)
		length = 1 << 20;
	cleanup_free char *bytes = mem_alloc((size_t)length);
	if (!bytes)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = cordon_file_read_at(q->cs->session, path, offset, bytes, (size_t)length, &got, reterr);
	return r < 0 ? r : add_bytes(ret, bytes, got, got < length, reterr);
}

/* Opens a regular file of the host's, which the client names. Never waits: a FIFO is refused. */
static int open_host(const char *path, int flags, struct stat *ret_st, int *ret_fd,
		     struct cordon_error **reterr)
{
	cleanup_close int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_st) != 0)
		return err_errno(reterr, errno, "open '%s'", path);
	if (!S_ISREG(ret_st->st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not a regular file", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* One piece of a transfer between a file of the host's and one of the session's. Neither side has
 * more of it in memory, whatever the file's size. */
struct piece {
	const char *path, *host;
	uint64_t offset, length;
	struct stat host_st;
	int host_fd;
	char *bytes;
};

static void piece_done(struct piece *p)
{
	close_fdp(&p->host_fd);
	free(p->bytes);
}
#define cleanup_piece __attribute__((cleanup(piece_done)))

static int read_piece(struct request *q, const char *host_key, int flags, struct piece *p,
		      struct cordon_error **reterr)
{
	int r = target_need(q, "path", &p->path, reterr);

	if (r == 0)
		r = target_need(q, host_key, &p->host, reterr);
	if (r == 0)
		r = target_uint(q, "offset", &p->offset, reterr);
	if (r == 0)
		r = target_uint(q, "length", &p->length, reterr);
	if (r < 0)
		return r;
	if (p->length > PIECE_MAX || p->offset > INT64_MAX - PIECE_MAX)
		return err_set(reterr, CORDON_INVALID, "/params/length must be at most %d",
			       PIECE_MAX);
	if (p->length == 0)
		p->length = PIECE_MAX;
	r = open_host(p->host, flags, &p->host_st, &p->host_fd, reterr);
	if (r < 0)
		return r;
	p->bytes = mem_alloc((size_t)p->length);
	return p->bytes ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int upload(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_piece struct piece p = { .host_fd = -1 };
	int r = read_piece(q, "from", O_RDONLY, &p, reterr);

	if (r < 0)
		return r;
	if (lseek(p.host_fd, (off_t)p.offset, SEEK_SET) < 0)
		return err_errno(reterr, errno, "read '%s'", p.host);
	ssize_t n = file_read_full(p.host_fd, p.bytes, (size_t)p.length);
	if (n < 0)
		return err_errno(reterr, (int)-n, "read '%s'", p.host);
	r = p.offset ? cordon_file_append(q->cs->session, p.path, p.bytes, (size_t)n, reterr)
		     : cordon_file_write(q->cs->session, p.path, p.bytes, (size_t)n, reterr);
	return r < 0 ? r
		     : buf_printf(ret, "{\"length\":%zd,\"eof\":%s,\"size\":%lld}", n,
				  (uint64_t)n < p.length ? "true" : "false",
				  (long long)p.host_st.st_size);
}

static int download(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_piece struct piece p = { .host_fd = -1 };
	struct cordon_file_info info = { 0 };
	size_t got = 0;
	int r = read_piece(q, "to", O_WRONLY | O_NOFOLLOW, &p, reterr);

	if (r == 0)
		r = cordon_file_read_at(q->cs->session, p.path, p.offset, p.bytes, (size_t)p.length,
					&got, reterr);
	if (r < 0)
		return r;
	if (lseek(p.host_fd, (off_t)p.offset, SEEK_SET) < 0)
		return err_errno(reterr, errno, "write '%s'", p.host);
	r = file_write_all(p.host_fd, p.bytes, got);
	if (r < 0)
		return err_errno(reterr, -r, "write '%s'", p.host);
	/* For progress only; a link has another size. */
	if (cordon_file_stat(q->cs->session, p.path, &info, NULL) < 0 || info.type != CORDON_FILE)
		info.size = 0;
	if (info.size < p.offset + got)
		info.size = p.offset + got;
	return buf_printf(ret, "{\"length\":%zu,\"eof\":%s,\"size\":%llu}", got,
			  got < p.length ? "true" : "false", (unsigned long long)info.size);
}

typedef int (*put_fn)(struct cordon_session *s, const char *path, const void *bytes, size_t len,
		      struct cordon_error **reterr);

/* data: base64; text: plain text. */
static int put(struct request *q, put_fn fn, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL, *data = NULL, *text = NULL;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_string(q, "text", &text, reterr);
	if (r == 0 && !text)
		r = target_need(q, "data", &data, reterr);
	if (r == 0 && data)
		r = base64_decode(data, json_string_length(json_object_get(q->params, "data")),
				  &bytes, &len, reterr);
	if (r == 0 && text)
		len = json_string_length(json_object_get(q->params, "text"));
	if (r == 0)
		r = fn(q->cs->session, path, text ? text : bytes, len, reterr);
	return r < 0 ? r : buf_printf(ret, "{\"ok\":true,\"length\":%zu}", len);
}

static int write_file(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	return put(q, cordon_file_write, ret, reterr);
}

static int append(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	return put(q, cordon_file_append, ret, reterr);
}

static json_t *info_json(const struct cordon_file_info *info, bool is_pod_style)
{
	const char *type = filetype_name(info);
	json_t *j = json_object();

	if (is_pod_style && info->type == CORDON_DIRECTORY)
		type = "dir";
	json_object_set_new(j, "type", json_string(type));
	json_object_set_new(j, "size", json_integer((json_int_t)info->size));
	json_object_set_new(j, "mode", json_integer(info->mode & 07777));
	json_object_set_new(j, "mtime", json_real((double)info->mtime_ns / 1e9));
	return j;
}

static int add_json(struct buf *ret, const json_t *j, struct cordon_error **reterr)
{
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;

	return text ? buf_add_str(ret, text) : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int stat_file(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	struct cordon_file_info info = { 0 };
	const char *path = NULL;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = cordon_file_stat(q->cs->session, path, &info, reterr);
	if (r < 0)
		return r;
	cleanup_json json_t *j = info_json(&info, q->is_pod_style);
	return add_json(ret, j, reterr);
}

struct listing {
	json_t *entries;
	bool is_pod_style;
};

static int add_entry(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct listing *l = arg;
	json_t *j = info_json(info, l->is_pod_style);

	json_object_set_new(j, "name", json_string_lossy(name, strlen(name)));
	return json_array_append_new(l->entries, j) == 0 ? 0 : -CORDON_NOMEM;
}

static int list(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_json json_t *entries = json_array();
	struct listing l = { entries, q->is_pod_style };
	const char *path = NULL;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = cordon_file_list(q->cs->session, path, add_entry, &l, reterr);
	if (r < 0)
		return r;
	r = buf_add_str(ret, "{\"entries\":");
	if (r == 0)
		r = add_json(ret, entries, reterr);
	return r < 0 ? r : buf_add_char(ret, '}');
}

static int make_directory(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL;
	bool parents = false;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_bool(q, "parents", &parents, reterr);
	if (r == 0)
		r = cordon_file_mkdir(q->cs->session, path, parents, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int move(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *from = NULL, *to = NULL;
	int r = target_need(q, "from", &from, reterr);

	if (r == 0)
		r = target_need(q, "to", &to, reterr);
	if (r == 0)
		r = cordon_file_move(q->cs->session, from, to, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

static int remove_file(struct request *q, struct buf *ret, struct cordon_error **reterr)
{
	const char *path = NULL;
	bool recursive = false;
	int r = target_need(q, "path", &path, reterr);

	if (r == 0)
		r = target_bool(q, "recursive", &recursive, reterr);
	if (r == 0)
		r = cordon_file_remove(q->cs->session, path, recursive, reterr);
	return r < 0 ? r : buf_add_str(ret, "{\"ok\":true}");
}

const struct rpc_method rpc_files_methods[] = {
	{ "files.read", read_file, RPC_SESSION, "path offset length" },
	{ "files.write", write_file, RPC_SESSION, "path data text" },
	{ "files.append", append, RPC_SESSION, "path data text" },
	{ "files.upload", upload, RPC_SLOW | RPC_SESSION, "path from offset length" },
	{ "files.download", download, RPC_SLOW | RPC_SESSION, "path to offset length" },
	{ "files.list", list, RPC_SESSION, "path" },
	{ "files.stat", stat_file, RPC_SESSION, "path" },
	{ "files.mkdir", make_directory, RPC_SESSION, "path parents" },
	{ "files.move", move, RPC_SESSION, "from to" },
	{ "files.remove", remove_file, RPC_SESSION, "path recursive" },
	{ "files.rm", remove_file, RPC_SESSION, "path recursive" },
	{ 0 },
};

/* cli/transfer.c - see transfer.h. */
#include "cli/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/progress.h"

enum { CHUNK = 4 << 20, MAX_RESULT = 64 << 20 };

static int split(const char *text, char **ret_left, const char **ret_right,
		 struct cordon_error **reterr)
{
	const char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return err_set(reterr, CORDON_INVALID, "'%s' is not FROM:TO", text);
	*ret_left = str_ndup(text, (size_t)(colon - text));
	*ret_right = colon + 1;
	return *ret_left ? 0 : -CORDON_NOMEM;
}

/* A name beside the final one, where a file is made until it is complete. */
static char *part_name(const char *path)
{
	char hex[9];

	random_hex(hex, 8);
	return str_printf("%s.part-%s", path, hex);
}

/* Copies what the descriptor still has, in pieces: constant memory, whatever the size. */
static int put_pieces(struct cordon_session *s, int fd, const char *host, const char *guest,
		      struct progress *p, struct cordon_error **reterr)
{
	cleanup_free char *chunk = mem_alloc(CHUNK), *part = part_name(guest);
	bool is_first = true;
	int r = 0;

	if (!chunk || !part)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (ssize_t n = CHUNK; r == 0 && n == CHUNK; is_first = false) {
		n = file_read_full(fd, chunk, CHUNK);
		if (n < 0)
			r = err_errno(reterr, (int)-n, "read '%s'", host);
		else if (is_first && n < CHUNK) /* small: one step */
			return cordon_file_write(s, guest, chunk, (size_t)n, reterr);
		else
			r = is_first ? cordon_file_write(s, part, chunk, (size_t)n, reterr)
				     : cordon_file_append(s, part, chunk, (size_t)n, reterr);
		p->done += n > 0 ? (uint64_t)n : 0;
	}
	if (r == 0)
		r = cordon_file_move(s, part, guest, reterr);
	if (r < 0)
		(void)cordon_file_remove(s, part, false, NULL);
	if (r == -CORDON_LIMIT && reterr) { /* in terms of what was asked for */
		*reterr = cordon_error_free(*reterr);
		return err_set(
			reterr, CORDON_LIMIT,
			"ENOSPC: '%s' does not fit: the policy's fs_bytes and file_bytes limit "
			"it; --set fs_bytes=SIZE raises the first",
			guest);
	}
	return r;
}

static int put_file(struct cordon_session *s, const char *host, const char *guest,
		    struct cordon_error **reterr)
{
	cleanup_progress struct progress p = { 0 };
	cleanup_close int fd = open(host, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_errno(reterr, errno, "open '%s'", host);
	if (S_ISDIR(st.st_mode))
		return err_errno(reterr, EISDIR, "read '%s'", host);
	progress_begin(&p, host, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
	return put_pieces(s, fd, host, guest, &p, reterr);
}

static int get_pieces(struct cordon_session *s, const char *guest, int fd, const char *host,
		      struct progress *p, struct cordon_error **reterr)
{
	cleanup_free char *chunk = mem_alloc(CHUNK);
	size_t n = CHUNK;

	if (!chunk)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	while (n == CHUNK) {
		int r = cordon_file_read_at(s, guest, p->done, chunk, CHUNK, &n, reterr);
		if (r < 0)
			return r;
		r = file_write_all(fd, chunk, n);
		if (r < 0)
			return err_errno(reterr, -r, "write '%s'", host);
		p->done += n;
		/* Code that goes on writing must not fill the host's disk. */
		if (p->total && p->done >= p->total)
			return 0;
	}
	return 0;
}

/* A pipe or device is written to; a regular file is replaced when the new one is complete. */
static int get_file(struct cordon_session *s, const char *guest, const char *host,
		    struct cordon_error **reterr)
{
	cleanup_file_draft struct file_draft d = { .fd = -1, .dir_fd = -1 };
	cleanup_progress struct progress p = { 0 };
	struct cordon_file_info info = { 0 };
	struct stat st;

	int r = cordon_file_stat(s, guest, &info, reterr);
	if (r < 0)
		return r;
	progress_begin(&p, guest, info.type == CORDON_FILE ? info.size : 0);
	if (stat(host, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		cleanup_close int fd = open(host, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return fd < 0 ? err_errno(reterr, errno, "open '%s'", host)
			      : get_pieces(s, guest, fd, host, &p, reterr);
	}
	r = file_draft_open(&d, host, reterr);
	if (r == 0)
		r = get_pieces(s, guest, d.fd, host, &p, reterr);
	return r < 0 ? r : file_draft_publish(&d, 0644, true, reterr);
}

static int put_entry(const struct cli *c, struct cordon_session *s, const FTSENT *e,
		     const char *guest, struct cordon_error **reterr)
{
	switch (e->fts_info) {
	case FTS_D:
		return cordon_file_mkdir(s, guest, true, reterr);
	case FTS_F:
		return put_file(s, e->fts_path, guest, reterr);
	case FTS_DP:
		return 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_errno(reterr, e->fts_errno, "read '%s'", e->fts_path);
	default:
		cli_error(c, "skipped %s: not a file or directory", e->fts_path);
		return 0;
	}
}

int transfer_put(const struct cli *c, struct cordon_session *s, const char *host, const char *guest,
		 struct cordon_error **reterr)
{
	char *const roots[] = { (char *)(uintptr_t)host, NULL };
	struct stat st;
	int r = 0;

	if (stat(host, &st) != 0 || !S_ISDIR(st.st_mode))
		return put_file(s, host, guest, reterr);
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	if (!tree)
		return err_errno(reterr, errno, "read '%s'", host);
	for (FTSENT *e; r == 0 && (e = fts_read(tree));) {
		cleanup_free char *to = str_printf("%s%s", guest, e->fts_path + strlen(host));
		r = to ? put_entry(c, s, e, to, reterr) : -CORDON_NOMEM;
	}
	(void)fts_close(tree);
	return r;
}

struct entries {
	struct strlist names, directories;
	const struct cli *c;
};

static int add_entry(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct entries *x = arg;

	if (info->type == CORDON_FILE)
		return strlist_add(&x->names, name);
	if (info->type == CORDON_DIRECTORY)
		return strlist_add(&x->directories, name);
	cli_error(x->c, "skipped a link or special file in the workspace");
	return 0;
}

/* The target is new, so that no link in it leads elsewhere. */
static int get_directory(const struct cli *c, struct cordon_session *s, const char *guest,
			 const char *host, struct cordon_error **reterr)
{
	struct entries x = { .c = c };
	int r = mkdir(host, 0777) == 0 ? 0 : err_errno(reterr, errno, "make '%s'", host);

	if (r == 0)
		r = cordon_file_list(s, guest, add_entry, &x, reterr);
	for (size_t i = 0; r == 0 && i < x.names.count + x.directories.count; i++) {
		bool is_file = i < x.names.count;
		const char *name =
			is_file ? x.names.items[i] : x.directories.items[i - x.names.count];
		cleanup_free char *from = str_printf("%s/%s", guest, name);
		cleanup_free char *to = str_printf("%s/%s", host, name);
		if (!from || !to)
			r = err_set(reterr, CORDON_NOMEM, "out of memory");
		else
			r = is_file ? get_file(s, from, to, reterr)
				    : get_directory(c, s, from, to, reterr);
	}
	strlist_done(&x.names);
	strlist_done(&x.directories);
	return r;
}

int transfer_get(const struct cli *c, struct cordon_session *s, const char *guest, const char *host,
		 struct cordon_error **reterr)
{
	struct cordon_file_info info = { 0 };
	int r = cordon_file_stat(s, guest, &info, reterr);

	if (r < 0)
		return r;
	return info.type == CORDON_DIRECTORY ? get_directory(c, s, guest, host, reterr)
					     : get_file(s, guest, host, reterr);
}

int transfer_in(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr)
{
	const char *text;

	for (size_t i = 0; (text = cli_value_at(c, "file", i)); i++) {
		cleanup_free char *host = NULL;
		const char *guest;
		int r = split(text, &host, &guest, reterr);

		if (r == 0)
			r = put_file(s, host, guest, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "--file %s", text);
	}
	return 0;
}

int transfer_out(const struct cli *c, struct cordon_session *s, bool skips_names,
		 struct cordon_error **reterr)
{
	const char *text;

	for (size_t i = 0; (text = cli_value_at(c, "out", i)); i++) {
		cleanup_free char *guest = NULL;
		const char *host;
		if (skips_names && !strchr(text, ':'))
			continue;
		int r = split(text, &guest, &host, reterr);

		if (r == 0)
			r = get_file(s, guest, host, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "--out %s", text);
	}
	return 0;
}

static const char *ending_of(const char *mime)
{
	static const char *const table[][2] = {
		{ "image/png", "png" },         { "image/svg+xml", "svg" }, { "text/html", "html" },
		{ "application/json", "json" }, { "image/jpeg", "jpg" },    { "text/plain", "txt" },
		{ "application/pdf", "pdf" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(table[i][0], mime))
			return table[i][1];
	return "bin";
}

int transfer_output(const char *dir, size_t number, const json_t *o, char **ret_path,
		    struct cordon_error **reterr)
{
	const char *mime = json_string_value(json_object_get(o, "mime"));
	const char *data = json_string_value(json_object_get(o, "data"));
	const char *encoding = json_string_value(json_object_get(o, "encoding"));
	cleanup_free void *decoded = NULL;
	size_t len = data ? strlen(data) : 0;
	const void *bytes = data;

	if (!mime || !data)
		return err_set(reterr, CORDON_INVALID, "the output has no data");
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make the directory '%s'", dir);
	if (str_eq(encoding, "base64")) {
		int r = base64_decode(data, len, &decoded, &len, reterr);
		if (r < 0)
			return r;
		bytes = decoded;
	}
	cleanup_free char *path = str_printf("%s/output-%zu.%s", dir, number, ending_of(mime));
	if (!path)
		return err_errno(reterr, ENOMEM, "save an output");
	int r = file_save(path, 0644, bytes, len, reterr);
	if (r == 0)
		*ret_path = TAKE_PTR(path);
	return r;
}

int transfer_outputs(const struct cli *c, struct cordon_result *r, const char *dir,
		     struct cordon_error **reterr)
{
	cleanup_json json_t *j = NULL;
	const char *text = cordon_result_json(r);
	size_t i;
	json_t *o;

	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make the directory '%s'", dir);
	int done = json_parse(text, strlen(text), MAX_RESULT, &j, reterr);
	if (done < 0)
		return done;
	json_array_foreach(json_object_get(j, "outputs"), i, o)
	{
		cleanup_free char *path = NULL;

		done = transfer_output(dir, i + 1, o, &path, reterr);
		if (done < 0)
			return done;
		cli_error(c, "saved %s (%s)", path, json_string_value(json_object_get(o, "mime")));
	}
	return 0;
}

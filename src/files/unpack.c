/* files/unpack.c - see unpack.h. */
#include "files/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "files/nameset.h"
#include "files/path_lookup.h"
#include "files/tree_write.h"

enum { MAX_STATE = 1 << 20, READ_SIZE = 1 << 20 };
#define DEFAULT_MAX_BYTES (UINT64_C(4) << 30)
#define MAX_SPARSE (UINT64_C(1) << 40)
#define DEFAULT_MAX_ENTRIES UINT64_C(1000000)

/* Values in the set of names. */
enum { SEEN_OTHER, SEEN_DIRECTORY, SEEN_FILE };

struct unpacking {
	struct workspace *ws; /* NULL: only check, or list */
	struct unpack_options opts;
	unpack_read_fn read;
	void *arg;
	struct cordon_error *read_error;
	struct archive *a;
	struct nameset seen;
	struct tree_write writer;
	struct unpack_report report;
	int into_fd;
	uint64_t entries;
	unpack_entry_fn fn;
	void *fn_arg;
};

/* Where an entry goes. */
struct spot {
	char name[PATH_MAX]; /* plain: no ".", "..", double or outer slashes */
	int base_fd;
	const char *rel; /* within name; "": the base itself */
};

static void unpacking_done(struct unpacking *u)
{
	if (u->a)
		(void)archive_read_free(u->a);
	nameset_done(&u->seen);
	tree_write_done(&u->writer);
	close_fdp(&u->into_fd);
	unpack_report_done(&u->report);
	cordon_error_free(u->read_error);
}

void unpack_report_done(struct unpack_report *r)
{
	skipped_done(&r->skipped);
	free(r->state);
	*r = (struct unpack_report){ 0 };
}

char *unpack_report_json(const struct unpack_report *r)
{
	cleanup_json json_t *j =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:O}", "files", (json_int_t)r->files,
			  "directories", (json_int_t)r->directories, "links", (json_int_t)r->links,
			  "bytes", (json_int_t)r->bytes, "skipped_count",
			  (json_int_t)r->skipped.count, "skipped", r->skipped.entries);
	return j ? json_text(j, NULL) : NULL;
}

static int skip(struct unpacking *u, const char *name, const char *reason)
{
	return skipped_add(&u->report.skipped, name, reason);
}

static int skip_entry(struct unpacking *u, const char *name, const char *reason,
		      struct cordon_error **reterr)
{
	return skip(u, name, reason) < 0 ? err_set(reterr, CORDON_NOMEM, "out of memory") : 0;
}

/* The size of a sparse file may be far larger than its data. */
static bool is_too_large(const struct unpacking *u, struct archive_entry *e)
{
	if (!archive_entry_size_is_set(e))
		return false;
	uint64_t max = archive_entry_sparse_count(e) ? MAX_SPARSE : u->opts.max_bytes;
	return (uint64_t)archive_entry_size(e) > max;
}

/* Makes the name plain, or returns why that is impossible. */
static const char *plain_name(const char *name, char ret[static PATH_MAX])
{
	size_t len = 0;
	if (*name == '/')
		return "absolute path";
	while (*name) {
		size_t n = strcspn(name, "/");
		if (n == 2 && name[0] == '.' && name[1] == '.')
			return "leads upwards (..)";
		if (n > NAME_MAX || len + n + 2 > PATH_MAX)
			return "name too long";
		if (n && !(n == 1 && *name == '.')) {
			if (len)
				ret[len++] = '/';
			memcpy(ret + len, name, n);
			len += n;
		}
		name += n + (name[n] == '/');
	}
	ret[len] = '\0';
	return NULL;
}

/* NULL, or why there is no such place. rel stays NULL for directories above the trees. */
static const char *find_spot(const struct unpacking *u, const char *name, struct spot *s)
{
	s->rel = NULL;
	s->base_fd = -1;
	const char *reason = plain_name(name, s->name);
	if (reason)
		return reason;
	if (u->opts.into) {
		s->base_fd = u->into_fd;
		s->rel = s->name;
		return NULL;
	}
	if (!*s->name || str_eq(s->name, "home"))
		return NULL;
	for (int t = 0; t < WORKSPACE_TREES; t++) {
		const char *tree = path_lookup_tree_path(t) + 1;
		size_t n = strlen(tree);
		if (strncmp(s->name, tree, n) != 0 || (s->name[n] && s->name[n] != '/'))
			continue;
		s->base_fd = u->ws ? u->ws->tree_fd[t] : -1;
		s->rel = s->name + n + (s->name[n] == '/');
		return NULL;
	}
	return "outside the workspace";
}

static bool is_in_mount(const struct unpacking *u, const struct spot *s)
{
	const struct strlist *mounts = u->ws && !u->opts.into ? &u->ws->mounts : NULL;
	for (size_t i = 0; mounts && i < mounts->count; i++) {
		const char *mount = mounts->items[i] + 1;
		size_t n = strlen(mount);
		if (!strncmp(s->name, mount, n) && (!s->name[n] || s->name[n] == '/'))
			return true;
	}
	return false;
}

static const char *judge_type(const struct archive_entry *e)
{
	if (archive_entry_hardlink((struct archive_entry *)e))
		return NULL;
	switch (archive_entry_filetype((struct archive_entry *)e)) {
	case AE_IFREG:
	case AE_IFDIR:
	case AE_IFLNK:
		return NULL;
	case AE_IFBLK:
	case AE_IFCHR:
		return "device";
	default:
		return "neither file, directory nor link";
	}
}

/* Adds the name to those seen. 0 with *ret_reason NULL or the reason to skip the entry, or
 * -errno. */
static int judge_again(struct unpacking *u, const struct spot *s, bool is_dir, bool is_file,
		       const char **ret_reason)
{
	uint32_t *kind;
	int r = nameset_add(&u->seen, s->name, &kind);
	if (r < 0)
		return r;
	if (r == 1 && !(is_dir && *kind == SEEN_DIRECTORY))
		*ret_reason = "duplicate";
	else
		*kind = is_dir ? SEEN_DIRECTORY : is_file ? SEEN_FILE : SEEN_OTHER;
	return 0;
}

/* Why this errno means skipping an entry; NULL: the whole unpacking fails. */
static const char *reason_of(int r)
{
	switch (r) {
	case -ELOOP:
	case -ENOTDIR:
	case -EXDEV:
		return "through a link or a file";
	case -ENAMETOOLONG:
		return "name too long";
	case -EACCES:
		return "not writable there";
	default:
		return NULL;
	}
}

static int64_t mtime_of(struct archive_entry *e)
{
	int64_t sec = archive_entry_mtime(e);
	const int64_t most = INT64_MAX / 1000000000 - 1;
	if (!archive_entry_mtime_is_set(e) || sec > most || sec < -most)
		return 0;
	return sec * 1000000000 + archive_entry_mtime_nsec(e);
}

static int malformed(struct unpacking *u, struct cordon_error **reterr)
{
	if (u->read_error) {
		int r = -(int)cordon_error_code(u->read_error);
		if (reterr)
			*reterr = TAKE_PTR(u->read_error);
		return r;
	}
	const char *why = archive_error_string(u->a);
	return err_set(reterr, CORDON_INVALID, "malformed archive: %s", why ? why : "unknown");
}

/* Copies an entry's data to fd, or discards it if fd is -1. *ret_end: where it ends. */
static int copy_data(struct unpacking *u, int fd, uint64_t *ret_end, struct cordon_error **reterr)
{
	uint64_t end = 0;
	for (;;) {
		const void *bytes;
		size_t len;
		la_int64_t offset;
		int r = archive_read_data_block(u->a, &bytes, &len, &offset);
		if (r == ARCHIVE_EOF)
			break;
		if (r == ARCHIVE_RETRY)
			continue;
		if (r < ARCHIVE_WARN || offset < 0)
			return malformed(u, reterr);
		u->report.bytes += len;
		if (u->report.bytes > u->opts.max_bytes)
			return err_set(reterr, CORDON_LIMIT,
				       "the archive holds more than %llu bytes",
				       (unsigned long long)u->opts.max_bytes);
		size_t done = 0;
		while (fd >= 0 && done < len) {
			ssize_t n = pwrite(fd, (const char *)bytes + done, len - done,
					   offset + (off_t)done);
			if (n < 0 && errno != EINTR)
				return path_lookup_fail(u->ws, "the import", -errno, reterr);
			done += n > 0 ? (size_t)n : 0;
		}
		end = (uint64_t)offset + len;
	}
	*ret_end = end;
	return 0;
}

static int put_file(struct unpacking *u, const struct spot *s, struct archive_entry *e,
		    struct cordon_error **reterr)
{
	uint64_t end = 0, size = archive_entry_size_is_set(e) ? (uint64_t)archive_entry_size(e) : 0;
	cleanup_close int fd = -1;
	if (!u->opts.dry) {
		fd = tree_write_file(&u->writer, s->base_fd, s->rel);
		if (fd < 0)
			return fd;
	}
	u->report.files++;
	int r = copy_data(u, fd, &end, reterr);
	if (r < 0 || u->opts.dry)
		return r;
	return tree_write_finish_file(fd, size > end ? size : end, archive_entry_perm(e),
				      mtime_of(e));
}

static int put_hard_link(struct unpacking *u, const struct spot *s, struct archive_entry *e)
{
	struct spot from;
	const char *target = archive_entry_hardlink(e);
	const char *reason = find_spot(u, target, &from);
	const uint32_t *kind = reason || !from.rel ? NULL : nameset_find(&u->seen, from.name);
	if (!kind || *kind != SEEN_FILE)
		return skip(u, s->name, "hard link to what is not a file of this archive");
	uint32_t *mine = nameset_find(&u->seen, s->name);
	if (mine)
		*mine = SEEN_FILE;
	u->report.links++;
	return u->opts.dry ? 0
			   : tree_write_hard_link(&u->writer, s->base_fd, s->rel, from.base_fd,
						  from.rel);
}

static int put_link(struct unpacking *u, const struct spot *s, struct archive_entry *e)
{
	const char *target = archive_entry_symlink(e);
	if (!target || !*target || strlen(target) >= PATH_MAX)
		return skip(u, s->name, "link without a usable target");
	u->report.links++;
	return u->opts.dry ? 0
			   : tree_write_link(&u->writer, s->base_fd, s->rel, target, mtime_of(e));
}

static int put_directory(struct unpacking *u, const struct spot *s, struct archive_entry *e)
{
	u->report.directories++;
	if (u->opts.dry || (u->opts.into && !*s->rel))
		return 0;
	return tree_write_directory(&u->writer, s->base_fd, s->rel, archive_entry_perm(e),
				    mtime_of(e));
}

static int read_state(struct unpacking *u, struct archive_entry *e, struct cordon_error **reterr)
{
	la_int64_t size = archive_entry_size(e);
	if (u->report.state || size < 0 || size > MAX_STATE)
		return err_set(reterr, CORDON_INVALID, "malformed archive: its state is too large");
	cleanup_free char *text = malloc((size_t)size + 1);
	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	la_ssize_t n = archive_read_data(u->a, text, (size_t)size);
	if (n != size)
		return malformed(u, reterr);
	text[n] = '\0';
	cleanup_json json_t *j = NULL;
	int r = json_parse(text, (size_t)n, MAX_STATE, &j, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "malformed archive: its state");
	u->report.state = TAKE_PTR(text);
	return 0;
}

/* Creates an entry that was accepted. CORDON_* codes come with an error, errnos without. */
static int put_entry(struct unpacking *u, const struct spot *s, struct archive_entry *e,
		     struct cordon_error **reterr, bool *ret_is_errno)
{
	bool is_file = archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e);
	struct cordon_error *error = NULL;
	int r;
	if (archive_entry_hardlink(e))
		r = put_hard_link(u, s, e);
	else if (is_file)
		r = put_file(u, s, e, &error);
	else if (archive_entry_filetype(e) == AE_IFLNK)
		r = put_link(u, s, e);
	else
		r = put_directory(u, s, e);
	*ret_is_errno = !error;
	if (error && reterr)
		*reterr = error;
	else
		cordon_error_free(error);
	return r;
}

static int show_entry(struct unpacking *u, const struct spot *s, struct archive_entry *e)
{
	char name[PATH_MAX + 1] = "/";
	memcpy(name + 1, s->name, strlen(s->name) + 1);
	int type = (int)archive_entry_filetype(e);
	struct unpack_entry entry = {
		.name = name,
		.info = { .type = type == AE_IFDIR   ? CORDON_DIRECTORY
				  : type == AE_IFLNK ? CORDON_SYMLINK
						     : CORDON_FILE,
			  .size = type == AE_IFREG ? (uint64_t)archive_entry_size(e) : 0,
			  .mode = (uint32_t)archive_entry_perm(e),
			  .mtime_ns = mtime_of(e) },
		.link = archive_entry_hardlink(e) ? archive_entry_hardlink(e)
						  : archive_entry_symlink(e),
		.data = u->a,
	};
	return u->fn(&entry, u->fn_arg);
}

static const char *judge_spot(const struct unpacking *u, const struct spot *s, bool is_dir)
{
	if (!*s->rel && !is_dir)
		return "in place of a directory of the layout";
	return is_in_mount(u, s) ? "inside a mount" : NULL;
}

/* Decides whether the entry is created, and where. 0, 1: skip it, or -errno. */
static int judge_entry(struct unpacking *u, const char *name, struct archive_entry *e,
		       struct spot *s)
{
	int type = (int)archive_entry_filetype(e), r = 0;
	bool is_hard = archive_entry_hardlink(e) != NULL;
	bool is_dir = type == AE_IFDIR && !is_hard, is_file = type == AE_IFREG && !is_hard;
	const char *reason = find_spot(u, name, s);
	if (!reason)
		reason = judge_type(e);
	if (!reason && !s->rel)
		return 1; /* a directory above the trees: it exists */
	if (!reason)
		reason = judge_spot(u, s, is_dir);
	if (!reason)
		r = judge_again(u, s, is_dir, is_file, &reason);
	if (r == 0 && reason)
		r = skip(u, name, reason);
	return r < 0 ? r : reason != NULL;
}

static int take_entry(struct unpacking *u, struct archive_entry *e, struct cordon_error **reterr)
{
	struct spot s;
	const char *name = archive_entry_pathname(e);
	if (!name)
		name = archive_entry_pathname_utf8(e);
	if (!name)
		return skip_entry(u, "?", "unreadable name", reterr);
	if (!u->opts.into && str_eq(name, UNPACK_STATE_NAME))
		return read_state(u, e, reterr);
	int r = judge_entry(u, name, e, &s);
	if (r > 0)
		return 0;
	if (r < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (is_too_large(u, e))
		return err_set(reterr, CORDON_LIMIT, "'%s' is larger than %llu bytes", s.name,
			       (unsigned long long)u->opts.max_bytes);
	if (u->fn)
		return show_entry(u, &s, e);

	bool is_errno = true;
	r = put_entry(u, &s, e, reterr, &is_errno);
	if (r == 0 || !is_errno)
		return r;
	const char *reason = reason_of(r);
	if (reason)
		return skip_entry(u, name, reason, reterr);
	return path_lookup_fail(u->ws, s.name, r, reterr);
}

static la_ssize_t feed(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *u = arg;
	ssize_t n = u->read_error ? -1 : u->read(u->arg, ret, &u->read_error);
	if (n < 0)
		archive_set_error(a, EIO, "the stream could not be read");
	return n;
}

static int take_all(struct unpacking *u, struct cordon_error **reterr)
{
	u->a = archive_read_new();
	if (!u->a || archive_read_support_format_tar(u->a) != ARCHIVE_OK)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (archive_read_open(u->a, u, NULL, feed, NULL) != ARCHIVE_OK)
		return malformed(u, reterr);
	for (;;) {
		struct archive_entry *e;
		int r = archive_read_next_header(u->a, &e);
		if (r == ARCHIVE_EOF)
			break;
		if (r < ARCHIVE_WARN)
			return malformed(u, reterr);
		if (++u->entries > u->opts.max_entries)
			return err_set(reterr, CORDON_LIMIT,
				       "the archive has more than %llu entries",
				       (unsigned long long)u->opts.max_entries);
		r = take_entry(u, e, reterr);
		if (r != 0)
			return r;
	}
	int r = u->ws && !u->opts.dry ? tree_write_finish(&u->writer) : 0;
	return r < 0 ? path_lookup_fail(u->ws, "the import", r, reterr) : 0;
}

static int setup(struct unpacking *u, const struct unpack_options *opts)
{
	u->opts = *opts;
	uint64_t quota = u->ws ? u->ws->opts.max_bytes : 0;
	if (!u->opts.max_bytes)
		u->opts.max_bytes = quota ? quota : DEFAULT_MAX_BYTES;
	if (!u->opts.max_entries)
		u->opts.max_entries = DEFAULT_MAX_ENTRIES;
	nameset_init(&u->seen);
	tree_write_init(&u->writer, u->ws);
	u->into_fd = -1;
	return skipped_init(&u->report.skipped);
}

static int open_into(struct unpacking *u, struct cordon_error **reterr)
{
	cleanup_path_lookup struct path_lookup p = PATH_LOOKUP_INIT;
	unsigned flags = PATH_LOOKUP_FOLLOW | PATH_LOOKUP_PARENTS | PATH_LOOKUP_WRITE;
	int r = path_lookup_find(u->ws, u->opts.into, flags, &p);
	if (r == 0 && p.dir_fd < 0)
		r = -EROFS;
	if (r == 0 && *p.name && mkdirat(p.dir_fd, p.name, 0755) && errno != EEXIST)
		r = -errno;
	if (r == 0)
		u->into_fd = r = path_lookup_open_plain(p.dir_fd, p.name, O_PATH | O_DIRECTORY, 0);
	return r < 0 ? path_lookup_fail(u->ws, u->opts.into, r, reterr) : 0;
}

int unpack_stream(struct workspace *ws, const struct unpack_options *opts, unpack_read_fn read,
		  void *arg, struct unpack_report *ret, struct cordon_error **reterr)
{
	cleanup_owner struct owner owner = { 0 };
	int r = opts->is_rehydration ? path_lookup_enter_any(ws, &owner, reterr)
				     : path_lookup_enter(ws, &owner, reterr);
	if (r < 0)
		return r;
	CLEANUP(unpacking_done) struct unpacking u = { .ws = ws, .read = read, .arg = arg };
	if (setup(&u, opts) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r = opts->into ? open_into(&u, reterr) : 0;
	if (r == 0)
		r = take_all(&u, reterr);
	if (r < 0)
		return r;
	*ret = u.report;
	u.report = (struct unpack_report){ 0 };
	return 0;
}

int unpack_each(const struct unpack_options *opts, unpack_read_fn read, void *arg,
		unpack_entry_fn fn, void *fn_arg, struct cordon_error **reterr)
{
	CLEANUP(unpacking_done)
	struct unpacking u = { .read = read, .arg = arg, .fn = fn, .fn_arg = fn_arg };
	if (setup(&u, opts) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return take_all(&u, reterr);
}

ssize_t unpack_entry_data(const struct unpack_entry *e, void *bytes, size_t len)
{
	la_ssize_t n = archive_read_data(e->data, bytes, len);
	return n < 0 ? -1 : n;
}

struct fd_source {
	int fd;
	char *chunk;
};

static ssize_t read_fd(void *arg, const void **ret, struct cordon_error **reterr)
{
	struct fd_source *s = arg;
	ssize_t n = read(s->fd, s->chunk, READ_SIZE);
	while (n < 0 && errno == EINTR)
		n = read(s->fd, s->chunk, READ_SIZE);
	if (n < 0)
		(void)err_errno(reterr, errno, "read the archive");
	*ret = s->chunk;
	return n;
}

int unpack_from_fd(struct workspace *ws, const char *path, int tar_fd, char **ret_report_json,
		   struct cordon_error **reterr)
{
	cleanup_free char *chunk = malloc(READ_SIZE);
	cleanup_unpack_report struct unpack_report report = { 0 };
	if (!chunk)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	struct fd_source source = { tar_fd, chunk };
	struct unpack_options opts = { .into = path };
	int r = unpack_stream(ws, &opts, read_fd, &source, &report, reterr);
	if (r < 0 || !ret_report_json)
		return r;
	*ret_report_json = unpack_report_json(&report);
	return *ret_report_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

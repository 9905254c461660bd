/* files/intake.c - see intake.h. */
#include "files/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "files/content.h"
#include "files/listing.h"
#include "files/path_lookup.h"
#include "files/tree_write.h"

struct intake {
	const struct intake_options *o;
	struct listing l;
	struct tree_write writer;
	int source_fd; /* the directory, or the parent of the file */
	int base_fd;   /* destination */
	bool owns_base;
	char top[PATH_MAX]; /* name of the copy in base_fd; "" for base_fd itself */
	char *scratch;
	uint64_t bytes;
};

static void intake_done(struct intake *in)
{
	listing_done(&in->l);
	tree_write_done(&in->writer);
	close_fdp(&in->source_fd);
	if (in->owns_base)
		close_fdp(&in->base_fd);
	free(in->scratch);
}

bool intake_link_stays(const char *rel, const char *target)
{
	int depth = 0;
	if (*target == '/')
		return false;
	for (const char *s = rel; *s; s++)
		depth += *s == '/';
	while (*target) {
		size_t n = strcspn(target, "/");
		if (n == 2 && target[0] == '.' && target[1] == '.')
			depth--;
		else if (n && !(n == 1 && *target == '.'))
			depth++;
		if (depth < 0)
			return false;
		target += n + (target[n] == '/');
	}
	return true;
}

void intake_hash_bytes(const void *bytes, size_t len, unsigned char ret[static INTAKE_HASH_SIZE])
{
	(void)crypto_generichash(ret, INTAKE_HASH_SIZE, bytes, len, NULL, 0);
}

/* Copies and hashes; to -1: only hashes. */
static int pump(int from, int to, bool hashes, char *scratch, uint64_t max, uint64_t *ret_size,
		unsigned char ret[static INTAKE_HASH_SIZE])
{
	crypto_generichash_state s;
	uint64_t size = 0;
	(void)crypto_generichash_init(&s, NULL, 0, INTAKE_HASH_SIZE);
	for (;;) {
		ssize_t n = read(from, scratch, CONTENT_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (uint64_t)n;
		if (size > max)
			return -EFBIG;
		if (hashes)
			(void)crypto_generichash_update(&s, (unsigned char *)scratch,
							(unsigned long long)n);
		int r = to >= 0 ? file_write_all(to, scratch, (size_t)n) : 0;
		if (r < 0)
			return r;
	}
	(void)crypto_generichash_final(&s, ret, INTAKE_HASH_SIZE);
	*ret_size = size;
	return 0;
}

int intake_hash_fd(int fd, unsigned char ret[static INTAKE_HASH_SIZE])
{
	uint64_t size;
	cleanup_free char *scratch = malloc(CONTENT_CHUNK);
	return scratch ? pump(fd, -1, true, scratch, UINT64_MAX, &size, ret) : -ENOMEM;
}

static int enter(const struct intake *in, struct owner *owner)
{
	const struct intake_options *o = in->o;
	return o->ws ? owner_enter(owner, o->ws->opts.owner_uid, o->ws->opts.owner_gid)
		     : owner_enter(owner, o->owner_uid, o->owner_gid);
}

/* The path of an entry in base_fd. */
static int name_of(const struct intake *in, const char *rel, char ret[static PATH_MAX])
{
	size_t n = strlen(in->top), m = strlen(rel);
	if (n + 1 + m + 1 > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret, in->top, n);
	if (n && m)
		ret[n++] = '/';
	memcpy(ret + n, rel, m + 1);
	return 0;
}

static int put_file(struct intake *in, const char *from_rel, const char *to, struct intake_entry *e)
{
	/* Reads with our own ids, writes with the guest's. */
	cleanup_close int fd =
		path_lookup_open_plain(in->source_fd, from_rel, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	cleanup_owner struct owner owner = { 0 };
	int r = enter(in, &owner);
	if (r < 0)
		return r;
	cleanup_close int out = tree_write_file(&in->writer, in->base_fd, to);
	if (out < 0)
		return out;
	uint64_t max = in->o->max_bytes ? in->o->max_bytes - in->bytes : UINT64_MAX;
	r = pump(fd, out, in->o->seen != NULL, in->scratch, max, &e->size, e->hash);
	if (r < 0)
		return r;
	in->bytes += e->size;
	e->mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	return tree_write_finish_file(out, e->size, st.st_mode & 0777, e->mtime_ns);
}

static int put_link(struct intake *in, const char *from_rel, const char *to, struct intake_entry *e)
{
	char target[PATH_MAX + 1];
	cleanup_close int fd = path_lookup_open_plain(in->source_fd, from_rel, O_PATH, 0);
	if (fd < 0)
		return fd;
	ssize_t n = readlinkat(fd, "", target, PATH_MAX);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (!in->o->links_may_lead_out && !intake_link_stays(e->rel, target))
		return -EXDEV;
	intake_hash_bytes(target, (size_t)n, e->hash);
	e->size = (uint64_t)n;
	cleanup_owner struct owner owner = { 0 };
	int r = enter(in, &owner);
	return r < 0 ? r : tree_write_link(&in->writer, in->base_fd, to, target, e->mtime_ns);
}

static bool is_left_out(const struct intake *in, const char *rel)
{
	const struct strlist *l = in->o->leave_out;
	for (size_t i = 0; l && i < l->count; i++) {
		size_t n = strlen(l->items[i]);
		if (!strncmp(rel, l->items[i], n) && (!rel[n] || rel[n] == '/'))
			return true;
	}
	return false;
}

static int put_entry(struct intake *in, const char *from_rel, struct intake_entry *e)
{
	char to[PATH_MAX];
	int r = name_of(in, e->rel, to);
	if (r < 0)
		return r;
	if (S_ISREG(e->mode)) {
		r = put_file(in, from_rel, to, e);
	} else if (S_ISLNK(e->mode)) {
		r = put_link(in, from_rel, to, e);
	} else if (S_ISDIR(e->mode)) {
		cleanup_owner struct owner owner = { 0 };
		r = enter(in, &owner);
		r = r < 0 ? r
			  : tree_write_directory(&in->writer, in->base_fd, to,
						 (e->mode & 0777) | 0700, e->mtime_ns);
		e->size = 0;
	} else {
		return 0; /* sockets, FIFOs and devices are not copied */
	}
	return r;
}

static int fail(const struct intake *in, const char *rel, int r, struct cordon_error **reterr)
{
	const char *host = in->o->host_path;
	if (r == -EXDEV)
		return err_set(reterr, CORDON_DENIED, "the link '%s' leads out of '%s'", rel, host);
	if (r == -EFBIG)
		return err_set(reterr, CORDON_LIMIT, "'%s' holds more than %llu bytes", host,
			       (unsigned long long)in->o->max_bytes);
	if (r == -E2BIG)
		return err_set(reterr, CORDON_LIMIT, "'%s' holds more than %d files", host,
			       LISTING_MAX_ENTRIES);
	if (r == -ENOSPC && in->o->ws)
		return path_lookup_fail(in->o->ws, in->o->guest_path, r, reterr);
	return err_errno(reterr, -r, "copy '%s%s%s'", host, *rel ? "/" : "", rel);
}

static int copy_all(struct intake *in, struct cordon_error **reterr)
{
	for (size_t i = 0; i < in->l.count; i++) {
		const struct listing_entry *l = &in->l.entries[i];
		char path[PATH_MAX];
		if (!listing_path(&in->l, i, sizeof(path), path))
			return fail(in, "", -ENAMETOOLONG, reterr);
		const char *rel = str_eq(path, ".") ? "" : path;
		if (*rel && is_left_out(in, rel))
			continue;
		struct intake_entry e = { .rel = rel, .mode = l->mode, .mtime_ns = l->mtime_ns };
		int r = put_entry(in, path, &e);
		if (r < 0)
			return fail(in, rel, r, reterr);
		r = in->o->seen && *rel ? in->o->seen(&e, in->o->arg) : 0;
		if (r != 0)
			return r;
	}
	cleanup_owner struct owner owner = { 0 };
	int r = enter(in, &owner);
	r = r < 0 ? r : tree_write_finish(&in->writer);
	return r < 0 ? fail(in, "", r, reterr) : 0;
}

static int copy_single(struct intake *in, const char *name, const struct stat *st,
		       struct cordon_error **reterr)
{
	struct intake_entry e = { .rel = "", .mode = st->st_mode };
	int r = put_entry(in, name, &e);
	if (r < 0)
		return fail(in, "", r, reterr);
	return in->o->seen ? in->o->seen(&e, in->o->arg) : 0;
}

static int find_target(struct intake *in, struct cordon_error **reterr)
{
	const struct intake_options *o = in->o;
	if (!o->ws) {
		in->base_fd = o->dir_fd;
		return str_copy(in->top, sizeof(in->top), o->guest_path)
			       ? 0
			       : err_set(reterr, CORDON_INVALID, "the name is too long");
	}
	cleanup_owner struct owner owner = { 0 };
	int r = path_lookup_enter(o->ws, &owner, reterr);
	if (r < 0)
		return r;
	struct path_lookup p = PATH_LOOKUP_INIT;
	r = path_lookup_find(o->ws, o->guest_path,
			     PATH_LOOKUP_FOLLOW | PATH_LOOKUP_PARENTS | PATH_LOOKUP_WRITE, &p);
	if (r == 0 && p.dir_fd < 0)
		r = -EROFS;
	if (r < 0)
		return path_lookup_fail(o->ws, o->guest_path, r, reterr);
	in->base_fd = p.dir_fd;
	in->owns_base = !p.is_borrowed;
	memcpy(in->top, p.name, sizeof(p.name));
	return 0;
}

static bool has_way_up(const char *path)
{
	for (; *path; path += strcspn(path, "/"), path += *path == '/')
		if (!strncmp(path, "..", 2) && (!path[2] || path[2] == '/'))
			return true;
	return false;
}

int intake_copy(const struct intake_options *o, struct cordon_error **reterr)
{
	CLEANUP(intake_done) struct intake in = { .o = o, .source_fd = -1, .base_fd = -1 };
	in.l.base_fd = -1;
	tree_write_init(&in.writer, o->ws);
	if (has_way_up(o->host_path))
		return err_set(reterr, CORDON_INVALID, "'%s' must not contain '..'", o->host_path);
	struct stat st;
	if (stat(o->host_path, &st))
		return err_errno(reterr, errno, "open '%s'", o->host_path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is neither a file nor a directory",
			       o->host_path);
	in.scratch = malloc(CONTENT_CHUNK);
	if (!in.scratch)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = find_target(&in, reterr);
	if (r < 0)
		return r;
	cleanup_free char *real = realpath(o->host_path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	if (!slash)
		return err_errno(reterr, errno, "open '%s'", o->host_path);
	if (S_ISREG(st.st_mode)) {
		*slash = '\0';
		in.source_fd = open(*real ? real : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		return in.source_fd < 0 ? fail(&in, "", -errno, reterr)
					: copy_single(&in, slash + 1, &st, reterr);
	}
	in.source_fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
	static const char *const self[] = { "." };
	r = in.source_fd < 0 ? -errno : listing_read(&in.l, in.source_fd, self, 1, false);
	return r < 0 ? fail(&in, "", r, reterr) : copy_all(&in, reterr);
}

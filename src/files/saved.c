/* files/saved.c - saved workspaces and exports as files: the part of the public API that needs no
 * session. */
#include <cordon/files.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "files/export.h"
#include "files/intake.h"
#include "files/linediff.h"
#include "files/nameset.h"
#include "files/path_lookup.h"
#include "files/store.h"

/* TEXT_MAX, TEXTS_MAX: texts of one file and of a whole export that are compared by lines.
 * DIFF_MAX: the longest diff that is shown. */
enum { CHUNK = 64 * 1024, TEXT_MAX = 256 << 10, TEXTS_MAX = 32 << 20, DIFF_MAX = 64 << 10 };

int cordon_saved_list(char **ret_json, struct cordon_error **reterr)
{
	return store_list(NULL, ret_json, reterr);
}

int cordon_saved_open(const char *name, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_free char *path = NULL;
	int r = 0;
	if (!strchr(name, '/') && !str_ends(name, ".cws"))
		r = store_find(NULL, name, &path, reterr);
	if (r < 0)
		return r;
	int fd = open(path ? path : name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && path && errno == ENOENT)
		return err_set(reterr, CORDON_NOT_FOUND, "no workspace '%s' is saved", name);
	if (fd < 0)
		return err_errno(reterr, errno, "open '%s'", path ? path : name);
	*ret_fd = fd;
	return 0;
}

int cordon_saved_remove(const char *name, struct cordon_error **reterr)
{
	cleanup_store struct store *s = NULL;
	int r = store_open(NULL, name, &s, reterr);
	if (r < 0)
		return r;
	if (access(store_path(s), F_OK))
		return err_set(reterr, CORDON_NOT_FOUND, "no workspace '%s' is saved", name);
	return store_clear(s, reterr);
}

/* Unpacks the import into an empty directory of ours, which checks its entries, and saves the
 * result. */
static int import_through(const char *dir, struct store *s, int fd, char **ret_report_json,
			  struct cordon_error **reterr)
{
	cleanup_close int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_workspace struct workspace *ws = NULL;
	cleanup_free char *state = NULL;
	if (root < 0)
		return err_errno(reterr, errno, "open '%s'", dir);
	struct workspace_options o = { .root_fd = root,
				       .owner_uid = geteuid(),
				       .owner_gid = getegid() };
	int r = workspace_open(&o, &ws, reterr);
	if (r == 0)
		r = export_read(ws, fd, false, ret_report_json, &state, reterr);
	if (r == 0)
		r = store_save(s, ws, state, reterr);
	for (int t = 0; ws && t < WORKSPACE_TREES; t++)
		(void)removal_at(ws, ws->root_fd, path_lookup_tree_name(t));
	return r;
}

int cordon_saved_import(const char *name, int fd, char **ret_report_json,
			struct cordon_error **reterr)
{
	cleanup_store struct store *s = NULL;
	const char *tmp = getenv("TMPDIR");
	cleanup_free char *dir =
		str_printf("%s/cordon-import-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	int r = dir ? store_open(NULL, name, &s, reterr)
		    : err_set(reterr, CORDON_NOMEM, "out of memory");
	if (r < 0)
		return r;
	if (!mkdtemp(dir))
		return err_errno(reterr, errno, "make a directory for the import");
	r = import_through(dir, s, fd, ret_report_json, reterr);
	(void)rmdir(dir);
	return r;
}

struct listing_call {
	cordon_export_fn fn;
	void *arg;
};

static int list_one(const struct unpack_entry *e, void *arg)
{
	const struct listing_call *c = arg;
	return c->fn(e->name, &e->info, e->link, c->arg);
}

int cordon_export_list(int fd, cordon_export_fn fn, void *arg, struct cordon_error **reterr)
{
	struct listing_call c = { fn, arg };
	return export_each(fd, list_one, &c, reterr);
}

struct reading {
	const char *path;
	int out_fd;
	bool is_found;
	struct cordon_error *error;
};

enum { ENOUGH = 1 };

static int read_one(const struct unpack_entry *e, void *arg)
{
	struct reading *r = arg;
	char chunk[CHUNK];
	if (!str_eq(e->name, r->path))
		return 0;
	r->is_found = true;
	if (e->info.type != CORDON_FILE)
		return err_set(&r->error, CORDON_INVALID, "'%s' is not a file", r->path);
	for (;;) {
		ssize_t n = unpack_entry_data(e, chunk, sizeof(chunk));
		if (n < 0)
			return err_set(&r->error, CORDON_INVALID, "'%s' cannot be read", r->path);
		if (n == 0)
			return ENOUGH;
		int w = file_write_all(r->out_fd, chunk, (size_t)n);
		if (w < 0)
			return err_errno(&r->error, -w, "write '%s'", r->path);
	}
}

int cordon_export_read(int fd, const char *path, int out_fd, struct cordon_error **reterr)
{
	cleanup_free char *full = str_printf("%s%s", *path == '/' ? "" : "/home/user/", path);
	if (!full)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	struct reading r = { .path = full, .out_fd = out_fd };
	int e = export_each(fd, read_one, &r, reterr);
	if (e < 0) {
		if (r.error && reterr && !*reterr)
			*reterr = r.error;
		else
			cordon_error_free(r.error);
		return e;
	}
	return r.is_found ? 0
			  : err_set(reterr, CORDON_NOT_FOUND, "ENOENT: no such file: '%s'", full);
}

/* One entry of an export. */
struct holding {
	struct cordon_file_info info;
	unsigned char hash[INTAKE_HASH_SIZE];
	char *path;
	struct buf text; /* a small text; no data: not a text */
	bool is_text;
	bool is_seen;
};

struct holdings {
	struct holding *items;
	size_t count, cap;
	size_t text_bytes; /* total size of all texts */
	struct nameset index;
};

static void holdings_done(struct holdings *h)
{
	for (size_t i = 0; i < h->count; i++) {
		free(h->items[i].path);
		buf_done(&h->items[i].text);
	}
	free(h->items);
	nameset_done(&h->index);
}

static int hash_entry(const struct unpack_entry *e, unsigned char ret[static INTAKE_HASH_SIZE],
		      struct buf *ret_text)
{
	if (e->link) {
		intake_hash_bytes(e->link, strlen(e->link), ret);
		return 0;
	}
	crypto_generichash_state s;
	char chunk[CHUNK];
	ssize_t n;
	(void)crypto_generichash_init(&s, NULL, 0, INTAKE_HASH_SIZE);
	while ((n = unpack_entry_data(e, chunk, sizeof(chunk))) > 0) {
		(void)crypto_generichash_update(&s, (unsigned char *)chunk, (unsigned long long)n);
		if (ret_text->max)
			(void)buf_add(ret_text, chunk, (size_t)n);
	}
	(void)crypto_generichash_final(&s, ret, INTAKE_HASH_SIZE);
	return n < 0 ? -1 : 0;
}

static int hold(const struct unpack_entry *e, void *arg)
{
	struct holdings *h = arg;
	uint32_t *number;
	if (h->count == h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		void *p = mem_grow(h->items, cap, sizeof(*h->items));
		if (!p)
			return -CORDON_NOMEM;
		h->items = p;
		h->cap = cap;
	}
	struct holding *one = &h->items[h->count];
	*one = (struct holding){ .info = e->info, .path = str_dup(e->name) };
	if (!one->path)
		return -CORDON_NOMEM;
	h->count++;
	bool may_be_text = e->info.type == CORDON_FILE && e->info.size <= TEXT_MAX &&
			   h->text_bytes + e->info.size <= TEXTS_MAX;
	buf_init(&one->text, may_be_text ? TEXT_MAX : 0);
	if (e->info.type != CORDON_DIRECTORY && hash_entry(e, one->hash, &one->text) < 0)
		return -CORDON_INVALID;
	const char *text = buf_text(&one->text);
	one->is_text = may_be_text && one->text.len == e->info.size &&
		       !memchr(text, '\0', one->text.len) && str_is_utf8(text, one->text.len);
	if (!one->is_text)
		buf_done(&one->text);
	h->text_bytes += one->text.len;
	if (nameset_add(&h->index, e->name, &number) < 0)
		return -CORDON_NOMEM;
	*number = (uint32_t)h->count;
	return 0;
}

static const char *change_of(const struct holding *old, const struct holding *new)
{
	if (!old)
		return "added";
	if (!new)
		return "deleted";
	if (old->info.type != new->info.type)
		return "type";
	if (memcmp(old->hash, new->hash, sizeof(old->hash)) != 0)
		return "modified";
	return old->info.mode != new->info.mode ? "mode" : NULL;
}

/* Adds the changed lines if both sides are small texts. */
static int note_lines(json_t *item, const struct holding *old, const struct holding *new)
{
	cleanup_buf struct buf text = { 0 };
	struct linediff d;

	if ((old && !old->is_text) || (new && !new->is_text))
		return 0;
	buf_init(&text, DIFF_MAX);
	if (linediff_compare(old ? buf_text(&old->text) : "", old ? old->text.len : 0,
			     new ? buf_text(&new->text) : "", new ? new->text.len : 0, &d,
			     &text) < 0)
		return -CORDON_NOMEM;
	if (d.added == 0 && d.removed == 0)
		return 0;
	return json_object_set_new(item, "lines_added", json_integer(d.added)) ||
			       json_object_set_new(item, "lines_removed",
						   json_integer(d.removed)) ||
			       json_object_set_new(item, "diff",
						   json_string_lossy(buf_text(&text), text.len))
		       ? -CORDON_NOMEM
		       : 0;
}

static int note(json_t *list, const struct holding *old, const struct holding *new)
{
	const struct holding *any = new ? new : old;
	const char *change = change_of(old, new);
	if (!change || !any)
		return 0;
	const char *path = any->path;
	json_t *item = json_pack("{s:o, s:s}", "path", json_string_lossy(path, strlen(path)),
				 "change", change);
	if (item && old)
		json_object_set_new(item, "old_size", json_integer((json_int_t)old->info.size));
	if (item && new)
		json_object_set_new(item, "size", json_integer((json_int_t) new->info.size));
	if (item && note_lines(item, old, new) < 0) {
		json_decref(item);
		return -CORDON_NOMEM;
	}
	return item && !json_array_append_new(list, item) ? 0 : -CORDON_NOMEM;
}

static int collect(int fd, struct holdings *h, struct cordon_error **reterr)
{
	nameset_init(&h->index);
	int r = export_each(fd, hold, h, reterr);
	return r < 0 && reterr && !*reterr
		       ? err_set(reterr, (enum cordon_code) - r, "read the export")
		       : r;
}

int cordon_export_diff(int old_fd, int new_fd, char **ret_json, struct cordon_error **reterr)
{
	CLEANUP(holdings_done) struct holdings old = { 0 };
	CLEANUP(holdings_done) struct holdings new = { 0 };
	cleanup_json json_t *list = json_array();
	int r = collect(old_fd, &old, reterr);
	if (r == 0)
		r = collect(new_fd, &new, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < new.count; i++) {
		const uint32_t *at = nameset_find(&old.index, new.items[i].path);
		if (at)
			old.items[*at - 1].is_seen = true;
		r = note(list, at ? &old.items[*at - 1] : NULL, &new.items[i]);
	}
	for (size_t i = 0; r == 0 && i < old.count; i++)
		r = old.items[i].is_seen ? 0 : note(list, &old.items[i], NULL);
	*ret_json = r == 0 ? json_text(list, NULL) : NULL;
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

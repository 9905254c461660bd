/* files/review.c - see review.h. */
#include "files/review.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "files/change.h"
#include "files/linediff.h"
#include "files/path_lookup.h"

enum { MAX_TEXT = 1 << 20, MAX_DIFF = 64 * 1024 };

static int remember(const struct intake_entry *e, void *arg)
{
	struct review *r = arg;
	if (r->origin_count == r->origin_cap) {
		size_t cap = r->origin_cap ? r->origin_cap * 2 : 64;
		void *p = mem_grow(r->origins, cap, sizeof(*r->origins));
		if (!p)
			return -CORDON_NOMEM;
		r->origins = p;
		r->origin_cap = cap;
	}
	uint32_t *number;
	char *rel = str_dup(e->rel);
	if (!rel || nameset_add(&r->index, rel, &number) < 0) {
		free(rel);
		return -CORDON_NOMEM;
	}
	struct change_origin *o = &r->origins[r->origin_count++];
	*o = (struct change_origin){ .rel = rel, .mode = e->mode, .size = e->size };
	memcpy(o->hash, e->hash, sizeof(o->hash));
	*number = (uint32_t)r->origin_count;
	return 0;
}

int review_open(const struct review_options *o, struct review **ret, struct cordon_error **reterr)
{
	cleanup_review struct review *r = mem_alloc(sizeof(*r));
	if (!r)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r->host_fd = -1;
	r->ws = o->ws;
	nameset_init(&r->index);
	r->host_dir = str_dup(o->host_dir);
	r->guest_dir = str_dup(o->guest_dir);
	if (!r->host_dir || !r->guest_dir)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r->host_fd = open(o->host_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->host_fd < 0)
		return err_errno(reterr, errno, "open the project '%s'", o->host_dir);
	struct intake_options in = { .host_path = o->host_dir,
				     .ws = o->ws,
				     .guest_path = o->guest_dir,
				     .leave_out = o->leave_out,
				     .links_may_lead_out = true,
				     .max_bytes = o->max_bytes,
				     .seen = remember,
				     .arg = r };
	int e = intake_copy(&in, reterr);
	if (e < 0)
		return e == -CORDON_NOMEM && reterr && !*reterr
			       ? err_set(reterr, CORDON_NOMEM, "out of memory")
			       : err_wrap(reterr, e, "copy the project");
	*ret = TAKE_PTR(r);
	return 0;
}

void review_use(struct review *r, struct workspace *ws)
{
	r->ws = ws;
}

struct review *review_close(struct review *r)
{
	if (!r)
		return NULL;
	close_fdp(&r->host_fd);
	for (size_t i = 0; i < r->origin_count; i++)
		free(r->origins[i].rel);
	free(r->origins);
	nameset_done(&r->index);
	free(r->host_dir);
	free(r->guest_dir);
	free(r);
	return NULL;
}

static const char *type_name(uint32_t mode)
{
	return S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "file";
}

static const char *const kind_names[] = {
	[CHANGE_ADDED] = "added", [CHANGE_MODIFIED] = "modified", [CHANGE_DELETED] = "deleted",
	[CHANGE_TYPE] = "type",   [CHANGE_MODE] = "mode",
};

/* 1: the whole file is a small text; 0: it is not; -ENOMEM. */
static int read_text(int fd, struct buf *ret)
{
	buf_init(ret, MAX_TEXT);
	int r = fd < 0 ? fd : file_read_to_end(fd, ret, NULL);
	if (r == -CORDON_NOMEM)
		return -ENOMEM;
	return r == 0 && (!ret->len ||
			  (!memchr(ret->data, '\0', ret->len) && str_is_utf8(ret->data, ret->len)));
}

/* Reads the host's file, if it is a small text and still the one that was copied. */
static int read_old(const struct review *r, const struct change *c, struct buf *ret)
{
	unsigned char hash[INTAKE_HASH_SIZE];
	cleanup_close int fd = path_lookup_open_plain(r->host_fd, c->rel, O_RDONLY | O_NONBLOCK, 0);
	int e = read_text(fd, ret);
	if (e <= 0)
		return e;
	intake_hash_bytes(buf_text(ret), ret->len, hash);
	return memcmp(hash, c->was->hash, sizeof(hash)) == 0;
}

static int read_new(const struct review *r, int guest_fd, const char *rel, struct buf *ret)
{
	cleanup_owner struct owner owner = { 0 };
	if (owner_enter(&owner, r->ws->opts.owner_uid, r->ws->opts.owner_gid) < 0)
		return 0;
	cleanup_close int fd = path_lookup_open_forced(guest_fd, rel, O_RDONLY);
	return read_text(fd, ret);
}

/* Adds the changed lines if both sides are small texts. */
static int add_text(const struct review *r, int guest_fd, const struct change *c, json_t *item)
{
	cleanup_buf struct buf old = { 0 }, new = { 0 }, text = { 0 };
	bool had = c->was && S_ISREG(c->was->mode), has = S_ISREG(c->mode);
	if (c->kind == CHANGE_MODE || (!had && !has))
		return 0;
	int e = had ? read_old(r, c, &old) : 1;
	if (e > 0 && has)
		e = read_new(r, guest_fd, c->rel, &new);
	if (e <= 0)
		return e;
	struct linediff d;
	buf_init(&text, MAX_DIFF);
	if (linediff_compare(buf_text(&old), old.len, buf_text(&new), new.len, &d, &text) < 0)
		return -ENOMEM;
	if (json_object_set_new(item, "lines_added", json_integer(d.added)) ||
	    json_object_set_new(item, "lines_removed", json_integer(d.removed)) ||
	    json_object_set_new(item, "diff", json_string_lossy(buf_text(&text), text.len)))
		return -ENOMEM;
	return 0;
}

static int add_change(const struct review *r, int guest_fd, const struct change *c, json_t *list)
{
	char mode[8];
	cleanup_json json_t *item = json_pack(
		"{s:o, s:s, s:s}", "path", json_string_lossy(c->rel, strlen(c->rel)), "change",
		kind_names[c->kind], "type", type_name(c->mode ? c->mode : c->was->mode));
	if (!item)
		return -ENOMEM;
	if (c->mode) {
		snprintf(mode, sizeof(mode), "%04o", c->mode & 07777);
		if (json_object_set_new(item, "mode", json_string(mode)) ||
		    (S_ISREG(c->mode) &&
		     json_object_set_new(item, "size", json_integer((json_int_t)c->size))))
			return -ENOMEM;
	}
	if (c->was) {
		snprintf(mode, sizeof(mode), "%04o", c->was->mode & 07777);
		if (json_object_set_new(item, "old_type", json_string(type_name(c->was->mode))) ||
		    json_object_set_new(item, "old_mode", json_string(mode)) ||
		    (S_ISREG(c->was->mode) &&
		     json_object_set_new(item, "old_size", json_integer((json_int_t)c->was->size))))
			return -ENOMEM;
	}
	int e = add_text(r, guest_fd, c, item);
	return e < 0 || json_array_append(list, item) ? -ENOMEM : 0;
}

int review_diff(struct review *r, char **ret_json, struct cordon_error **reterr)
{
	cleanup_change_list struct change_list changes = { 0 };
	cleanup_json json_t *list = json_array(), *all = NULL;
	cleanup_close int guest_fd = -1;
	int e = change_look(r, &guest_fd, &changes, reterr);
	if (e < 0)
		return e;
	json_int_t counts[CHANGE_MODE + 1] = { 0 };
	for (size_t i = 0; i < changes.count; i++) {
		counts[changes.items[i].kind]++;
		if (add_change(r, guest_fd, &changes.items[i], list) < 0)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	all = json_pack("{s:I, s:I, s:I, s:O}", "added", counts[CHANGE_ADDED], "modified",
			counts[CHANGE_MODIFIED] + counts[CHANGE_TYPE] + counts[CHANGE_MODE],
			"deleted", counts[CHANGE_DELETED], "changes", list);
	*ret_json = all ? json_text(all, NULL) : NULL;
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* guest/mounts.c - see mounts.h. A snapshot is read while the launch is prepared: the guest never
 * sees the host's directory, and later changes there do not reach it. Links are copied as links. */
#include "guest/mounts.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"

/* For all snapshots of a policy together. Larger ones should be live read-only mounts. */
enum { SNAPSHOT_MAX_BYTES = 48 << 20, SNAPSHOT_MAX_FILES = 4000 };

bool mounts_is_inside(const char *guest_path)
{
	static const char *const trees[] = { "/home/user", "/tmp", "/workspace" };

	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(trees[i]);
		if (strncmp(guest_path, trees[i], len) == 0 &&
		    (guest_path[len] == '/' || guest_path[len] == '\0'))
			return true;
	}
	return false;
}

struct tally {
	size_t bytes, files;
};

static int add_file(struct launch *l, const char *host, const char *guest, struct tally *t,
		    struct cordon_error **reterr)
{
	cleanup_buf struct buf bytes = { 0 };

	buf_init(&bytes, SNAPSHOT_MAX_BYTES);
	int r = file_load(host, SNAPSHOT_MAX_BYTES, &bytes, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "mount '%s'", host);
	t->bytes += bytes.len;
	t->files++;
	if (t->bytes > SNAPSHOT_MAX_BYTES || t->files > SNAPSHOT_MAX_FILES)
		return err_set(
			reterr, CORDON_LIMIT,
			"the snapshots of the policy's mounts are over %d MiB or %d files; mount "
			"'%s' live and read-only (mode ro) instead",
			SNAPSHOT_MAX_BYTES >> 20, SNAPSHOT_MAX_FILES, host);
	if (launch_file(l, guest, buf_text(&bytes), bytes.len, 0444) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	return 0;
}

static int add_link(struct launch *l, const char *host, const char *guest)
{
	char target[PATH_MAX];
	ssize_t n = readlink(host, target, sizeof(target) - 1);

	if (n < 0)
		return -CORDON_OS;
	target[n] = '\0';
	return launch_link(l, target, guest);
}

static int add_entry(struct launch *l, const FTSENT *e, const struct policy_mount *m, size_t base,
		     struct tally *t, struct cordon_error **reterr)
{
	cleanup_free char *guest = str_printf("%s%s", m->guest, e->fts_path + base);

	if (!guest)
		return err_errno(reterr, ENOMEM, "the view");
	switch (e->fts_info) {
	case FTS_F:
		return add_file(l, e->fts_path, guest, t, reterr);
	case FTS_SL:
	case FTS_SLNONE:
		return add_link(l, e->fts_path, guest) < 0 ? err_errno(reterr, ENOMEM, "the view")
							   : 0;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_errno(reterr, e->fts_errno, "mount '%s'", e->fts_path);
	default: /* directories come with their files; devices and sockets are not copied */
		return 0;
	}
}

static int add_snapshot(struct launch *l, const struct policy_mount *m, struct tally *t,
			struct cordon_error **reterr)
{
	char real[PATH_MAX];
	char *const roots[] = { real, NULL };
	int r = 0;

	if (!realpath(m->host, real))
		return err_errno(reterr, errno, "mount '%s'", m->host);
	if (strlist_add(&l->read_paths, m->guest) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	FTS *f = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!f)
		return err_errno(reterr, errno, "mount '%s'", m->host);
	size_t base = strlen(real);
	for (FTSENT *e; r == 0 && (e = fts_read(f));)
		r = add_entry(l, e, m, base, t, reterr);
	fts_close(f);
	return r;
}

const char *mounts_place(const struct policy *p, size_t i, char buf[static MOUNTS_PLACE])
{
	if (!mounts_is_inside(p->mounts[i].guest))
		return p->mounts[i].guest;
	snprintf(buf, MOUNTS_PLACE, "/run/mounts/%zu", i);
	return buf;
}

static bool contains(const struct policy_mount *m, const char *guest_path)
{
	size_t len = strlen(m->guest);

	return strncmp(guest_path, m->guest, len) == 0 &&
	       (guest_path[len] == '/' || guest_path[len] == '\0');
}

const struct policy_mount *mounts_at(const struct policy *p, const char *guest_path)
{
	for (size_t i = 0; i < p->mount_count; i++)
		if (contains(&p->mounts[i], guest_path))
			return &p->mounts[i];
	return NULL;
}

const struct policy_mount *mounts_live_at(const struct policy *p, const char *guest_path)
{
	for (size_t i = 0; i < p->mount_count; i++) {
		const struct policy_mount *m = &p->mounts[i];

		if (m->host && m->mode != MOUNT_SNAPSHOT && contains(m, guest_path))
			return m;
	}
	return NULL;
}

static int add_live(struct launch *l, const struct policy *p, size_t i,
		    struct cordon_error **reterr)
{
	const struct policy_mount *m = &p->mounts[i];
	uint32_t flags = BIND_MOUNT | (m->mode == MOUNT_LIVE_RW ? BIND_WRITABLE : 0);
	char real[PATH_MAX], place[MOUNTS_PLACE];

	if (!realpath(m->host, real))
		return err_errno(reterr, errno, "mount '%s'", m->host);
	if (launch_bind(l, real, mounts_place(p, i, place), flags) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	return 0;
}

int mounts_add(struct launch *l, const struct policy *p, struct cordon_error **reterr)
{
	struct tally t = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->mount_count; i++) {
		const struct policy_mount *m = &p->mounts[i];

		if (m->host && m->mode != MOUNT_SNAPSHOT)
			r = add_live(l, p, i, reterr);
		else if (mounts_is_inside(m->guest))
			continue;
		else if (m->host)
			r = add_snapshot(l, m, &t, reterr);
		else if (launch_file(l, m->guest, m->bytes, m->bytes_len, 0444) < 0)
			r = err_errno(reterr, ENOMEM, "the view");
	}
	return r;
}

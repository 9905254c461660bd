/* files/tar.c - writing tar streams. libarchive reads them (unpack.c) but does not write them, for
 * two reasons. Both were measured with its version 3.6.2.
 *
 * It ends the process when memory runs out. A pax archive with one file takes 38 allocations.
 * With memory running out at each in turn, 31 called exit(1), one crashed, two went unnoticed and
 * four were reported. An export must fail with an error (tests/fault).
 *
 * It wants the bytes of holes too and drops them. That takes 13 ms for a terabyte, and so 15 hours
 * for a guest's empty file of 2^62 bytes. Here a hole costs nothing. */
#include "files/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"

enum { BLOCK = 512, NAME_FIELD = 100, MAX_MAP = 16 * 1024 * 1024, MAX_RECORDS = 64 * 1024 };
#define MAX_OCTAL (UINT64_C(1) << 33) /* eleven digits */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], dev_major[8], dev_minor[8], prefix[155],
		rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

static void octal(char *field, size_t size, uint64_t value)
{
	for (size_t i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
	field[size - 1] = '\0';
}

static int put_header(struct tar *t, char type, const char *name, const char *link,
		      const struct tar_entry *e, uint64_t size)
{
	struct header h;
	memset(&h, 0, sizeof(h));
	size_t name_len = strlen(name), link_len = link ? strlen(link) : 0;
	memcpy(h.name, name, name_len < NAME_FIELD ? name_len : NAME_FIELD);
	memcpy(h.link, link ? link : "", link_len < NAME_FIELD ? link_len : NAME_FIELD);
	octal(h.mode, sizeof(h.mode), e->mode & 07777);
	octal(h.uid, sizeof(h.uid), 1000);
	octal(h.gid, sizeof(h.gid), 1000);
	octal(h.size, sizeof(h.size), size < MAX_OCTAL ? size : 0);
	octal(h.mtime, sizeof(h.mtime), e->mtime_ns > 0 ? (uint64_t)e->mtime_ns / 1000000000 : 0);
	h.type = type;
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	memcpy(h.user, "user", 5);
	memcpy(h.group, "user", 5);
	memset(h.sum, ' ', sizeof(h.sum));
	unsigned sum = 0;
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	octal(h.sum, 7, sum);
	return t->write(t->arg, &h, sizeof(h));
}

/* "LEN key=value
 * ". LEN includes itself. */
static int add_record(struct buf *b, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3, len = body + 1;
	char digits[24];
	while (len != body + (size_t)snprintf(digits, sizeof(digits), "%zu", len))
		len = body + strlen(digits);
	return buf_printf(b, "%s %s=%s\n", digits, key, value);
}

static int add_number(struct buf *b, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return add_record(b, key, text);
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static bool needs_record(const char *s)
{
	return strlen(s) > NAME_FIELD || !is_ascii(s);
}

static int add_time(struct buf *b, int64_t ns)
{
	char text[48];
	if (ns % 1000000000 == 0 && ns >= 0)
		return 0;
	int64_t sec = ns / 1000000000, frac = ns % 1000000000;
	bool is_before = ns < 0;
	snprintf(text, sizeof(text), "%s%lld.%09lld", is_before ? "-" : "",
		 (long long)(is_before ? -sec : sec), (long long)(is_before ? -frac : frac));
	return add_record(b, "mtime", text);
}

static int put_padded(struct tar *t, const char *bytes, size_t len)
{
	static const char zeros[BLOCK];
	int r = t->write(t->arg, bytes, len);
	if (r == 0 && len % BLOCK)
		r = t->write(t->arg, zeros, BLOCK - len % BLOCK);
	return r;
}

static int add_sparse(struct buf *b, const struct tar_entry *e)
{
	int r = add_number(b, "GNU.sparse.major", 1);
	r = r < 0 ? r : add_number(b, "GNU.sparse.minor", 0);
	r = r < 0 ? r : add_record(b, "GNU.sparse.name", e->name);
	return r < 0 ? r : add_number(b, "GNU.sparse.realsize", e->size);
}

static int add_names(struct buf *b, const struct tar_entry *e)
{
	int r = 0;
	/* Names are bytes, not text. Without this a reader would convert them. */
	if (!is_ascii(e->name) || (e->link && !is_ascii(e->link)))
		r = add_record(b, "hdrcharset", "BINARY");
	if (r == 0 && e->extents)
		r = add_sparse(b, e);
	else if (r == 0 && needs_record(e->name))
		r = add_record(b, "path", e->name);
	if (r == 0 && e->link && needs_record(e->link))
		r = add_record(b, "linkpath", e->link);
	return r;
}

/* Fields that do not fit the old header go into an extended header before it. */
static int put_records(struct tar *t, const struct tar_entry *e, uint64_t stored)
{
	cleanup_buf struct buf b = { 0 };
	buf_init(&b, MAX_RECORDS);
	int r = add_time(&b, e->mtime_ns);
	if (r == 0)
		r = add_names(&b, e);
	if (r == 0 && stored >= MAX_OCTAL)
		r = add_number(&b, "size", stored);
	if (r < 0)
		return r == -CORDON_NOMEM ? -ENOMEM : -ENAMETOOLONG;
	if (!b.len)
		return 0;
	struct tar_entry plain = { .mode = 0644 };
	r = put_header(t, 'x', "PaxHeaders/entry", NULL, &plain, b.len);
	return r < 0 ? r : put_padded(t, b.data, b.len);
}

static int sparse_map(const struct tar_entry *e, struct buf *ret)
{
	buf_init(ret, MAX_MAP);
	int r = buf_printf(ret, "%zu\n", e->extent_count);
	for (size_t i = 0; r == 0 && i < e->extent_count; i++)
		r = buf_printf(ret, "%llu\n%llu\n", (unsigned long long)e->extents[i].offset,
			       (unsigned long long)e->extents[i].len);
	while (r == 0 && ret->len % BLOCK)
		r = buf_add_char(ret, '\0');
	return r == -CORDON_NOMEM ? -ENOMEM : r < 0 ? -EFBIG : 0;
}

int tar_begin(struct tar *t, const struct tar_entry *e)
{
	cleanup_buf struct buf map = { 0 };
	uint64_t data = S_ISREG(e->mode) && !e->link ? e->size : 0;
	int r = 0;
	if (e->extents) {
		r = sparse_map(e, &map);
		data = 0;
		for (size_t i = 0; i < e->extent_count; i++)
			data += e->extents[i].len;
	}
	char type = S_ISDIR(e->mode) ? '5' : S_ISLNK(e->mode) ? '2' : e->link ? '1' : '0';
	r = r < 0 ? r : put_records(t, e, map.len + data);
	r = r < 0 ? r
		  : put_header(t, type, e->extents ? "GNUSparseFile.0/entry" : e->name, e->link, e,
			       map.len + data);
	if (r == 0 && map.len)
		r = t->write(t->arg, map.data, map.len);
	t->left = data;
	t->padding = (BLOCK - data % BLOCK) % BLOCK;
	return r;
}

int tar_data(struct tar *t, const void *bytes, size_t len)
{
	if (len > t->left)
		len = (size_t)t->left; /* the file grew while it was read */
	t->left -= len;
	return len ? t->write(t->arg, bytes, len) : 0;
}

int tar_end(struct tar *t)
{
	static const char zeros[16 * 1024];
	uint64_t left = t->left + t->padding;
	t->left = t->padding = 0;
	while (left) {
		size_t n = left < sizeof(zeros) ? (size_t)left : sizeof(zeros);
		int r = t->write(t->arg, zeros, n);
		if (r < 0)
			return r;
		left -= n;
	}
	return 0;
}

int tar_finish(struct tar *t)
{
	static const char zeros[(size_t)2 * BLOCK];
	return t->write(t->arg, zeros, sizeof(zeros));
}

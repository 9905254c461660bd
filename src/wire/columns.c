/* wire/columns.c - see columns.h. */
#include "wire/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum kind { KIND_PLAIN, KIND_BOOL, KIND_TEXT };

static const struct type {
	const char *name;
	unsigned width; /* of a value; KIND_TEXT: of an offset */
	enum kind kind;
} types[] = {
	{ "bool8", 1, KIND_BOOL },      { "int8", 1, KIND_PLAIN },
	{ "uint8", 1, KIND_PLAIN },     { "int16", 2, KIND_PLAIN },
	{ "uint16", 2, KIND_PLAIN },    { "int32", 4, KIND_PLAIN },
	{ "uint32", 4, KIND_PLAIN },    { "int64", 8, KIND_PLAIN },
	{ "uint64", 8, KIND_PLAIN },    { "float16", 2, KIND_PLAIN },
	{ "float32", 4, KIND_PLAIN },   { "float64", 8, KIND_PLAIN },
	{ "complex64", 8, KIND_PLAIN }, { "complex128", 16, KIND_PLAIN },
	{ "utf8", 4, KIND_TEXT },       { "large_utf8", 8, KIND_TEXT },
};

struct column {
	const struct type *type;
	uint64_t count, offsets, values;
	uint64_t bytes; /* of the values */
};

struct columns {
	uint64_t bytes, end; /* end: of the last part so far */
	size_t count;
	struct column *list;
};

struct columns *columns_free(struct columns *c)
{
	if (c)
		free(c->list);
	free(c);
	return NULL;
}

uint64_t columns_get_bytes(const struct columns *c)
{
	return c->bytes;
}

static const struct type *find_type(const char *name)
{
	for (size_t i = 0; name && i < sizeof(types) / sizeof(*types); i++)
		if (str_eq(types[i].name, name))
			return &types[i];
	return NULL;
}

static int refuse(struct cordon_error **reterr, size_t i, const char *why)
{
	return err_set(reterr, CORDON_PROTOCOL, "binary column %zu: %s", i, why);
}

/* A number of the table: below 2^53, so that no sum here overflows. False: absent. */
static bool get_number(const json_t *o, const char *key, uint64_t *ret)
{
	const json_t *n = json_object_get(o, key);

	if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) >> 53)
		return false;
	*ret = (uint64_t)json_integer_value(n);
	return true;
}

/* The next part of the buffer begins at `at` and has n values of this width. */
static bool place(struct columns *c, uint64_t at, uint64_t n, unsigned width)
{
	if (at % COLUMNS_ALIGN != 0 || at < c->end || at > c->bytes || n > (c->bytes - at) / width)
		return false;
	c->end = at + n * width;
	return true;
}

static bool place_validity(struct columns *c, const json_t *o, uint64_t count)
{
	uint64_t at = 0;

	if (!json_object_get(o, "validity"))
		return true;
	return get_number(o, "validity", &at) && place(c, at, count / 8 + (count % 8 != 0), 1);
}

static bool place_offsets(struct columns *c, const json_t *o, struct column *col)
{
	return get_number(o, "offsets", &col->offsets) && get_number(o, "bytes", &col->bytes) &&
	       place(c, col->offsets, col->count + 1, col->type->width);
}

static int add_column(struct columns *c, const json_t *o, struct cordon_error **reterr)
{
	size_t i = c->count;
	struct column *col = &c->list[i];
	const struct type *t = find_type(json_string_value(json_object_get(o, "type")));

	*col = (struct column){ .type = t };
	if (!t)
		return refuse(reterr, i, "its type is unknown");
	if (!get_number(o, "count", &col->count) || !get_number(o, "values", &col->values))
		return refuse(reterr, i, "it needs a count and the place of its values");
	if (!place_validity(c, o, col->count))
		return refuse(reterr, i, "its validity is not inside the buffer");
	col->bytes = col->count;
	if (t->kind == KIND_TEXT && !place_offsets(c, o, col))
		return refuse(reterr, i, "its offsets are not inside the buffer");
	if (!place(c, col->values, col->bytes, t->kind == KIND_TEXT ? 1 : t->width))
		return refuse(reterr, i, "its values are not inside the buffer");
	c->count++;
	return 0;
}

static int fill(struct columns *c, const json_t *table, uint64_t max_bytes,
		struct cordon_error **reterr)
{
	const json_t *list = json_object_get(table, "columns"), *one;
	size_t i;

	if (!get_number(table, "bytes", &c->bytes) || !json_is_array(list))
		return err_set(reterr, CORDON_PROTOCOL,
			       "a table of binary columns has 'bytes' and 'columns'");
	if (c->bytes > max_bytes)
		return err_set(reterr, CORDON_LIMIT,
			       "the value is too large (%" PRIu64 " bytes, max %" PRIu64
			       "); the policy's value_bytes raises the limit",
			       c->bytes, max_bytes);
	if (json_array_size(list) > COLUMNS_MAX)
		return err_set(reterr, CORDON_LIMIT, "the value has %zu binary columns, max %d",
			       json_array_size(list), COLUMNS_MAX);
	c->list = mem_array(json_array_size(list) + 1, sizeof(*c->list));
	if (!c->list)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	json_array_foreach(list, i, one)
	{
		int r = add_column(c, one, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Parsed, a table takes many times its text. So what cannot be one is refused before: no object but
 * the columns, and no more members than theirs. */
static int check_size(const char *json, size_t len, struct cordon_error **reterr)
{
	enum { MEMBERS = 7 };
	size_t objects = str_count(json, len, '{');

	if (objects > COLUMNS_MAX + 1)
		return err_set(reterr, CORDON_LIMIT, "the value has %zu binary columns, max %d",
			       objects - 1, COLUMNS_MAX);
	if (str_count(json, len, '[') > 1 || str_count(json, len, ',') > objects * (MEMBERS + 1))
		return err_set(reterr, CORDON_PROTOCOL,
			       "a table of binary columns has 'bytes' and 'columns'");
	return 0;
}

int columns_new(const char *json, size_t len, uint64_t max_bytes, struct columns **ret,
		struct cordon_error **reterr)
{
	cleanup_json json_t *table = NULL;
	cleanup_columns struct columns *c = mem_alloc(sizeof(*c));

	if (!c)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = check_size(json, len, reterr);
	if (r == 0)
		r = json_parse(json, len, 0, &table, reterr);
	if (r == 0)
		r = fill(c, table, max_bytes, reterr);
	if (r == 0)
		*ret = TAKE_PTR(c);
	return r;
}

/* Reads a part of the file in order. */
struct reader {
	int fd;
	uint64_t at, left; /* not read yet */
	size_t start, end; /* of what is in bytes */
	unsigned char bytes[65536];
};

static void reader_begin(struct reader *r, int fd, uint64_t at, uint64_t len)
{
	r->fd = fd;
	r->at = at;
	r->left = len;
	r->start = r->end = 0;
}

/* At least min bytes in a row, or as many as there are up to the buffer's size. False: the file has
 * fewer. */
static bool reader_fill(struct reader *r, size_t min)
{
	if (r->end - r->start >= min)
		return true;
	memmove(r->bytes, r->bytes + r->start, r->end - r->start);
	r->end -= r->start;
	r->start = 0;
	while (r->end < min) {
		size_t room = sizeof(r->bytes) - r->end;
		ssize_t n = pread(r->fd, r->bytes + r->end, r->left < room ? r->left : room,
				  (off_t)r->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		r->end += (size_t)n;
		r->at += (uint64_t)n;
		r->left -= (uint64_t)n;
	}
	return true;
}

static bool read_offset(struct reader *r, unsigned width, uint64_t *ret)
{
	if (!reader_fill(r, width))
		return false;
	*ret = 0;
	for (unsigned i = 0; i < width; i++)
		*ret |= (uint64_t)r->bytes[r->start + i] << (8 * i);
	r->start += width;
	return true;
}

/* Where in a character of UTF-8 the text is: bytes to come, and the range of the next. */
struct character {
	unsigned need;
	unsigned char low, high;
};

static bool begin_character(struct character *c, unsigned char b)
{
	c->low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
	c->high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
	c->need = b < 0x80 ? 0 : b < 0xe0 ? 1 : b < 0xf0 ? 2 : 3;
	return b < 0x80 || (b >= 0xc2 && b <= 0xf4);
}

static bool pass_bytes(struct character *c, const unsigned char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (c->need == 0) {
			if (at[i] >= 0x80 && !begin_character(c, at[i]))
				return false;
		} else if (at[i] < c->low || at[i] > c->high) {
			return false;
		} else {
			c->need--;
			c->low = 0x80;
			c->high = 0xbf;
		}
	}
	return true;
}

/* One text of n bytes; it ends with a whole character. */
static bool pass_text(struct reader *r, uint64_t n)
{
	struct character c = { 0 };

	while (n > 0) {
		if (!reader_fill(r, 1))
			return false;
		size_t some = r->end - r->start < n ? r->end - r->start : (size_t)n;
		if (!pass_bytes(&c, r->bytes + r->start, some))
			return false;
		r->start += some;
		n -= some;
	}
	return c.need == 0;
}

static const char *check_texts(const struct column *c, struct reader *offsets,
			       struct reader *values, int fd)
{
	unsigned width = c->type->width;
	uint64_t from, to;

	reader_begin(offsets, fd, c->offsets, (c->count + 1) * width);
	reader_begin(values, fd, c->values, c->bytes);
	if (!read_offset(offsets, width, &from) || from != 0)
		return "its first offset is not 0";
	for (uint64_t i = 0; i < c->count; i++, from = to) {
		if (!read_offset(offsets, width, &to) || to < from || to > c->bytes)
			return "its offsets do not ascend";
		if (!pass_text(values, to - from))
			return "a text is not valid UTF-8";
	}
	return from == c->bytes ? NULL : "its last offset is not its length";
}

static const char *check_truths(const struct column *c, struct reader *values, int fd)
{
	uint64_t left = c->count;

	reader_begin(values, fd, c->values, c->count);
	while (left > 0) {
		if (!reader_fill(values, 1))
			return "it is cut off";
		for (size_t i = values->start; i < values->end; i++)
			if (values->bytes[i] > 1)
				return "a truth value is neither 0 nor 1";
		left -= values->end - values->start;
		values->start = values->end;
	}
	return NULL;
}

int columns_check(const struct columns *c, int fd, struct cordon_error **reterr)
{
	cleanup_free struct reader *readers = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != c->bytes)
		return err_set(reterr, CORDON_PROTOCOL,
			       "the binary columns are not as long as their table says");
	for (size_t i = 0; i < c->count; i++) {
		const struct column *col = &c->list[i];
		const char *why = NULL;
		if (col->type->kind != KIND_PLAIN && !readers) {
			readers = mem_array(2, sizeof(*readers));
			if (!readers)
				return err_set(reterr, CORDON_NOMEM, "out of memory");
		}
		if (col->type->kind == KIND_TEXT)
			why = check_texts(col, &readers[0], &readers[1], fd);
		else if (col->type->kind == KIND_BOOL)
			why = check_truths(col, &readers[0], fd);
		if (why)
			return refuse(reterr, i, why);
	}
	return 0;
}

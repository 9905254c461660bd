/* net/gateway/secret.c - see secret.h. */
#include "net/gateway/secret.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"

enum { PATTERNS_EACH = 11, PATTERNS_MAX = SECRET_MAX * PATTERNS_EACH };

static bool is_name(const char *s)
{
	return s && *s && strlen(s) <= 64 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
		       strlen(s);
}

/* The value goes into a header line unchanged, so it must be valid there. */
static bool is_field_text(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

static int check(const char *name, const char *value, const char *header,
		 struct cordon_error **reterr)
{
	if (!is_name(name))
		return err_set(reterr, CORDON_INVALID,
			       "a secret's name is made of letters, digits, '_', '-' and '.'");
	if (!value || strlen(value) < SECRET_VALUE_MIN || strlen(value) > SECRET_VALUE_MAX)
		return err_set(reterr, CORDON_INVALID, "secret '%s' must have %d to %d bytes", name,
			       SECRET_VALUE_MIN, SECRET_VALUE_MAX);
	if (!is_field_text(value))
		return err_set(reterr, CORDON_INVALID, "secret '%s' has a control character", name);
	if (header &&
	    (!is_name(header) || strcasecmp(header, "Host") == 0 ||
	     strcasecmp(header, "Content-Length") == 0 ||
	     strcasecmp(header, "Transfer-Encoding") == 0 || strcasecmp(header, "Connection") == 0))
		return err_set(reterr, CORDON_INVALID, "secret '%s' cannot go into header '%s'",
			       name, header);
	return 0;
}

int secret_list_add(struct secret_list *l, const char *name, const char *value, const char *host,
		    const char *header, struct cordon_error **reterr)
{
	struct host h;
	int r = check(name, value, header, reterr);

	if (r == 0 && l->count == SECRET_MAX)
		r = err_set(reterr, CORDON_LIMIT, "more than %d secrets", SECRET_MAX);
	if (r == 0)
		r = host_parse(host ? host : "", host ? strlen(host) : 0, &h, reterr);
	if (r < 0)
		return r;
	struct secret *grown = mem_grow(l->items, l->count + 1, sizeof(*grown));
	if (!grown)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	l->items = grown;
	struct secret *s = &grown[l->count++];
	*s = (struct secret){ .name = str_dup(name),
			      .value = str_dup(value),
			      .header = str_dup(header ? header : "Authorization"),
			      .host = h };
	if (!s->name || !s->value || !s->header)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return 0;
}

void secret_list_done(struct secret_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].value)
			explicit_bzero(l->items[i].value, strlen(l->items[i].value));
		free(l->items[i].name);
		free(l->items[i].value);
		free(l->items[i].header);
	}
	free(l->items);
	*l = (struct secret_list){ 0 };
}

bool secret_list_has_host(const struct secret_list *l, const struct host *h)
{
	for (size_t i = 0; i < l->count; i++)
		if (host_equal(&l->items[i].host, h))
			return true;
	return false;
}

/* The secret whose placeholder is at the start of text. The longest name wins. */
static const struct secret *match_placeholder(const struct secret_list *l, const struct host *h,
					      const struct http_field *f, struct http_slice text)
{
	size_t prefix = strlen(SECRET_PLACEHOLDER);
	const struct secret *best = NULL;

	if (text.len <= prefix || memcmp(text.data, SECRET_PLACEHOLDER, prefix) != 0)
		return NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct secret *s = &l->items[i];
		size_t len = strlen(s->name);
		if (host_equal(&s->host, h) && http_slice_is(f->name, s->header) &&
		    text.len - prefix >= len && memcmp(text.data + prefix, s->name, len) == 0 &&
		    (!best || len > strlen(best->name)))
			best = s;
	}
	return best;
}

int secret_fill(const struct secret_list *l, const struct host *h, const struct http_field *f,
		struct buf *out, bool *ret_used)
{
	struct http_slice rest = f->value;

	while (rest.len > 0) {
		const struct secret *s = match_placeholder(l, h, f, rest);
		size_t used = s ? strlen(SECRET_PLACEHOLDER) + strlen(s->name) : 1;
		int r = s ? buf_add_str(out, s->value) : buf_add(out, rest.data, 1);
		if (r < 0)
			return r;
		*ret_used |= s != NULL;
		rest.data += used;
		rest.len -= used;
	}
	return 0;
}

struct secret_filter {
	char *patterns[PATTERNS_MAX];
	size_t lens[PATTERNS_MAX];
	size_t count, longest;
	char *held; /* bytes that may begin a pattern, followed by the new ones */
	size_t held_len, held_cap, ready;
};

static int add_pattern(struct secret_filter *f, char *text, size_t len)
{
	if (!text || f->count == PATTERNS_MAX) {
		free(text);
		return -CORDON_NOMEM;
	}
	if (len < SECRET_VALUE_MIN) {
		free(text);
		return 0;
	}
	f->patterns[f->count] = text;
	f->lens[f->count++] = len;
	if (len > f->longest)
		f->longest = len;
	return 0;
}

/* Adds the base64 text, and its URL-safe form if that differs. */
static int add_alphabets(struct secret_filter *f, const char *text, size_t len)
{
	cleanup_free char *piece = str_ndup(text, len);
	bool differs = false;

	if (!piece)
		return -CORDON_NOMEM;
	for (size_t i = 0; i < len; i++) {
		if (piece[i] != '+' && piece[i] != '/')
			continue;
		piece[i] = piece[i] == '+' ? '-' : '_';
		differs = true;
	}
	int r = add_pattern(f, str_ndup(text, len), len);
	return r < 0 || !differs ? r : add_pattern(f, TAKE_PTR(piece), len);
}

/* Adds base64 of the value at each of the three possible alignments. Only the characters that
 * depend on the value alone are searched for. */
static int add_base64(struct secret_filter *f, const char *value)
{
	size_t len = strlen(value);

	for (size_t shift = 0; shift < 3; shift++) {
		cleanup_free char *padded = mem_alloc(len + shift + 1);
		size_t n;
		if (!padded)
			return -CORDON_NOMEM;
		memcpy(padded + shift, value, len + 1);
		cleanup_free char *text = base64_encode(padded, len + shift, &n);
		if (!text)
			return -CORDON_NOMEM;
		size_t from = shift == 0 ? 0 : shift + 1, to = (len + shift) / 3 * 4;
		size_t rest = (len + shift) % 3;
		to += rest; /* of the last group, only characters that depend on the value alone */
		if (to <= from)
			continue;
		int r = add_alphabets(f, text + from, to - from);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("-_.~", c);
}

static int add_quoted(struct buf *b, char c, const char *special)
{
	int r = strchr(special, c) ? buf_add_char(b, '\\') : 0;
	return r < 0 ? r : buf_add_char(b, c);
}

/* Some JSON writers escape the slash, most do not. */
static int add_json(struct buf *b, char c)
{
	return add_quoted(b, c, "\"\\/");
}

static int add_json_plain(struct buf *b, char c)
{
	return add_quoted(b, c, "\"\\");
}

static int add_percent(struct buf *b, char c)
{
	return is_unreserved(c) ? buf_add_char(b, c) : buf_printf(b, "%%%02X", (unsigned char)c);
}

static int add_percent_lower(struct buf *b, char c)
{
	return is_unreserved(c) ? buf_add_char(b, c) : buf_printf(b, "%%%02x", (unsigned char)c);
}

static int add_escaped(struct secret_filter *f, const char *value,
		       int (*escape)(struct buf *b, char c))
{
	cleanup_buf struct buf b = { 0 };
	int r = 0;

	buf_init(&b, 3 * (size_t)SECRET_VALUE_MAX + 1);
	for (const char *p = value; *p && r == 0; p++)
		r = escape(&b, *p);
	if (r < 0)
		return r;
	if (strcmp(buf_text(&b), value) == 0)
		return 0;
	size_t len = b.len;
	return add_pattern(f, buf_take(&b), len);
}

static int add_value(struct secret_filter *f, const char *value)
{
	static int (*const escapes[])(struct buf * b, char c) = { add_percent, add_percent_lower,
								  add_json, add_json_plain };
	int r = add_pattern(f, str_dup(value), strlen(value));

	for (size_t i = 0; r == 0 && i < sizeof(escapes) / sizeof(*escapes); i++)
		r = add_escaped(f, value, escapes[i]);
	return r < 0 ? r : add_base64(f, value);
}

int secret_filter_new(const struct secret_list *l, const struct host *h, struct secret_filter **ret,
		      struct cordon_error **reterr)
{
	struct secret_filter *f = mem_alloc(sizeof(*f));
	int r = f ? 0 : -CORDON_NOMEM;

	for (size_t i = 0; i < l->count && r == 0; i++)
		if (host_equal(&l->items[i].host, h))
			r = add_value(f, l->items[i].value);
	if (r < 0) {
		secret_filter_free(f);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	*ret = f;
	return 0;
}

struct secret_filter *secret_filter_free(struct secret_filter *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->count; i++) {
		explicit_bzero(f->patterns[i], f->lens[i]);
		free(f->patterns[i]);
	}
	free(f->held);
	free(f);
	return NULL;
}

void secret_filter_text(const struct secret_filter *f, char *bytes, size_t len)
{
	for (size_t i = 0; i < f->count; i++) {
		char *at = bytes;
		while ((at = memmem(at, len - (size_t)(at - bytes), f->patterns[i], f->lens[i]))) {
			memset(at, '*', f->lens[i]);
			at += f->lens[i];
		}
	}
}

const char *secret_filter_feed(struct secret_filter *f, const char *bytes, size_t len, bool is_last,
			       size_t *ret_len)
{
	/* Drops the bytes that the last call returned. */
	f->held_len -= f->ready;
	if (f->held_len > 0)
		memmove(f->held, f->held + f->ready, f->held_len);
	f->ready = 0;
	if (f->held_len + len > f->held_cap) {
		char *grown = mem_grow(f->held, f->held_len + len, 1);
		if (!grown)
			return NULL;
		f->held = grown;
		f->held_cap = f->held_len + len;
	}
	if (len > 0)
		memcpy(f->held + f->held_len, bytes, len);
	f->held_len += len;
	if (f->held_len > 0)
		secret_filter_text(f, f->held, f->held_len);
	size_t keep = is_last || f->longest == 0 ? 0 : f->longest - 1;
	f->ready = f->held_len > keep ? f->held_len - keep : 0;
	*ret_len = f->ready;
	return f->held ? f->held : "";
}

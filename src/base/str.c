/* base/str.c - see str.h. */
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

char *str_dup(const char *s)
{
	return s ? mem_dup(s, strlen(s) + 1) : NULL;
}

char *str_ndup(const char *s, size_t len)
{
	size_t size;

	if (!s)
		return NULL;
	len = strnlen(s, len);
	if (!size_add(len, 1, &size))
		return NULL;
	char *copy = mem_alloc(size);
	if (copy)
		memcpy(copy, s, len);
	return copy;
}

char *str_vprintf(const char *fmt, va_list ap)
{
	char *text;

	if (mem_fault() || vasprintf(&text, fmt, ap) < 0)
		return NULL;
	return text;
}

char *str_printf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = str_vprintf(fmt, ap);
	va_end(ap);
	return text;
}

bool str_eq(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
	return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

size_t str_count(const char *bytes, size_t len, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += bytes[i] == c;
	return n;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t len = s ? strlen(s) : 0, tail = strlen(suffix);

	return s && len >= tail && memcmp(s + len - tail, suffix, tail) == 0;
}

/* Ranges of the first and second byte of multi-byte sequences. Those of the second byte exclude
 * overlong forms, surrogates and code points beyond U+10FFFF. */
static const struct {
	unsigned char first, last, low, high;
	int more;
} utf8_leads[] = {
	{ 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 }, { 0xe1, 0xec, 0x80, 0xbf, 2 },
	{ 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 }, { 0xf0, 0xf0, 0x90, 0xbf, 3 },
	{ 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
};

int str_utf8_next(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t lead = 0, leads = sizeof(utf8_leads) / sizeof(*utf8_leads);

	if (u[0] < 0x80)
		return 1;
	while (lead < leads && (u[0] < utf8_leads[lead].first || u[0] > utf8_leads[lead].last))
		lead++;
	if (lead == leads)
		return -1;
	unsigned char low = utf8_leads[lead].low, high = utf8_leads[lead].high;
	for (int i = 1; i <= utf8_leads[lead].more; i++) {
		if ((size_t)i >= len || u[i] < low || u[i] > high)
			return -i;
		low = 0x80;
		high = 0xbf;
	}
	return utf8_leads[lead].more + 1;
}

bool str_is_utf8(const char *s, size_t len)
{
	while (len > 0) {
		int n = (unsigned char)*s < 0x80 ? 1 : str_utf8_next(s, len);
		if (n < 0)
			return false;
		s += n;
		len -= (size_t)n;
	}
	return true;
}

bool str_copy(char *dst, size_t dst_size, const char *src)
{
	size_t len = strlen(src);

	if (dst_size == 0)
		return false;
	if (len >= dst_size) {
		dst[0] = '\0';
		return false;
	}
	memcpy(dst, src, len + 1);
	return true;
}

enum { NEAREST_MAX = 64 };

/* Edit distance in which swapping neighbours counts as one edit (optimal string alignment). */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	uint8_t row[3][NEAREST_MAX + 1];
	uint8_t *above2 = row[0], *above = row[1], *here = row[2];

	for (size_t j = 0; j <= b_len; j++)
		above[j] = (uint8_t)j;
	for (size_t i = 1; i <= a_len; i++) {
		here[0] = (uint8_t)i;
		for (size_t j = 1; j <= b_len; j++) {
			int best = above[j - 1] + (a[i - 1] != b[j - 1]);
			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (here[j - 1] + 1 < best)
				best = here[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    above2[j - 2] + 1 < best)
				best = above2[j - 2] + 1;
			here[j] = (uint8_t)best;
		}
		uint8_t *spare = above2;
		above2 = above;
		above = here;
		here = spare;
	}
	return above[b_len];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t count)
{
	const char *best = NULL;
	size_t word_len = word ? strlen(word) : 0;
	size_t best_distance =
		word_len < 4 ? 2 : word_len / 3 + 2; /* one more than is accepted as similar */

	if (word_len == 0 || word_len > NEAREST_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(candidates[i]);
		if (len > NEAREST_MAX)
			continue;
		size_t distance = edit_distance(word, word_len, candidates[i], len);
		if (distance < best_distance && distance < len) {
			best_distance = distance;
			best = candidates[i];
		}
	}
	for (size_t i = 0; !best && word_len >= 3 && i < count; i++)
		if (str_starts(candidates[i], word))
			best = candidates[i];
	return best;
}

int strlist_add(struct strlist *l, const char *s)
{
	cleanup_free char *copy = str_dup(s);
	if (!copy || l->count >= SIZE_MAX - 2)
		return -CORDON_NOMEM;
	/* Capacity grows in powers of two: it is full when count + 1 is one. */
	size_t used = l->count + 1;
	if (!l->items || (used & (used - 1)) == 0) {
		size_t room = used < 4 ? 4 : used * 2;
		char **items = mem_grow(l->items, room, sizeof(*items));
		if (!items)
			return -CORDON_NOMEM;
		l->items = items;
	}
	l->items[l->count++] = TAKE_PTR(copy);
	l->items[l->count] = NULL;
	return 0;
}

int strlist_copy(struct strlist *dst, const struct strlist *src)
{
	struct strlist copy = { 0 };

	for (size_t i = 0; i < src->count; i++) {
		if (strlist_add(&copy, src->items[i]) < 0) {
			strlist_done(&copy);
			return -CORDON_NOMEM;
		}
	}
	*dst = copy;
	return 0;
}

bool strlist_has(const struct strlist *l, const char *s)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->items[i], s))
			return true;
	return false;
}

void strlist_done(struct strlist *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct strlist){ 0 };
}

/* wire/scan.c - see scan.h. */
#include "wire/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonnumber.h"
#include "base/jsonscan.h"
#include "base/mem.h"
#include "wire/keyset.h"

/* Shown in place of a NUL character. */
enum { REPLACEMENT = 0xfffd };

struct scan {
	struct jsonscan json;
	char *text;
	struct keyset keys;
	struct scan_member *members; /* members of the outermost object to report */
	size_t member_count;
};

static struct scan *scan_of(struct jsonscan *s)
{
	return (struct scan *)((char *)s - offsetof(struct scan, json));
}

/* Refuses a key that this object already has, even if escaped differently. */
static bool check_key(struct jsonscan *s, uint64_t object, const char *key, size_t len)
{
	cleanup_free char *decoded = NULL;

	if (s->has_escape) {
		decoded = mem_alloc(len);
		if (!decoded)
			return jsonscan_fail(s, "out of memory");
		len = jsonscan_decode(key, len, REPLACEMENT, decoded);
	}
	enum keyset_answer a = keyset_add(&scan_of(s)->keys, object, decoded ? decoded : key, len);
	if (a == KEYSET_SEEN)
		return jsonscan_fail(s, "duplicate key in an object");
	return a == KEYSET_NEW || jsonscan_fail(s, "out of memory");
}

/* Records the value if the member is wanted. */
static void note_member(struct jsonscan *json, const char *key, size_t len, const char *value)
{
	struct scan *s = scan_of(json);

	for (size_t i = 0; i < s->member_count; i++) {
		struct scan_member *m = &s->members[i];
		if (strlen(m->name) == len && memcmp(m->name, key, len) == 0)
			m->value = (struct scan_slice){ s->text + (value - s->text),
							(size_t)(json->p - value) };
	}
}

static const char *run(struct scan *s, size_t len)
{
	s->json = (struct jsonscan){ .p = s->text,
				     .end = s->text + len,
				     .max_values = SCAN_MAX_VALUES,
				     .key = check_key,
				     .member = s->members ? note_member : NULL };
	keyset_init(&s->keys);
	jsonscan_space(&s->json);
	if (s->members && (s->json.p == s->json.end || *s->json.p != '{'))
		(void)jsonscan_fail(&s->json, "expected a JSON object");
	else if (jsonscan_value(&s->json))
		(void)jsonscan_end(&s->json);
	keyset_done(&s->keys);
	return s->json.why;
}

const char *scan_value(char *text, size_t len)
{
	struct scan s = { .text = text };

	return run(&s, len);
}

const char *scan_object(char *text, size_t len, struct scan_member *members, size_t count)
{
	struct scan s = { .text = text, .members = members, .member_count = count };

	return run(&s, len);
}

bool scan_is_string(struct scan_slice s)
{
	return s.data && *s.data == '"';
}

bool scan_is_object(struct scan_slice s)
{
	return s.data && *s.data == '{';
}

bool scan_is_null(struct scan_slice s)
{
	return s.data && *s.data == 'n';
}

struct scan_slice scan_take_string(struct scan_slice raw)
{
	char *text = raw.data + 1;
	size_t len = raw.len - 2;

	len = jsonscan_decode(text, len, REPLACEMENT, text);
	text[len] = '\0';
	return (struct scan_slice){ text, len };
}

bool scan_get_bool(struct scan_slice raw, bool *ret)
{
	if (!raw.data || (*raw.data != 't' && *raw.data != 'f'))
		return false;
	*ret = *raw.data == 't';
	return true;
}

bool scan_get_int(struct scan_slice raw, int64_t *ret)
{
	if (!raw.data || (*raw.data != '-' && (*raw.data < '0' || *raw.data > '9')))
		return false;
	for (size_t i = 1; i < raw.len; i++)
		if (raw.data[i] < '0' || raw.data[i] > '9')
			return false;
	*ret = jsonnumber_int(raw.data, raw.len);
	return true;
}

/* inside/guests/sh/variables.c - see variables.h. */
#include "inside/guests/sh/variables.h"

#include <stdbool.h>
#include <string.h>

#include "inside/lib/wire_json.h"

/* Variables of the shell itself, and ours. */
static bool is_own(const char *pair, size_t len)
{
	static const char *const names[] = { "_", "PWD", "OLDPWD", "SHLVL" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == len && !memcmp(pair, names[i], len))
			return true;
	return len == 0 || strncmp(pair, "CORDON_", 7) == 0;
}

static bool is_name(const char *pair, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return len && !strchr("0123456789", *pair) && strspn(pair, letters) >= len;
}

/* The entry of the same name; name_len counts the '='. */
static const char *in_base(char *const *base, const char *pair, size_t name_len)
{
	for (; *base; base++)
		if (!strncmp(*base, pair, name_len))
			return *base;
	return NULL;
}

const char *variables_base(char *const *base, const char *name)
{
	size_t len = strlen(name);

	for (; *base; base++)
		if (!strncmp(*base, name, len) && (*base)[len] == '=')
			return *base + len + 1;
	return NULL;
}

static const char *in_records(const struct bytes *records, const char *pair, size_t name_len)
{
	const char *end = records->data + records->len;

	for (const char *at = records->data; at < end; at += strlen(at) + 1)
		if (!strncmp(at, pair, name_len))
			return at;
	return NULL;
}

void variables_collect(const char *data, size_t len, struct bytes *ret)
{
	const char *end = data + len, *stop;

	for (const char *at = data; at < end && (stop = memchr(at, 0, (size_t)(end - at)));
	     at = stop + 1)
		if (*at == VARIABLES_RECORD)
			bytes_add(ret, at + 1, (size_t)(stop - at));
}

static void add(struct bytes *ret, const char *pair, size_t len, const char *value)
{
	bytes_text(ret, ret->data[ret->len - 1] == '{' ? "" : ",");
	json_quote(ret, pair, len);
	bytes_char(ret, ':');
	if (value)
		json_quote(ret, value, strlen(value));
	else
		bytes_text(ret, "null");
}

void variables_compare(const struct bytes *records, char *const *base, struct bytes *ret)
{
	const char *end = records->data + records->len;

	bytes_char(ret, '{');
	for (const char *at = records->data; at < end; at += strlen(at) + 1) {
		size_t len = strcspn(at, "=");
		const char *was = at[len] ? in_base(base, at, len + 1) : NULL;

		if (at[len] && is_name(at, len) && !is_own(at, len) &&
		    (!was || strcmp(was, at) != 0))
			add(ret, at, len, at + len + 1);
	}
	for (; *base; base++) {
		size_t len = strcspn(*base, "=");

		if ((*base)[len] && is_name(*base, len) && !is_own(*base, len) &&
		    !in_records(records, *base, len + 1))
			add(ret, *base, len, NULL);
	}
	bytes_char(ret, '}');
}

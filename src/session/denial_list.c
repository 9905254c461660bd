/* session/denial_list.c - see denial_list.h. */
#include "session/denial_list.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "session/remedy.h"

static const char *text_of(const json_t *d, const char *key)
{
	return json_string_value(json_object_get(d, key));
}

static bool is_same_target(const char *a, const char *b)
{
	const char *one = a ? remedy_command_of(a) : NULL, *two = b ? remedy_command_of(b) : NULL;

	return str_eq(a, b) || (one && two && str_eq(one, two));
}

static bool is_same(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "operation", "layer", "remedy" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!text_of(a, keys[i]) || !str_eq(text_of(a, keys[i]), text_of(b, keys[i])))
			return false;
	const char *one = text_of(a, "target"), *two = text_of(b, "target");
	return str_eq(text_of(a, "operation"), "execute") ? is_same_target(one, two)
							  : str_eq(one, two) || (!one && !two);
}

static json_t *find_same(const json_t *denials, size_t before, const json_t *d)
{
	for (size_t i = 0; i < before; i++)
		if (is_same(json_array_get(denials, i), d))
			return json_array_get(denials, i);
	return NULL;
}

void denial_list_merge(json_t *denials)
{
	for (size_t i = 1; i < json_array_size(denials);) {
		const json_t *d = json_array_get(denials, i);
		const json_t *count = json_object_get(d, "count");
		json_t *same = json_is_integer(count) ? find_same(denials, i, d) : NULL;

		if (!same) {
			i++;
			continue;
		}
		json_int_t sum = json_integer_value(json_object_get(same, "count")) +
				 json_integer_value(count);
		(void)json_object_set_new(same, "count", json_integer(sum));
		(void)json_array_remove(denials, i);
	}
}

/* The word, not as a part of another. */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; at && (at = strstr(at, word)); at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[len]))
			return true;
	return false;
}

/* What platform, ctypes.util, uuid, matplotlib, joblib, cli and others start to learn something. */
static bool is_probed_program(const char *name)
{
	static const char *const names[] = { "arp",     "cc",     "fc-list",  "gcc",   "ifconfig",
					     "ip",      "ld",     "ldconfig", "lscpu", "netstat",
					     "objdump", "sysctl", "tput",     "uname" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* IPv6 and a name service are tried first, datagram and netlink sockets tell the machine's
 * addresses. A datagram socket that does not block is a look-up of a name, which fails. */
static bool is_probed_socket(const char *target)
{
	if (str_eq(target, "AF_INET nonblocking datagram"))
		return false;
	return str_eq(target, "AF_INET6") || str_eq(target, "AF_UNIX") ||
	       str_eq(target, "AF_NETLINK") || str_ends(target, " datagram");
}

/* Whether a socket was refused that no library tries for itself. */
static bool has_plain_socket(const json_t *denials)
{
	size_t i;
	json_t *d;

	json_array_foreach(denials, i, d)
	{
		const char *target = text_of(d, "target");

		if (str_eq(text_of(d, "operation"), "socket") &&
		    (!target || !is_probed_socket(target)))
			return true;
	}
	return false;
}

/* Code that itself uses a local socket fails with these words; a name service that could not be
 * asked does not make a connection fail. */
static bool tells_of_socket(const char *text, const char *target)
{
	static const char *const words[] = { "ermission denied", "EACCES", "onnect",   "resol",
					     "socket",           "etwork", "EAI_AGAIN" };
	bool is_local = str_starts(target, "AF_UNIX") || str_eq(target, "AF_NETLINK");
	size_t count = is_local ? 2 : sizeof(words) / sizeof(*words);

	for (size_t i = 0; text && i < count; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* Whether a library tried it and did without. */
static bool is_probe(const json_t *d, const struct denial_list_words *from, bool has_plain)
{
	const char *operation = text_of(d, "operation"), *target = text_of(d, "target");
	const char *name =
		target && str_eq(operation, "execute") ? remedy_command_of(target) : NULL;

	if (name && is_probed_program(name))
		return !has_word(from->message, name) && !has_word(from->err_text, name);
	if (!target || !str_eq(operation, "socket"))
		return false;
	bool is_probed = is_probed_socket(target);
	if (is_probed && (from->is_success || has_plain))
		return true;
	return (from->is_shell || is_probed) && !tells_of_socket(from->message, target) &&
	       !tells_of_socket(from->err_text, target);
}

void denial_list_drop_probes(json_t *denials, const struct denial_list_words *from)
{
	bool has_plain = has_plain_socket(denials);

	for (size_t i = 0; i < json_array_size(denials);)
		if (is_probe(json_array_get(denials, i), from, has_plain))
			(void)json_array_remove(denials, i);
		else
			i++;
}

/* policy/name.c - see name.h. Has its own character classes: the C library's depend on the locale,
 * and a policy must mean the same everywhere. */
#include "policy/name.h"

#include <string.h>

#include "policy/policy.h"

enum { NAME_MAX_BYTES = 255, PATH_MAX_BYTES = 4095 };

#define NPM_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.~-"

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c, const char *also)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || (c && strchr(also, c));
}

/* The first character is a letter or one of `first`, the others letters, digits or one of
 * `rest`. */
static bool is_shaped(const char *s, const char *first, const char *rest)
{
	size_t len = strnlen(s, NAME_MAX_BYTES + 1);

	if (len == 0 || len > NAME_MAX_BYTES)
		return false;
	if (!is_alpha(s[0]) && !strchr(first, s[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_word(s[i], rest))
			return false;
	return true;
}

static bool is_printable(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);

	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

bool name_is_module(const char *s)
{
	/* Python identifiers may contain any Unicode letter, so bytes above 0x7f are allowed. */
	if (!is_printable(s, NAME_MAX_BYTES) || s[0] == '.' || strstr(s, "..") || str_ends(s, "."))
		return false;
	for (size_t i = 0; s[i]; i++)
		if (!((unsigned char)s[i] >= 0x80 || is_word(s[i], "_.")))
			return false;
	return !(s[0] >= '0' && s[0] <= '9');
}

bool name_is_command(const char *s)
{
	return is_printable(s, NAME_MAX_BYTES) && !strpbrk(s, "/ ,") && !str_eq(s, ".") &&
	       !str_eq(s, "..") && s[0] != '-';
}

bool name_is_tool(const char *s)
{
	return is_shaped(s, ".", "_.");
}

bool name_is_proxy(const char *s)
{
	if (str_eq(s, "environment"))
		return true;
	if (!str_starts(s, "http://") || s[7] == '\0')
		return false;
	for (const char *p = s; *p; p++)
		if (*p <= ' ' || *p == '@' || *p == 0x7f || (*p == '/' && p > s + 6 && p[1]))
			return false;
	return true;
}

bool name_is_package(const char *s)
{
	return is_shaped(s, "0123456789", "_.+-");
}

bool name_is_npm(const char *s)
{
	const char *slash = s[0] == '@' ? strchr(s, '/') : NULL;

	if (s[0] != '@')
		return is_shaped(s, "0123456789", "_.~-");
	/* The scope begins with a letter or digit, and so does the name. */
	return slash && slash > s + 1 && is_word(s[1], "") &&
	       strspn(s + 1, NPM_CHARACTERS) == (size_t)(slash - s - 1) &&
	       is_shaped(slash + 1, "0123456789", "_.~-") && strlen(s) <= NAME_MAX_BYTES;
}

bool name_is_cran(const char *s)
{
	return is_shaped(s, "", ".");
}

bool name_is_registry(const char *s)
{
	size_t scheme = str_starts(s, "http://") ? 7 : str_starts(s, "https://") ? 8 : 0;

	if (!scheme)
		return name_is_path(s);
	if (!is_printable(s, PATH_MAX_BYTES) || s[scheme] == '\0' || s[scheme] == '/')
		return false;
	for (const char *p = s; *p; p++)
		if (strchr(" @\"'\\<>?#,", *p) || (unsigned char)*p >= 0x80)
			return false;
	return true;
}

bool name_is_variable(const char *s)
{
	return is_shaped(s, "_", "_");
}

bool name_is_passable(const char *s)
{
	return name_is_variable(s) && !policy_env_is_forbidden(s);
}

/* The loader reads LD_* before any code of ours runs. Other variables are the caller's choice. */
bool name_is_settable(const char *s)
{
	return name_is_variable(s) && !str_starts(s, "LD_") && !str_starts(s, "CORDON_") &&
	       !str_eq(s, "GLIBC_TUNABLES");
}

bool name_is_result(const char *s)
{
	return is_shaped(s, "_.", "_.");
}

bool name_is_path(const char *s)
{
	if (!is_printable(s, PATH_MAX_BYTES) || s[0] != '/')
		return false;
	for (const char *at = strstr(s, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			return false;
	return true;
}

bool name_is_file(const char *s)
{
	return is_printable(s, PATH_MAX_BYTES) && !name_is_below(s, "/dev");
}

bool name_is_header(const char *s)
{
	size_t len = strnlen(s, NAME_MAX_BYTES + 1);

	for (size_t i = 0; i < len; i++)
		if (!is_word(s[i], "!#$%&'*+-.^_`|~"))
			return false;
	return len > 0 && len <= NAME_MAX_BYTES;
}

bool name_is_method(const char *s)
{
	size_t len = strnlen(s, 33);

	for (size_t i = 0; i < len; i++)
		if (!(s[i] >= 'A' && s[i] <= 'Z') && s[i] != '-')
			return false;
	return len > 0 && len <= 32;
}

bool name_is_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (strncmp(path, root, len) != 0)
		return false;
	return path[len] == '\0' || path[len] == '/' || str_eq(root, "/");
}

bool name_is_sync(const char *s)
{
	return str_eq(s, "never") || str_eq(s, "close") || str_eq(s, "always");
}

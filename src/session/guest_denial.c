/* session/guest_denial.c - see guest_denial.h. */
#include "session/guest_denial.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "guest/mounts.h"
#include "guest/view.h"
#include "session/remedy.h"

enum { COMMAND_BYTES = 256, LINES_READ = 8 };

static int errno_of_name(const char *text)
{
	static const struct {
		const char *name;
		int number;
	} names[] = { { "EACCES: ", EACCES }, { "EPERM: ", EPERM },   { "EROFS: ", EROFS },
		      { "EFBIG: ", EFBIG },   { "ENOSPC: ", ENOSPC }, { "EAGAIN: ", EAGAIN } };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_starts(text, names[i].name))
			return names[i].number;
	return 0;
}

/* The quoted text after these words. */
static char *quoted_after(const char *text, const char *words)
{
	const char *open = strstr(text, words);

	if (!open)
		return NULL;
	open += strlen(words);
	const char *close = *open == '\'' || *open == '"' ? strchr(open + 1, *open) : NULL;
	return close && close > open + 1 ? str_ndup(open + 1, (size_t)(close - open - 1)) : NULL;
}

/* What stands before `end` in its line: the text in quotes, or after the last ": ". NULL: none. */
static char *word_before(const char *text, const char *end)
{
	static const char closing[] = "\xe2\x80\x99", opening[] = "\xe2\x80\x98";
	const char *start = end, *from, *mark = ": ";
	size_t cut = 0;

	while (start > text && start[-1] != '\n')
		start--;
	if (end - start > 3 && memcmp(end - 3, closing, 3) == 0) {
		mark = opening;
		cut = 3;
	} else if (end - start > 1 && end[-1] == '\'') {
		mark = "'";
		cut = 1;
	}
	size_t len = strlen(mark);
	for (from = end - cut; from > start; from--)
		if ((size_t)(from - start) >= len && memcmp(from - len, mark, len) == 0)
			break;
	if (from == start && cut > 0)
		return NULL;
	return str_ndup(from, (size_t)(end - from) - cut);
}

#define NOT_MAPPED ": failed to map segment from shared object"

void guest_denial_parse(struct guest_denial *ret, const char *message)
{
	const char *number = message ? strstr(message, "[Errno ") : NULL;
	const char *map = message ? strstr(message, NOT_MAPPED) : NULL;

	*ret = (struct guest_denial){ 0 };
	if (map) {
		const char *line = map;

		while (line > message && line[-1] != '\n' && line[-1] != ' ')
			line--;
		*ret = (struct guest_denial){ .os_errno = EACCES,
					      .path = str_ndup(line, (size_t)(map - line)),
					      .is_library = true };
		return;
	}
	if (number) {
		ret->os_errno = (int)strtol(number + 7, NULL, 10);
		ret->path = quoted_after(number, ": ");
		return;
	}
	ret->os_errno = message ? errno_of_name(message) : 0;
	if (!ret->os_errno)
		return;
	/* Node: "..., open '/x'". The word before the quote is the system call. */
	const char *comma = strstr(message, ", "), *space = comma ? strchr(comma + 2, ' ') : NULL;
	ret->path = space ? quoted_after(space, " ") : NULL;
}

void guest_denial_done(struct guest_denial *d)
{
	free(d->path);
	*d = (struct guest_denial){ 0 };
}

/* Makes an absolute path without dots, from its text alone; false: too long. */
static bool plain_path(const char *cwd, const char *path, char ret[static PATH_MAX])
{
	const char *parts[] = { *path == '/' ? "" : cwd, path };
	size_t len = 0;

	for (int k = 0; k < 2; k++)
		for (const char *p = parts[k]; *p;) {
			size_t n = strcspn(p, "/");

			if (n == 2 && p[0] == '.' && p[1] == '.') {
				while (len > 0 && ret[--len] != '/')
					;
			} else if (n > 0 && !(n == 1 && p[0] == '.')) {
				if (len + n + 2 > PATH_MAX)
					return false;
				ret[len] = '/';
				memcpy(ret + len + 1, p, n);
				len += n + 1;
			}
			p += n + (p[n] == '/');
		}
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return true;
}

enum ground {
	GROUND_GIVEN,     /* the policy allows it: something else refused it */
	GROUND_ELSEWHERE, /* the policy does not grant it */
	GROUND_PROGRAM,   /* may be read and written there, but not executed */
	GROUND_MOUNT,     /* in a mount that is read-only */
};

static bool is_below(const char *path, const char *folder)
{
	char plain[PATH_MAX];
	size_t len = plain_path("", folder, plain) ? strlen(plain) : 0;

	return len > 0 && strncmp(path, plain, len) == 0 && path[len] == '/';
}

/* A library can be mapped wherever the code cannot write. */
static enum ground library_ground(const char *path, const struct policy_mount *m,
				  const struct policy *p)
{
	bool is_writable = m ? m->mode == MOUNT_LIVE_RW : mounts_is_inside(path);

	return is_writable && !p->workspace_exec ? GROUND_PROGRAM : GROUND_GIVEN;
}

/* Where a path leads, as far as the host can see. The guest can change its workspace, so this says
 * only what was possible. */
static enum ground ground_of(const char *path, bool is_library,
			     const struct guest_denial_setting *s)
{
	const struct policy_mount *m = mounts_live_at(s->policy, path);
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_file_info info;

	if (is_library)
		return library_ground(path, m, s->policy);
	if (m)
		return m->mode == MOUNT_LIVE_RW ? GROUND_GIVEN : GROUND_MOUNT;
	if (s->private_dir)
		return is_below(path, s->private_dir) ? GROUND_GIVEN : GROUND_ELSEWHERE;
	if (!mounts_is_inside(path))
		return mounts_at(s->policy, path) ? GROUND_MOUNT : GROUND_ELSEWHERE;
	if (!s->workspace || workspace_stat(s->workspace, path, &info, &e) < 0)
		return GROUND_GIVEN;
	if (info.type == CORDON_SYMLINK) /* it may lead outside */
		return GROUND_ELSEWHERE;
	return info.type == CORDON_FILE && (info.mode & 0111) && !s->policy->workspace_exec
		       ? GROUND_PROGRAM
		       : GROUND_GIVEN;
}

static bool is_listed(const struct cordon_result *r, const char *target)
{
	size_t i;
	json_t *d;

	json_array_foreach(r->denials, i, d)
	{
		if (str_eq(json_string_value(json_object_get(d, "target")), target))
			return true;
	}
	return false;
}

static void add_file(const char *path, enum ground ground, bool is_read_only,
		     struct cordon_result *r)
{
	const char *operation = "open", *layer = "landlock",
		   *rule = "the policy does not allow this path",
		   *remedy = policy_is_own_path(path) ? "none: Cordon provides this path itself"
						      : "mounts: name the directory in the policy";

	if (is_listed(r, path))
		return;
	if (ground == GROUND_PROGRAM) {
		operation = "execute";
		layer = "mount";
		rule = REMEDY_EXEC_RULE;
		remedy = REMEDY_EXEC;
	} else if (ground == GROUND_MOUNT) {
		layer = is_read_only ? "mount" : "landlock";
		rule = "the mount is read-only";
		remedy = "mounts: give this mount the mode rw";
	} else if (is_read_only) {
		layer = "mount";
		rule = "everything but /home/user, /tmp and /workspace is read-only";
		if (!policy_is_own_path(path))
			remedy = "mounts: mount a directory there with the mode rw";
	}
	json_array_append_new(result_array(&r->denials),
			      json_pack("{s:s, s:o, s:s, s:s, s:s, s:i, s:b}", "operation",
					operation, "target", json_string_lossy(path, strlen(path)),
					"layer", layer, "rule", rule, "remedy", remedy, "count", 1,
					"claimed", 1));
}

bool guest_denial_file(const struct guest_denial *d, const struct guest_denial_setting *s,
		       struct cordon_result *r)
{
	char path[PATH_MAX];
	bool is_read_only = d->os_errno == EROFS;

	if (d->os_errno != EACCES && d->os_errno != EPERM && !is_read_only)
		return false;
	if (!d->path)
		return true;
	const char *home = s->private_dir ? s->private_dir : "/home/user";
	if (!plain_path(s->cwd ? s->cwd : home, d->path, path))
		return false;
	enum ground ground = ground_of(path, d->is_library, s);
	if (ground != GROUND_GIVEN)
		add_file(path, ground, is_read_only, r);
	return ground != GROUND_GIVEN;
}

bool guest_denial_lines(const char *text, const struct guest_denial_setting *s,
			struct cordon_result *r)
{
	static const struct {
		const char *words;
		int number;
	} endings[] = { { ": Permission denied\n", EACCES },
			{ ": Read-only file system\n", EROFS },
			{ ", reason 'Permission denied'", EACCES }, /* R's warnings */
			{ ", reason 'Read-only file system'", EROFS } };
	size_t before = json_array_size(r->denials);

	for (size_t i = 0; text && i < sizeof(endings) / sizeof(*endings); i++) {
		const char *at = text;

		for (int n = 0; n < LINES_READ && (at = strstr(at, endings[i].words)); n++, at++) {
			struct guest_denial d = { .os_errno = endings[i].number,
						  .path = word_before(text, at) };

			if (d.path && d.path[0])
				(void)guest_denial_file(&d, s, r);
			guest_denial_done(&d);
		}
	}
	return json_array_size(r->denials) > before;
}

void guest_denial_command(const char *name, const struct policy *p, struct cordon_result *r)
{
	if (!name || strlist_has(&p->commands.names, name) || !view_has_command(name))
		return;
	cleanup_free char *remedy = remedy_command(name);
	json_array_append_new(
		result_array(&r->denials),
		json_pack("{s:s, s:o, s:s, s:s, s:s, s:i, s:b}", "operation", "execute", "target",
			  json_string_lossy(name, strnlen(name, COMMAND_BYTES)), "layer", "mount",
			  "rule", "only the commands of the policy are there", "remedy",
			  remedy ? remedy : "none", "count", 1, "claimed", 1));
}

void guest_denial_not_found(const char *text, const struct policy *p, struct cordon_result *r)
{
	const char *at = text;

	for (int n = 0; at && n < LINES_READ && (at = strstr(at, ": not found\n")); n++, at++) {
		cleanup_free char *name = word_before(text, at);

		if (name && !is_listed(r, name))
			guest_denial_command(name, p, r);
	}
}

void guest_denial_module(const char *message, const struct policy *p, struct cordon_result *r)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_";
	cleanup_free char *name = message ? quoted_after(message, "Import of ") : NULL;

	if (name)
		name[strcspn(name, ".")] = '\0'; /* a package is allowed as a whole */
	if (!name || !name[0] || name[strspn(name, plain)] || strlist_has(&p->modules.names, name))
		return;
	cleanup_free char *remedy =
		str_printf("modules: name it in the policy (modules+=%s)", name);
	json_array_append_new(result_array(&r->denials),
			      json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b}", "operation",
					"import", "target", name, "layer", "guest", "rule",
					"only the modules of the policy can be imported", "remedy",
					remedy ? remedy : "none", "count", 1, "claimed", 1));
}

static bool has_socket(const struct cordon_result *r)
{
	size_t i;
	json_t *d;

	json_array_foreach(r->denials, i, d)
	{
		if (str_eq(json_string_value(json_object_get(d, "operation")), "socket") ||
		    str_eq(json_string_value(json_object_get(d, "operation")), "connect"))
			return true;
	}
	return false;
}

static bool says_one(const char *text, const char *const *words)
{
	for (; text && *words; words++)
		if (strstr(text, *words))
			return true;
	return false;
}

void guest_denial_network(const char *text, const struct policy *p, struct cordon_result *r)
{
	static const char *const certificates[] = { "TLS CA certificate bundle",
						    "/etc/ssl/certs/ca-certificates.crt", NULL };
	static const char *const addresses[] = { "etwork is unreachable", "ENETUNREACH",
						 "name resolution",       "EAI_AGAIN",
						 "resolve host",          NULL };
	bool has_sockets = p->expose.count > 0;

	if (p->network.allow_count > 0 || p->network.block_count > 0 || has_socket(r) ||
	    !(says_one(text, certificates) || (has_sockets && says_one(text, addresses))))
		return;
	json_array_append_new(
		result_array(&r->denials),
		json_pack("{s:s, s:n, s:s, s:s, s:s, s:i, s:b}", "operation", "connect", "target",
			  "layer", has_sockets ? "net" : "mount", "rule",
			  has_sockets ? "there is no network but the sandbox's own"
				      : "there is no network, and so there are no certificates",
			  "remedy",
			  "network.allow: name the hosts; the gateway then carries HTTP(S)",
			  "count", 1, "claimed", 1));
}

void guest_denial_rights(struct cordon_result *r)
{
	json_array_append_new(
		result_array(&r->denials),
		json_pack("{s:s, s:n, s:s, s:s, s:s, s:i, s:b}", "operation",
			  "do what needs more rights", "target", "layer", "kernel", "rule",
			  "the code has no capabilities, and no rights over the sandbox's pid 1",
			  "remedy", "none", "count", 1, "claimed", 1));
}

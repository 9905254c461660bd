/* session/guest_denial.c - see guest_denial.h. */
#include "session/guest_denial.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "guest/mounts.h"

enum { COMMAND_BYTES = 256 };

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

void guest_denial_parse(struct guest_denial *ret, const char *message)
{
	const char *number = message ? strstr(message, "[Errno ") : NULL;

	*ret = (struct guest_denial){ 0 };
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
};

static bool is_below(const char *path, const char *folder)
{
	char plain[PATH_MAX];
	size_t len = plain_path("", folder, plain) ? strlen(plain) : 0;

	return len > 0 && strncmp(path, plain, len) == 0 && path[len] == '/';
}

/* Where a path leads, as far as the host can see. The guest can change its workspace, so this says
 * only what was possible. */
static enum ground ground_of(const char *path, const struct guest_denial_setting *s)
{
	const struct policy_mount *m = mounts_live_at(s->policy, path);
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_file_info info;

	if (m)
		return m->mode == MOUNT_LIVE_RW ? GROUND_GIVEN : GROUND_ELSEWHERE;
	if (s->private_dir)
		return is_below(path, s->private_dir) ? GROUND_GIVEN : GROUND_ELSEWHERE;
	if (!mounts_is_inside(path))
		return GROUND_ELSEWHERE;
	if (!s->workspace || workspace_stat(s->workspace, path, &info, &e) < 0)
		return GROUND_GIVEN;
	if (info.type == CORDON_SYMLINK) /* it may lead outside */
		return GROUND_ELSEWHERE;
	return info.type == CORDON_FILE && (info.mode & 0111) ? GROUND_PROGRAM : GROUND_GIVEN;
}

static void add_file(const char *path, enum ground ground, bool is_read_only,
		     struct cordon_result *r)
{
	const char *operation = "open", *layer = "landlock",
		   *rule = "the policy does not allow this path",
		   *remedy = "mounts: name the directory in the policy";

	if (ground == GROUND_PROGRAM) {
		operation = "execute";
		layer = "mount";
		rule = "files in /home/user, /tmp and /workspace cannot be executed";
		remedy = "none: pass the file to an interpreter";
	} else if (is_read_only) {
		layer = "mount";
		rule = "everything but /home/user, /tmp and /workspace is read-only";
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
	enum ground ground = ground_of(path, s);
	if (ground != GROUND_GIVEN)
		add_file(path, ground, is_read_only, r);
	return ground != GROUND_GIVEN;
}

void guest_denial_command(const char *name, const struct policy *p, struct cordon_result *r)
{
	if (!name || strlist_has(&p->commands.names, name))
		return;
	json_array_append_new(
		result_array(&r->denials),
		json_pack("{s:s, s:o, s:s, s:s, s:s, s:i, s:b}", "operation", "execute", "target",
			  json_string_lossy(name, strnlen(name, COMMAND_BYTES)), "layer", "mount",
			  "rule", "only the commands of the policy are there", "remedy",
			  "commands: name the program in the policy", "count", 1, "claimed", 1));
}

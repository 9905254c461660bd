/* cli/choice.c - see choice.h. */
#include "cli/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/profile_option.h"

enum { MAX_POLICY = 16 << 20 };

int choice_set(struct cordon_policy *p, const char *key, const char *value,
	       struct cordon_error **reterr)
{
	cleanup_free char *assignment = str_printf("%s%s", key, value);

	if (!assignment)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return cordon_policy_set(p, assignment, reterr);
}

/* Every use of a repeatable option. */
static int set_all(const struct cli *c, struct cordon_policy *p, const char *option,
		   const char *key, struct cordon_error **reterr)
{
	const char *value;
	int r = 0;

	for (size_t i = 0; r == 0 && (value = cli_value_at(c, option, i)); i++) {
		if (!*value)
			return err_set(reterr, CORDON_INVALID, "--%s needs a value", option);
		r = choice_set(p, key, value, reterr);
	}
	return r;
}

/* A path on the command line may be relative, one in a policy may not. NULL: leave it unchanged. */
static char *absolute(const char *mount)
{
	const char *colon = strchr(mount, ':');

	if (!colon || colon == mount || mount[0] == '/')
		return NULL;
	cleanup_free char *host = str_ndup(mount, (size_t)(colon - mount));
	cleanup_free char *path = host ? realpath(host, NULL) : NULL;
	return path ? str_printf("%s%s", path, colon) : NULL;
}

/* Passed as JSON, because a path may contain a comma. */
int choice_add_mount(struct cordon_policy *p, const char *mount, struct cordon_error **reterr)
{
	cleanup_free char *full = absolute(mount);
	cleanup_json json_t *list = json_pack("[s]", full ? full : mount);
	cleanup_free char *text = list ? json_text(list, NULL) : NULL;

	return text ? choice_set(p, "mounts+=", text, reterr)
		    : err_set(reterr, CORDON_INVALID, "a mount is not valid UTF-8");
}

static int add_mounts(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *value;

	for (size_t i = 0; (value = cli_value_at(c, "mount", i)); i++) {
		int r = choice_add_mount(p, value, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "--mount %s", value);
	}
	return 0;
}

/* As with timeout(1), a number without a unit is seconds. (A policy field has its unit in its
 * name.) */
char *choice_seconds(const char *text)
{
	bool is_bare =
		text[0] >= '0' && text[0] <= '9' && text[strspn(text, "0123456789.")] == '\0';

	return str_printf("%s%s", text, is_bare ? "s" : "");
}

static int set_timeout(struct cordon_policy *p, const char *text, struct cordon_error **reterr)
{
	cleanup_free char *value = choice_seconds(text);
	int r = value ? choice_set(p, "timeout_ms=", value, reterr)
		      : err_set(reterr, CORDON_NOMEM, "out of memory");

	return r < 0 ? err_wrap(reterr, r,
				"--timeout takes seconds (5, 0.5), a number with ms, s, m or h, or "
				"none")
		     : 0;
}

/* A number without a unit is bytes. If it is too small to start with, the error suggests
 * mebibytes. */
static int set_memory(struct cordon_policy *p, const char *text, struct cordon_error **reterr)
{
	size_t digits = strspn(text, "0123456789");
	bool is_bare = digits > 0 && digits < sizeof("16777216") && text[digits] == '\0';
	int r = choice_set(p, "memory_bytes=", text, reterr);

	if (r < 0 && is_bare && text[0] != '0')
		return err_wrap(reterr, r, "--memory %s is %s bytes; for mebibytes write %sM", text,
				text, text);
	return r < 0 ? err_wrap(reterr, r, "--memory takes a size such as 256M or 1G") : 0;
}

static int set_env(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *value;

	for (size_t i = 0; (value = cli_value_at(c, "env", i)); i++)
		if (!strchr(value, '=') || *value == '=')
			return err_set(reterr, CORDON_INVALID, "--env %s: write NAME=VALUE", value);
	return set_all(c, p, "env", "env_set.", reterr);
}

static int apply_options(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *timeout = cli_value(c, "timeout"), *memory = cli_value(c, "memory");
	int r = 0;

	if (timeout)
		r = set_timeout(p, timeout, reterr);
	if (r == 0 && memory)
		r = set_memory(p, memory, reterr);
	if (r == 0)
		r = set_all(c, p, "set", "", reterr);
	/* These add to what --set may have replaced. */
	if (r == 0)
		r = add_mounts(c, p, reterr);
	if (r == 0)
		r = set_all(c, p, "allow-host", "network.allow+=", reterr);
	if (r == 0)
		r = set_all(c, p, "block-host", "network.block+=", reterr);
	if (r == 0)
		r = set_env(c, p, reterr);
	return r;
}

static bool is_level(const char *name)
{
	return str_eq(name, "permissive") || str_eq(name, "standard") || str_eq(name, "strict");
}

static int apply_named(struct cordon_policy *p, const char *profile, struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	int r = profile_load(profile, &text, reterr);

	if (r < 0)
		return r;
	r = cordon_policy_apply_json(p, text, reterr);
	return r < 0 ? err_wrap(reterr, r, "profile '%s'", profile) : 0;
}

/* A profile is a whole policy: what would come before it would have no effect. */
static int apply_profile(const struct cli *c, const char *base, struct cordon_policy *p,
			 struct cordon_error **reterr)
{
	const char *name = cli_value(c, "profile");

	if (!name)
		return 0;
	if (base || cli_has(c, "level"))
		return err_set(reterr, CORDON_INVALID,
			       "--profile replaces %s%s: name only one of them",
			       base ? "the policy " : "--level", base ? base : "");
	return apply_named(p, name, reterr);
}

int choice_named(const char *name, struct cordon_policy **ret, struct cordon_error **reterr)
{
	cleanup_choice struct cordon_policy *p = NULL;
	int r = cordon_policy_new(is_level(name) ? name : NULL, &p, reterr);

	if (r == 0 && !is_level(name))
		r = apply_named(p, name, reterr);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

int choice_policy(const struct cli *c, const char *base, struct cordon_policy **ret,
		  struct cordon_error **reterr)
{
	return choice_policy_between(c, base, NULL, ret, reterr);
}

int choice_policy_between(const struct cli *c, const char *base, choice_between_fn between,
			  struct cordon_policy **ret, struct cordon_error **reterr)
{
	cleanup_choice struct cordon_policy *p = NULL;
	const char *level = cli_value(c, "level"), *file;
	int r;

	if (base && is_level(base) && !level && !cli_has(c, "profile")) {
		level = base;
		base = NULL;
	}
	r = cordon_policy_new(level, &p, reterr);
	if (r == 0)
		r = apply_profile(c, base, p, reterr);
	if (r == 0 && base)
		r = cordon_policy_apply_file(p, base, reterr);
	for (size_t i = 0; r == 0 && (file = cli_value_at(c, "policy", i)); i++)
		r = cordon_policy_apply_file(p, file, reterr);
	if (r == 0 && between)
		r = between(c, p, reterr);
	if (r == 0)
		r = apply_options(c, p, reterr);
	if (r == 0)
		r = cordon_policy_check(p, reterr);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

/* What is not JSON counts as naming it. */
static bool document_names(const char *text, size_t len, const char *field)
{
	cleanup_json json_t *j = NULL;

	return json_parse(text, len, 0, &j, NULL) < 0 || json_object_get(j, field);
}

static bool profile_names(const char *profile, const char *field)
{
	cleanup_free char *text = NULL;

	return profile && (profile_load(profile, &text, NULL) < 0 ||
			   document_names(text, strlen(text), field));
}

/* Whether --set, the profile or a policy file names the field. A file that can be read only once
 * counts as naming it. */
static bool names(const struct cli *c, const char *field)
{
	const char *text;
	size_t len = strlen(field);

	for (size_t i = 0; (text = cli_value_at(c, "set", i)); i++)
		if (!strncmp(text, field, len) && strchr("=+-", text[len]))
			return true;
	for (size_t i = 0; (text = cli_value_at(c, "policy", i)); i++) {
		cleanup_buf struct buf bytes = { 0 };

		if (str_eq(text, "-") || file_load(text, MAX_POLICY, &bytes, NULL) < 0 ||
		    document_names(buf_text(&bytes), bytes.len, field))
			return true;
	}
	return profile_names(cli_value(c, "profile"), field);
}

int choice_policy_streamed(const struct cli *c, struct cordon_policy **ret,
			   struct cordon_error **reterr)
{
	static const char *const fields[] = { "stdout_bytes", "stderr_bytes", "output_lines" };
	cleanup_choice struct cordon_policy *p = NULL;
	int r = choice_policy(c, NULL, &p, reterr);

	for (size_t i = 0; r == 0 && i < sizeof(fields) / sizeof(*fields); i++)
		if (!names(c, fields[i]))
			r = choice_set(p, fields[i], "=none", reterr);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

bool choice_is_given(const struct cli *c)
{
	static const char *const names[] = { "level",  "profile", "policy",     "timeout",
					     "memory", "mount",   "allow-host", "block-host",
					     "env",    "set" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (cli_has(c, names[i]))
			return true;
	return false;
}

int choice_fail(const struct cli *c, const struct cordon_error *e)
{
	int status = cli_fail(c, e);

	return cordon_error_code(e) == CORDON_NOMEM ? status
						    : cordon_code_exit_status(CORDON_INVALID);
}

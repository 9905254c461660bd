/* cli/choice.c - from options to a policy. */
#include "cli/choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

static int set(struct cordon_policy *p, const char *key, const char *value,
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

	for (size_t i = 0; r == 0 && (value = cli_value_at(c, option, i)); i++)
		r = set(p, key, value, reterr);
	return r;
}

/* A path on a command line may be relative; a policy's may not. NULL: leave it as it is. */
static char *absolute(const char *mount)
{
	const char *colon = strchr(mount, ':');

	if (!colon || colon == mount || mount[0] == '/')
		return NULL;
	cleanup_free char *host = str_ndup(mount, (size_t)(colon - mount));
	cleanup_free char *path = host ? realpath(host, NULL) : NULL;
	return path ? str_printf("%s%s", path, colon) : NULL;
}

/* As JSON, for a path may hold a comma. */
int choice_add_mount(struct cordon_policy *p, const char *mount, struct cordon_error **reterr)
{
	cleanup_free char *full = absolute(mount);
	cleanup_json json_t *list = json_pack("[s]", full ? full : mount);
	cleanup_free char *text = list ? json_text(list, NULL) : NULL;

	return text ? set(p, "mounts+=", text, reterr)
		    : err_set(reterr, CORDON_INVALID, "a mount is not valid UTF-8");
}

static int add_mounts(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *value;
	int r = 0;

	for (size_t i = 0; r == 0 && (value = cli_value_at(c, "mount", i)); i++)
		r = choice_add_mount(p, value, reterr);
	return r;
}

static int apply_options(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	const char *timeout = cli_value(c, "timeout"), *memory = cli_value(c, "memory");
	int r = 0;

	if (timeout)
		r = set(p, "timeout_ms=", timeout, reterr);
	if (r == 0 && memory)
		r = set(p, "memory_bytes=", memory, reterr);
	if (r == 0)
		r = add_mounts(c, p, reterr);
	if (r == 0)
		r = set_all(c, p, "allow-host", "network.allow+=", reterr);
	if (r == 0)
		r = set_all(c, p, "block-host", "network.block+=", reterr);
	if (r == 0)
		r = set_all(c, p, "env", "env_set.", reterr);
	if (r == 0)
		r = set_all(c, p, "set", "", reterr);
	return r;
}

static bool is_level(const char *name)
{
	return str_eq(name, "permissive") || str_eq(name, "standard") || str_eq(name, "strict");
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

	if (base && is_level(base) && !level) {
		level = base;
		base = NULL;
	}
	r = cordon_policy_new(level, &p, reterr);
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

int choice_fail(const struct cli *c, const struct cordon_error *e)
{
	int status = cli_fail(c, e);

	return cordon_error_code(e) == CORDON_NOMEM ? status
						    : cordon_code_exit_status(CORDON_INVALID);
}

/* serve/e2b/e2b_template.c - see e2b_template.h. */
#include "serve/e2b/e2b_template.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/public.h"

/* For one that lives for minutes and is driven from outside: no limit on the time of an execution,
 * since the sandbox has an end, and programs of the workspace may run. No network. */
static const char base[] = "{\"level\":\"standard\",\"timeout_ms\":null,\"cpu_seconds\":null,"
			   "\"cpu_percent\":null,\"file_bytes\":null,\"processes\":128,"
			   "\"open_files\":1024,\"memory_bytes\":1073741824,"
			   "\"fs_bytes\":1073741824,\"workspace_exec\":true,\"validate\":false,"
			   "\"code_bytes\":8388608,\"message_bytes\":16777216,"
			   "\"rpc_bytes\":33554432,\"stdout_bytes\":null,"
			   "\"stderr_bytes\":null}";

static bool is_base(const char *name)
{
	static const char *const names[] = { "base", "code-interpreter-v1", "code-interpreter" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

/* A name is one file of the directory and nothing else. */
static bool is_name(const char *name)
{
	if (!isalnum((unsigned char)*name) || strlen(name) > 64)
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return false;
	return true;
}

static int base_policy(const struct cordon_policy *limit, struct cordon_policy **ret,
		       struct cordon_error **reterr)
{
	int r = 0;

	if (limit) {
		*ret = cordon_policy_copy(limit, reterr);
		return *ret ? 0 : -CORDON_NOMEM;
	}
	r = cordon_policy_new(NULL, ret, reterr);
	return r < 0 ? r : cordon_policy_apply_json(*ret, base, reterr);
}

int e2b_template_policy(const char *directory, const char *name, const struct cordon_policy *limit,
			struct cordon_policy **ret, struct cordon_error **reterr)
{
	cleanup_free char *path =
		directory && is_name(name) ? str_printf("%s/%s.json", directory, name) : NULL;
	bool is_file = path && access(path, R_OK) == 0;
	struct cordon_policy *p = NULL;

	if (!is_file && !is_base(name))
		return err_set(reterr, CORDON_NOT_FOUND,
			       "there is no template '%.64s': the server has no policy file of "
			       "that name",
			       name);
	int r = base_policy(limit, &p, reterr);
	if (r == 0 && is_file)
		r = cordon_policy_apply_file(p, path, reterr);
	if (r == 0 && is_file && limit)
		r = policy_narrows(&limit->p, &p->p, reterr);
	if (r < 0) {
		cordon_policy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

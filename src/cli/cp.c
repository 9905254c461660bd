/* cli/cp.c - `cordon cp`: copies files and folders between the host and a saved workspace. */
#include <cordon/cordon.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/transfer.h"
#include "cli/verb.h"

/* One side of the copy. */
struct side {
	char *workspace;  /* NULL: the host */
	const char *path; /* as given, without the workspace */
};

/* NAME:PATH is a workspace, unless it begins like a path; everything else is the host's. */
static bool read_side(const char *text, struct side *ret)
{
	const char *colon = strchr(text, ':');
	bool is_host = !colon || colon == text || text[0] == '/' || text[0] == '.' ||
		       memchr(text, '/', (size_t)(colon - text));

	*ret = (struct side){ .path = is_host ? text : colon + 1 };
	if (!is_host)
		ret->workspace = str_ndup(text, (size_t)(colon - text));
	return is_host || ret->workspace;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* As with cp: a target that ends in a slash, or none at all, is the folder to put it in. */
static char *target_path(const char *from, const char *to)
{
	cleanup_free char *trimmed = str_dup(from);
	size_t len = trimmed ? strlen(trimmed) : 0;

	while (len > 1 && trimmed[len - 1] == '/')
		trimmed[--len] = '\0';
	if (!trimmed || (to[0] && !str_ends(to, "/")))
		return str_dup(to);
	return str_printf("%s%s", to, last_part(trimmed));
}

static int copy(const struct cli *c, const struct side *from, const struct side *to,
		const struct cordon_policy *policy, struct cordon_error **reterr)
{
	bool is_in = to->workspace;
	const char *source = from->workspace && !from->path[0] ? "/home/user" : from->path;
	struct cordon_session_options o = { .guest = "sh",
					    .policy = policy,
					    .workspace = is_in ? to->workspace : from->workspace,
					    .cold = true };
	cleanup_free char *target = target_path(source, to->path);
	struct cordon_session *s = NULL;

	if (!target)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (!is_in) { /* opening a session would make one of that name */
		cleanup_close int fd = -1;
		int r = cordon_saved_open(from->workspace, &fd, reterr);
		if (r < 0)
			return r;
	}
	int r = cordon_session_open(&o, &s, reterr);
	if (r < 0)
		return r;
	r = is_in ? transfer_put(c, s, source, target, reterr)
		  : transfer_get(c, s, source, target, reterr);
	if (r < 0) {
		cordon_session_close(s);
		return r;
	}
	return cordon_session_end(s, reterr);
}

static int run(struct cli *c, int argc, char **argv)
{
	cleanup_choice struct cordon_policy *policy = NULL;
	cleanup_error struct cordon_error *e = NULL;
	struct side from = { 0 }, to = { 0 };
	int status = 0;

	(void)argc;
	if (choice_policy(c, NULL, &policy, &e) < 0)
		return choice_fail(c, e);
	if (!read_side(argv[0], &from) || !read_side(argv[1], &to))
		status = cordon_code_exit_status(CORDON_NOMEM);
	else if (!from.workspace == !to.workspace)
		status = cli_usage(c, "one of the two is WORKSPACE:PATH, the other a host path");
	else if (copy(c, &from, &to, policy, &e) < 0)
		status = cli_fail(c, e);
	free(from.workspace);
	free(to.workspace);
	return status;
}

static const struct cli_option options[] = {
	{ "level", 'l', "LEVEL", "permissive, standard or strict", false },
	{ "policy", 'p', "FILE", "a policy file, applied after the level", true },
	{ "set", 0, "KEY=VALUE", "set any field of the policy", true },
	{ 0 },
};

static const struct cli_example examples[] = {
	{ "cordon cp data.csv mine:", "into /home/user of the workspace 'mine'" },
	{ "cordon cp mine:/workspace/report report", "a folder from it" },
	{ "cordon cp --set fs_bytes=2G big.bin mine:/tmp/", "a file larger than the level allows" },
	{ 0 },
};

const struct verb verb_cp = {
	.name = "cp",
	.summary = "copy files between the host and a saved workspace",
	.usage = "[OPTION...] HOST_PATH WORKSPACE:PATH | WORKSPACE:PATH HOST_PATH",
	.options = options,
	.run = run,
	.about = "A WORKSPACE is the name of a saved workspace (cordon run --workspace NAME); "
		 "copying into a new name makes it. A PATH without a leading slash is below "
		 "/home/user; without a PATH all of that is copied from it. A target that ends in "
		 "a slash, or an empty PATH, is the folder to "
		 "copy into. A host path with a colon in it begins with ./ or /.\n\n"
		 "Folders are copied with all that is in them; links and special files are "
		 "skipped and named. On the host a folder's target must be new. A file is copied "
		 "in pieces and appears under its name when it is complete. The policy's "
		 "fs_bytes and file_count limit what fits.",
	.min_operands = 2,
	.max_operands = 2,
	.examples = examples,
};

/* modules/install_verdict.c - what came of an installation. The guest's words choose the error's
 * text; that it failed, ran into a limit or met a refusal is what the host has seen. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cordon/files.h"
#include "modules/installer.h"
#include "session/result.h"

/* NAME_BYTES: of a path, on average. */
enum { DEPTH_MAX = 40, WORD_MAX = 200, NAME_BYTES = 256 };

static const char *text_of(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "";
}

static int full_error(const struct policy *p, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_LIMIT,
		       "the installation needs more room than the policy allows: packages.bytes: "
		       "raise it (packages.bytes=%lluM)",
		       (unsigned long long)p->install_bytes / (1 << 20) * 2);
}

/* A limit that the host has seen. */
static int limit_error(const struct package_manager *m, const struct policy *p,
		       const struct cordon_result *r, struct cordon_error **reterr)
{
	if (str_eq(r->kind, "timeout"))
		return err_set(reterr, CORDON_TIMEOUT,
			       "the installation took longer than the policy allows: "
			       "packages.timeout_ms: raise it (packages.timeout_ms=%llu)",
			       (unsigned long long)p->install_ms * 2);
	if (str_eq(r->kind, "disk") || str_eq(r->kind, "file_size"))
		return full_error(p, reterr);
	if (str_eq(r->kind, "memory"))
		return err_set(reterr, CORDON_LIMIT,
			       "%s needs more memory than the policy allows: memory_bytes: raise "
			       "it (memory_bytes=%llu)",
			       m->name, (unsigned long long)p->memory_bytes * 2);
	if (str_eq(r->kind, "cancelled"))
		return err_set(reterr, CORDON_CANCELLED, "the installation was cancelled");
	return err_set(reterr, CORDON_OS, "%s could not run: %.300s", m->name,
		       r->error ? r->error : "unknown");
}

/* The first host that the gateway refused; NULL: none. */
static const json_t *refusal_of(const struct cordon_result *r)
{
	size_t i;
	json_t *d;

	json_array_foreach(r->denials, i, d)
	{
		if (str_eq(text_of(d, "layer"), "gateway"))
			return d;
	}
	return NULL;
}

/* What the guest says, printable and short: it may be the words of a package. */
static char *clean(const char *said)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, 4096);
	cleanup_free char *cut = str_ndup(said, strnlen(said, 500));
	if (!cut || buf_add_printable(&b, cut) < 0)
		return NULL;
	return buf_take(&b);
}

/* The package must be built, and the policy may forbid that. */
static int build_error(const struct policy *p, const char *place, const char *what,
		       struct cordon_error **reterr)
{
	if (p->workspace_exec)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "'%s' has no wheel of '%s' for this Python and this version, and "
			       "no source",
			       place, what);
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "'%s' has no wheel of '%s' for this Python and this version; building it "
		       "needs programs in the workspace (workspace_exec=true)",
		       place, what);
}

static const char *word(const char *said, const char *otherwise)
{
	return said && said[0] ? said : otherwise;
}

static int status_error(const struct package_manager *m, const struct policy *p, const json_t *v,
			struct cordon_error **reterr)
{
	const struct policy_registry *reg = package_manager_registry(m, p);
	const char *status = text_of(v, "status");
	const char *place = reg->sources.count ? reg->sources.items[0] : "the lockfile";
	cleanup_free char *name = clean(text_of(v, "name")), *detail = clean(text_of(v, "detail"));
	const char *what = word(name, "what was asked for"), *why = word(detail, "it says nothing");

	if (str_eq(status, "not_found"))
		return err_set(reterr, CORDON_NOT_FOUND, "'%s' has no package '%s'", place, what);
	if (str_eq(status, "no_version"))
		return err_set(reterr, CORDON_NOT_FOUND, "'%s' has no such version: %s", place,
			       why);
	if (str_eq(status, "no_wheel"))
		return build_error(p, place, what, reterr);
	if (str_eq(status, "no_exec"))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "'%s' has to be built, which needs programs in the workspace "
			       "(workspace_exec=true): %s",
			       what, why);
	if (str_eq(status, "unreachable"))
		return err_errno(reterr, EHOSTUNREACH, "%s: '%s' cannot be reached", m->source,
				 place);
	if (str_eq(status, "denied"))
		return err_set(reterr, CORDON_DENIED, "'%s' refused the request: %s", place, why);
	if (str_eq(status, "mismatch"))
		return err_set(reterr, CORDON_DENIED,
			       "a package does not have the hash that the lockfile or the "
			       "registry says: %s",
			       why);
	if (str_eq(status, "full"))
		return full_error(p, reterr);
	if (str_eq(status, "missing"))
		return err_set(reterr, CORDON_UNSUPPORTED, "this machine has no %s", why);
	return err_set(reterr, CORDON_OS, "%s failed: %s", m->name, why);
}

/* Names and versions, as far as they look like such. */
static json_t *packages_of(const json_t *said, uint64_t max)
{
	json_t *ret = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)said, key, value)
	{
		const char *version = json_string_value(value);
		if (ret && version && strlen(key) < WORD_MAX && strlen(version) < WORD_MAX &&
		    json_object_size(ret) < max)
			json_object_set_new(ret, key, json_string(version));
	}
	return ret;
}

int install_verdict(const struct package_manager *m, const struct policy *p,
		    struct cordon_result *result, json_t **ret_packages,
		    struct cordon_error **reterr)
{
	cleanup_json json_t *v = NULL;
	const json_t *refused = refusal_of(result);

	if (result->success && result->value_json)
		(void)json_parse(result->value_json, strlen(result->value_json), 0, &v, NULL);
	if (v && str_eq(text_of(v, "status"), "ok")) {
		*ret_packages = packages_of(json_object_get(v, "packages"), p->install_count);
		return *ret_packages ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	if (refused) {
		cleanup_free char *target = clean(text_of(refused, "target"));
		return err_set(reterr, CORDON_DENIED,
			       "the installation was refused '%s', which %s does not name: add "
			       "its address there, if packages may come from it",
			       target ? target : "a host", m->source);
	}
	return result->success ? status_error(m, p, v, reterr) : limit_error(m, p, result, reterr);
}

/* Walks the results. Python has NAME-VERSION.dist-info, R a directory with DESCRIPTION two levels
 * down, Node what is directly in a node_modules or in a scope there. */
struct walk {
	const struct package_manager *m;
	struct cordon_session *s;
	struct strlist dirs;
	uint64_t count, max;           /* packages */
	uint64_t entries, entries_max; /* what the session's workspace can hold */
	uint64_t path_bytes;           /* of dirs: a build step chooses their number and length */
};

enum { WALK_PACKAGES = 1, WALK_ENTRIES };

static bool is_package(const struct walk *w, const char *dir, const char *name)
{
	const char *base = strrchr(dir, '/') + 1;

	switch (w->m->kind) {
	case GUEST_KIND_PYTHON:
		return str_ends(name, ".dist-info") || str_ends(name, ".egg-info");
	case GUEST_KIND_NODE:
		return name[0] != '.' && name[0] != '@' &&
		       (str_eq(base, "node_modules") || base[0] == '@');
	default:
		return name[0] >= 'A' && base[0] >= '0' && base[0] <= '9';
	}
}

struct visit {
	struct walk *w;
	const char *dir;
};

static int visit(const char *name, const struct cordon_file_info *info, void *arg)
{
	struct visit *v = arg;
	struct walk *w = v->w;

	if (++w->entries > w->entries_max)
		return WALK_ENTRIES;
	if (info->type != CORDON_DIRECTORY)
		return 0;
	if (is_package(w, v->dir, name) && ++w->count > w->max)
		return WALK_PACKAGES;
	cleanup_free char *path = str_printf("%s/%s", v->dir, name);
	if (!path || strlist_add(&w->dirs, path) != 0)
		return -CORDON_NOMEM;
	w->path_bytes += strlen(path);
	return w->path_bytes > w->entries_max * NAME_BYTES ? WALK_ENTRIES : 0;
}

static unsigned depth_of(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Python's and R's packages are near the top; Node's may be below each other. */
static unsigned depth_max(const struct package_manager *m)
{
	return m->kind == GUEST_KIND_PYTHON ? 6 : m->kind == GUEST_KIND_R ? 5 : DEPTH_MAX;
}

int install_files_error(const struct policy *p, struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_LIMIT,
		       "the workspace has no room for so many files as the packages have: "
		       "file_count: raise it (file_count=%llu)",
		       (unsigned long long)p->file_count * 2);
}

int install_count(const struct package_manager *m, struct cordon_session *s, const struct policy *p,
		  uint64_t *ret, struct cordon_error **reterr)
{
	struct walk w = { .m = m, .s = s, .max = p->install_count, .entries_max = p->file_count };
	int r = strlist_add(&w.dirs, m->results);

	/* The list is the queue. What is in it is limited: it is the host's memory. */
	for (size_t i = 0; r == 0 && i < w.dirs.count; i++) {
		struct visit v = { &w, w.dirs.items[i] };
		if (depth_of(v.dir) <= depth_max(m))
			r = cordon_file_list(s, v.dir, visit, &v, reterr);
	}
	strlist_done(&w.dirs);
	if (r == WALK_ENTRIES)
		return install_files_error(p, reterr);
	if (r == WALK_PACKAGES)
		return err_set(reterr, CORDON_LIMIT,
			       "the installation has more packages than the policy allows: "
			       "packages.count: raise it (packages.count=%llu)",
			       (unsigned long long)w.max * 2);
	*ret = w.count;
	return r;
}

/* modules/installer.c - see installer.h. One installation is one session for one execution: the
 * package manager's guest gets a script and the names. */
#include "modules/installer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "cordon/files.h"
#include "cordon/packages.h"
#include "policy/public.h"
#include "session/place.h"
#include "session/result.h"
#include "session/session.h"
#include "session/session_audit.h"

extern const unsigned char install_pip[], install_npm[], install_cran[];
extern const unsigned long install_pip_len, install_npm_len, install_cran_len;

enum { NAMES_MAX = 1000 };

struct installation {
	struct cordon_session *s; /* the root, held */
	const struct package_manager *m;
	const struct cordon_install_options *options;
	struct strlist names; /* what was installed before, and what is asked for now */
	json_t *packages;
	uint64_t count;
};

/* What is sent to the package manager's guest, as code. */
static const char *install_script(const struct package_manager *m, size_t *ret_len)
{
	switch (m->kind) {
	case GUEST_KIND_PYTHON:
		*ret_len = install_pip_len;
		return (const char *)install_pip;
	case GUEST_KIND_NODE:
		*ret_len = install_npm_len;
		return (const char *)install_npm;
	default:
		*ret_len = install_cran_len;
		return (const char *)install_cran;
	}
}

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

/* cancel and kill of the session reach the installation, as long as it is set here. */
static int set_installer(struct cordon_session *s, struct cordon_session *installer)
{
	pthread_mutex_lock(&s->lock);
	s->installer = installer;
	bool is_closed = s->is_closed || s->wishes;
	pthread_mutex_unlock(&s->lock);
	return installer && is_closed ? -CORDON_CANCELLED : 0;
}

/* A file in memory that cannot grow beyond what the policy allows a package to bring. */
static int make_room(const struct policy *p)
{
	enum { HEADERS = 4096 }; /* of one file in a tar stream, at most */
	off_t size = (off_t)(p->install_bytes + p->file_count * HEADERS);
	int fd = memfd_create("packages", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, size) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) != 0))
		close_fdp(&fd);
	return fd;
}

/* Through a file in memory: the tar stream of one workspace becomes the other's files. It has no
 * links that lead out, and no file that the workspace's own checks refuse. */
static int copy_results(const struct installation *i, struct cordon_session *from,
			struct cordon_error **reterr)
{
	cleanup_close int fd = make_room(&i->s->policy);

	if (fd < 0)
		return err_errno(reterr, errno, "copy the packages");
	cleanup_error struct cordon_error *why = NULL;
	int r = cordon_file_get_tar(from, i->m->results, fd, NULL, &why);
	if (r < 0 && cordon_error_errno(why) == EPERM) /* the file is sealed against growing */
		return install_files_error(&i->s->policy, reterr);
	if (r < 0 && reterr)
		*reterr = TAKE_PTR(why);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = err_errno(reterr, errno, "copy the packages");
	if (r == 0)
		r = cordon_file_put_tar(i->s, i->m->results, fd, NULL, reterr);
	if (r == -CORDON_LIMIT)
		return err_wrap(reterr, r,
				"the workspace has no room for the packages: fs_bytes, file_count: "
				"raise them (fs_bytes=%lluM)",
				(unsigned long long)i->s->policy.fs_bytes / (1 << 20) * 2);
	return r < 0 ? err_wrap(reterr, r, "copy the packages into the workspace") : 0;
}

/* The manager's work is done when this returns; its sandbox is still there with the results. */
static int execute(struct installation *i, struct cordon_session *sandbox,
		   struct cordon_error **reterr)
{
	const struct policy *p = &i->s->policy;
	cleanup_free char *request = install_request(i->m, p, &i->names);
	cleanup_result struct cordon_result *result = NULL;
	uint64_t own = i->options->timeout_ms;
	struct cordon_execute_options x = {
		.context_json = request,
		.timeout_ms = own && own < p->install_ms ? own : p->install_ms,
		.output = i->options->output,
		.output_arg = i->options->output_arg,
		.skip_validation = true,
	};

	if (!request)
		return nomem(reterr);
	x.code = install_script(i->m, &x.code_len);
	int r = cordon_session_execute(sandbox, &x, &result, reterr);
	if (r == -CORDON_STATE) /* it was ended before it began */
		return err_set(reterr, CORDON_CANCELLED, "the installation was cancelled");
	if (r == 0)
		r = install_verdict(i->m, p, result, &i->packages, reterr);
	/* Processes that the packages left must not change what is counted and copied now. */
	session_drop_engine(sandbox);
	if (r == 0)
		r = install_count(i->m, sandbox, p, &i->count, reterr);
	return r;
}

static int run_manager(struct installation *i, struct cordon_error **reterr)
{
	struct cordon_policy policy = { 0 };
	struct cordon_session *sandbox = NULL;
	int r = install_policy(i->m, &i->s->policy, &policy.p, reterr);

	if (r < 0)
		return r;
	struct cordon_session_options o = { .guest = guest_name(i->m->kind),
					    .policy = &policy,
					    .audit = i->s->on_audit,
					    .audit_arg = i->s->audit_arg,
					    .log = i->s->log,
					    .log_arg = i->s->log_arg,
					    .cold = true };
	r = cordon_session_open(&o, &sandbox, reterr);
	policy_done(&policy.p);
	if (r < 0)
		return err_wrap(reterr, r, "the sandbox of the installation");
	if (set_installer(i->s, sandbox) < 0)
		r = err_set(reterr, CORDON_CANCELLED, "the installation was cancelled");
	if (r == 0)
		r = execute(i, sandbox, reterr);
	(void)set_installer(i->s, NULL);
	if (r == 0)
		r = copy_results(i, sandbox, reterr);
	cordon_session_close(sandbox);
	return r;
}

/* Recorded whether it succeeded or not; the installation's own sandbox has events of its own. */
static int record(const struct installation *i, int outcome, struct cordon_error **reterr)
{
	struct audit_event *e = audit_begin(i->s->audit, "package_install", session_audit_id(i->s));
	cleanup_free char *packages = i->packages ? json_text(i->packages, NULL) : NULL;
	cleanup_json json_t *names = json_array();

	for (size_t n = 0; n < i->names.count; n++)
		json_array_append_new(names, json_string(i->names.items[n]));
	cleanup_free char *text = json_text(names, NULL);
	audit_add_text(e, "manager", i->m->name, strlen(i->m->name));
	if (text)
		audit_add_json(e, "names", text, strlen(text));
	if (packages)
		audit_add_json(e, "packages", packages, strlen(packages));
	audit_add_bool(e, "success", outcome == 0);
	int r = audit_commit(e, reterr);
	return r < 0 && i->s->policy.audit_required ? r : 0;
}

/* Adds a name; one that was asked for before takes its new version. */
static int merge(struct installation *i, const char *spec)
{
	for (size_t n = 0; n < i->names.count; n++)
		if (package_request_is_same(i->m, i->names.items[n], spec)) {
			char *copy = str_dup(spec);
			if (!copy)
				return -CORDON_NOMEM;
			free(i->names.items[n]);
			i->names.items[n] = copy;
			return 0;
		}
	return strlist_add(&i->names, spec);
}

static int collect(struct installation *i, struct cordon_error **reterr)
{
	const struct policy *p = &i->s->policy;
	const struct policy_registry *reg = package_manager_registry(i->m, p);
	const char *const *names = i->options->names;
	int r = strlist_copy(&i->names, &i->s->installed[i->m->index]) < 0 ? nomem(reterr) : 0;

	if (r == 0 && (!names || !*names))
		r = err_set(reterr, CORDON_INVALID, "there is no package to install");
	for (size_t n = 0; r == 0 && names[n]; n++) {
		r = n >= NAMES_MAX
			    ? err_set(reterr, CORDON_LIMIT, "more than %d packages", NAMES_MAX)
			    : package_request_check(i->m, p, names[n], reterr);
		if (r == 0 && merge(i, names[n]) < 0)
			r = nomem(reterr);
	}
	/* A lockfile may name its files itself. */
	if (r == 0 && reg->sources.count == 0 &&
	    !(i->m->lock && strlist_has(&i->names, i->m->lock)))
		r = err_set(reterr, CORDON_DENIED,
			    "the policy names no place that packages of %s come from: %s: name "
			    "its address or a directory of the host (%s=PLACE)",
			    i->m->name, i->m->source, i->m->source);
	return r;
}

static void installation_done(struct installation *i)
{
	strlist_done(&i->names);
	json_decref(i->packages);
}

static int install(struct installation *i, char **ret_json, struct cordon_error **reterr)
{
	int r = collect(i, reterr);

	if (r < 0)
		return r;
	r = run_manager(i, reterr);
	int recorded = record(i, r, r < 0 ? NULL : reterr);
	if (r < 0 || recorded < 0)
		return r < 0 ? r : recorded;
	strlist_done(&i->s->installed[i->m->index]);
	i->s->installed[i->m->index] = i->names;
	i->names = (struct strlist){ 0 };
	if (!ret_json)
		return 0;
	cleanup_json json_t *j = json_pack("{s:s, s:O, s:I}", "manager", i->m->name, "packages",
					   i->packages, "count", (json_int_t)i->count);
	*ret_json = j ? json_text(j, NULL) : NULL;
	return *ret_json ? 0 : nomem(reterr);
}

static int check_kind(const struct cordon_session *s, const struct package_manager *m,
		      const char *language, struct cordon_error **reterr)
{
	if (s->kind == GUEST_KIND_POD)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "a pod has its own pip and pkg (docs/pod.md)");
	if (!m)
		return err_set(reterr, CORDON_INVALID,
			       "name the language of the packages: python, node or r%s%.40s",
			       language ? ", not " : "", language ? language : "");
	if (s->languages ? !(s->languages & 1U << m->kind) && !(s->languages & 1U << GUEST_KIND_SH)
			 : s->kind != m->kind && s->kind != GUEST_KIND_SH)
		return err_set(reterr, CORDON_INVALID, "the session has no %s for packages of %s",
			       guest_name(m->kind), m->name);
	return 0;
}

int cordon_session_install(struct cordon_session *s, const struct cordon_install_options *o,
			   char **ret_json, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s);
	const char *language = o->language ? o->language : guest_name(s->kind);
	struct installation i = { .s = root, .m = package_manager_find(language), .options = o };
	int r = check_kind(root, i.m, o->language, reterr);

	if (r == 0)
		r = session_hold(root, "the session is executing; install packages afterwards.",
				 reterr);
	if (r < 0)
		return r;
	r = install(&i, ret_json, reterr);
	session_let_go(root);
	installation_done(&i);
	return r;
}

int installer_open(struct cordon_session *s, const char *const *names, struct cordon_error **reterr)
{
	struct cordon_install_options o = { .names = names };

	return cordon_session_install(s, &o, NULL, reterr);
}

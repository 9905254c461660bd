/* prove/doctor.c - cordon_doctor: what this machine can enforce, layer by layer, and its guests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cordon/cordon.h"
#include "guest/guest.h"
#include "guest/languages.h"
#include "policy/policy.h"
#include "wall/linux/box.h"
#include "wall/linux/no_userns.h"

enum { VERSION_MS = 10000 };

static const struct {
	enum policy_layer layer;
	const char *what;
} ladder[] = {
	{ LAYER_USERNS, "a user namespace: no rights on the host" },
	{ LAYER_PIDNS, "a pid namespace: no foreign processes" },
	{ LAYER_MOUNTNS, "a mount namespace: only the files it is given" },
	{ LAYER_NETNS, "a network namespace: no network" },
	{ LAYER_IPCNS, "an ipc namespace: no foreign shared memory" },
	{ LAYER_UTSNS, "a uts namespace: a host name of its own" },
	{ LAYER_CGROUPNS, "a cgroup namespace: no view of the host's groups" },
	{ LAYER_LANDLOCK, "file and exec rules of the kernel" },
	{ LAYER_SECCOMP, "an allowlist of system calls" },
	{ LAYER_RLIMITS, "limits of each process" },
	{ LAYER_CGROUPS, "limits of memory, processes and CPU of the whole sandbox" },
	{ LAYER_LANDLOCK_NET, "Landlock's TCP rules, if the policy opens no network" },
	{ LAYER_LANDLOCK_SCOPE,
	  "Landlock's scopes: no signals or abstract sockets to the outside" },
};

static json_t *layers_json(const struct machine *m, bool *ret_full)
{
	json_t *a = json_array();

	*ret_full = true;
	for (size_t i = 0; i < sizeof(ladder) / sizeof(*ladder); i++) {
		const char *remedy = "";
		const char *why = machine_missing(m, ladder[i].layer, &remedy);
		json_t *o = json_object();
		char text[256];

		json_object_set_new(o, "layer", json_string(policy_layer_name(ladder[i].layer)));
		json_object_set_new(o, "what", json_string(ladder[i].what));
		json_object_set_new(o, "there", json_boolean(!why));
		if (why && ladder[i].layer <= LAYER_CGROUPNS && m->userns_step) {
			snprintf(text, sizeof(text), "%s: could not %s: %s", why, m->userns_step,
				 strerror(m->userns_errno));
			why = text;
		}
		json_object_set_new(o, "why", why ? json_string(why) : json_null());
		json_object_set_new(o, "remedy", why ? json_string(remedy) : json_null());
		json_array_append_new(a, o);
		/* A missing layer from LAYER_CGROUPS on does not lower the rung. Without control
		 * groups, limits apply to each process instead of the whole sandbox. What newer
		 * kernels add to Landlock is also covered by namespaces and the filter. */
		if (why && ladder[i].layer < LAYER_CGROUPS)
			*ret_full = false;
	}
	return a;
}

static json_t *cgroups_json(const struct machine *m)
{
	static const char *const names[MACHINE_CONTROLLERS] = { "memory", "pids", "cpu" };
	json_t *o = json_object(), *places = json_object();

	json_object_set_new(o, "version",
			    !m->cgroup_dir[0][0] ? json_null()
						 : json_string(m->cgroup_v2 ? "v2" : "v1"));
	for (int i = 0; i < MACHINE_CONTROLLERS; i++) {
		const char *dir = m->cgroup_dir[m->cgroup_v2 ? 0 : i];

		json_object_set_new(places, names[i], dir[0] ? json_string(dir) : json_null());
	}
	json_object_set_new(o, "places", places);
	return o;
}

/* Runs the interpreter in the sandbox to get its version, so it is known to start there. */
static int ask_version(enum guest_kind kind, const struct policy *p, char *ret, size_t size,
		       struct cordon_error **reterr)
{
	cleanup_launch struct launch l = { 0 };
	cleanup_box struct box *box = NULL;
	struct guest_options o = { .kind = kind, .mode = GUEST_SCRIPT, .policy = p, .code = "" };
	int out[2];

	int r = guest_launch(&o, &l, reterr);
	if (r < 0)
		return r;
	cleanup_free char *program = str_dup(l.executable);
	const char *const argv[] = { guest_name(kind), "--version", NULL };
	strlist_done(&l.argv);
	free(l.executable);
	l.executable = NULL;
	if (!program || language_command(&l, program, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch");
	if (pipe(out) != 0)
		return err_errno(reterr, errno, "open a pipe");
	struct box_options options = { .policy = p,
				       .launch = &l,
				       .stdin_fd = -1,
				       .stdout_fd = out[1],
				       .stderr_fd = out[1],
				       .wire_fd = -1 };
	r = box_start(&options, &box, reterr);
	close(out[1]);
	if (r == 0 && box_wait_gone(box, deadline_after_ms(VERSION_MS)))
		r = box_failure(box, reterr);
	ssize_t n = r == 0 ? read(out[0], ret, size - 1) : 0;
	close(out[0]);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (r < 0)
		return r;
	/* An interpreter that fails has no version: its message is the reason. */
	int status = box_status(box)->wait_status;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "it does not tell its version: %s",
			       ret[0] ? ret : "it printed nothing");
	return 0;
}

static json_t *guests_json(const struct policy *p)
{
	static const enum guest_kind kinds[] = { GUEST_KIND_PYTHON, GUEST_KIND_R, GUEST_KIND_NODE,
						 GUEST_KIND_SH, GUEST_KIND_POD };
	json_t *a = json_array();

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		cleanup_error struct cordon_error *e = NULL;
		char version[160] = "";
		int r = ask_version(kinds[i], p, version, sizeof(version), &e);
		json_t *o = json_object();

		json_object_set_new(o, "guest", json_string(guest_name(kinds[i])));
		json_object_set_new(o, "there", json_boolean(r == 0));
		json_object_set_new(o, "version",
				    r == 0 ? json_string_lossy(version, strlen(version))
					   : json_null());
		json_object_set_new(o, "why",
				    r == 0 ? json_null() : json_string(cordon_error_message(e)));
		json_array_append_new(a, o);
	}
	return a;
}

int cordon_doctor(char **ret_json, struct cordon_error **reterr)
{
	cleanup_json json_t *o = json_object();
	struct machine m;
	struct policy p;
	struct utsname u;
	bool is_full;

	int r = policy_init_level(&p, LEVEL_STANDARD, reterr);
	if (r < 0)
		return r;
	machine_probe(&m);
	if (!m.has_userns) /* then show what its guests can do on that rung */
		p.require &= ~(uint32_t)LAYERS_NAMESPACES;
	json_t *layers = layers_json(&m, &is_full);
	(void)uname(&u);
	json_object_set_new(o, "version", json_string(cordon_version()));
	json_object_set_new(o, "kernel", json_string(u.release));
	json_object_set_new(o, "machine", json_string(u.machine));
	json_object_set_new(o, "user", json_string(m.is_root ? "root" : "ordinary"));
	cleanup_error struct cordon_error *barred = NULL;
	if (!m.has_userns && no_userns_check(&m, &barred) < 0) {
		json_object_set_new(o, "rung", json_string("none"));
		json_object_set_new(o, "why", json_string(cordon_error_message(barred)));
	} else {
		json_object_set_new(o, "rung",
				    json_string(is_full        ? "full"
						: m.has_userns ? "partial"
							       : "without namespaces"));
	}
	json_object_set_new(o, "landlock_abi", json_integer(m.landlock_abi));
	json_object_set_new(o, "layers", layers);
	json_t *lacks = box_lacks(&m);
	if (!barred && json_array_size(lacks) > 0)
		json_object_set(o, "lacks", lacks);
	json_decref(lacks);
	json_object_set_new(o, "cgroups", cgroups_json(&m));
	json_object_set_new(o, "guests", guests_json(&p));
	policy_done(&p);
	*ret_json = json_text(o, NULL);
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "the ladder");
}

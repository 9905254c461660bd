/* wall/linux/ladder.c - see ladder.h. */
#include "wall/linux/ladder.h"

#include <stdio.h>
#include <string.h>

#include "policy/policy.h"
#include "wall/linux/evidence.h"
#include "wall/linux/no_userns.h"

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

void ladder_report(const struct machine *m, json_t *report)
{
	cleanup_error struct cordon_error *barred = NULL;
	bool is_full;
	json_t *layers = layers_json(m, &is_full);

	json_object_set_new(report, "user", json_string(m->is_root ? "root" : "ordinary"));
	if (!m->has_userns && no_userns_check(m, &barred) < 0) {
		json_object_set_new(report, "rung", json_string("none"));
		json_object_set_new(report, "why", json_string(cordon_error_message(barred)));
	} else {
		json_object_set_new(report, "rung",
				    json_string(is_full         ? "full"
						: m->has_userns ? "partial"
								: "without namespaces"));
	}
	json_object_set_new(report, "landlock_abi", json_integer(m->landlock_abi));
	json_object_set_new(report, "layers", layers);
	json_t *lacks = evidence_lacks(m);
	if (!barred && json_array_size(lacks) > 0)
		json_object_set(report, "lacks", lacks);
	json_decref(lacks);
	json_object_set_new(report, "cgroups", cgroups_json(m));
}

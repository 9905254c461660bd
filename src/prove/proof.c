/* prove/proof.c - cordon_prove: runs every attack through the real launch path, and finds out which
 * layer stopped it and whether it works outside. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cordon/cordon.h"
#include "guest/podimage.h"
#include "prove/trial.h"
#include "wall/wall.h"

enum { GUESTS = 4, SEAL_BYTES = 1 << 17 };

struct proof {
	const struct cordon_prove_options *options;
	struct policy policy, listed; /* listed: with a list of commands */
	struct bait bait;
	enum guest_kind kinds[GUESTS]; /* guests on this machine */
	size_t kind_count;
	bool has_python;
	bool has_groups;
	bool has_namespaces; /* otherwise the sandbox without namespaces is attacked */
	uint32_t open, held, broken, lacking, uncontrolled;
};

/* Limits small enough that the attacks can exceed them outside without harm. */
static int set_policy(struct policy *p, const char *allow_host, bool is_listed,
		      struct cordon_error **reterr)
{
	cleanup_free char *opened = str_printf("network.allow=%s", allow_host ? allow_host : "");
	int r = policy_init_level(p, LEVEL_STANDARD, reterr);

	if (r == 0 && allow_host)
		r = opened ? policy_apply_set(p, opened, reterr)
			   : err_errno(reterr, ENOMEM, "policy");
	if (r < 0)
		return r;
	p->memory_bytes = 96ULL << 20;
	p->fs_bytes = 16ULL << 20;
	p->file_bytes = 8ULL << 20;
	p->file_count = 512;
	p->cpu_seconds = 1;
	if (!is_listed)
		return 0;
	p->commands.all = false;
	return strlist_add(&p->commands.names, "cat");
}

static void find_guests(struct proof *x)
{
	static const enum guest_kind kinds[GUESTS] = { GUEST_KIND_PYTHON, GUEST_KIND_SH,
						       GUEST_KIND_R, GUEST_KIND_NODE };

	for (size_t i = 0; i < GUESTS; i++) {
		cleanup_launch struct launch l = { 0 };
		struct guest_options o = {
			.kind = kinds[i], .mode = GUEST_SCRIPT, .policy = &x->policy, .code = ""
		};

		if (x->options->guest && guest_from_name(x->options->guest) != kinds[i])
			continue;
		if (!x->has_namespaces && kinds[i] == GUEST_KIND_R)
			continue; /* does not start without namespaces */
		if (guest_launch(&o, &l, NULL) == 0)
			x->kinds[x->kind_count++] = kinds[i];
		x->has_python =
			x->has_python || (x->kind_count > 0 && x->kinds[0] == GUEST_KIND_PYTHON);
	}
}

/* Whether to attack the pod as well, with native programs in place of its modules. */
static bool has_pod(const struct proof *x)
{
	cleanup_launch struct launch l = { 0 };
	struct guest_options o = {
		.kind = GUEST_KIND_POD, .mode = GUEST_SCRIPT, .policy = &x->policy, .code = ""
	};

	if (x->options->guest && guest_from_name(x->options->guest) != GUEST_KIND_POD)
		return false;
	return guest_launch(&o, &l, NULL) == 0;
}

static const char *outcome_name(enum trial_outcome o)
{
	static const char *const names[] = { "held", "open", "not applicable", "lacking",
					     "broken" };

	return names[o];
}

/* Tries the attack with every guest's view and filter; the worst outcome counts. */
static int try_guests(struct proof *x, struct trial_options *o, struct trial *ret_worst,
		      json_t *guests, struct cordon_error **reterr)
{
	struct trial worst = { .outcome = TRIAL_HELD }, t = { 0 };
	bool is_single = o->attack->is_python || (o->attack->flags & (PROBE_ONCE | PROBE_CHARGED));
	size_t count = is_single && x->kind_count > 1 ? 1 : x->kind_count;

	for (size_t i = 0; i < count; i++) {
		o->kind = x->kinds[i];
		int r = trial_inside(o, &t, reterr);
		if (r < 0)
			return r;
		json_object_set_new(guests, guest_name(o->kind), json_string(t.said));
		if (i == 0 || t.outcome == TRIAL_OPEN ||
		    (t.outcome == TRIAL_BROKEN && worst.outcome != TRIAL_OPEN))
			worst = t;
	}
	o->kind = x->kinds[0];
	*ret_worst = worst;
	return 0;
}

/* Layers that can be switched off. The seal is the filter that a pod loads itself, in addition to
 * the sandbox's. */
#define WITHOUT_SEAL (1u << 31)
static const struct {
	uint32_t off;
	const char *name;
} switches[] = { { LAYER_SECCOMP, "seccomp" },
		 { LAYER_LANDLOCK, "landlock" },
		 { LAYER_NETNS, "network namespace" },
		 { WITHOUT_SEAL, "seal" } };
enum { SWITCHES = sizeof(switches) / sizeof(*switches) };

static bool works_without(const struct trial_options *o, unsigned set)
{
	struct trial_options second = *o;
	struct trial t = { 0 };

	for (size_t i = 0; i < SWITCHES; i++) {
		if (!(set & 1u << i))
			continue;
		if (switches[i].off == WITHOUT_SEAL)
			second.seal = NULL;
		else
			second.layers_off |= switches[i].off;
	}
	return trial_inside(&second, &t, NULL) == 0 && t.outcome == TRIAL_OPEN;
}

/* The smallest set of layers without which the attack works: these stop it. 0: it does not work
 * without any of them either. */
static unsigned smallest_set(const struct trial_options *o)
{
	unsigned all = (1u << (SWITCHES - (o->seal ? 0 : 1))) - 1;

	if (!works_without(o, all))
		return 0;
	for (int size = 1; size < SWITCHES; size++)
		for (unsigned set = 1; set < all; set++)
			if (__builtin_popcount(set) == size && works_without(o, set))
				return set;
	return all;
}

static void find_layers(const struct trial_options *o, const struct trial *first, json_t *layers)
{
	bool is_tried = !o->attack->is_python && !(o->attack->flags & (PROBE_ONCE | PROBE_CHARGED));
	unsigned set = is_tried ? smallest_set(o) : 0;

	for (size_t i = 0; i < SWITCHES; i++)
		if (set & 1u << i)
			json_array_append_new(layers, json_string(switches[i].name));
	if (set)
		return;
	/* Something that cannot be switched off stops it. The filter's report says whether the
	 * filter did so first. */
	if (first->is_noticed && strcmp(o->attack->holds, "seccomp") != 0)
		json_array_append_new(layers, json_string("seccomp"));
	json_array_append_new(layers, json_string(o->attack->holds));
}

static void count(struct proof *x, const struct trial *t, const struct trial *control)
{
	x->open += t->outcome == TRIAL_OPEN;
	x->held += t->outcome == TRIAL_HELD || t->outcome == TRIAL_NOT_HERE;
	x->lacking += t->outcome == TRIAL_LACKING;
	x->broken += t->outcome == TRIAL_BROKEN;
	x->uncontrolled += control->outcome == TRIAL_HELD || control->outcome == TRIAL_BROKEN;
}

static const char *control_word(const struct trial *t)
{
	return t->outcome == TRIAL_OPEN       ? "worked"
	       : t->outcome == TRIAL_NOT_HERE ? "not applicable"
					      : "failed";
}

/* Attacks that the sandbox of this machine does not stop, as documented. */
static bool is_unclaimed(const struct proof *x, const struct attack *a, const struct trial *t)
{
	return (!x->has_namespaces && (a->flags & PROBE_SPACED)) ||
	       (t->is_nonotify && (a->flags & PROBE_TOLD));
}

static int prove_one(struct proof *x, const struct attack *a, json_t *rows,
		     struct cordon_error **reterr)
{
	struct trial_options o = { .attack = a,
				   .bait = &x->bait,
				   .policy = a->flags & PROBE_LISTED ? &x->listed : &x->policy };
	struct trial t = { 0 }, control = { .outcome = TRIAL_NOT_HERE };
	cleanup_json json_t *guests = json_object();
	cleanup_json json_t *layers = json_array();
	cleanup_json json_t *row = json_object();

	int r = try_guests(x, &o, &t, guests, reterr);
	if (t.outcome == TRIAL_OPEN && is_unclaimed(x, a, &t))
		t.outcome = TRIAL_LACKING;
	if (r == 0 && x->options->control)
		r = trial_outside(&o, &control, reterr);
	if (r < 0)
		return r;
	/* Not with a gateway, which must not run without a network namespace. */
	if (t.outcome == TRIAL_HELD && !x->options->quick && !x->options->allow_host)
		find_layers(&o, &t, layers);
	json_object_set_new(row, "name", json_string(a->name));
	json_object_set_new(row, "attack", json_string(a->words));
	json_object_set_new(row, "language", json_string(a->is_python ? "python" : "c"));
	json_object_set_new(row, "outcome", json_string(outcome_name(t.outcome)));
	json_object_set_new(row, "said", json_string(t.said));
	json_object_set(row, "guests", guests);
	json_object_set(row, "layers", layers);
	if (x->options->control) {
		json_object_set_new(row, "control", json_string(control_word(&control)));
		json_object_set_new(row, "control_said", json_string(control.said));
	}
	count(x, &t, &control);
	if (x->options->progress)
		x->options->progress(a->name, outcome_name(t.outcome), x->options->progress_arg);
	return json_array_append(rows, row) == 0 ? 0 : err_errno(reterr, ENOMEM, "the proof");
}

static int prove_all(struct proof *x, json_t *rows, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(&x->policy)->attacks();
	const struct attack *a = all.table;
	size_t found = 0;

	for (size_t i = 0; i < all.count; i++) {
		if (x->options->only && !str_eq(x->options->only, a[i].name))
			continue;
		found++;
		if (a[i].is_python && !x->has_python)
			continue;
		int r = prove_one(x, &a[i], rows, reterr);
		if (r < 0)
			return err_wrap(reterr, r, "the attack '%s'", a[i].name);
	}
	return found ? 0
		     : err_set(reterr, CORDON_INVALID, "there is no attack '%s'", x->options->only);
}

/* The filter that a pod loads before its first module; NULL: the image does not say. */
static char *read_seal(bool has_network)
{
	char image[PATH_MAX], path[PATH_MAX + 32];
	struct buf text;

	if (!podimage_find(image, sizeof(image)))
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", image, has_network ? "seal-network" : "seal");
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	buf_init(&text, SEAL_BYTES);
	char *seal = fd >= 0 && file_read_to_end(fd, &text, NULL) >= 0 && text.len > 0
			     ? str_ndup(buf_text(&text), strcspn(buf_text(&text), "\n"))
			     : NULL;
	buf_done(&text);
	return seal;
}

/* Attacks the sandbox of a pod alone: no WebAssembly and no door, but the same namespaces, view and
 * filters, including the pod's own. */
static int prove_in_pod(struct proof *x, const struct attack *a, const char *seal, json_t *rows,
			struct cordon_error **reterr)
{
	struct trial_options o = { .attack = a,
				   .bait = &x->bait,
				   .kind = GUEST_KIND_POD,
				   .policy = a->flags & PROBE_LISTED ? &x->listed : &x->policy,
				   .seal = seal };
	struct trial t = { 0 }, none = { .outcome = TRIAL_NOT_HERE };
	cleanup_json json_t *layers = json_array();

	int r = trial_inside(&o, &t, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "the attack '%s' in a pod", a->name);
	count(x, &t, &none);
	if (t.outcome == TRIAL_HELD && !x->options->quick && !x->options->allow_host)
		find_layers(&o, &t, layers);
	if (x->options->progress)
		x->options->progress(a->name, outcome_name(t.outcome), x->options->progress_arg);
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:s, s:s, s:b, s:O}", "name", a->name, "attack",
					a->words, "outcome", outcome_name(t.outcome), "said",
					t.said, "sealed", seal != NULL, "layers", layers));
	return 0;
}

static int prove_pod(struct proof *x, json_t *rows, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(&x->policy)->attacks();
	const struct attack *a = all.table;
	cleanup_free char *seal = read_seal(x->options->allow_host != NULL);
	int r = 0;

	for (size_t i = 0; r == 0 && i < all.count; i++)
		if (!a[i].is_python && (!x->options->only || str_eq(x->options->only, a[i].name)))
			r = prove_in_pod(x, &a[i], seal, rows, reterr);
	return r;
}

static int prove(struct proof *x, json_t *rows, json_t *pod, struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(&x->policy)->attacks();
	int r = bait_init(&x->bait, &x->policy, x->has_namespaces, x->has_groups, reterr);

	if (r < 0)
		return r;
	if (x->has_namespaces)
		r = bait_mount(&x->bait, &x->policy, reterr);
	if (r == 0 && x->has_namespaces)
		r = bait_mount(&x->bait, &x->listed, reterr);
	if (r == 0 && x->options->control)
		r = bait_add_program(&x->bait, wall.program, wall.program_len, reterr);
	find_guests(x);
	bool with_pod = x->has_namespaces && has_pod(x);
	if (r == 0 && x->kind_count == 0 && !with_pod)
		r = err_set(reterr, CORDON_NOT_FOUND,
			    "no guest is installed whose sandbox could be attacked");
	if (r == 0 && x->kind_count)
		r = prove_all(x, rows, reterr);
	if (r == 0 && with_pod)
		r = prove_pod(x, pod, reterr);
	bait_done(&x->bait);
	return r;
}

int cordon_prove(const struct cordon_prove_options *opts, char **ret_json,
		 struct cordon_error **reterr)
{
	static const struct cordon_prove_options none = { 0 };
	struct proof x = { .options = opts ? opts : &none };
	cleanup_json json_t *rows = json_array();
	cleanup_json json_t *pod = json_array();
	cleanup_json json_t *report = json_object();

	const char *host = x.options->allow_host;
	int r = set_policy(&x.policy, host, false, reterr);
	if (r == 0)
		r = set_policy(&x.listed, host, true, reterr);
	if (r == 0) {
		/* Without namespaces, that sandbox is attacked. */
		struct wall_probe wall;

		wall_probe(&x.policy, &wall, NULL);
		x.has_namespaces = wall.has_namespaces;
		x.has_groups = wall.has_groups;
		if (!wall.has_namespaces)
			x.policy.require = x.listed.require &= ~(uint32_t)LAYERS_NAMESPACES;
		r = prove(&x, rows, pod, reterr);
	}
	policy_done(&x.policy);
	policy_done(&x.listed);
	if (r < 0)
		return r;
	json_object_set_new(report, "user", json_string(geteuid() == 0 ? "root" : "ordinary"));
	json_object_set_new(report, "rung",
			    json_string(x.has_namespaces ? "full" : "without namespaces"));
	json_object_set_new(report, "allow_host", host ? json_string(host) : json_null());
	json_object_set_new(report, "held", json_integer(x.held));
	json_object_set_new(report, "open", json_integer(x.open));
	json_object_set_new(report, "lacking", json_integer(x.lacking));
	json_object_set_new(report, "broken", json_integer(x.broken));
	if (x.options->control)
		json_object_set_new(report, "controls_failed", json_integer(x.uncontrolled));
	json_object_set(report, "attacks", rows);
	if (json_array_size(pod) > 0)
		json_object_set(report, "pod", pod);
	*ret_json = json_text(report, NULL);
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "the proof");
}

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
#include "prove/attack_forked.h"
#include "prove/trial.h"
#include "wall/wall.h"

enum { GUESTS = 4, SEAL_BYTES = 1 << 17 };

struct proof {
	const struct cordon_prove_options *options;
	struct policy policy, listed; /* listed: with a list of commands */
	struct policy strict, opened; /* for PROBE_SWITCHED; opened: workspace_exec is on */
	struct policy exposed;        /* with a port that the host may connect to */
	struct bait bait;
	enum guest_kind kinds[GUESTS]; /* guests on this machine */
	size_t kind_count;
	bool has_python;
	bool has_groups;
	bool has_namespaces; /* otherwise the sandbox without namespaces is attacked */
	uint32_t open, held, broken, lacking, uncontrolled;
	bool is_nonotify; /* a trial has shown that this kernel's filters have no listener */
};

/* The parts of the report: borrowed arrays of rows. */
struct sections {
	json_t *attacks, *place, *forked, *pod;
};

/* Limits small enough that the attacks can exceed them outside without harm. */
static int set_policy(struct policy *p, enum policy_level level, const char *allow_host,
		      struct cordon_error **reterr)
{
	cleanup_free char *allowed = str_printf("network.allow=%s", allow_host ? allow_host : "");
	int r = policy_init_level(p, level, reterr);

	if (r == 0 && allow_host)
		r = allowed ? policy_apply_set(p, allowed, reterr)
			    : err_errno(reterr, ENOMEM, "policy");
	if (r < 0)
		return r;
	p->memory_bytes = 96ULL << 20;
	p->fs_bytes = 16ULL << 20;
	p->file_bytes = 8ULL << 20;
	p->file_count = 512;
	p->cpu_seconds = 1;
	return 0;
}

static int set_policies(struct proof *x, struct cordon_error **reterr)
{
	const char *host = x->options->allow_host;
	int r = set_policy(&x->policy, LEVEL_STANDARD, host, reterr);

	if (r == 0)
		r = set_policy(&x->listed, LEVEL_STANDARD, host, reterr);
	if (r == 0)
		r = policy_apply_set(&x->listed, "commands=cat", reterr);
	if (r == 0)
		r = set_policy(&x->strict, LEVEL_STRICT, host, reterr);
	if (r == 0)
		r = set_policy(&x->opened, LEVEL_STANDARD, host, reterr);
	x->opened.workspace_exec = true;
	if (r == 0)
		r = set_policy(&x->exposed, LEVEL_STANDARD, host, reterr);
	return r < 0 ? r : policy_apply_set(&x->exposed, "expose=8000", reterr);
}

static void drop_namespaces(struct proof *x)
{
	const uint32_t all = LAYERS_NAMESPACES;

	x->policy.require &= ~all;
	x->listed.require &= ~all;
	x->strict.require &= ~all;
	x->opened.require &= ~all;
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

/* The field of the policy is what stops it: not in strict either, and it works if the field is
 * on. */
static int try_switched(struct proof *x, struct trial_options *o, struct trial *t,
			struct cordon_error **reterr)
{
	cleanup_json json_t *guests = json_object();
	const struct policy *usual = o->policy;
	struct trial opened = { 0 };

	if (!(o->attack->flags & PROBE_SWITCHED) || t->outcome != TRIAL_HELD)
		return 0;
	o->policy = &x->strict;
	int r = try_guests(x, o, t, guests, reterr);
	o->policy = &x->opened;
	if (r == 0)
		r = trial_inside(o, &opened, reterr);
	o->policy = usual;
	if (r == 0 && t->outcome == TRIAL_HELD && opened.outcome != TRIAL_OPEN) {
		t->outcome = TRIAL_BROKEN;
		snprintf(t->said, sizeof(t->said), "%.30s with workspace_exec", opened.said);
	}
	return r;
}

/* A policy that exposes a port opens nothing but TCP sockets on the sandbox's own loopback. */
static int try_exposed(struct proof *x, struct trial_options *o, struct trial *t,
		       struct cordon_error **reterr)
{
	cleanup_json json_t *guests = json_object();
	const struct policy *usual = o->policy;
	struct trial again = { 0 };

	if (!(o->attack->flags & (PROBE_BESIDE | PROBE_OPENS)) || t->outcome != TRIAL_HELD ||
	    !x->has_namespaces || x->options->allow_host)
		return 0;
	o->policy = &x->exposed;
	int r = try_guests(x, o, &again, guests, reterr);
	o->policy = usual;
	if (r == 0 && (o->attack->flags & PROBE_BESIDE))
		*t = again;
	if (r == 0 && (o->attack->flags & PROBE_OPENS) && again.outcome != TRIAL_OPEN) {
		t->outcome = TRIAL_BROKEN;
		snprintf(t->said, sizeof(t->said), "%.30s with expose", again.said);
	}
	return r;
}

static const struct policy *policy_for(const struct proof *x, const struct attack *a)
{
	return a->flags & PROBE_LISTED    ? &x->listed
	       : a->flags & PROBE_EXPOSED ? &x->exposed
					  : &x->policy;
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
	       ((t->is_nonotify || x->is_nonotify) && (a->flags & PROBE_TOLD));
}

static int prove_one(struct proof *x, const struct attack *a, json_t *rows,
		     struct cordon_error **reterr)
{
	struct trial_options o = { .attack = a, .bait = &x->bait, .policy = policy_for(x, a) };
	struct trial t = { 0 }, control = { .outcome = TRIAL_NOT_HERE };
	cleanup_json json_t *guests = json_object();
	cleanup_json json_t *layers = json_array();
	cleanup_json json_t *row = json_object();

	int r = try_guests(x, &o, &t, guests, reterr);
	if (r == 0)
		r = try_switched(x, &o, &t, reterr);
	if (r == 0)
		r = try_exposed(x, &o, &t, reterr);
	x->is_nonotify |= t.is_nonotify;
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
		if ((a[i].flags & (PROBE_EXPOSED | PROBE_BUILD)) && !x->has_namespaces)
			continue; /* refused there */
		if ((a[i].flags & PROBE_BUILD) && x->options->allow_host)
			continue; /* its network is the registry, whatever the policy allows */
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

/* Attacks another kind of sandbox. */
static int prove_other(struct proof *x, struct trial_options *o, json_t *rows,
		       struct cordon_error **reterr)
{
	const struct attack *a = o->attack;
	struct trial t = { 0 }, none = { .outcome = TRIAL_NOT_HERE };
	cleanup_json json_t *layers = json_array();

	o->bait = &x->bait;
	o->policy = a->flags & PROBE_LISTED ? &x->listed : o->is_forked ? &x->opened : &x->policy;
	int r = trial_inside(o, &t, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "the attack '%s' in a %s", a->name,
				o->is_forked ? "forked sandbox"
				: o->joins   ? "place"
					     : "pod");
	if (t.outcome == TRIAL_OPEN && is_unclaimed(x, a, &t))
		t.outcome = TRIAL_LACKING;
	count(x, &t, &none);
	if (t.outcome == TRIAL_HELD && !x->options->quick && !x->options->allow_host && !o->joins &&
	    !o->is_forked)
		find_layers(o, &t, layers);
	if (x->options->progress)
		x->options->progress(a->name, outcome_name(t.outcome), x->options->progress_arg);
	json_array_append_new(
		rows, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:O}", "name", a->name, "attack",
				a->words, "outcome", outcome_name(t.outcome), "said", t.said,
				"sealed", o->seal != NULL, "joined", o->joins, "layers", layers));
	return 0;
}

/* The sandbox of a pod alone: no WebAssembly and no door, but the same namespaces, view and
 * filters, including the pod's own. */
static int prove_pod(struct proof *x, json_t *rows, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(&x->policy)->attacks();
	const struct attack *a = all.table;
	cleanup_free char *seal = read_seal(x->options->allow_host != NULL);
	int r = 0;

	for (size_t i = 0; r == 0 && i < all.count; i++)
		if (!a[i].is_python && (!x->options->only || str_eq(x->options->only, a[i].name))) {
			struct trial_options o = { .attack = &a[i],
						   .kind = GUEST_KIND_POD,
						   .seal = seal };

			r = prove_other(x, &o, rows, reterr);
		}
	return r;
}

/* Every native attack again, in a guest that joins a place. */
static int prove_place(struct proof *x, json_t *rows, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(&x->policy)->attacks();
	const uint32_t alone = PROBE_CHARGED | PROBE_IDLE | PROBE_SIBLING;
	const struct attack *a = all.table;
	size_t count = x->has_namespaces ? all.count : 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!a[i].is_python && !(a[i].flags & alone) &&
		    (!x->options->only || str_eq(x->options->only, a[i].name))) {
			struct trial_options o = { .attack = &a[i],
						   .kind = x->kinds[0],
						   .joins = true };

			r = prove_other(x, &o, rows, reterr);
		}
	return r;
}

/* Attacks that a guest of a place with others may make: it sees and may signal them, and its
 * program is a file that it owns. */
static bool is_open_in_places(const struct attack *a)
{
	static const char *const names[] = { "signal_all", "list_host", "write_self" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(a->name, names[i]))
			return true;
	return false;
}

/* In a session that a template forks, and as a guest of a place that one forks. What a program of
 * the code cannot try, because it looks at its parent, a guest can. */
static int prove_both(struct proof *x, const struct attack *a, json_t *rows,
		      struct cordon_error **reterr)
{
	struct trial_options o = { .attack = a, .kind = GUEST_KIND_PYTHON, .is_forked = true };
	bool is_guest = !a->is_python && !(a->flags & ATTACK_NOT_FORKED & ~PROBE_ALONE) &&
			!is_open_in_places(a);
	int r = a->flags & ATTACK_NOT_FORKED ? 0 : prove_other(x, &o, rows, reterr);

	o.joins = true;
	return r == 0 && is_guest ? prove_other(x, &o, rows, reterr) : r;
}

/* Every attack again where a template forks; with allow_host behind a gateway each. */
static int prove_forked(struct proof *x, json_t *rows, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(&x->policy)->attacks();
	const struct attack *a = all.table;
	size_t count = x->has_namespaces && x->has_python ? all.count : 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!x->options->only || str_eq(x->options->only, a[i].name))
			r = prove_both(x, &a[i], rows, reterr);
	return r;
}

static int prove_guests(struct proof *x, struct sections *s, struct cordon_error **reterr)
{
	int r = prove_all(x, s->attacks, reterr);

	if (r == 0)
		r = prove_place(x, s->place, reterr);
	return r < 0 ? r : prove_forked(x, s->forked, reterr);
}

static int prove(struct proof *x, struct sections *s, struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(&x->policy)->attacks();
	int r = bait_init(&x->bait, &x->policy, x->has_namespaces, x->has_groups, reterr);

	if (r < 0)
		return r;
	struct policy *const policies[] = { &x->policy, &x->listed, &x->strict, &x->opened,
					    &x->exposed };
	for (size_t i = 0; r == 0 && x->has_namespaces && i < 5; i++)
		r = bait_mount(&x->bait, policies[i], reterr);
	if (r == 0 && x->options->control)
		r = bait_add_program(&x->bait, wall.program, wall.program_len, reterr);
	find_guests(x);
	bool with_pod = x->has_namespaces && has_pod(x);
	if (r == 0 && x->kind_count == 0 && !with_pod)
		r = err_set(reterr, CORDON_NOT_FOUND,
			    "no guest is installed whose sandbox could be attacked");
	if (r == 0 && x->kind_count)
		r = prove_guests(x, s, reterr);
	if (r == 0 && with_pod)
		r = prove_pod(x, s->pod, reterr);
	bait_done(&x->bait);
	return r;
}

int cordon_prove(const struct cordon_prove_options *opts, char **ret_json,
		 struct cordon_error **reterr)
{
	static const struct cordon_prove_options none = { 0 };
	struct proof x = { .options = opts ? opts : &none };
	cleanup_json json_t *rows = json_array();
	cleanup_json json_t *place = json_array();
	cleanup_json json_t *forked = json_array();
	cleanup_json json_t *pod = json_array();
	cleanup_json json_t *report = json_object();
	struct sections sections = { rows, place, forked, pod };

	const char *host = x.options->allow_host;
	int r = set_policies(&x, reterr);
	if (r == 0) {
		/* Without namespaces, that sandbox is attacked. */
		struct wall_probe wall;

		wall_probe(&x.policy, &wall, NULL);
		x.has_namespaces = wall.has_namespaces;
		x.has_groups = wall.has_groups;
		if (!wall.has_namespaces)
			drop_namespaces(&x);
		r = prove(&x, &sections, reterr);
	}
	policy_done(&x.policy);
	policy_done(&x.listed);
	policy_done(&x.strict);
	policy_done(&x.opened);
	policy_done(&x.exposed);
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
	if (json_array_size(place) > 0)
		json_object_set(report, "place", place);
	if (json_array_size(forked) > 0)
		json_object_set(report, "forked", forked);
	if (json_array_size(pod) > 0)
		json_object_set(report, "pod", pod);
	*ret_json = json_text(report, NULL);
	return *ret_json ? 0 : err_errno(reterr, ENOMEM, "the proof");
}

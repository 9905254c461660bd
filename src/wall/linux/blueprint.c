/* wall/linux/blueprint.c - see blueprint.h. */
#include "wall/linux/blueprint.h"

#include <linux/filter.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "wall/linux/filter_nonotify.h"
#include "wall/linux/filters.h"
#include "wall/linux/kernel.h"
#include "wall/linux/no_userns.h"
#include "wall/linux/place_binds.h"
#include "wall/linux/procfiles.h"

enum { PLAN_MAX_BYTES = 64 << 20 };

#define READ_RIGHTS (LL_FS_READ_FILE | LL_FS_READ_DIR)
#define WRITE_RIGHTS                                                                               \
	(READ_RIGHTS | LL_FS_WRITE_FILE | LL_FS_REMOVE_DIR | LL_FS_REMOVE_FILE | LL_FS_MAKE_DIR |  \
	 LL_FS_MAKE_REG | LL_FS_MAKE_FIFO | LL_FS_MAKE_SYM | LL_FS_REFER | LL_FS_TRUNCATE)

/* The plan is built as header, strings and bytes; ops and rules are collected separately and
 * appended last. */
struct draft {
	struct buf blob; /* starts with struct plan */
	struct plan head;
	struct plan_op *ops;
	size_t op_count;
	struct plan_rule *rules;
	size_t rule_count;
	const struct blueprint_options *options;
	bool failed;
};

static uint32_t put(struct draft *d, const void *bytes, size_t len)
{
	size_t at = d->blob.len;

	if (buf_add(&d->blob, bytes, len) < 0 || buf_add_char(&d->blob, '\0') < 0)
		d->failed = true;
	return (uint32_t)at;
}

static uint32_t put_text(struct draft *d, const char *text)
{
	return text ? put(d, text, strlen(text)) : 0;
}

static uint32_t put_list(struct draft *d, const struct strlist *l)
{
	size_t at = d->blob.len;

	for (size_t i = 0; i < l->count; i++)
		(void)put_text(d, l->items[i]);
	(void)put_text(d, "");
	return (uint32_t)at;
}

static uint32_t put_aligned(struct draft *d, const void *bytes, size_t len)
{
	while (d->blob.len % 8 != 0 && buf_add_char(&d->blob, '\0') == 0)
		;
	return put(d, bytes, len);
}

static void add_op(struct draft *d, struct plan_op op)
{
	struct plan_op *a = mem_grow(d->ops, d->op_count + 1, sizeof(*a));

	if (!a) {
		d->failed = true;
		return;
	}
	d->ops = a;
	a[d->op_count++] = op;
}

static void add_rule(struct draft *d, const char *path, uint64_t access, bool optional)
{
	struct plan_rule *a = mem_grow(d->rules, d->rule_count + 1, sizeof(*a));

	if (!a) {
		d->failed = true;
		return;
	}
	d->rules = a;
	a[d->rule_count++] = (struct plan_rule){ .path = put_text(d, path),
						 .access = access,
						 .optional = optional };
}

/* Destinations are relative to the new root. */
static uint32_t put_dst(struct draft *d, const char *guest)
{
	while (*guest == '/')
		guest++;
	return put_text(d, guest);
}

/* What one launch of a place puts in may be there already from another. */
static uint32_t unless_there(const struct draft *d)
{
	return d->options->stays ? OPF_UNLESS : 0;
}

static void add_dir(struct draft *d, const char *path, uint32_t mode)
{
	add_op(d, (struct plan_op){ .kind = OP_MKDIR, .dst = put_dst(d, path), .mode = mode });
}

static void add_file(struct draft *d, const char *path, const void *bytes, size_t len,
		     uint32_t mode)
{
	add_op(d, (struct plan_op){ .kind = OP_FILE,
				    .dst = put_dst(d, path),
				    .src = put(d, bytes, len),
				    .size = (uint32_t)len,
				    .mode = mode,
				    .flags = unless_there(d) });
}

static void add_link(struct draft *d, const char *target, const char *path)
{
	add_op(d, (struct plan_op){ .kind = OP_SYMLINK,
				    .src = put_text(d, target),
				    .dst = put_dst(d, path),
				    .flags = unless_there(d) });
}

const struct launch *blueprint_launch(const struct blueprint_options *o, size_t i)
{
	if (i == 0)
		return o->launch;
	return i <= o->also_count ? o->also[i - 1] : NULL;
}

/* Whether a guest of this sandbox may execute files of the workspace. */
static bool has_exec(const struct blueprint_options *o)
{
	const struct launch *l;

	for (size_t i = 0; (l = blueprint_launch(o, i)); i++)
		if (l->has_exec)
			return true;
	return false;
}

/* What the code may do with the files of a bind. */
static uint64_t bind_rights(bool has_exec, const struct launch_bind *b)
{
	bool can_exec = (b->flags & BIND_EXEC) || (has_exec && (b->flags & BIND_MOUNT));

	return (b->flags & BIND_WRITABLE ? WRITE_RIGHTS : READ_RIGHTS) |
	       (can_exec ? LL_FS_EXECUTE : 0);
}

static void add_bind(struct draft *d, const struct launch_bind *b)
{
	uint32_t flags = OPF_RECURSIVE, made = 0;

	for (uint32_t i = 0; b->flags & (BIND_WRITABLE | BIND_EXEC) && i < d->options->made_count;
	     i++)
		if (str_eq(d->options->made[i], b->host)) {
			flags |= OPF_MADE;
			made = INIT_FD_MOUNT + i;
		}
	if (!(b->flags & BIND_WRITABLE))
		flags |= OPF_RO;
	else if (!(bind_rights(has_exec(d->options), b) &
		   LL_FS_EXECUTE)) /* nothing is both writable and executable */
		flags |= OPF_NOEXEC;
	if (b->flags & BIND_OPTIONAL)
		flags |= OPF_OPTIONAL;
	add_op(d, (struct plan_op){ .kind = OP_BIND,
				    .src = put_text(d, b->host),
				    .dst = put_dst(d, b->guest),
				    .mode = made,
				    .flags = flags });
}

static bool is_covered(const struct draft *d, const struct launch *l, const char *guest)
{
	bool covered = str_starts(guest, "/run/cordon/") || place_binds_covers(d->options, guest);

	for (size_t i = 0; !covered && i < l->read_paths.count; i++)
		covered = str_starts(guest, l->read_paths.items[i]);
	return covered;
}

/* Half the usual size of a root (init/root.c) is for directories and mount points. */
enum { ROOT_BYTES = 4 << 20, ROOT_INODES = 2048 };

/* Enlarges the root if there are many files with given bytes. */
static void root_data(struct draft *d)
{
	uint64_t bytes = ROOT_BYTES, inodes = ROOT_INODES;
	const struct launch *l;
	char data[96];

	for (size_t k = 0; (l = blueprint_launch(d->options, k)); k++) {
		inodes += l->link_count;
		for (size_t i = 0; i < l->file_count; i++) {
			bytes += (l->files[i].len + 4095) / 4096 * 4096;
			inodes += 8; /* including its directories */
		}
	}
	if (bytes <= 2ULL * ROOT_BYTES && inodes <= 2ULL * ROOT_INODES)
		return;
	snprintf(data, sizeof(data), "size=%llu,nr_inodes=%llu,mode=755", (unsigned long long)bytes,
		 (unsigned long long)inodes);
	d->head.root_data = put_text(d, data);
}

static void place_binds(struct draft *d)
{
	cleanup_free struct launch_bind *all = NULL;
	size_t count = 0;

	d->failed = d->failed || place_binds_merge(d->options, &all, &count) < 0;
	for (size_t i = 0; i < count; i++)
		add_bind(d, &all[i]);
}

static void launch_files(struct draft *d, const struct launch *l)
{
	if (l->link_count > 0)
		add_dir(d, "/run/cordon/bin", 0755); /* for host tools that are commands */
	for (size_t i = 0; i < l->link_count; i++)
		add_link(d, l->links[i].target, l->links[i].guest);
	for (size_t i = 0; i < l->file_count; i++) {
		const struct launch_file *f = &l->files[i];

		add_file(d, f->guest, f->bytes, f->len, f->mode);
	}
}

static void root(struct draft *d)
{
	const struct launch *l = d->options->launch;

	root_data(d);
	if (d->options->stays)
		place_binds(d);
	for (size_t i = 0; !d->options->stays && i < l->bind_count; i++)
		add_bind(d, &l->binds[i]);
	for (size_t k = 0; (l = blueprint_launch(d->options, k)); k++)
		launch_files(d, l);
}

static void launch_rules(struct draft *d, const struct launch *l)
{
	for (size_t i = 0; i < l->bind_count; i++) {
		const struct launch_bind *b = &l->binds[i];

		uint64_t access = bind_rights(l->has_exec, b);
		if (!place_binds_covers(d->options, b->guest) || access != READ_RIGHTS)
			add_rule(d, b->guest, access, b->flags & BIND_OPTIONAL);
	}
	for (size_t i = 0; i < l->file_count; i++) {
		const struct launch_file *f = &l->files[i];

		/* Mounts by value may be anywhere. The runtimes' files are covered by a rule of
		 * their own. */
		if (!is_covered(d, l, f->guest))
			add_rule(d, f->guest, READ_RIGHTS, false);
	}
	for (size_t i = 0; i < l->read_paths.count; i++)
		add_rule(d, l->read_paths.items[i], READ_RIGHTS, true);
	for (size_t i = 0; i < l->exec_paths.count; i++)
		add_rule(d, l->exec_paths.items[i], READ_RIGHTS | LL_FS_EXECUTE, true);
}

/* What the code may do with the files of its workspace. */
static uint64_t workspace_rights(const struct launch *l)
{
	return WRITE_RIGHTS | (l->has_exec ? LL_FS_EXECUTE : 0);
}

static void common_rules(struct draft *d, const struct launch *l)
{
	if (place_binds_covers(d->options, "/usr/"))
		add_rule(d, "/usr", READ_RIGHTS, false);
	add_rule(d, "/etc", READ_RIGHTS, false);
	add_rule(d, "/dev", READ_RIGHTS | LL_FS_WRITE_FILE, false);
	add_rule(d, "/dev/pts", LL_TERMINAL, true);
	add_rule(d, "/dev/tty", LL_TERMINAL, true);
	add_rule(d, "/run/cordon", READ_RIGHTS, false);
	add_rule(d, "/proc", READ_RIGHTS, false);
	add_rule(d, "/home", workspace_rights(l), false);
	add_rule(d, "/tmp", workspace_rights(l), false);
	add_rule(d, "/workspace", workspace_rights(l), false);
	add_rule(d, "/", LL_FS_READ_DIR, false); /* directories may be listed everywhere */
}

static void proc_files(struct draft *d, const struct blueprint_options *o)
{
	struct procfiles_options options = { .memory_bytes = o->policy->memory_bytes,
					     .has_one_core = d->head.flags & PLANF_ONE_CORE };
	struct buf texts[PROCFILES];

	if (procfiles_make(&options, texts) < 0)
		d->failed = true;
	for (int i = 0; i < PROCFILES; i++) {
		cleanup_free char *path = str_printf("/" PROC_FILES_DIR "/%s", procfiles_names[i]);

		if (path)
			add_file(d, path, buf_text(&texts[i]), texts[i].len, 0444);
		else
			d->failed = true;
		buf_done(&texts[i]);
	}
	d->head.flags |= PLANF_PROC_FILES;
}

/* Without namespaces: files go into a directory of the host, not into a root. */
static void no_userns_files(struct draft *d, const struct launch *l, const char *dir)
{
	static const char *const dirs[] = { "run", NO_USERNS_RUNTIME, NO_USERNS_WORKSPACE };
	static const char *const trees[] = { NO_USERNS_WORKSPACE "/user",
					     NO_USERNS_WORKSPACE "/tmp",
					     NO_USERNS_WORKSPACE "/workspace" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		add_dir(d, dirs[i], 0755);
	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
		cleanup_free char *path = str_printf("%s/%s", dir, trees[i]);

		add_dir(d, trees[i], 0755);
		add_rule(d, path ? path : "", workspace_rights(l), false);
	}
	for (size_t i = 0; i < l->file_count; i++)
		add_file(d, l->files[i].guest + strlen(dir), l->files[i].bytes, l->files[i].len,
			 l->files[i].mode);
	cleanup_free char *runtime = str_printf("%s/" NO_USERNS_RUNTIME, dir);
	add_rule(d, runtime ? runtime : "", READ_RIGHTS, false);
}

/* One rule per path, because the host's /usr and /etc contain more than was given. */
static void no_userns_rules(struct draft *d, const struct launch *l)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
					       "/dev/urandom" };

	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		add_rule(d, devices[i], LL_FS_READ_FILE | LL_FS_WRITE_FILE, false);
	for (size_t i = 0; i < l->bind_count; i++) {
		const struct launch_bind *b = &l->binds[i];

		add_rule(d, b->host, bind_rights(l->has_exec, b), b->flags & BIND_OPTIONAL);
	}
	for (size_t i = 0; i < l->read_paths.count; i++)
		add_rule(d, l->read_paths.items[i], READ_RIGHTS, true);
	for (size_t i = 0; i < l->exec_paths.count; i++)
		add_rule(d, l->exec_paths.items[i], READ_RIGHTS | LL_FS_EXECUTE, true);
}

/* The guests of a place may signal each other. Another filter then protects pid 1 (init/seal.c). */
static void landlock_masks(struct plan *p, const struct machine *m, bool network, bool is_place)
{
	static const int bits[] = { 0, 13, 14, 15, 15, 16, 16, 16 };
	int abi = m->landlock_abi > 7 ? 7 : m->landlock_abi;

	p->landlock_fs = (1ULL << bits[abi]) - 1;
	if (abi >= 4 && !network)
		p->landlock_net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
	if (abi >= 6)
		p->landlock_scoped = LL_SCOPE_ABSTRACT_UNIX | (is_place ? 0 : LL_SCOPE_SIGNAL);
}

static void add_rlimit(struct plan *p, unsigned resource, uint64_t soft, uint64_t hard)
{
	p->rlimits[p->rlimit_count++] =
		(struct plan_rlimit){ .resource = resource, .soft = soft, .hard = hard };
}

/* A pod's module starts with this much, mostly stack that is never touched. Its runtime counts
 * memory beyond that. */
enum { POD_START_BYTES = 128 << 20 };

/* Node maps stacks for about ten threads and never touches most of them. If they counted, V8 would
 * abort long before it uses its memory. */
enum { NODE_THREADS = 12, SIGNALS_MAX = 512 };

static uint64_t untouched(const struct policy *policy, enum launch_filter filter)
{
	if (filter == LAUNCH_POD)
		return POD_START_BYTES;
	return filter == LAUNCH_NODE ? NODE_THREADS * policy->stack_bytes : 0;
}

static void limits(struct plan *p, const struct blueprint_options *o)
{
	const struct policy *policy = o->policy;
	const struct launch *l = o->launch;
	uint64_t tasks = o->tasks;
	bool renews = l->is_template || ((o->stays || o->joins) && o->has_wire);
	uint64_t data = policy->memory_bytes + untouched(policy, l->filter);

	add_rlimit(p, RLIMIT_CORE, 0, 0);
	/* Of each process for its whole life. The host counts the time of an execution. */
	add_rlimit(p, RLIMIT_CPU, policy->cpu_seconds,
		   renews ? RLIM_INFINITY : policy->cpu_seconds);
	add_rlimit(p, RLIMIT_DATA, data, data);
	add_rlimit(p, RLIMIT_FSIZE, policy->file_bytes, policy->file_bytes);
	add_rlimit(p, RLIMIT_NOFILE, policy->open_files, policy->open_files);
	/* In a user namespace the count starts at zero; otherwise at the user's current number. */
	add_rlimit(p, RLIMIT_NPROC, policy_tasks(policy) + tasks, policy_tasks(policy) + tasks);
	add_rlimit(p, RLIMIT_STACK, policy->stack_bytes, policy->stack_bytes);
	add_rlimit(p, RLIMIT_MEMLOCK, 0, 0);
	add_rlimit(p, RLIMIT_MSGQUEUE, 0, 0);
	/* Queued signals and timers: a user may have some ten thousand in total. */
	add_rlimit(p, RLIMIT_SIGPENDING, SIGNALS_MAX, SIGNALS_MAX);
}

/* Mount data of the session's tmpfs: size, inodes, mode. */
static void workspace_data(const struct policy *p, char *ret, size_t size)
{
	/* The tmpfs root and its three trees use one inode each. */
	snprintf(ret, size, "size=%llu,nr_inodes=%llu,mode=555", (unsigned long long)p->fs_bytes,
		 (unsigned long long)p->file_count + 4);
}

const void *blueprint_filter(enum launch_filter guest, bool network, enum plan_filter which,
			     size_t *ret_len)
{
#define ROW(g)                                                                                     \
	{                                                                                          \
		{ { filter_##g##_whole_0, sizeof(filter_##g##_whole_0) },                          \
		  { filter_##g##_template_0, sizeof(filter_##g##_template_0) },                    \
		  { filter_##g##_final_0, sizeof(filter_##g##_final_0) } },                        \
		{                                                                                  \
			{ filter_##g##_whole_1, sizeof(filter_##g##_whole_1) },                    \
				{ filter_##g##_template_1, sizeof(filter_##g##_template_1) },      \
			{                                                                          \
				filter_##g##_final_1, sizeof(filter_##g##_final_1)                 \
			}                                                                          \
		}                                                                                  \
	}
	static const struct {
		const void *bytes;
		size_t len;
	} table[][2][3] = { ROW(python), ROW(r), ROW(node), ROW(sh), ROW(pod) };
#undef ROW

	*ret_len = table[guest][network][which].len;
	return table[guest][network][which].bytes;
}

static void filters(struct draft *d, const struct launch *l)
{
	for (int i = 0; i < 3; i++) {
		size_t len;
		const void *bytes =
			blueprint_filter(l->filter, l->has_network, (enum plan_filter)i, &len);

		d->head.filter_len[i] = (uint32_t)len;
		d->head.filter[i] = put_aligned(d, bytes, len);
	}
}

uint32_t blueprint_early_flags(const struct blueprint_options *o)
{
	uint32_t f = o->private_dir ? 0 : PLANF_USERNS;

	if (o->launch->is_template)
		f |= PLANF_TEMPLATE;
	if (o->launch->has_network)
		f |= PLANF_LOOPBACK;
	if (o->layers_off & LAYER_NETNS)
		f |= PLANF_NO_NETNS;
	if (o->cgroup->is_v2 && o->cgroup->count)
		f |= PLANF_BORN_IN_GROUP;
	return f;
}

static uint32_t flags(const struct blueprint_options *o)
{
	uint32_t f = blueprint_early_flags(o);

	if (has_exec(o))
		f |= PLANF_EXEC;
	if (o->launch->has_network || (o->policy->require & LAYER_OWN_NETNS))
		f |= PLANF_OWN_NETNS;
	if (o->launch->has_gateway)
		f |= PLANF_RELAY;
	if (o->layers_off & LAYER_LANDLOCK)
		f |= PLANF_NO_LANDLOCK;
	if (o->layers_off & LAYER_SECCOMP)
		f |= PLANF_NO_SECCOMP;
	if (o->policy->cpu_percent <= 100 && !o->cgroup->has_cpu)
		f |= PLANF_ONE_CORE;
	if (o->cgroup->count == 0)
		f |= PLANF_WATCH_MEMORY;
	if (o->stays)
		f |= PLANF_STAYS | (o->policy->pty ? PLANF_TERMINALS : 0);
	for (size_t i = 0; i < o->policy->mount_count; i++)
		if (o->policy->mounts[i].host && o->policy->mounts[i].mode == MOUNT_LIVE_RO)
			f |= PLANF_LIVE_RO;
	return f;
}

static void header(struct draft *d, const struct blueprint_options *o)
{
	const struct launch *l = o->launch;
	struct plan *p = &d->head;
	char data[128];

	p->magic = PLAN_MAGIC;
	p->version = PLAN_VERSION;
	p->flags = flags(o) | (o->on_terminal ? PLANF_ON_TERMINAL : 0);
	landlock_masks(p, o->machine, l->has_network, o->stays || o->joins);
	limits(p, o);
	p->argc = (uint32_t)l->argv.count;
	p->argv = put_list(d, &l->argv);
	p->envc = (uint32_t)l->env.count;
	p->env = put_list(d, &l->env);
	p->executable = put_text(d, l->executable);
	p->cwd = put_text(d, l->cwd ? l->cwd : "/home/user");
	p->memory_bytes = o->policy->memory_bytes;
	p->cgroup_v2 = o->cgroup->is_v2;
	p->cgroup_count = o->cgroup->count;
	for (uint32_t i = 0; i < o->cgroup->count; i++)
		p->cgroup_names[i] = put_text(d, o->cgroup->name);
	workspace_data(o->policy, data, sizeof(data));
	p->workspace_data = put_text(d, data);
	p->own_file = put_text(d, l->own_file);
	p->relay_port_count = (uint32_t)l->relay_port_count;
	p->relay_ports =
		put_aligned(d, l->relay_ports, l->relay_port_count * sizeof(*l->relay_ports));
}

int blueprint_make(const struct blueprint_options *o, struct buf *ret, struct cordon_error **reterr)
{
	struct draft d = { .options = o };

	buf_init(&d.blob, PLAN_MAX_BYTES);
	(void)put(&d, &d.head, sizeof(d.head));
	header(&d, o);
	if (o->private_dir) {
		no_userns_files(&d, o->launch, o->private_dir);
		no_userns_rules(&d, o->launch);
		d.head.private_dir = put_text(&d, o->private_dir);
	} else {
		if (!o->joins) {
			root(&d);
			proc_files(&d, o);
		}
		launch_rules(&d, o->launch);
		common_rules(&d, o->launch);
	}
	filters(&d, o->launch);
	d.head.op_count = (uint32_t)d.op_count;
	d.head.ops = put_aligned(&d, d.ops, d.op_count * sizeof(*d.ops));
	d.head.rule_count = (uint32_t)d.rule_count;
	d.head.rules = put_aligned(&d, d.rules, d.rule_count * sizeof(*d.rules));
	d.head.size = (uint32_t)d.blob.len;
	free(d.ops);
	free(d.rules);
	if (d.failed) {
		buf_done(&d.blob);
		return err_set(reterr, CORDON_NOMEM, "the launch plan does not fit");
	}
	memcpy(d.blob.data, &d.head, sizeof(d.head));
	*ret = d.blob;
	return 0;
}

/* Hashes one filter as it was loaded. Only the last filter of a guest can have a listener. */
static void hash_filter(crypto_hash_sha256_state *state, const struct blueprint_seal *s,
			enum plan_filter which)
{
	enum launch_filter guest = which == FILTER_TEMPLATE ? s->template_filter : s->filter;
	size_t len;
	const void *bytes = blueprint_filter(guest, s->has_network, which, &len);
	struct sock_filter nonotify[BPF_MAXINSNS];
	size_t count = len / sizeof(*nonotify);

	if (s->is_nonotify && which != FILTER_TEMPLATE &&
	    count + FILTER_NONOTIFY_MORE <= BPF_MAXINSNS) {
		len = filter_nonotify_make(bytes, count, nonotify) * sizeof(*nonotify);
		bytes = nonotify;
	}
	crypto_hash_sha256_update(state, bytes, len);
}

void blueprint_filter_hash(const struct blueprint_seal *s, uint8_t ret[static 32])
{
	crypto_hash_sha256_state state;

	crypto_hash_sha256_init(&state);
	if (s->is_forked)
		hash_filter(&state, s, FILTER_TEMPLATE);
	hash_filter(&state, s, s->is_forked && !s->joins ? FILTER_FINAL : FILTER_WHOLE);
	crypto_hash_sha256_final(&state, ret);
}

/* Each level × guest × rung gives the plan in tests/unit/wall/plans/GUEST. Python's first plan is
 * shown completely; its others as differences from that one, and those of other guests as
 * differences from Python's. After an intended change, `CORDON_PLANS=1 meson test -C build
 * wall/plans` writes the files again, for review. */
#include "harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/kernel.h"
#include "wall/linux/no_userns.h"

enum { TEXT_MAX = 1 << 20, LINES_MAX = 2000 };

struct name {
	uint64_t bit;
	const char *text;
};

static const struct name flag_names[] = {
	{ PLANF_USERNS, "namespaces" },
	{ PLANF_LOOPBACK, "loopback" },
	{ PLANF_RELAY, "relay" },
	{ PLANF_TEMPLATE, "template" },
	{ PLANF_NO_LANDLOCK, "NO LANDLOCK" },
	{ PLANF_NO_SECCOMP, "NO SECCOMP" },
	{ PLANF_ONE_CORE, "one core" },
	{ PLANF_NO_NETNS, "NO NETWORK NAMESPACE" },
	{ PLANF_OWN_NETNS, "a network namespace for each session" },
	{ PLANF_WATCH_MEMORY, "memory is watched" },
	{ PLANF_LIVE_RO, "live files" },
	{ PLANF_EXEC, "programs in the workspace" },
	{ PLANF_STAYS, "stays" },
	{ PLANF_TERMINALS, "terminals" },
	{ PLANF_ON_TERMINAL, "on a terminal" },
	{ PLANF_PROC_FILES, "files of /proc" },
	{ PLANF_BORN_IN_GROUP, "born in the group" },
	{ 0, NULL },
};

static const struct name right_names[] = {
	{ LL_FS_EXECUTE, "execute" },
	{ LL_FS_WRITE_FILE, "write" },
	{ LL_FS_READ_FILE, "read" },
	{ LL_FS_READ_DIR, "list" },
	{ LL_FS_REMOVE_DIR, "rmdir" },
	{ LL_FS_REMOVE_FILE, "unlink" },
	{ LL_FS_MAKE_CHAR, "mkchar" },
	{ LL_FS_MAKE_DIR, "mkdir" },
	{ LL_FS_MAKE_REG, "create" },
	{ LL_FS_MAKE_SOCK, "mksock" },
	{ LL_FS_MAKE_FIFO, "mkfifo" },
	{ LL_FS_MAKE_BLOCK, "mkblock" },
	{ LL_FS_MAKE_SYM, "symlink" },
	{ LL_FS_REFER, "rename" },
	{ LL_FS_TRUNCATE, "truncate" },
	{ LL_FS_IOCTL_DEV, "ioctl" },
	{ 0, NULL },
};

static const struct name net_names[] = {
	{ LL_NET_BIND_TCP, "bind" },
	{ LL_NET_CONNECT_TCP, "connect" },
	{ 0, NULL },
};

static const struct name scope_names[] = {
	{ LL_SCOPE_ABSTRACT_UNIX, "abstract sockets" },
	{ LL_SCOPE_SIGNAL, "signals" },
	{ 0, NULL },
};

static const struct name limit_names[] = {
	{ RLIMIT_CORE, "core" },
	{ RLIMIT_CPU, "cpu seconds" },
	{ RLIMIT_DATA, "data" },
	{ RLIMIT_FSIZE, "file size" },
	{ RLIMIT_NOFILE, "open files" },
	{ RLIMIT_NPROC, "processes" },
	{ RLIMIT_STACK, "stack" },
	{ RLIMIT_MEMLOCK, "locked memory" },
	{ RLIMIT_MSGQUEUE, "message queues" },
	{ RLIMIT_SIGPENDING, "queued signals" },
	{ 0, NULL },
};

/* The bits of a word by their names; one that has none is a failure. */
static void bits(struct buf *out, const char *title, uint64_t word, const struct name *names)
{
	buf_printf(out, "%s:", title);
	for (; names->text; names++)
		if (word & names->bit) {
			buf_printf(out, " %s,", names->text);
			word &= ~names->bit;
		}
	ASSERT_EQ(word, 0);
	if (out->data[out->len - 1] == ',')
		out->len--;
	buf_add_char(out, '\n');
}

static const char *limit_name(uint64_t resource)
{
	for (const struct name *n = limit_names; n->text; n++)
		if (n->bit == resource)
			return n->text;
	test_fail(__FILE__, __LINE__, "limit %u has no name", (unsigned)resource);
	return NULL;
}

static void number(struct buf *out, uint64_t n)
{
	if (n == RLIM_INFINITY)
		buf_add_str(out, " unlimited");
	else
		buf_printf(out, " %llu", (unsigned long long)n);
}

static void list(struct buf *out, const char *title, const char *text, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, text += strlen(text) + 1)
		buf_printf(out, "%s: %s\n", title, text);
}

static void show_op(struct buf *out, const char *base, const struct plan_op *op)
{
	const char *dst = base + op->dst, *src = base + op->src;

	if (op->kind == OP_MKDIR)
		buf_printf(out, "make /%s, mode %04o\n", dst, op->mode);
	else if (op->kind == OP_SYMLINK)
		buf_printf(out, "link /%s to %s\n", dst, src);
	else if (op->kind == OP_FILE)
		buf_printf(out, "file /%s, mode %04o\n", dst, op->mode);
	else if (op->kind == OP_BIND)
		buf_printf(out, "bind /%s from %s,%s%s%s%s%s\n", dst, src,
			   op->flags & OPF_RO ? " read-only" : " WRITABLE",
			   op->flags & OPF_NOEXEC ? ", not executable" : "",
			   op->flags & OPF_RECURSIVE ? ", with what is mounted below" : "",
			   op->flags & OPF_OPTIONAL ? ", if it is there" : "",
			   op->flags & OPF_MADE ? ", made by the host" : "");
	else
		test_fail(__FILE__, __LINE__, "a step of kind %u", op->kind);
}

/* A plan in words, a line each. What it has of this machine's /proc is left out. */
static void show(const struct buf *bytes, struct buf *out)
{
	const struct plan *p = (const struct plan *)(const void *)bytes->data;
	const char *base = bytes->data;
	const struct plan_op *ops = (const struct plan_op *)(const void *)(base + p->ops);
	const struct plan_rule *rules = (const struct plan_rule *)(const void *)(base + p->rules);

	ASSERT(p->magic == PLAN_MAGIC && p->version == PLAN_VERSION && p->size == bytes->len);
	bits(out, "flags", p->flags, flag_names);
	bits(out, "Landlock handles", p->landlock_fs, right_names);
	bits(out, "Landlock handles of TCP", p->landlock_net, net_names);
	bits(out, "Landlock scopes", p->landlock_scoped, scope_names);
	for (uint32_t i = 0; i < p->rlimit_count; i++) {
		buf_printf(out, "limit %s:", limit_name(p->rlimits[i].resource));
		number(out, p->rlimits[i].soft);
		if (p->rlimits[i].hard != p->rlimits[i].soft)
			number(out, p->rlimits[i].hard);
		buf_add_char(out, '\n');
	}
	buf_printf(out, "memory: %llu\n", (unsigned long long)p->memory_bytes);
	buf_printf(out, "control groups: %u, v%d\n", p->cgroup_count, p->cgroup_v2 ? 2 : 1);
	for (uint32_t i = 0; i < p->cgroup_count; i++)
		buf_printf(out, "control group: %s\n", base + p->cgroup_names[i]);
	buf_printf(out, "run: %s in %s\n", base + p->executable, base + p->cwd);
	list(out, "argument", base + p->argv, p->argc);
	list(out, "environment", base + p->env, p->envc);
	buf_printf(out, "workspace: %s\n", base + p->workspace_data);
	if (p->root_data)
		buf_printf(out, "root: %s\n", base + p->root_data);
	if (p->private_dir)
		buf_printf(out, "directory: %s\n", base + p->private_dir);
	for (uint32_t i = 0; i < p->relay_port_count; i++)
		buf_printf(out, "relay port: %u\n",
			   ((const uint16_t *)(const void *)(base + p->relay_ports))[i]);
	for (uint32_t i = 0; i < p->op_count; i++)
		show_op(out, base, &ops[i]);
	for (uint32_t i = 0; i < p->rule_count; i++) {
		cleanup_free char *title = str_printf("allow %s%s", base + rules[i].path,
						      rules[i].optional ? ", if it is there" : "");
		bits(out, title, rules[i].access, right_names);
	}
	for (int i = 0; i < 3; i++)
		ASSERT(p->filter_len[i] > 0 && p->filter_len[i] % 8 == 0);
}

enum rung { RUNG_V2, RUNG_V1, RUNG_NO_GROUPS, RUNG_OLD_KERNEL, RUNG_NO_NAMESPACES, RUNGS };
static const char *const rung_names[] = { "namespaces and control groups v2",
					  "namespaces and control groups v1", "namespaces",
					  "namespaces, Landlock 2", "no namespaces" };

enum shape { SHAPE_ONE_SHOT, SHAPE_TEMPLATE, SHAPE_NETWORK, SHAPE_EXPOSED, SHAPES };
static const char *const shape_names[] = { "one shot", "template", "network", "exposed" };

static const char *const guests[] = { "python", "r", "node", "sh", "pod" };

/* What the guest room would fill in, with something of everything. */
static void fill_launch(struct launch *l, enum launch_filter guest, enum rung rung,
			enum shape shape)
{
	static const uint16_t ports[] = { 53, 3128 };

	l->filter = guest;
	l->executable = str_dup("/usr/bin/guest");
	strlist_add(&l->argv, "guest");
	strlist_add(&l->argv, "/run/cordon/start");
	launch_env(l, "HOME", "/home/user");
	launch_bind(l, "/usr/lib", NULL, 0);
	launch_bind(l, "/usr/bin/guest", NULL, BIND_EXEC);
	launch_bind(l, "/etc/ld.so.cache", NULL, BIND_OPTIONAL);
	launch_bind(l, "/opt/guest", "/opt/guest", BIND_EXEC);
	if (rung != RUNG_NO_NAMESPACES) {
		launch_bind(l, "/srv/data", "/data", BIND_MOUNT);
		launch_bind(l, "/srv/out", "/out", BIND_MOUNT | BIND_WRITABLE);
		launch_file(l, "/mnt/given", "y", 1, 0444);
	}
	launch_file(l, "/run/cordon/start", "x", 1, 0444);
	launch_exec(l, "/usr/bin/guest");  /* the bind gives it */
	launch_exec(l, "/run/cordon/own"); /* a file of ours */
	l->is_template = shape == SHAPE_TEMPLATE;
	l->has_network = shape == SHAPE_NETWORK || shape == SHAPE_EXPOSED;
	l->has_gateway = shape == SHAPE_NETWORK;
	l->relay_fd = -1;
	if (l->has_gateway) {
		l->relay_ports = ports;
		l->relay_port_count = 2;
	}
}

static struct machine machine_of(enum rung rung)
{
	return (struct machine){ .landlock_abi = rung == RUNG_OLD_KERNEL ? 2 : 7,
				 .has_userns = rung != RUNG_NO_NAMESPACES,
				 .has_seccomp_notify = true };
}

static struct cgroup cgroup_of(enum rung rung)
{
	struct cgroup c = { .memory_bytes = UINT64_MAX, .processes = UINT64_MAX };

	if (rung == RUNG_V2)
		c = (struct cgroup){ .count = 1, .is_v2 = true, .has_cpu = true };
	if (rung == RUNG_V1)
		c = (struct cgroup){ .count = 3, .has_cpu = true };
	(void)str_copy(c.name, sizeof(c.name), "box");
	return c;
}

static void plan_of(enum policy_level level, enum launch_filter guest, enum rung rung,
		    enum shape shape, struct buf *out)
{
	cleanup_launch struct launch l = { 0 };
	cleanup_launch struct launch rewritten = { 0 };
	cleanup_buf struct buf bytes = { 0 };
	cleanup_policy struct policy policy = { 0 };
	cleanup_error struct cordon_error *refusal = NULL;
	struct machine m = machine_of(rung);
	struct cgroup c = cgroup_of(rung);

	fill_launch(&l, guest, rung, shape);
	ASSERT_EQ(policy_init_level(&policy, level, NULL), 0);
	l.has_exec = policy.workspace_exec && guest != LAUNCH_POD;
	struct blueprint_options o = {
		.policy = &policy, .launch = &l, .machine = &m, .cgroup = &c
	};
	if (rung == RUNG_NO_NAMESPACES) {
		o.private_dir = "/var/private";
		if (no_userns_rewrite(&l, o.private_dir, &rewritten, &refusal) < 0) {
			buf_printf(out, "refused: %s\n", cordon_error_message(refusal));
			return;
		}
		o.launch = &rewritten;
		o.tasks = 7;
	}
	ASSERT_EQ(blueprint_make(&o, &bytes, NULL), 0);
	show(&bytes, out);
}

struct lines {
	char *text, *items[LINES_MAX];
	size_t count;
};

static struct lines split(const struct buf *text)
{
	struct lines l = { .text = str_dup(buf_text(text)) };

	for (char *at = l.text, *end; at && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		ASSERT(l.count < LINES_MAX);
		l.items[l.count++] = at;
	}
	return l;
}

/* The lines of a that b has not. */
static void lacking(struct buf *out, char sign, const struct lines *a, const struct lines *b)
{
	for (size_t i = 0; i < a->count; i++) {
		bool found = false;

		for (size_t k = 0; !found && k < b->count; k++)
			found = str_eq(a->items[i], b->items[k]);
		if (!found)
			buf_printf(out, "%c %s\n", sign, a->items[i]);
	}
}

/* What one plan has and another has not, both ways. */
static void difference(struct buf *out, const struct buf *old, const struct buf *new)
{
	struct lines a = split(old), b = split(new);

	lacking(out, '-', &a, &b);
	lacking(out, '+', &b, &a);
	free(a.text);
	free(b.text);
}

static void plan_beside(enum policy_level level, enum launch_filter guest, enum rung rung,
			enum shape shape, struct buf *out)
{
	cleanup_buf struct buf other = { 0 }, now = { 0 };

	buf_init(&other, TEXT_MAX);
	buf_init(&now, TEXT_MAX);
	plan_of(level, guest, rung, shape, &now);
	buf_printf(out, "\n== %s, %s, %s\n", policy_level_name(level), rung_names[rung],
		   shape_names[shape]);
	if (guest == LAUNCH_PYTHON)
		plan_of(LEVEL_STANDARD, guest, RUNG_V2, SHAPE_ONE_SHOT, &other);
	else
		plan_of(level, LAUNCH_PYTHON, rung, shape, &other);
	difference(out, &other, &now);
}

/* All plans of a guest, as its file has them. */
static void plans_of(enum launch_filter guest, struct buf *out)
{
	buf_printf(out, "%s\n",
		   guest == LAUNCH_PYTHON
			   ? "== standard, namespaces and control groups v2, one shot"
			   : "What differs from Python's plans.");
	if (guest == LAUNCH_PYTHON)
		plan_of(LEVEL_STANDARD, guest, RUNG_V2, SHAPE_ONE_SHOT, out);
	for (enum rung rung = 0; rung < RUNGS; rung++)
		for (enum policy_level level = LEVEL_PERMISSIVE; level <= LEVEL_STRICT; level++)
			for (enum shape shape = 0; shape < SHAPES; shape++)
				/* Templates and the gateway need namespaces. */
				if (rung != RUNG_NO_NAMESPACES || shape == SHAPE_ONE_SHOT)
					plan_beside(level, guest, rung, shape, out);
}

static void expect_plans(enum launch_filter guest)
{
	cleanup_buf struct buf now = { 0 }, was = { 0 };
	const char *source = getenv("SRC"), *anew = getenv("CORDON_PLANS");
	cleanup_free char *path =
		str_printf("%s/tests/unit/wall/plans/%s", source ? source : ".", guests[guest]);

	buf_init(&now, TEXT_MAX);
	buf_init(&was, TEXT_MAX);
	plans_of(guest, &now);
	if (anew) {
		FILE *f = fopen(path, "we");

		ASSERT(f && fwrite(now.data, 1, now.len, f) == now.len && fclose(f) == 0);
		return;
	}
	ASSERT_EQ(file_load(path, TEXT_MAX, &was, NULL), 0);
	struct lines a = split(&was), b = split(&now);
	for (size_t i = 0; i < a.count || i < b.count; i++)
		if (i >= a.count || i >= b.count || !str_eq(a.items[i], b.items[i]))
			test_fail(path, (int)i + 1, "is '%s', was '%s'",
				  i < b.count ? b.items[i] : "", i < a.count ? a.items[i] : "");
	free(a.text);
	free(b.text);
}

/* Two branches may take the same bit, and git merges them without a word. */
TEST(no_two_flags_share_a_bit)
{
	uint64_t seen = 0;

	for (const struct name *n = flag_names; n->text; n++) {
		ASSERT_EQ(n->bit & (n->bit - 1), 0);
		ASSERT_EQ(seen & n->bit, 0);
		seen |= n->bit;
	}
}

TEST(plans_of_python)
{
	expect_plans(LAUNCH_PYTHON);
}

TEST(plans_of_r)
{
	expect_plans(LAUNCH_R);
}

TEST(plans_of_node)
{
	expect_plans(LAUNCH_NODE);
}

TEST(plans_of_sh)
{
	expect_plans(LAUNCH_SH);
}

TEST(plans_of_pod)
{
	expect_plans(LAUNCH_POD);
}

/* Every guest has filters of its own, with a network and without. */
TEST(filters_are_of_their_guest)
{
	const void *seen[10][3];
	size_t len, count = 0;

	for (int guest = LAUNCH_PYTHON; guest <= LAUNCH_POD; guest++)
		for (int network = 0; network < 2; network++, count++)
			for (int which = 0; which < 3; which++)
				seen[count][which] =
					blueprint_filter((enum launch_filter)guest, network,
							 (enum plan_filter)which, &len);
	for (size_t i = 0; i < count * 3; i++)
		for (size_t k = 0; k < i; k++)
			ASSERT(seen[i / 3][i % 3] != seen[k / 3][k % 3]);
}

/* What `doctor --prove` switches off is off, and nothing else is. */
TEST(layers_are_off_only_when_they_are_switched_off)
{
	static const struct {
		uint32_t layer, flag;
	} table[] = { { LAYER_LANDLOCK, PLANF_NO_LANDLOCK },
		      { LAYER_SECCOMP, PLANF_NO_SECCOMP },
		      { LAYER_NETNS, PLANF_NO_NETNS } };
	const uint32_t all = PLANF_NO_LANDLOCK | PLANF_NO_SECCOMP | PLANF_NO_NETNS;

	for (size_t i = 0; i <= 3; i++) {
		cleanup_launch struct launch l = { 0 };
		cleanup_buf struct buf bytes = { 0 };
		cleanup_policy struct policy policy = { 0 };
		struct machine m = machine_of(RUNG_V2);
		struct cgroup c = cgroup_of(RUNG_V2);

		fill_launch(&l, LAUNCH_SH, RUNG_V2, SHAPE_ONE_SHOT);
		ASSERT_EQ(policy_init_level(&policy, LEVEL_STANDARD, NULL), 0);
		struct blueprint_options o = { .policy = &policy,
					       .launch = &l,
					       .machine = &m,
					       .cgroup = &c,
					       .layers_off = i < 3 ? table[i].layer : 0 };
		ASSERT_EQ(blueprint_make(&o, &bytes, NULL), 0);
		const struct plan *p = (const struct plan *)(const void *)bytes.data;
		ASSERT_EQ(p->flags & all, i < 3 ? table[i].flag : 0);
	}
}

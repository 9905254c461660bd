/* wall/linux/linux_box_start.c - starts a sandbox, or prepares one that a template will fork. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "wall/linux/blueprint.h"
#include "wall/linux/kernel.h"
#include "wall/linux/linux_box.h"
#include "wall/linux/linux_wall.h"
#include "wall/linux/plan_send.h"
#include "wall/linux/supervisor.h"

struct linux_box *linux_box_new(void)
{
	struct linux_box *b = mem_alloc(sizeof(*b));

	if (!b)
		return NULL;
	b->base.wall = &linux_wall;
	b->pidfd = b->base.control_fd = b->base.end_fd = b->base.workspace_fd = b->ptmx_fd = -1;
	slots_init(&b->slots);
	pthread_mutex_init(&b->releasing, NULL);
	pthread_mutex_init(&b->counting, NULL);
	return b;
}

static int check_required(const struct machine *m, const struct policy *p,
			  struct cordon_error **reterr)
{
	for (uint32_t layer = 1; layer <= LAYER_LANDLOCK_SCOPE; layer <<= 1) {
		const char *remedy = "";
		const char *why = p->require & layer ? machine_missing(m, layer, &remedy) : NULL;

		if (why)
			return err_set(reterr, CORDON_UNSUPPORTED,
				       "the policy requires the layer '%s', and %s; remedy: %s",
				       policy_layer_name(layer), why, remedy);
	}
	return 0;
}

/* Templates need namespaces. There are some, unless the policy requires none and the machine has
 * none. */
bool linux_box_can_fork(const struct policy *p)
{
	struct machine m;

	if (p->require & LAYERS_NAMESPACES)
		return true;
	machine_probe(&m);
	return m.has_userns;
}

static gid_t owner_of_groups(const struct linux_box *b)
{
	return b->machine.is_root ? b->base.gid : (gid_t)-1;
}

/* The sandbox without namespaces is only for policies that require no namespace. It needs Landlock
 * and the filter. */
static int enter_private_dir(struct linux_box *b, const struct launch *from, struct launch *ret,
			     struct cordon_error **reterr)
{
	int r = no_userns_check(&b->machine, reterr);
	if (r < 0)
		return r;
	if (from->is_template || b->stays)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "%s user namespaces, which are not available here",
			       b->stays ? "several guests in one sandbox need" : "templates need");
	if (b->machine.has_box_uids) {
		uint32_t any;

		random_bytes(&any, sizeof(any));
		b->base.uid += MACHINE_BOX_LATER + any % MACHINE_BOX_LATER;
	}
	r = no_userns_make(b->base.uid, b->private_dir, reterr);
	if (r < 0)
		return r;
	b->base.private_dir = b->private_dir;
	return no_userns_rewrite(from, b->private_dir, ret, reterr);
}

static int make_plan(struct linux_box *b, struct blueprint_options *blueprint, int socket,
		     struct cordon_error **reterr)
{
	cleanup_plan_send struct plan_send h = { 0 };
	cleanup_buf struct buf bytes = { 0 };
	cleanup_close int plan = -1;

	plan_send_init(&h, &b->cgroup);
	if (blueprint->launch->has_gateway)
		h.fds[INIT_FD_RELAY] = blueprint->launch->relay_fd;
	int r = plan_send_map_mounts(&h, b->base.uid, b->base.gid, blueprint, reterr);
	if (r == 0)
		r = blueprint_make(blueprint, &bytes, reterr);
	if (r == 0)
		r = file_from_bytes("cordon-plan", bytes.data, bytes.len, &plan, reterr);
	return r < 0 ? r : plan_send_send(&h, socket, plan, reterr);
}

static int start_supervisor(struct linux_box *b, const struct box_options *o, uint32_t flags,
			    int *ret_socket, struct cordon_error **reterr)
{
	const struct supervisor_options options = {
		.flags = flags,
		.uid = b->base.uid,
		.adds_pid = b->machine.has_box_uids && !b->private_dir[0],
		.gid = b->base.gid,
		.empties_bounding = b->private_dir[0],
		.fds = { o->stdin_fd, o->stdout_fd, o->stderr_fd, o->wire_fd },
		.group_fd = b->cgroup.join_fds[0],
		.own_group_fd = b->cgroup.supervisor_fd,
	};
	struct supervisor s;
	int r = supervisor_start(&options, &s, reterr);

	if (r < 0)
		return r;
	b->supervisor = s.pid;
	b->base.uid = s.uid;
	b->pidfd = s.pidfd;
	b->base.control_fd = s.control;
	b->status = s.status;
	*ret_socket = s.plan;
	return 0;
}

/* Lets the guest start. If the supervisor is gone already, the status page says why. */
static int give_leave(struct linux_box *b, struct cordon_error **reterr)
{
	char order = CONTROL_GO;

	if (send(b->base.control_fd, &order, 1, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
	    errno != ECONNRESET)
		return err_errno(reterr, errno, "tell the supervisor to continue");
	return 0;
}

/* The supervisor makes the namespaces while the rest happens here. With cgroup v2, pid 1 is cloned
 * into its group, so that must exist first. No untrusted code runs before the plan arrives, or if
 * it never does. */
static int start(struct linux_box *b, const struct box_options *o, struct cordon_error **reterr)
{
	struct blueprint_options blueprint = { .policy = o->policy,
					       .launch = o->launch,
					       .machine = &b->machine,
					       .cgroup = &b->cgroup,
					       .layers_off = o->layers_off,
					       .stays = o->stays,
					       .also = o->also,
					       .also_count = o->also_count,
					       .has_wire = o->wire_fd >= 0 };
	struct cgroup_options group = { .owner_gid = owner_of_groups(b),
					.limits_later = !b->machine.cgroup_v2 };
	cleanup_launch struct launch relocated = { 0 };
	const bool is_v2 = b->machine.cgroup_v2;
	const bool is_probed = !(b->require & LAYERS_NAMESPACES);
	cleanup_close int socket = -1;
	int r = 0;

	if (is_probed)
		r = check_required(&b->machine, o->policy, reterr);
	if (r == 0 && !b->machine.has_userns) {
		r = enter_private_dir(b, o->launch, &relocated, reterr);
		blueprint.launch = &relocated;
		blueprint.private_dir = b->private_dir;
		blueprint.tasks = no_userns_count_tasks(b->base.uid);
	}
	if (r == 0 && is_v2)
		r = cgroup_make(&b->machine, o->policy, &group, &b->cgroup, reterr);
	if (r == 0)
		r = start_supervisor(b, o, blueprint_early_flags(&blueprint), &socket, reterr);
	if (r == 0 && !is_probed) {
		machine_look_further(&b->machine);
		r = check_required(&b->machine, o->policy, reterr);
	}
	if (r == 0 && !is_v2)
		r = cgroup_make(&b->machine, o->policy, &group, &b->cgroup, reterr);
	if (r == 0)
		r = make_plan(b, &blueprint, socket, reterr);
	if (r == 0 && !is_v2)
		r = cgroup_limit(&b->cgroup, o->policy, reterr);
	return r < 0 ? r : give_leave(b, reterr);
}

struct linux_box *linux_box_drop(struct linux_box *b)
{
	if (b)
		linux_box_free(&b->base);
	return NULL;
}

int linux_box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr)
{
	cleanup_linux_box struct linux_box *b = linux_box_new();

	if (!b)
		return err_errno(reterr, ENOMEM, "make a sandbox");
	b->stays = o->stays;
	b->is_template = o->launch->is_template;
	b->guests = 1;
	b->require = o->policy->require;
	if (b->require & LAYERS_NAMESPACES)
		machine_look_first(&b->machine);
	else
		machine_probe(&b->machine);
	b->base.uid = b->machine.box_uid;
	b->base.gid = b->machine.is_root ? b->base.uid : getegid();
	b->filter = o->launch->filter;
	b->has_network = o->launch->has_network;
	int r = start(b, o, reterr);
	if (r < 0)
		return r;
	*ret = &TAKE_PTR(b)->base;
	return 0;
}

static int take_cgroup(struct linux_box *b, const struct policy *p, struct cordon_error **reterr)
{
	struct cgroup_options group = { .owner_gid = owner_of_groups(b),
					.below = &b->template->cgroup };

	if (slots_take(&b->template->slots, &b->cgroup))
		return 0;
	return cgroup_make(&b->machine, p, &group, &b->cgroup, reterr);
}

int linux_box_prepare(const struct policy *p, struct box *from, struct box **ret,
		      struct box_fork_fds *ret_fds, struct cordon_error **reterr)
{
	enum { CONTROL, STATUS, GROUPS };
	_Static_assert(GROUPS + MACHINE_CONTROLLERS == BOX_FORK_RELAY, "the template counts them");
	struct linux_box *template = linux_box(from);
	cleanup_linux_box struct linux_box *b = linux_box_new();
	struct box_fork_fds forked = { .owned = GROUPS };
	int *fds = forked.fds, pair[2];

	if (!b)
		return err_errno(reterr, ENOMEM, "make a sandbox");
	b->machine = template->machine;
	b->is_forked = true;
	b->stays = template->stays;
	b->guests = 1;
	b->require = p->require;
	b->base.uid = from->uid;
	b->base.gid = from->gid;
	b->filter = template->filter;
	b->has_network = template->has_network;
	b->template = template;
	int r = take_cgroup(b, p, reterr);
	if (r == 0)
		r = supervisor_make_status(&b->status, &fds[STATUS], reterr);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		close(fds[STATUS]);
		return err_errno(reterr, errno, "make the control socket");
	}
	b->base.control_fd = pair[0];
	fds[CONTROL] = pair[1];
	for (uint32_t i = 0; i < MACHINE_CONTROLLERS; i++)
		fds[GROUPS + i] = i < b->cgroup.count ? b->cgroup.join_fds[i] : -1;
	fds[BOX_FORK_RELAY] = fds[BOX_FORK_OWN_FILE] = -1;
	*ret = &TAKE_PTR(b)->base;
	*ret_fds = forked;
	return 0;
}

/* wall/box.c - see box.h. */
#include "wall/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "wall/blueprint.h"
#include "wall/init/kernel.h"
#include "wall/no_userns.h"
#include "wall/plan_send.h"
#include "wall/slots.h"
#include "wall/supervisor.h"

/* Killing a full process limit takes about 30 ms; a machine may be busy. */
enum { KILL_MS = 10000 };

struct box {
	struct machine machine;
	struct cgroup cgroup;
	pid_t supervisor; /* our child; 0: a template forked this box */
	int pidfd;        /* of the supervisor, or of pid 1 when there is none */
	int control;      /* seqpacket; EOF when the sandbox is gone */
	int workspace;    /* O_PATH root of its tmpfs */
	struct status *status;
	enum launch_filter filter; /* which system call filter its guest has */
	bool has_network;
	uid_t uid; /* its own where root starts it; known when there is a supervisor */
	gid_t gid;
	pid_t guest_pid;            /* looked up once */
	bool is_ready, is_answered; /* its root stands; pid 1 has sent the last interrupt */
	_Atomic bool is_gone;
	_Atomic bool is_stuck; /* killed, and not dead: it waits in the kernel */
	bool is_prestarted;    /* its supervisor was there before it */
	bool is_forked;        /* from a template */
	struct slots slots;    /* a template's: control groups of sessions that are over */
	struct box *template;  /* outlives this box; NULL: none */
	uint32_t require;      /* the policy's */
	char private_dir[NO_USERNS_PATH]; /* on the rung without namespaces; the supervisor removes
					     it */
};

static struct box *new_box(void)
{
	struct box *b = mem_alloc(sizeof(*b));

	if (!b)
		return NULL;
	b->pidfd = b->control = b->workspace = -1;
	slots_init(&b->slots);
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

bool box_has_namespaces(const struct policy *p)
{
	struct machine m;

	if (p->require & LAYERS_NAMESPACES)
		return true;
	machine_probe(&m);
	return m.has_userns;
}

static gid_t owner_of_groups(const struct box *b)
{
	return b->machine.is_root ? b->gid : (gid_t)-1;
}

/* The sandbox without namespaces is only for policies that require no namespace, and needs Landlock
 * and the filter. */
static int enter_shelter(struct box *b, const struct launch *from, struct launch *ret,
			 struct cordon_error **reterr)
{
	int r = no_userns_check(&b->machine, reterr);
	if (r < 0)
		return r;
	if (from->is_template)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "templates need user namespaces, which are not available here");
	if (b->machine.has_box_uids) {
		uint32_t any;

		random_bytes(&any, sizeof(any));
		b->uid += MACHINE_BOX_LATER + any % MACHINE_BOX_LATER;
	}
	r = no_userns_make(b->uid, b->private_dir, reterr);
	return r < 0 ? r : no_userns_rewrite(from, b->private_dir, ret, reterr);
}

static int make_plan(struct box *b, const struct box_options *o,
		     struct blueprint_options *blueprint, int socket, struct cordon_error **reterr)
{
	cleanup_plan_send struct plan_send h = { 0 };
	cleanup_buf struct buf bytes = { 0 };
	cleanup_close int plan = -1;

	plan_send_init(&h, &b->cgroup);
	if (b->is_prestarted) {
		h.fds[0] = o->stdin_fd;
		h.fds[1] = o->stdout_fd;
		h.fds[2] = o->stderr_fd;
		h.fds[INIT_FD_WIRE] = o->wire_fd;
	}
	if (blueprint->launch->has_network)
		h.fds[INIT_FD_RELAY] = blueprint->launch->relay_fd;
	int r = plan_send_map_mounts(&h, b->uid, b->gid, blueprint, reterr);
	if (r == 0)
		r = blueprint_make(blueprint, &bytes, reterr);
	if (r == 0)
		r = file_from_bytes("cordon-plan", bytes.data, bytes.len, &plan, reterr);
	return r < 0 ? r : plan_send_send(&h, socket, plan, reterr);
}

static int start_supervisor(struct box *b, const struct box_options *o, uint32_t flags,
			    int *ret_socket, struct cordon_error **reterr)
{
	const struct supervisor_options options = {
		.flags = flags,
		.uid = b->uid,
		.adds_pid = b->machine.has_box_uids && !b->private_dir[0],
		.gid = b->gid,
		.empties_bounding = b->private_dir[0],
		.fds = { o->stdin_fd, o->stdout_fd, o->stderr_fd, o->wire_fd },
		.group_fd = b->cgroup.join_fds[0],
		.own_group_fd = b->cgroup.supervisor_fd,
	};
	struct supervisor k;
	int r = supervisor_start(&options, &k, reterr);

	if (r < 0)
		return r;
	b->supervisor = k.pid;
	b->uid = k.uid;
	b->pidfd = k.pidfd;
	b->control = k.control;
	b->status = k.status;
	b->is_prestarted = k.is_prestarted;
	*ret_socket = k.plan;
	return 0;
}

/* Before that, no code of the guest runs. If the supervisor is already gone, the status page says
 * why. */
static int give_leave(struct box *b, struct cordon_error **reterr)
{
	char order = CONTROL_GO;

	if (send(b->control, &order, 1, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		return err_errno(reterr, errno, "tell the supervisor to go on");
	return 0;
}

/* The supervisor makes its namespaces while everything else is done here; but in v2 pid 1 is born
 * in its group. Nobody else's code runs before the plan has come, nor when it never comes. */
static int start(struct box *b, const struct box_options *o, struct cordon_error **reterr)
{
	struct blueprint_options blueprint = { .policy = o->policy,
					       .launch = o->launch,
					       .machine = &b->machine,
					       .cgroup = &b->cgroup,
					       .layers_off = o->layers_off };
	struct cgroup_options group = { .owner_gid = owner_of_groups(b),
					.limits_later = !b->machine.cgroup_v2 };
	cleanup_launch struct launch sheltered = { 0 };
	const bool is_v2 = b->machine.cgroup_v2;
	const bool is_probed = !(b->require & LAYERS_NAMESPACES);
	cleanup_close int socket = -1;
	int r = 0;

	if (is_probed)
		r = check_required(&b->machine, o->policy, reterr);
	if (r == 0 && !b->machine.has_userns) {
		r = enter_shelter(b, o->launch, &sheltered, reterr);
		blueprint.launch = &sheltered;
		blueprint.private_dir = b->private_dir;
		blueprint.tasks = no_userns_count_tasks(b->uid);
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
		r = make_plan(b, o, &blueprint, socket, reterr);
	if (r == 0 && !is_v2)
		r = cgroup_limit(&b->cgroup, o->policy, reterr);
	return r < 0 ? r : give_leave(b, reterr);
}

int box_start(const struct box_options *o, struct box **ret, struct cordon_error **reterr)
{
	cleanup_box struct box *b = new_box();

	if (!b)
		return err_errno(reterr, ENOMEM, "make a sandbox");
	b->require = o->policy->require;
	if (b->require & LAYERS_NAMESPACES)
		machine_look_first(&b->machine);
	else
		machine_probe(&b->machine);
	b->uid = b->machine.box_uid;
	b->gid = b->machine.is_root ? b->uid : getegid();
	b->filter = o->launch->filter;
	b->has_network = o->launch->has_network;
	int r = start(b, o, reterr);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(b);
	return 0;
}

static int take_cgroup(struct box *b, const struct policy *p, struct cordon_error **reterr)
{
	struct cgroup_options group = { .owner_gid = owner_of_groups(b),
					.below = &b->template->cgroup };

	if (slots_take(&b->template->slots, &b->cgroup))
		return 0;
	return cgroup_make(&b->machine, p, &group, &b->cgroup, reterr);
}

int box_prepare(const struct policy *p, struct box *template, struct box **ret,
		struct box_seat *ret_seat, struct cordon_error **reterr)
{
	cleanup_box struct box *b = new_box();
	struct box_seat seat = { .control_fd = -1, .status_fd = -1 };
	int pair[2];

	if (!b)
		return err_errno(reterr, ENOMEM, "make a sandbox");
	b->machine = template->machine;
	b->is_forked = true;
	b->require = p->require;
	b->uid = template->uid;
	b->gid = template->gid;
	b->filter = template->filter;
	b->has_network = template->has_network;
	b->template = template;
	int r = take_cgroup(b, p, reterr);
	if (r == 0)
		r = supervisor_make_status(&b->status, &seat.status_fd, reterr);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		close(seat.status_fd);
		return err_errno(reterr, errno, "make the control socket");
	}
	b->control = pair[0];
	seat.control_fd = pair[1];
	for (uint32_t i = 0; i < MACHINE_CONTROLLERS; i++)
		seat.cgroup_fds[i] = i < b->cgroup.count ? b->cgroup.join_fds[i] : -1;
	*ret = TAKE_PTR(b);
	*ret_seat = seat;
	return 0;
}

void box_seat_done(struct box_seat *s)
{
	close_fdp(&s->control_fd);
	close_fdp(&s->status_fd);
}

/* The number that a process of another namespace has in ours. */
static pid_t pid_of(int pidfd)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *p = strstr(text, "Pid:");
	return p ? (pid_t)strtol(p + 4, NULL, 10) : 0;
}

/* One message of the control socket. 1: something came, 0: nothing now, -1: it is over. */
static int receive(struct box *b)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} u = { .room = { 0 } };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = u.room,
			      .msg_controllen = sizeof(u.room) };
	int fds[4] = { -1, -1, -1, -1 };

	ssize_t n = recvmsg(b->control, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	size_t count = 0;
	if (msg.msg_controllen >= sizeof(struct cmsghdr) && u.head.cmsg_type == SCM_RIGHTS) {
		count = (u.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(&u.head), (count < 4 ? count : 4) * sizeof(int));
	}
	if (byte == CONTROL_WORKSPACE && !b->is_ready) {
		b->is_ready = true;
		b->workspace = TAKE_FD(fds[0]);
		if (b->pidfd < 0) {
			b->pidfd = TAKE_FD(fds[1]);
			b->status->init_pid = pid_of(b->pidfd);
		}
	}
	b->is_answered |= byte == CONTROL_SAMPLED;
	for (size_t i = 0; i < 4; i++)
		close_fdp(&fds[i]);
	return 1;
}

bool box_is_gone(struct box *b)
{
	int r = 1;

	while (!b->is_gone && (r = receive(b)) > 0)
		;
	if (r < 0)
		b->is_gone = true;
	return b->is_gone;
}

bool box_has_ended(const struct box *b)
{
	struct pollfd p = { .fd = b->control, .events = POLLRDHUP };

	return b->is_gone || poll(&p, 1, 0) > 0;
}

/* 0: time is up, or nobody could wait. */
static int wait_word(const struct box *b, deadline_ns deadline)
{
	struct pollfd p = { .fd = b->control, .events = POLLIN };
	int n = poll(&p, 1, deadline_poll_ms(deadline));

	return n < 0 ? errno == EINTR : n;
}

bool box_wait_gone(struct box *b, deadline_ns deadline)
{
	while (!box_is_gone(b))
		if (wait_word(b, deadline) == 0)
			return false;
	return true;
}

int box_wait_ready(struct box *b, deadline_ns deadline, struct cordon_error **reterr)
{
	while (!b->is_ready && !box_is_gone(b))
		if (!b->is_ready && wait_word(b, deadline) == 0)
			return err_set(reterr, CORDON_TIMEOUT, "the sandbox did not start in time");
	if (b->is_ready)
		return 0;
	int r = box_failure(b, reterr);
	return r < 0 ? r : err_set(reterr, CORDON_OS, "the sandbox ended while it was being built");
}

int box_failure(const struct box *b, struct cordon_error **reterr)
{
	static const char *const words[] = {
#define X(id, text) text,
		STAGES(X)
#undef X
	};
	const struct status *s = b->status;

	if (s->state != STATE_FAILED)
		return 0;
	const char *remedy = "";
	struct machine lacking = { 0 };
	if (s->stage == STAGE_NAMESPACES && (s->os_errno == EPERM || s->os_errno == ENOSPC)) {
		const char *why = machine_missing(&lacking, LAYER_USERNS, &remedy);
		uint32_t layer = LAYER_USERNS;

		while (layer < LAYER_CGROUPNS && !(b->require & layer))
			layer <<= 1;
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the policy requires the layer '%s', and %s (%s); remedy: %s",
			       policy_layer_name(layer), why, strerror(s->os_errno), remedy);
	}
	const char *what = s->stage < sizeof(words) / sizeof(*words) ? words[s->stage] : "?";
	/* Not err_errno: an EPERM here is this machine's, not the policy's refusal. */
	return err_set(reterr, CORDON_OS, "the sandbox could not %s (step %u): %s", what, s->detail,
		       strerror(s->os_errno));
}

void box_end(struct box *b)
{
	/* A supervisor takes SIGTERM as the order to end pid 1, which takes the rest along. */
	int signo = b->supervisor > 0 ? SIGTERM : SIGKILL;

	if (b->pidfd < 0 || b->is_gone)
		return;
	(void)syscall(SYS_pidfd_send_signal, b->pidfd, signo, NULL, 0);
	if (b->supervisor > 0) /* one that was stopped takes no order */
		(void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGCONT, NULL, 0);
}

/* Pid 1 closes the control socket before the kernel ends the others of its namespace; it is dead,
 * and its pidfd says so, when all of them are. A supervisor waits for that itself. */
static void wait_empty(struct box *b, deadline_ns deadline)
{
	struct pollfd p = { .fd = b->supervisor > 0 ? -1 : b->pidfd, .events = POLLIN };
	int n = 1;

	while (p.fd >= 0 && (n = poll(&p, 1, deadline_poll_ms(deadline))) < 0 && errno == EINTR)
		;
	b->is_stuck = b->is_stuck || n == 0;
}

void box_kill(struct box *b)
{
	deadline_ns deadline = deadline_after_ms(KILL_MS);

	if (b->pidfd >= 0 && !b->is_gone) {
		box_end(b);
		b->is_stuck = !box_wait_gone(b, deadline);
	}
	b->is_gone = true;
	wait_empty(b, deadline);
}

void box_release(struct box *b)
{
	if (b->is_gone)
		close_fdp(&b->control);
}

const char *box_private_dir(const struct box *b)
{
	return b->private_dir[0] ? b->private_dir : NULL;
}

bool box_is_stuck(const struct box *b)
{
	return b->is_stuck;
}

/* The supervisor of a stuck sandbox is left running: it cleans up when that has ended. */
static void bury_keeper(struct box *b)
{
	struct pollfd p = { .fd = b->pidfd, .events = POLLIN };
	deadline_ns deadline = deadline_after_ms(b->is_stuck ? 0 : KILL_MS);
	siginfo_t info;
	int n = 1;

	while (b->supervisor > 0 && (n = poll(&p, 1, deadline_poll_ms(deadline))) < 0 &&
	       errno == EINTR)
		;
	int flags = WEXITED | __WALL | (n == 0 ? WNOHANG : 0);
	while (b->supervisor > 0 && waitid(P_PID, (id_t)b->supervisor, &info, flags) < 0 &&
	       errno == EINTR)
		;
	b->supervisor = 0;
}

struct box *box_free(struct box *b)
{
	if (!b)
		return NULL;
	box_kill(b);
	/* The supervisor leaves, and removes what is left, when our end of the control socket is
	 * closed. */
	close_fdp(&b->control);
	close_fdp(&b->workspace);
	if (b->status)
		munmap(b->status, sizeof(struct status));
	bool had_supervisor = b->supervisor > 0;
	bury_keeper(b);
	close_fdp(&b->pidfd);
	if (!had_supervisor && b->private_dir[0])
		(void)rmdir(b->private_dir); /* nobody was there to fill it */
	slots_done(&b->slots);               /* before what they are below */
	if (b->template && b->cgroup.count)
		slots_give(&b->template->slots, &b->cgroup);
	else
		cgroup_done(&b->cgroup);
	free(b);
	return NULL;
}

int box_interrupt(struct box *b, deadline_ns deadline)
{
	static const char orders[] = { CONTROL_INTERRUPT, CONTROL_SAMPLE };

	b->is_answered = false;
	for (int i = 0; i < 2; i++)
		if (send(b->control, &orders[i], 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			return -CORDON_STATE;
	while (!b->is_answered && !box_is_gone(b))
		if (!b->is_answered && wait_word(b, deadline) == 0)
			return -CORDON_STATE;
	return 0;
}

int box_control_fd(const struct box *b)
{
	return b->control;
}

int box_workspace_fd(const struct box *b)
{
	return b->workspace;
}

uid_t box_uid(const struct box *b)
{
	return b->uid;
}

gid_t box_gid(const struct box *b)
{
	return b->gid;
}

pid_t box_pid(const struct box *b)
{
	return b->is_gone ? 0 : b->status->init_pid;
}

/* pid 1 has no other child when the guest is first asked for. */
pid_t box_guest_pid(struct box *b)
{
	char path[64], text[32] = "";
	pid_t init = box_pid(b);

	if (b->guest_pid > 0 || init <= 0)
		return b->is_gone ? 0 : b->guest_pid;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", init, init);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		b->guest_pid = (pid_t)strtol(text, NULL, 10);
	return b->guest_pid;
}

void box_pids(const struct box *b, pid_t ret[static 3])
{
	memcpy(ret, (pid_t[]){ b->supervisor, box_pid(b), b->guest_pid }, 3 * sizeof(*ret));
}

const struct status *box_status(const struct box *b)
{
	return b->status;
}

/* The supervisor of a forked session is its template's, and tells of it on that page. */
bool box_is_out_of_memory(const struct box *b)
{
	const struct status *s = b->template ? b->template->status : b->status;

	if (!b->template)
		return s->memory_kills > 0;
	for (int i = 0; i < STATUS_VICTIMS && b->status->init_pid > 0; i++)
		if (s->memory_victims[i] == b->status->init_pid)
			return true;
	return false;
}

void box_filter_hash(const struct box *b, uint8_t ret[static 32])
{
	const struct blueprint_seal seal = { .filter = b->filter,
					     .has_network = b->has_network,
					     .is_forked = b->is_forked,
					     .is_deaf = box_status(b)->is_deaf };

	blueprint_filter_hash(&seal, ret);
}

const struct cgroup *box_cgroup(const struct box *b)
{
	return &b->cgroup;
}

const struct machine *box_machine(const struct box *b)
{
	return &b->machine;
}

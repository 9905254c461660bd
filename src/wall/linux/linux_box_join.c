/* wall/linux/linux_box_join.c - starts a further guest in a place: a sandbox that does not end with
 * its first one. Pid 1 of the place forks it (inside/init/join.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "wall/linux/linux_box.h"
#include "wall/linux/plan_send.h"
#include "wall/linux/supervisor.h"

_Static_assert((int)BOX_GUESTS == (int)PLACE_GUESTS, "pid 1 has room for as many");

static int check(const struct linux_box *place, struct cordon_error **reterr)
{
	if (!place->stays || place->is_template)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "no further guest can join: the sandbox was not started as a place");
	if (!place->is_ready || linux_box_has_ended(&place->base))
		return err_set(reterr, CORDON_STATE, "the sandbox has ended or is not ready");
	return 0;
}

static int make_plan(const struct linux_box *place, const struct box_options *o, int *ret_fd,
		     struct cordon_error **reterr)
{
	struct blueprint_options blueprint = { .policy = o->policy,
					       .launch = o->launch,
					       .machine = &place->machine,
					       .cgroup = &place->cgroup,
					       .layers_off = o->layers_off,
					       .joins = true,
					       .on_terminal = o->on_terminal,
					       .has_wire = o->wire_fd >= 0 };
	cleanup_buf struct buf bytes = { 0 };
	int r = blueprint_make(&blueprint, &bytes, reterr);

	return r < 0 ? r : file_from_bytes("cordon-plan", bytes.data, bytes.len, ret_fd, reterr);
}

/* For the first guest there are no options. */
static int start(struct linux_box *b, const struct box_options *o, struct cordon_error **reterr)
{
	static const struct box_options none = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .wire_fd = -1
	};
	const struct box_options *streams = o ? o : &none;
	cleanup_close int control = -1, plan = -1, status = -1;
	int pair[2], r = 0;

	if (o)
		r = supervisor_make_status(&b->status, &status, reterr);
	else
		b->status = b->place->status;
	if (r == 0 && o)
		r = make_plan(b->place, o, &plan, reterr);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(reterr, errno, "make the control socket");
	b->base.control_fd = pair[0];
	control = pair[1];
	const int fds[PLAN_SEND_JOIN] = { streams->stdin_fd,
					  streams->stdout_fd,
					  streams->stderr_fd,
					  streams->wire_fd,
					  control,
					  plan,
					  status };
	_Static_assert(INIT_FD_WIRE == 3 && INIT_FD_CONTROL == 4 && INIT_FD_PLAN == 5 &&
			       INIT_FD_STATUS == 6,
		       "the order above");
	r = plan_send_join(fds, b->place->base.control_fd);
	if (r == -EPIPE || r == -ECONNRESET)
		return err_set(reterr, CORDON_STATE, "the sandbox has ended");
	return r < 0 ? err_errno(reterr, -r, "ask the sandbox to start another guest") : 0;
}

/* The box counts as a guest of the place until it is freed. */
static int enter(struct linux_box *b, struct linux_box *place, bool is_first,
		 struct cordon_error **reterr)
{
	if (is_first && atomic_exchange(&place->has_first, true))
		return err_set(reterr, CORDON_STATE, "the first guest already has a box");
	if (!is_first && atomic_fetch_add(&place->guests, 1) >= BOX_GUESTS) {
		atomic_fetch_sub(&place->guests, 1);
		return err_set(reterr, CORDON_LIMIT, "the sandbox already has %d guests",
			       BOX_GUESTS);
	}
	b->place = place;
	return 0;
}

int linux_box_join(struct box *in, const struct box_options *o, struct box **ret,
		   struct cordon_error **reterr)
{
	struct linux_box *place = linux_box(in);
	int r = check(place, reterr);

	if (r < 0)
		return r;
	cleanup_linux_box struct linux_box *b = linux_box_new();
	if (!b)
		return err_errno(reterr, ENOMEM, "make a sandbox");
	r = enter(b, place, !o, reterr);
	if (r < 0)
		return r;
	b->machine = place->machine;
	b->require = place->require;
	b->filter = o ? o->launch->filter : place->filter;
	b->has_network = o ? o->launch->has_network : place->has_network;
	b->is_forked = place->is_forked;
	b->base.uid = in->uid;
	b->base.gid = in->gid;
	b->base.workspace_fd = fcntl(in->workspace_fd, F_DUPFD_CLOEXEC, 3);
	if (b->base.workspace_fd < 0)
		return err_errno(reterr, errno, "open the workspace");
	r = start(b, o, reterr);
	if (r < 0)
		return r;
	*ret = &TAKE_PTR(b)->base;
	return 0;
}

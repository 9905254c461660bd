/* prove/trial.c - see trial.h. */
#include "prove/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/os.h"
#include "guest/languages.h"
#include "prove/attack_forked.h"
#include "prove/attack_package.h"
#include "prove/attack_python.h"
#include "prove/attack_session.h"
#include "session/leftovers.h"
#include "session/network.h"
#include "wall/wall.h"
#include "wire/wire.h"

enum { TRIAL_MS = 120000 }; /* enough for a busy machine */
#define PROBE_PATH "/run/cordon/probe"

/* The attack's ends of pipes and wire, and the host's. */
struct ends {
	int in, out, wire;
	int host_in, host_out, host_wire;
};

static void ends_done(struct ends *e)
{
	close_fdp(&e->in);
	close_fdp(&e->out);
	close_fdp(&e->wire);
	close_fdp(&e->host_in);
	close_fdp(&e->host_out);
	close_fdp(&e->host_wire);
}

static int open_terminal(struct ends *e)
{
	char name[64];
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return -errno;
	e->host_in = master;
	if (grantpt(master) != 0 || unlockpt(master) != 0 ||
	    ptsname_r(master, name, sizeof(name)) != 0)
		return -errno;
	e->in = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return e->in < 0 ? -errno : 0;
}

static int ends_open(struct ends *ret, bool has_terminal, struct cordon_error **reterr)
{
	struct ends e = { -1, -1, -1, -1, -1, -1 };
	int out[2] = { -1, -1 }, pair[2] = { -1, -1 }, r = 0;

	if (has_terminal)
		r = open_terminal(&e);
	else
		r = (e.in = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0 ? -errno : 0;
	if (r == 0 && pipe2(out, O_CLOEXEC) != 0)
		r = -errno;
	if (r == 0) {
		e.host_out = out[0];
		e.out = out[1];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
			r = -errno;
	}
	if (r < 0) {
		ends_done(&e);
		return err_errno(reterr, -r, "open the ends of an attack");
	}
	e.host_wire = pair[0];
	e.wire = pair[1];
	*ret = e;
	return 0;
}

static int fill_launch(const struct trial_options *o, struct launch *l,
		       struct cordon_error **reterr)
{
	struct guest_options guest = {
		.kind = o->kind, .mode = GUEST_SCRIPT, .policy = o->policy, .code = "", .token = ""
	};
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	const char *argv[BAIT_ARGV] = { "probe", o->attack->name };
	size_t argc = 2;
	cleanup_free char *seal = o->seal ? str_printf("seal=%s", o->seal) : NULL;

	int r = guest_launch(&guest, l, reterr);
	if (r < 0)
		return r;
	if (o->seal && !seal)
		return err_errno(reterr, ENOMEM, "the launch of an attack");
	if (seal)
		argv[argc++] = seal;
	if (o->is_empty)
		argv[argc++] = "empty=1";
	strlist_done(&l->argv);
	free(l->executable);
	l->executable = NULL;
	bait_add_args(o->bait, argv, argc);
	if (launch_file(l, PROBE_PATH, wall.program, wall.program_len, 0555) < 0 ||
	    launch_exec(l, PROBE_PATH) < 0 || language_command(l, PROBE_PATH, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of an attack");
	return 0;
}

static void judge_status(int status, const char *text, struct trial *t)
{
	int code = WEXITSTATUS(status), signo = WTERMSIG(status);

	if (WIFSIGNALED(status)) {
		bool is_stopped =
			signo == SIGSYS || signo == SIGKILL || signo == SIGXCPU || signo == SIGXFSZ;
		t->outcome = is_stopped ? TRIAL_HELD : TRIAL_BROKEN;
		snprintf(t->said, sizeof(t->said), "killed by SIG%s", sigabbrev_np(signo));
	} else if (code == PROBE_WORKED) {
		t->outcome = TRIAL_OPEN;
		(void)str_copy(t->said, sizeof(t->said), "worked");
	} else if (code == PROBE_REFUSED) {
		const char *name = strerrorname_np((int)strtol(text, NULL, 10));

		t->outcome = TRIAL_HELD;
		snprintf(t->said, sizeof(t->said), "%s", name ? name : "refused");
	} else if (code == PROBE_NOT_HERE) {
		t->outcome = TRIAL_NOT_HERE;
		strcpy(t->said, "not here");
	} else {
		t->outcome = TRIAL_BROKEN;
		snprintf(t->said, sizeof(t->said), "ended with status %d", code);
	}
}

/* Reads as a careless host would, with room for descriptors. */
static bool takes_descriptors(int wire)
{
	char bytes[16];
	int fds[16];
	size_t count;

	(void)os_fds_receive(wire, bytes, sizeof(bytes), fds, 16, &count);
	for (size_t i = 0; i < count; i++)
		(void)close(fds[i]);
	return count > 0;
}

/* Whether descriptors that the guest sent arrive when the wire is read as usual. */
static bool is_passed(struct ends *e)
{
	static const char token[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	struct wire_options options = { .token = token };
	int before = leftovers_descriptors();
	cleanup_wire struct wire *w = NULL;

	if (wire_new(e->host_wire, &options, &w, NULL) < 0)
		return true;
	e->host_wire = -1;
	(void)wire_fill(w, NULL);
	return leftovers_descriptors() > before;
}

/* Checks what only the host can see after the attack. */
static void judge_remains(const struct trial_options *o, struct ends *e, bool is_control,
			  struct trial *t)
{
	bool is_found;

	if (t->outcome != TRIAL_OPEN || !(o->attack->flags & (PROBE_SURVIVOR | PROBE_PASSED)))
		return;
	if (o->attack->flags & PROBE_SURVIVOR)
		is_found = leftovers_end(o->bait->marker) > 0;
	else
		is_found = is_control ? takes_descriptors(e->host_wire) : is_passed(e);
	t->outcome = is_found ? TRIAL_OPEN : TRIAL_HELD;
	(void)str_copy(t->said, sizeof(t->said), is_found ? "worked" : "nothing left of it");
}

static void read_said(int fd, char *ret, size_t size)
{
	ssize_t n = read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
}

/* When kernel memory runs out, the kernel may kill pid 1. */
static void judge_box(const struct box *box, struct trial *t)
{
	struct box_counts counts;

	box_count(box, &counts);
	t->is_nonotify = box_look(box).is_nonotify;
	t->peak_bytes = counts.memory_peak_bytes;
	if (t->outcome != TRIAL_BROKEN || counts.oom_kills == 0)
		return;
	t->outcome = TRIAL_HELD;
	strcpy(t->said, "killed");
}

/* What a guest leaves behind lives as long as its place. */
static void end_place(struct box *place)
{
	if (place)
		box_kill(place);
}

/* A place whose first guest ends at once, because it knows no such attack; and the attack as a
 * further guest. */
static int join(const struct box_options *o, struct box **ret_place, struct box **ret,
		struct cordon_error **reterr)
{
	static char name[] = "probe", unknown[] = "nothing";
	char *nothing[] = { name, unknown };
	struct box_options first = *o;
	struct launch idle = *o->launch; /* its files are borrowed */

	idle.argv = (struct strlist){ .items = nothing, .count = 2 };
	first.launch = &idle;
	first.stays = true;
	first.stdin_fd = first.stdout_fd = first.stderr_fd = first.wire_fd = -1;
	int r = box_start(&first, ret_place, reterr);
	cleanup_box struct box *gone = NULL;
	if (r == 0)
		r = box_wait_ready(*ret_place, deadline_after_ms(TRIAL_MS), reterr);
	if (r == 0)
		r = box_first(*ret_place, &gone, reterr);
	if (r == 0 && !box_wait_gone(gone, deadline_after_ms(TRIAL_MS)))
		r = err_set(reterr, CORDON_TIMEOUT, "the first guest of a place does not end");
	return r < 0 ? r : box_join(*ret_place, o, ret, reterr);
}

static int start(const struct trial_options *o, const struct box_options *box,
		 struct box **ret_place, struct box **ret, struct cordon_error **reterr)
{
	return o->joins ? join(box, ret_place, ret, reterr) : box_start(box, ret, reterr);
}

static int try_once(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr)
{
	static const struct network_listener nobody;
	cleanup_gateway struct gateway *gateway = NULL;
	cleanup_launch struct launch launch = { 0 };
	cleanup_box struct box *place = NULL, *box = NULL; /* freed in the opposite order */
	struct ends e = { -1, -1, -1, -1, -1, -1 };
	struct trial t = { .outcome = TRIAL_BROKEN };
	char text[64];

	int r = fill_launch(o, &launch, reterr);
	if (r == 0 && gateway_is_needed(o->policy)) {
		r = network_start(o->policy, &nobody, &gateway, reterr);
		if (r == 0)
			r = network_fill(gateway, o->policy, false, &launch, reterr);
	}
	if (r == 0)
		r = ends_open(&e, o->attack->flags & PROBE_TTY, reterr);
	if (r < 0)
		return r;
	struct box_options options = { .policy = o->policy,
				       .launch = &launch,
				       .stdin_fd = e.in,
				       .stdout_fd = e.out,
				       .stderr_fd = e.out,
				       .wire_fd = e.wire,
				       .layers_off = o->layers_off };
	r = start(o, &options, &place, &box, reterr);
	close_fdp(&e.in);
	close_fdp(&e.out);
	close_fdp(&e.wire);
	if (r == 0 && !box_wait_gone(box, deadline_after_ms(TRIAL_MS)))
		strcpy(t.said, "did not end");
	else if (r == 0)
		r = box_failure(box, reterr);
	end_place(place);
	if (r == 0 && box_look(box).is_out_of_memory) {
		t.outcome = TRIAL_HELD;
		strcpy(t.said, "killed");
	} else if (r == 0 && box_look(box).stage == BOX_EXITED) {
		read_said(e.host_out, text, sizeof(text));
		judge_status(box_look(box).wait_status, text, &t);
		t.is_noticed = box_look(box).has_denials;
		judge_remains(o, &e, false, &t);
	}
	if (r == 0)
		judge_box(box, &t);
	ends_done(&e);
	*ret = t;
	return r;
}

/* Runs the attack with and without what should be counted; the difference is what was counted. */
static int try_charged(const struct trial_options *o, struct trial *ret,
		       struct cordon_error **reterr)
{
	struct trial_options empty = *o;
	struct trial before = { 0 };

	empty.is_empty = true;
	int r = try_once(&empty, &before, reterr);
	if (r == 0)
		r = try_once(o, ret, reterr);
	if (r < 0 || ret->outcome != TRIAL_OPEN)
		return r;
	if (ret->peak_bytes == 0) {
		ret->outcome = TRIAL_NOT_HERE;
		strcpy(ret->said, "no control group");
	} else if (ret->peak_bytes >= before.peak_bytes + PROBE_CHARGE_BYTES) {
		ret->outcome = TRIAL_HELD;
		snprintf(ret->said, sizeof(ret->said), "counted: %llu KiB",
			 (unsigned long long)(ret->peak_bytes - before.peak_bytes) / 1024);
	}
	return 0;
}

int trial_inside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr)
{
	if (o->is_forked)
		return attack_forked_inside(o, ret, reterr);
	if (o->attack->flags & PROBE_BUILD)
		return attack_package_inside(o, ret, reterr);
	if (o->attack->flags & (PROBE_IDLE | PROBE_SIBLING))
		return attack_session_inside(o, ret, reterr);
	if (o->attack->is_python)
		return attack_python_inside(o, ret, reterr);
	return o->attack->flags & PROBE_CHARGED ? try_charged(o, ret, reterr)
						: try_once(o, ret, reterr);
}

/* The control: the same program, started normally, with what the attack needs. */
static int start_outside(const struct trial_options *o, const struct ends *e)
{
	cleanup_free char *secret = str_printf("CORDON_BAIT=%s", o->bait->secret);
	char *env[] = { secret, NULL };
	const char *argv[BAIT_ARGV] = { "probe", o->attack->name, "control=1" };

	bait_add_args(o->bait, argv, 3);
	if (!secret)
		return -ENOMEM;
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	if (dup2(e->in, 0) < 0 || dup2(e->out, 1) < 0 || dup2(e->out, 2) < 0 ||
	    dup2(e->wire, 3) < 0)
		_exit(126);
	execve(o->bait->program, (char *const *)(uintptr_t)argv, env);
	_exit(126);
}

int trial_outside(const struct trial_options *o, struct trial *ret, struct cordon_error **reterr)
{
	struct trial t = { .outcome = TRIAL_BROKEN };
	struct ends e = { -1, -1, -1, -1, -1, -1 };
	char text[64];
	int status = 0;

	if (o->attack->is_python)
		return attack_python_outside(o, ret, reterr);
	if (o->attack->control == CONTROL_ROOT && geteuid() != 0) {
		*ret = (struct trial){ .outcome = TRIAL_NOT_HERE, .said = "needs root" };
		return 0;
	}
	int r = ends_open(&e, o->attack->flags & PROBE_TTY, reterr);
	if (r < 0)
		return r;
	int pid = start_outside(o, &e);
	close_fdp(&e.out);
	if (pid < 0) {
		ends_done(&e);
		return err_errno(reterr, -pid, "start the control of '%s'", o->attack->name);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* A surviving process may hold the pipe open, but the output is already there. */
	(void)file_set_nonblock(e.host_out, true);
	read_said(e.host_out, text, sizeof(text));
	judge_status(status, text, &t);
	judge_remains(o, &e, true, &t);
	ends_done(&e);
	*ret = t;
	return 0;
}

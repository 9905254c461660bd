/* inside/pod/runtime/pod_session.c - the shell's side of a session: the next command, and how the
 * last one ended.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <fcntl.h>
#include <unistd.h>

#include "inside/pod/runtime/agent.h"
#include "inside/pod/runtime/jobs.h"
#include "inside/pod/runtime/path.h"

/* Between commands the shell has none of the host's pipes, so these reach end of file. */
static void let_go(const struct w2c_sys *p)
{
	for (int fd = 0; fd < 3; fd++)
		dup2(p->fds[PRIVATE_NULL], fd);
}

static int report(struct w2c_sys *p, int status)
{
	struct agent_message head = { p->in_command ? AGENT_DONE : AGENT_READY, 0, status, 0 };
	char cwd[PATH_MAX];
	int n = path_cwd(p, cwd);

	if (p->in_command)
		let_go(p);
	p->in_command = false;
	p->reported = true;
	return agent_send(p->fds[PRIVATE_AGENT], &head, cwd, n < 0 ? 0 : (size_t)n, NULL);
}

/* (buffer, bytes, status): reports the status, waits, copies the next command; returns its length.
 * ENOTTY: this is not a session's shell. */
DOOR_FN(own_command)
{
	static struct agent_packet packet;
	char *out = guest_at(p, a[0], (uint32_t)a[1]);
	int r;

	if (!p->session || p->session != getpid())
		return -ENOTTY;
	if (!a[0])
		return 0;
	if (!out || (uint32_t)a[1] < sizeof packet.payload)
		return -EFAULT;
	if (!p->reported && (r = report(p, guest_int(a[2]))))
		return r;
	/* An interrupt for the command that is about to arrive must not stop its arrival: the agent
	 * has sent the command first. */
	do
		r = agent_receive(p->fds[PRIVATE_AGENT], &packet);
	while (r == -EINTR && jobs_is_early());
	if (r == -EINTR)
		return r;
	if (r < 0 || packet.head.type != AGENT_RUN)
		_exit(0); /* the agent is gone */
	for (int i = 0; i < 3; i++) {
		dup2(packet.fds[i], i);
		close(packet.fds[i]);
	}
	jobs_begin(packet.head.id);
	jobs_drop_interrupt();
	p->in_command = true;
	p->reported = false;
	memcpy(out, packet.payload, packet.bytes + 1);
	return r;
}

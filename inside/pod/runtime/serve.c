/* inside/pod/runtime/serve.c - the agent's protocol on a SOCK_SEQPACKET socket, see docs/pod.md. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/agent.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

struct server {
	struct agent agent;
	int host;
	uint32_t id; /* of the running command */
	int error;   /* of the last answer */
};

static int answer(struct server *s, uint32_t type, int status, uint32_t flags, const char *text)
{
	const struct agent_message head = { type, s->id, status, flags };
	int r = agent_send(s->host, &head, text, strlen(text), NULL);

	if (r)
		s->error = r;
	return r;
}

static void on_ready(void *arg, const char *cwd)
{
	answer(arg, AGENT_READY, 0, 0, cwd);
}

static void on_done(void *arg, int status, bool restarted, const char *cwd)
{
	answer(arg, AGENT_DONE, status, restarted ? AGENT_RESTARTED : 0, cwd);
}

static void on_denied(void *arg, const char *text)
{
	answer(arg, AGENT_DENIED, 0, 0, text);
}

static int run(struct server *s, const struct agent_packet *packet)
{
	uint32_t old = s->id;
	int r;

	if (packet->fds[0] < 0 || packet->fds[1] < 0 || packet->fds[2] < 0)
		return answer(s, AGENT_REFUSED, 0, 0, "three descriptors are needed");
	s->id = packet->head.id;
	r = agent_run(&s->agent, packet->payload, packet->bytes, packet->fds);
	if (!r)
		return 0;
	s->id = old;
	return answer(s, AGENT_REFUSED, 0, 0, "a command is running");
}

static int on_request(struct server *s)
{
	static struct agent_packet packet;
	int r = agent_receive(s->host, &packet);

	if (r == -EMSGSIZE)
		return answer(s, AGENT_REFUSED, 0, 0, "command too large");
	if (r < 0 || !packet.head.type)
		return -EPIPE;
	switch (packet.head.type) {
	case AGENT_RUN:
		r = run(s, &packet);
		break;
	case AGENT_CANCEL:
		r = 0;
		if (s->agent.busy)
			agent_signal(&s->agent, SIGKILL);
		break;
	case AGENT_PING:
		s->id = s->agent.busy ? s->id : packet.head.id;
		r = answer(s, AGENT_PING, 0, 0, "");
		break;
	default:
		r = answer(s, AGENT_REFUSED, 0, 0, "unknown request");
	}
	for (int i = 0; i < 3; i++)
		if (packet.fds[i] >= 0)
			close(packet.fds[i]);
	return r;
}

int serve_requests(struct w2c_sys *p, char *const *envp)
{
	static struct server s;
	int r;

	s = (struct server){ .agent = { .process = p,
					.envp = envp,
					.front = { on_ready, on_done, on_denied, &s } },
			     .host = p->fds[PRIVATE_AGENT] };
	signal(SIGPIPE, SIG_IGN);
	r = agent_open(&s.agent);
	if (!r)
		r = agent_start(&s.agent);
	while (!r) {
		struct pollfd fds[AGENT_FDS + 1];

		agent_poll(&s.agent, fds);
		fds[AGENT_FDS] = (struct pollfd){ .fd = s.host, .events = POLLIN };
		if (poll(fds, AGENT_FDS + 1, -1) < 0)
			continue;
		r = agent_attend(&s.agent, fds);
		if (!r && fds[AGENT_FDS].revents)
			r = on_request(&s);
		r = r ? r : s.error;
	}
	agent_signal(&s.agent, SIGKILL);
	return r == -EPIPE ? 0 : 125;
}

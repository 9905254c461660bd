/* guests/pod/bridge.c - the pod guest's agent: speaks docs/wire.md to the host on descriptor 3, and
 * the protocol of docs/pod.md to `cordon-pod --serve`, which owns the session's shell. Runs no
 * guest code.
 *
 *   cordon-pod-bridge PROGRAM [OPTION...]     PROGRAM is cordon-pod, options are passed on */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sh/bytes.h"
#include "../sh/json.h"

enum { WIRE = 3, PACKET_MAX = 65536, ARGS_MAX = 32 };

/* The header of the agent's packets: four little-endian words (this machine's order). */
struct packet {
	uint32_t type, id, status, flags;
	char payload[PACKET_MAX];
};

struct bridge {
	int agent; /* seqpacket to cordon-pod --serve */
	pid_t agent_pid;
	struct bytes in;    /* from the host, up to whole lines */
	unsigned long id;   /* of the running execution; 0: none */
	uint32_t request;   /* counts our requests */
	struct bytes setup; /* assignments that go before the next command */
};

static void say(const struct bytes *line)
{
	if (bytes_write(WIRE, line->data, line->len) < 0)
		_exit(0);
}

static void hello(void)
{
	const char *token = getenv("CORDON_TOKEN");
	struct bytes b = { 0 };

	bytes_text(&b, "{\"type\":\"hello\",\"version\":1,\"guest\":\"pod\",\"language\":\"bash\","
		       "\"token\":");
	json_quote(&b, token ? token : "", token ? strlen(token) : 0);
	bytes_text(&b, "}\n");
	unsetenv("CORDON_TOKEN");
	say(&b);
	bytes_done(&b);
}

static void send_result(struct bridge *g, uint32_t status)
{
	struct bytes b = { 0 };

	bytes_format(&b, "{\"type\":\"result\",\"id\":%lu,\"ok\":%s,\"exit_code\":%u}\n", g->id,
		     status == 0 ? "true" : "false", status > 255 ? 255 : status);
	g->id = 0;
	say(&b);
	bytes_done(&b);
}

/* Starts the agent with its end of a fresh socket; its descriptor number is its argument. */
static void start_agent(struct bridge *g, char **argv)
{
	char number[16];
	char *args[ARGS_MAX];
	int pair[2], n = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		_exit(125);
	for (; argv[n] && n < ARGS_MAX - 3; n++)
		args[n] = argv[n];
	snprintf(number, sizeof(number), "%d", 3);
	args[n++] = "--serve";
	args[n++] = number;
	args[n] = NULL;
	g->agent_pid = fork();
	if (g->agent_pid == 0) {
		dup2(pair[1], 3); /* in the place of the wire, which the pod never sees */
		execv(args[0], args);
		_exit(127);
	}
	close(pair[1]);
	g->agent = pair[0];
}

/* One command with our own standard streams: they are this session's pipes to the host. */
static int send_command(struct bridge *g, const char *text, size_t len)
{
	static struct packet p;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} u = { .room = { 0 } };
	const int fds[3] = { 0, 1, 2 };

	if (len > PACKET_MAX)
		return -1;
	p.type = 'R';
	p.id = ++g->request;
	p.status = p.flags = 0;
	memcpy(p.payload, text, len);
	struct iovec iov = { .iov_base = &p, .iov_len = 16 + len };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.room,
			    .msg_controllen = sizeof(u.room) };
	u.head.cmsg_level = SOL_SOCKET;
	u.head.cmsg_type = SCM_RIGHTS;
	u.head.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&u.head), fds, sizeof(fds));
	return sendmsg(g->agent, &m, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* NAME='value' for every member of an object whose value is plain. */
static void add_variables(struct bridge *g, struct json object, const char *how)
{
	const char *at = NULL;
	struct json key, value;

	while (json_kind(object) == '{' && json_each(object, &at, &key, &value)) {
		struct bytes name = { 0 }, text = { 0 };

		json_string(key, &name);
		if (json_kind(value) == 'n') {
			bytes_format(&g->setup, "unset %.*s\n", (int)name.len, name.data);
		} else {
			if (json_kind(value) == '"')
				json_string(value, &text);
			else
				bytes_add(&text, value.at, value.len);
			bytes_format(&g->setup, "%s%.*s=", how, (int)name.len, name.data);
			bytes_shell(&g->setup, text.data, text.len);
			bytes_char(&g->setup, '\n');
		}
		bytes_done(&name);
		bytes_done(&text);
	}
}

static void execute(struct bridge *g, struct json m)
{
	struct bytes code = { 0 };

	g->id = json_number(json_get(m, "id"), 0);
	add_variables(g, json_get(m, "env"), "export ");
	add_variables(g, json_get(m, "context"), "");
	bytes_add(&code, g->setup.data, g->setup.len);
	json_string(json_get(m, "code"), &code);
	bytes_drop(&g->setup, g->setup.len);
	if (send_command(g, code.data, code.len) < 0) {
		static const char text[] = "command too large\n";

		(void)bytes_write(2, text, sizeof(text) - 1);
		send_result(g, 1);
	}
	bytes_done(&code);
}

static void take_line(struct bridge *g, const char *text, size_t len)
{
	struct json m = { text, len };

	if (!json_check(text, len))
		_exit(125);
	if (json_is(json_get(m, "type"), "execute"))
		execute(g, m);
	else if (json_is(json_get(m, "type"), "welcome"))
		add_variables(g, json_get(json_get(m, "guest_options"), "env"), "export ");
	else if (json_is(json_get(m, "type"), "exit"))
		_exit(0);
}

static void from_host(struct bridge *g)
{
	char *end;

	if (bytes_read(&g->in, WIRE) <= 0)
		_exit(0);
	while (g->in.len > 0 && (end = memchr(g->in.data, '\n', g->in.len))) {
		size_t len = (size_t)(end - g->in.data);

		take_line(g, g->in.data, len);
		bytes_drop(&g->in, len + 1);
	}
}

/* True while the agent lives. */
static void from_agent(struct bridge *g)
{
	static struct packet p;
	ssize_t n = recv(g->agent, &p, sizeof(p), 0);

	if (n <= 0) /* without its agent a session is over: the host replaces it */
		_exit(125);
	if (n >= 16 && p.type == 'D' && p.id == g->request && g->id)
		send_result(g, p.status);
	else if (n >= 16 && p.type == 'E' && g->id)
		send_result(g, 1);
}

/* ^C of the host: the agent kills what runs and answers. */
static volatile sig_atomic_t is_interrupted;

static void interrupted(int signo)
{
	(void)signo;
	is_interrupted = 1;
}

int main(int argc, char **argv)
{
	static struct bridge g;
	struct sigaction sa = { .sa_handler = interrupted };

	if (argc < 2)
		return 125;
	fcntl(WIRE, F_SETFD, FD_CLOEXEC);
	hello();
	start_agent(&g, argv + 1);
	sigaction(SIGINT, &sa, NULL);
	for (;;) {
		struct pollfd p[2] = { { .fd = WIRE, .events = POLLIN },
				       { .fd = g.agent, .events = POLLIN } };
		int n = poll(p, 2, -1);

		if (is_interrupted && g.id) {
			uint32_t cancel[4] = { 'C', 0, 0, 0 };

			is_interrupted = 0;
			(void)send(g.agent, cancel, sizeof(cancel), MSG_NOSIGNAL);
		}
		if (n <= 0)
			continue;
		if (p[0].revents)
			from_host(&g);
		if (p[1].revents)
			from_agent(&g);
	}
}

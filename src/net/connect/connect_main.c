/* net/connect/connect_main.c - cordon-connect [--get PATH] SERVER [CA_FILE]: standard input and
 * output to a `cordon serve`, for `cordon rpc --server`; or one answer of it, for `cordon top`. The
 * key is in the environment, where other users
 * cannot see it. It is a program of its own because it loads OpenSSL. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/os.h"
#include "base/str.h"
#include "net/connect/link.h"

enum { PIPE_BYTES = 256 << 10, ANSWER_MAX = 16 << 20 };

/* Bytes on their way in one direction. */
struct flow {
	char bytes[PIPE_BYTES];
	size_t at, len; /* of what is not written yet */
	bool is_over;   /* nothing more comes */
};

static const char last_line[] = "\n{\"jsonrpc\":\"2.0\",\"method\":\"end\"}\n";

/* Tells the client in its own protocol, as the answer to its first line. */
static int report(const struct link *l, const struct cordon_error *e)
{
	static const char *const names[] = { "unreachable", "key_refused", "busy" };
	cleanup_free char *text = err_text(e);
	cleanup_json json_t *message = json_pack(
		"{s:s,s:n,s:{s:i,s:s,s:{s:s,s:i,s:i}}}", "jsonrpc", "2.0", "id", "error", "code",
		cordon_code_rpc(cordon_error_code(e)), "message", text ? text : "out of memory",
		"data", "code", names[l->refusal], "status", l->status, "line", 1);
	cleanup_free char *line = json_text(message, NULL);

	if (line)
		puts(line);
	(void)fflush(stdout);
	return cordon_code_exit_status(cordon_error_code(e));
}

static bool has_room(const struct flow *f)
{
	return f->len < sizeof(f->bytes) && !f->is_over;
}

static void compact(struct flow *f)
{
	if (f->at > 0 && f->len > 0)
		memmove(f->bytes, f->bytes + f->at, f->len);
	f->at = 0;
}

/* After reading and writing: whether something moved. */
static bool took(struct flow *f, ssize_t n, bool *ret_over)
{
	if (n > 0)
		f->len += (size_t)n;
	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		*ret_over = true;
	return n > 0;
}

static bool gave(struct flow *f, ssize_t n, bool *ret_broken)
{
	if (n > 0) {
		f->at += (size_t)n;
		f->len -= (size_t)n;
	}
	if (n < 0 && n != -EAGAIN && n != -EINTR)
		*ret_broken = true;
	return n > 0;
}

/* What the client has sent ends with a line that says so: the server answers what was asked. */
static void end_requests(struct flow *to_server)
{
	compact(to_server);
	if (sizeof(to_server->bytes) - to_server->len < sizeof(last_line))
		return; /* the next round has room */
	memcpy(to_server->bytes + to_server->len, last_line, sizeof(last_line) - 1);
	to_server->len += sizeof(last_line) - 1;
	to_server->is_over = true;
}

static ssize_t read_fd(int fd, char *to, size_t len)
{
	ssize_t n = read(fd, to, len);

	return n < 0 ? -errno : n;
}

static ssize_t write_fd(int fd, const char *from, size_t len)
{
	ssize_t n = write(fd, from, len);

	return n < 0 ? -errno : n;
}

/* False: nobody reads the answers any more. */
static bool wait_for_any(const struct link *l, const struct flow *to_server,
			 const struct flow *to_client)
{
	bool tls_writes = l->tls && tls_wants_write(l->tls);
	struct pollfd p[3] = {
		{ .fd = has_room(to_server) ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = STDOUT_FILENO, .events = to_client->len ? POLLOUT : 0 },
		{ .fd = l->fd },
	};

	if (has_room(to_client))
		p[2].events |= POLLIN;
	if (to_server->len || tls_writes)
		p[2].events |= POLLOUT;
	if (!p[2].events) /* what it reports unasked would come again at once */
		p[2].fd = -1;
	return poll(p, 3, -1) < 0 || !(p[1].revents & (POLLERR | POLLNVAL));
}

/* Until the server closes the connection, or nobody reads its answers. */
static void relay(struct link *l, struct flow *to_server, struct flow *to_client)
{
	bool is_broken = false, is_read = false;

	while (!is_broken) {
		bool moved = false;
		compact(to_server);
		compact(to_client);
		if (has_room(to_server) && !is_read)
			moved |= took(to_server,
				      read_fd(STDIN_FILENO, to_server->bytes + to_server->len,
					      sizeof(to_server->bytes) - to_server->len),
				      &is_read);
		if (is_read && !to_server->is_over)
			end_requests(to_server);
		if (to_server->len)
			moved |= gave(
				to_server,
				link_write(l, to_server->bytes + to_server->at, to_server->len),
				&is_broken);
		if (has_room(to_client))
			moved |= took(to_client,
				      link_read(l, to_client->bytes + to_client->len,
						sizeof(to_client->bytes) - to_client->len),
				      &to_client->is_over);
		if (to_client->len)
			moved |= gave(to_client,
				      write_fd(STDOUT_FILENO, to_client->bytes + to_client->at,
					       to_client->len),
				      &is_broken);
		if (to_client->is_over && to_client->len == 0)
			return;
		if (!moved && !is_broken)
			is_broken = !wait_for_any(l, to_server, to_client);
	}
}

/* Neither direction may wait for the other. The flags belong to the open file, so they are put
 * back. */
static void set_blocking(bool is, int saved[2])
{
	for (int fd = 0; fd < 2; fd++) {
		if (!is)
			saved[fd] = fcntl(fd, F_GETFL);
		if (saved[fd] >= 0)
			(void)fcntl(fd, F_SETFL, is ? saved[fd] : saved[fd] | O_NONBLOCK);
	}
}

static int print_answer(struct link *l)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_buf struct buf answer = { 0 };

	buf_init(&answer, ANSWER_MAX);
	if (link_fetch(l, &answer, &e) < 0)
		return report(l, e);
	int r = file_write_all(STDOUT_FILENO, buf_text(&answer), answer.len);
	return r < 0 ? cordon_code_exit_status(CORDON_OS) : 0;
}

int main(int argc, char **argv)
{
	static struct link l;
	static struct flow to_server, to_client;
	cleanup_error struct cordon_error *e = NULL;
	const char *key = getenv("CORDON_KEY"), *ca = getenv("CORDON_CA");
	const char *path = NULL;
	int flags[2];

	if (argc > 2 && str_eq(argv[1], "--get")) {
		path = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc < 2) {
		fputs("usage: cordon-connect [--get PATH] SERVER [CA_FILE]\n", stderr);
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)os_process_hide();
	const struct link_options o = { .server = argv[1],
					.path = path,
					.key = key && key[0] ? key : NULL,
					.ca_file = argc > 2      ? argv[2]
						   : ca && ca[0] ? ca
								 : NULL };
	int r = link_open(&l, &o, &e);
	(void)unsetenv("CORDON_KEY");
	if (r < 0) {
		int status = report(&l, e);
		link_done(&l);
		return status;
	}
	if (path) {
		int status = print_answer(&l);
		link_done(&l);
		return status;
	}
	memcpy(to_client.bytes, l.early, l.early_len);
	to_client.len = l.early_len;
	set_blocking(false, flags);
	relay(&l, &to_server, &to_client);
	set_blocking(true, flags);
	link_done(&l);
	return 0;
}

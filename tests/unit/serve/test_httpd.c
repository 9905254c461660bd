/* unit/serve/test_httpd.c - how an HTTP server ends. */
#include "serve/http/httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/test.h"

/* The ends of two pipes: the handler has begun; it may end. */
static int begun[2], may_end[2];

static void hold(struct httpd_exchange *x, void *arg)
{
	char byte = 0;

	(void)arg;
	(void)!write(begun[1], &byte, 1);
	(void)!read(may_end[0], &byte, 1);
	httpd_answer(x, 200, "text/plain", "held", 4);
}

static void answer(struct httpd_exchange *x, void *arg)
{
	(void)arg;
	httpd_answer(x, 200, "text/plain", "here", 4);
}

static const struct httpd_route routes[] = {
	{ .method = "GET", .path = "/hold", .right = HTTPD_OPEN, .fn = hold },
	{ .method = "GET", .path = "/new", .right = HTTPD_OPEN, .fn = answer },
	{ .method = "GET",
	  .path = "/help",
	  .right = HTTPD_OPEN,
	  .fn = answer,
	  .flags = HTTPD_AT_END },
	{ 0 },
};

/* A connection on which the request was sent; -1: it was refused. */
static int ask(unsigned port, const char *path)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[128];

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		close(fd);
		return -1;
	}
	int len = snprintf(text, sizeof(text),
			   "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	(void)send(fd, text, (size_t)len, MSG_NOSIGNAL); /* the server may close it at any time */
	return fd;
}

/* The status of the answer; 0: none came. */
static int status_of(int fd)
{
	char text[256] = "";
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(text) - 1 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

static void *stop(void *server)
{
	return httpd_stop(server);
}

/* The listening socket stays the library's until its thread has ended, and nobody waits in its
 * queue meanwhile. */
TEST(others_are_answered_while_a_server_stops)
{
	const struct httpd_table tables[] = { { routes, NULL }, { 0 } };
	const struct httpd_options o = { .address = "127.0.0.1:0", .tables = tables };
	struct httpd *server = NULL;
	pthread_t stopper;
	char byte = 0;

	ASSERT_EQ(pipe(begun) | pipe(may_end), 0);
	ASSERT_EQ(httpd_start(&o, &server, NULL), 0);
	unsigned port = (unsigned)atoi(strrchr(httpd_address(server), ':') + 1);
	int held = ask(port, "/hold");
	ASSERT(held >= 0);
	ASSERT_EQ(read(begun[0], &byte, 1), 1);
	ASSERT_EQ(status_of(ask(port, "/new")), 200);
	ASSERT_EQ(pthread_create(&stopper, NULL, stop, server), 0);
	while (!httpd_is_draining(server))
		;
	ASSERT_EQ(status_of(ask(port, "/new")), 503);
	/* What helps is served for a while, then all connections are closed, and then nothing is
	 * served: the end waits for no other handler. */
	ASSERT_EQ(status_of(ask(port, "/help")), 200);
	while (status_of(ask(port, "/help")) != 503)
		;
	ASSERT_EQ(status_of(ask(port, "/new")), 503);
	ASSERT_EQ(write(may_end[1], &byte, 1), 1);
	ASSERT_EQ(pthread_join(stopper, NULL), 0);
	close(held);
	ASSERT_EQ(ask(port, "/new"), -1);
	ASSERT_EQ(errno, ECONNREFUSED);
}

/* The thread of the connections is busy with as many as it can get when the server ends. */
static void *knock(void *arg)
{
	unsigned port = *(const unsigned *)arg;
	int fd;

	while ((fd = ask(port, "/help")) >= 0)
		(void)status_of(fd);
	return NULL;
}

TEST(a_server_ends_while_clients_come)
{
	enum { ROUNDS = 40, CLIENTS = 4 };
	const struct httpd_table tables[] = { { routes, NULL }, { 0 } };
	const struct httpd_options o = { .address = "127.0.0.1:0", .tables = tables };

	for (int i = 0; i < ROUNDS; i++) {
		pthread_t clients[CLIENTS];
		struct httpd *server = NULL;

		ASSERT_EQ(httpd_start(&o, &server, NULL), 0);
		unsigned port = (unsigned)atoi(strrchr(httpd_address(server), ':') + 1);
		for (int k = 0; k < CLIENTS; k++)
			ASSERT_EQ(pthread_create(&clients[k], NULL, knock, &port), 0);
		ASSERT_EQ(status_of(ask(port, "/new")), 200);
		ASSERT(httpd_stop(server) == NULL);
		for (int k = 0; k < CLIENTS; k++)
			ASSERT_EQ(pthread_join(clients[k], NULL), 0);
	}
}

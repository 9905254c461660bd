/* cli/port_option.c - see port_option.h. */
#include "cli/port_option.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

/* Reads a decimal number up to 65535 that ends at this character. -1: it is none. */
static int read_port(const char *text, char end)
{
	char *rest;
	long port = text[0] >= '0' && text[0] <= '9' ? strtol(text, &rest, 10) : -1;

	return port >= 0 && port <= UINT16_MAX && (*rest == end || *rest == '\0') ? (int)port : -1;
}

static int parse(const char *text, unsigned *ret_port, struct cordon_expose_options *ret,
		 struct cordon_error **reterr)
{
	const char *colon = strchr(text, ':');
	int port = read_port(text, ':'), host = colon ? read_port(colon + 1, '\0') : 0;

	if (port <= 0 || (colon && !colon[1]))
		return err_set(reterr, CORDON_INVALID,
			       "--expose takes PORT, PORT:HOSTPORT or PORT:PATH, not '%s'", text);
	*ret_port = (unsigned)port;
	*ret = (struct cordon_expose_options){ 0 };
	if (colon && host < 0)
		ret->path = colon + 1;
	else if (colon)
		ret->host_port = host ? host : -1;
	return 0;
}

int port_option_allow(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr)
{
	struct cordon_expose_options o;
	const char *text;
	unsigned port;
	int r = 0;

	for (size_t i = 0; r == 0 && (text = cli_value_at(c, "expose", i)); i++) {
		r = parse(text, &port, &o, reterr);
		cleanup_free char *set = r == 0 ? str_printf("expose+=%u", port) : NULL;
		if (r == 0)
			r = set ? cordon_policy_set(p, set, reterr)
				: err_errno(reterr, ENOMEM, "--expose");
	}
	return r;
}

/* Unix sockets of this process. A signal that ends it must not leave them behind. */
static char *sockets[64];
static volatile sig_atomic_t socket_count;

static void remove_sockets(int signo)
{
	for (int i = 0; i < socket_count; i++) {
		char *slash = strrchr(sockets[i], '/');
		bool is_own = strstr(sockets[i], "/cordon-ports-");

		(void)unlink(sockets[i]);
		*slash = '\0';
		if (is_own)
			(void)rmdir(sockets[i]);
	}
	(void)raise(signo); /* its default action follows */
}

static void keep_socket(const char *address)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction sa = { .sa_handler = remove_sockets, .sa_flags = (int)SA_RESETHAND }, old;
	char *copy = address[0] == '/' && socket_count < 64 ? str_dup(address) : NULL;

	if (!copy)
		return;
	sockets[socket_count] = copy;
	socket_count++;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &sa, NULL);
}

int port_option_open(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr)
{
	struct cordon_expose_options o;
	const char *text;
	unsigned port;
	int r = 0;

	for (size_t i = 0; r == 0 && (text = cli_value_at(c, "expose", i)); i++) {
		cleanup_free char *address = NULL;

		r = parse(text, &port, &o, reterr);
		if (r == 0)
			r = cordon_session_expose(s, port, &o, &address, reterr);
		if (r == 0) {
			keep_socket(address);
			cli_error(c, "port %u: %s", port, address);
		}
	}
	return r;
}

/* net/gateway/relay_main.c - cordon-relay FD [--only-proxy] [PORT…] -- PROGRAM [ARGUMENT…]: opens
 * the relay in this network namespace, sends it to the gateway at descriptor FD, and executes the
 * program. For sandboxes that start the guest's first program themselves (OCI), and for tests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wall/linux/relay.h"

/* -1: not a number from 0 to max. */
static long parse_number(const char *text, long max)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n >= 0 && n <= max ? n : -1;
}

int main(int argc, char **argv)
{
	uint16_t ports[RELAY_PORTS_MAX];
	struct relay_options o = { .gateway_fd = argc > 1 ? (int)parse_number(argv[1], 65535) : -1,
				   .ports = ports };
	const char *stage = "";
	int i = 2;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		long port = parse_number(argv[i], 65535);
		if (strcmp(argv[i], "--only-proxy") == 0)
			o.only_proxy = true;
		else if (port > 0 && o.port_count < RELAY_PORTS_MAX)
			ports[o.port_count++] = (uint16_t)port;
		else
			i = argc;
	}
	if (o.gateway_fd < 0 || i + 1 >= argc) {
		fprintf(stderr, "usage: cordon-relay FD [--only-proxy] [PORT...] -- PROGRAM "
				"[ARGUMENT...]\n");
		return 2;
	}
	int r = relay_open(&o, &stage);
	if (r < 0) {
		fprintf(stderr, "cordon-relay: %s: %s\n", stage, strerror(-r));
		return 125;
	}
	(void)close(o.gateway_fd);
	execvp(argv[i + 1], argv + i + 1);
	fprintf(stderr, "cordon-relay: %s: %s\n", argv[i + 1], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

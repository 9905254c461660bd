/* cli/port_option.h - the option --expose PORT[:WHERE]. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

#define PORT_OPTION                                                                                \
	{                                                                                          \
		"expose", 0, "PORT[:WHERE]",                                                       \
			"let the host connect to a port that the code listens on: by a Unix "      \
			"socket, or WHERE, a "                                                     \
			"port of 127.0.0.1 or the socket's path",                                  \
			true                                                                       \
	}

/* Adds the ports to the policy. */
int port_option_allow(const struct cli *c, struct cordon_policy *p, struct cordon_error **reterr);
/* Exposes them, and prints the addresses on standard error. */
int port_option_open(const struct cli *c, struct cordon_session *s, struct cordon_error **reterr);

/* net/host/gateway_process.h - the gateway's process and what it is told at its start; see
 * gateway.h. */
#pragma once

#include "net/host/gateway.h"

struct gateway_process {
	pid_t pid;
	int control_fd; /* stream: JSON lines */
	int relay_fd;   /* seqpacket: sockets of the guest's namespace; stream: a fetched body */
};

int gateway_process_start(const struct gateway_options *options, struct gateway_process *ret,
			  struct cordon_error **reterr);

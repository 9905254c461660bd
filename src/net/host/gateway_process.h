/* net/host/gateway_process.h - starts the gateway's process and writes its configuration; see
 * gateway.h. */
#pragma once

#include "net/host/gateway.h"

struct gateway_process {
	pid_t pid;
	int control_fd; /* JSON lines, on a stream socket */
	int relay_fd;   /* SOCK_SEQPACKET: sockets of the guest's namespace; SOCK_STREAM: a fetched
			   body */
	uint8_t config[32]; /* gateway_process_hash */
};

/* Of everything that a gateway is started with: program, configuration and environment. Two with
 * the same behave alike. */
int gateway_process_hash(const struct gateway_options *options, uint8_t ret[static 32],
			 struct cordon_error **reterr);

int gateway_process_start(const struct gateway_options *options, struct gateway_process *ret,
			  struct cordon_error **reterr);

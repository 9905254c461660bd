/* net/hello.h - the server name in a TLS ClientHello, read without trusting any length in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/host.h"

enum hello_result {
	HELLO_MORE,     /* not all there yet */
	HELLO_NOT_TLS,  /* something else, or broken */
	HELLO_NO_NAME,  /* a ClientHello that names no server */
	HELLO_NAME,     /* ret_name was filled */
	HELLO_BAD_NAME, /* it names something that is no host name, or two of them */
};

/* At most HELLO_MAX bytes are ever asked for. */
enum { HELLO_MAX = 16384 + 5 };

enum hello_result hello_read(const uint8_t *bytes, size_t len, struct host *ret_name);

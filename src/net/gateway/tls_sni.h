/* net/gateway/tls_sni.h - reads the server name of a TLS ClientHello, without trusting any length
 * in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/gateway/host.h"

enum tls_sni_result {
	TLS_SNI_MORE,     /* incomplete */
	TLS_SNI_NOT_TLS,  /* something else, or invalid */
	TLS_SNI_NO_NAME,  /* a ClientHello without a server name */
	TLS_SNI_NAME,     /* ret_name was filled */
	TLS_SNI_BAD_NAME, /* not a valid host name, or more than one */
};

/* No more than TLS_SNI_MAX bytes are ever needed. */
enum { TLS_SNI_MAX = 16384 + 5 };

enum tls_sni_result tls_sni_read(const uint8_t *bytes, size_t len, struct host *ret_name);

/* net/gateway/tls_sni.h - the server name in a TLS ClientHello, read without trusting any length in
 * it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/gateway/host.h"

enum tls_sni_result {
	TLS_SNI_MORE,     /* not all there yet */
	TLS_SNI_NOT_TLS,  /* something else, or broken */
	TLS_SNI_NO_NAME,  /* a ClientHello that names no server */
	TLS_SNI_NAME,     /* ret_name was filled */
	TLS_SNI_BAD_NAME, /* it names something that is no host name, or two of them */
};

/* At most TLS_SNI_MAX bytes are ever asked for. */
enum { TLS_SNI_MAX = 16384 + 5 };

enum tls_sni_result tls_sni_read(const uint8_t *bytes, size_t len, struct host *ret_name);

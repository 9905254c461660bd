/* net/gateway/certificate.h - the session's own certificate authority and its certificates. Needs
 * OpenSSL. */
#pragma once

#include <openssl/ssl.h>

#include "net/gateway/tls.h"

enum { CERTIFICATE_CACHE = 64 };

struct tls_store {
	SSL_CTX *server, *client;
	BIO_METHOD *bio;
	X509 *authority;
	EVP_PKEY *authority_key, *leaf_key;
	char *authority_pem;
	struct {
		char name[HOST_TEXT_SIZE];
		X509 *leaf;
	} cache[CERTIFICATE_CACHE];
	unsigned next; /* cache slot to be used next */
};

BIO_METHOD *tls_make_bio_method(void);
/* Gives the TLS session a certificate for that host, new or from the cache. */
int certificate_use(struct tls_store *store, const struct host *as, SSL *ssl,
		    struct cordon_error **reterr);

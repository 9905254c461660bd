/* net/gateway/certificate.c - see certificate.h. */
#ifdef HAVE_OPENSSL

#include "net/gateway/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"

enum { HOUR_SECONDS = 3600, LIFE_SECONDS = 7 * 24 * HOUR_SECONDS };

static int failed(struct cordon_error **reterr, const char *what)
{
	unsigned long code = ERR_peek_error();
	const char *why = code ? ERR_reason_error_string(code) : NULL;
	int r = err_set(reterr, CORDON_OS, "TLS: %s: %s", what, why ? why : "failed");

	ERR_clear_error();
	return r;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool ok = ext && X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	return ok;
}

/* Dates, serial number, names and key: what authority and host certificates share. */
static X509 *make_base(const char *name, EVP_PKEY *key, const X509_NAME *issuer)
{
	X509 *cert = X509_new();
	unsigned char serial[16];

	if (!cert)
		return NULL;
	random_bytes(serial, sizeof(serial));
	serial[0] &= 0x7f;
	BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
	bool ok = X509_set_version(cert, 2) && number &&
		  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) &&
		  X509_gmtime_adj(X509_getm_notBefore(cert), -HOUR_SECONDS) &&
		  X509_gmtime_adj(X509_getm_notAfter(cert), LIFE_SECONDS) &&
		  X509_set_pubkey(cert, key) &&
		  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
					     (const unsigned char *)name, -1, -1, 0) &&
		  X509_set_issuer_name(cert, issuer ? issuer : X509_get_subject_name(cert));
	BN_free(number);
	if (!ok) {
		X509_free(cert);
		return NULL;
	}
	return cert;
}

static X509 *make_authority(EVP_PKEY *key)
{
	char name[48], id[17];

	random_hex(id, 16);
	(void)snprintf(name, sizeof(name), "Cordon session %s", id);
	X509 *cert = make_base(name, key, NULL);
	if (cert &&
	    add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_extension(cert, cert, NID_subject_key_identifier, "hash") &&
	    X509_sign(cert, key, EVP_sha256()))
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *make_leaf(struct tls_store *s, const struct host *as)
{
	char name[65], text[ADDRESS_TEXT_SIZE], alt[HOST_TEXT_SIZE + 8];

	(void)snprintf(name, sizeof(name), "%.64s", as->name);
	address_text(&as->addr, text);
	(void)snprintf(alt, sizeof(alt), "%s:%s", host_is_literal(as) ? "IP" : "DNS",
		       host_is_literal(as) ? text : as->name);
	X509 *cert = make_base(name, s->leaf_key, X509_get_subject_name(s->authority));
	if (cert && add_extension(cert, s->authority, NID_subject_alt_name, alt) &&
	    add_extension(cert, s->authority, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_extension(cert, s->authority, NID_key_usage, "critical,digitalSignature") &&
	    add_extension(cert, s->authority, NID_ext_key_usage, "serverAuth") &&
	    add_extension(cert, s->authority, NID_authority_key_identifier, "keyid") &&
	    X509_sign(cert, s->authority_key, EVP_sha256()))
		return cert;
	X509_free(cert);
	return NULL;
}

int certificate_use(struct tls_store *store, const struct host *as, SSL *ssl,
		    struct cordon_error **reterr)
{
	X509 *leaf = NULL;

	for (unsigned i = 0; i < CERTIFICATE_CACHE && !leaf; i++)
		if (store->cache[i].leaf && strcmp(store->cache[i].name, as->name) == 0)
			leaf = store->cache[i].leaf;
	if (!leaf) {
		leaf = make_leaf(store, as);
		if (!leaf)
			return failed(reterr, "make a certificate");
		unsigned slot = store->next++ % CERTIFICATE_CACHE;
		X509_free(store->cache[slot].leaf);
		store->cache[slot].leaf = leaf;
		(void)str_copy(store->cache[slot].name, HOST_TEXT_SIZE, as->name);
	}
	if (SSL_use_certificate(ssl, leaf) != 1 || SSL_use_PrivateKey(ssl, store->leaf_key) != 1)
		return failed(reterr, "use a certificate");
	return 0;
}

/* Agrees on HTTP/1.1 or on nothing. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			   const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";

	(void)ssl, (void)arg;
	if (SSL_select_next_proto((unsigned char **)out, out_len, ours, sizeof(ours) - 1, in,
				  in_len) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_NOACK;
}

static int make_contexts(struct tls_store *s, const char *ca_file, struct cordon_error **reterr)
{
	s->bio = tls_make_bio_method();
	s->server = SSL_CTX_new(TLS_server_method());
	s->client = SSL_CTX_new(TLS_client_method());
	if (!s->bio || !s->server || !s->client)
		return failed(reterr, "set up");
	SSL_CTX_set_min_proto_version(s->server, TLS1_2_VERSION);
	SSL_CTX_set_min_proto_version(s->client, TLS1_2_VERSION);
	long mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		    SSL_MODE_RELEASE_BUFFERS;
	SSL_CTX_set_mode(s->server, mode);
	SSL_CTX_set_mode(s->client, mode);
	SSL_CTX_set_alpn_select_cb(s->server, choose_protocol, NULL);
	SSL_CTX_set_verify(s->client, SSL_VERIFY_PEER, NULL);
	int ok = ca_file ? SSL_CTX_load_verify_locations(s->client, ca_file, NULL)
			 : SSL_CTX_set_default_verify_paths(s->client);
	return ok == 1 ? 0 : failed(reterr, ca_file ? ca_file : "the system's authorities");
}

static int make_pem(struct tls_store *s, struct cordon_error **reterr)
{
	BIO *mem = BIO_new(BIO_s_mem());
	char *data = NULL;
	long len = 0;

	if (mem && PEM_write_bio_X509(mem, s->authority) == 1)
		len = BIO_get_mem_data(mem, &data);
	if (len > 0)
		s->authority_pem = str_ndup(data, (size_t)len);
	BIO_free(mem);
	return s->authority_pem ? 0 : failed(reterr, "write the authority");
}

int tls_store_new(const char *ca_file, struct tls_store **ret, struct cordon_error **reterr)
{
	struct tls_store *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = make_contexts(s, ca_file, reterr);
	if (r == 0) {
		s->authority_key = EVP_EC_gen("P-256");
		s->leaf_key = EVP_EC_gen("P-256");
		if (s->authority_key && s->leaf_key)
			s->authority = make_authority(s->authority_key);
		r = s->authority ? make_pem(s, reterr) : failed(reterr, "make the authority");
	}
	if (r < 0) {
		tls_store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct tls_store *tls_store_free(struct tls_store *s)
{
	if (!s)
		return NULL;
	for (unsigned i = 0; i < CERTIFICATE_CACHE; i++)
		X509_free(s->cache[i].leaf);
	X509_free(s->authority);
	EVP_PKEY_free(s->authority_key);
	EVP_PKEY_free(s->leaf_key);
	SSL_CTX_free(s->server);
	SSL_CTX_free(s->client);
	BIO_meth_free(s->bio);
	free(s->authority_pem);
	free(s);
	return NULL;
}

const char *tls_store_authority(const struct tls_store *s)
{
	return s->authority_pem;
}

#else
typedef int certificate_needs_openssl; /* ISO C forbids an empty file */
#endif

/* net/gateway/tls.c - see tls.h. */
#include "net/gateway/tls.h"

#include "base/mem.h"

#ifndef HAVE_OPENSSL

#include <errno.h>

int tls_store_new(const char *ca_file, struct tls_store **ret, struct cordon_error **reterr)
{
	(void)ca_file, (void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "secrets, rules on methods or paths and whole https:// URLs need TLS, and "
		       "this build has none: "
		       "install libssl-dev and build again");
}

struct tls_store *tls_store_free(struct tls_store *t)
{
	(void)t;
	return NULL;
}

const char *tls_store_authority(const struct tls_store *t)
{
	(void)t;
	return NULL;
}

int tls_accept(struct tls_store *store, const struct host *as, int fd, struct tls **ret,
	       struct cordon_error **reterr)
{
	(void)store, (void)as, (void)fd, (void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED, "this build has no TLS");
}

int tls_connect(struct tls_store *store, const struct host *to, int fd, struct tls **ret,
		struct cordon_error **reterr)
{
	(void)store, (void)to, (void)fd, (void)ret;
	return err_set(reterr, CORDON_UNSUPPORTED, "this build has no TLS");
}

struct tls *tls_free(struct tls *t)
{
	(void)t;
	return NULL;
}

void tls_give(struct tls *t, struct fifo *early)
{
	(void)t, (void)early;
}

ssize_t tls_read(struct tls *t, void *to, size_t len)
{
	(void)t, (void)to, (void)len;
	return -EPROTO;
}

ssize_t tls_write(struct tls *t, const void *from, size_t len)
{
	(void)t, (void)from, (void)len;
	return -EPROTO;
}

void tls_end(struct tls *t)
{
	(void)t;
}

bool tls_wants_write(const struct tls *t)
{
	(void)t;
	return false;
}

const char *tls_problem(const struct tls *t)
{
	(void)t;
	return "";
}

#else

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/gateway/certificate.h"

struct tls {
	SSL *ssl;
	int fd;
	bool is_server, wants_write, is_over;
	struct fifo early;
	char problem[256];
};

static int sock_read(BIO *bio, char *to, int len)
{
	struct tls *t = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (len <= 0)
		return 0;
	if (t->early.len > 0) {
		size_t n = t->early.len < (size_t)len ? t->early.len : (size_t)len;
		memcpy(to, fifo_bytes(&t->early), n);
		fifo_drop(&t->early, n);
		return (int)n;
	}
	ssize_t n = recv(t->fd, to, (size_t)len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	return (int)n;
}

static int sock_write(BIO *bio, const char *from, int len)
{
	struct tls *t = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	ssize_t n = send(t->fd, from, (size_t)len, MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return (int)n;
}

static long sock_ctrl(BIO *bio, int command, long num, void *ptr)
{
	(void)bio, (void)num, (void)ptr;
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_make_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");

	if (m) {
		BIO_meth_set_read(m, sock_read);
		BIO_meth_set_write(m, sock_write);
		BIO_meth_set_ctrl(m, sock_ctrl);
	}
	return m;
}

static struct tls *make(SSL_CTX *ctx, BIO_METHOD *method, int fd)
{
	struct tls *t = mem_alloc(sizeof(*t));
	BIO *bio = t ? BIO_new(method) : NULL;

	if (bio)
		t->ssl = SSL_new(ctx);
	if (!bio || !t->ssl) {
		BIO_free(bio);
		free(t);
		return NULL;
	}
	t->fd = fd;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	return t;
}

int tls_accept(struct tls_store *store, const struct host *as, int fd, struct tls **ret,
	       struct cordon_error **reterr)
{
	struct tls *t = make(store->server, store->bio, fd);
	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	t->is_server = true;
	int r = certificate_use(store, as, t->ssl, reterr);
	if (r < 0) {
		tls_free(t);
		return r;
	}
	SSL_set_accept_state(t->ssl);
	*ret = t;
	return 0;
}

int tls_connect(struct tls_store *store, const struct host *to, int fd, struct tls **ret,
		struct cordon_error **reterr)
{
	static const unsigned char alpn[] = "\x08http/1.1";
	struct tls *t = make(store->client, store->bio, fd);
	if (!t)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int ok;
	if (host_is_literal(to)) {
		ok = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(t->ssl), to->addr.bytes,
					       to->addr.family == 4 ? 4 : 16);
	} else {
		SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		ok = SSL_set1_host(t->ssl, to->name) && SSL_set_tlsext_host_name(t->ssl, to->name);
	}
	if (!ok || SSL_set_alpn_protos(t->ssl, alpn, sizeof(alpn) - 1) != 0) {
		tls_free(t);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	SSL_set_connect_state(t->ssl);
	*ret = t;
	return 0;
}

struct tls *tls_free(struct tls *t)
{
	if (!t)
		return NULL;
	SSL_free(t->ssl);
	fifo_done(&t->early);
	free(t);
	return NULL;
}

void tls_give(struct tls *t, struct fifo *early)
{
	t->early = *early;
	*early = (struct fifo){ 0 };
}

static void explain(struct tls *t, int error)
{
	long verify = SSL_get_verify_result(t->ssl);
	unsigned long code = ERR_peek_error();

	if (!t->is_server && verify != X509_V_OK)
		(void)snprintf(t->problem, sizeof(t->problem), "its certificate is not good: %s",
			       X509_verify_cert_error_string(verify));
	else if (code)
		(void)snprintf(t->problem, sizeof(t->problem), "TLS: %s",
			       ERR_reason_error_string(code) ? ERR_reason_error_string(code)
							     : "unknown error");
	else
		(void)snprintf(t->problem, sizeof(t->problem), "TLS: connection lost (%d)", error);
	ERR_clear_error();
}

/* Why a call moved no bytes. */
static ssize_t result_of(struct tls *t, int n)
{
	int error = SSL_get_error(t->ssl, n);

	switch (error) {
	case SSL_ERROR_WANT_WRITE:
		t->wants_write = true;
		return -EAGAIN;
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		t->is_over = true;
		explain(t, error);
		return -EPROTO;
	}
}

ssize_t tls_read(struct tls *t, void *to, size_t len)
{
	if (t->is_over)
		return -EPROTO;
	ERR_clear_error();
	t->wants_write = false;
	int n = SSL_read(t->ssl, to, (int)len);
	return n > 0 ? n : result_of(t, n);
}

ssize_t tls_write(struct tls *t, const void *from, size_t len)
{
	if (t->is_over)
		return -EPROTO;
	ERR_clear_error();
	t->wants_write = false;
	int n = SSL_write(t->ssl, from, (int)len);
	if (n > 0)
		return n;
	ssize_t r = result_of(t, n);
	return r == 0 ? -EPIPE : r;
}

void tls_end(struct tls *t)
{
	if (!t->is_over && SSL_is_init_finished(t->ssl))
		(void)SSL_shutdown(t->ssl);
	ERR_clear_error();
}

bool tls_wants_write(const struct tls *t)
{
	return t->wants_write;
}

const char *tls_problem(const struct tls *t)
{
	return t->problem;
}

#endif

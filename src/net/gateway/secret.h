/* net/gateway/secret.h - secrets that the guest never sees: put into one header of requests to one
 * host, and removed from its answers. */
#pragma once

#include "base/buf.h"
#include "net/gateway/host.h"
#include "net/gateway/http.h"

#define SECRET_PLACEHOLDER "cordon-secret-"
enum { SECRET_VALUE_MIN = 4, SECRET_VALUE_MAX = 4096, SECRET_MAX = 64 };

struct secret {
	char *name, *value, *header;
	struct host host;
};

struct secret_list {
	struct secret *items;
	size_t count;
};

/* Checks and copies; the error never shows the value. */
int secret_list_add(struct secret_list *l, const char *name, const char *value, const char *host,
		    const char *header, struct cordon_error **reterr);
void secret_list_done(struct secret_list *l);
bool secret_list_has_host(const struct secret_list *l, const struct host *h);

/* Appends the field's value to out, with placeholders of this host's secrets replaced when the
 * field is theirs. *ret_used is set when any was. 0, -CORDON_LIMIT or -CORDON_NOMEM. */
int secret_fill(const struct secret_list *l, const struct host *h, const struct http_field *f,
		struct buf *out, bool *ret_used);

/* Finds the secrets of one host in a stream of bytes, also as base64, percent escapes or JSON
 * escapes, and replaces them with stars. Lengths stay the same. */
struct secret_filter;
int secret_filter_new(const struct secret_list *l, const struct host *h, struct secret_filter **ret,
		      struct cordon_error **reterr);
struct secret_filter *secret_filter_free(struct secret_filter *f);
/* In place, one whole text. */
void secret_filter_text(const struct secret_filter *f, char *bytes, size_t len);
/* A stream: as many bytes come out as went in, some of them later; is_last: all of them. Returns
 * the bytes that are ready, valid until the next call, or NULL when out of memory. */
const char *secret_filter_feed(struct secret_filter *f, const char *bytes, size_t len, bool is_last,
			       size_t *ret_len);

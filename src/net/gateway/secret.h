/* net/gateway/secret.h - secrets that the guest never sees. The gateway puts them into a header of
 * requests to one host, and removes them from its answers. */
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

/* Checks and copies. An error never contains the value. */
int secret_list_add(struct secret_list *l, const char *name, const char *value, const char *host,
		    const char *header, struct cordon_error **reterr);
void secret_list_done(struct secret_list *l);
bool secret_list_has_host(const struct secret_list *l, const struct host *h);

/* Appends the field's value to out. Replaces placeholders of this host's secrets if the field may
 * have them; then sets *ret_used. 0, -CORDON_LIMIT or -CORDON_NOMEM. */
int secret_fill(const struct secret_list *l, const struct host *h, const struct http_field *f,
		struct buf *out, bool *ret_used);

/* Finds the secrets of one host in a byte stream, also in base64, percent or JSON escapes, and
 * replaces them by stars. Lengths do not change. */
struct secret_filter;
int secret_filter_new(const struct secret_list *l, const struct host *h, struct secret_filter **ret,
		      struct cordon_error **reterr);
struct secret_filter *secret_filter_free(struct secret_filter *f);
/* Filters one complete text in place. */
void secret_filter_text(const struct secret_filter *f, char *bytes, size_t len);
/* Filters a stream. Some bytes come out in a later call; is_last: returns all that remain. The
 * bytes are valid until the next call. NULL: out of memory. */
const char *secret_filter_feed(struct secret_filter *f, const char *bytes, size_t len, bool is_last,
			       size_t *ret_len);

/* net/gateway/url.h - parses http and https URLs as the URL standard does. */
#pragma once

#include "base/error.h"
#include "net/gateway/host.h"

enum { URL_MAX_LEN = 8192 };

struct url {
	bool is_tls; /* https */
	bool has_userinfo;
	struct host host;
	uint16_t port; /* never 0: 80 or 443 if the URL has none */
	char *path;    /* "/…" with dot segments resolved, and the query; no fragment */
};

/* As a browser does: drops tabs and newlines, reads '\' as '/', and so on. */
int url_parse(const char *text, size_t len, struct url *ret, struct cordon_error **reterr);
/* Resolves a Location header against the URL that it came from. */
int url_resolve(const struct url *base, const char *text, size_t len, struct url *ret,
		struct cordon_error **reterr);
void url_done(struct url *u);
#define cleanup_url CLEANUP(url_done)

/* A path with query as sent to a server: "." and ".." (also %2e) resolved, '\' replaced by '/', no
 * fragment, control characters and non-ASCII bytes escaped. The caller frees it. */
int url_normalise_path(const char *text, size_t len, char **ret, struct cordon_error **reterr);
/* True if the path has escapes that servers interpret differently (%2f, %5c, %00, %25 before
 * digits): no path rule can decide about it. */
bool url_path_is_ambiguous(const char *path);
/* "scheme://host[:port]path", without the scheme's default port. NULL: out of memory. */
char *url_text(const struct url *u);

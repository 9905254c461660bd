/* serve/http/route.h - finds the route of a request by method and path. */
#pragma once

#include "serve/http/httpd.h"

enum { ROUTE_PARAMS_MAX = 4 };

struct route_match {
	const struct httpd_route *route; /* NULL: none */
	void *arg;
	struct {
		const char *name; /* in the route's path */
		size_t name_len;
		char *value; /* decoded */
	} params[ROUTE_PARAMS_MAX];
	char allow[64]; /* the methods of a path that was found, if the method was not */
};

/* path: as in the request, not decoded. 0 or the status of the refusal: 400, 404, 405, 500. */
unsigned route_find(const struct httpd_table *tables, const char *method, const char *path,
		    struct route_match *ret);
void route_match_done(struct route_match *m);
const char *route_param(const struct route_match *m, const char *name);

/* Decodes %XX; NULL: invalid, a NUL, invalid UTF-8, or out of memory. The caller frees it. */
char *route_decode(const char *text, size_t len);

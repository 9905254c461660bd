/* serve/e2b/multipart.h - the parts of a multipart/form-data body (RFC 7578) that is in memory. */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { MULTIPART_BOUNDARY_MAX = 70 };

struct multipart {
	char boundary[MULTIPART_BOUNDARY_MAX + 5]; /* with CRLF and dashes */
	size_t boundary_len;
	const char *at, *end;
};

struct multipart_part {
	char *name, *filename; /* NULL: none; the caller frees them */
	const char *bytes;     /* in the body */
	size_t len;
};

/* type: the Content-Type header. */
int multipart_init(struct multipart *m, const char *type, const char *body, size_t len,
		   struct cordon_error **reterr);
/* 1: *ret is the next part; 0: there are no more. */
int multipart_next(struct multipart *m, struct multipart_part *ret, struct cordon_error **reterr);
void multipart_part_done(struct multipart_part *p);
#define cleanup_multipart_part CLEANUP(multipart_part_done)

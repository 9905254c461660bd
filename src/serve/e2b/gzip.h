/* serve/e2b/gzip.h - bodies in gzip. */
#pragma once

#include "base/buf.h"

/* Writes the content to a file, and its length to ret; more than max is a bomb: CORDON_LIMIT. */
int gzip_unpack(const void *bytes, size_t len, uint64_t max, int fd, uint64_t *ret,
		struct cordon_error **reterr);
/* Appends to ret. */
int gzip_pack(const void *bytes, size_t len, struct buf *ret, struct cordon_error **reterr);

/* files/blob.h - the file format of an exported workspace: a header with a checksum, and one zstd
 * stream. The whole file is checked before anything in it is used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* All numbers little endian. The checksum is SHA-256 of the fields before it and of the
 * payload's SHA-256. */
enum { BLOB_VERSION = 1, BLOB_HEADER_SIZE = 64, BLOB_MAX_RATIO = 2000 };
#define BLOB_MAGIC "CORDONWS"

struct blob_writer;
/* fd: a regular file at its end, or anything that can be written to. The caller keeps ownership. */
int blob_writer_open(int fd, struct blob_writer **ret, struct cordon_error **reterr);
int blob_writer_put(struct blob_writer *w, const void *bytes, size_t len); /* 0 or -errno */
int blob_writer_finish(struct blob_writer *w, struct cordon_error **reterr);
struct blob_writer *blob_writer_free(struct blob_writer *w);

struct blob_reader;
/* Reads the whole file and checks header, length, limits and checksum. max_bytes: of the
 * content. */
int blob_reader_open(int fd, uint64_t max_bytes, struct blob_reader **ret,
		     struct cordon_error **reterr);
struct blob_reader *blob_reader_free(struct blob_reader *r);
/* Back to the start of the content. */
int blob_reader_rewind(struct blob_reader *r, struct cordon_error **reterr);
/* The next bytes: their number, 0 at the end, or -1. An unpack_read_fn. */
ssize_t blob_reader_next(void *r, const void **ret, struct cordon_error **reterr);

DEFINE_FREEP(struct blob_writer *, blob_writer_free)
#define cleanup_blob_writer CLEANUP(blob_writer_freep)
DEFINE_FREEP(struct blob_reader *, blob_reader_free)
#define cleanup_blob_reader CLEANUP(blob_reader_freep)

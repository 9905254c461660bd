/* serve/e2b/gzip.c - see gzip.h. */
#include "serve/e2b/gzip.h"

#include <stdbool.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"

enum { PIECE = 256 << 10, WINDOW_GZIP = 15 + 16 };

static bool goes_on(int code, const z_stream *z)
{
	return code == Z_OK || (code == Z_BUF_ERROR && z->avail_out == 0);
}

static int unpack(z_stream *z, char *piece, uint64_t max, int fd, uint64_t *ret,
		  struct cordon_error **reterr)
{
	int code = Z_OK;

	for (*ret = 0; code != Z_STREAM_END;) {
		z->next_out = (Bytef *)piece;
		z->avail_out = PIECE;
		code = inflate(z, Z_NO_FLUSH);
		size_t n = PIECE - z->avail_out;
		if (code != Z_STREAM_END && (!goes_on(code, z) || n == 0))
			return err_set(reterr, CORDON_INVALID, "the content is no valid gzip");
		if (n > max - *ret)
			return err_set(reterr, CORDON_LIMIT, "the content is too large");
		int r = file_write_all(fd, piece, n);
		if (r < 0)
			return err_errno(reterr, -r, "unpack the content");
		*ret += n;
	}
	return z->avail_in == 0 ? 0
				: err_set(reterr, CORDON_INVALID,
					  "there is something after the gzip content");
}

int gzip_unpack(const void *bytes, size_t len, uint64_t max, int fd, uint64_t *ret,
		struct cordon_error **reterr)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len };
	cleanup_free char *piece = mem_alloc(PIECE);
	uint64_t n = 0;

	if (!piece || len > UINT32_MAX || inflateInit2(&z, WINDOW_GZIP) != Z_OK)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = unpack(&z, piece, max, fd, &n, reterr);
	(void)inflateEnd(&z);
	if (r == 0)
		*ret = n;
	return r;
}

static int pack(z_stream *z, struct buf *ret, struct cordon_error **reterr)
{
	int code = Z_OK;

	while (code != Z_STREAM_END) {
		char *room = buf_reserve(ret, PIECE);

		if (!room)
			return err_set(reterr, CORDON_LIMIT, "the content is too large");
		z->next_out = (Bytef *)room;
		z->avail_out = PIECE;
		code = deflate(z, Z_FINISH);
		buf_commit(ret, PIECE - z->avail_out);
		if (code != Z_STREAM_END && !goes_on(code, z))
			return err_set(reterr, CORDON_OS, "the content could not be packed");
	}
	return 0;
}

int gzip_pack(const void *bytes, size_t len, struct buf *ret, struct cordon_error **reterr)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)len };

	if (len > UINT32_MAX ||
	    deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = pack(&z, ret, reterr);
	(void)deflateEnd(&z);
	return r;
}

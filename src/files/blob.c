/* files/blob.c - see blob.h. */
#include "files/blob.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"

enum { LEVEL = 1, MAX_WINDOW_LOG = 27, CHUNK = 256 * 1024, SUM_SIZE = 32, SUM_AT = 32 };
#define MAX_SKIPPABLE (UINT64_C(1) << 30)

struct header {
	char magic[8];
	uint32_t version, size;
	uint64_t payload, content;
	unsigned char sum[SUM_SIZE];
};
_Static_assert(sizeof(struct header) == BLOB_HEADER_SIZE, "no padding");

struct blob_writer {
	int fd, spool; /* spool: written first if fd cannot seek; -1: not needed */
	off_t start;
	ZSTD_CCtx *z;
	crypto_hash_sha256_state sum;
	uint64_t payload, content;
	char *out;
};

struct blob_writer *blob_writer_free(struct blob_writer *w)
{
	if (!w)
		return NULL;
	(void)ZSTD_freeCCtx(w->z);
	close_fdp(&w->spool);
	free(w->out);
	free(w);
	return NULL;
}

static int sink(const struct blob_writer *w)
{
	return w->spool >= 0 ? w->spool : w->fd;
}

int blob_writer_open(int fd, struct blob_writer **ret, struct cordon_error **reterr)
{
	cleanup_blob_writer struct blob_writer *w = mem_alloc(sizeof(*w));
	if (!w)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	w->fd = fd;
	w->spool = -1;
	w->z = ZSTD_createCCtx();
	w->out = malloc(CHUNK);
	if (!w->z || !w->out)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	(void)ZSTD_CCtx_setParameter(w->z, ZSTD_c_compressionLevel, LEVEL);
	(void)crypto_hash_sha256_init(&w->sum);

	struct stat st;
	int flags = fcntl(fd, F_GETFL);
	w->start = lseek(fd, 0, SEEK_CUR);
	bool can_seek = w->start >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && flags >= 0 &&
			!(flags & O_APPEND);
	if (!can_seek) {
		w->start = 0;
		w->spool = os_memory_file("cordon-export", false);
		if (w->spool < 0)
			return err_errno(reterr, -w->spool, "make room for the export");
	}
	/* The header is written last, over these zeros. */
	static const char zeros[BLOB_HEADER_SIZE];
	int r = file_write_all(sink(w), zeros, sizeof(zeros));
	if (r < 0)
		return err_errno(reterr, -r, "write the export");
	*ret = TAKE_PTR(w);
	return 0;
}

static int emit(struct blob_writer *w, const void *bytes, size_t len)
{
	(void)crypto_hash_sha256_update(&w->sum, bytes, len);
	w->payload += len;
	return file_write_all(sink(w), bytes, len);
}

static int compress(struct blob_writer *w, const void *bytes, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t left;
	do {
		ZSTD_outBuffer out = { w->out, CHUNK, 0 };
		left = ZSTD_compressStream2(w->z, &out, &in, end);
		if (ZSTD_isError(left))
			return -EIO;
		int r = out.pos ? emit(w, w->out, out.pos) : 0;
		if (r < 0)
			return r;
	} while (in.pos < in.size || (end == ZSTD_e_end && left));
	return 0;
}

int blob_writer_put(struct blob_writer *w, const void *bytes, size_t len)
{
	w->content += len;
	return compress(w, bytes, len, ZSTD_e_continue);
}

/* A reader refuses a file that expands too much (a decompression bomb). So that our own files never
 * do, a skippable frame makes a very compressible one longer. */
static int pad(struct blob_writer *w)
{
	uint64_t least = w->content / BLOB_MAX_RATIO + 1;
	if (w->payload >= least)
		return 0;
	uint64_t want = least - w->payload;
	if (want > MAX_SKIPPABLE)
		return -EFBIG;
	uint32_t head[2] = { htole32(ZSTD_MAGIC_SKIPPABLE_START), htole32((uint32_t)want) };
	int r = emit(w, head, sizeof(head));
	memset(w->out, 0, CHUNK);
	for (uint64_t done = 0; r == 0 && done < want;) {
		size_t n = want - done < CHUNK ? (size_t)(want - done) : CHUNK;
		r = emit(w, w->out, n);
		done += n;
	}
	return r;
}

/* Computes the checksum of header and payload. The payload enters as its own
 * hash, because the header is known only at the end. */
static void seal(struct header *h, const unsigned char payload_sum[static SUM_SIZE])
{
	crypto_hash_sha256_state s;
	(void)crypto_hash_sha256_init(&s);
	(void)crypto_hash_sha256_update(&s, (const unsigned char *)h, SUM_AT);
	(void)crypto_hash_sha256_update(&s, payload_sum, SUM_SIZE);
	(void)crypto_hash_sha256_final(&s, h->sum);
}

static int copy_spool(struct blob_writer *w)
{
	if (lseek(w->spool, 0, SEEK_SET) < 0)
		return -errno;
	for (;;) {
		ssize_t n = file_read_full(w->spool, w->out, CHUNK);
		if (n <= 0)
			return (int)n;
		int r = file_write_all(w->fd, w->out, (size_t)n);
		if (r < 0)
			return r;
	}
}

int blob_writer_finish(struct blob_writer *w, struct cordon_error **reterr)
{
	int r = compress(w, NULL, 0, ZSTD_e_end);
	if (r == 0)
		r = pad(w);
	struct header h = { .version = htole32(BLOB_VERSION),
			    .size = htole32(BLOB_HEADER_SIZE),
			    .payload = htole64(w->payload),
			    .content = htole64(w->content) };
	memcpy(h.magic, BLOB_MAGIC, sizeof(h.magic));
	unsigned char sum[SUM_SIZE];
	(void)crypto_hash_sha256_final(&w->sum, sum);
	seal(&h, sum);
	if (r == 0 && pwrite(sink(w), &h, sizeof(h), w->start) != (ssize_t)sizeof(h))
		r = errno ? -errno : -EIO;
	if (r == 0 && w->spool >= 0)
		r = copy_spool(w);
	return r < 0 ? err_errno(reterr, -r, "write the export") : 0;
}

struct blob_reader {
	int fd;
	bool is_spool; /* the reader owns fd */
	off_t start;   /* of the payload */
	struct header h;
	ZSTD_DCtx *z;
	char *in, *out;
	ZSTD_inBuffer have;
	uint64_t read, given, max_bytes;
	bool is_over; /* the last frame is complete */
};

struct blob_reader *blob_reader_free(struct blob_reader *r)
{
	if (!r)
		return NULL;
	(void)ZSTD_freeDCtx(r->z);
	if (r->is_spool)
		close_fdp(&r->fd);
	free(r->in);
	free(r->out);
	free(r);
	return NULL;
}

/* Copies input that can be read only once. */
static int spool(struct blob_reader *r, struct cordon_error **reterr)
{
	cleanup_close int copy = os_memory_file("cordon-import", false);
	if (copy < 0)
		return err_errno(reterr, -copy, "make room for the import");
	uint64_t total = 0;
	for (;;) {
		ssize_t n = file_read_full(r->fd, r->in, CHUNK);
		if (n < 0)
			return err_errno(reterr, (int)-n, "read the import");
		if (n == 0)
			break;
		total += (uint64_t)n;
		if (total > r->max_bytes + BLOB_HEADER_SIZE)
			return err_set(reterr, CORDON_LIMIT, "State blob is larger than %llu bytes",
				       (unsigned long long)r->max_bytes);
		int e = file_write_all(copy, r->in, (size_t)n);
		if (e < 0)
			return err_errno(reterr, -e, "keep the import");
	}
	if (lseek(copy, 0, SEEK_SET) < 0)
		return err_errno(reterr, errno, "keep the import");
	r->fd = TAKE_FD(copy);
	r->is_spool = true;
	return 0;
}

static int check_header(struct blob_reader *r, uint64_t size, struct cordon_error **reterr)
{
	const struct header *h = &r->h;
	if (memcmp(h->magic, BLOB_MAGIC, sizeof(h->magic)) != 0)
		return err_set(reterr, CORDON_INVALID, "Invalid state blob: bad magic bytes");
	if (le32toh(h->version) != BLOB_VERSION)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "Unsupported state version: %u (this program knows %d)",
			       le32toh(h->version), BLOB_VERSION);
	if (le32toh(h->size) != BLOB_HEADER_SIZE)
		return err_set(reterr, CORDON_INVALID, "Invalid state blob: bad header size");
	uint64_t payload = le64toh(h->payload), content = le64toh(h->content);
	if (payload > size - BLOB_HEADER_SIZE)
		return err_set(reterr, CORDON_INVALID,
			       "Invalid state blob: truncated, %llu of %llu bytes are there",
			       (unsigned long long)(size - BLOB_HEADER_SIZE),
			       (unsigned long long)payload);
	if (payload < size - BLOB_HEADER_SIZE)
		return err_set(reterr, CORDON_INVALID, "Invalid state blob: bytes after the end");
	if (content > r->max_bytes || payload > r->max_bytes)
		return err_set(reterr, CORDON_LIMIT, "State blob holds %llu bytes, more than %llu",
			       (unsigned long long)(content > payload ? content : payload),
			       (unsigned long long)r->max_bytes);
	if (payload < content / BLOB_MAX_RATIO)
		return err_set(reterr, CORDON_LIMIT,
			       "State blob expands like a bomb: %llu bytes out of %llu",
			       (unsigned long long)content, (unsigned long long)payload);
	return 0;
}

static int check_sum(struct blob_reader *r, struct cordon_error **reterr)
{
	crypto_hash_sha256_state s;
	(void)crypto_hash_sha256_init(&s);
	uint64_t left = le64toh(r->h.payload);
	while (left) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		ssize_t n = file_read_full(r->fd, r->in, want);
		if (n < 0)
			return err_errno(reterr, (int)-n, "read the import");
		if ((size_t)n < want)
			return err_set(reterr, CORDON_INVALID, "Invalid state blob: truncated");
		(void)crypto_hash_sha256_update(&s, (unsigned char *)r->in, want);
		left -= want;
	}
	unsigned char sum[SUM_SIZE];
	(void)crypto_hash_sha256_final(&s, sum);
	struct header want = r->h;
	seal(&want, sum);
	if (random_equal(want.sum, r->h.sum, SUM_SIZE) == 0)
		return err_set(reterr, CORDON_INVALID,
			       "State blob checksum mismatch: data may be corrupted");
	return 0;
}

static int find_start(struct blob_reader *r, uint64_t *ret_size, struct cordon_error **reterr)
{
	struct stat st;
	off_t at = lseek(r->fd, 0, SEEK_CUR);
	if (at < 0 || fstat(r->fd, &st) || !S_ISREG(st.st_mode)) {
		int e = spool(r, reterr);
		if (e < 0)
			return e;
		at = 0;
		if (fstat(r->fd, &st))
			return err_errno(reterr, errno, "read the import");
	}
	if (st.st_size - at < BLOB_HEADER_SIZE)
		return err_set(reterr, CORDON_INVALID, "Invalid state blob: too short");
	*ret_size = (uint64_t)(st.st_size - at);
	r->start = at + BLOB_HEADER_SIZE;
	ssize_t n = file_read_full(r->fd, &r->h, sizeof(r->h));
	if (n != (ssize_t)sizeof(r->h))
		return err_set(reterr, CORDON_INVALID, "Invalid state blob: too short");
	return 0;
}

int blob_reader_open(int fd, uint64_t max_bytes, struct blob_reader **ret,
		     struct cordon_error **reterr)
{
	cleanup_blob_reader struct blob_reader *r = mem_alloc(sizeof(*r));
	if (!r)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	r->fd = fd;
	r->max_bytes = max_bytes;
	r->z = ZSTD_createDCtx();
	r->in = malloc(CHUNK);
	r->out = malloc(CHUNK);
	if (!r->z || !r->in || !r->out)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	(void)ZSTD_DCtx_setParameter(r->z, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
	uint64_t size = 0;
	int e = find_start(r, &size, reterr);
	if (e == 0)
		e = check_header(r, size, reterr);
	if (e == 0)
		e = check_sum(r, reterr);
	if (e == 0)
		e = blob_reader_rewind(r, reterr);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

int blob_reader_rewind(struct blob_reader *r, struct cordon_error **reterr)
{
	if (lseek(r->fd, r->start, SEEK_SET) < 0)
		return err_errno(reterr, errno, "read the import");
	(void)ZSTD_DCtx_reset(r->z, ZSTD_reset_session_only);
	r->have = (ZSTD_inBuffer){ r->in, 0, 0 };
	r->read = r->given = 0;
	r->is_over = false;
	return 0;
}

/* 1: there is more to decompress; 0: all was read; or an error. */
static int refill(struct blob_reader *r, struct cordon_error **reterr)
{
	uint64_t left = le64toh(r->h.payload) - r->read;
	if (r->have.pos < r->have.size)
		return 1;
	if (!left)
		return 0;
	ssize_t n = file_read_full(r->fd, r->in, left < CHUNK ? (size_t)left : CHUNK);
	if (n <= 0)
		return n < 0 ? err_errno(reterr, (int)-n, "read the import")
			     : err_set(reterr, CORDON_INVALID, "Invalid state blob: truncated");
	r->read += (uint64_t)n;
	r->have = (ZSTD_inBuffer){ r->in, (size_t)n, 0 };
	return 1;
}

ssize_t blob_reader_next(void *arg, const void **ret, struct cordon_error **reterr)
{
	struct blob_reader *r = arg;
	for (;;) {
		int e = refill(r, reterr);
		if (e < 0)
			return -1;
		uint64_t content = le64toh(r->h.content);
		if (e == 0 && (!r->is_over || r->given != content)) {
			(void)err_set(reterr, CORDON_INVALID,
				      "Invalid state blob: truncated content");
			return -1;
		}
		if (e == 0)
			return 0;
		ZSTD_outBuffer out = { r->out, CHUNK, 0 };
		size_t z = ZSTD_decompressStream(r->z, &out, &r->have);
		if (ZSTD_isError(z)) {
			(void)err_set(reterr, CORDON_INVALID, "Invalid state blob: %s",
				      ZSTD_getErrorName(z));
			return -1;
		}
		r->is_over = z == 0;
		r->given += out.pos;
		if (r->given > content) {
			(void)err_set(reterr, CORDON_LIMIT,
				      "State blob holds more than the %llu bytes it announces",
				      (unsigned long long)content);
			return -1;
		}
		if (out.pos) {
			*ret = r->out;
			return (ssize_t)out.pos;
		}
	}
}

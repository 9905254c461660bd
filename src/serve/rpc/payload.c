/* serve/rpc/payload.c - see payload.h. */
#include "serve/rpc/payload.h"

#include <cordon/files.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/file.h"
#include "base/os.h"
#include "serve/rpc/session_quota.h"
#include "serve/rpc/target.h"

enum { INLINE_MAX = 32 << 20 };

static int open_attachment(const struct attachment *a, int *ret_fd, struct cordon_error **reterr)
{
	if (a->bytes > a->max)
		return err_limit(reterr, ERR_LIMIT_LENGTH,
				 "an attachment has at most %" PRIu64 " bytes: send less at once",
				 a->max);
	if (a->fd < 0 && a->bytes > 0)
		return err_set(reterr, CORDON_NOMEM, "no memory for the attachment");
	*ret_fd = a->fd >= 0 ? fcntl(a->fd, F_DUPFD_CLOEXEC, 0)
			     : os_memory_file("cordon-input", false);
	if (*ret_fd < 0 || lseek(*ret_fd, 0, SEEK_SET) != 0)
		return err_errno(reterr, errno, "read the attachment");
	return 0;
}

int payload_open(const struct request *q, int *ret_fd, struct cordon_error **reterr)
{
	const char *from = NULL, *data = NULL;
	cleanup_free void *bytes = NULL;
	size_t len = 0;
	bool is_attached = false;
	int r = target_bool(q, "attached", &is_attached, reterr);

	if (r == 0 && is_attached)
		return open_attachment(&q->attachment, ret_fd, reterr);
	if (r == 0)
		r = target_string(q, "from", &from, reterr);

	if (r == 0 && from) {
		*ret_fd = open(from, O_RDONLY | O_CLOEXEC);
		return *ret_fd >= 0 ? 0 : err_errno(reterr, errno, "open '%s'", from);
	}
	if (r == 0)
		r = target_need(q, "data", &data, reterr);
	if (r == 0)
		r = base64_decode(data, strlen(data), &bytes, &len, reterr);
	return r < 0 ? r : file_from_bytes("cordon-input", bytes, len, ret_fd, reterr);
}

int payload_create(const struct request *q, const char **ret_to, int *ret_fd,
		   struct cordon_error **reterr)
{
	int r = target_string(q, "to", ret_to, reterr);

	if (r < 0)
		return r;
	if (!*ret_to) {
		*ret_fd = os_memory_file("cordon-output", false);
		return *ret_fd < 0 ? err_errno(reterr, -*ret_fd, "create 'memory'") : 0;
	}
	*ret_fd = open(*ret_to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return *ret_fd < 0 ? err_errno(reterr, errno, "create '%s'", *ret_to) : 0;
}

static int encode(int fd, size_t max, char **ret, size_t *ret_len, struct cordon_error **reterr)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size < 0)
		return err_errno(reterr, errno, "measure the bytes");
	if ((uint64_t)size > max)
		return err_set(reterr, CORDON_LIMIT,
			       "these are %lld bytes, more than fit into an answer (%zu)",
			       (long long)size, max);
	void *bytes = size ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
	if (bytes == MAP_FAILED)
		return err_errno(reterr, errno, "read the bytes");
	*ret = base64_encode(size ? bytes : "", (size_t)size, ret_len);
	if (bytes)
		(void)munmap(bytes, (size_t)size);
	return *ret ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

int payload_add(int fd, struct buf *ret, struct cordon_error **reterr)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = encode(fd, INLINE_MAX, &text, &len, reterr);

	if (r == -CORDON_LIMIT)
		return err_wrap(reterr, r, "name a file with \"to\"");
	if (r == 0)
		r = buf_add_str(ret, "{\"data\":\"");
	if (r == 0)
		r = buf_add(ret, text, len);
	return r < 0 ? r
		     : buf_printf(ret, "\",\"length\":%lld}", (long long)lseek(fd, 0, SEEK_END));
}

/* The bytes follow the answer. */
static int attach(struct request *q, int fd, struct buf *ret, struct cordon_error **reterr)
{
	struct client_session_quota *quota = q->rpc->sessions.quota;
	off_t size = lseek(fd, 0, SEEK_END);

	if (size > 0 && !session_quota_attach(quota, (uint64_t)size))
		return err_set(reterr, CORDON_LIMIT,
			       "no room for an answer of %lld bytes: read the others first",
			       (long long)size);
	q->answer.fd = size > 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (size > 0 && q->answer.fd < 0)
		session_quota_detach(quota, (uint64_t)size);
	if (size < 0 || (size > 0 && q->answer.fd < 0))
		return err_errno(reterr, errno, "attach the bytes");
	q->answer.bytes = (uint64_t)size;
	q->answer.quota = quota;
	return buf_printf(ret, "{\"length\":%lld,\"buffer\":{\"bytes\":%lld}}", (long long)size,
			  (long long)size);
}

int payload_answer(struct request *q, const char *to, int fd, int r, struct buf *ret,
		   struct cordon_error **reterr)
{
	if (r < 0 && to)
		(void)unlink(to);
	bool is_attached = false;
	if (r == 0)
		r = target_bool(q, "attach", &is_attached, reterr);
	if (r < 0)
		return r;
	if (is_attached && !to)
		return attach(q, fd, ret, reterr);
	return to ? buf_printf(ret, "{\"length\":%lld}", (long long)lseek(fd, 0, SEEK_END))
		  : payload_add(fd, ret, reterr);
}

int payload_export(struct cordon_session *s, int *ret_fd, struct cordon_error **reterr)
{
	cleanup_close int fd = os_memory_file("cordon-state", false);

	if (fd < 0)
		return err_errno(reterr, -fd, "make room for the files");
	int r = cordon_files_export(s, fd, reterr);
	if (r == 0 && lseek(fd, 0, SEEK_SET) != 0)
		r = err_errno(reterr, errno, "read the files");
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int payload_export_text(struct cordon_session *s, size_t max, char **ret,
			struct cordon_error **reterr)
{
	cleanup_close int fd = -1;
	size_t len = 0;
	int r = payload_export(s, &fd, reterr);

	return r < 0 ? r : encode(fd, max, ret, &len, reterr);
}

/* base/file.c - see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
#include "base/random.h"
#include "base/str.h"

/* After a failed call: true if it should be repeated, because of a signal or because fd is ready
 * now. */
static bool may_retry(int fd, short events)
{
	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		return false;
	struct pollfd p = { .fd = fd, .events = events };
	return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);
		if (n < 0) {
			if (may_retry(fd, POLLOUT))
				continue;
			return -errno;
		}
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t file_read_full(int fd, void *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)bytes + done, len - done);
		if (n < 0) {
			if (may_retry(fd, POLLIN))
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int file_read_to_end(int fd, struct buf *b, struct cordon_error **reterr)
{
	enum { CHUNK = 64 * 1024 };

	for (;;) {
		size_t room = b->max - b->len;
		char extra;
		/* The buffer is full: one more byte tells whether the file ends here or is too
		 * large. */
		if (room == 0) {
			ssize_t n = file_read_full(fd, &extra, 1);
			if (n < 0)
				return err_errno(reterr, (int)-n, "read");
			return n == 0 ? 0
				      : err_set(reterr, CORDON_LIMIT,
						"there are more than the %zu bytes allowed",
						b->max);
		}
		size_t want = room < CHUNK ? room : CHUNK;
		char *at = buf_reserve(b, want);
		if (!at)
			return err_set(reterr, CORDON_NOMEM, "out of memory");
		ssize_t n = read(fd, at, want);
		if (n == 0)
			return 0;
		if (n > 0)
			buf_commit(b, (size_t)n);
		else if (!may_retry(fd, POLLIN))
			return err_errno(reterr, errno, "read");
	}
}

static int check_regular(int fd, const char *path, size_t max_bytes, struct cordon_error **reterr)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(reterr, errno, "stat '%s'", path);
	if (S_ISDIR(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not a regular file", path);
	if (st.st_size > 0 && (uint64_t)st.st_size > max_bytes)
		return err_set(reterr, CORDON_LIMIT,
			       "'%s' has %lld bytes, more than the %zu allowed", path,
			       (long long)st.st_size, max_bytes);
	return 0;
}

int file_load(const char *path, size_t max_bytes, struct buf *ret, struct cordon_error **reterr)
{
	bool is_stdin = strcmp(path, "-") == 0;
	cleanup_close int opened = -1;
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, max_bytes);
	if (!is_stdin) {
		/* Non-blocking, so that opening a FIFO does not hang before it is refused. */
		opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (opened < 0)
			return err_errno(reterr, errno, "open '%s'", path);
		int r = check_regular(opened, path, max_bytes, reterr);
		if (r < 0)
			return r;
	}
	int r = file_read_to_end(is_stdin ? STDIN_FILENO : opened, &b, reterr);
	if (r < 0)
		return err_wrap(reterr, r, "read '%s'", is_stdin ? "standard input" : path);
	*ret = b;
	b = (struct buf){ 0 };
	return 0;
}

int file_draft_open(struct file_draft *d, const char *path, struct cordon_error **reterr)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	cleanup_free char *dir = slash == path ? str_dup("/")
				 : slash       ? str_ndup(path, (size_t)(slash - path))
					       : str_dup(".");
	char tag[17];

	*d = (struct file_draft){ .fd = -1, .dir_fd = -1, .path = path, .name = name };
	random_hex(tag, 16);
	cleanup_free char *temporary = str_printf(".%.200s.%s", name, tag);
	if (!dir || !temporary)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_errno(reterr, errno, "open '%s'", dir);
	d->fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       0600);
	if (d->fd < 0)
		return err_errno(reterr, errno, "create '%s/%s'", dir, temporary);
	d->dir_fd = TAKE_FD(dir_fd);
	d->temporary = TAKE_PTR(temporary);
	return 0;
}

int file_draft_publish(struct file_draft *d, mode_t mode, bool replaces,
		       struct cordon_error **reterr)
{
	int r = fchmod(d->fd, mode) < 0 || fsync(d->fd) < 0 ? -errno : 0;

	if (r == 0 && replaces)
		r = renameat(d->dir_fd, d->temporary, d->dir_fd, d->name) < 0 ? -errno : 0;
	else if (r == 0)
		r = os_rename_new(d->dir_fd, d->temporary, d->name);
	if (r < 0)
		return err_errno(reterr, -r, "write '%s'", d->path);
	free_ptrp(&d->temporary);
	(void)fsync(d->dir_fd); /* some file systems cannot sync a directory; the data is safe
				   already */
	return 0;
}

void file_draft_done(struct file_draft *d)
{
	if (d->temporary)
		(void)unlinkat(d->dir_fd, d->temporary, 0);
	free_ptrp(&d->temporary);
	close_fdp(&d->fd);
	close_fdp(&d->dir_fd);
}

int file_save(const char *path, mode_t mode, const void *bytes, size_t len,
	      struct cordon_error **reterr)
{
	cleanup_file_draft struct file_draft d = { .fd = -1, .dir_fd = -1 };
	int r = file_draft_open(&d, path, reterr);

	if (r < 0)
		return r;
	r = file_write_all(d.fd, bytes, len);
	if (r < 0)
		return err_errno(reterr, -r, "write '%s'", path);
	return file_draft_publish(&d, mode, true, reterr);
}

int file_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	int want = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return want != flags && fcntl(fd, F_SETFL, want) < 0 ? -errno : 0;
}

int file_scratch(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : os_memory_file("scratch", false);
}

int file_from_bytes(const char *name, const void *bytes, size_t len, int *ret_fd,
		    struct cordon_error **reterr)
{
	cleanup_close int fd = os_memory_file(name, true);

	if (fd < 0)
		return err_errno(reterr, -fd, "make the memory file '%s'", name);
	int r = file_write_all(fd, bytes, len);
	if (r < 0)
		return err_errno(reterr, -r, "fill the memory file '%s'", name);
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : os_seal(fd);
	if (r < 0)
		return err_errno(reterr, -r, "seal the memory file '%s'", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

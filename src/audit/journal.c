/* audit/journal.c - see journal.h. */
#include "audit/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

enum { REOPEN_TRIES = 16, TAIL_BYTES = 4096, LAST_NUMBER = 1000000, LOOK_AGAIN_MS = 50 };

static int check_path(const char *path, struct cordon_error **reterr)
{
	struct stat st;

	if (!path || !*path)
		return err_set(reterr, CORDON_INVALID,
			       "audit_log path must be a non-empty character string");
	if (str_starts(path, "/dev/"))
		return err_set(reterr, CORDON_DENIED,
			       "audit_log path must not point to a device file");
	if (lstat(path, &st) < 0)
		return 0; /* open(2) reports the error */
	if (S_ISLNK(st.st_mode))
		return err_set(reterr, CORDON_DENIED, "audit_log path must not be a symlink");
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return err_set(reterr, CORDON_DENIED,
			       "audit_log path must not point to a device file");
	if (!S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "audit_log path must be a regular file");
	return 0;
}

static int make_parents(const char *path, struct cordon_error **reterr)
{
	cleanup_free char *copy = str_dup(path);

	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return err_errno(reterr, errno, "make the directory '%s'", copy);
		*slash = '/';
	}
	return 0;
}

/* Checks the descriptor, because the path may have changed since check_path. */
static int open_once(const char *path, int flags, int *ret_fd, struct stat *ret,
		     struct cordon_error **reterr)
{
	cleanup_close int fd = open(
		path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags,
		0600);

	if (fd < 0 && errno == ELOOP)
		return err_set(reterr, CORDON_DENIED, "audit_log path must not be a symlink");
	if (fd < 0)
		return err_errno(reterr, errno, "open the audit log '%s'", path);
	if (fstat(fd, ret) < 0)
		return err_errno(reterr, errno, "check the audit log '%s'", path);
	if (!S_ISREG(ret->st_mode))
		return err_set(reterr, CORDON_INVALID, "audit_log path must be a regular file");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int open_file(const char *path, int flags, int *ret_fd, struct cordon_error **reterr)
{
	enum { TRIES = 100 };
	struct stat st = { 0 }, now;

	for (int i = 0; i < TRIES; i++) {
		cleanup_close int fd = -1;
		int r = open_once(path, flags, &fd, &st, reterr);

		if (r < 0)
			return r;
		if (st.st_mode & S_IWUSR) {
			*ret_fd = TAKE_FD(fd);
			return 0;
		}
		/* The file is read-only, even for root. A file that was rotated just after it was
		 * opened is too, and then we try again. */
		if (stat(path, &now) == 0 && now.st_ino == st.st_ino && now.st_dev == st.st_dev)
			break;
	}
	return err_set(reterr, CORDON_DENIED, "the audit log '%s' is read-only", path);
}

static void adopt(struct journal *j, int fd)
{
	close_fdp(&j->fd);
	j->fd = fd;
	j->size = -1;      /* the head must be read */
	j->look_again = 1; /* and the path checked */
}

int journal_open(struct journal *j, const char *path, struct cordon_error **reterr)
{
	int fd = -1;

	*j = (struct journal){ .fd = -1 };
	int r = check_path(path, reterr);
	if (r >= 0)
		r = make_parents(path, reterr);
	if (r >= 0)
		r = open_file(path, O_CREAT, &fd, reterr);
	if (r < 0)
		return r;
	j->path = str_dup(path);
	if (!j->path) {
		close_fdp(&fd);
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	}
	adopt(j, fd);
	memcpy(j->head, chain_genesis, sizeof(j->head));
	return 0;
}

int journal_close(struct journal *j, bool sync)
{
	int r = j->fd >= 0 && sync && fsync(j->fd) < 0 ? -errno : 0;

	close_fdp(&j->fd);
	free_ptrp(&j->path);
	return r;
}

static int lock(int fd, struct cordon_error **reterr)
{
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(reterr, errno, "lock the audit log");
	return 0;
}

/* Whether the locked file is still the one at the path. 1: yes, 0: open the new one. A rotated file
 * is read-only and a removed one has no link, which the descriptor tells. Other changes of the path
 * are checked only from time to time, because that costs as much as the write. */
static int is_current(struct journal *j, struct stat *ret, struct cordon_error **reterr)
{
	struct stat named;

	if (fstat(j->fd, ret) < 0)
		return err_errno(reterr, errno, "check the audit log '%s'", j->path);
	if (!(ret->st_mode & S_IWUSR))
		return 0;
	if (ret->st_nlink > 0 && !deadline_is_over(j->look_again))
		return 1;
	if (fstatat(AT_FDCWD, j->path, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(reterr, CORDON_STATE, "the audit log '%s' has vanished", j->path);
	j->look_again = deadline_after_ms(LOOK_AGAIN_MS);
	return named.st_ino == ret->st_ino && named.st_dev == ret->st_dev;
}

/* Locks the file that is at the path now: another process may have rotated ours. */
static int lock_current(struct journal *j, off_t *ret_size, struct cordon_error **reterr)
{
	for (int i = 0; i < REOPEN_TRIES; i++) {
		struct stat st;
		int fd = -1, r = lock(j->fd, reterr);
		if (r < 0)
			return r;
		r = is_current(j, &st, reterr);
		if (r > 0) {
			*ret_size = st.st_size;
			return 0;
		}
		(void)flock(j->fd, LOCK_UN);
		if (r == 0)
			r = open_file(j->path, 0, &fd, reterr);
		if (r < 0)
			return r;
		adopt(j, fd);
	}
	return err_set(reterr, CORDON_STATE, "the audit log '%s' is being replaced repeatedly",
		       j->path);
}

/* The position of the last newline, or -1. */
static off_t last_newline(int fd, off_t size)
{
	char chunk[TAIL_BYTES];

	while (size > 0) {
		off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
		ssize_t n = pread(fd, chunk, (size_t)(size - from), from);
		if (n <= 0)
			break;
		char *at = memrchr(chunk, '\n', (size_t)n);
		if (at)
			return from + (at - chunk);
		size = from;
	}
	return -1;
}

/* Reads the head of the chain from the file's end. ret_torn: bytes after the last newline, left by
 * a writer that died. */
static int read_head(struct journal *j, off_t size, off_t *ret_torn, struct cordon_error **reterr)
{
	static const char start[] = "{\"timestamp\":\"";
	char seal[CHAIN_SEAL_BYTES];
	off_t newline = last_newline(j->fd, size);

	*ret_torn = size - (newline + 1);
	if (newline < 0) {
		memcpy(j->head, chain_genesis, sizeof(j->head));
		size_t want = size < (off_t)sizeof(start) - 1 ? (size_t)size : sizeof(start) - 1;
		if (pread(j->fd, seal, want, 0) == (ssize_t)want && memcmp(seal, start, want) == 0)
			return 0;
	} else if (newline >= CHAIN_SEAL_BYTES &&
		   pread(j->fd, seal, sizeof(seal), newline - CHAIN_SEAL_BYTES) ==
			   (ssize_t)sizeof(seal) &&
		   memcmp(seal, ",\"prev\":\"", 9) == 0) {
		memcpy(j->head, seal + CHAIN_SEAL_BYTES - 2 - CHAIN_HEX, CHAIN_HEX);
		return 0;
	}
	return err_set(reterr, CORDON_INVALID,
		       "'%s' does not end like an audit log: nothing is appended to it", j->path);
}

static int seal(struct journal *j, struct buf *line, struct cordon_error **reterr)
{
	if (!buf_reserve(line, CHAIN_SEAL_BYTES + 2))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	size_t len = chain_seal(line->data, line->len, j->head);
	buf_commit(line, len - line->len);
	line->data[len] = '\n';
	return 0;
}

/* Begins a line of the journal itself. lead: bytes to write before it. */
static int begin_own(struct buf *line, const char *lead, const char *event)
{
	char now[CLOCK_UTC_SIZE];

	clock_utc_text(now);
	return buf_printf(line, "%s{\"timestamp\":\"%s\",\"event\":\"%s\",\"session_id\":\"audit\"",
			  lead, now, event);
}

/* All or nothing: a partial write, as on a full disk, is undone. */
static int write_line(struct journal *j, int fd, const struct buf *line, off_t size,
		      struct cordon_error **reterr)
{
	size_t len = line->len + 1;
	ssize_t n;

	do
		n = write(fd, line->data, len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len) {
		j->size = size + n;
		return 0;
	}
	int e = n < 0 ? errno : ENOSPC;
	if (n > 0)
		(void)!ftruncate(fd, size);
	return err_errno(reterr, e, "write to the audit log '%s'", j->path);
}

/* After a crash: ends the torn line, records that, and continues the chain from the last complete
 * line. The space makes sure that a line which lacked only its newline does not become complete,
 * since the chain would then be ambiguous. */
static int mend(struct journal *j, off_t torn, off_t *size, struct cordon_error **reterr)
{
	cleanup_buf struct buf line = { 0 };
	char head[CHAIN_HEX + 1];

	buf_init(&line, 4096);
	if (begin_own(&line, " \n", "audit_recovered") < 0 ||
	    buf_printf(&line, ",\"torn_bytes\":%" PRId64, (int64_t)torn + 1) < 0 ||
	    !buf_reserve(&line, CHAIN_SEAL_BYTES + 2))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	memcpy(head, j->head, sizeof(head));
	buf_commit(&line, chain_seal(line.data + 2, line.len - 2, head) - (line.len - 2));
	line.data[line.len] = '\n';
	int r = write_line(j, j->fd, &line, *size, reterr);
	if (r < 0)
		return r;
	memcpy(j->head, head, sizeof(head));
	*size = j->size;
	return 0;
}

/* The N of a name BASE.N; 0: another name. */
static long number_of(const char *name, const char *base, size_t base_len)
{
	char *end = NULL;

	if (strncmp(name, base, base_len) != 0 || name[base_len] != '.' ||
	    name[base_len + 1] < '1' || name[base_len + 1] > '9')
		return 0;
	long n = strtol(name + base_len + 1, &end, 10);
	return *end == '\0' && n < LAST_NUMBER ? n : 0;
}

/* Visits the rotated files PATH.N. Removes those up to number `upto`; *ret_last: the largest N. */
static int survey(const char *path, long upto, long *ret_last)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	cleanup_free char *folder =
		slash ? str_ndup(path, (size_t)(slash - path) + 1) : str_dup(".");
	DIR *d = folder ? opendir(folder) : NULL;
	long last = 0;

	if (!d)
		return -errno;
	for (struct dirent *e; (e = readdir(d));) {
		long n = number_of(e->d_name, base, strlen(base));
		if (n > last)
			last = n;
		if (n > 0 && n <= upto)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	*ret_last = last;
	return 0;
}

/* The next name for a rotated file: PATH.N, one more than the largest. So the numbers give the
 * order even after the first files are removed. */
static char *next_number(const char *path, long *ret)
{
	long last = 0;

	if (survey(path, 0, &last) < 0 || last + 1 >= LAST_NUMBER)
		return NULL;
	*ret = last + 1;
	return str_printf("%s.%ld", path, last + 1);
}

/* Writes the first line of the next file, which continues the chain. */
static int start_next(struct journal *j, int fd, const char *old_name, struct cordon_error **reterr)
{
	cleanup_buf struct buf line = { 0 };
	const char *base = strrchr(old_name, '/');
	cleanup_json json_t *name =
		json_string_lossy(base ? base + 1 : old_name, strlen(base ? base + 1 : old_name));
	cleanup_free char *text = name ? json_text(name, NULL) : NULL;

	buf_init(&line, 16384);
	if (!text || begin_own(&line, "", "audit_continued") < 0 ||
	    buf_printf(&line, ",\"file\":%s", text) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = seal(j, &line, reterr);
	return r < 0 ? r : write_line(j, fd, &line, 0, reterr);
}

/* The path always names a file: the full file gets a second name, then the next one, already begun
 * and locked, replaces it atomically. */
static int rotate(struct journal *j, off_t *size, struct cordon_error **reterr)
{
	long number = 0, last;
	cleanup_free char *old_name = next_number(j->path, &number);
	cleanup_free char *next_name = str_printf("%s.next", j->path);
	char head[CHAIN_HEX + 1];
	int fd = -1;

	if (!old_name || !next_name)
		return err_set(reterr, CORDON_NOMEM, "no unused name for the full audit log");
	(void)unlink(next_name); /* left by a process that died here; we hold the lock */
	int r = open_file(next_name, O_CREAT | O_EXCL, &fd, reterr);
	if (r < 0)
		return r;
	memcpy(head, j->head, sizeof(head));
	off_t old_size = j->size;
	r = lock(fd, reterr);
	if (r >= 0)
		r = start_next(j, fd, old_name, reterr);
	if (r >= 0 && link(j->path, old_name) < 0)
		r = err_errno(reterr, errno, "rotate the audit log to '%s'", old_name);
	if (r >= 0 && rename(next_name, j->path) < 0) {
		r = err_errno(reterr, errno, "rotate the audit log to '%s'", old_name);
		(void)unlink(old_name);
	}
	if (r < 0) {
		(void)unlink(next_name);
		close_fdp(&fd);
		memcpy(j->head, head, sizeof(head));
		j->size = old_size;
		return r;
	}
	if (j->is_synced)
		(void)fsync(j->fd);
	(void)fchmod(j->fd, 0400); /* tells processes that have it open */
	if (j->keep_files && (uint64_t)number > j->keep_files)
		(void)survey(j->path, number - (long)j->keep_files, &last);
	*size = j->size;
	adopt(j, fd);
	j->size = *size;
	return 0;
}

static int append_locked(struct journal *j, struct buf *line, off_t size,
			 struct cordon_error **reterr)
{
	off_t torn = 0;
	char head[CHAIN_HEX + 1];
	int r = 0;

	if (size != j->size) {
		j->size = -1; /* if anything fails, read the head again next time */
		r = read_head(j, size, &torn, reterr);
		if (r >= 0 && torn > 0)
			r = mend(j, torn, &size, reterr);
	}
	uint64_t after = (uint64_t)size + line->len + CHAIN_SEAL_BYTES + 1;
	if (r >= 0 && j->rotate_bytes && size > 0 && after > j->rotate_bytes)
		r = rotate(j, &size, reterr);
	if (r < 0)
		return r;
	memcpy(head, j->head, sizeof(head));
	r = seal(j, line, reterr);
	if (r >= 0)
		r = write_line(j, j->fd, line, size, reterr);
	if (r < 0) {
		memcpy(j->head, head, sizeof(head));
		j->size = -1;
		return r;
	}
	if (j->is_synced && fdatasync(j->fd) < 0)
		return err_errno(reterr, errno, "write the audit log '%s' to the disk", j->path);
	return 0;
}

int journal_append(struct journal *j, struct buf *line, struct cordon_error **reterr)
{
	off_t size = 0;
	int r = lock_current(j, &size, reterr);

	if (r < 0)
		return r;
	r = append_locked(j, line, size, reterr);
	(void)flock(j->fd, LOCK_UN);
	if (line->data)
		line->data[line->len] = '\0'; /* replaces the newline */
	return r;
}

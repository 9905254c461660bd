/* files/store.c - see store.h. */
#include "files/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "files/export.h"

enum { MAX_PLAIN = 64, HASH_BYTES = 8 };
#define SUFFIX ".cws"

struct store {
	char *name; /* as a file name, without suffix */
	char *path;
	int dir_fd, lock_fd;
};

static bool is_plain(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	return n > 0 && n <= MAX_PLAIN && !name[n];
}

/* Different names never share a file: a name that had to be changed gets a hash of the original. */
static char *file_name(const char *name)
{
	if (is_plain(name))
		return str_dup(name);
	unsigned char hash[crypto_generichash_BYTES];
	char plain[MAX_PLAIN / 2 + 1] = "", hex[2 * HASH_BYTES + 1];
	(void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)name, strlen(name),
				 NULL, 0);
	hex_encode(hex, hash, HASH_BYTES);
	for (size_t i = 0; i + 1 < sizeof(plain) && name[i]; i++) {
		char one[2] = { name[i], '\0' };
		plain[i] = is_plain(one) ? name[i] : '_';
	}
	return str_printf("%s.%s", plain, hex);
}

static char *data_dir(void)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	if (xdg && *xdg == '/')
		return str_printf("%s/cordon/workspaces", xdg);
	if (home && *home == '/')
		return str_printf("%s/.local/share/cordon/workspaces", home);
	return NULL;
}

static int choose_dir(const char *dir, char **ret, struct cordon_error **reterr)
{
	if (!dir && !(*ret = data_dir()))
		return err_set(reterr, CORDON_INVALID,
			       "no directory for workspaces: set HOME or XDG_DATA_HOME");
	if (dir && !(*ret = str_dup(dir)))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return 0;
}

static int make_dirs(const char *path, struct cordon_error **reterr)
{
	cleanup_free char *copy = str_dup(path);
	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	for (char *at = copy + 1;; at++) {
		if (*at && *at != '/')
			continue;
		char was = *at;
		*at = '\0';
		if (mkdir(copy, 0700) && errno != EEXIST)
			return err_errno(reterr, errno, "make '%s'", copy);
		*at = was;
		if (!was)
			return 0;
	}
}

static int check_name(const char *name, struct cordon_error **reterr)
{
	if (!name || !*name || strlen(name) > 1024)
		return err_set(reterr, CORDON_INVALID, "a workspace's name has 1 to 1024 bytes");
	return 0;
}

int store_find(const char *dir, const char *name, char **ret_path, struct cordon_error **reterr)
{
	cleanup_free char *where = NULL, *file = NULL;
	int r = check_name(name, reterr);
	if (r == 0)
		r = choose_dir(dir, &where, reterr);
	if (r < 0)
		return r;
	file = file_name(name);
	*ret_path = file ? str_printf("%s/%s" SUFFIX, where, file) : NULL;
	return *ret_path ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

static int take_lock(struct store *s, const char *name, struct cordon_error **reterr)
{
	char file[256], text[32] = "";
	snprintf(file, sizeof(file), "%s.lock", s->name);
	s->lock_fd = openat(s->dir_fd, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return err_errno(reterr, errno, "lock the workspace '%s'", name);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return err_errno(reterr, errno, "lock the workspace '%s'", name);
		ssize_t n = pread(s->lock_fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		text[strspn(text, "0123456789")] = '\0';
		return err_set(reterr, CORDON_EXISTS, "the workspace '%s' is held by process %s",
			       name, *text ? text : "(unknown)");
	}
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(s->lock_fd, 0) || pwrite(s->lock_fd, text, (size_t)len, 0) != len)
		return err_errno(reterr, errno, "lock the workspace '%s'", name);
	return 0;
}

static bool is_own_temporary(const struct store *s, const char *file)
{
	size_t n = strlen(s->name);
	return file[0] == '.' && !strncmp(file + 1, s->name, n) && file[n + 1] == '~';
}

/* Removes half-written files of processes that died. Nobody else writes them, because we hold the
 * lock. */
static void sweep(const struct store *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		close_fdp(&fd);
		return;
	}
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (is_own_temporary(s, d->d_name))
			(void)unlinkat(s->dir_fd, d->d_name, 0);
	(void)closedir(dir);
}

int store_open(const char *dir, const char *name, struct store **ret, struct cordon_error **reterr)
{
	cleanup_free char *where = NULL;
	cleanup_store struct store *s = mem_alloc(sizeof(*s));
	if (!s)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	s->dir_fd = s->lock_fd = -1;
	int r = check_name(name, reterr);
	if (r == 0)
		r = choose_dir(dir, &where, reterr);
	if (r == 0)
		r = make_dirs(where, reterr);
	if (r < 0)
		return r;
	s->name = file_name(name);
	s->path = s->name ? str_printf("%s/%s" SUFFIX, where, s->name) : NULL;
	if (!s->path)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	s->dir_fd = open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return err_errno(reterr, errno, "open '%s'", where);
	r = take_lock(s, name, reterr);
	if (r < 0)
		return r;
	sweep(s);
	*ret = TAKE_PTR(s);
	return 0;
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	/* The lock file stays: removing it would let two processes lock two files of the same
	 * name. */
	close_fdp(&s->lock_fd);
	close_fdp(&s->dir_fd);
	free(s->name);
	free(s->path);
	free(s);
	return NULL;
}

const char *store_path(const struct store *s)
{
	return s->path;
}

static int open_saved(const struct store *s)
{
	char file[256];
	snprintf(file, sizeof(file), "%s" SUFFIX, s->name);
	int fd = openat(s->dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int store_load(struct store *s, struct workspace *ws, char **ret_state,
	       struct cordon_error **reterr)
{
	cleanup_close int fd = open_saved(s);
	if (fd < 0)
		return err_errno(reterr, -fd, "open '%s'", s->path);
	int r = export_read(ws, fd, false, NULL, ret_state, reterr);
	return r < 0 ? err_wrap(reterr, r, "load '%s'%s", s->path,
				r == -CORDON_LIMIT ? " (the policy's fs_bytes and file_count limit "
						     "what fits; fs_bytes=SIZE raises the first)"
						   : "")
		     : 0;
}

static int write_out(struct store *s, struct workspace *ws, const char *state,
		     const char *temporary, struct cordon_error **reterr)
{
	cleanup_close int fd = openat(s->dir_fd, temporary,
				      O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(reterr, errno, "write '%s'", s->path);
	int r = export_write(ws, state, fd, reterr);
	if (r < 0)
		return r;
	/* On disk before the rename: otherwise a crash could leave an empty file under the name. */
	if (fsync(fd))
		return err_errno(reterr, errno, "write '%s'", s->path);
	char file[256];
	snprintf(file, sizeof(file), "%s" SUFFIX, s->name);
	if (renameat(s->dir_fd, temporary, s->dir_fd, file))
		return err_errno(reterr, errno, "write '%s'", s->path);
	return 0;
}

int store_save(struct store *s, struct workspace *ws, const char *state,
	       struct cordon_error **reterr)
{
	char temporary[256], random[17];
	random_hex(random, 16);
	snprintf(temporary, sizeof(temporary), ".%s~%s", s->name, random);
	int r = write_out(s, ws, state, temporary, reterr);
	if (r < 0) {
		(void)unlinkat(s->dir_fd, temporary, 0);
		return err_wrap(reterr, r, "save the workspace");
	}
	cleanup_close int dir = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fsync(dir))
		return err_errno(reterr, errno, "save '%s'", s->path);
	return 0;
}

int store_clear(struct store *s, struct cordon_error **reterr)
{
	char file[256];
	snprintf(file, sizeof(file), "%s" SUFFIX, s->name);
	if (unlinkat(s->dir_fd, file, 0) && errno != ENOENT)
		return err_errno(reterr, errno, "remove '%s'", s->path);
	return 0;
}

static json_t *describe(int dir_fd, const char *file)
{
	struct stat st;
	struct tm tm;
	char when[32] = "";
	if (!str_ends(file, SUFFIX) || fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return NULL;
	if (gmtime_r(&st.st_mtim.tv_sec, &tm))
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	size_t n = strlen(file) - strlen(SUFFIX);
	return json_pack("{s:o, s:I, s:s}", "name", json_string_lossy(file, n), "bytes",
			 (json_int_t)st.st_size, "saved", when);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int store_list(const char *dir, char **ret_json, struct cordon_error **reterr)
{
	cleanup_free char *where = NULL;
	cleanup_json json_t *list = json_array();
	int r = choose_dir(dir, &where, reterr);
	if (r < 0)
		return r;
	cleanup_close int fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **names = NULL;
	int n = fd >= 0 ? scandirat(fd, ".", &names, NULL, by_name) : 0;
	if ((fd < 0 && errno != ENOENT) || n < 0)
		return err_errno(reterr, errno, "list '%s'", where);
	for (int i = 0; i < n; i++) {
		json_t *item = describe(fd, names[i]->d_name);
		if (item && json_array_append_new(list, item))
			r = -CORDON_NOMEM;
		free(names[i]);
	}
	free(names);
	*ret_json = r == 0 && list ? json_text(list, NULL) : NULL;
	return *ret_json ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");
}

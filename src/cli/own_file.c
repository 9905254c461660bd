/* cli/own_file.c - see own_file.h. */
#include "cli/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

enum { MAX_BYTES = 1 << 20 };

static int nomem(struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_NOMEM, "out of memory");
}

char *own_file_folder(const char *name)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && *xdg == '/')
		return str_printf("%s/cordon/%s", xdg, name);
	return home && *home == '/' ? str_printf("%s/.config/cordon/%s", home, name) : NULL;
}

/* Somebody else's file would decide what code may do here. */
static int check_owner(int fd, const char *path, bool is_private, struct cordon_error **reterr)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno(reterr, errno, "stat '%s'", path);
	if (st.st_uid != geteuid())
		return err_set(reterr, CORDON_INVALID,
			       "'%s' belongs to user %u; it must belong to user %u", path,
			       (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(reterr, CORDON_INVALID,
			       "others may write to '%s'; remedy: chmod go-w '%s'", path, path);
	if (is_private && (st.st_mode & (S_IRWXG | S_IRWXO)))
		return err_set(reterr, CORDON_INVALID,
			       "others may read '%s'; remedy: chmod 600 '%s'", path, path);
	return 0;
}

/* Checked and read through one descriptor, so that nobody exchanges the file in between. */
static int read_checked(int fd, const char *path, bool is_private, char **ret,
			struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	struct stat st;

	buf_init(&b, MAX_BYTES);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not a regular file", path);
	int r = check_owner(fd, path, is_private, reterr);
	if (r == 0)
		r = file_read_to_end(fd, &b, reterr);
	if (r < 0)
		return r;
	if (strlen(buf_text(&b)) != b.len)
		return err_set(reterr, CORDON_INVALID, "'%s' is not valid JSON", path);
	char *text = str_dup(buf_text(&b));
	if (!text)
		return nomem(reterr);
	*ret = text;
	return 0;
}

int own_file_load(const char *folder, const char *name, bool is_private, char **ret,
		  struct cordon_error **reterr)
{
	cleanup_free char *path = str_printf("%s/%s", folder, name);
	cleanup_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!path)
		return nomem(reterr);
	if (dir < 0)
		return 0;
	/* Non-blocking, so that opening a FIFO does not hang before it is refused. */
	cleanup_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(reterr, errno, "open '%s'", path);
	int r = check_owner(dir, folder, false, reterr);
	return r < 0 ? r : read_checked(fd, path, is_private, ret, reterr);
}

/* With the folders above it. */
static int make_folder(const char *folder, struct cordon_error **reterr)
{
	cleanup_free char *path = str_dup(folder);

	if (!path)
		return nomem(reterr);
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return err_errno(reterr, errno, "make '%s'", folder);
	return 0;
}

int own_file_save(const char *folder, const char *name, const char *text,
		  struct cordon_error **reterr)
{
	cleanup_free char *path = str_printf("%s/%s", folder, name);
	int r = path ? make_folder(folder, reterr) : nomem(reterr);

	if (r < 0)
		return r;
	cleanup_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(reterr, errno, "open '%s'", folder);
	r = check_owner(dir, folder, false, reterr);
	return r < 0 ? r : file_save(path, 0600, text, strlen(text), reterr);
}

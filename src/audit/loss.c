/* audit/loss.c - see loss.h. */
#include "audit/loss.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

#define COUNT_MAX (1ULL << 40)

int loss_render(struct buf *line, uint64_t count, const char *reason)
{
	char now[CLOCK_UTC_SIZE];
	cleanup_json json_t *why = json_string_lossy(reason, strlen(reason));
	cleanup_free char *text = why ? json_text(why, NULL) : NULL;

	clock_utc_text(now);
	return text ? buf_printf(line,
				 "{\"timestamp\":\"%s\",\"event\":\"audit_lost\",\"session_id\":"
				 "\"audit\",\"lines\":%" PRIu64 ",\"reason\":%s",
				 now, count, text)
		    : -CORDON_NOMEM;
}

static char *mark_of(const char *log_path)
{
	return str_printf("%s.lost", log_path);
}

void loss_leave(const char *log_path, uint64_t count)
{
	cleanup_free char *path = mark_of(log_path);
	struct stat st;
	cleanup_close int fd =
		path ? open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)
		     : -1;

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	uint64_t all = (uint64_t)st.st_size + (count < COUNT_MAX ? count : COUNT_MAX);
	(void)!ftruncate(fd, (off_t)(all < COUNT_MAX ? all : COUNT_MAX));
	(void)fsync(fd);
}

static uint64_t read_mark(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return st.st_size > 0 ? (uint64_t)st.st_size : 1;
}

uint64_t loss_look(const char *log_path)
{
	cleanup_free char *path = mark_of(log_path);

	return path ? read_mark(path) : 0;
}

int loss_take(const char *log_path, uint64_t *ret, struct cordon_error **reterr)
{
	cleanup_free char *path = mark_of(log_path);

	if (!path)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	uint64_t count = read_mark(path);
	*ret = count && unlink(path) == 0 ? count : 0;
	return 0;
}

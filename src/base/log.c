/* base/log.c - see log.h. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 64 * 1024 };

static enum log_level max_level = LOG_WARN;
static bool as_json;
static const char *const level_names[] = { "error", "warning", "info", "debug" };

void log_setup(enum log_level max, bool json)
{
	max_level = max;
	as_json = json;
}

static void write_json(enum log_level level, const char *message)
{
	char now[CLOCK_UTC_SIZE];
	clock_utc_text(now);
	cleanup_json json_t *line =
		json_pack("{s:s, s:s, s:o}", "timestamp", now, "level", level_names[level],
			  "message", json_string_lossy(message, strlen(message)));
	size_t len = 0;
	cleanup_free char *text = line ? json_text(line, &len) : NULL;
	if (!text)
		return;
	text[len] = '\n'; /* replaces the NUL, so that one write sends the whole line */
	(void)file_write_all(STDERR_FILENO, text, len + 1);
}

static void write_text(enum log_level level, const char *message)
{
	cleanup_buf struct buf b = { 0 };
	buf_init(&b, LINE_MAX_BYTES);
	(void)buf_printf(&b, "%s: %s%s", program_invocation_short_name,
			 level == LOG_ERROR ? "" : level_names[level],
			 level == LOG_ERROR ? "" : ": ");
	(void)buf_add_printable(&b, message);
	if (b.len == b.max)
		b.len--;
	(void)buf_add_char(&b, '\n');
	(void)file_write_all(STDERR_FILENO, buf_text(&b), b.len);
}

void log_at(enum log_level level, const char *fmt, ...)
{
	if (level > max_level)
		return;
	va_list ap;
	va_start(ap, fmt);
	cleanup_free char *message = str_vprintf(fmt, ap);
	va_end(ap);
	if (as_json)
		write_json(level, message ? message : "out of memory");
	else
		write_text(level, message ? message : "out of memory");
}

void log_error_chain(const char *prefix, const struct cordon_error *e)
{
	cleanup_free char *text = err_text(e);

	log_at(LOG_ERROR, "%s%s%s", prefix ? prefix : "", prefix ? ": " : "",
	       text ? text : cordon_error_message(e));
}

/* base/log.c - see log.h. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 64 * 1024 };

void log_error(const char *fmt, ...)
{
	cleanup_buf struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	cleanup_free char *message = str_vprintf(fmt, ap);
	va_end(ap);
	buf_init(&b, LINE_MAX_BYTES);
	(void)buf_printf(&b, "%s: ", program_invocation_short_name);
	(void)buf_add_printable(&b, message ? message : "out of memory");
	if (b.len == b.max)
		b.len--;
	(void)buf_add_char(&b, '\n');
	(void)file_write_all(STDERR_FILENO, buf_text(&b), b.len);
}

void log_error_chain(const char *prefix, const struct cordon_error *e)
{
	cleanup_free char *text = err_text(e);

	log_error("%s%s%s", prefix ? prefix : "", prefix ? ": " : "",
		  text ? text : cordon_error_message(e));
}

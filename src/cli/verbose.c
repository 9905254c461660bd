/* cli/verbose.c - see verbose.h. Never writes to standard output. */
#include "cli/verbose.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

enum { LINE_MAX_BYTES = 32768 };

/* "[cordon] sess_1 tool_call tool=add call=1" */
static int render(const json_t *event, struct buf *b)
{
	const char *session = json_string_value(json_object_get(event, "session_id"));
	const char *name = json_string_value(json_object_get(event, "event")), *key;
	json_t *value;
	int r = buf_printf(b, "[cordon] %s %s", session ? session : "?", name ? name : "?");

	json_object_foreach((json_t *)event, key, value)
	{
		if (str_eq(key, "timestamp") || str_eq(key, "event") || str_eq(key, "session_id"))
			continue;
		cleanup_free char *text = json_text(value, NULL);
		const char *word = json_string_value(value);
		if (r >= 0)
			r = buf_printf(b, " %s=", key);
		if (r >= 0) /* a name could contain terminal control characters */
			r = buf_add_printable(b, word ? word : text ? text : "?");
	}
	return r;
}

void verbose_print(const char *line, size_t len, void *arg)
{
	const struct verbose *v = arg;
	cleanup_json json_t *event = NULL;
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, LINE_MAX_BYTES);
	if (v->as_json)
		(void)buf_add(&b, line, len);
	else if (json_parse(line, len, 0, &event, NULL) < 0 || render(event, &b) < 0)
		return;
	if (buf_add_char(&b, '\n') >= 0)
		(void)file_write_all(STDERR_FILENO, buf_text(&b), b.len);
}

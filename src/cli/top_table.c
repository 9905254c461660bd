/* cli/top_table.c - see top_table.h. */
#include "cli/top_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { WORD_BYTES = 32, NAME_BYTES = 200 };

static const char *text_of(const json_t *s, const char *key)
{
	const char *text = json_string_value(json_object_get(s, key));

	return text ? text : "-";
}

/* -1: it is not said. */
static int64_t number_of(const json_t *s, const char *key)
{
	const json_t *n = json_object_get(s, key);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : -1;
}

static void format_time(int64_t ms, char ret[WORD_BYTES])
{
	int64_t s = ms / 1000;

	if (ms < 0)
		(void)snprintf(ret, WORD_BYTES, "-");
	else if (s < 60)
		(void)snprintf(ret, WORD_BYTES, "%.1f s", (double)ms / 1000);
	else if (s < 3600)
		(void)snprintf(ret, WORD_BYTES, "%" PRId64 " m %02" PRId64 " s", s / 60, s % 60);
	else
		(void)snprintf(ret, WORD_BYTES, "%" PRId64 " h %02" PRId64 " m", s / 3600,
			       s / 60 % 60);
}

static void format_bytes(int64_t bytes, char ret[WORD_BYTES])
{
	if (bytes < 0)
		(void)snprintf(ret, WORD_BYTES, "-");
	else
		(void)snprintf(ret, WORD_BYTES, "%.1f MiB", (double)bytes / (1 << 20));
}

static const char *state_of(const json_t *s)
{
	if (json_is_true(json_object_get(s, "parked")))
		return "parked";
	return json_is_true(json_object_get(s, "running")) ? "running" : "idle";
}

/* A name in a column: escaped, and cut where that is longer than any of ours. */
static int add_name(struct buf *b, const char *name, int width)
{
	cleanup_buf struct buf safe = { 0 };
	cleanup_free char *head = str_ndup(name, strnlen(name, NAME_BYTES));

	buf_init(&safe, NAME_BYTES * 4 + 1);
	if (!head || buf_add_printable(&safe, head) < 0)
		return -CORDON_NOMEM;
	return buf_printf(b, "%-*s", width, buf_text(&safe));
}

static int add_row(struct buf *b, const json_t *s)
{
	char age[WORD_BYTES], cpu[WORD_BYTES], memory[WORD_BYTES], processes[WORD_BYTES] = "-";
	int64_t count = number_of(s, "processes");

	format_time(number_of(s, "age_ms"), age);
	format_time(number_of(s, "cpu_ms"), cpu);
	format_bytes(number_of(s, "memory_peak_bytes"), memory);
	if (count >= 0)
		(void)snprintf(processes, sizeof(processes), "%" PRId64, count);
	int r = add_name(b, text_of(s, "session"), 37);
	if (r == 0)
		r = buf_printf(b, " %-8s", state_of(s));
	if (r == 0)
		r = add_name(b, text_of(s, "guest"), 8);
	if (r == 0)
		r = buf_printf(b, " %11s %11s %11s %5s ", age, cpu, memory, processes);
	if (r == 0)
		r = add_name(b, text_of(s, "tenant"), 0);
	return r == 0 ? buf_add_str(b, "\n") : r;
}

static int by_cpu(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int64_t m = number_of(x, "cpu_ms"), n = number_of(y, "cpu_ms");

	if (m != n)
		return m < n ? 1 : -1;
	return strcmp(text_of(x, "session"), text_of(y, "session"));
}

static int add_totals(struct buf *b, const json_t *sessions)
{
	int64_t memory = 0;
	size_t running = 0, parked = 0;
	char text[WORD_BYTES];

	for (size_t i = 0; i < json_array_size(sessions); i++) {
		const json_t *s = json_array_get(sessions, i);
		int64_t n = number_of(s, "memory_peak_bytes");
		memory += n > 0 && n < INT64_MAX / 2 - memory ? n : 0;
		running += str_eq(state_of(s), "running");
		parked += str_eq(state_of(s), "parked");
	}
	format_bytes(memory, text);
	return buf_printf(b, "%zu sessions, %zu running, %zu parked; %s\n",
			  json_array_size(sessions), running, parked, text);
}

int top_table_add(struct buf *b, json_t *sessions, size_t max_rows)
{
	size_t count = json_array_size(sessions), shown = count < max_rows ? count : max_rows;
	cleanup_free json_t **rows = mem_grow(NULL, count + 1, sizeof(json_t *));
	int r = rows ? add_totals(b, sessions) : -CORDON_NOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		rows[i] = json_array_get(sessions, i);
	if (r == 0)
		qsort(rows, count, sizeof(*rows), by_cpu);
	if (r == 0)
		r = buf_printf(b, "%-37s %-8s%-8s %11s %11s %11s %5s %s\n", "SESSION", "STATE",
			       "LANGUAGE", "AGE", "CPU", "MEMORY", "PROCS", "KEY");
	for (size_t i = 0; r == 0 && i < shown; i++)
		r = add_row(b, rows[i]);
	if (r == 0 && shown < count)
		r = buf_printf(b, "and %zu more\n", count - shown);
	return r;
}

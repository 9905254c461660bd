/* audit/audit.c - see audit.h. */
#include "audit/audit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "audit/journal.h"
#include "audit/loss.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonscan.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	EVENT_MAX_BYTES = 64 << 20,
	EVENT_KEEP_BYTES = 65536,
	LOG_MAX_BYTES = 16384,
	LOSS_MAX_BYTES = 8192,
	REASON_BYTES = 1024
};

struct audit_event {
	struct audit *audit;
	struct clock_utc clock;
	struct buf line, log; /* log: the part that the log callback may show */
	size_t field;         /* offset of the last field in line */
	int failed;           /* the first error of adding a field; 0: none */
};

struct audit {
	pthread_mutex_t lock; /* held from begin to commit */
	struct audit_event event;
	struct journal journal; /* fd -1: none */
	enum audit_sync sync;
	cordon_audit_fn fn;
	void *arg;
	cordon_log_fn log;
	void *log_arg;
	char head[CHAIN_HEX + 1]; /* of the callback's chain, if there is no file */
	uint64_t lost;            /* lines that are missing in the log and not recorded there yet */
	uint64_t untold;          /* lost lines not reported to the caller yet */
	char reason[REASON_BYTES]; /* why the last one was lost */
};

int audit_open(const struct audit_options *opts, struct audit **ret, struct cordon_error **reterr)
{
	struct audit *a = mem_alloc(sizeof(*a));

	if (!a)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	a->journal.fd = -1;
	if (opts->path) {
		int r = journal_open(&a->journal, opts->path, reterr);
		if (r >= 0)
			r = loss_take(opts->path, &a->lost, reterr);
		if (r < 0) {
			(void)journal_close(&a->journal, false);
			free(a);
			return r;
		}
		a->journal.rotate_bytes = opts->rotate_bytes;
		a->journal.keep_files = opts->keep_files;
		a->journal.is_synced = opts->sync == AUDIT_SYNC_ALWAYS;
	}
	pthread_mutex_init(&a->lock, NULL);
	buf_init(&a->event.line, EVENT_MAX_BYTES);
	a->event.audit = a;
	a->sync = opts->sync;
	a->fn = opts->fn;
	a->arg = opts->arg;
	a->log = opts->log;
	a->log_arg = opts->log_arg;
	buf_init(&a->event.log, LOG_MAX_BYTES);
	memcpy(a->head, chain_genesis, sizeof(a->head));
	if (a->lost)
		(void)str_copy(a->reason, sizeof(a->reason),
			       "an earlier writer could not record it");
	*ret = a;
	return 0;
}

/* Counts a line that could not be written. */
static void lose(struct audit *a, const struct cordon_error *e)
{
	cleanup_free char *text = err_text(e);

	a->lost++;
	a->untold++;
	snprintf(a->reason, sizeof(a->reason), "%s", text ? text : "out of memory");
}

/* Seals a line for the callback if there is no file. */
static int seal_alone(struct audit *a, struct buf *line, struct cordon_error **reterr)
{
	if (!buf_reserve(line, CHAIN_SEAL_BYTES + 1))
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	buf_commit(line, chain_seal(line->data, line->len, a->head) - line->len);
	return 0;
}

/* Appends the line that records lost lines, before the next line or at the end. */
static int append_loss(struct audit *a, struct cordon_error **reterr)
{
	cleanup_buf struct buf line = { 0 };

	buf_init(&line, LOSS_MAX_BYTES);
	if (loss_render(&line, a->lost, a->reason) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	int r = a->journal.fd >= 0 ? journal_append(&a->journal, &line, reterr)
				   : seal_alone(a, &line, reterr);
	if (r < 0)
		return r;
	a->lost = 0;
	if (a->fn)
		a->fn(line.data, line.len, a->arg);
	return 0;
}

/* Called when nobody else uses it. */
static int end(struct audit *a, struct cordon_error **reterr)
{
	bool is_kept = a->journal.fd >= 0 || a->fn;
	if (a->lost && is_kept && append_loss(a, NULL) < 0 && a->journal.fd >= 0)
		loss_leave(a->journal.path, a->lost);
	char *text = NULL;
	uint64_t n = audit_take_lost(a, &text);
	cleanup_free char *owned = text;
	int r = n ? err_set(reterr, CORDON_OS, "%s", text ? text : "audit lines were lost") : 0;
	int synced = journal_close(&a->journal, a->sync != AUDIT_SYNC_NONE);
	return synced < 0 && r == 0 ? err_errno(reterr, -synced, "write the audit log to the disk")
				    : r;
}

uint64_t audit_take_lost(struct audit *a, char **ret_text)
{
	if (!a)
		return 0;
	pthread_mutex_lock(&a->lock);
	uint64_t n = a->untold;
	a->untold = 0;
	if (n)
		*ret_text = str_printf("%" PRIu64 " line%s of the audit log %s lost: %s", n,
				       n == 1 ? "" : "s", n == 1 ? "was" : "were", a->reason);
	pthread_mutex_unlock(&a->lock);
	return n;
}

struct audit *audit_close(struct audit *a)
{
	(void)audit_end(a, NULL);
	return NULL;
}

int audit_end(struct audit *a, struct cordon_error **reterr)
{
	if (!a)
		return 0;
	int r = end(a, reterr);
	buf_done(&a->event.line);
	buf_done(&a->event.log);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return r;
}

static void keep(struct audit_event *e, int r)
{
	if (r < 0 && e->failed == 0)
		e->failed = r;
}

static void add(struct audit_event *e, const char *bytes, size_t len)
{
	keep(e, buf_add(&e->line, bytes, len));
}

static void add_key(struct audit_event *e, const char *key)
{
	e->field = e->line.len;
	add(e, ",\"", 2);
	add(e, key, strlen(key));
	add(e, "\":", 2);
}

/* Copies the last field for the log callback, if it is harmless. */
static void show(struct audit_event *e, const char *key)
{
	static const char *const shown[] = { "guest",    "pid",          "tool",      "call",
					     "elapsed",  "elapsed_secs", "exit_code", "error_kind",
					     "decision", "cause",        "subtype" };
	if (!e->audit->log || e->failed < 0)
		return;
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		if (str_eq(key, shown[i]))
			(void)buf_add(&e->log, e->line.data + e->field, e->line.len - e->field);
}

/* Adds text escaped for a JSON string, without quotes. */
static void add_escaped(struct audit_event *e, const char *text, size_t len)
{
	char escape[JSONSCAN_ESCAPE_SIZE];
	size_t run = 0;

	while (run < len) {
		unsigned char c = (unsigned char)text[run];
		int step = c < 0x80 ? 1 : str_utf8_next(text + run, len - run);
		if (step > 0 && c >= 0x20 && c != '"' && c != '\\') {
			run += (size_t)step;
			continue;
		}
		add(e, text, run);
		if (step < 0)
			add(e, "\xef\xbf\xbd", 3);
		else
			add(e, escape, jsonscan_escape(c, escape));
		size_t used = run + (size_t)(step < 0 ? -step : step);
		text += used;
		len -= used;
		run = 0;
	}
	add(e, text, run);
}

struct audit_event *audit_begin(struct audit *a, const char *event, const char *session_id)
{
	char now[CLOCK_UTC_SIZE];

	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	struct audit_event *e = &a->event;
	buf_clear(&e->line);
	e->failed = 0;
	clock_utc_again(&e->clock, now);
	add(e, "{\"timestamp\":\"", 14);
	add(e, now, CLOCK_UTC_SIZE - 1);
	add(e, "\",\"event\":\"", 11);
	add(e, event, strlen(event));
	add(e, "\",\"session_id\":\"", 16);
	add_escaped(e, session_id, strlen(session_id));
	add(e, "\"", 1);
	buf_clear(&e->log);
	if (a->log && e->failed == 0)
		(void)buf_add(&e->log, e->line.data, e->line.len);
	return e;
}

void audit_add_text(struct audit_event *e, const char *key, const char *text, size_t len)
{
	audit_add_text_cut(e, key, text, len, SIZE_MAX);
}

/* The length in bytes of the first max characters. */
static size_t cut_len(const char *text, size_t len, size_t max)
{
	size_t at = 0;

	if (len <= max)
		return len;
	for (; at < len && max > 0; max--) {
		int step = str_utf8_next(text + at, len - at);
		at += (size_t)(step < 0 ? -step : step);
	}
	return at;
}

void audit_add_text_cut(struct audit_event *e, const char *key, const char *text, size_t len,
			size_t max_chars)
{
	if (!e)
		return;
	size_t kept = cut_len(text, len, max_chars);
	add_key(e, key);
	add(e, "\"", 1);
	add_escaped(e, text, kept);
	if (kept < len)
		add(e, "... [truncated]", 15);
	add(e, "\"", 1);
	show(e, key);
}

void audit_add_json(struct audit_event *e, const char *key, const char *json, size_t len)
{
	if (!e)
		return;
	add_key(e, key);
	size_t from = e->line.len;
	add(e, json, len);
	for (char *p = e->line.data + from; p && p < e->line.data + e->line.len; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
}

/* At least so many digits. printf would cost more than the rest of a field. */
static void add_digits(struct audit_event *e, uint64_t n, int least)
{
	char digits[20];
	size_t at = sizeof(digits);

	for (; n > 0 || least > 0; n /= 10, least--)
		digits[--at] = (char)('0' + n % 10);
	add(e, digits + at, sizeof(digits) - at);
}

void audit_add_uint(struct audit_event *e, const char *key, uint64_t n)
{
	if (!e)
		return;
	add_key(e, key);
	add_digits(e, n, 1);
	show(e, key);
}

void audit_add_bool(struct audit_event *e, const char *key, bool b)
{
	if (!e)
		return;
	add_key(e, key);
	add(e, b ? "true" : "false", b ? 4 : 5);
}

void audit_add_seconds(struct audit_event *e, const char *key, uint64_t ns)
{
	uint64_t ms = (ns + 500000) / 1000000;

	if (!e)
		return;
	add_key(e, key);
	add_digits(e, ms / 1000, 1);
	add(e, ".", 1);
	add_digits(e, ms % 1000, 3);
	show(e, key);
}

static int append(struct audit_event *e, struct cordon_error **reterr)
{
	struct audit *a = e->audit;

	if (e->failed == -CORDON_LIMIT)
		return err_set(reterr, CORDON_LIMIT, "the audit event is larger than %d bytes",
			       EVENT_MAX_BYTES);
	if (e->failed < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	if (a->journal.fd < 0 && !a->fn)
		return 0;
	int r = a->lost ? append_loss(a, reterr) : 0;
	if (r < 0)
		return r;
	return a->journal.fd >= 0 ? journal_append(&a->journal, &e->line, reterr)
				  : seal_alone(a, &e->line, reterr);
}

int audit_commit(struct audit_event *e, struct cordon_error **reterr)
{
	struct cordon_error *err = NULL;

	if (!e)
		return 0;
	struct audit *a = e->audit;
	int r = append(e, &err);
	if (r < 0)
		lose(a, err);
	if (r >= 0 && a->fn)
		a->fn(e->line.data, e->line.len, a->arg);
	if (a->log && buf_add_char(&e->log, '}') >= 0)
		a->log(buf_text(&e->log), e->log.len, a->log_arg);
	if (e->line.cap > EVENT_KEEP_BYTES) {
		buf_done(&e->line);
		buf_init(&e->line, EVENT_MAX_BYTES);
	}
	pthread_mutex_unlock(&a->lock);
	if (reterr && err)
		*reterr = err;
	else
		cordon_error_free(err);
	return r;
}

int audit_write(struct audit *a, const char *event, const char *session_id, const char *key,
		const char *text, struct cordon_error **reterr)
{
	struct audit_event *e = audit_begin(a, event, session_id);

	if (text)
		audit_add_text(e, key, text, strlen(text));
	return audit_commit(e, reterr);
}

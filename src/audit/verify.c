/* audit/verify.c - checks a whole audit file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/chain.h"
#include "audit/loss.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cordon/audit.h"

enum { LINE_MAX_BYTES = 65 << 20, CHUNK_BYTES = 65536 };

_Static_assert((int)CORDON_AUDIT_HASH == (int)CHAIN_HEX + 1, "one length of a hash");

struct walk {
	struct cordon_audit_report report;
	uint64_t line;    /* the current one, from 1 */
	bool is_started;  /* a valid line was seen */
	const char *prev; /* hash that the first line must continue; NULL: start of a log or of a
			     rotated file */
	uint64_t suspect_line; /* a line without seal: torn, if the next line says so; 0: none */
	size_t suspect_len;
};

static bool stop(struct walk *w, uint64_t line, const char *reason)
{
	w->report.broken_line = line;
	w->report.reason = reason;
	return false;
}

static const char *reason_of(enum chain_verdict v)
{
	switch (v) {
	case CHAIN_NO_SEAL:
		return "the line has no hash at its end";
	case CHAIN_BAD_HASH:
		return "the line was changed: its hash does not fit";
	case CHAIN_BAD_PREV:
		return "a line before it is missing, was added or was changed";
	case CHAIN_GOOD:
		break;
	}
	return NULL;
}

/* The first line: starts the chain, or continues that of a rotated file. */
static bool start(struct walk *w, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *prev = json_string_value(json_object_get(event, "prev"));

	if (!prev || !str_copy(w->report.first_prev, sizeof(w->report.first_prev), prev))
		return stop(w, w->line, "the line has no previous hash");
	w->report.is_continued = !str_eq(prev, chain_genesis);
	if (w->prev && !str_eq(prev, w->prev))
		return stop(w, w->line, "the file does not continue the given hash");
	if (!w->prev && w->report.is_continued && !str_eq(name, "audit_continued"))
		return stop(w, w->line, "the lines before the first one are missing");
	w->is_started = true;
	return true;
}

/* The previous line had no seal: this one must say that it was torn. */
static bool settle_suspect(struct walk *w, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	const json_t *torn = json_object_get(event, "torn_bytes");

	if (!str_eq(name, "audit_recovered") || !json_is_integer(torn) ||
	    json_integer_value(torn) != (json_int_t)w->suspect_len)
		return stop(w, w->suspect_line, reason_of(CHAIN_NO_SEAL));
	w->report.recovered++;
	w->suspect_line = 0;
	return true;
}

/* Records that lines before this one were lost. */
static void note_loss(struct walk *w, const json_t *event)
{
	json_int_t lines = json_integer_value(json_object_get(event, "lines"));

	if (!str_eq(json_string_value(json_object_get(event, "event")), "audit_lost"))
		return;
	w->report.lost += lines > 0 ? (uint64_t)lines : 1;
	if (!w->report.lost_line)
		w->report.lost_line = w->line;
}

/* True: continue. */
static bool take_line(struct walk *w, const char *line, size_t len)
{
	cleanup_json json_t *event = NULL;
	char head[CHAIN_HEX + 1];

	w->line++;
	enum chain_verdict v = chain_check(line, len, w->is_started ? w->report.head : NULL, head);
	if (v == CHAIN_NO_SEAL && !w->suspect_line) {
		w->suspect_line = w->line;
		w->suspect_len = len;
		return true;
	}
	if (v != CHAIN_GOOD)
		return stop(w, w->suspect_line ? w->suspect_line : w->line,
			    reason_of(w->suspect_line ? CHAIN_NO_SEAL : v));
	if (json_parse(line, len, 0, &event, NULL) < 0 || !json_is_object(event))
		return stop(w, w->line, "the line is not a JSON object");
	if (w->suspect_line && !settle_suspect(w, event))
		return false;
	if (!w->is_started && !start(w, event))
		return false;
	note_loss(w, event);
	memcpy(w->report.head, head, sizeof(head));
	w->report.lines++;
	return true;
}

/* Handles every complete line of b and leaves the rest in it. */
static bool take_lines(struct walk *w, struct buf *b)
{
	size_t at = 0;
	bool goes_on = true;

	for (char *end;
	     goes_on && at < b->len && (end = memchr(b->data + at, '\n', b->len - at));) {
		size_t len = (size_t)(end - b->data) - at;
		goes_on = take_line(w, b->data + at, len);
		at += len + 1;
	}
	buf_consume(b, at);
	return goes_on;
}

static int walk_file(struct walk *w, int fd, struct cordon_error **reterr)
{
	cleanup_buf struct buf b = { 0 };
	bool goes_on = true;

	buf_init(&b, LINE_MAX_BYTES);
	while (goes_on) {
		char *to = buf_reserve(&b, CHUNK_BYTES);
		if (!to) {
			(void)stop(w, w->line + 1, "the line has no end");
			return 0;
		}
		ssize_t n = read(fd, to, CHUNK_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(reterr, errno, "read the audit log");
		if (n == 0)
			break;
		buf_commit(&b, (size_t)n);
		goes_on = take_lines(w, &b);
	}
	if (goes_on && w->suspect_line)
		(void)stop(w, w->suspect_line, reason_of(CHAIN_NO_SEAL));
	else if (goes_on)
		w->report.torn_bytes = b.len;
	return 0;
}

int cordon_audit_verify(const char *path, const char *prev, struct cordon_audit_report *ret,
			struct cordon_error **reterr)
{
	struct walk w = { .prev = prev };
	struct stat st;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_errno(reterr, errno, "open the audit log '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not a regular file", path);
	memcpy(w.report.head, prev && strlen(prev) == CHAIN_HEX ? prev : chain_genesis,
	       sizeof(w.report.head));
	memcpy(w.report.first_prev, w.report.head, sizeof(w.report.first_prev));
	int r = walk_file(&w, fd, reterr);
	if (r < 0)
		return r;
	w.report.lost += loss_look(path);
	w.report.is_whole = !w.report.reason && w.report.lost == 0;
	*ret = w.report;
	return 0;
}

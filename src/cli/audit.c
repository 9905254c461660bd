/* cli/audit.c - `cordon audit`: checks, shows and follows audit logs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cordon/cordon.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/verb.h"

enum { LINE_MAX_BYTES = 65 << 20, TAIL_MAX = 100000, FOLLOW_MS = 200 };

/* The chain may be intact and the log still incomplete. */
static void print_loss(const struct cli *c, const char *path, const struct cordon_audit_report *r)
{
	if (r->lost == 0)
		return;
	printf("%s%s: %" PRIu64 " events were lost: they could not be written%s",
	       cli_style(c, STYLE_RED), path, r->lost, r->lost_line ? "; line " : "");
	if (r->lost_line)
		printf("%" PRIu64 " reports the first", r->lost_line);
	else
		printf(", nor could a line that says so (%s.lost)", path);
	printf("%s\n", cli_style(c, STYLE_PLAIN));
}

static void print_report(const struct cli *c, const char *path, const struct cordon_audit_report *r)
{
	if (r->reason)
		printf("%s%s: line %" PRIu64 ": %s%s\n", cli_style(c, STYLE_RED), path,
		       r->broken_line, r->reason, cli_style(c, STYLE_PLAIN));
	printf("%s: %s%" PRIu64 " events%s%s, head %s\n", path, r->reason ? "before it " : "",
	       r->lines, r->is_whole ? ", whole" : "",
	       r->is_continued ? ", continues another file" : "", r->head);
	print_loss(c, path, r);
	if (r->torn_bytes > 0)
		printf("%s: the last line was never finished (%" PRIu64 " bytes): its writer was "
		       "interrupted, all before it counts\n",
		       path, r->torn_bytes);
	if (r->recovered > 0)
		printf("%s: %" PRIu64 " unfinished lines were found and noted by later writers\n",
		       path, r->recovered);
}

static int print_json(const char *path, const struct cordon_audit_report *r)
{
	cleanup_json json_t *j =
		json_pack("{s:s,s:b,s:I,s:I,s:s?,s:I,s:I,s:I,s:b,s:s,s:s}", "file", path, "whole",
			  r->is_whole, "events", (json_int_t)r->lines, "broken_line",
			  (json_int_t)r->broken_line, "reason", r->reason, "torn_bytes",
			  (json_int_t)r->torn_bytes, "recovered", (json_int_t)r->recovered, "lost",
			  (json_int_t)r->lost, "continued", r->is_continued, "first_prev",
			  r->first_prev, "head", r->head);
	cleanup_free char *text = j ? json_text(j, NULL) : NULL;

	if (!text)
		return cordon_code_exit_status(CORDON_NOMEM);
	puts(text);
	return 0;
}

/* Several files are parts of one log, oldest first. */
static int verify(struct cli *c, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	const char *want = cli_value(c, "head");
	char head[CORDON_AUDIT_HASH] = "";
	int status = 0;

	for (int i = 0; i < argc; i++) {
		struct cordon_audit_report r;
		if (cordon_audit_verify(argv[i], i > 0 ? head : NULL, &r, &e) < 0)
			return cli_fail(c, e);
		if (cli_has(c, "json"))
			status |= print_json(argv[i], &r);
		else
			print_report(c, argv[i], &r);
		memcpy(head, r.head, sizeof(head));
		if (r.reason)
			return 1;
		status |= !r.is_whole;
	}
	if (want && !str_eq(want, head)) {
		cli_error(c, "the log ends with %s, not with %s: it was cut or rewritten", head,
			  want);
		return 1;
	}
	return status;
}

/* Prints a guest's text on a terminal. Bytes that could control it become question marks. JSON text
 * has no other control characters. */
static void print_safely(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		bool is_c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
		putchar(is_c1 || *p == 0x7f || *p < 0x20 ? '?' : *p);
		p += is_c1;
	}
}

static void print_event(const struct cli *c, const json_t *event)
{
	const char *time = json_string_value(json_object_get(event, "timestamp"));
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *session = json_string_value(json_object_get(event, "session_id"));
	const char *key;
	json_t *value;

	fputs(cli_style(c, STYLE_DIM), stdout);
	print_safely(time ? time : "?");
	printf("%s ", cli_style(c, STYLE_PLAIN));
	print_safely(session ? session : "?");
	printf(" %s", cli_style(c, STYLE_BOLD));
	print_safely(name ? name : "?");
	fputs(cli_style(c, STYLE_PLAIN), stdout);
	json_object_foreach((json_t *)event, key, value)
	{
		static const char *const known[] = { "timestamp", "event", "session_id", "prev",
						     "hash" };
		bool is_known = false;
		for (size_t i = 0; i < 5; i++)
			is_known |= str_eq(key, known[i]);
		cleanup_free char *text = is_known ? NULL : json_text(value, NULL);
		if (!text)
			continue;
		putchar(' ');
		print_safely(key);
		putchar('=');
		print_safely(text);
	}
	putchar('\n');
}

/* Prints the line if it passes the filters. A line that is not an event is shown as such. */
static void show_line(const struct cli *c, const char *line, size_t len)
{
	const char *event = cli_value(c, "event"), *session = cli_value(c, "session");
	cleanup_json json_t *j = NULL;

	if (json_parse(line, len, LINE_MAX_BYTES, &j, NULL) < 0 || !json_is_object(j)) {
		if (!event && !session)
			printf("%s(%zu bytes that are not an event)%s\n", cli_style(c, STYLE_RED),
			       len, cli_style(c, STYLE_PLAIN));
		return;
	}
	if ((event && !str_eq(event, json_string_value(json_object_get(j, "event")))) ||
	    (session && !str_eq(session, json_string_value(json_object_get(j, "session_id")))))
		return;
	if (!cli_has(c, "json")) {
		print_event(c, j);
		return;
	}
	fwrite(line, 1, len, stdout);
	putchar('\n');
}

struct reader {
	const struct cli *cli;
	int fd;
	struct buf pending; /* the beginning of an incomplete line */
	/* A ring of the last lines, for `tail`. */
	char **kept;
	size_t keep, count;
};

static int take_line(struct reader *r, const char *line, size_t len, struct cordon_error **reterr)
{
	if (r->keep == 0) {
		show_line(r->cli, line, len);
		return 0;
	}
	char *copy = str_ndup(line, len);
	if (!copy)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	free(r->kept[r->count % r->keep]);
	r->kept[r->count++ % r->keep] = copy;
	return 0;
}

/* Reads to the current end of the file. */
static int read_lines(struct reader *r, const char *path, struct cordon_error **reterr)
{
	for (;;) {
		char *to = buf_reserve(&r->pending, 65536);
		if (!to)
			return err_set(reterr, CORDON_LIMIT, "'%s' has a line without end", path);
		ssize_t n = read(r->fd, to, 65536);
		if (n < 0 && errno != EINTR)
			return err_errno(reterr, errno, "read '%s'", path);
		if (n <= 0)
			return 0;
		buf_commit(&r->pending, (size_t)n);
		size_t at = 0;
		for (char *end; at < r->pending.len &&
				(end = memchr(r->pending.data + at, '\n', r->pending.len - at));) {
			size_t len = (size_t)(end - r->pending.data) - at;
			int e = take_line(r, r->pending.data + at, len, reterr);
			if (e < 0)
				return e;
			at += len + 1;
		}
		buf_consume(&r->pending, at);
	}
}

static void show_kept(struct reader *r)
{
	size_t first = r->count > r->keep ? r->count - r->keep : 0;

	for (size_t i = first; i < r->count; i++)
		show_line(r->cli, r->kept[i % r->keep], strlen(r->kept[i % r->keep]));
	for (size_t i = 0; i < r->keep; i++)
		free(r->kept[i]);
	free(r->kept);
	r->kept = NULL;
	r->keep = 0;
}

static int open_log(struct reader *r, const char *path, struct cordon_error **reterr)
{
	struct stat st;

	close_fdp(&r->fd);
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (r->fd < 0)
		return err_errno(reterr, errno, "open '%s'", path);
	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(reterr, CORDON_INVALID, "'%s' is not a regular file", path);
	return 0;
}

/* Until interrupted. After a rotation it continues with the new file. */
static int follow(struct reader *r, const char *path, struct cordon_error **reterr)
{
	for (int e = 0;;) {
		struct stat ours, named;
		struct timespec pause = { .tv_nsec = FOLLOW_MS * 1000000L };
		fflush(stdout);
		if (ferror(stdout))
			return 0;
		nanosleep(&pause, NULL);
		e = read_lines(r, path, reterr);
		if (e >= 0 && stat(path, &named) == 0 && fstat(r->fd, &ours) == 0 &&
		    ours.st_ino != named.st_ino)
			e = open_log(r, path, reterr);
		if (e < 0)
			return e;
	}
}

static int count_of(const struct cli *c, size_t *ret)
{
	const char *text = cli_value(c, "lines");
	char *end = NULL;

	*ret = 10;
	if (!text)
		return 0;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n == 0 || n > TAIL_MAX)
		return cli_usage(c, "--lines must be a number from 1 to %d", TAIL_MAX);
	*ret = n;
	return 0;
}

static int show(struct cli *c, const char *path, bool is_tail)
{
	cleanup_error struct cordon_error *e = NULL;
	struct reader r = { .cli = c, .fd = -1 };
	int status = is_tail ? count_of(c, &r.keep) : 0;

	if (status)
		return status;
	buf_init(&r.pending, LINE_MAX_BYTES);
	r.kept = r.keep ? calloc(r.keep, sizeof(*r.kept)) : NULL;
	int result = r.keep && !r.kept ? err_set(&e, CORDON_NOMEM, "out of memory")
				       : open_log(&r, path, &e);
	if (result >= 0)
		result = read_lines(&r, path, &e);
	if (r.kept)
		show_kept(&r);
	if (result >= 0 && cli_has(c, "follow"))
		result = follow(&r, path, &e);
	close_fdp(&r.fd);
	buf_done(&r.pending);
	return result < 0 ? cli_fail(c, e) : 0;
}

static int run(struct cli *c, int argc, char **argv)
{
	const char *what = argv[0];

	if (str_eq(what, "verify"))
		return argc > 1 ? verify(c, argc - 1, argv + 1)
				: cli_usage(c, "verify needs a file");
	if (argc != 2)
		return cli_usage(c, "%s takes one file", what);
	return show(c, argv[1], str_eq(what, "tail"));
}

static const struct cli_option options[] = {
	{ "head", 0, "HASH", "verify: the hash that the log must end with", false },
	{ "event", 'e', "NAME", "show, tail: only events of this name", false },
	{ "session", 's', "ID", "show, tail: only events of this session", false },
	{ "lines", 'n', "N", "tail: the last N events (10)", false },
	{ "follow", 'f', NULL, "show, tail: also print new events as they are written", false },
	{ "json", 0, NULL, "print JSON, one object per line", false },
	{ 0 },
};

static const char *const words[] = { "verify", "show", "tail", NULL };

static const struct cli_example examples[] = {
	{ "cordon audit verify audit.jsonl", "check the log; names the first broken line" },
	{ "cordon audit verify audit.jsonl.1 audit.jsonl", "a rotated log, oldest part first" },
	{ "cordon audit show -e capability.denied audit.jsonl", "what was denied" },
	{ "cordon audit tail -f audit.jsonl", "follow the log" },
	{ 0 },
};

const struct verb verb_audit = {
	.name = "audit",
	.summary = "check, show or follow an audit log",
	.usage = "verify|show|tail [OPTION...] FILE...",
	.options = options,
	.run = run,
	.about = "verify checks the hash chain. Its exit status is 0 if every line is intact "
		 "and follows from the line before, and 1 if not. An unfinished last line, left "
		 "by a crash, is reported but does not break the chain. Events that could not "
		 "be written (a full disk, a missing folder) are reported too, and the status "
		 "is 1. verify prints the last hash as head. Store it elsewhere: given with "
		 "--head, it also detects a log that was cut short.\n\n"
		 "show prints the events, one per line. tail prints the last ones.",
	.words = words,
	.min_operands = 1,
	.max_operands = -1,
	.examples = examples,
};

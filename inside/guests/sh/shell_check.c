/* inside/guests/sh/shell_check.c - see shell_check.h. bash itself checks the syntax (bash -n). The
 * advice comes from reading words in command position: not in strings, comments or here-documents,
 * but also mid-line and in substitutions. */
#include "inside/guests/sh/shell_check.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/sh/shell.h"
#include "inside/lib/wire_json.h"

static const char *const watched[] = {
	"eval",   "exec",   "source",   ".",       "sudo",     "su",        "doas",    "curl",
	"wget",   "nc",     "ncat",     "netcat",  "socat",    "ssh",       "scp",     "sftp",
	"rsync",  "telnet", "ftp",      "mount",   "umount",   "chroot",    "unshare", "nsenter",
	"bwrap",  "strace", "gdb",      "insmod",  "modprobe", "iptables",  "nft",     "ip",
	"kill",   "pkill",  "killall",  "crontab", "at",       "systemctl", "service", "docker",
	"podman", "apt",    "apt-get",  "dpkg",    "pip",      "pip3",      "npm",     "useradd",
	"passwd", "reboot", "shutdown", "dd",      "mkfs",
};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

struct scan {
	const char *p, *end;
	bool seen[WATCHED];
	struct bytes *found;  /* JSON strings, comma-separated */
	struct bytes here[8]; /* delimiters of here-documents that begin on the next line */
	int here_count;
	int depth;
};

static void commands(struct scan *s, char until);

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void note(struct scan *s, const struct bytes *word)
{
	for (size_t i = 0; i < WATCHED; i++) {
		if (s->seen[i] || strlen(watched[i]) != word->len ||
		    memcmp(watched[i], word->data, word->len) != 0)
			continue;
		s->seen[i] = true;
		bytes_format(s->found,
			     "%s\"Code contains call to `%s()` which may be restricted by the "
			     "sandbox\"",
			     s->found->len ? "," : "", watched[i]);
	}
}

/* After a $: a substitution is code, the rest is text. */
static void dollar(struct scan *s)
{
	if (s->p < s->end && *s->p == '(') {
		s->p++;
		if (s->p < s->end && *s->p == '(') { /* arithmetic */
			for (int open = 1; s->p < s->end && open >= 0; s->p++)
				open += *s->p == '(' ? 1 : *s->p == ')' ? -1 : 0;
		} else {
			commands(s, ')');
		}
	} else if (s->p < s->end && *s->p == '{') {
		for (int open = 0; s->p < s->end; s->p++) {
			open += *s->p == '{' ? 1 : *s->p == '}' ? -1 : 0;
			if (!open) {
				s->p++;
				break;
			}
		}
	}
}

static void double_quotes(struct scan *s, struct bytes *word)
{
	while (s->p < s->end && *s->p != '"') {
		char c = *s->p++;
		if (c == '\\' && s->p < s->end)
			bytes_char(word, *s->p++);
		else if (c == '$')
			dollar(s);
		else if (c == '`')
			commands(s, '`');
		else
			bytes_char(word, c);
	}
	if (s->p < s->end)
		s->p++;
}

/* One word without its quotes; false: none here. */
static bool take_word(struct scan *s, struct bytes *word)
{
	const char *start = s->p;
	word->len = 0;
	while (s->p < s->end && !is_blank(*s->p) && !strchr("\n;&|()<>", *s->p)) {
		char c = *s->p++;
		if (c == '\\' && s->p < s->end)
			bytes_char(word, *s->p++);
		else if (c == '\'') {
			while (s->p < s->end && *s->p != '\'')
				bytes_char(word, *s->p++);
			s->p += s->p < s->end;
		} else if (c == '"')
			double_quotes(s, word);
		else if (c == '$')
			dollar(s);
		else if (c == '`') {
			if (s->depth && start == s->p - 1) {
				s->p--;
				break;
			}
			commands(s, '`');
		} else
			bytes_char(word, c);
	}
	return s->p > start;
}

static bool is_assignment(const struct bytes *w)
{
	size_t i = 0;
	while (i < w->len && (isalnum((unsigned char)w->data[i]) || w->data[i] == '_'))
		i++;
	return i && i < w->len && !isdigit((unsigned char)w->data[0]) &&
	       (w->data[i] == '=' || w->data[i] == '[' ||
		(w->data[i] == '+' && i + 1 < w->len && w->data[i + 1] == '='));
}

static bool is_one_of(const struct bytes *w, const char *list)
{
	char text[32];
	if (!w->len || w->len > 20)
		return false;
	snprintf(text, sizeof(text), " %.*s ", (int)w->len, w->data);
	return strstr(list, text);
}

static void here_documents(struct scan *s)
{
	for (int i = 0; i < s->here_count; i++) {
		while (s->p < s->end) {
			const char *nl = memchr(s->p, '\n', (size_t)(s->end - s->p));
			const char *line = s->p, *stop = nl ? nl : s->end;
			s->p = nl ? nl + 1 : s->end;
			while (line < stop && *line == '\t')
				line++;
			if ((size_t)(stop - line) == s->here[i].len &&
			    !memcmp(line, s->here[i].data, s->here[i].len))
				break;
		}
		bytes_done(&s->here[i]);
	}
	s->here_count = 0;
}

/* < > << <<< >> >& and the word after them. */
static void redirection(struct scan *s, struct bytes *word)
{
	bool here = s->end - s->p >= 2 && !memcmp(s->p, "<<", 2) &&
		    s->p[2 < s->end - s->p ? 2 : 1] != '<';
	if (s->end - s->p >= 2 && s->p[1] == '(') { /* process substitution */
		s->p += 2;
		commands(s, ')');
		return;
	}
	while (s->p < s->end && strchr("<>&|-", *s->p))
		s->p++;
	while (s->p < s->end && is_blank(*s->p))
		s->p++;
	take_word(s, word);
	if (here && s->here_count < 8)
		bytes_add(&s->here[s->here_count++], word->data, word->len);
}

/* A separator or bracket; returns whether a command may follow. */
static bool punctuation(struct scan *s)
{
	char c = *s->p++;
	if (c == '\n')
		here_documents(s);
	return true;
}

static void one_word(struct scan *s, struct bytes *word, bool *first)
{
	if (!take_word(s, word)) {
		s->p++;
		return;
	}
	if (!*first || is_assignment(word))
		return;
	*first = is_one_of(word, " if then else elif do while until ! time { builtin command env "
				 "nohup xargs timeout nice ");
	if (!is_one_of(word, " if then else elif do while until ! time { } fi done esac "))
		note(s, word);
}

static void commands(struct scan *s, char until)
{
	struct bytes word = { 0 };
	bool first = true;
	if (++s->depth > 64)
		s->p = s->end;
	while (s->p < s->end) {
		char c = *s->p;
		if (c == until && until) {
			s->p++;
			break;
		}
		if (is_blank(c))
			s->p++;
		else if (c == '#')
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		else if (c == '<' || c == '>')
			redirection(s, &word);
		else if (strchr("\n;&|()", c))
			first = punctuation(s);
		else
			one_word(s, &word, &first);
	}
	bytes_done(&word);
	s->depth--;
}

void shell_check_advice(const char *code, size_t len, struct bytes *ret)
{
	struct scan s = { .p = code, .end = code + len, .found = ret };
	commands(&s, 0);
	for (int i = 0; i < s.here_count; i++)
		bytes_done(&s.here[i]);
}

/* A line that ends with a backslash goes on; bash -n says nothing about it. */
static bool is_continued(const char *code, size_t len)
{
	size_t n = 0;
	while (len && code[len - 1] == '\n')
		len--;
	while (n < len && code[len - 1 - n] == '\\')
		n++;
	return n % 2 == 1;
}

static bool says(const struct bytes *said, const char *text)
{
	return said->len && memmem(said->data, said->len, text, strlen(text));
}

const char *shell_check_status(const char *code, size_t len)
{
	struct bytes text = { 0 }, said = { 0 };
	bytes_add(&text, code, len);
	bytes_char(&text, '\n'); /* the line is typed to its end */
	bool is_broken = shell_is_broken(text.data, text.len, &said);
	bool is_open = says(&said, "unexpected end of file") || says(&said, "unexpected EOF") ||
		       says(&said, "delimited by end-of-file") || is_continued(code, len);
	bytes_done(&text);
	bytes_done(&said);
	return is_open ? "incomplete" : is_broken ? "invalid" : "complete";
}

int shell_check_main(void)
{
	struct bytes code = { 0 }, text = { 0 }, found = { 0 }, out = { 0 };
	while (bytes_read(&code, 0) > 0)
		;
	bytes_char(&code, '\n');
	if (memchr(code.data, 0, code.len))
		bytes_text(&text, "the code contains a NUL");
	else if (!shell_is_broken(code.data, code.len, &text))
		text.len = 0; /* only a warning, such as an unterminated here-document */
	unsigned long line = 0;
	bytes_char(&text, 0);
	char *message = text.data, *at = strstr(message, "line ");
	if (at && at[5] >= '0' && at[5] <= '9' && strchr(at, ':')) {
		line = strtoul(at + 5, NULL, 10);
		message = strchr(at, ':') + 2;
	}
	message[strcspn(message, "\n")] = 0;
	if (!*message)
		shell_check_advice(code.data, code.len, &found);
	bytes_format(&out, "{\"valid\":%s,\"error\":", *message ? "false" : "true");
	if (*message)
		json_quote(&out, message, strlen(message));
	else
		bytes_text(&out, "null");
	if (line)
		bytes_format(&out, ",\"line\":%lu,\"column\":null,\"warnings\":[", line);
	else
		bytes_text(&out, ",\"line\":null,\"column\":null,\"warnings\":[");
	bytes_add(&out, found.data, found.len);
	bytes_text(&out, "]}\n");
	int failed = bytes_write(1, out.data, out.len);
	bytes_done(&code);
	bytes_done(&text);
	bytes_done(&found);
	bytes_done(&out);
	return failed < 0;
}

/* tools/sanitize.c - removes what error texts tell about the host: paths, process ids, host names,
 * stack traces. */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cordon/session.h"

enum { DEFAULT_CHARS = 500 };

struct text {
	const char *start, *end;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Characters that can be inside a path. */
static bool is_path_char(char c)
{
	return (unsigned char)c > 0x20 && !strchr("\"'`<>|;,:()[]{}*?", c);
}

static size_t run_of(const char *p, const char *end, bool (*is)(char))
{
	size_t n = 0;

	while (p + n < end && is(p[n]))
		n++;
	return n;
}

/* Punctuation at the end of a path belongs to the sentence. */
static size_t trim(const char *p, size_t n)
{
	while (n > 1 && strchr(".!/\\", p[n - 1]))
		n--;
	return n;
}

static bool has_known_root(const char *p, size_t n)
{
	static const char *const roots[] = {
		"Users", "home",      "tmp",     "var",     "etc",     "opt",  "root",
		"srv",   "mnt",       "usr",     "proc",    "sys",     "dev",  "run",
		"media", "data",      "lib",     "lib64",   "bin",     "sbin", "boot",
		"work",  "workspace", "private", "Library", "Volumes", "nix",
	};
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		size_t len = strlen(roots[i]);
		if (n > len && memcmp(p + 1, roots[i], len) == 0 &&
		    (n == len + 1 || p[len + 1] == '/'))
			return true;
	}
	return false;
}

static bool may_start_path(char before)
{
	return !is_word(before) && before != '.' && before != '/' && before != '-';
}

/* /x/y, ~/x, ~user/x */
static size_t match_unix_path(struct text t, const char *p)
{
	char before = p > t.start ? p[-1] : ' ';
	const char *slash = p;

	if (!may_start_path(before) || (before == ':' && t.end - p > 1 && p[1] == '/'))
		return 0; /* "//" belongs to a URL */
	if (*p == '~')
		slash = p + 1 + run_of(p + 1, t.end, is_word);
	if (slash >= t.end || *slash != '/' || slash + 1 >= t.end || !is_path_char(slash[1]))
		return 0;
	size_t n = trim(p, run_of(p, t.end, is_path_char));
	if (*p == '~' || has_known_root(p, n) || memchr(p + 1, '/', n - 1))
		return n;
	return 0;
}

/* C:\x, C:/x, \\server\share */
static size_t match_windows_path(struct text t, const char *p)
{
	char before = p > t.start ? p[-1] : ' ';
	size_t lead = 0;

	if (is_word(before) || before == '\\')
		return 0;
	if (t.end - p > 3 && isalpha((unsigned char)p[0]) && p[1] == ':' &&
	    (p[2] == '\\' || p[2] == '/') && p[3] != '/')
		lead = 2;
	else if (t.end - p > 3 && p[0] == '\\' && p[1] == '\\' && is_word(p[2]))
		lead = 1;
	return lead ? trim(p, lead + run_of(p + lead, t.end, is_path_char)) : 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t port_at(const char *p, const char *end)
{
	size_t n = p < end && *p == ':' ? run_of(p + 1, end, is_digit) : 0;

	return n > 0 && n <= 5 ? n + 1 : 0;
}

static bool is_address_char(char c)
{
	return isxdigit((unsigned char)c) || c == ':' || c == '.';
}

/* The longest address at p that inet_pton accepts; *ret_family: its family. */
static size_t address_at(const char *p, const char *end, int *ret_family)
{
	char copy[64];
	unsigned char bytes[16];
	size_t n = run_of(p, end, is_address_char);

	for (; n >= 2 && n < sizeof(copy); n--) {
		if (n < (size_t)(end - p) && is_word(p[n]))
			continue;
		memcpy(copy, p, n);
		copy[n] = '\0';
		*ret_family = strchr(copy, ':') ? AF_INET6 : AF_INET;
		if (inet_pton(*ret_family, copy, bytes) == 1 && strcmp(copy, "::") != 0)
			return n;
	}
	return 0;
}

static size_t zone_at(const char *p, const char *end)
{
	return p < end && *p == '%' ? 1 + run_of(p + 1, end, is_word) : 0;
}

/* IPv4 and IPv6, with port, brackets and zone. */
static size_t match_address(struct text t, const char *p)
{
	char before = p > t.start ? p[-1] : ' ';
	bool has_bracket = *p == '[';
	int family = 0;

	if (is_word(before) || before == '.' || before == ':')
		return 0;
	size_t n = address_at(p + has_bracket, t.end, &family);
	if (n == 0 || (has_bracket && family != AF_INET6))
		return 0;
	n += has_bracket;
	if (family == AF_INET6)
		n += zone_at(p + n, t.end);
	if (has_bracket && (p + n >= t.end || p[n++] != ']'))
		return 0;
	return family == AF_INET || has_bracket ? n + port_at(p + n, t.end) : n;
}

static bool is_host_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

/* The host and the path of a URL, after "://". */
static size_t match_url(struct text t, const char *p)
{
	static const char stops[] = "\"'`<>|;,()";
	size_t n = 0;

	if (p - t.start < 3 || memcmp(p - 3, "://", 3) != 0)
		return 0;
	while (p + n < t.end && (unsigned char)p[n] > 0x20 && !strchr(stops, p[n]))
		n++;
	return trim(p, n);
}

/* Whether the words before p announce a host: "connect to ", "server '". */
static bool is_after_host_word(struct text t, const char *p)
{
	static const char *const words[] = { "connect",    "connecting", "connected", "resolve",
					     "resolving",  "host",       "hostname",  "server",
					     "connection", "lookup" };
	while (p > t.start && strchr(" '\"`:=", p[-1]))
		p--;
	if (p - t.start > 3 && strncasecmp(p - 3, " to", 3) == 0)
		p -= 3;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t len = strlen(words[i]);
		if ((size_t)(p - t.start) >= len && strncasecmp(p - len, words[i], len) == 0 &&
		    (p - len == t.start || !is_word(p[-(ptrdiff_t)len - 1])))
			return true;
	}
	return false;
}

static size_t match_host(struct text t, const char *p)
{
	char before = p > t.start ? p[-1] : 'x';

	if (!strchr(" '\"`:=", before) || !isalnum((unsigned char)*p))
		return 0; /* checked before measuring the word, so each word is measured once, not
			     once per letter */
	size_t n = run_of(p, t.end, is_host_char);
	while (n > 1 && strchr(".-", p[n - 1]))
		n--;
	size_t port = port_at(p + n, t.end);
	bool is_quoted = strchr("'\"`", before) && p + n < t.end && p[n] == before;
	bool looks_like_one = memchr(p, '.', n) || port > 0 || is_quoted ||
			      (n == 9 && strncasecmp(p, "localhost", 9) == 0);
	return looks_like_one && is_after_host_word(t, p) ? n + port : 0;
}

/* The length of "process", "pid" or "process pid" at p. */
static size_t pid_word_at(const char *p, const char *end)
{
	static const char *const words[] = { "process pid", "process", "pid" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t len = strlen(words[i]);
		if ((size_t)(end - p) > len && strncasecmp(p, words[i], len) == 0 &&
		    !is_word(p[len]))
			return len;
	}
	return 0;
}

static bool is_pid_lead(char c)
{
	return c && strchr(" :=#'\"(", c);
}

/* process '123', process 123, PID 123, pid=123 */
static size_t match_pid(struct text t, const char *p)
{
	size_t n = p > t.start && is_word(p[-1]) ? 0 : pid_word_at(p, t.end);

	if (n == 0)
		return 0;
	n += run_of(p + n, t.end, is_pid_lead);
	size_t digits = run_of(p + n, t.end, is_digit);
	if (digits == 0 || (p + n + digits < t.end && is_word(p[n + digits])))
		return 0;
	char quote = p[n - 1];
	n += digits;
	return n + ((quote == '\'' || quote == '"') && p + n < t.end && p[n] == quote);
}

/* Removes a stack trace. If there is no other text, its last line remains: it names the error. */
static struct text without_trace(const char *message, size_t len)
{
	static const char *const marks[] = { "Traceback",
					     "Call stack:", "Stack trace:", "    at " };
	struct text t = { message, message + len };
	const char *cut = t.end;

	for (const char *line = t.start; line < cut;) {
		for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
			if (t.end - line >= (ptrdiff_t)strlen(marks[i]) &&
			    strncasecmp(line, marks[i], strlen(marks[i])) == 0 && line < cut)
				cut = line;
		const char *next = memchr(line, '\n', (size_t)(t.end - line));
		line = next ? next + 1 : t.end;
	}
	while (cut > t.start && isspace((unsigned char)cut[-1]))
		cut--;
	if (cut > t.start)
		return (struct text){ t.start, cut };
	while (t.end > t.start && isspace((unsigned char)t.end[-1]))
		t.end--;
	const char *newline = memrchr(t.start, '\n', (size_t)(t.end - t.start));
	return (struct text){ newline ? newline + 1 : t.start, t.end };
}

/* Stops when out has enough bytes, since the rest would be cut off. */
static int mask(struct text t, size_t enough, struct buf *out)
{
	static const struct {
		size_t (*match)(struct text t, const char *p);
		const char *instead;
	} rules[] = {
		{ match_url, "[host]" },       { match_windows_path, "[path]" },
		{ match_unix_path, "[path]" }, { match_pid, "[pid]" },
		{ match_address, "[host]" },   { match_host, "[host]" },
	};
	int r = 0;

	for (const char *p = t.start; r >= 0 && p < t.end && out->len < enough;) {
		size_t n = 0, i = 0;
		for (; n == 0 && i < sizeof(rules) / sizeof(*rules); i++)
			n = rules[i].match(t, p);
		if (n > 0) {
			r = buf_add_str(out, rules[i - 1].instead);
			p += n;
		} else {
			r = buf_add_char(out, *p++);
		}
	}
	return r;
}

/* At most max characters; longer text ends with "...". */
static char *shorten(struct buf *b, size_t max)
{
	size_t at = 0, chars = 0, cut = 0;

	for (; at < b->len; chars++) {
		int step = str_utf8_next(b->data + at, b->len - at);
		if (chars + 3 <= max)
			cut = at;
		if (chars == max)
			break;
		at += (size_t)(step < 0 ? -step : step);
	}
	if (at < b->len) {
		b->len = cut;
		b->data[cut] = '\0';
		if (max >= 3 && buf_add_str(b, "...") < 0)
			return NULL;
	}
	return b->len > 0 ? buf_take(b) : str_dup("");
}

char *cordon_sanitize(const char *message, size_t max)
{
	cleanup_buf struct buf out = { 0 };
	buf_init(&out, SIZE_MAX);
	if (!message || !*message)
		return str_dup("Unknown error");
	cleanup_json json_t *valid = json_string_lossy(message, strlen(message));
	if (!valid)
		return NULL;
	struct text t = without_trace(json_string_value(valid), json_string_length(valid));
	if (max == 0)
		max = DEFAULT_CHARS;
	/* A character has at most four bytes. One more than max shows that the text is longer. */
	if (mask(t, max < SIZE_MAX / 8 ? 4 * (max + 1) : SIZE_MAX, &out) < 0)
		return NULL;
	return shorten(&out, max);
}

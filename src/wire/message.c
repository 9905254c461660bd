/* wire/message.c - see message.h. The fields of each message and their types. */
#include "wire/message.h"

#include <string.h>

#include "base/str.h"
#include "wire/scan.h"

enum field {
	FIELD_TYPE,
	FIELD_ID,
	FIELD_CALL,
	FIELD_TOOL,
	FIELD_ARGS,
	FIELD_MIME,
	FIELD_ENCODING,
	FIELD_DATA,
	FIELD_NAME,
	FIELD_OK,
	FIELD_VALUE,
	FIELD_TEXT,
	FIELD_ERROR,
	FIELD_EXIT_CODE,
	FIELD_WARNINGS,
	FIELD_DENIALS,
	FIELD_RESTARTED,
	FIELD_VERSION,
	FIELD_TOKEN,
	FIELD_GUEST,
	FIELD_LANGUAGE,
	FIELD_TEMPLATE,
	FIELD_CWD,
	FIELD_BUFFER,
	FIELD_BYTES,
	FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
	[FIELD_TYPE] = "type",         [FIELD_ID] = "id",
	[FIELD_CALL] = "call",         [FIELD_TOOL] = "tool",
	[FIELD_ARGS] = "args",         [FIELD_MIME] = "mime",
	[FIELD_ENCODING] = "encoding", [FIELD_DATA] = "data",
	[FIELD_NAME] = "name",         [FIELD_OK] = "ok",
	[FIELD_VALUE] = "value",       [FIELD_TEXT] = "text",
	[FIELD_ERROR] = "error",       [FIELD_EXIT_CODE] = "exit_code",
	[FIELD_DENIALS] = "denials",   [FIELD_RESTARTED] = "restarted",
	[FIELD_VERSION] = "version",   [FIELD_TOKEN] = "token",
	[FIELD_GUEST] = "guest",       [FIELD_LANGUAGE] = "language",
	[FIELD_TEMPLATE] = "template", [FIELD_WARNINGS] = "warnings",
	[FIELD_CWD] = "cwd",           [FIELD_BUFFER] = "buffer",
	[FIELD_BYTES] = "bytes",
};

#define MALFORMED "Malformed IPC message: "

static int malformed(struct cordon_error **reterr, enum field f, const char *must)
{
	return err_set(reterr, CORDON_PROTOCOL, MALFORMED "'%s' must be %s", field_names[f], must);
}

/* A required string; decoded in place. */
static int take_string(const struct scan_member *m, enum field f, struct wire_text *ret,
		       struct cordon_error **reterr)
{
	if (!scan_is_string(m[f].value))
		return malformed(reterr, f, "a scalar string");
	struct scan_slice s = scan_take_string(m[f].value);
	*ret = (struct wire_text){ s.data, s.len };
	return 0;
}

/* An optional string; null counts as absent. */
static int take_optional(const struct scan_member *m, enum field f, struct wire_text *ret,
			 struct cordon_error **reterr)
{
	if (!m[f].value.data || scan_is_null(m[f].value))
		return 0;
	return take_string(m, f, ret, reterr);
}

static int take_number(const struct scan_member *m, enum field f, uint64_t *ret,
		       struct cordon_error **reterr)
{
	int64_t n;

	if (!scan_get_int(m[f].value, &n) || n < 1)
		return malformed(reterr, f, "a positive integer");
	*ret = (uint64_t)n;
	return 0;
}

/* The raw JSON of a member, with a NUL after it. That overwrites a character (comma, bracket,
 * blank) which was already parsed. */
static struct wire_text take_raw(struct scan_slice s)
{
	s.data[s.len] = '\0';
	return (struct wire_text){ s.data, s.len };
}

static bool is_empty_array(struct scan_slice s)
{
	if (*s.data != '[')
		return false;
	for (size_t i = 1; i + 1 < s.len; i++)
		if (!strchr(" \t\r\n", s.data[i]))
			return false;
	return true;
}

static int parse_tool_call(const struct scan_member *m, struct wire_message *ret,
			   struct cordon_error **reterr)
{
	struct scan_slice args = m[FIELD_ARGS].value;
	int r = take_number(m, FIELD_ID, &ret->id, reterr);

	if (r >= 0)
		r = take_number(m, FIELD_CALL, &ret->call, reterr);
	if (r >= 0)
		r = take_string(m, FIELD_TOOL, &ret->tool, reterr);
	if (r < 0)
		return r;
	/* R writes an empty named list as []. */
	if (!args.data || scan_is_null(args) || is_empty_array(args))
		ret->args = (struct wire_text){ "{}", 2 };
	else if (scan_is_object(args))
		ret->args = take_raw(args);
	else
		return malformed(reterr, FIELD_ARGS, "a list or null");
	return 0;
}

static bool is_base64(struct wire_text t)
{
	size_t len = t.len;

	if (len % 4 != 0)
		return false;
	for (int pad = 0; pad < 2 && len > 0 && t.data[len - 1] == '='; pad++)
		len--;
	for (size_t i = 0; i < len; i++) {
		char c = t.data[i];
		bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (!is_letter && !(c >= '0' && c <= '9') && c != '+' && c != '/')
			return false;
	}
	return true;
}

/* type/subtype, optionally with parameters: printable, and nothing that could end a header line. */
static bool is_mime(struct wire_text t)
{
	if (t.len < 3 || t.len > 255 || !memchr(t.data, '/', t.len))
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (t.data[i] < 0x20 || t.data[i] > 0x7e)
			return false;
	return true;
}

static int parse_output(const struct scan_member *m, struct wire_message *ret,
			struct cordon_error **reterr)
{
	struct wire_text encoding = { 0 };
	int r = take_number(m, FIELD_ID, &ret->id, reterr);

	if (r >= 0)
		r = take_string(m, FIELD_MIME, &ret->mime, reterr);
	if (r >= 0)
		r = take_string(m, FIELD_ENCODING, &encoding, reterr);
	if (r >= 0)
		r = take_string(m, FIELD_DATA, &ret->data, reterr);
	if (r >= 0)
		r = take_optional(m, FIELD_NAME, &ret->name, reterr);
	if (r < 0)
		return r;
	if (!is_mime(ret->mime))
		return malformed(reterr, FIELD_MIME, "a MIME type");
	if (m[FIELD_VALUE].value.data && !scan_get_bool(m[FIELD_VALUE].value, &ret->is_value))
		return malformed(reterr, FIELD_VALUE, "true or false");
	ret->is_base64 = str_eq(encoding.data, "base64");
	if (!ret->is_base64 && !str_eq(encoding.data, "text"))
		return malformed(reterr, FIELD_ENCODING, "'base64' or 'text'");
	if (ret->is_base64 && !is_base64(ret->data))
		return malformed(reterr, FIELD_DATA, "base64");
	return 0;
}

static int parse_error(struct scan_slice raw, struct wire_message *ret,
		       struct cordon_error **reterr)
{
	struct scan_member m[] = {
		{ .name = "kind" },      { .name = "name" }, { .name = "message" },
		{ .name = "traceback" }, { .name = "line" },
	};
	struct wire_text *texts[] = { &ret->error.kind, &ret->error.name, &ret->error.message,
				      &ret->error.traceback };
	const char *why = scan_object(raw.data, raw.len, m, sizeof(m) / sizeof(*m));

	if (why)
		return err_set(reterr, CORDON_PROTOCOL, MALFORMED "'error': %s", why);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!m[i].value.data || scan_is_null(m[i].value))
			continue;
		if (!scan_is_string(m[i].value))
			return err_set(reterr, CORDON_PROTOCOL,
				       MALFORMED "'error.%s' must be a scalar string", m[i].name);
		struct scan_slice s = scan_take_string(m[i].value);
		*texts[i] = (struct wire_text){ s.data, s.len };
	}
	if (m[4].value.data && !scan_is_null(m[4].value) &&
	    (!scan_get_int(m[4].value, &ret->error.line) || ret->error.line < 0))
		return err_set(reterr, CORDON_PROTOCOL,
			       MALFORMED "'error.line' must be a positive integer");
	ret->has_error = true;
	return 0;
}

static int parse_exit_code(const struct scan_member *m, struct wire_message *ret,
			   struct cordon_error **reterr)
{
	int64_t n;

	if (!m[FIELD_EXIT_CODE].value.data || scan_is_null(m[FIELD_EXIT_CODE].value))
		return 0;
	if (!scan_get_int(m[FIELD_EXIT_CODE].value, &n))
		return malformed(reterr, FIELD_EXIT_CODE, "an integer");
	ret->exit_code = (int)(n & 0xff); /* like an exit status */
	ret->has_exit_code = true;
	return 0;
}

/* What the runtime reports besides the result: denials, lost state, its directory, advice. */
static int parse_account(const struct scan_member *m, struct wire_message *ret,
			 struct cordon_error **reterr)
{
	struct scan_slice denials = m[FIELD_DENIALS].value, restarted = m[FIELD_RESTARTED].value;

	if (denials.data && *denials.data != '[')
		return malformed(reterr, FIELD_DENIALS, "an array");
	if (restarted.data && !scan_get_bool(restarted, &ret->is_restarted))
		return malformed(reterr, FIELD_RESTARTED, "true or false");
	if (denials.data)
		ret->denials = take_raw(denials);
	if (m[FIELD_BUFFER].value.data && !scan_is_object(m[FIELD_BUFFER].value))
		return malformed(reterr, FIELD_BUFFER, "an object");
	if (m[FIELD_BUFFER].value.data)
		ret->buffer = take_raw(m[FIELD_BUFFER].value);
	if (m[FIELD_WARNINGS].value.data)
		ret->warnings = take_raw(m[FIELD_WARNINGS].value);
	return take_optional(m, FIELD_CWD, &ret->cwd, reterr);
}

static int parse_result(const struct scan_member *m, struct wire_message *ret,
			struct cordon_error **reterr)
{
	struct scan_slice error = m[FIELD_ERROR].value;
	int r = take_number(m, FIELD_ID, &ret->id, reterr);

	if (r < 0)
		return r;
	if (!scan_get_bool(m[FIELD_OK].value, &ret->ok))
		return malformed(reterr, FIELD_OK, "true or false");
	r = parse_exit_code(m, ret, reterr);
	if (r >= 0)
		r = take_optional(m, FIELD_TEXT, &ret->text, reterr);
	if (r < 0)
		return r;
	if (error.data && !scan_is_null(error)) {
		if (!scan_is_object(error))
			return malformed(reterr, FIELD_ERROR, "an object");
		r = parse_error(error, ret, reterr);
		if (r < 0)
			return r;
	}
	if (!ret->ok && !ret->has_error && !ret->has_exit_code)
		return malformed(reterr, FIELD_ERROR, "an object");
	r = parse_account(m, ret, reterr);
	if (r >= 0 && m[FIELD_VALUE].value.data)
		ret->value = take_raw(m[FIELD_VALUE].value);
	return r;
}

static int scan_fields(char *line, size_t len, struct scan_member *m, struct wire_text *ret_type,
		       struct cordon_error **reterr)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		m[i] = (struct scan_member){ .name = field_names[i] };
	const char *why = scan_object(line, len, m, FIELD_COUNT);
	if (why)
		return err_set(reterr, CORDON_PROTOCOL, MALFORMED "%s", why);
	return take_string(m, FIELD_TYPE, ret_type, reterr);
}

int message_parse(char *line, size_t len, struct wire_message *ret, struct cordon_error **reterr)
{
	struct scan_member m[FIELD_COUNT];
	struct wire_text type = { 0 };
	int r = scan_fields(line, len, m, &type, reterr);

	if (r < 0)
		return r;
	*ret = (struct wire_message){ .type = WIRE_UNKNOWN };
	if (str_eq(type.data, "tool_call")) {
		ret->type = WIRE_TOOL_CALL;
		return parse_tool_call(m, ret, reterr);
	}
	if (str_eq(type.data, "output")) {
		ret->type = WIRE_OUTPUT;
		return parse_output(m, ret, reterr);
	}
	if (str_eq(type.data, "result")) {
		ret->type = WIRE_RESULT;
		return parse_result(m, ret, reterr);
	}
	if (str_eq(type.data, "buffer")) {
		ret->type = WIRE_BUFFER;
		r = take_number(m, FIELD_ID, &ret->id, reterr);
		return r < 0 || !m[FIELD_BYTES].value.data
			       ? r
			       : take_number(m, FIELD_BYTES, &ret->bytes, reterr);
	}
	ret->name = type;
	return 0;
}

enum wire_type message_type(const char *line, size_t len)
{
	static const struct {
		const char *start;
		enum wire_type type;
	} starts[] = { { "{\"type\":\"result\"", WIRE_RESULT },
		       { "{\"type\":\"output\"", WIRE_OUTPUT },
		       { "{\"type\":\"tool_call\"", WIRE_TOOL_CALL } };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (len >= strlen(starts[i].start) &&
		    memcmp(line, starts[i].start, strlen(starts[i].start)) == 0)
			return starts[i].type;
	return WIRE_UNKNOWN;
}

int message_parse_hello(char *line, size_t len, struct wire_message *ret,
			struct wire_text *ret_token, int64_t *ret_version,
			struct cordon_error **reterr)
{
	struct scan_member m[FIELD_COUNT];
	struct wire_text type = { 0 };
	int r = scan_fields(line, len, m, &type, reterr);

	if (r < 0)
		return r;
	*ret = (struct wire_message){ .type = WIRE_HELLO };
	if (str_eq(type.data, "hello") && scan_is_string(m[FIELD_TOKEN].value))
		(void)take_string(m, FIELD_TOKEN, ret_token, NULL);
	(void)scan_get_int(m[FIELD_VERSION].value, ret_version);
	(void)scan_get_bool(m[FIELD_TEMPLATE].value, &ret->is_template);
	r = take_optional(m, FIELD_GUEST, &ret->guest, reterr);
	if (r >= 0)
		r = take_optional(m, FIELD_LANGUAGE, &ret->language, reterr);
	return r;
}

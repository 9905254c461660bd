/* cli/trace_option.c - see trace_option.h. */
#include "cli/trace_option.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_MAX = 1000000 };

/* An empty variable is as good as none. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* The one for traces, or the one for everything. */
static const char *either(const char *suffix)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_TRACES_%s", suffix);
	const char *value = variable(name);
	(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", suffix);
	return value ? value : variable(name);
}

static int read_number(const char *name, const char *text, uint64_t *ret,
		       struct cordon_error **reterr)
{
	char *end = NULL;

	if (!text)
		return 0;
	errno = 0;
	unsigned long n = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
	if (n == 0 || n > NUMBER_MAX || errno || *end)
		return err_set(reterr, CORDON_INVALID, "%s must be a number from 1 to %d", name,
			       NUMBER_MAX);
	*ret = n;
	return 0;
}

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* %XX, in place. */
static void decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (from[0] == '%' && isxdigit((unsigned char)from[1]) &&
		    isxdigit((unsigned char)from[2])) {
			*to++ = (char)(hex(from[1]) << 4 | hex(from[2]));
			from += 2;
		} else {
			*to++ = *from;
		}
	*to = '\0';
}

/* What the gateway would refuse is refused before the server starts. */
static bool is_header(const char *name, const char *value)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("!#$%&'*+-.^_`|~", *name))
			return false;
	for (; *value; value++)
		if ((unsigned char)*value < 0x20 || *value == 0x7f)
			return false;
	return true;
}

static char *trim(char *text)
{
	text += strspn(text, " \t");
	size_t len = strlen(text);
	while (len > 0 && strchr(" \t", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* "name=value,name=value", values with %XX. */
static int read_headers(const char *list, struct strlist *ret, struct cordon_error **reterr)
{
	cleanup_free char *copy = list ? str_dup(list) : NULL;
	size_t len = copy ? strlen(copy) : 0;
	char *next = copy, *pair;
	int r = !list || copy ? 0 : err_set(reterr, CORDON_NOMEM, "out of memory");

	while (r == 0 && (pair = strsep(&next, ","))) {
		char *value = strchr(pair, '=');
		if (!*trim(pair))
			continue;
		if (value)
			*value++ = '\0';
		if (value)
			decode(value = trim(value));
		if (!value || !is_header(trim(pair), value))
			return err_set(reterr, CORDON_INVALID,
				       "OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE,NAME=VALUE");
		cleanup_free char *line = str_printf("%s: %s", trim(pair), value);
		r = line ? strlist_add(ret, line) : -CORDON_NOMEM;
	}
	if (copy)
		explicit_bzero(copy, len);
	return r == -CORDON_NOMEM ? err_set(reterr, CORDON_NOMEM, "out of memory") : r;
}

static const char *find_url(const struct cli *c, bool *ret_whole)
{
	const char *given = cli_value(c, "otlp"), *exporter = variable("OTEL_TRACES_EXPORTER");
	const char *disabled = variable("OTEL_SDK_DISABLED");

	if (given)
		return given;
	if ((disabled && strcasecmp(disabled, "true") == 0) || str_eq(exporter, "none"))
		return NULL;
	given = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	*ret_whole = given;
	return given ? given : variable("OTEL_EXPORTER_OTLP_ENDPOINT");
}

static int read_numbers(struct tracer_options *t, struct cordon_error **reterr)
{
	int r = read_number("OTEL_EXPORTER_OTLP_TIMEOUT", either("TIMEOUT"), &t->timeout_ms,
			    reterr);

	if (r == 0)
		r = read_number("OTEL_BSP_SCHEDULE_DELAY", variable("OTEL_BSP_SCHEDULE_DELAY"),
				&t->delay_ms, reterr);
	if (r == 0)
		r = read_number("OTEL_BSP_MAX_QUEUE_SIZE", variable("OTEL_BSP_MAX_QUEUE_SIZE"),
				&t->queue, reterr);
	return r;
}

static int read_all(struct trace_option *o, struct cordon_error **reterr)
{
	const char *protocol = either("PROTOCOL");

	if (str_eq(protocol, "grpc"))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, but traces are sent as "
			       "http/json: name a collector's HTTP port, such as 4318");
	int r = read_headers(either("HEADERS"), &o->headers, reterr);
	if (r == 0)
		r = read_numbers(&o->tracer, reterr);
	const char *name = variable("OTEL_SERVICE_NAME"), *ca = either("CERTIFICATE");
	o->texts[1] = str_dup(name);
	o->texts[2] = str_dup(ca);
	if (r == 0 && ((name && !o->texts[1]) || (ca && !o->texts[2])))
		r = err_set(reterr, CORDON_NOMEM, "out of memory");
	o->tracer.name = o->texts[1];
	o->tracer.ca_file = o->texts[2];
	o->tracer.headers = o->headers.count ? (const char *const *)o->headers.items : NULL;
	return r;
}

int trace_option_read(const struct cli *c, struct trace_option *ret, struct cordon_error **reterr)
{
	*ret = (struct trace_option){ 0 };
	const char *url = find_url(c, &ret->tracer.is_whole);
	if (!url)
		return 0;
	ret->tracer.url = ret->texts[0] = str_dup(url);
	int r = ret->tracer.url ? read_all(ret, reterr)
				: err_set(reterr, CORDON_NOMEM, "out of memory");
	/* Child processes need not know them. */
	(void)unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	(void)unsetenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
	if (r < 0)
		trace_option_done(ret);
	return r;
}

void trace_option_done(struct trace_option *o)
{
	for (size_t i = 0; i < o->headers.count; i++)
		explicit_bzero(o->headers.items[i], strlen(o->headers.items[i]));
	strlist_done(&o->headers);
	for (size_t i = 0; i < sizeof(o->texts) / sizeof(*o->texts); i++)
		free(o->texts[i]);
	*o = (struct trace_option){ 0 };
}

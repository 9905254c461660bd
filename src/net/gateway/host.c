/* net/gateway/host.c - see host.h. */
#include "net/gateway/host.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#ifdef HAVE_IDN2
#include <idn2.h>
#endif

#include "base/str.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Longer than a valid name, to have room for escapes and Unicode. */
enum { RAW_MAX = 1024 };

static int percent_decode(const char *text, size_t len, char ret[static RAW_MAX + 1],
			  struct cordon_error **reterr)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c == '%') {
			int hi = i + 2 < len ? hex_value(text[i + 1]) : -1;
			int lo = i + 2 < len ? hex_value(text[i + 2]) : -1;
			if (hi < 0 || lo < 0)
				return err_set(reterr, CORDON_INVALID,
					       "host name has a stray percent sign");
			c = (char)(hi << 4 | lo);
			i += 2;
		}
		if (c == '\0')
			return err_set(reterr, CORDON_INVALID, "host name has a NUL byte");
		ret[n++] = c;
	}
	ret[n] = '\0';
	return 0;
}

static bool is_ascii(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

static bool has_punycode(const char *s)
{
	for (const char *label = s; label; label = strchr(label, '.')) {
		label += *label == '.';
		if (strncasecmp(label, "xn--", 4) == 0)
			return true;
	}
	return false;
}

#ifdef HAVE_IDN2
static int to_ascii(const char *raw, char ret[static HOST_TEXT_SIZE], struct cordon_error **reterr)
{
	uint8_t *out = NULL;
	int r = idn2_lookup_u8((const uint8_t *)raw, &out, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);

	if (r != IDN2_OK)
		return err_set(reterr, CORDON_INVALID, "host name is not valid IDNA: %s",
			       idn2_strerror(r));
	bool fits = str_copy(ret, HOST_TEXT_SIZE, (const char *)out);
	idn2_free(out);
	return fits ? 0 : err_set(reterr, CORDON_INVALID, "host name is too long");
}
#else
static int to_ascii(const char *raw, char ret[static HOST_TEXT_SIZE], struct cordon_error **reterr)
{
	if (!is_ascii(raw))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "host name is not ASCII and this build has no libidn2: write it in "
			       "its xn-- form, or install libidn2-dev and build again");
	return str_copy(ret, HOST_TEXT_SIZE, raw)
		       ? 0
		       : err_set(reterr, CORDON_INVALID, "host name is too long");
}
#endif

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int check_labels(char *name, struct cordon_error **reterr)
{
	size_t label = 0, len = strlen(name);

	if (len > 0 && name[len - 1] == '.')
		name[--len] = '\0';
	if (len == 0 || len > HOST_NAME_MAX_LEN)
		return err_set(reterr, CORDON_INVALID,
			       len ? "host name is too long" : "host name is empty");
	for (size_t i = 0; i <= len; i++) {
		if (name[i] == '.' || name[i] == '\0') {
			if (label == 0 || label > 63)
				return err_set(reterr, CORDON_INVALID,
					       "host name has an empty or too long label");
			label = 0;
			continue;
		}
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] | 0x20);
		if (!is_name_char(name[i]))
			return err_set(reterr, CORDON_INVALID,
				       "host name has a forbidden character (0x%02x)",
				       (unsigned char)name[i]);
		label++;
	}
	return 0;
}

/* The URL standard's "ends in a number" check: such a name is an IPv4 address or invalid. */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *last = dot ? dot + 1 : name;

	if (strspn(last, "0123456789") == strlen(last))
		return true;
	return last[0] == '0' && (last[1] == 'x' || last[1] == 'X') &&
	       strspn(last + 2, "0123456789abcdefABCDEF") == strlen(last + 2);
}

void host_from_address(const struct address *a, struct host *ret)
{
	char text[ADDRESS_TEXT_SIZE];

	*ret = (struct host){ .addr = *a };
	address_text(a, text);
	(void)snprintf(ret->name, sizeof(ret->name), a->family == 6 ? "[%s]" : "%s", text);
}

static int parse_decoded(const char *raw, struct host *ret, struct cordon_error **reterr)
{
	struct host h = { 0 };
	int r;

	if (is_ascii(raw) && !has_punycode(raw))
		r = str_copy(h.name, sizeof(h.name), raw)
			    ? 0
			    : err_set(reterr, CORDON_INVALID, "host name is too long");
	else
		r = to_ascii(raw, h.name, reterr);
	if (r < 0)
		return r;
	r = check_labels(h.name, reterr);
	if (r < 0)
		return r;
	if (ends_in_number(h.name)) {
		struct address a;
		if (!address_parse_v4(h.name, strlen(h.name), &a))
			return err_set(reterr, CORDON_INVALID,
				       "'%s' looks like an IPv4 address but is none", h.name);
		host_from_address(&a, &h);
	}
	*ret = h;
	return 0;
}

static int parse_bracketed(const char *text, size_t len, struct host *ret,
			   struct cordon_error **reterr)
{
	struct address a;

	if (len < 2 || text[len - 1] != ']' || !address_parse_v6(text + 1, len - 2, &a))
		return err_set(reterr, CORDON_INVALID, "not an IPv6 address in brackets");
	host_from_address(&a, ret);
	return 0;
}

int host_parse(const char *text, size_t len, struct host *ret, struct cordon_error **reterr)
{
	char raw[RAW_MAX + 1];

	if (len == 0)
		return err_set(reterr, CORDON_INVALID, "host name is empty");
	if (len > RAW_MAX)
		return err_set(reterr, CORDON_INVALID, "host name is too long");
	if (text[0] == '[')
		return parse_bracketed(text, len, ret, reterr);
	int r = percent_decode(text, len, raw, reterr);
	return r < 0 ? r : parse_decoded(raw, ret, reterr);
}

int host_parse_plain(const char *text, size_t len, struct host *ret, struct cordon_error **reterr)
{
	if (memchr(text, '%', len))
		return err_set(reterr, CORDON_INVALID, "host name has a forbidden character (%%)");
	return host_parse(text, len, ret, reterr);
}

bool host_parse_port(const char *text, size_t len, uint16_t *ret)
{
	unsigned value = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value == 0 || value > UINT16_MAX)
		return false;
	*ret = (uint16_t)value;
	return true;
}

int host_parse_authority(const char *text, size_t len, struct host *ret, uint16_t *ret_port,
			 struct cordon_error **reterr)
{
	const char *end = text + len, *colon = NULL;
	size_t host_len = len;

	if (memchr(text, '@', len))
		return err_set(reterr, CORDON_INVALID, "user names before a host are refused");
	if (len > 0 && text[0] == '[') {
		const char *close = memchr(text, ']', len);
		if (!close)
			return err_set(reterr, CORDON_INVALID, "not an IPv6 address in brackets");
		host_len = (size_t)(close + 1 - text);
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = memchr(text, ':', len);
		if (colon)
			host_len = (size_t)(colon - text);
	}
	uint16_t port = 0;
	if (colon &&
	    (*colon != ':' || !host_parse_port(colon + 1, (size_t)(end - colon - 1), &port)))
		return err_set(reterr, CORDON_INVALID, "port is not a number from 1 to 65535");
	int r = host_parse(text, host_len, ret, reterr);
	if (r < 0)
		return r;
	if (port)
		*ret_port = port;
	return 0;
}

bool host_is_literal(const struct host *h)
{
	return h->addr.family != 0;
}

bool host_equal(const struct host *a, const struct host *b)
{
	return strcmp(a->name, b->name) == 0;
}

bool host_agrees(const struct host *named, const struct host *target)
{
	if (host_equal(named, target))
		return true;
	return host_is_literal(target) && address_classify(&target->addr) == ADDRESS_LOOPBACK &&
	       strcmp(named->name, "localhost") == 0;
}

bool host_is_below(const struct host *h, const char *suffix)
{
	size_t len = strlen(h->name), suffix_len = strlen(suffix);

	return !host_is_literal(h) && len > suffix_len + 1 &&
	       h->name[len - suffix_len - 1] == '.' &&
	       strcmp(h->name + len - suffix_len, suffix) == 0;
}

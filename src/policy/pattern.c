/* policy/pattern.c - see pattern.h. */
#include "policy/pattern.h"

#include <arpa/inet.h>
#include <string.h>

#include "policy/kind.h"

enum { HOST_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 };

static int refuse(const char *where, const char *text, const char *why,
		  struct cordon_error **reterr)
{
	return err_set(reterr, CORDON_INVALID, "%s: '%.100s' is not a host pattern: %s", where,
		       text, why);
}

static bool is_digits(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return false;
	return len > 0;
}

/* At most five digits, 1 to max; 0 on failure. */
static unsigned int small_number(const char *s, unsigned int max)
{
	unsigned int v = 0;
	size_t len = strlen(s);

	if (!is_digits(s, len) || len > 5 || s[0] == '0')
		return 0;
	for (; *s; s++)
		v = v * 10 + (unsigned int)(*s - '0');
	return v <= max ? v : 0;
}

/* True if all bits after the prefix are zero. */
static bool is_network(const unsigned char bytes[static 16], size_t len, unsigned int bits)
{
	for (unsigned int i = bits; i < len * 8; i++)
		if (bytes[i / 8] & 0x80 >> i % 8)
			return false;
	return true;
}

/* An address, or a network as ADDRESS/BITS. */
static bool is_address(const char *host)
{
	unsigned char bytes[16];
	char address[64];
	const char *slash = strchr(host, '/');
	size_t len = slash ? (size_t)(slash - host) : strlen(host);

	if (len >= sizeof(address))
		return false;
	memcpy(address, host, len);
	address[len] = '\0';
	bool v4 = inet_pton(AF_INET, address, bytes) == 1;
	if (!v4 && inet_pton(AF_INET6, address, bytes) != 1)
		return false;
	if (!slash)
		return true;
	unsigned int bits = small_number(slash + 1, v4 ? 32 : 128);
	return (bits || str_eq(slash, "/0")) && is_network(bytes, v4 ? 4 : 16, bits);
}

static bool is_label(const char *s, size_t len)
{
	if (len == 0 || len > LABEL_MAX_BYTES || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-' ||
		      s[i] == '_'))
			return false;
	return true;
}

/* Why this is not a valid name, or NULL. */
static const char *name_fault(const char *name)
{
	const char *label = name;

	if (strlen(name) > HOST_MAX_BYTES)
		return "it is longer than 253 characters";
	for (;;) {
		size_t len = strcspn(label, ".");
		if (!is_label(label, len))
			return "write labels of letters, digits and '-' with dots between them "
			       "(names in other "
			       "scripts in their xn-- form)";
		if (!label[len])
			break;
		label += len + 1;
	}
	/* Some resolvers read 127.1 and 0x7f.0.0.1 as addresses. Only the plain form is
	 * accepted. */
	if (is_digits(label, strlen(label)) || str_starts(label, "0x"))
		return "an address is written with four numbers";
	return NULL;
}

static const char *pattern_fault(const char *pattern)
{
	if (str_eq(pattern, "*") || is_address(pattern))
		return NULL;
	if (strstr(pattern, "://"))
		return "write the host alone, without https://";
	if (str_starts(pattern, "*."))
		pattern += 2;
	if (strchr(pattern, '*'))
		return "a star stands alone or as the whole first label: *.example.org";
	return name_fault(pattern);
}

/* Finds the colon before the port; NULL: none. */
static const char *port_colon(const char *text)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');

	if (text[0] == '[')
		return colon && bracket && colon == bracket + 1 ? colon : NULL;
	return colon && colon == strchr(text, ':') && !strstr(text, "://") ? colon : NULL;
}

/* Lower case, without a trailing dot. */
static void normalise(char *host)
{
	size_t len = strlen(host);

	for (char *s = host; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s | 0x20);
	/* "*." is a typing error, not "*". */
	if (len > 1 && host[len - 1] == '.' && !str_eq(host, "*."))
		host[len - 1] = '\0';
}

int pattern_parse(const char *text, const char *where, char **ret, uint16_t *ret_port,
		  struct cordon_error **reterr)
{
	const char *colon = port_colon(text), *fault;
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	bool bracketed = text[0] == '[' && len > 1 && text[len - 1] == ']';
	unsigned int port = colon ? small_number(colon + 1, UINT16_MAX) : 0;

	if (colon && port == 0)
		return refuse(where, text, "a port is a number from 1 to 65535", reterr);
	cleanup_free char *host = bracketed ? str_ndup(text + 1, len - 2) : str_ndup(text, len);
	if (!host)
		return kind_nomem(reterr);
	normalise(host);
	fault = pattern_fault(host);
	if (bracketed && !is_address(host))
		fault = "brackets are for IPv6 addresses";
	if (fault)
		return refuse(where, text, fault, reterr);
	*ret = TAKE_PTR(host);
	*ret_port = (uint16_t)port;
	return 0;
}

bool pattern_covers(const char *pattern, const char *host)
{
	if (str_eq(pattern, "*") || str_eq(pattern, host))
		return true;
	return str_starts(pattern, "*.") && strlen(host) > strlen(pattern + 1) &&
	       str_ends(host, pattern + 1);
}

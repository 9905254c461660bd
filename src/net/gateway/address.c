/* net/gateway/address.c - see address.h. */
#include "net/gateway/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One part of an IPv4 address. "0x" alone is 0, as the standard says. */
static bool parse_part(const char *text, size_t len, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t value = 0;

	if (len == 0)
		return false;
	if (len >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
		len -= 2;
	} else if (len >= 2 && text[0] == '0') {
		base = 8;
		text++;
		len--;
	}
	for (size_t i = 0; i < len; i++) {
		int d = hex_digit(text[i]);
		if (d < 0 || (unsigned)d >= base)
			return false;
		value = value * base + (unsigned)d;
		if (value > UINT32_MAX)
			value = (uint64_t)UINT32_MAX + 1; /* stays too large, cannot wrap around */
	}
	*ret = value;
	return true;
}

bool address_parse_v4(const char *text, size_t len, struct address *ret)
{
	uint64_t parts[4];
	size_t count = 0, start = 0;

	if (len > 0 && text[len - 1] == '.')
		len--;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '.')
			continue;
		if (count == 4 || !parse_part(text + start, i - start, &parts[count]))
			return false;
		count++;
		start = i + 1;
	}
	for (size_t i = 0; i + 1 < count; i++)
		if (parts[i] > 255)
			return false;
	/* The last part fills the remaining bytes. */
	if (parts[count - 1] >= 1ULL << (8 * (5 - count)))
		return false;
	uint64_t value = parts[count - 1];
	for (size_t i = 0; i + 1 < count; i++)
		value += parts[i] << (8 * (3 - i));

	*ret = (struct address){ .family = 4 };
	for (size_t i = 0; i < 4; i++)
		ret->bytes[i] = (uint8_t)(value >> (8 * (3 - i)));
	return true;
}

static bool is_mapped(const uint8_t b[static 16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
	return memcmp(b, prefix, sizeof(prefix)) == 0;
}

/* For the kernel, a mapped address is the IPv4 address. So it must not have a second spelling
 * here. */
static void unmap(struct address *a)
{
	if (a->family != 6 || !is_mapped(a->bytes))
		return;
	struct address v4 = { .family = 4 };
	memcpy(v4.bytes, a->bytes + 12, 4);
	*a = v4;
}

bool address_parse_v6(const char *text, size_t len, struct address *ret)
{
	char copy[INET6_ADDRSTRLEN];
	struct address a = { .family = 6 };

	if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET6, copy, a.bytes) != 1)
		return false;
	unmap(&a);
	*ret = a;
	return true;
}

static bool parse_plain(const char *text, size_t len, struct address *ret)
{
	if (memchr(text, ':', len))
		return address_parse_v6(text, len, ret);

	/* A policy accepts only the plain dotted form, which a person reads as it is meant. */
	struct in_addr in;
	char copy[INET_ADDRSTRLEN];
	if (len == 0 || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, &in) != 1)
		return false;
	*ret = (struct address){ .family = 4 };
	memcpy(ret->bytes, &in, 4);
	return true;
}

static bool rest_is_zero(const struct address *a, unsigned bits)
{
	unsigned size = a->family == 4 ? 32 : 128;
	for (unsigned i = bits; i < size; i++)
		if (a->bytes[i / 8] & (0x80 >> (i % 8)))
			return false;
	return true;
}

bool address_parse_block(const char *text, struct address_block *ret)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct address_block b = { 0 };

	if (!parse_plain(text, len, &b.base))
		return false;
	unsigned max = b.base.family == 4 ? 32 : 128;
	b.bits = max;
	if (slash) {
		const char *p = slash + 1;
		size_t digits = strlen(p);
		if (digits < 1 || digits > 3 || strspn(p, "0123456789") != digits)
			return false;
		b.bits = 0;
		for (; *p; p++)
			b.bits = b.bits * 10 + (unsigned)(*p - '0');
	}
	if (b.bits > max || !rest_is_zero(&b.base, b.bits))
		return false;
	*ret = b;
	return true;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

bool address_in_block(const struct address *a, const struct address_block *b)
{
	if (a->family == 0 || a->family != b->base.family)
		return false;
	unsigned whole = b->bits / 8, rest = b->bits % 8;
	if (memcmp(a->bytes, b->base.bytes, whole) != 0)
		return false;
	return rest == 0 || ((a->bytes[whole] ^ b->base.bytes[whole]) >> (8 - rest)) == 0;
}

/* The first match wins, so narrow blocks come first. From the IANA special-purpose registries and
 * the cloud providers' documentation. */
static const struct {
	const char *block;
	enum address_class class;
} special[] = {
	{ "169.254.169.254", ADDRESS_METADATA }, /* AWS, GCP, Azure, OpenStack, … */
	{ "169.254.170.2", ADDRESS_METADATA },   /* AWS ECS */
	{ "169.254.170.23", ADDRESS_METADATA },  /* AWS EKS */
	{ "100.100.100.200", ADDRESS_METADATA }, /* Alibaba */
	{ "168.63.129.16", ADDRESS_METADATA },   /* Azure's wire server, a public address */
	{ "192.0.0.192", ADDRESS_METADATA },     /* Oracle */
	{ "fd00:ec2::254", ADDRESS_METADATA },   /* AWS */
	{ "fd00:ec2::23", ADDRESS_METADATA },    /* AWS EKS */
	{ "fd20:ce::254", ADDRESS_METADATA },    /* GCP */
	{ "fd00:42::42", ADDRESS_METADATA },     /* Scaleway */
	{ "0.0.0.0/8", ADDRESS_UNSPECIFIED },
	{ "10.0.0.0/8", ADDRESS_PRIVATE },
	{ "100.64.0.0/10", ADDRESS_SHARED },
	{ "127.0.0.0/8", ADDRESS_LOOPBACK },
	{ "169.254.0.0/16", ADDRESS_LINK_LOCAL },
	{ "172.16.0.0/12", ADDRESS_PRIVATE },
	{ "192.0.0.0/24", ADDRESS_RESERVED },
	{ "192.0.2.0/24", ADDRESS_RESERVED },
	{ "192.88.99.0/24", ADDRESS_RESERVED },
	{ "192.168.0.0/16", ADDRESS_PRIVATE },
	{ "198.18.0.0/15", ADDRESS_RESERVED },
	{ "198.51.100.0/24", ADDRESS_RESERVED },
	{ "203.0.113.0/24", ADDRESS_RESERVED },
	{ "224.0.0.0/4", ADDRESS_MULTICAST },
	{ "240.0.0.0/4", ADDRESS_RESERVED },
	{ "0.0.0.0/0", ADDRESS_PUBLIC },
	{ "::", ADDRESS_UNSPECIFIED },
	{ "::1", ADDRESS_LOOPBACK },
	{ "64:ff9b:1::/48", ADDRESS_RESERVED }, /* local NAT64 */
	{ "2001::/23", ADDRESS_RESERVED },      /* Teredo and other protocols */
	{ "2001:db8::/32", ADDRESS_RESERVED },
	{ "2002::/16", ADDRESS_RESERVED }, /* 6to4 embeds any IPv4 address */
	{ "3fff::/20", ADDRESS_RESERVED },
	{ "5f00::/16", ADDRESS_RESERVED },
	{ "fc00::/7", ADDRESS_PRIVATE },
	{ "fe80::/10", ADDRESS_LINK_LOCAL },
	{ "fec0::/10", ADDRESS_PRIVATE },
	{ "ff00::/8", ADDRESS_MULTICAST },
	{ "2000::/3", ADDRESS_PUBLIC },
	{ "::/0", ADDRESS_RESERVED },
};

enum address_class address_classify(const struct address *a)
{
	struct address plain = *a;
	struct address_block nat64;

	unmap(&plain);
	/* The well-known NAT64 prefix: the translator connects to the embedded IPv4 address. */
	if (address_parse_block("64:ff9b::/96", &nat64) && address_in_block(&plain, &nat64)) {
		struct address v4 = { .family = 4 };
		memcpy(v4.bytes, plain.bytes + 12, 4);
		plain = v4;
	}
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
		struct address_block b;
		if (address_parse_block(special[i].block, &b) && address_in_block(&plain, &b))
			return special[i].class;
	}
	return ADDRESS_UNKNOWN;
}

const char *address_class_name(enum address_class c)
{
	static const char *const names[] = {
		[ADDRESS_UNKNOWN] = "an unknown address",
		[ADDRESS_UNSPECIFIED] = "the unspecified address",
		[ADDRESS_LOOPBACK] = "a loopback address",
		[ADDRESS_PRIVATE] = "a private address",
		[ADDRESS_LINK_LOCAL] = "a link-local address",
		[ADDRESS_METADATA] = "a cloud metadata address",
		[ADDRESS_SHARED] = "a carrier-grade NAT address",
		[ADDRESS_MULTICAST] = "a multicast address",
		[ADDRESS_RESERVED] = "a reserved address",
		[ADDRESS_PUBLIC] = "a public address",
	};
	return (size_t)c < sizeof(names) / sizeof(*names) ? names[c] : names[0];
}

void address_text(const struct address *a, char ret[static ADDRESS_TEXT_SIZE])
{
	ret[0] = '\0';
	if (a->family == 4 || a->family == 6)
		inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->bytes, ret, ADDRESS_TEXT_SIZE);
}

bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret, uint16_t *ret_port)
{
	struct address a = { 0 };

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;
		a.family = 4;
		memcpy(a.bytes, &in->sin_addr, 4);
		*ret_port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)sa;
		a.family = 6;
		memcpy(a.bytes, &in6->sin6_addr, 16);
		unmap(&a);
		*ret_port = ntohs(in6->sin6_port);
	} else {
		return false;
	}
	*ret = a;
	return true;
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (a->family == 4) {
		struct sockaddr_in *in = (void *)ret;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->bytes, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (void *)ret;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->bytes, 16);
	return sizeof(*in6);
}

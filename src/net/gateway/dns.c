/* net/gateway/dns.c - see dns.h. */
#include "net/gateway/dns.h"

#include <stdbool.h>
#include <string.h>

enum { HEADER = 12, TYPE_A = 1, TYPE_AAAA = 28, TYPE_OPT = 41, TYPE_ANY = 255, CLASS_IN = 1 };
enum { NO_ERROR = 0, FORMAT_ERROR = 1, SERVER_FAILURE = 2, NAME_ERROR = 3, NOT_IMPLEMENTED = 4 };

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

struct question {
	char name[HOST_TEXT_SIZE];
	unsigned type, class;
	size_t end; /* offset after the question */
};

/* Compression is refused: the question has the first name of a message, so it cannot point back. */
static bool read_question(const uint8_t *q, size_t len, struct question *ret)
{
	size_t at = HEADER, n = 0;

	for (;;) {
		if (at >= len)
			return false;
		size_t label = q[at++];
		if (label == 0)
			break;
		if (label > 63 || at + label > len || n + label + 1 >= sizeof(ret->name))
			return false;
		for (size_t i = 0; i < label; i++) {
			char c = (char)q[at + i];
			/* A dot or NUL inside a label would turn it into another name. */
			if (c == '.' || c == '\0')
				return false;
			ret->name[n++] = c;
		}
		ret->name[n++] = '.';
		at += label;
	}
	ret->name[n ? n - 1 : 0] = '\0';
	if (at + 4 > len)
		return false;
	ret->type = get16(q + at);
	ret->class = get16(q + at + 2);
	ret->end = at + 4;
	return true;
}

/* Only one EDNS record may follow the question. */
static bool rest_is_edns(const uint8_t *q, size_t len, size_t at)
{
	unsigned extra = get16(q + 10);

	if (get16(q + 6) != 0 || get16(q + 8) != 0 || extra > 1)
		return false;
	if (extra == 0)
		return at == len;
	if (at + 11 > len || q[at] != 0 || get16(q + at + 1) != TYPE_OPT)
		return false;
	return at + 11 + get16(q + at + 9) == len;
}

static size_t add_record(uint8_t *out, size_t at, const struct address *a)
{
	size_t size = a->family == 4 ? 4 : 16;

	put16(out + at, 0xc000 | HEADER); /* the name of the question */
	put16(out + at + 2, a->family == 4 ? TYPE_A : TYPE_AAAA);
	put16(out + at + 4, CLASS_IN);
	put16(out + at + 6, 0);
	put16(out + at + 8, DNS_TTL_SECONDS);
	put16(out + at + 10, (unsigned)size);
	memcpy(out + at + 12, a->bytes, size);
	put16(out + 6, get16(out + 6) + 1);
	return at + 12 + size;
}

static size_t finish(uint8_t *out, const uint8_t *query, size_t len, unsigned code)
{
	/* Flags: response, authoritative, recursion as requested and available. */
	put16(out + 2, 0x8400 | (get16(query + 2) & 0x7900) | 0x0080 | code);
	return len;
}

static size_t answer_question(const struct question *question, dns_lookup_fn lookup, void *arg,
			      uint8_t *out, unsigned *ret_code)
{
	struct host name;
	struct dns_addresses found = { 0 };
	enum dns_verdict verdict = DNS_NO_SUCH_NAME;
	size_t at = question->end;

	if (host_parse_plain(question->name, strlen(question->name), &name, NULL) == 0 &&
	    !host_is_literal(&name))
		verdict = lookup(&name, &found, arg);
	*ret_code = verdict == DNS_HAS_ADDRESS ? NO_ERROR
		    : verdict == DNS_FAILURE   ? SERVER_FAILURE
					       : NAME_ERROR;
	if (verdict != DNS_HAS_ADDRESS)
		return at;
	if ((question->type == TYPE_A || question->type == TYPE_ANY) && found.v4.family == 4)
		at = add_record(out, at, &found.v4);
	if ((question->type == TYPE_AAAA || question->type == TYPE_ANY) && found.v6.family == 6)
		at = add_record(out, at, &found.v6);
	return at;
}

size_t dns_answer(const uint8_t *query, size_t len, dns_lookup_fn lookup, void *arg,
		  uint8_t ret[static DNS_MAX])
{
	struct question question = { 0 };
	unsigned code;

	if (len < HEADER || len > DNS_MAX || (query[2] & 0x80)) /* a response, not a query */
		return 0;
	memset(ret, 0, HEADER);
	memcpy(ret, query, 2);
	if (query[2] & 0x78)
		return finish(ret, query, HEADER, NOT_IMPLEMENTED);
	if (get16(query + 4) != 1 || !read_question(query, len, &question) ||
	    !rest_is_edns(query, len, question.end))
		return finish(ret, query, HEADER, FORMAT_ERROR);
	put16(ret + 4, 1);
	memcpy(ret + HEADER, query + HEADER, question.end - HEADER);
	if (question.class != CLASS_IN)
		return finish(ret, query, question.end, NAME_ERROR);
	size_t end = answer_question(&question, lookup, arg, ret, &code);
	return finish(ret, query, end, code);
}

/* net/gateway/body.c - see body.h. */
#include "net/gateway/body.h"

enum { CHUNK_LINE_MAX = 256, TRAILER_MAX = 4096 };

enum chunk_state {
	CHUNK_SIZE,      /* hex digits */
	CHUNK_EXTENSION, /* ignored up to CR */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER_START,
	TRAILER_LINE,
	TRAILER_LF,
	TRAILER_END_LF,
};

void body_init(struct body *b, const struct http_head *h)
{
	*b = (struct body){ .framing = h->framing };
	if (h->framing == HTTP_LENGTH)
		b->left = h->length;
	b->is_done = h->framing == HTTP_NO_BODY;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_size(struct body *b, char c)
{
	int digit = hex_value(c);

	if (digit >= 0) {
		if (++b->line > 15)
			return -CORDON_PROTOCOL;
		b->left = b->left << 4 | (unsigned)digit;
		return 0;
	}
	if (b->line == 0)
		return -CORDON_PROTOCOL;
	if (c == '\r')
		b->state = CHUNK_SIZE_LF;
	else if (c == ';')
		b->state = CHUNK_EXTENSION;
	else
		return -CORDON_PROTOCOL;
	return 0;
}

static int read_extension(struct body *b, char c)
{
	if (c == '\r') {
		b->state = CHUNK_SIZE_LF;
		return 0;
	}
	bool is_control = ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
	return is_control || ++b->line > CHUNK_LINE_MAX ? -CORDON_PROTOCOL : 0;
}

static int read_trailer(struct body *b, char c)
{
	bool is_control = ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;

	if (++b->trailer > TRAILER_MAX)
		return -CORDON_PROTOCOL;
	if (c == '\r')
		b->state = b->state == TRAILER_START ? TRAILER_END_LF : TRAILER_LF;
	else if (is_control)
		return -CORDON_PROTOCOL;
	else
		b->state = TRAILER_LINE;
	return 0;
}

/* Reads one byte of framing, never payload. */
static int read_frame_byte(struct body *b, char c)
{
	static const struct {
		char want;
		unsigned next;
	} fixed[] = {
		[CHUNK_SIZE_LF] = { '\n', CHUNK_DATA },
		[CHUNK_DATA_CR] = { '\r', CHUNK_DATA_LF },
		[CHUNK_DATA_LF] = { '\n', CHUNK_SIZE },
		[TRAILER_LF] = { '\n', TRAILER_START },
		[TRAILER_END_LF] = { '\n', TRAILER_END_LF },
	};

	switch (b->state) {
	case CHUNK_SIZE:
		return read_size(b, c);
	case CHUNK_EXTENSION:
		return read_extension(b, c);
	case TRAILER_START:
	case TRAILER_LINE:
		return read_trailer(b, c);
	default:
		break;
	}
	if (c != fixed[b->state].want)
		return -CORDON_PROTOCOL;
	if (b->state == CHUNK_SIZE_LF && b->left == 0) {
		b->state = TRAILER_START;
		return 0;
	}
	b->is_done = b->state == TRAILER_END_LF;
	b->line = 0;
	b->state = fixed[b->state].next;
	return 0;
}

static void take_payload(struct body *b, const char *bytes, size_t len, size_t *ret_used,
			 const char **ret_payload, size_t *ret_len)
{
	size_t n = b->framing == HTTP_TO_CLOSE || len < b->left ? len : (size_t)b->left;

	*ret_used = *ret_len = n;
	*ret_payload = bytes;
	if (b->framing != HTTP_TO_CLOSE)
		b->left -= n;
}

int body_take(struct body *b, const char *bytes, size_t len, size_t *ret_used,
	      const char **ret_payload, size_t *ret_len)
{
	*ret_used = *ret_len = 0;
	*ret_payload = bytes;
	if (b->is_done || len == 0)
		return 0;
	if (b->framing != HTTP_CHUNKED) {
		take_payload(b, bytes, len, ret_used, ret_payload, ret_len);
		b->is_done = b->framing == HTTP_LENGTH && b->left == 0;
		return 0;
	}
	size_t i = 0;
	while (i < len && !b->is_done && b->state != CHUNK_DATA) {
		int r = read_frame_byte(b, bytes[i++]);
		if (r < 0)
			return r;
	}
	*ret_used = i;
	if (b->is_done || b->state != CHUNK_DATA || i == len)
		return 0;
	take_payload(b, bytes + i, len - i, ret_used, ret_payload, ret_len);
	*ret_used += i;
	if (b->left == 0)
		b->state = CHUNK_DATA_CR;
	return 0;
}

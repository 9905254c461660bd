/* unit/net/test_tls_sni.c - the name in a ClientHello, whole, in pieces, and broken. */
#include "net/gateway/tls_sni.h"

#include "harness/test.h"

struct builder {
	uint8_t bytes[1024];
	size_t len;
};

static void add(struct builder *b, const void *bytes, size_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

static void add16(struct builder *b, size_t v)
{
	add(b, (uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

static void add_name(struct builder *ext, const char *name)
{
	size_t n = strlen(name);
	add16(ext, 0); /* server_name */
	add16(ext, n + 5);
	add16(ext, n + 3);
	add(ext, "", 1);
	add16(ext, n);
	add(ext, name, n);
}

/* A hello with these extensions, cut into records of at most so many bytes. */
static struct builder make(const struct builder *ext, size_t record)
{
	struct builder body = { 0 }, message = { 0 }, out = { 0 };
	uint8_t random[32] = { 0 };

	add16(&body, 0x0303);
	add(&body, random, 32);
	add(&body, "", 1);
	add16(&body, 2);
	add16(&body, 0x1301);
	add(&body, "\1\0", 2);
	add16(&body, ext->len);
	add(&body, ext->bytes, ext->len);
	add(&message, "\1\0", 2);
	add16(&message, body.len);
	add(&message, body.bytes, body.len);
	for (size_t at = 0; at < message.len; at += record) {
		size_t n = message.len - at < record ? message.len - at : record;
		add(&out, "\x16\3\1", 3);
		add16(&out, n);
		add(&out, message.bytes + at, n);
	}
	return out;
}

TEST(whole_and_in_pieces)
{
	struct builder ext = { 0 };
	struct host name;

	add16(&ext, 0x0a0a);
	add16(&ext, 0);
	add_name(&ext, "A.Example.org");
	for (size_t record = 20; record < 200; record += 7) {
		struct builder hello = make(&ext, record);
		for (size_t n = 0; n < hello.len; n++)
			ASSERT_EQ(tls_sni_read(hello.bytes, n, &name), TLS_SNI_MORE);
		ASSERT_EQ(tls_sni_read(hello.bytes, hello.len, &name), TLS_SNI_NAME);
		ASSERT_STREQ(name.name, "a.example.org");
	}
}

TEST(without_a_name)
{
	struct builder ext = { 0 };
	struct host name;
	struct builder hello = make(&ext, 500);

	ASSERT_EQ(tls_sni_read(hello.bytes, hello.len, &name), TLS_SNI_NO_NAME);
}

TEST(bad_names)
{
	static const char *const bad[] = { "", "a b", "a..b", "a/b", "a%2eb", "a\x01" };
	struct host name;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct builder ext = { 0 };
		add_name(&ext, bad[i]);
		struct builder hello = make(&ext, 500);
		ASSERT_EQ(tls_sni_read(hello.bytes, hello.len, &name), TLS_SNI_BAD_NAME);
	}
	struct builder two = { 0 };
	add_name(&two, "a.test");
	add_name(&two, "b.test");
	struct builder hello = make(&two, 500);
	ASSERT_EQ(tls_sni_read(hello.bytes, hello.len, &name), TLS_SNI_BAD_NAME);
}

TEST(something_else)
{
	struct host name;

	ASSERT_EQ(tls_sni_read((const uint8_t *)"GET / HTTP/1.1", 14, &name), TLS_SNI_NOT_TLS);
	ASSERT_EQ(tls_sni_read((const uint8_t *)"\x16\2\0\0\5", 5, &name), TLS_SNI_NOT_TLS);
	ASSERT_EQ(tls_sni_read((const uint8_t *)"\x16\3\1\0\0", 5, &name), TLS_SNI_NOT_TLS);
	ASSERT_EQ(tls_sni_read((const uint8_t *)"\x16\3\1\xff\xff", 5, &name), TLS_SNI_NOT_TLS);
	ASSERT_EQ(tls_sni_read((const uint8_t *)"\x16\3\1\0\5\2", 6, &name), TLS_SNI_NOT_TLS);
	ASSERT_EQ(tls_sni_read((const uint8_t *)"", 0, &name), TLS_SNI_MORE);
}

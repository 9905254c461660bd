/* unit/net/test_http.c - heads that are accepted, and the many that are refused. */
#include "net/gateway/http.h"

#include "harness/test.h"

static int request(const char *text, struct http_head *ret)
{
	return http_parse_request(text, strlen(text), ret, NULL);
}

TEST(a_plain_request)
{
	struct http_head h;

	ASSERT_EQ(request("GET /x HTTP/1.1\r\nHost: a.test\r\nX-Y:  z \t\r\n\r\n", &h), 0);
	ASSERT_STREQ(h.method, "GET");
	ASSERT(http_slice_is(h.target, "/x"));
	ASSERT(http_slice_is(h.host, "a.test"));
	ASSERT(http_slice_is(http_field_find(&h, "x-y")->value, "z"));
	ASSERT_EQ(h.framing, HTTP_NO_BODY);
	ASSERT(h.keep_alive);
}

TEST(framing)
{
	struct http_head h;

	ASSERT_EQ(request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", &h), 0);
	ASSERT_EQ(h.framing, HTTP_LENGTH);
	ASSERT_EQ(h.length, 5);
	ASSERT_EQ(request("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", &h),
		  0);
	ASSERT_EQ(h.framing, HTTP_CHUNKED);
	ASSERT_EQ(request("GET / HTTP/1.0\r\n\r\n", &h), 0);
	ASSERT(!h.keep_alive);
	ASSERT_EQ(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", &h), 0);
	ASSERT(h.keep_alive);
	ASSERT_EQ(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, close\r\n\r\n", &h), 0);
	ASSERT(!h.keep_alive);
}

TEST(what_could_be_read_in_two_ways_is_refused)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\nHost: a\n\n",
		"GET / HTTP/1.1\r\nHost: a\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX\x01: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xbc: b\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: "
		"chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
		"chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0b"
		"chunked\r\n\r\n",
		"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
		"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
		"GET / http/1.1\r\nHost: a\r\n\r\n",
		"GET /\r\n\r\n",
		"GET\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest",
		"",
	};
	struct http_head h;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (request(bad[i], &h) == 0)
			test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
	ASSERT(http_parse_request("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 30, &h, NULL) < 0);
}

TEST(limits)
{
	static char big[HTTP_HEAD_MAX + 100];
	struct http_head h;
	size_t len = 0;

	memset(big, 'a', sizeof(big));
	ASSERT_EQ(http_head_length(big, 100), 0);
	ASSERT_EQ(http_head_length(big, HTTP_HEAD_MAX), -CORDON_LIMIT);
	ASSERT_EQ(http_head_length("GET\r\n\r\nx", 8), 7);
	len += (size_t)sprintf(big, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		len += (size_t)sprintf(big + len, "X: %d\r\n", i);
	len += (size_t)sprintf(big + len, "\r\n");
	ASSERT_EQ(http_parse_request(big, len, &h, NULL), -CORDON_LIMIT);
}

static int response(const char *text, const char *method, struct http_head *ret)
{
	return http_parse_response(text, strlen(text), method, ret, NULL);
}

TEST(responses)
{
	struct http_head h;

	ASSERT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "GET", &h), 0);
	ASSERT_EQ(h.framing, HTTP_LENGTH);
	ASSERT(h.keep_alive);
	ASSERT(http_slice_is(h.reason, "OK"));
	ASSERT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD", &h), 0);
	ASSERT_EQ(h.framing, HTTP_NO_BODY);
	ASSERT_EQ(response("HTTP/1.1 200\r\n\r\n", "GET", &h), 0);
	ASSERT_EQ(h.framing, HTTP_TO_CLOSE);
	ASSERT(!h.keep_alive);
	ASSERT_EQ(response("HTTP/1.1 204 \r\n\r\n", "GET", &h), 0);
	ASSERT_EQ(h.framing, HTTP_NO_BODY);
	ASSERT_EQ(response("HTTP/1.1 304 x y z\r\nContent-Length: 10\r\n\r\n", "GET", &h), 0);
	ASSERT_EQ(h.framing, HTTP_NO_BODY);
	ASSERT_EQ(response("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "GET", &h), 0);
	ASSERT_EQ(h.framing, HTTP_NO_BODY);
	static const char *const bad[] = {
		"HTTP/1.1 20 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1\r\n\r\n",
		"ICY 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\nX: y\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (response(bad[i], "GET", &h) == 0)
			test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
}

TEST(fields_of_one_connection)
{
	struct http_head h;

	ASSERT_EQ(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Mine, Host\r\nX-Mine: 1\r\n"
			  "Proxy-Authorization: y\r\nAccept: z\r\n\r\n",
			  &h),
		  0);
	ASSERT(http_field_is_hop(&h, http_field_find(&h, "X-Mine")));
	ASSERT(http_field_is_hop(&h, http_field_find(&h, "Proxy-Authorization")));
	ASSERT(!http_field_is_hop(&h, http_field_find(&h, "Accept")));
	ASSERT(!http_field_is_hop(&h, http_field_find(&h, "Host")));
}

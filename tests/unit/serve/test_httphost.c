/* unit/serve/test_httphost.c - names of ports, and origins. */
#include "serve/http/httphost.h"

#include "harness/test.h"

TEST(names_of_ports)
{
	unsigned port = 0;
	char id[8] = "";

	ASSERT_STREQ(httphost_split("3000-abc1.localhost:8123", &port, id, sizeof(id)),
		     "localhost:8123");
	ASSERT_EQ(port, 3000);
	ASSERT_STREQ(id, "abc1");
	ASSERT_STREQ(httphost_split("1-a.b", NULL, NULL, 0), "b");
	ASSERT_STREQ(httphost_split("65535-a.b.c", NULL, NULL, 0), "b.c");
}

TEST(other_names)
{
	static const char *const names[] = {
		"",       "localhost",       "3000",      "3000-",     "3000-.b",  "-a.b",
		"0-a.b",  "03000-a.b",       "65536-a.b", "3000-a",    "3000-A.b", "3000-a_b.c",
		" 3-a.b", "99999999999-a.b", "+3-a.b",    "3000a-b.c", "[::1]:80",
	};
	char id[4];

	ASSERT(!httphost_split(NULL, NULL, NULL, 0));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ASSERT(!httphost_split(names[i], NULL, NULL, 0));
	ASSERT(!httphost_split("3000-abcd.x", NULL, id, sizeof(id)));
}

TEST(origins)
{
	ASSERT(httphost_is_origin("3-a.b:80", "http://3-a.b:80"));
	ASSERT(httphost_is_origin("3-a.b", "https://3-A.b"));
	ASSERT(!httphost_is_origin("3-a.b", "https://3-a.b.c"));
	ASSERT(!httphost_is_origin("3-a.b", "null"));
	ASSERT(!httphost_is_origin("3-a.b", "3-a.b"));
	ASSERT(!httphost_is_origin(NULL, "http://"));
}

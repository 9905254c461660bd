/* unit/base/test_base64.c - strict base64. */
#include "base/base64.h"
#include "harness/test.h"

TEST(the_vectors_of_rfc_4648)
{
	static const char *const cases[][2] = { { "", "" },
						{ "f", "Zg==" },
						{ "fo", "Zm8=" },
						{ "foo", "Zm9v" },
						{ "foob", "Zm9vYg==" },
						{ "fooba", "Zm9vYmE=" },
						{ "foobar", "Zm9vYmFy" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t len = 0;
		void *bytes = NULL;
		char *text = base64_encode(cases[i][0], strlen(cases[i][0]), &len);
		ASSERT_STREQ(text, cases[i][1]);
		ASSERT_EQ(len, strlen(text));
		ASSERT_EQ(base64_decode(text, len, &bytes, &len, NULL), 0);
		ASSERT_EQ(len, strlen(cases[i][0]));
		ASSERT(memcmp(bytes, cases[i][0], len) == 0);
		free(text);
		free(bytes);
	}
}

TEST(all_bytes_come_back)
{
	unsigned char all[256];
	void *back = NULL;
	size_t len;

	for (int i = 0; i < 256; i++)
		all[i] = (unsigned char)i;
	for (size_t n = 0; n <= 256; n++) {
		char *text = base64_encode(all, n, &len);
		ASSERT_EQ(base64_decode(text, len, &back, &len, NULL), 0);
		ASSERT(len == n && memcmp(back, all, n) == 0);
		free(text);
		free(back);
	}
}

TEST(anything_not_strict_is_refused)
{
	static const char *const bad[] = { "Zg",       "Zg=",  "Zg===",           "Z===", "====",
					   "Zg==Zg==", "Zm 9", "Zm9\n",           "Zm9-", "=m9v",
					   "Zh==",     "Zm9=", "\xff\xff\xff\xff" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		void *bytes = NULL;
		size_t len = 0;
		struct cordon_error *e = NULL;
		if (base64_decode(bad[i], strlen(bad[i]), &bytes, &len, &e) != -CORDON_INVALID ||
		    bytes)
			test_fail(__FILE__, __LINE__, "'%s' was taken", bad[i]);
		ASSERT_HAS(cordon_error_message(e), "base64");
		cordon_error_free(e);
	}
}

TEST(an_error_names_the_place)
{
	static const char *const table[][2] = {
		{ "Zg", "base64: 2 characters, not a multiple of 4" },
		{ "Zm9vYm!v", "base64: character 7 is not in the alphabet" },
		{ "Z===", "base64: character 2 is not in the alphabet" },
		{ "Zg==Zg==", "base64: character 3 is not in the alphabet" },
		{ "Zm9vZh==", "base64: stray bits before the padding" },
		{ "Zm9vZm9=", "base64: stray bits before the padding" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		void *bytes = NULL;
		size_t len = 0;
		struct cordon_error *e = NULL;
		ASSERT(base64_decode(table[i][0], strlen(table[i][0]), &bytes, &len, &e) < 0);
		ASSERT_STREQ(cordon_error_message(e), table[i][1]);
		cordon_error_free(e);
	}
}

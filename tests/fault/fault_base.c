/* fault/fault_base.c - the base room when memory runs out. */
#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/str.h"
#include "harness/fault.h"

#include <signal.h>

/* Tokens longer than what jansson's buffer has at first, so that it grows, more than once. */
static const char long_tokens[] = "{\"a key that is longer than sixteen bytes\":\"and a value that "
				  "is longer than thirty-two bytes\","
				  "\"x\":[12345678901234567,0.12345678901234567890123456789,"
				  "\"\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9 and more\"],"
				  "\"a key that is longer than sixteen bytes, and than the one "
				  "before, by far\":{\"k\":[{},[],{}]},"
				  "\"last\":"
				  "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"
				  "ef0123456789abcdef0123456789"
				  "abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
				  "abcdef0123456789abcdef01234567\"}";
static const char document[] =
	"{\"a\":[1,2.5,\"text\",{\"deep\":[null,true]}],\"key\":\"\\u00e9\\u0000\",\"n\":{}}";

TEST(json_in_and_out)
{
	FAULT_LOOP
	{
		json_t *j = NULL;
		struct cordon_error *e = NULL;
		int r = json_parse(document, strlen(document), 0, &j, &e);
		ASSERT_FAULT(r);
		ASSERT((r < 0) == (e != NULL));
		if (r == 0) {
			char *text = json_text(j, NULL), *pretty = json_text_pretty(j);
			ASSERT(fault_was_hit() || (text && pretty));
			free(text);
			free(pretty);
		}
		json_decref(j);
		cordon_error_free(e);
	}
}

TEST(json_with_long_tokens)
{
	FAULT_LOOP
	{
		json_t *j = NULL;
		struct cordon_error *e = NULL;
		int r = json_parse(long_tokens, strlen(long_tokens), 0, &j, &e);
		ASSERT_FAULT(r);
		ASSERT((r < 0) == (e != NULL));
		json_decref(j);
		cordon_error_free(e);
	}
}

TEST(json_text_is_whole_or_nothing)
{
	json_t *j = NULL;
	ASSERT_EQ(json_parse(document, strlen(document), 0, &j, NULL), 0);
	FAULT_LOOP
	{
		char *text = json_text(j, NULL);
		ASSERT((text == NULL) == fault_was_hit());
		free(text);
	}
	json_decref(j);
}

TEST(lossy_strings)
{
	FAULT_LOOP
	{
		json_t *j = json_string_lossy("a\xff\xff"
					      "b",
					      4);
		ASSERT((j == NULL) == fault_was_hit());
		json_decref(j);
	}
}

TEST(lists)
{
	FAULT_LOOP
	{
		struct strlist l = { 0 }, copy = { 0 };
		int r = 0;
		for (int i = 0; i < 9 && r == 0; i++)
			r = strlist_add(&l, "x");
		if (r == 0)
			r = strlist_copy(&copy, &l);
		ASSERT_FAULT(r);
		strlist_done(&l);
		strlist_done(&copy);
	}
}

TEST(buffers_keep_what_they_had)
{
	FAULT_LOOP
	{
		struct buf b;
		buf_init(&b, 1 << 20);
		int r = buf_add_str(&b, "kept");
		bool had = r == 0;
		for (int i = 0; i < 200 && r == 0; i++)
			r = buf_printf(&b, "%d", i);
		ASSERT_FAULT(r);
		ASSERT(!had || str_starts(buf_text(&b), "kept"));
		buf_done(&b);
	}
}

TEST(base64)
{
	FAULT_LOOP
	{
		void *bytes = NULL;
		size_t len;
		char *text = base64_encode("foobar", 6, &len);
		struct cordon_error *e = NULL;
		int r = base64_decode("Zm9v", 4, &bytes, &len, &e);
		ASSERT((text == NULL || r < 0) == fault_was_hit());
		ASSERT((r < 0) == (bytes == NULL));
		cordon_error_free(e);
		free(text);
		free(bytes);
	}
}

TEST(files)
{
	char path[] = "/tmp/cordon-fault-XXXXXX";
	int fd = mkstemp(path);
	ASSERT(fd >= 0);
	close(fd);
	FAULT_LOOP
	{
		struct buf b = { 0 };
		struct cordon_error *e = NULL;
		int r = file_save(path, 0600, document, strlen(document), &e);
		if (r == 0)
			r = file_load(path, 1 << 20, &b, &e);
		ASSERT_FAULT(r);
		cordon_error_free(e);
		buf_done(&b);
	}
	ASSERT_EQ(unlink(path), 0);
}

static void nothing(struct loop *l, void *arg)
{
	(void)l;
	(void)arg;
}

TEST(loops_leave_no_descriptor)
{
	FAULT_LOOP
	{
		struct loop *l = NULL;
		struct cordon_error *e = NULL;
		int r = loop_new(&l, &e);
		if (r == 0)
			r = loop_add_timer(l, deadline_after_ms(1000), nothing, NULL, NULL, &e);
		if (r == 0)
			r = loop_wake(l, nothing, NULL);
		ASSERT_FAULT(r);
		cordon_error_free(e);
		loop_free(l);
	}
}

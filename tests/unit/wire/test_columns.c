/* unit/wire/test_columns.c - tables of binary columns, their bytes, and the way of a descriptor. */
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/os.h"
#include "unit/wire/pair.h"
#include "wire/columns.h"

#define TABLE(bytes, list) "{\"bytes\":" bytes ",\"columns\":[" list "]}"
#define TEXTS "{\"type\":\"utf8\",\"count\":2,\"offsets\":0,\"values\":64,\"bytes\":4}"

static int parse(const char *json, uint64_t max, struct columns **ret)
{
	return columns_new(json, strlen(json), max, ret, NULL);
}

/* A file of `size` bytes that begins with these. */
static int file(const void *bytes, size_t len, off_t size)
{
	int fd = os_memory_file("test", true);

	ASSERT(fd >= 0);
	ASSERT_EQ(ftruncate(fd, size), 0);
	ASSERT_EQ(pwrite(fd, bytes, len, 0), (long long)len);
	return fd;
}

TEST(tables_that_are_whole)
{
	static const char *const tables[] = {
		TABLE("0", ""),
		TABLE("8", "{\"type\":\"float64\",\"count\":1,\"values\":0}"),
		TABLE("64", "{\"type\":\"int8\",\"count\":0,\"values\":64}"),
		TABLE("72", "{\"type\":\"int32\",\"count\":2,\"validity\":0,\"values\":64}"),
		TABLE("68", TEXTS),
		TABLE("144", "{\"type\":\"complex128\",\"count\":1,\"values\":0},"
			     "{\"type\":\"bool8\",\"count\":80,\"values\":64}"),
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct columns *c = NULL;
		ASSERT_EQ(parse(tables[i], 1000, &c), 0);
		columns_free(c);
	}
}

TEST(tables_that_are_refused)
{
	static const char *const tables[] = {
		"[]",
		"{}",
		"{\"bytes\":-1,\"columns\":[]}",
		"{\"bytes\":1.5,\"columns\":[]}",
		"{\"bytes\":1,\"columns\":{}}",
		TABLE("8", "7"),
		TABLE("8", "{\"type\":\"float128\",\"count\":0,\"values\":0}"),
		TABLE("8", "{\"count\":1,\"values\":0}"),
		TABLE("8", "{\"type\":\"float64\",\"values\":0}"),
		TABLE("8", "{\"type\":\"float64\",\"count\":1}"),
		TABLE("8", "{\"type\":\"float64\",\"count\":2,\"values\":0}"),
		TABLE("8", "{\"type\":\"float64\",\"count\":2305843009213693953,\"values\":0}"),
		TABLE("8", "{\"type\":\"float64\",\"count\":1,\"values\":64}"),
		TABLE("99", "{\"type\":\"float64\",\"count\":1,\"values\":8}"),
		TABLE("99", "{\"type\":\"int8\",\"count\":9007199254740991,\"values\":64}"),
		/* overlapping */
		TABLE("128", "{\"type\":\"int8\",\"count\":65,\"values\":0},"
			     "{\"type\":\"int8\",\"count\":1,\"values\":64}"),
		TABLE("128", "{\"type\":\"int8\",\"count\":1,\"values\":64},"
			     "{\"type\":\"int8\",\"count\":1,\"values\":0}"),
		TABLE("72", "{\"type\":\"int32\",\"count\":2,\"validity\":64,\"values\":0}"),
		TABLE("8", "{\"type\":\"int8\",\"count\":1,\"validity\":\"x\",\"values\":0}"),
		/* texts without offsets, with too few bytes */
		TABLE("68", "{\"type\":\"utf8\",\"count\":2,\"values\":64,\"bytes\":4}"),
		TABLE("68", "{\"type\":\"utf8\",\"count\":2,\"offsets\":0,\"values\":64}"),
		TABLE("67", TEXTS),
		TABLE("68", "{\"type\":\"utf8\",\"count\":9007199254740991,\"offsets\":0,"
			    "\"values\":64,\"bytes\":4}"),
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct columns *c = NULL;
		if (parse(tables[i], 1000, &c) >= 0)
			printf("# %s\n", tables[i]);
		ASSERT(!c);
	}
}

TEST(the_limit_is_named)
{
	struct cordon_error *e = NULL;
	struct columns *c = NULL;
	const char *table = TABLE("1001", "");

	ASSERT_EQ(columns_new(table, strlen(table), 1000, &c, &e), -CORDON_LIMIT);
	ASSERT_HAS(cordon_error_message(e), "1001 bytes, max 1000");
	ASSERT_HAS(cordon_error_message(e), "value_bytes");
	cordon_error_free(e);
}

/* Before it is parsed: that would take many times its length. */
TEST(what_cannot_be_a_table_is_not_parsed)
{
	static const char *const heads[] = { "{\"bytes\":64,\"columns\":[",
					     "{\"bytes\":64,\"columns\":[{",
					     "{\"bytes\":64,\"columns\":[" };
	static const char *const parts[] = { "{},", "\"a\":1,", "[]," };
	static const int codes[] = { -CORDON_LIMIT, -CORDON_PROTOCOL, -CORDON_PROTOCOL };

	for (size_t i = 0; i < 3; i++) {
		struct columns *c = NULL;
		struct buf b;

		buf_init(&b, 8 << 20);
		(void)buf_add_str(&b, heads[i]);
		for (int n = 0; n < 200000; n++)
			(void)buf_add_str(&b, parts[i]);
		/* It is not even JSON, which nobody comes to see. */
		ASSERT_EQ(columns_new(buf_text(&b), b.len, 1000, &c, NULL), codes[i]);
		ASSERT(!c);
		buf_done(&b);
	}
}

static int check(const char *table, const void *bytes, size_t len, off_t size)
{
	struct columns *c = NULL;
	int fd = file(bytes, len, size);

	ASSERT_EQ(parse(table, 1 << 20, &c), 0);
	int r = columns_check(c, fd, NULL);
	columns_free(c);
	close(fd);
	return r;
}

static int check_texts(int32_t a, int32_t b, int32_t c, const char *text)
{
	unsigned char bytes[68] = { 0 };
	int32_t offsets[] = { a, b, c };

	memcpy(bytes, offsets, sizeof(offsets));
	memcpy(bytes + 64, text, 4);
	return check(TABLE("68", TEXTS), bytes, sizeof(bytes), 68);
}

TEST(texts_are_checked)
{
	ASSERT_EQ(check_texts(0, 1, 4, "abcd"), 0);
	ASSERT_EQ(check_texts(0, 0, 4, "\xf0\x9f\x98\x80"), 0);
	ASSERT_EQ(check_texts(0, 2, 4, "\xc3\xa4\xc3\xa4"), 0);
	ASSERT(check_texts(1, 2, 4, "abcd") < 0);
	ASSERT(check_texts(0, 3, 2, "abcd") < 0);
	ASSERT(check_texts(0, 5, 4, "abcd") < 0);
	ASSERT(check_texts(0, -1, 4, "abcd") < 0);
	ASSERT(check_texts(0, 1, 3, "abcd") < 0);
	ASSERT(check_texts(0, 1, 4, "\xc3\xa4\xc3\xa4") < 0); /* cut in a character */
	ASSERT(check_texts(0, 1, 4, "ab\xff\xff") < 0);
	ASSERT(check_texts(0, 1, 4, "a\xed\xa0\x80") < 0); /* a surrogate */
	ASSERT(check_texts(0, 4, 4, "\xf0\x80\x80\x80") < 0);
	ASSERT(check_texts(0, 4, 4, "\xf5\x80\x80\x80") < 0);
	ASSERT(check_texts(0, 2, 4,
			   "\xc1\xbf"
			   "ab") < 0);
}

TEST(long_texts_are_read_in_pieces)
{
	enum { COUNT = 20000, EACH = 7, DATA = (COUNT + 1) * 4 / 64 * 64 + 64 };
	static unsigned char bytes[DATA + COUNT * EACH];
	char table[160];

	for (int32_t i = 0; i <= COUNT; i++) {
		int32_t offset = i * EACH;
		memcpy(bytes + (size_t)i * 4, &offset, 4);
		if (i < COUNT)
			memcpy(bytes + DATA + (size_t)i * EACH,
			       "\xe2\x82\xac"
			       "abcd",
			       EACH);
	}
	snprintf(table, sizeof(table),
		 TABLE("%zu", "{\"type\":\"utf8\",\"count\":%d,\"offsets\":0,\"values\":%d,"
			      "\"bytes\":%d}"),
		 sizeof(bytes), COUNT, DATA, COUNT * EACH);
	ASSERT_EQ(check(table, bytes, sizeof(bytes), sizeof(bytes)), 0);
	bytes[DATA + 19999 * EACH + 1] = 'x';
	ASSERT(check(table, bytes, sizeof(bytes), sizeof(bytes)) < 0);
}

TEST(truth_values_are_checked)
{
	const char *table = TABLE("3", "{\"type\":\"bool8\",\"count\":3,\"values\":0}");

	ASSERT_EQ(check(table, "\0\1\1", 3, 3), 0);
	ASSERT(check(table, "\0\1\2", 3, 3) < 0);
}

TEST(the_file_has_the_size_of_its_table)
{
	const char *table = TABLE("8", "{\"type\":\"float64\",\"count\":1,\"values\":0}");
	struct columns *c = NULL;
	int ends[2];

	ASSERT_EQ(check(table, "12345678", 8, 8), 0);
	ASSERT(check(table, "1234567", 7, 7) < 0);
	ASSERT(check(table, "12345678", 8, 9) < 0);
	ASSERT_EQ(parse(table, 100, &c), 0);
	ASSERT_EQ(pipe(ends), 0);
	ASSERT(columns_check(c, ends[0], NULL) < 0);
	ASSERT(columns_check(c, -1, NULL) < 0);
	close(ends[0]);
	close(ends[1]);
	columns_free(c);
}

/* A hole of a sparse file is read without giving it memory. */
TEST(holes_cost_nothing)
{
	struct columns *c = NULL;
	struct stat st;
	int fd = file("", 0, 1 << 28);

	ASSERT_EQ(parse(TABLE("268435456", "{\"type\":\"bool8\",\"count\":268435456,\"values\":0}"),
			1 << 28, &c),
		  0);
	ASSERT_EQ(columns_check(c, fd, NULL), 0);
	ASSERT_EQ(fstat(fd, &st), 0);
	ASSERT_EQ(st.st_blocks, 0);
	columns_free(c);
	close(fd);
}

TEST(seals)
{
	int fd = file("", 0, 4096);
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ASSERT(at != MAP_FAILED);
	ASSERT_EQ(os_seal_size(fd), 0);
	ASSERT(ftruncate(fd, 0) < 0 && ftruncate(fd, 8192) < 0);
	at[0] = 'x';
	ASSERT(os_seal(fd) < 0); /* it is mapped writable */
	munmap(at, 4096);
	ASSERT_EQ(os_seal(fd), 0);
	ASSERT(write(fd, "y", 1) < 0);
	close(fd);
	fd = file("", 0, 4096);
	ASSERT_EQ(os_seal_bytes(fd), 0);
	ASSERT(write(fd, "y", 1) < 0 && ftruncate(fd, 8192) < 0);
	ASSERT_EQ(ftruncate(fd, 0), 0); /* so that its memory can be given back */
	close(fd);
}

/* Receives bytes, and how many descriptors came with them. */
static size_t receive(struct pair *p, char *ret, size_t size)
{
	int fds[4];
	size_t count = 0;
	ssize_t n = os_fds_receive(p->guest, ret, size - 1, fds, 4, &count);

	ASSERT(n > 0);
	ret[n] = '\0';
	for (size_t i = 0; i < count; i++) {
		struct stat st;
		ASSERT_EQ(fstat(fds[i], &st), 0);
		ASSERT_EQ(st.st_size, 77);
		close(fds[i]);
	}
	return count;
}

TEST(a_descriptor_goes_with_its_line)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	int fd = file("", 0, 77);
	char text[256];

	ASSERT_EQ(wire_send_buffer(p.w, 1, 77, fd, NULL), 0);
	ASSERT_EQ(receive(&p, text, sizeof(text)), 1);
	ASSERT_STREQ(text, "{\"type\":\"buffer\",\"id\":1,\"bytes\":77}\n");
	ASSERT_EQ(wire_send_no_buffer(p.w, 1, "none", NULL), 0);
	ASSERT_EQ(receive(&p, text, sizeof(text)), 0);
	ASSERT_STREQ(text, "{\"type\":\"buffer\",\"id\":1,\"error\":\"none\"}\n");
	close(fd);
	pair_done(&p);
}

/* The line waits behind others that the guest has not read. Its descriptor must not come early, or
 * with another line. */
TEST(a_descriptor_waits_its_turn)
{
	enum { LONG = 1 << 20 };
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	int fd = file("", 0, 77);
	char *line = malloc(LONG + 1), text[65536];
	size_t seen = 0, found = 0;

	memset(line, 'x', LONG);
	line[LONG] = '\0';
	ASSERT_EQ(wire_send_line(p.w, line, LONG, NULL), 1);
	ASSERT_EQ(wire_send_buffer(p.w, 1, 77, fd, NULL), 1);
	ASSERT_EQ(wire_send_buffer(p.w, 1, 77, fd, NULL), -CORDON_PROTOCOL); /* one at a time */
	close(fd);
	while (found == 0) {
		found = receive(&p, text, sizeof(text));
		seen += strlen(text);
		ASSERT(wire_flush(p.w, NULL) >= 0);
	}
	ASSERT(seen > LONG);
	ASSERT_HAS(text, "{\"type\":\"buffer\",\"id\":1,\"bytes\":77}\n");
	free(line);
	pair_done(&p);
}

TEST(requests_for_buffers)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	struct wire_message m;

	say(&p, "{\"type\":\"buffer\",\"id\":1,\"bytes\":100}\n{\"type\":\"buffer\",\"id\":1}\n"
		"{\"type\":\"buffer\",\"id\":2}\n"
		"{\"type\":\"result\",\"id\":1,\"ok\":true,\"buffer\":{\"bytes\":1}}\n");
	ASSERT_EQ(wire_fill(p.w, NULL), 1);
	ASSERT_EQ(wire_next(p.w, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_BUFFER);
	ASSERT_EQ(m.bytes, 100);
	ASSERT_EQ(wire_next(p.w, &m, NULL), 1);
	ASSERT_EQ(m.bytes, 0);
	ASSERT_EQ(wire_next(p.w, &m, NULL), 1); /* that of another execution was dropped */
	ASSERT_EQ(m.type, WIRE_RESULT);
	ASSERT_STREQ(m.buffer.data, "{\"bytes\":1}");
	pair_done(&p);
	p = pair_ready((struct wire_options){ 0 }, 1);
	say(&p, "{\"type\":\"result\",\"id\":1,\"ok\":true,\"buffer\":[]}\n");
	ASSERT_EQ(wire_fill(p.w, NULL), 1);
	ASSERT_EQ(wire_next(p.w, &m, NULL), -CORDON_PROTOCOL);
	pair_done(&p);
}

/* Each counts as a message, so a guest cannot ask for ever. */
TEST(requests_for_buffers_are_limited)
{
	struct pair p = pair_ready((struct wire_options){ 0 }, 1);
	struct wire_message m;
	int r = 1;

	for (int i = 0; i < 30 && r > 0; i++) {
		say(&p, "{\"type\":\"buffer\",\"id\":1}\n");
		ASSERT_EQ(wire_fill(p.w, NULL), 1);
		r = wire_next(p.w, &m, NULL);
	}
	ASSERT_EQ(r, -CORDON_PROTOCOL);
	pair_done(&p);
}

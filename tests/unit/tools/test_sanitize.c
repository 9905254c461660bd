/* unit/tools/test_sanitize.c - what error texts must not reveal. */
#include "base/str.h"
#include "cordon/session.h"
#include "harness/test.h"

static void check(const char *message, const char *want)
{
	char *got = cordon_sanitize(message, 0);
	ASSERT(got);
	ASSERT_STREQ(got, want);
	free(got);
}

TEST(paths)
{
	check("cannot open file '/Users/john/d/s.csv': No such file",
	      "cannot open file '[path]': No such file");
	check("/home/u/x.R", "[path]");
	check("read /root/x and /srv/y.", "read [path] and [path].");
	check("in /mnt/data/a b", "in [path] b");
	check("at \"/usr/lib/R/x\"", "at \"[path]\"");
	check("open(/etc)", "open([path])");
	check("~/secret and ~bob/x", "[path] and [path]");
	check("C:\\Users\\bob\\x.txt not found", "[path] not found");
	check("'D:/data/x'", "'[path]'");
	check("\\\\server\\share\\f", "[path]");
	check("path=/var/log/x.log:12", "path=[path]:12");
	check("/custom/place/file", "[path]");
	check("file:///etc/passwd", "file://[host]");
	/* Not paths. */
	check("a/b is 3/4, and/or / none", "a/b is 3/4, and/or / none");
	check("unknown option /x", "unknown option /x");
	check("./relative/x", "./relative/x");
	check("object 'x' not found", "object 'x' not found");
}

TEST(processes)
{
	check("process '12345' died, PID 67890", "[pid] died, [pid]");
	check("process 77 and pid=8, pid: 9", "[pid] and [pid], [pid]");
	check("the process has 12 files", "the process has 12 files");
	check("rapid 5", "rapid 5");
}

TEST(hosts)
{
	check("192.168.1.42:5432 refused", "[host] refused");
	check("to 10.0.0.1.", "to [host].");
	check("at ::1 and fe80::1%eth0", "at [host] and [host]");
	check("[2001:db8::1]:443 timed out", "[host] timed out");
	check("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "[host]");
	check("could not connect to db.internal.example:5432", "could not connect to [host]");
	check("could not resolve host: api.example.org", "could not resolve host: [host]");
	check("server 'db01' is down", "server '[host]' is down");
	check("connection to localhost failed", "connection to [host] failed");
	check("GET https://user:pw@api.example.org/v1?q=1 failed", "GET https://[host] failed");
	/* Not hosts. */
	check("at 12:34:56 o'clock", "at 12:34:56 o'clock");
	check("host not found, server error", "host not found, server error");
	check("std::vector and dplyr::filter", "std::vector and dplyr::filter");
	check("999.1.1.1", "999.1.1.1");
	check("version 1.2.3", "version 1.2.3");
	check("use numpy.array", "use numpy.array");
}

TEST(traces)
{
	check("it failed\nCall stack:\n 1. bar()", "it failed");
	check("it failed\nTraceback (most recent call last):\n  File \"/x/y.py\"", "it failed");
	check("Traceback (most recent call last):\n  File \"x\"\nValueError: bad\n",
	      "ValueError: bad");
	check("Error: x\n    at foo (/srv/a.js:1:2)\n    at bar", "Error: x");
	check("no Traceback here", "no Traceback here");
}

TEST(length)
{
	char long_text[1201];
	memset(long_text, 'x', 1200);
	long_text[1200] = '\0';
	char *got = cordon_sanitize(long_text, 100);
	ASSERT_EQ(strlen(got), 100);
	ASSERT(str_ends(got, "..."));
	free(got);
	got = cordon_sanitize(long_text, 0);
	ASSERT_EQ(strlen(got), 500);
	free(got);
	long_text[500] = '\0';
	check(long_text, long_text);
	got = cordon_sanitize("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5);
	ASSERT_STREQ(got, "\xc3\xa9\xc3\xa9...");
	free(got);
	got = cordon_sanitize("abcdef", 2);
	ASSERT_STREQ(got, "");
	free(got);
}

/* A guest may choose what a tool's error repeats: each must be read once, not once for each letter.
 */
TEST(much)
{
	static const char *const units[] = {
		"x", "a.b ", "/a", "1.", "~", "host a", "pid(", "::["
	};
	enum { MUCH = 1 << 20 };
	char *text = malloc(MUCH + 1);

	ASSERT(text);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		for (size_t at = 0; at < MUCH; at++)
			text[at] = units[i][at % strlen(units[i])];
		text[MUCH] = '\0';
		char *got = cordon_sanitize(text, MUCH);
		ASSERT(got && strlen(got) <= MUCH);
		free(got);
		got = cordon_sanitize(text, 0);
		ASSERT(got && strlen(got) <= 500);
		free(got);
	}
	free(text);
}

TEST(odd_input)
{
	check(NULL, "Unknown error");
	check("", "Unknown error");
	check("bad \xff byte", "bad \xef\xbf\xbd byte");
	check("/", "/");
	check("[", "[");
	check("~", "~");
	check("\n\n", "");
	check("://", "://");
	check("C:", "C:");
}

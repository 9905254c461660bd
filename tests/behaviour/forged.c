/* tests/behaviour/forged.c - code that has found the guest's wire and its execution's id, and says
 * what it likes: results, tool calls, outputs, and binary columns. It can end its own execution and
 * lie about its own value. Nothing else changes: not the host, not the next execution, not another
 * session. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"
#include "harness/test.h"

#define PRELUDE                                                                                    \
	"import fcntl, json, mmap, os, socket, struct, sys, threading, time\n"                     \
	"f = sys._getframe()\n"                                                                    \
	"while 'm' not in f.f_locals or 'self' not in f.f_locals: f = f.f_back\n"                  \
	"ident, wire = f.f_locals['m']['id'], f.f_locals['self'].wire\n"                           \
	"def raw(data):\n"                                                                         \
	"    while data: data = data[os.write(3, data):]\n"                                        \
	"def say(**m): raw(json.dumps(m, separators=(',', ':')).encode() + b'\\n')\n"              \
	"def answer(**m): say(type='result', id=ident, ok=True, **m)\n"                            \
	"def wait():\n"                                                                            \
	"    while True: time.sleep(60)\n"                                                         \
	"def put(n, data=b''):\n"                                                                  \
	"    fd = wire.buffer(ident, n)\n"                                                         \
	"    with mmap.mmap(fd, n) as m: m[:len(data)] = data\n"                                   \
	"    return fd\n"                                                                          \
	"def table(n, *columns): answer(value=1, buffer={'bytes': n, 'columns': list(columns)})\n" \
	"def column(kind, count, values, **m): return dict(type=kind, count=count, "               \
	"values=values, **m)\n"

struct forgery {
	const char *name, *code;
	const char *kind, *text; /* kind NULL: it is a success; text: in the result's JSON */
};

static const struct forgery forgeries[] = {
	/* Results. */
	{ "a value of its own", "answer(value='forged'); wait()", NULL, "forged" },
	{ "a result twice", "answer(value=1); answer(value=2); wait()", NULL, "\"result\": 1" },
	{ "results in advance",
	  "for i in range(1, 200): say(type='result', id=ident + i, ok=True, value='ahead')\n'own'",
	  NULL, "own" },
	{ "results for others without end",
	  "while True: say(type='result', id=ident + 1, ok=True, value='x')", "protocol", "flood" },
	{ "an id that is negative", "say(type='result', id=-1, ok=True); wait()", "protocol",
	  "positive" },
	{ "an id that overflows",
	  "raw(b'{\"type\":\"result\",\"id\":18446744073709551617,\"ok\":true}\\n'); wait()",
	  "protocol", NULL },
	{ "an id that is a fraction",
	  "raw(b'{\"type\":\"result\",\"id\":%d.0,\"ok\":true}\\n' % ident); wait()", "protocol",
	  NULL },
	{ "a second hello", "say(type='hello', version=1, token='0' * 64, guest='python')\n'own'",
	  NULL, "own" },
	{ "orders of the host",
	  "for t in 'execute', 'interrupt', 'exit', 'spawn', 'token': "
	  "say(type=t, id=ident, code='1')\n'own'",
	  NULL, "own" },
	{ "an object in 1000 objects",
	  "raw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"value\":' % ident + b'{\"a\":' * "
	  "1000 + b'1' + b'}' * 1001 + b'\\n'); wait()",
	  "protocol", NULL },
	{ "two million values",
	  "raw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"value\":[' % ident + b'1,' * 2000000 "
	  "+ b'1]}\\n'); wait()",
	  "protocol", NULL },
	{ "a key twice, spelt differently",
	  "raw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"\\\\u006fk\":false}\\n' % ident); "
	  "wait()",
	  "protocol", "duplicate" },
	{ "a line that never ends", "while True: raw(b'{\"type\":\"result\",' + b' ' * 60000)",
	  "protocol", "too large" },
	{ "a NUL", "raw(b'{\"type\":\"result\"\\0}\\n'); wait()", "protocol", NULL },
	{ "half a character",
	  "raw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"text\":\"\\xc3\"}\\n' % ident); "
	  "wait()",
	  "protocol", NULL },
	{ "a line and the end", "raw(b'{\"type\":\"res'); os._exit(0)", "crashed", NULL },
	{ "denials without end",
	  "answer(denials=[{'operation': 'exec', 'target': 'x' * 50}] * 20000); wait()", NULL,
	  NULL },
	{ "a million denials",
	  "raw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"denials\":[' % ident "
	  "+ b'{},' * 900000 + b'{}]}\\n'); wait()",
	  NULL, "\"denials\": []" },
	{ "warnings without end", "answer(warnings=['w' * 299] * 20000); wait()", NULL, NULL },
	{ "a directory elsewhere", "answer(value=1, cwd='/../../etc'); wait()", NULL, NULL },
	{ "tools that are not there",
	  "for i in range(20): say(type='tool_call', id=ident, call=i + 1, tool='../x', args={})\n"
	  "'own'",
	  NULL, "own" },
	{ "calls with the largest numbers",
	  "for c in 2**63 - 1, 2**63 - 2, 1, 2**62: say(type='tool_call', id=ident, call=c, "
	  "tool='x', args={})\n'own'",
	  NULL, "own" },
	{ "outputs without end",
	  "for i in range(3000): say(type='output', id=ident, mime='text/plain', encoding='text', "
	  "data='x' * 50000)\n'own'",
	  NULL, "not kept" },
	{ "a type that breaks a header",
	  "say(type='output', id=ident, mime='text/html\\r\\nX: y', encoding='text', data=''); "
	  "wait()",
	  "protocol", "MIME" },
	/* Descriptors. */
	{ "descriptors with a message",
	  "s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3)\n"
	  "for i in range(50): s.sendmsg([b'{\"type\":\"x\"}\\n'], [(socket.SOL_SOCKET, "
	  "socket.SCM_RIGHTS, struct.pack('4i', 0, 1, 2, 3))])\n"
	  "s.detach()\n'own'",
	  NULL, "own" },
	/* Binary columns. */
	{ "columns without a file", "table(64, column('int8', 1, 0)); wait()", "protocol",
	  "not given" },
	{ "a file of the largest size",
	  "try: wire.buffer(ident, 2**63 - 1)\nexcept ValueError as e: print(e)\n'own'", NULL,
	  "value_bytes" },
	{ "files without end",
	  "n = 0\nfor i in range(1000):\n"
	  "    try: wire.buffer(ident, 1 << 20); n += 1\n"
	  "    except ValueError: break\nassert n == 1, n\n'own'",
	  NULL, "own" },
	{ "requests without end",
	  "def read():\n    while True: os.read(3, 65536)\n"
	  "threading.Thread(target=read, daemon=True).start()\n"
	  "while True: say(type='buffer', id=ident, bytes=1 << 20)",
	  "protocol", "flood" },
	{ "a file that grows",
	  "fd = put(64)\ntry: os.ftruncate(fd, 1 << 40)\nexcept OSError: print('refused')\n"
	  "os.lseek(fd, 64, 0)\ntry: os.write(fd, b'x')\nexcept OSError: print('refused')\n'own'",
	  NULL, "refused\\nrefused" },
	{ "a file that shrinks",
	  "fd = put(64)\ntry: os.ftruncate(fd, 1)\nexcept OSError: print('refused')\n'own'", NULL,
	  "refused" },
	{ "a file that is still mapped",
	  "fd = wire.buffer(ident, 64)\nm = mmap.mmap(fd, 64)\ntable(64, column('int8', 1, 0)); "
	  "wait()",
	  "protocol", "seal" },
	{ "a file that is mapped for reading",
	  "fd = wire.buffer(ident, 64)\nm = mmap.mmap(fd, 64, prot=mmap.PROT_READ)\n"
	  "table(64, column('int8', 1, 0)); wait()",
	  "protocol", "seal" },
	{ "a file that is sealed against seals",
	  "fd = put(64)\nfcntl.fcntl(fd, 1033, 1)\ntable(64, column('int8', 1, 0)); wait()",
	  "protocol", "seal" },
	{ "a file of another length", "put(64); table(128, column('int8', 1, 0)); wait()",
	  "protocol", "as long" },
	{ "a column beyond the file", "put(64); table(64, column('float64', 9, 0)); wait()",
	  "protocol", "inside" },
	{ "a count that overflows", "put(64); table(64, column('float64', 2**61, 0)); wait()",
	  "protocol", NULL },
	{ "a count that overflows when it is one more",
	  "put(64); table(64, column('utf8', 2**53 - 1, 0, offsets=0, bytes=1)); wait()",
	  "protocol", NULL },
	{ "a count below zero", "put(64); table(64, column('int8', -1, 0)); wait()", "protocol",
	  NULL },
	{ "columns on the same bytes",
	  "put(128); table(128, column('int8', 64, 0), column('int8', 64, 0)); wait()", "protocol",
	  NULL },
	{ "a column between two bytes", "put(128); table(128, column('int64', 1, 3)); wait()",
	  "protocol", NULL },
	{ "a type of its own", "put(64); table(64, column('object', 1, 0)); wait()", "protocol",
	  "unknown" },
	{ "offsets that descend",
	  "put(256, struct.pack('<3i', 0, 9, 2))\n"
	  "table(256, column('utf8', 2, 128, offsets=0, bytes=9)); wait()",
	  "protocol", "ascend" },
	{ "offsets beyond the texts",
	  "put(256, struct.pack('<2I', 0, 2**32 - 1))\n"
	  "table(256, column('utf8', 1, 128, offsets=0, bytes=9)); wait()",
	  "protocol", "ascend" },
	{ "texts that are none",
	  "put(256, struct.pack('<2I', 0, 2) + b'\\0' * 120 + b'\\xed\\xa0')\n"
	  "table(256, column('utf8', 1, 128, offsets=0, bytes=2)); wait()",
	  "protocol", "UTF-8" },
	{ "a truth that is 7", "put(64, b'\\7'); table(64, column('bool8', 1, 0)); wait()",
	  "protocol", "truth" },
	{ "a hole of all bytes",
	  "put(256 << 20); table(256 << 20, column('bool8', 256 << 20, 0)); wait()", NULL, NULL },
	{ "columns without end", "put(64); table(64, *[column('int8', 0, 0)] * 200000); wait()",
	  "protocol", NULL },
	{ "a million columns",
	  "put(64)\nraw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"buffer\":{\"bytes\":64,"
	  "\"columns\":[' % ident "
	  "+ b'{},' * 900000 + b'{}]}}\\n'); wait()",
	  "protocol", "max" },
	{ "columns with a million members",
	  "put(64)\nraw(b'{\"type\":\"result\",\"id\":%d,\"ok\":true,\"buffer\":{\"bytes\":64,"
	  "\"columns\":[{' % ident "
	  "+ b','.join(b'\"%x\":1' % i for i in range(700000)) + b'}]}}\\n'); wait()",
	  "protocol", NULL },
	{ "writing while the host checks",
	  "fd = put(1 << 20)\n"
	  "def write():\n"
	  "    while True:\n"
	  "        try: os.pwrite(fd, b'\\7' * 4096, 0)\n"
	  "        except OSError: os.write(1, b'sealed'); return\n"
	  "threading.Thread(target=write, daemon=True).start()\n"
	  "table(1 << 20, column('int8', 1 << 20, 0)); wait()",
	  NULL, NULL },
};

static struct cordon_result *forge(struct cordon_session *s, const char *code)
{
	cleanup_free char *whole = str_printf(PRELUDE "%s", code);
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_execute_options o = { .code = whole,
					    .takes_buffer = true,
					    .timeout_ms = 60000 };
	struct cordon_result *r = NULL;

	ASSERT(whole);
	if (cordon_session_execute(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_error_message(e));
	return r;
}

static bool is_as_said(const struct forgery *f, struct cordon_result *r)
{
	const char *kind = cordon_result_error_kind(r), *json = cordon_result_json(r);
	bool is_kind = f->kind ? kind && strcmp(kind, f->kind) == 0 : !kind;
	bool is_text = !f->text || strstr(json, f->text);

	if (!is_kind || !is_text)
		fprintf(stderr, "# %s: want %s, '%s': %.400s\n", f->name,
			f->kind ? f->kind : "success", f->text ? f->text : "", json);
	return is_kind && is_text;
}

/* The host's own memory, in KiB; 0: it cannot be told, or sanitizers add their own. */
static long peak_kib(void)
{
	char line[128];
	long n = 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			n = strtol(line + 6, NULL, 10);
	if (f)
		(void)fclose(f);
#else
	(void)line;
#endif
	return n;
}

TEST(what_code_says_in_the_guests_name_concerns_its_own_execution)
{
	struct cordon_session *s = open_with("python", NULL), *other = open_with("python", NULL);

	int wrong = 0;

	must(other, "x = 41");
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(*forgeries); i++) {
		struct cordon_result *r = forge(s, forgeries[i].code);

		wrong += !is_as_said(&forgeries[i], r);
		cordon_result_free(r);
		ASSERT_EQ(cordon_session_restart(s, NULL), 0);
		value_is(s, "1 + 1", "2");
		value_is(other, "x + 1", "42");
	}
	ASSERT_EQ(wrong, 0);
	cordon_session_close(other);
	cordon_session_close(s);
	/* Two or three copies of the longest line, whatever is in it. */
	ASSERT(peak_kib() < 64 * 1024);
}

/* The bytes that were checked are those that are read. */
TEST(columns_do_not_change_after_the_check)
{
	struct cordon_session *s = open_with("python", NULL);
	struct cordon_result *r = forge(s, "fd = put(4096)\n"
					   "def write():\n"
					   "    while True:\n"
					   "        for b in b'\\0', b'\\1', b'\\7':\n"
					   "            try: os.pwrite(fd, b * 4096, 0)\n"
					   "            except OSError: pass\n"
					   "threading.Thread(target=write, daemon=True).start()\n"
					   "table(4096, column('bool8', 4096, 0)); wait()");
	uint64_t bytes = 0;
	int fd = cordon_result_buffer(r, &bytes);
	char once[4096], again[4096];

	/* Either it was seen, or it is as it was. */
	if (fd >= 0) {
		ASSERT_EQ(bytes, 4096);
		ASSERT_EQ(pread(fd, once, sizeof(once), 0), 4096);
		for (size_t i = 0; i < sizeof(once); i++)
			ASSERT(once[i] == 0 || once[i] == 1);
		ASSERT_EQ(pread(fd, again, sizeof(again), 0), 4096);
		ASSERT(memcmp(once, again, sizeof(once)) == 0);
		ASSERT(pwrite(fd, "x", 1, 0) < 0);
	} else {
		ASSERT_STREQ(cordon_result_error_kind(r), "protocol");
	}
	cordon_result_free(r);
	cordon_session_close(s);
}

/* A context has a wire and ids of its own. Its neighbours cannot answer for it, although they see
 * its processes: its descriptors are not theirs. */
TEST(a_context_cannot_speak_for_another)
{
	static const char *const languages[] = { "python", NULL };
	struct cordon_session *s = open_languages("python", languages, new_policy(NULL)), *c = NULL;

	ASSERT_EQ(cordon_session_context(s, "python", "victim", &c, NULL), 0);
	must(c, "import os; open('/tmp/pid', 'w').write(str(os.getpid()))");
	must(s, "import ctypes, os\n"
		"pid, refused = int(open('/tmp/pid').read()), []\n"
		"libc = ctypes.CDLL(None, use_errno=True)\n"
		"try: os.open(f'/proc/{pid}/fd/3', os.O_RDWR)\n"
		"except OSError: refused.append('open')\n"
		"try: open(f'/proc/{pid}/mem', 'rb+')\n"
		"except OSError: refused.append('mem')\n"
		"if libc.syscall(434, pid, 0) < 0 or libc.syscall(438, libc.syscall(434, pid, 0), "
		"3, 0) < "
		"0:\n"
		"    refused.append('pidfd_getfd')\n"
		"assert len(refused) == 3, refused");
	value_is(c, "20 + 1", "21");
	cordon_session_close(s);
}

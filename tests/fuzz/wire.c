/* fuzz/wire.c - a guest's bytes against the host's end of the wire. The first byte chooses: raw
 * bytes as one JSON text (the scanner compared with the parser), raw bytes as a stream after hello,
 * or messages made of fragments, to reach deep states. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/json.h"
#include "wire/scan.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HELLO "{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "\"}\n"

static void check(int is_true)
{
	if (!is_true)
		abort();
}

/* What the scanner accepts, the parser of the other rooms must accept too. */
static void compare(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	cleanup_json json_t *j = NULL;

	check(copy != NULL);
	memcpy(copy, data, size);
	copy[size] = '\n';
	const char *why = scan_value(copy, size);
	check(memcmp(copy, data, size) == 0);
	if (!why)
		check(json_parse(copy, size, 0, &j, NULL) == 0);
	free(copy);
}

static void check_text(struct wire_text t)
{
	check(!t.data || t.data[t.len] == '\0');
}

static void check_message(const struct wire_message *m, uint64_t *last_call)
{
	check(m->type == WIRE_UNKNOWN || m->id == 1);
	check_text(m->tool);
	check_text(m->args);
	check_text(m->value);
	check_text(m->text);
	check_text(m->data);
	check_text(m->name);
	check_text(m->error.message);
	if (m->type == WIRE_TOOL_CALL) {
		cleanup_json json_t *j = NULL;
		check(m->tool.data && m->call > 0);
		check(json_parse(m->args.data, m->args.len, 0, &j, NULL) == 0);
		check(json_is_object(j));
		check(m->call != *last_call);
		*last_call = m->call;
	}
	if (m->value.data) {
		cleanup_json json_t *j = NULL;
		check(json_parse(m->value.data, m->value.len, 0, &j, NULL) == 0);
	}
}

/* Sends the stream in pieces and takes what comes out. */
static void stream(const char *bytes, size_t len, size_t piece)
{
	struct wire_options opts = { .token = TOKEN, .message_bytes = 2000, .rpc_bytes = 6000 };
	struct wire_message m;
	struct wire *w = NULL;
	uint64_t last_call = 0, handed = 0;
	int fds[2], r = 0;

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	check(wire_new(fds[0], &opts, &w, NULL) == 0);
	check(send(fds[1], HELLO, strlen(HELLO), 0) > 0);
	check(wire_fill(w, NULL) == 1 && wire_next(w, &m, NULL) == 1 && m.type == WIRE_HELLO);
	wire_begin(w, 1, 3);
	for (size_t at = 0; r >= 0 && at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		check(send(fds[1], bytes + at, n, 0) == (ssize_t)n);
		while ((r = wire_fill(w, NULL)) > 0) {
			while ((r = wire_next(w, &m, NULL)) > 0) {
				check_message(&m, &last_call);
				if (m.type == WIRE_UNKNOWN || m.type == WIRE_TOOL_CALL)
					handed++;
			}
			if (r < 0)
				break;
		}
	}
	check(handed <= 3 + 10 + 10 * 3);
	wire_free(w);
	close(fds[1]);
}

static const char *const fragments[] = {
	"{\"type\":\"tool_call\",\"id\":1,\"call\":",
	"{\"type\":\"result\",\"id\":1,\"ok\":true,\"value\":",
	"{\"type\":\"output\",\"id\":1,\"mime\":\"a/b\",\"encoding\":\"text\",\"data\":",
	"{\"type\":\"result\",\"id\":1,\"ok\":false,\"error\":{\"kind\":\"x\",\"message\":",
	"{\"type\":",
	"1",
	"2",
	"3",
	"1000000",
	"-1",
	"0",
	"1.5",
	"1e400",
	",\"tool\":\"add\"",
	",\"args\":{\"a\":1}",
	",\"args\":",
	",\"exit_code\":",
	",\"text\":",
	"\"result\"",
	"\"tool_call\"",
	"\"hello\"",
	"\"\\ud83d\\ude00\"",
	"\"\\u0000\"",
	"\"a\"",
	"[",
	"]",
	"{",
	"}",
	"},",
	",",
	":",
	"null",
	"true",
	"}\n",
	"}}\n",
	"\n",
	"\"",
	"\\",
	",\"id\":2",
	",\"type\":\"x\"",
	"\xff",
	"\xc3\xa9",
};

static void structured(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf b;
	buf_init(&b, 100000);
	for (size_t i = 1; i < size; i++) {
		size_t at = data[i] % (sizeof(fragments) / sizeof(*fragments) + 1);
		if (at < sizeof(fragments) / sizeof(*fragments))
			(void)buf_add_str(&b, fragments[at]);
		else
			for (int n = 0; n < 500; n++)
				(void)buf_add_char(&b, (char)('0' + n % 10));
	}
	if (b.len > 0)
		stream(b.data, b.len, (size_t)data[0] * 3 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 65536)
		return 0;
	if (data[0] % 3 == 0)
		compare(data + 1, size - 1);
	else if (data[0] % 3 == 1)
		stream((const char *)data + 1, size - 1, data[0] + 1U);
	else
		structured(data + 1, size - 1);
	return 0;
}

/* fuzz/serve.c - lines to the RPC and MCP servers, with a fake library (serve/fake.c): every line
 * that comes back must be JSON, and everything must be freed at the end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "serve/mcp/mcp.h"
#include "serve/rpc/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 64 };

static bool drop(const json_t *message, void *arg)
{
	(void)message;
	(void)arg;
	return true;
}

static void to_mcp(struct mcp *m, const char *line, size_t len)
{
	const struct mcp_sink sink = { .send = drop };
	cleanup_json json_t *message = NULL;

	if (json_parse(line, len, 0, &message, NULL) < 0)
		return;
	cleanup_json json_t *answer = mcp_handle(m, message, &sink);
	size_t text_len = 0;
	cleanup_free char *text = answer ? json_text(answer, &text_len) : NULL;
	if (answer && (!text || memchr(text, '\n', text_len)))
		abort();
}

static void check_answers(int fd)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, 64 << 20);
	if (lseek(fd, 0, SEEK_SET) != 0 || file_read_to_end(fd, &b, NULL) < 0)
		return; /* more than anybody wants to check */
	for (char *at = b.data, *nl; at && (nl = memchr(at, '\n', b.len - (size_t)(at - b.data)));
	     at = nl + 1) {
		json_t *j = NULL;
		if (json_parse(at, (size_t)(nl - at), 0, &j, NULL) < 0)
			abort();
		json_decref(j);
	}
}

/* What waits for somebody else waits for ever where there is only one thread. */
static bool waits(const char *line, size_t len)
{
	return line && (memmem(line, len, "suspend", 7) || memmem(line, len, "storage", 7) ||
			memmem(line, len, "\\u", 2));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mcp_options mo = { 0 };
	cleanup_close int out = memfd_create("answers", MFD_CLOEXEC);
	struct rpc *c = rpc_new(&(struct rpc_options){ .in_fd = -1, .out_fd = out });
	const char *at = (const char *)data, *end = at + size;
	bool goes_on = true;
	struct mcp m;

	if (!c || out < 0)
		abort();
	mcp_init(&m, &mo);
	for (int i = 0; i < LINES_MAX && at < end; i++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);
		if (!waits(at, len)) {
			goes_on = goes_on && rpc_take_line(c, at, len);
			to_mcp(&m, at, len);
		}
		at += len + 1;
	}
	rpc_free(c);
	mcp_done(&m);
	check_answers(out);
	return 0;
}

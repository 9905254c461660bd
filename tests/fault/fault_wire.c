/* fault/fault_wire.c - the wire when memory runs out. */
#include <sys/socket.h>

#include "harness/fault.h"
#include "wire/scan.h"
#include "wire/wire.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int talk(int guest, struct wire *w, struct cordon_error **e)
{
	static const char text[] = "{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "\"}\n"
				   "{\"type\":\"tool_call\",\"id\":1,\"call\":1,\"tool\":\"a\"}\n";
	struct wire_message m;
	struct wire_execute x = { .id = 1, .code = "1", .code_len = 1 };

	ASSERT(send(guest, text, strlen(text), 0) > 0);
	int r = wire_fill(w, e);
	if (r >= 0)
		r = wire_next(w, &m, e);
	wire_begin(w, 1, 1);
	if (r >= 0)
		r = wire_next(w, &m, e);
	if (r >= 0)
		r = wire_send_execute(w, &x, e);
	return r < 0 ? r : 0;
}

TEST(a_conversation)
{
	FAULT_LOOP
	{
		struct wire_options opts = { .token = TOKEN };
		struct cordon_error *e = NULL;
		struct wire *w = NULL;
		int fds[2];
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		int r = wire_new(fds[0], &opts, &w, &e);
		if (r < 0)
			close(fds[0]);
		else
			r = talk(fds[1], w, &e);
		ASSERT_FAULT(r);
		ASSERT((r < 0) == (e != NULL));
		cordon_error_free(e);
		wire_free(w);
		close(fds[1]);
	}
}

TEST(many_keys)
{
	FAULT_LOOP
	{
		char text[2000] = "{\"\\u0061\":1";
		for (int i = 0; i < 100; i++)
			sprintf(text + strlen(text), ",\"k%d\":1", i);
		strcat(text, "}");
		const char *why = scan_value(text, strlen(text));
		ASSERT_EQ(why != NULL, fault_was_hit());
		if (why)
			ASSERT_STREQ(why, "out of memory");
	}
}

/* unit/wire/pair.h - a wire and the guest's end of its socket. */
#pragma once

#include <sys/socket.h>

#include "harness/test.h"
#include "wire/wire.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HELLO                                                                                      \
	"{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN                                     \
	"\",\"guest\":\"python\",\"language\":\"3.11.2\"}\n"

struct pair {
	struct wire *w;
	int guest;
};

static inline struct pair pair_new(struct wire_options opts)
{
	int fds[2];
	struct pair p = { 0 };

	opts.token = opts.token ? opts.token : TOKEN;
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	ASSERT_EQ(wire_new(fds[0], &opts, &p.w, NULL), 0);
	p.guest = fds[1];
	return p;
}

static inline void pair_done(struct pair *p)
{
	wire_free(p->w);
	close_fdp(&p->guest);
}

static inline void say(struct pair *p, const char *text)
{
	size_t len = strlen(text);
	ASSERT_EQ(send(p->guest, text, len, 0), (long long)len);
}

/* Past the handshake, inside execution 1. */
static inline struct pair pair_ready(struct wire_options opts, uint64_t tool_calls)
{
	struct pair p = pair_new(opts);
	struct wire_message m;

	say(&p, HELLO);
	ASSERT_EQ(wire_fill(p.w, NULL), 1);
	ASSERT_EQ(wire_next(p.w, &m, NULL), 1);
	ASSERT_EQ(m.type, WIRE_HELLO);
	wire_begin(p.w, 1, tool_calls);
	return p;
}

static inline int next(struct pair *p, struct wire_message *ret, struct cordon_error **reterr)
{
	int r = wire_next(p->w, ret, reterr);

	while (r == 0 && wire_fill(p->w, reterr) > 0)
		r = wire_next(p->w, ret, reterr);
	return r;
}

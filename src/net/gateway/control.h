/* net/gateway/control.h - the gateway's control socket to the host program: one JSON object per
 * line. Sent: "ready", "relay", "event", "ask" and "ask.over". Received: "answer", "execution",
 * "counters" and "stop". */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/loop.h"

enum {
	CONTROL_LINE_MAX = 65536,
	CONTROL_QUEUE_MAX = 4 << 20,
	CONTROL_QUEUE_BUSY = 256 << 10, /* beyond this no connection is accepted */
};

typedef void (*control_fn)(const json_t *message, void *arg);

struct control {
	int fd;
	struct loop *loop;
	struct loop_source *source;
	control_fn fn;
	void *arg;
	struct buf in, out;
	bool is_gone; /* the host program closed it: the gateway ends */
};

int control_open(struct control *c, struct loop *l, int fd, control_fn fn, void *arg,
		 struct cordon_error **reterr);
void control_close(struct control *c);
/* Takes ownership of the reference. */
void control_send(struct control *c, json_t *message);
bool control_is_busy(const struct control *c);

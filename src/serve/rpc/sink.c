/* serve/rpc/sink.c - see sink.h. */
#include "serve/rpc/sink.h"

#include <stdio.h>
#include <string.h>

bool sink_send_line(const struct sink_message *m, void *lineout)
{
	char head[160], id[48] = "";

	if (m->id)
		(void)snprintf(id, sizeof(id), "\"id\":\"%s\",", m->id);
	int n = snprintf(head, sizeof(head),
			 "{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":", id, m->method);
	const struct line_part parts[] = { { head, (size_t)n }, { m->params, m->len }, { "}", 1 } };

	return n > 0 && (size_t)n < sizeof(head) && lineout_send(lineout, parts, 3);
}

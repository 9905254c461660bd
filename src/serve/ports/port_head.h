/* serve/ports/port_head.h - the heads of a request to a server in a sandbox and of its answer:
 * which headers pass. */
#pragma once

#include "base/buf.h"
#include "net/gateway/http.h"
#include "serve/ports/port_proxy.h"

enum { PORT_HEAD_MAX = 48 << 10 };

/* The head of the request, with an empty line. -CORDON_INVALID: a header that cannot be passed on.
 */
int port_head_request(struct httpd_exchange *x, const struct port_proxy *proxy,
		      const struct port_proxy_target *to, struct buf *ret,
		      struct cordon_error **reterr);
/* Whether the client wants to leave HTTP for WebSocket. With a body that is not possible. */
bool port_head_is_websocket(struct httpd_exchange *x);
/* How long the client waits for the answer, in milliseconds. */
uint64_t port_head_wait_ms(struct httpd_exchange *x);

/* Adds the headers of an answer that pass to that of x. */
void port_head_answer(struct httpd_exchange *x, const struct port_proxy_target *to,
		      const struct http_head *h);

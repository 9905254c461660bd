/* serve/http/sse.h - server-sent events (text/event-stream) on a stream of httpd.h. */
#pragma once

#include "serve/http/httpd.h"

/* Whether the client wants events instead of one answer. */
bool sse_is_wanted(struct httpd_exchange *x);
/* data: JSON text on one line. False: the client is gone. */
bool sse_send(struct httpd_exchange *x, const char *event, const char *data, size_t len);
/* The event's data is {"data": the bytes as text}; invalid UTF-8 becomes U+FFFD. */
bool sse_send_text(struct httpd_exchange *x, const char *event, const char *bytes, size_t len);

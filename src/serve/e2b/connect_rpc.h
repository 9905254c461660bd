/* serve/e2b/connect_rpc.h - the Connect protocol with JSON, as far as envd's clients use it.
 *
 * A unary call is a POST of one JSON object. A call that streams has one envelope in its body, and
 * its answer is a row of envelopes: a byte of flags, the length (4 bytes, big endian) and JSON; the
 * last one has the flag 2 and says how it ended. */
#pragma once

#include "base/json.h"
#include "serve/http/httpd.h"

enum { CONNECT_RPC_FRAME_BYTES = 5 };

/* Reads the message, an object. Compressed ones and those of another type are refused. */
int connect_rpc_read(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr);
/* All messages of a body of envelopes, as an array. */
int connect_rpc_read_all(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr);
/* Checks the next envelope of len bytes; the text of its message. */
int connect_rpc_next(const char *bytes, size_t len, const char **ret, size_t *ret_len,
		     struct cordon_error **reterr);

/* The answer of a unary call; takes the message. */
void connect_rpc_answer(struct httpd_exchange *x, json_t *message);
/* The whole answer is an error, of either kind of call. */
void connect_rpc_fail(struct httpd_exchange *x, const struct cordon_error *e);
void connect_rpc_fail_as(struct httpd_exchange *x, const char *code, const char *sentence);

/* A stream: begin, send any number of messages, end. */
void connect_rpc_begin(struct httpd_exchange *x);
/* An envelope around this text, for httpd_stream_write; the caller frees it. NULL: out of memory.
 */
char *connect_rpc_frame(unsigned char flags, const char *text, size_t len, size_t *ret_len);
/* Takes the message. False: the client is gone. */
bool connect_rpc_send(struct httpd_exchange *x, json_t *message);
/* code NULL: it ended well. */
void connect_rpc_end(struct httpd_exchange *x, const char *code, const char *sentence);

/* The protocol's name of a code of ours. */
const char *connect_rpc_code(enum cordon_code code);
/* Of Connect-Timeout-Ms; 0: none. */
uint64_t connect_rpc_timeout_ms(struct httpd_exchange *x);

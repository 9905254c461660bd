/* cordon/error.h - the one error type of the library.
 *
 * Threads: an error belongs to one thread at a time. What depends only on a code is for any thread.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* The one list of codes: X(NAME, name, exit status of a program, JSON-RPC code, what it means).
 * The code says what the caller can do about it. */
#define CORDON_CODES(X)                                                                            \
	X(OK, "ok", 0, 0, "success")                                                               \
	X(INVALID, "invalid", 2, -32602, "the caller passed something malformed")                  \
	X(NOMEM, "nomem", 125, -32001, "out of memory in the host")                                \
	X(DENIED, "denied", 126, -32002, "policy, or the kernel on its behalf, said no")           \
	X(LIMIT, "limit", 125, -32003, "a configured ceiling was reached")                         \
	X(TIMEOUT, "timeout", 124, -32004, "it took longer than allowed")                          \
	X(NOT_FOUND, "not_found", 125, -32005, "there is no such thing")                           \
	X(UNSUPPORTED, "unsupported", 125, -32006, "this machine or build cannot do it")           \
	X(PROTOCOL, "protocol", 125, -32007, "a peer broke the wire format")                       \
	X(STATE, "state", 125, -32600, "right call, wrong moment")                                 \
	X(EXISTS, "exists", 125, -32008, "it is there already, or somebody holds it")              \
	X(CANCELLED, "cancelled", 125, -32009, "the caller cancelled it")                          \
	X(OS, "os", 125, -32603, "any other failed system call; see the errno")

enum cordon_code {
#define X(id, name, exit_status, rpc, meaning) CORDON_##id,
	CORDON_CODES(X)
#undef X
};

struct cordon_error;

enum cordon_code cordon_error_code(const struct cordon_error *e);
int cordon_error_errno(const struct cordon_error *e);
/* The outermost message; never NULL. */
const char *cordon_error_message(const struct cordon_error *e);
const struct cordon_error *cordon_error_cause(const struct cordon_error *e);
/* Accepts NULL; always returns NULL. */
struct cordon_error *cordon_error_free(struct cordon_error *e);

/* Facts about a code, from the list above. */
const char *cordon_code_name(enum cordon_code code);
int cordon_code_exit_status(enum cordon_code code);
int cordon_code_rpc(enum cordon_code code);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

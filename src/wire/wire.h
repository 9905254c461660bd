/* wire/wire.h - the host's end of docs/wire.md: one non-blocking stream socket to one guest.
 *
 * Everything that arrives is checked here and nowhere else: size before parsing, grammar, depth,
 * field types, token, rate, execution and call ids. What wire_next() returns is well-formed,
 * belongs to the running execution and was not seen before. It is still only what the guest says.
 *
 * A session uses it from one thread, with one poll(2) loop per execution. The loop polls wire_fd()
 * for wire_events(), tool_calls_fd(), stdout, stderr and the cancel eventfd, until the deadline:
 *
 * - wire_begin() and wire_send_execute() start the execution. Call wire_next() before the first
 *   poll: the guest may have sent more than was asked for.
 * - On POLLIN or POLLHUP of the wire: wire_fill(). On POLLOUT: wire_flush().
 * - After each of these: wire_next() until it returns 0. A tool call goes to tool_calls_dispatch();
 *   a result ends the loop.
 * - A negative return ends the execution as `protocol`; the guest is killed and replaced.
 * - wire_is_closed(): the guest is gone. The supervisor knows why.
 * - wire_end() ends the execution.
 *
 * While the guest does not read its answers, wire_events() leaves POLLIN out. So a guest that only
 * asks and never reads cannot use up the host's memory. After a negative return the wire is broken
 * and only wire_free() is left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wire;

enum wire_type {
	WIRE_NONE,
	WIRE_HELLO,     /* only the first message, only with the right token */
	WIRE_TOOL_CALL, /* id, call, tool, args */
	WIRE_OUTPUT,    /* id, mime, encoding, data, name */
	WIRE_RESULT,    /* id, ok, value, text, error, exit_code, warnings, cwd */
	WIRE_UNKNOWN,   /* name: ignored by sessions */
};

/* NUL-terminated UTF-8 inside the wire's buffer; data NULL: absent. */
struct wire_text {
	const char *data;
	size_t len;
};

/* What the guest says went wrong; every field may be absent. */
struct wire_error {
	struct wire_text kind, name, message, traceback;
	int64_t line; /* 0: unknown */
};

/* All texts are valid until the next wire_next(), wire_fill() or wire_free(). */
struct wire_message {
	enum wire_type type;
	uint64_t id, call;
	struct wire_text tool;
	struct wire_text args;     /* a checked JSON object; "{}" when there were none */
	struct wire_text value;    /* checked JSON as the guest wrote it; absent: none */
	struct wire_text text;     /* as the language prints it */
	struct wire_text warnings; /* checked JSON of any kind; absent: none */
	struct wire_text cwd;      /* where the code is now; absent: where it was */
	struct wire_text mime, data, name;
	bool is_base64; /* data is strict base64; otherwise it is plain text */
	bool ok, has_error, has_exit_code;
	int exit_code; /* 0..255 */
	struct wire_error error;
	struct wire_text denials; /* result: a checked JSON array; absent: none */
	bool is_restarted;        /* result: what the language kept between executions is gone */
	struct wire_text guest, language; /* hello */
	bool is_template;                 /* hello */
};

struct wire_options {
	uint64_t message_bytes; /* 0: 1 MiB */
	uint64_t rpc_bytes;     /* results and outputs; 0: 8 MiB */
	uint64_t queue_bytes;   /* unsent bytes that the host may queue; 0: 64 MiB */
	const char *token;      /* 64 hex digits the hello must bring; required */
};

/* What was received and ignored since wire_begin. */
struct wire_counts {
	uint64_t messages;   /* all */
	uint64_t tool_calls; /* handed out */
	uint64_t stale;      /* of another execution, or a call that was already made */
	uint64_t unknown;    /* messages of unknown type */
	uint64_t limit;      /* of messages that are not tool calls, results or outputs */
};

/* Takes fd (makes it non-blocking, closes it in wire_free; on failure it stays the caller's). */
int wire_new(int fd, const struct wire_options *opts, struct wire **ret,
	     struct cordon_error **reterr);
struct wire *wire_free(struct wire *w);
/* The arguments of a tool call may have this many bytes, where that is more than message_bytes. */
void wire_allow_calls(struct wire *w, uint64_t argument_bytes);
int wire_fd(const struct wire *w);

/* Reads what is there, with one system call. 1: something came, 0: nothing (or the end). */
int wire_fill(struct wire *w, struct cordon_error **reterr);
/* The next whole message. 1: *ret is filled, 0: none now, -CORDON_PROTOCOL: the guest broke the
 * rules, and the message says how. */
int wire_next(struct wire *w, struct wire_message *ret, struct cordon_error **reterr);
/* The guest closed its end and every whole message was handed out. */
bool wire_is_closed(const struct wire *w);
/* There are bytes of a message that never ended. */
bool wire_has_half(const struct wire *w);
/* What to poll for. */
short wire_events(const struct wire *w);

/* From here on only messages of execution id count. tool_calls: the execution's budget or
 * UINT64_MAX; gives the rate limit. */
void wire_begin(struct wire *w, uint64_t id, uint64_t tool_calls);
/* No execution runs: whatever comes with an id is stale. */
void wire_end(struct wire *w);
struct wire_counts wire_get_counts(const struct wire *w);

/* Sending: queues and tries to write at once. 0: sent, 1: some is left (poll for POLLOUT),
 * -CORDON_LIMIT: the queue is full and nothing was queued. */
struct wire_execute {
	uint64_t id;
	const char *code;
	size_t code_len;
	const char *context_json; /* a JSON object in one line; NULL: none */
	size_t context_len;       /* 0: strlen */
	const char *env_json;     /* the same */
	const char *directory;    /* go there first; NULL: stay */
	const char *stdin_path;   /* its stdin, to be opened; NULL: as it is */
	bool is_validated;        /* asks for advice about the code */
	const char *args_json;    /* a JSON array in one line: arguments of a script; NULL: none */
	bool is_last;             /* a shell exits when the code has come to its end */
	/* Standard input of this execution alone, out of the session's one pipe (pod). */
	bool has_stdin;       /* else it is at its end */
	uint64_t stdin_from;  /* which byte of the pipe is its first */
	uint64_t stdin_bytes; /* 0: the pipe itself, up to its end */
};
int wire_send_execute(struct wire *w, const struct wire_execute *x, struct cordon_error **reterr);
/* Asks an agent to give up that execution, and no other. */
int wire_send_interrupt(struct wire *w, uint64_t id, struct cordon_error **reterr);
/* json: one checked value; its line ends become spaces. */
int wire_send_tool_value(struct wire *w, uint64_t id, uint64_t call, const char *json, size_t len,
			 struct cordon_error **reterr);
int wire_send_tool_error(struct wire *w, uint64_t id, uint64_t call, const char *message,
			 struct cordon_error **reterr);
/* A ready line without its newline: welcome, exit. */
int wire_send_line(struct wire *w, const char *line, size_t len, struct cordon_error **reterr);
/* The same answers as for sending. A guest that closed its end is no error here: reading says so.
 */
int wire_flush(struct wire *w, struct cordon_error **reterr);
size_t wire_get_queued(const struct wire *w);

DEFINE_FREEP(struct wire *, wire_free)
#define cleanup_wire CLEANUP(wire_freep)

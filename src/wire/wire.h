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
	WIRE_HELLO,     /* only as the first message, with the right token */
	WIRE_TOOL_CALL, /* id, call, tool, args */
	WIRE_OUTPUT,    /* id, mime, encoding, data, name, value */
	WIRE_RESULT,    /* id, ok, value, text, error, exit_code, warnings, cwd, buffer */
	WIRE_BUFFER,    /* id, bytes: asks for a buffer; without bytes, for the context's */
	WIRE_UNKNOWN,   /* name; sessions ignore it */
};

/* NUL-terminated UTF-8 inside the wire's buffer; data NULL: absent. */
struct wire_text {
	const char *data;
	size_t len;
};

/* The guest's report of an error; every field may be absent. */
struct wire_error {
	struct wire_text kind, name, message, traceback;
	int64_t line; /* 0: unknown */
};

/* All texts are valid until the next wire_next(), wire_fill() or wire_free(). */
struct wire_message {
	enum wire_type type;
	uint64_t id, call;
	struct wire_text tool;
	struct wire_text args; /* a checked JSON object; "{}" if absent */
	struct wire_text
		buffer; /* a checked JSON object: the table of binary columns; absent: none */
	uint64_t bytes; /* of the buffer that it asks for; 0: the context's */
	struct wire_text value;    /* checked JSON as the guest wrote it; absent: none */
	struct wire_text text;     /* as the language prints it */
	struct wire_text warnings; /* any checked JSON; absent: none */
	struct wire_text cwd;      /* current directory of the code; absent: unchanged */
	struct wire_text mime, data, name;
	bool is_base64; /* data is strict base64; else plain text */
	bool is_value;  /* output: a form of the value, not of what the code displayed */
	bool ok, has_error, has_exit_code;
	int exit_code; /* 0..255 */
	struct wire_error error;
	struct wire_text denials; /* result: a checked JSON array; absent: none */
	bool is_restarted;        /* result: the language's state from earlier executions is lost */
	struct wire_text guest, language; /* hello */
	bool is_template;                 /* hello */
};

struct wire_options {
	uint64_t message_bytes; /* 0: 1 MiB */
	uint64_t rpc_bytes;     /* results and outputs; 0: 8 MiB */
	uint64_t queue_bytes;   /* limit of queued unsent bytes; 0: 64 MiB */
	const char *token;      /* 64 hex digits that the hello must have; required */
};

/* Messages received and ignored since wire_begin. */
struct wire_counts {
	uint64_t messages;   /* all */
	uint64_t tool_calls; /* returned to the caller */
	uint64_t stale;      /* of another execution, or a call number that was already used */
	uint64_t unknown;    /* messages of unknown type */
	uint64_t limit;      /* limit for messages that are not tool calls, results or outputs */
};

/* Takes ownership of fd on success; makes it non-blocking. */
int wire_new(int fd, const struct wire_options *opts, struct wire **ret,
	     struct cordon_error **reterr);
struct wire *wire_free(struct wire *w);
/* Allows arguments of a tool call to have this many bytes, if that is more than message_bytes. */
void wire_allow_calls(struct wire *w, uint64_t argument_bytes);
int wire_fd(const struct wire *w);

/* Reads what is available, with one system call. 1: something was read, 0: nothing (or the end). */
int wire_fill(struct wire *w, struct cordon_error **reterr);
/* The next complete message. 1: *ret is filled, 0: none now, -CORDON_PROTOCOL: the guest broke the
 * protocol, and the error says how. */
int wire_next(struct wire *w, struct wire_message *ret, struct cordon_error **reterr);
/* The guest closed its end, and every complete message was returned. */
bool wire_is_closed(const struct wire *w);
/* What to poll for. */
short wire_events(const struct wire *w);

/* From here on only messages of this execution count. tool_calls: the execution's budget, or
 * UINT64_MAX; the rate limit depends on it. */
void wire_begin(struct wire *w, uint64_t id, uint64_t tool_calls);
/* No execution is running: messages with an id are stale. */
void wire_end(struct wire *w);
struct wire_counts wire_get_counts(const struct wire *w);

/* Sending queues the message and tries to write at once. 0: sent, 1: some is left (poll for
 * POLLOUT), -CORDON_LIMIT: the queue is full and nothing was queued. */
struct wire_execute {
	uint64_t id;
	const char *code;
	size_t code_len;
	const char *context_json; /* a JSON object on one line; NULL: none */
	size_t context_len;       /* 0: strlen */
	const char *env_json;     /* the same */
	const char *buffer_json;  /* the same: the table of the context's binary columns */
	bool takes_buffer;        /* the value may have binary columns */
	const char *directory;    /* change to it first; NULL: stay */
	const char *stdin_path;   /* file to open as stdin; NULL: keep the current one */
	bool is_validated;        /* asks the guest for warnings about the code */
	bool is_shown;            /* asks the guest to print every visible value (R) */
	bool is_asking;           /* stdin is a person's terminal */
	const char *args_json;    /* a JSON array on one line: arguments of a script; NULL: none */
	bool is_last;             /* a shell exits after the code */
	/* Stdin of this execution, as a part of the session's only pipe (pod). */
	bool has_stdin;       /* false: stdin is at its end */
	uint64_t stdin_from;  /* offset of its first byte in the pipe */
	uint64_t stdin_bytes; /* 0: the pipe itself, to its end */
};
int wire_send_execute(struct wire *w, const struct wire_execute *x, struct cordon_error **reterr);
struct wire_inspect {
	uint64_t id;
	const char *question; /* see docs/wire.md */
	const char *code;
	size_t code_len;
	const char *env_json; /* as for an execution */
};
/* Asks about code without running it, or about the guest's state; the answer is a result. */
int wire_send_inspect(struct wire *w, const struct wire_inspect *m, struct cordon_error **reterr);
/* Asks an agent to abandon that execution, and no other. */
int wire_send_interrupt(struct wire *w, uint64_t id, struct cordon_error **reterr);
/* Answers a request for a buffer: with a copy of the descriptor, or with the reason why not. */
int wire_send_buffer(struct wire *w, uint64_t id, uint64_t bytes, int fd,
		     struct cordon_error **reterr);
int wire_send_no_buffer(struct wire *w, uint64_t id, const char *why, struct cordon_error **reterr);
/* json: one checked value; its newlines become spaces. */
int wire_send_tool_value(struct wire *w, uint64_t id, uint64_t call, const char *json, size_t len,
			 struct cordon_error **reterr);
int wire_send_tool_error(struct wire *w, uint64_t id, uint64_t call, const char *message,
			 struct cordon_error **reterr);
/* A complete message without its newline: welcome, exit. */
int wire_send_line(struct wire *w, const char *line, size_t len, struct cordon_error **reterr);
/* Returns the same as sending. A guest that closed its end is not an error here: reading reports
 * it. */
int wire_flush(struct wire *w, struct cordon_error **reterr);
size_t wire_get_queued(const struct wire *w);

DEFINE_FREEP(struct wire *, wire_free)
#define cleanup_wire CLEANUP(wire_freep)

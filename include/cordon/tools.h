/* cordon/tools.h - host functions that guest code may call: the one intended way out of the
 * sandbox.
 *
 * Threads: a registry may be used from any thread at any time. A handler runs in the thread that
 * executes, one call of a session at a time; handlers of other sessions run beside it. An answer
 * (cordon_call_value, cordon_call_error) may come from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_tools; /* a registry; sessions share it by reference; any thread may use it */
struct cordon_call;  /* one call that is being handled */

/* What a handler returns. */
enum cordon_answer {
	CORDON_ANSWER_VALUE,   /* cordon_call_value() was called */
	CORDON_ANSWER_ERROR,   /* cordon_call_error() was called */
	CORDON_ANSWER_PENDING, /* cordon_call_value/error will be called later, from any thread */
};

typedef enum cordon_answer (*cordon_tool_fn)(struct cordon_call *call, void *arg);

struct cordon_tool {
	const char *name;        /* ^[A-Za-z.][A-Za-z0-9_.]*$ */
	const char *description; /* one sentence, shown by help */
	const char *args_json;   /* JSON Schema of the arguments, or the short form {"a": "number"};
				  * NULL: takes none */
	const char *category;    /* NULL: none; for `extensions list --category` */
	const char *usage;       /* NULL: generated from the arguments */
	const char *const *examples; /* command lines or calls; ends with NULL; NULL: none */
	cordon_tool_fn fn;
	void *arg;
	uint64_t max_calls;      /* per execution; 0: no limit of its own */
	uint64_t timeout_ms;     /* per call; 0: 30000 */
	uint64_t result_bytes;   /* of its value as JSON text, for a host command of what it prints;
				  * 0: 16 MiB for a command, else the policy's message_bytes */
	uint64_t argument_bytes; /* of a call's arguments as JSON text; 0: the same */
	bool approval;           /* suspends the call until the host decides */
	bool command; /* takes argv and stdin: arguments are {"args": [...], "stdin": "..."}; bytes
			 that are not UTF-8 arrive, and may be returned, as in docs/values.md */
	const char
		*python_package; /* JSON object of file name to text, importable as `name`; NULL */
};

int cordon_tools_new(struct cordon_tools **ret, struct cordon_error **reterr);
struct cordon_tools *cordon_tools_ref(struct cordon_tools *t);
struct cordon_tools *cordon_tools_unref(struct cordon_tools *t); /* always returns NULL */
/* Copies everything. Duplicates and bad names are refused. */
int cordon_tools_add(struct cordon_tools *t, const struct cordon_tool *tool,
		     struct cordon_error **reterr);
/* Tools that are host commands, from a JSON file or text (an array, or {"tools": [...]}). */
int cordon_tools_add_file(struct cordon_tools *t, const char *path, struct cordon_error **reterr);
int cordon_tools_add_json(struct cordon_tools *t, const char *json, struct cordon_error **reterr);
/* JSON array of {name, description, args, ...}; the caller frees it. NULL: out of memory. */
char *cordon_tools_json(const struct cordon_tools *t);

/* Inside a handler: the call. Valid until it is answered. */
const char *cordon_call_session(const struct cordon_call *c);
const char *cordon_call_tool(const struct cordon_call *c);
const char *cordon_call_args(const struct cordon_call *c); /* a checked JSON object as text */
/* Answers the call, once; later answers are ignored. json must be one JSON value. -CORDON_LIMIT:
 * the value has more than result_bytes. The guest got that error and the call is answered: return
 * CORDON_ANSWER_ERROR. After -CORDON_INVALID (not JSON) or -CORDON_NOMEM it is not answered: answer
 * with an error. */
int cordon_call_value(struct cordon_call *c, const char *json, struct cordon_error **reterr);
int cordon_call_error(struct cordon_call *c, const char *message, struct cordon_error **reterr);

/* Called in the executing thread if a tool call or a network request needs approval. Resolve it
 * with cordon_session_resolve() from any thread, now or later. */
struct cordon_approval {
	const char *id; /* unguessable, valid until resolved */
	const char *session;
	const char *kind;   /* "tool" or "network" */
	const char *what;   /* tool name, or "GET https://host/path" */
	const char *detail; /* JSON: arguments, or method, host, port, headers */
};
typedef void (*cordon_approval_fn)(const struct cordon_approval *a, void *arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

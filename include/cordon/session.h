/* cordon/session.h - sessions, pools and results. All calls block and may come from any thread.
 *
 * One session, several threads:
 *
 * - execute, inspect, restart, fork, export, import, offload, rehydrate, and making and restoring a
 * snapshot hold the session. While one of them runs, the others return CORDON_STATE.
 * - is_alive, describe, id, cancel, interrupt, resolve, setenv, getenv and the file functions may
 *   be called at any time, also while code runs or the guest is replaced.
 * - close comes last. It cancels an execution and waits for a call that holds the session. No other
 *   call may be running then, or come later.
 * - A project and a result belong to one thread at a time.
 *
 * Callbacks (output, pre_execute, approval, audit, log) run in the thread that executes; audit and
 * log also in the thread that opens or closes the session. They may call what may be called at any
 * time, and must not close the session. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cordon/error.h>
#include <cordon/policy.h>
#include <cordon/tools.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct cordon_session;
struct cordon_pool;
struct cordon_result;

/* Chunks as they arrive, in order; stream is 1 or 2. Slow callbacks slow the guest down. */
typedef void (*cordon_output_fn)(int stream, const char *bytes, size_t len, void *arg);
/* Return false to block this code. */
typedef bool (*cordon_pre_execute_fn)(const char *code, size_t len, void *arg);
/* One audit event as a JSON line without newline. */
typedef void (*cordon_audit_fn)(const char *line, size_t len, void *arg);

/* One step of a session, for a person who watches: a JSON object without newline, with timestamp,
 * event and session_id first. It is the audit event of that name without confidential parts: no
 * code, arguments, values, error texts or policy. */
typedef void (*cordon_log_fn)(const char *line, size_t len, void *arg);

struct cordon_session_options {
	const char *guest;                  /* "python", "r", "node", "sh", "pod"; NULL: "python" */
	const struct cordon_policy *policy; /* NULL: standard */
	struct cordon_tools *tools;         /* NULL: none; a reference is taken */
	const char *workspace;              /* persistent name; NULL: ephemeral */
	const char *const *env;             /* NAME=value, NULL-terminated; NULL: none */
	cordon_pre_execute_fn pre_execute;
	void *pre_execute_arg;
	cordon_approval_fn approval;
	void *approval_arg;
	cordon_audit_fn audit;
	void *audit_arg;
	cordon_log_fn log; /* NULL: silent. Does not count as an audit log for audit_required */
	void *log_arg;
	const char *directory; /* working directory; NULL: /home/user. Implies cold */
	bool cold; /* start an interpreter of its own instead of forking a warm template */
	/* Languages for contexts and commands (cordon/command.h), ended by NULL; `guest` is always
	 * one of them. Those that are not installed are refused when they are used. "pod" cannot be
	 * among them. NULL: only `guest`, without contexts and commands. */
	const char *const *languages;
	/* Packages of `guest` to install before the first execution, as in cordon/packages.h; ended
	 * by NULL. NULL: none. Not for pools. */
	const char *const *packages;
};

int cordon_session_open(const struct cordon_session_options *opts, struct cordon_session **ret,
			struct cordon_error **reterr);
/* Ends everything in the session. Accepts NULL; always returns NULL. Safe while another thread
 * executes: that execution ends as cancelled. */
struct cordon_session *cordon_session_close(struct cordon_session *s);
/* The same, but returns an error if something was lost: the workspace could not be saved, or lines
 * of the audit log were not written since the last result. The session is closed in either case,
 * and what was saved before stays. Accepts NULL. */
int cordon_session_end(struct cordon_session *s, struct cordon_error **reterr);
/* Saves the workspace now, if the session has a name for it and files changed. Otherwise it is
 * saved a second after the last change and when the session ends. */
int cordon_session_save(struct cordon_session *s, struct cordon_error **reterr);

struct cordon_execute_options {
	const char *code;
	size_t code_len;          /* 0: strlen(code) */
	const char *context_json; /* variables: a JSON object, tagged values as in docs/values.md */
	/* The binary columns that context_json refers to (docs/values.md): their table, a JSON
	 * object, and a memory file (memfd) with their bytes, which this seals and empties. NULL:
	 * none. */
	const char *buffer_json;
	int buffer_fd;
	bool takes_buffer;       /* the value may come with binary columns: cordon_result_buffer */
	const char *stdin_bytes; /* of this execution; NULL: empty */
	size_t stdin_len;
	int stdin_fd; /* > 0: piped in instead of stdin_bytes */
	/* For a terminal, which others read, too: called instead of read(2) on stdin_fd, and only
	 * if the code has read all that came before. stdin_unread gets what it did not read in the
	 * end. Both run in the thread that executes. NULL: stdin_fd is the code's alone. Not in
	 * pods. */
	ssize_t (*stdin_read)(int fd, void *bytes, size_t size, void *arg);
	void (*stdin_unread)(const char *bytes, size_t len, void *arg);
	void *stdin_arg;
	uint64_t timeout_ms;  /* 0: the policy's; UINT64_MAX: none. Then `grace_ms` to stop */
	uint64_t tool_calls;  /* 0: the policy's */
	bool skip_validation; /* no warnings; a syntax error is found only when the code runs */
	cordon_output_fn output;
	void *output_arg;
	bool discard_output;     /* do not keep a copy in the result, only call output, which then
				    also ends at the policy's output_lines */
	const char *const *args; /* of the program: sys.argv[1:], $1...; ends with NULL */
	bool show_values; /* R: values of earlier expressions are printed, as at its prompt */
};

/* Runs the code in a fresh session that is gone when this returns. Returns as
 * cordon_session_execute. */
int cordon_run(const struct cordon_session_options *session,
	       const struct cordon_execute_options *opts, struct cordon_result **ret,
	       struct cordon_error **reterr);

/* 0 if the code ran, or was refused because of itself: read the result. Negative if Cordon could
 * not do its work (session closed or busy, a required layer is missing). */
int cordon_session_execute(struct cordon_session *s, const struct cordon_execute_options *opts,
			   struct cordon_result **ret, struct cordon_error **reterr);

enum cordon_question {
	CORDON_IS_COMPLETE, /* whether the code can run, or needs more lines */
	CORDON_COMPLETE,    /* how the word at the end of the code may go on */
};
struct cordon_inspect_options {
	enum cordon_question question;
	const char *code; /* CORDON_COMPLETE: up to the cursor */
	size_t code_len;
	cordon_output_fn output; /* what the guest's leftover threads and processes print */
	void *output_arg;
};
/* What a prompt asks about code before it runs, answered by the session's own guest; the code does
 * not run, and nothing is recorded or counted. JSON, to be freed:
 * {"status": "complete", "incomplete", "invalid" or "unknown"}, or
 * {"token": the end of the code that the matches replace, "matches": [...]}; with "restarted": true
 * if the guest did not answer and was replaced. It is what the guest says: untrusted. Holds the
 * session as execute does. */
int cordon_session_inspect(struct cordon_session *s, const struct cordon_inspect_options *opts,
			   char **ret_json, struct cordon_error **reterr);
/* From another thread: ends the running execution; does nothing if none runs. The code is
 * interrupted first, as at its deadline, and killed if it has not stopped after the policy's
 * `grace_ms`. */
int cordon_session_cancel(struct cordon_session *s, struct cordon_error **reterr);
/* The same without an interrupt: variables and processes of the session are lost, its files stay.
 */
int cordon_session_kill(struct cordon_session *s, struct cordon_error **reterr);
/* From another thread: interrupts the running code (^C); the session keeps its state. Code that
 * handles the interrupt goes on: cancel ends it. */
int cordon_session_interrupt(struct cordon_session *s, struct cordon_error **reterr);
/* Starts a new guest with the same files. If this fails, the old guest is gone too; the files stay,
 * and the next execution tries again. CORDON_LIMIT: there is a new guest, but some files, which the
 * message names, could not be copied to it. */
int cordon_session_restart(struct cordon_session *s, struct cordon_error **reterr);
bool cordon_session_is_alive(const struct cordon_session *s);
const char *cordon_session_id(const struct cordon_session *s);
/* JSON, to be freed: id, guest, language (its version, as the guest says), directory (its current
 * one, as the guest says), state (running, stopped), pid, tools, executions, policy, and as in a
 * result (docs/result.md) the assurance of the guest that runs now; null: none runs. */
char *cordon_session_describe(const struct cordon_session *s);
/* Session environment for later executions. */
int cordon_session_setenv(struct cordon_session *s, const char *name, const char *value,
			  struct cordon_error **reterr);
/* The value set by setenv, at opening, by a restored snapshot or by an import; to be freed. NULL:
 * none. Of a shell also what its code has exported: an idle shell is asked, which holds the session
 * for that moment. */
char *cordon_session_getenv(struct cordon_session *s, const char *name);

/* Resolves a pending approval of this session. value_json: only for replace (allow == true and
 * not NULL): the guest gets this value and the tool does not run. */
int cordon_session_resolve(struct cordon_session *s, const char *approval_id, bool allow,
			   const char *value_json, const char *reason,
			   struct cordon_error **reterr);

/* Results. */
struct cordon_result *cordon_result_free(struct cordon_result *r);
bool cordon_result_success(const struct cordon_result *r);
/* Whether a limit truncated this stream: 1 or 2. */
bool cordon_result_truncated(const struct cordon_result *r, int stream);
/* The whole result as in docs/result.md, one line of JSON owned by r. */
const char *cordon_result_json(struct cordon_result *r);
const char *cordon_result_value_json(struct cordon_result *r); /* "null" if there is none */
const char *
cordon_result_value_text(const struct cordon_result *r); /* as the guest prints it or NULL */
/* The file with the binary columns that the value refers to, of *ret_bytes bytes; it belongs to r,
 * and its bytes are constant. The result's JSON has their table as `buffer`. -1: none. */
int cordon_result_buffer(const struct cordon_result *r, uint64_t *ret_bytes);
const char *cordon_result_stdout(const struct cordon_result *r, size_t *ret_len);
const char *cordon_result_stderr(const struct cordon_result *r, size_t *ret_len);
const char *cordon_result_error(const struct cordon_result *r);      /* NULL on success */
const char *cordon_result_error_kind(const struct cordon_result *r); /* NULL on success */
const char *cordon_result_traceback(const struct cordon_result *r);  /* NULL: none */
/* The denials in sentences, one per line, to be freed; "" if nothing was denied. */
char *cordon_result_denials_text(const struct cordon_result *r);
/* Warnings of the language's parser about calls that the sandbox may restrict, one per line, to be
 * freed; "" if there are none. Only if validation is on (policy `validate`). */
char *cordon_result_warnings_text(const struct cordon_result *r);
/* The warnings about losses: a workspace that could not be saved, files that a restart could not
 * keep, lines of the audit log that could not be written. One per line, to be freed; "" if nothing
 * was lost. */
char *cordon_result_losses_text(const struct cordon_result *r);
/* If the session lost its variables and processes in this execution: a sentence that says so and
 * why, to be freed. "" if it kept them. */
char *cordon_result_restart_text(const struct cordon_result *r);
int cordon_result_exit_status(const struct cordon_result *r); /* what `cordon run` exits with */

/* Pools. */
struct cordon_pool_options {
	struct cordon_session_options session;
	uint32_t size; /* 1..100; 0: 4 */
	/* Upper limit of sessions that are idle, taken or being made; 0: size. Up to two more may
	 * exist briefly, while they are closed. */
	uint32_t max_size;
	bool reuse; /* hand out the same session again instead of a clean fork */
};
struct cordon_pool_status {
	uint32_t total, busy, idle, dead;
};

int cordon_pool_new(const struct cordon_pool_options *opts, struct cordon_pool **ret,
		    struct cordon_error **reterr);
/* Release all taken sessions first. Waiting calls fail: the pool is closed. */
struct cordon_pool *cordon_pool_free(struct cordon_pool *p);
/* Waiting calls are served in order. wait_ms 0: fails at once with CORDON_LIMIT "All sessions are
 * busy.", but still waits for a free session that is being made. */
int cordon_pool_acquire(struct cordon_pool *p, uint64_t wait_ms, struct cordon_session **ret,
			struct cordon_error **reterr);
void cordon_pool_release(struct cordon_pool *p, struct cordon_session *s);
int cordon_pool_execute(struct cordon_pool *p, const struct cordon_execute_options *opts,
			uint64_t wait_ms, struct cordon_result **ret, struct cordon_error **reterr);
struct cordon_pool_status cordon_pool_get_status(const struct cordon_pool *p);

/* Checks the syntax and gives warnings without running the code, in a sandboxed parser: JSON
 * {"valid", "error", "line", "column", "warnings": [...]}, to be freed. */
int cordon_validate(const char *guest, const char *code, size_t len, char **ret_json,
		    struct cordon_error **reterr);
/* The message without paths, pids, hosts and traces, at most max characters (0: 500). To be freed.
 */
char *cordon_sanitize(const char *message, size_t max);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

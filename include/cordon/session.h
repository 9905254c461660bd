/* cordon/session.h - sessions, pools and results. All calls block and may come from any thread.
 *
 * One session, several threads: execute, restart, fork, export, import, offload, rehydrate, and
 * making and restoring a snapshot hold the session. While one of them is under way the others say
 * CORDON_STATE. Everything else may be called at any time, also while code runs or the guest is
 * replaced by another: is_alive, describe, id, cancel, interrupt, resolve, setenv, getenv and
 * the files. close comes last. It waits for a call that holds the session and ends an execution;
 * no other call may be under way, or come later. A project and a result belong to one thread at a
 * time.
 *
 * Callbacks (output, pre_execute, approval, audit, log) run in the thread that executes, and audit
 * and log also in the one that opens or closes the session. They may call what may be called at any
 * time; they must not close the session. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* One line of what happens, for somebody who watches: a JSON object without newline, with
 * timestamp, event and session_id first. It is the audit event of that name without what the code
 * or its caller may want to keep to themselves: no code, arguments, values, error texts or policy.
 */
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
	cordon_log_fn log; /* NULL: silent. No record in the sense of audit_required */
	void *log_arg;
	const char *directory; /* where the code starts; NULL: /home/user. Implies cold */
	bool cold; /* start an interpreter of its own instead of forking a warm template */
};

int cordon_session_open(const struct cordon_session_options *opts, struct cordon_session **ret,
			struct cordon_error **reterr);
/* Ends everything in it. Accepts NULL; always returns NULL. Safe while another thread executes:
 * that execution ends as cancelled. */
struct cordon_session *cordon_session_close(struct cordon_session *s);
/* The same, and an error when something of it is lost: its workspace could not be saved, or lines
 * of its audit log were not written since the last result said so. The session is gone in either
 * case; what was saved before is as it was. Accepts NULL. */
int cordon_session_end(struct cordon_session *s, struct cordon_error **reterr);
/* Saves the workspace of a session that has a name for it now, if it has changed. It is otherwise
 * saved a second after the last change and when the session ends. */
int cordon_session_save(struct cordon_session *s, struct cordon_error **reterr);

struct cordon_execute_options {
	const char *code;
	size_t code_len;          /* 0: strlen(code) */
	const char *context_json; /* variables: a JSON object, tagged values as in docs/values.md */
	const char *stdin_bytes;  /* of this execution; NULL: empty */
	size_t stdin_len;
	int stdin_fd;         /* > 0: piped in instead of stdin_bytes */
	uint64_t timeout_ms;  /* 0: the policy's; UINT64_MAX: none */
	uint64_t tool_calls;  /* 0: the policy's */
	bool skip_validation; /* no warnings, and what is broken is found when it runs */
	cordon_output_fn output;
	void *output_arg;
	bool discard_output;     /* do not keep a copy in the result, only call output, which then
				    also ends at the policy's output_lines */
	const char *const *args; /* of the program: sys.argv[1:], $1...; ends with NULL */
};

/* One shot: a fresh interpreter of its own, executed, and nothing left of it when this returns.
 * Answers as cordon_session_execute. */
int cordon_run(const struct cordon_session_options *session,
	       const struct cordon_execute_options *opts, struct cordon_result **ret,
	       struct cordon_error **reterr);

/* 0 whenever the code ran or was refused by its own fault: read the result. Negative when Cordon
 * itself could not do its work (closed, busy, machine lacks a required layer). */
int cordon_session_execute(struct cordon_session *s, const struct cordon_execute_options *opts,
			   struct cordon_result **ret, struct cordon_error **reterr);
/* From another thread: ends the running execution; no effect when none runs. */
int cordon_session_cancel(struct cordon_session *s, struct cordon_error **reterr);
/* From another thread: asks the running code to give up (^C); the session and its state stay. */
int cordon_session_interrupt(struct cordon_session *s, struct cordon_error **reterr);
/* A new guest with the same files. The old one is gone also when this fails: then the files stay
 * where they are and the next execution tries again. CORDON_LIMIT: there is a new guest, and the
 * message names files that could not be copied to it. */
int cordon_session_restart(struct cordon_session *s, struct cordon_error **reterr);
bool cordon_session_is_alive(const struct cordon_session *s);
const char *cordon_session_id(const struct cordon_session *s);
/* JSON, to be freed: guest, state (running, stopped), pid, tools, executions, policy, assurance. */
char *cordon_session_describe(const struct cordon_session *s);
/* Session environment for later executions. */
int cordon_session_setenv(struct cordon_session *s, const char *name, const char *value,
			  struct cordon_error **reterr);
/* What was set, also by opening, a restored snapshot or an import; to be freed. NULL: nothing. */
char *cordon_session_getenv(struct cordon_session *s, const char *name);

/* Resolves a pending approval of this session. value_json: only for replace (allow == true and
 * not NULL): the guest gets this value and the tool does not run. */
int cordon_session_resolve(struct cordon_session *s, const char *approval_id, bool allow,
			   const char *value_json, const char *reason,
			   struct cordon_error **reterr);

/* Results. */
struct cordon_result *cordon_result_free(struct cordon_result *r);
bool cordon_result_success(const struct cordon_result *r);
/* Whether a limit cut what it printed; stream: 1 or 2. */
bool cordon_result_truncated(const struct cordon_result *r, int stream);
/* The whole result as in docs/result.md, one line of JSON owned by r. */
const char *cordon_result_json(struct cordon_result *r);
const char *cordon_result_value_json(struct cordon_result *r); /* "null" when there is none */
const char *
cordon_result_value_text(const struct cordon_result *r); /* as the guest prints it or NULL */
const char *cordon_result_stdout(const struct cordon_result *r, size_t *ret_len);
const char *cordon_result_stderr(const struct cordon_result *r, size_t *ret_len);
const char *cordon_result_error(const struct cordon_result *r);      /* NULL on success */
const char *cordon_result_error_kind(const struct cordon_result *r); /* NULL on success */
const char *cordon_result_traceback(const struct cordon_result *r);  /* NULL: none */
/* One sentence a denial, a line each, to be freed; "" when nothing was denied. */
char *cordon_result_denials_text(const struct cordon_result *r);
/* Advice of the language's own parser about calls that the sandbox may restrict, one a line, to be
 * freed; "" when there is none. Only where validation is on (policy `validate`). */
char *cordon_result_warnings_text(const struct cordon_result *r);
/* Those of the warnings that say what was lost: a workspace that could not be saved, files that a
 * restart could not keep, lines of the audit log that could not be written. One a line, to be
 * freed; "" when there is nothing, as it should be. */
char *cordon_result_losses_text(const struct cordon_result *r);
int cordon_result_exit_status(const struct cordon_result *r); /* what `cordon run` exits with */

/* Pools. */
struct cordon_pool_options {
	struct cordon_session_options session;
	uint32_t size; /* 1..100; 0: 4 */
	/* Sessions that are idle, taken or being made never exceed this; 0: size. Up to two more
	 * are alive for a moment, while they are closed. */
	uint32_t max_size;
	bool reuse; /* hand the same session out again instead of a clean fork */
};
struct cordon_pool_status {
	uint32_t total, busy, idle, dead;
};

int cordon_pool_new(const struct cordon_pool_options *opts, struct cordon_pool **ret,
		    struct cordon_error **reterr);
/* What was taken is released before. Who waits for a session is told that the pool is closed. */
struct cordon_pool *cordon_pool_free(struct cordon_pool *p);
/* Who waits is served in the order of coming. wait_ms 0: fail at once with CORDON_LIMIT "All
 * sessions are busy."; one that is not taken and still being made is waited for. */
int cordon_pool_acquire(struct cordon_pool *p, uint64_t wait_ms, struct cordon_session **ret,
			struct cordon_error **reterr);
void cordon_pool_release(struct cordon_pool *p, struct cordon_session *s);
int cordon_pool_execute(struct cordon_pool *p, const struct cordon_execute_options *opts,
			uint64_t wait_ms, struct cordon_result **ret, struct cordon_error **reterr);
struct cordon_pool_status cordon_pool_get_status(const struct cordon_pool *p);

/* Syntax and advisory warnings without running anything, in a walled parser:
 * JSON {"valid", "error", "line", "column", "warnings": [...]}, to be freed. */
int cordon_validate(const char *guest, const char *code, size_t len, char **ret_json,
		    struct cordon_error **reterr);
/* The message without paths, pids, hosts and traces, at most max characters (0: 500). To be freed.
 */
char *cordon_sanitize(const char *message, size_t max);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

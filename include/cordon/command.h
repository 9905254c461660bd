/* cordon/command.h - contexts and commands: several interpreters and programs in one session.
 *
 * A session that is opened with `languages` is a place: one sandbox with one set of files,
 * processes, limits and policy, in which any number of contexts and commands run at the same time.
 * They are one trust domain: each sees the others' files and processes and can end them.
 *
 * A context is a session too. All functions of cordon/session.h and cordon/files.h take it:
 *
 * - execute, cancel, interrupt, restart, setenv and describe are its own. A timeout or a crash ends
 *   its interpreter only; the other contexts keep their state.
 * - Files, snapshots, export and fork are the session's. Those that hold a session hold it with all
 *   its contexts: CORDON_STATE while one of them executes.
 * - max_executions, CPU time, memory and processes are limits of the sandbox: what all contexts use
 *   counts. cpu_time_ms and over-use of CPU time include what other contexts did meanwhile.
 *
 * Different contexts may execute in different threads at the same time, so callbacks may run in
 * several threads at once. If the sandbox itself ends, the next execution makes a new one with the
 * same files, and each context says `restarted` once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cordon/error.h>
#include <cordon/session.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* A further interpreter in the session's sandbox, with a state of its own. language: one of those
 * that the session was opened with; NULL: the session's own. name: letters, digits, '_', '.', '-';
 * NULL: "default". The same language and name give the same context; the session's own language
 * with "default" is the session itself. The interpreter is started by the first execution. A
 * context belongs to its session and ends with it; cordon_session_close(context) ends it earlier.
 * CORDON_LIMIT: there are 63 contexts and commands. */
int cordon_session_context(struct cordon_session *s, const char *language, const char *name,
			   struct cordon_session **ret, struct cordon_error **reterr);

/* Called when a command in the background has ended, from the thread that ran it, as its last
 * callback. */
typedef void (*cordon_ended_fn)(uint64_t process, void *arg);

struct cordon_command_options {
	const char *command;    /* a command line for bash */
	const char *directory;  /* NULL: the session's, else /home/user. Relative: below it */
	const char *const *env; /* NAME=value besides the session's, ended by NULL; NULL: none */
	const char *
		stdin_bytes; /* NULL: empty, or in the background what cordon_process_write gives */
	size_t stdin_len;
	uint64_t timeout_ms; /* 0: the policy's; UINT64_MAX: none */
	cordon_output_fn output;
	void *output_arg;
	bool discard_output;   /* do not keep a copy in the result */
	cordon_ended_fn ended; /* in the background only */
	void *ended_arg;
	bool forget; /* it is forgotten when its end was waited for; its kill is a cancel */
	/* Run it on a pseudo-terminal of its own: a controlling terminal, with job control. What it
	 * prints is stream 1, as raw bytes; stream 2 is empty. stdin_bytes are typed. The size, in
	 * characters; 0: 24 rows, 80 columns. CORDON_DENIED: the policy's `pty` is off. Host tools
	 * are no commands there. */
	bool pty;
	uint16_t pty_rows, pty_columns;
};

/* Runs a command line in the session's sandbox, beside everything else: from any thread, any number
 * at once. The session must have "sh" among its languages. Returns as cordon_session_execute. What
 * the command leaves running stays in the sandbox. */
int cordon_session_command(struct cordon_session *s, const struct cordon_command_options *o,
			   struct cordon_result **ret, struct cordon_error **reterr);

/* The same in the background, in a thread of the library. *ret is the number of the process in this
 * session. The policy's CPU time counts for it too. */
int cordon_process_start(struct cordon_session *s, const struct cordon_command_options *o,
			 uint64_t *ret, struct cordon_error **reterr);
/* Waits for its end and returns a copy of its result, as often as it is called. CORDON_TIMEOUT: it
 * still runs. CORDON_NOT_FOUND: there was no such process, or it is forgotten. Of those that were
 * waited for the last 16 are kept. There are at most 64 in all: then the oldest one that has ended
 * is forgotten. */
int cordon_process_wait(struct cordon_session *s, uint64_t process, uint64_t wait_ms,
			struct cordon_result **ret, struct cordon_error **reterr);
/* Ends it and what it started; does nothing if it has ended. Its exit code is then 137. What put
 * itself into a session of its own and left its parent lives on, within the limits of the sandbox.
 */
int cordon_process_kill(struct cordon_session *s, uint64_t process, struct cordon_error **reterr);
/* Writes to its stdin; never waits. *ret_len: how much was accepted; 0: it does not read, try again
 * later. len 0: ends its stdin; on a terminal types ^D. */
int cordon_process_write(struct cordon_session *s, uint64_t process, const void *bytes, size_t len,
			 size_t *ret_len, struct cordon_error **reterr);
/* Changes the size of its terminal; the programs in the foreground get SIGWINCH. CORDON_STATE: it
 * has no terminal. Does nothing if it has ended. */
int cordon_process_resize(struct cordon_session *s, uint64_t process, unsigned rows,
			  unsigned columns, struct cordon_error **reterr);
/* Sends a signal to its process group. On a terminal, SIGINT, SIGQUIT and SIGTSTP go to the
 * programs in the foreground instead, as ^C, ^\ and ^Z do. Does nothing if it has ended.
 * CORDON_STATE: it has not begun yet. */
int cordon_process_signal(struct cordon_session *s, uint64_t process, int signal_number,
			  struct cordon_error **reterr);
/* What it has written so far to stream 1 or 2, from this offset on; to be freed. The last 256 KiB
 * are kept: *ret_offset is where the bytes begin. */
int cordon_process_output(struct cordon_session *s, uint64_t process, int stream, uint64_t offset,
			  char **ret, size_t *ret_len, uint64_t *ret_offset,
			  struct cordon_error **reterr);
/* Those that run, and those whose end nobody has waited for. JSON, to be freed: an array of
 * {"process", "command", "state" (running, ended), "exit_code"}. */
char *cordon_process_list(struct cordon_session *s);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

/* cli/shell_state.h - one `cordon shell`, shared by its files. What the guest says (names, paths,
 * its version) is untrusted: control characters in it never reach the terminal. */
#pragma once

#include <cordon/cordon.h>
#include <signal.h>
#include <stdbool.h>

#include "base/json.h"
#include "cli/lineedit.h"
#include "cli/option.h"
#include "cli/plots.h"

struct shell {
	const struct cli *c;
	const struct cordon_policy *policy;
	const char *guest;
	struct cordon_session *session;
	struct lineedit *editor;
	sigset_t interrupts;
	_Atomic bool is_over;   /* tells the watcher that the next interrupt ends it */
	_Atomic bool was_asked; /* ^C was pressed in this execution */
	bool is_midline;        /* the last output had no newline at its end */
	bool is_left;           /* exit, q(), .exit or :quit was typed */
	int status;             /* to exit with */
	struct plots plots;
	int terminal_fd; /* the user's, for code that asks; 0: not opened */
};

/* The guest's current directory, as it says; to be freed. NULL: out of memory. */
char *shell_directory(const struct shell *sh);
/* What the guest says of code that does not run yet; to be freed. NULL: it said nothing. */
json_t *shell_inspect(struct shell *sh, enum cordon_question question, const char *text,
		      size_t len);
/* Variables are gone; why may be NULL. */
void shell_tell_restarted(const struct shell *sh, const char *why);

/* shell_command.c: a line that begins with a colon. false: it is code. */
bool shell_command_run(struct shell *sh, const char *text);
bool shell_command_is(const char *text);
/* Whether the text asks the language's prompt to leave: exit, q(), .exit. */
bool shell_command_is_exit(const char *guest, const char *text, int *ret_status);
/* shell_complete.c: for lineedit_options.complete; arg: the shell. */
void shell_complete_at(const char *text, size_t cursor, struct lineedit_matches *ret, void *arg);
extern const char *const shell_command_names[]; /* ":help", ...; ends with NULL */

/* inside/guests/sh/shell.h - a real bash that lives as long as the session: it evaluates each
 * command in itself, so that variables, functions, options, aliases, jobs and the directory stay.
 * When it ends (exit, set -e, exec, a signal), the next one takes over the state that it left. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/lib/bytes.h"

enum shell_event {
	SHELL_NOTHING,
	SHELL_DONE, /* a command ended, the shell waits for the next */
	SHELL_GONE, /* the shell itself ended */
};

struct shell {
	pid_t pid;      /* 0: none; also its process group */
	int text_fd;    /* a file that holds the command, NUL-terminated; shared with the shell */
	int ticket_fd;  /* a byte here: read the file */
	int report_fd;  /* the shell's answers */
	int tools_fd;   /* the shell's end of the socket for tools */
	int status;     /* of the command that ended */
	bool ready;     /* waits for a command */
	bool restoring; /* its next report is about its own set-up */
	struct bytes report;
	struct bytes denied; /* commands that were asked for and are not there, as rows of JSON */
	struct bytes setup;  /* what every new shell begins with */
	char cwd[4096];
	char version[64];
	char library[4096]; /* that drives it: preload.c */
};

/* Starts a shell. self is this program's path, tools_fd what the helpers of tools speak through. 0
 * or -1. */
int shell_start(struct shell *s, const char *self, int tools_fd);
/* Starts another in the place of one that ended: only its directory is kept. */
int shell_again(struct shell *s);
/* Gives it a command: prelude is evaluated first and silently. */
int shell_run(struct shell *s, const struct bytes *prelude, const char *code, size_t len);
/* Takes what the report pipe has. */
enum shell_event shell_report(struct shell *s);
/* Whether the shell has ended; then its status is set. */
bool shell_reap(struct shell *s);
/* Asks the running command to give up; the shell stays. */
void shell_interrupt(struct shell *s);
/* Ends the shell and what it has started. */
void shell_end(struct shell *s, int signo);
/* Whether the text is no shell syntax, by bash -n, and what that says about it. */
bool shell_is_broken(const char *code, size_t len, struct bytes *ret);
const char *shell_path(void);
/* Where the shell has the stdin of its commands. */
int shell_input_fd(void);

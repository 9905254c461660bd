/* inside/guests/sh/shell.h - a real bash that lives as long as the session. It evaluates each
 * command in itself, so variables, functions, options, aliases, jobs and the directory stay. If it
 * ends (exit, set -e, exec, a signal), a new one takes over the directory. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/lib/bytes.h"

enum shell_event {
	SHELL_NOTHING,
	SHELL_DONE, /* a command ended; the shell is ready for the next */
	SHELL_GONE, /* the shell itself ended */
};

struct shell {
	pid_t pid;      /* 0: none; also its process group */
	int text_fd;    /* a file with the command, NUL-terminated; shared with the shell */
	int ticket_fd;  /* a byte here tells the shell to read the file */
	int ticket;     /* how many bytes were sent: the number of the running command */
	int report_fd;  /* the shell's reports */
	int tools_fd;   /* the shell's end of the socket for tools */
	int status;     /* of the command that ended */
	bool ready;     /* ready for a command */
	bool restoring; /* its next report is about its own set-up */
	struct bytes report;
	struct bytes denied;    /* commands that were requested but do not exist, as rows of JSON */
	struct bytes names;     /* what shell_complete found, a line each */
	struct bytes variables; /* what shell_list_exported found: NAME=VALUE, each ended by NUL */
	struct bytes setup;     /* what every new shell runs first */
	char cwd[4096];
	char version[64];
	char library[4096]; /* the library that controls it: preload.c */
};

/* Starts a shell. self: this program's path; tools_fd: the socket for helpers of tools. 0 or -1. */
int shell_start(struct shell *s, const char *self, int tools_fd);
/* Starts another shell after one ended; only the directory is kept. */
int shell_again(struct shell *s);
/* Runs a command; prelude is evaluated first and silently. */
int shell_run(struct shell *s, const struct bytes *prelude, const char *code, size_t len);
/* Looks for names of commands, functions and, after a $, variables that begin with the word. They
 * are in `names` when the shell is ready again. */
int shell_complete(struct shell *s, const char *word, size_t len);
/* Evaluates the prelude, then looks for the exported variables. They are in `variables` when the
 * shell is ready again. */
int shell_list_exported(struct shell *s, const struct bytes *prelude);
/* Reads the report pipe. */
enum shell_event shell_report(struct shell *s);
/* Whether the shell has ended; then sets its status. */
bool shell_reap(struct shell *s);
/* Interrupts the running command; the shell stays. */
void shell_interrupt(struct shell *s);
/* Ends the shell and everything it has started. */
void shell_end(struct shell *s, int signo);
/* True if the text is not valid shell syntax, by bash -n; ret: its message. */
bool shell_is_broken(const char *code, size_t len, struct bytes *ret);
/* Descriptor that holds the stdin of commands. */
int shell_input_fd(void);

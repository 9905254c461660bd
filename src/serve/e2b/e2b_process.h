/* serve/e2b/e2b_process.h - the processes that clients started in a sandbox, and who follows their
 * output. A process does not end with the connection that started it. */
#pragma once

#include "serve/e2b/e2b_sandbox.h"

enum { E2B_FOLLOWERS_MAX = 16 };

/* A connection that gets the output. */
struct e2b_follower {
	struct httpd_exchange *x; /* a reference */
	uint64_t ping_ms;         /* how often it wants a sign of life; 0: never */
	deadline_ns ping;
	struct e2b_follower *next;
};

struct e2b_process {
	struct e2b_sandbox *sandbox;
	uint64_t number; /* of the library */
	uint32_t pid;    /* in the sandbox */
	json_t *config;  /* constant: cmd, args, envs, cwd */
	char *tag;       /* or NULL */
	bool has_terminal;
	bool is_killed; /* guarded by the sandbox's lock, as the fields below */
	unsigned refs;  /* of threads; it is freed when it has ended and nobody has one */
	struct e2b_follower *followers;
	pthread_mutex_t gate; /* its output waits until the start was told */
	struct e2b_process *next;
};

struct e2b_process_options {
	const char *command; /* for bash */
	const char *directory;
	const char *const *env;
	const json_t *config; /* copied: the process outlives its request */
	const char *tag;
	bool has_stdin, has_terminal;
	uint16_t rows, columns;
	uint64_t timeout_ms; /* 0: none */
};

/* Starts it; the stream of x begins with the message that tells its pid. On failure nothing was
 * answered. */
int e2b_process_run(struct e2b_sandbox *b, const struct e2b_process_options *o,
		    struct httpd_exchange *x, struct cordon_error **reterr);
/* By pid or tag, with a reference; NULL: none runs. */
struct e2b_process *e2b_process_get(struct e2b_sandbox *b, uint32_t pid, const char *tag);
void e2b_process_put(struct e2b_process *p);
/* Tells the pid, and from now on its output. */
int e2b_process_follow(struct e2b_process *p, struct httpd_exchange *x,
		       struct cordon_error **reterr);
int e2b_process_kill(struct e2b_process *p, struct cordon_error **reterr);
/* Signs of life for followers that want them. */
void e2b_process_ping_all(struct e2b_sandbox *b);

/* Ends the streams of all followers; the processes go on. */
void e2b_process_cut_all(struct e2b_sandbox *b);
/* Kills all; does not wait. Each is freed by its last callback, before the session is closed. */
void e2b_process_end_all(struct e2b_sandbox *b);

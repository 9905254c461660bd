/* serve/e2b/e2b_state.h - what the files of this room share. */
#pragma once

#include <pthread.h>

#include "serve/e2b/e2b.h"
#include "serve/e2b/e2b_sandbox.h"

enum { E2B_SECRET_BYTES = 32, E2B_BODY_MAX = 8 << 20 };

/* The envd that clients think they talk to: they ask for features by its version. */
#define E2B_ENVD_VERSION "0.6.4"

/* At the same time, of those whose time is over. */
enum { ENDERS = 4 };

struct e2b {
	struct server *server;
	char *templates; /* directory; NULL: none */
	struct workers *enders;
	struct e2b_spares *spares;
	unsigned char secret[E2B_SECRET_BYTES]; /* of the tokens */

	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	struct e2b_sandbox *first; /* the newest first */
	unsigned count;            /* sandboxes that are not freed yet */
	bool is_shut;
	pthread_t ticker; /* ends what is over, and keeps streams alive */
	bool has_ticker;
};

/* An error of the control plane or of /files: {"code", "message"}. */
void e2b_fail(struct httpd_exchange *x, unsigned status, const char *sentence);
void e2b_fail_error(struct httpd_exchange *x, const struct cordon_error *e);
/* The sandbox that the request names is not there. */
void e2b_fail_missing(struct httpd_exchange *x);
/* The same, as a refusal of a route. */
bool e2b_refuse_missing(struct httpd_exchange *x, unsigned status);
/* Takes j. */
void e2b_answer_json(struct httpd_exchange *x, unsigned status, json_t *j);
/* Reads a body that is a JSON object; an empty one is an empty object. */
int e2b_read_json(struct httpd_exchange *x, json_t **ret, struct cordon_error **reterr);
/* The sandbox of a request to envd or to the interpreter, after its token was checked. NULL: the
 * answer is given. With a reference. A paused one is resumed if its client said so. */
struct e2b_sandbox *e2b_target(struct e2b *e, struct httpd_exchange *x);
/* A signed address whose time is over. */
bool e2b_is_expired(const struct e2b *e, struct httpd_exchange *x);

/* ---- the handlers, by file */

/* e2b_control.c */
void e2b_control_create(struct httpd_exchange *x, void *arg);
void e2b_control_info(struct httpd_exchange *x, void *arg);
void e2b_control_kill(struct httpd_exchange *x, void *arg);
void e2b_control_connect(struct httpd_exchange *x, void *arg);
void e2b_control_timeout(struct httpd_exchange *x, void *arg);
void e2b_control_refresh(struct httpd_exchange *x, void *arg);
void e2b_control_pause(struct httpd_exchange *x, void *arg);
void e2b_control_fork(struct httpd_exchange *x, void *arg);
json_t *e2b_control_describe(struct e2b_sandbox *b);
/* e2b_list.c */
void e2b_list_sandboxes(struct httpd_exchange *x, void *arg);
void e2b_list_all(struct httpd_exchange *x, void *arg);
/* e2b_metrics.c */
void e2b_metrics_one(struct httpd_exchange *x, void *arg);
void e2b_metrics_many(struct httpd_exchange *x, void *arg);
/* e2b_filesystem.c, e2b_watch.c */
void e2b_filesystem_stat(struct httpd_exchange *x, void *arg);
void e2b_filesystem_make_dir(struct httpd_exchange *x, void *arg);
void e2b_filesystem_move(struct httpd_exchange *x, void *arg);
void e2b_filesystem_list(struct httpd_exchange *x, void *arg);
void e2b_filesystem_remove(struct httpd_exchange *x, void *arg);
void e2b_watch_stream(struct httpd_exchange *x, void *arg);
void e2b_watch_create(struct httpd_exchange *x, void *arg);
void e2b_watch_events(struct httpd_exchange *x, void *arg);
void e2b_watch_remove(struct httpd_exchange *x, void *arg);
/* e2b_files.c */
void e2b_files_read(struct httpd_exchange *x, void *arg);
void e2b_files_write(struct httpd_exchange *x, void *arg);
/* e2b_process_methods.c */
void e2b_process_start(struct httpd_exchange *x, void *arg);
void e2b_process_connect(struct httpd_exchange *x, void *arg);
void e2b_process_list(struct httpd_exchange *x, void *arg);
void e2b_process_input(struct httpd_exchange *x, void *arg);
void e2b_process_stream_input(struct httpd_exchange *x, void *arg);
void e2b_process_signal(struct httpd_exchange *x, void *arg);
void e2b_process_close_stdin(struct httpd_exchange *x, void *arg);
void e2b_process_update(struct httpd_exchange *x, void *arg);
/* e2b_routes.c: whether the request has a token of this sandbox, known or not. */
bool e2b_has_token(const struct e2b *e, struct httpd_exchange *x, const char *id);
/* The request is for this sandbox, and its tenant's. 0, or the status of the refusal: 502, it is
 * not there. is_counted: for the rate of its key. */
unsigned e2b_enter(struct e2b *e, struct httpd_exchange *x, const char *id, bool is_counted);
/* e2b_ports.c: the domain of getHost, for a client that reaches us as x does; null: none. */
json_t *e2b_ports_domain(struct httpd_exchange *x);
/* e2b_execute.c, e2b_context.c */
void e2b_execute(struct httpd_exchange *x, void *arg);
void e2b_context_list(struct httpd_exchange *x, void *arg);
void e2b_context_create(struct httpd_exchange *x, void *arg);
void e2b_context_remove(struct httpd_exchange *x, void *arg);
void e2b_context_restart(struct httpd_exchange *x, void *arg);

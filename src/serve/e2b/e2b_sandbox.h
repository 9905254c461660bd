/* serve/e2b/e2b_sandbox.h - the sandboxes of all keys: one session each, with its times, names,
 * processes and contexts.
 *
 * A handler holds a reference while it uses a sandbox. Who ends a sandbox first makes it unknown,
 * then ends what runs in it, waits for the references, and closes the session. */
#pragma once

#include <cordon/cordon.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/json.h"
#include "serve/e2b/e2b.h"

enum {
	E2B_ID_BYTES = 24,
	E2B_TOKEN_BYTES = 65,
	E2B_CONTEXTS_MAX = 32,
	E2B_METADATA_MAX = 64,
	E2B_TIMEOUT_S = 300,           /* if the client gives none */
	E2B_TIMEOUT_MAX_S = 24 * 3600, /* of a sandbox */
};

enum e2b_state { E2B_RUNNING, E2B_PAUSED, E2B_GONE };

struct e2b_process;
struct e2b_context;
struct e2b_watcher;

struct e2b_sandbox {
	struct e2b *e2b;
	char id[E2B_ID_BYTES];
	char owner[HTTPD_PRINCIPAL_BYTES]; /* the key that made it */
	struct tenant *tenant;
	struct client_session *lease; /* its place among the tenant's sessions; a reference */
	char *template;
	json_t *metadata; /* constant: texts by name */
	bool auto_pause, keeps_memory, auto_resume;
	bool is_public;     /* its ports need no token */
	int64_t started_ms; /* wall clock */
	struct cordon_session *session;

	pthread_mutex_t lock; /* guards the fields below; taken after that of e2b */
	pthread_cond_t changed;
	enum e2b_state state;
	bool has_memory; /* a paused one: its processes are there, stopped */
	bool is_due;     /* its time is over, and a thread sees to it */
	unsigned refs;
	deadline_ns end;
	int64_t end_ms;                /* the same on the wall clock */
	struct e2b_process *processes; /* that run; the newest first */
	unsigned process_count;        /* with those that have ended and are not freed yet */
	struct e2b_context *contexts;
	struct e2b_watcher *watchers;
	unsigned context_count, last_watcher;
	struct e2b_metrics_sample {
		uint64_t cpu_us, at_ns;
	} sample;
	struct e2b_sandbox *next;
};

struct e2b_sandbox_options {
	const char *template;
	const json_t *metadata, *env; /* objects of texts, or NULL */
	uint64_t timeout_s;
	bool auto_pause, keeps_memory, auto_resume, wants_network, is_public;
};

/* Makes one for the sender of x, with a reference. */
int e2b_sandbox_new(struct e2b *e, struct httpd_exchange *x, const struct e2b_sandbox_options *o,
		    struct e2b_sandbox **ret, struct cordon_error **reterr);
/* Makes a copy of a running one, for the same key, with a reference. */
int e2b_sandbox_fork(struct e2b_sandbox *of, uint64_t timeout_s, struct e2b_sandbox **ret,
		     struct cordon_error **reterr);
/* With a reference. owner: only if that key made it; NULL: any. NULL: unknown. */
struct e2b_sandbox *e2b_sandbox_get(struct e2b *e, const char *id, const char *owner);
struct e2b_sandbox *e2b_sandbox_put(struct e2b_sandbox *b); /* accepts NULL, returns NULL */
DEFINE_FREEP(struct e2b_sandbox *, e2b_sandbox_put)
#define cleanup_e2b_sandbox CLEANUP(e2b_sandbox_putp)

/* Ends it. Takes the reference. False: another thread does. */
bool e2b_sandbox_kill(struct e2b_sandbox *b);
/* Its end is so many seconds from now. extend: never earlier than it was. */
void e2b_sandbox_set_timeout(struct e2b_sandbox *b, uint64_t seconds, bool extend);
/* CORDON_STATE: it is paused already, or executes and cannot be. */
int e2b_sandbox_pause(struct e2b_sandbox *b, bool keeps_memory, struct cordon_error **reterr);
/* Does nothing if it runs. reboot: with the files only, even if more was kept. */
int e2b_sandbox_resume(struct e2b_sandbox *b, bool reboot, struct cordon_error **reterr);
enum e2b_state e2b_sandbox_state(struct e2b_sandbox *b);

/* The secrets that open it: derived from the id, so that those of an unknown one can be checked
 * too. */
enum e2b_token { E2B_TOKEN_ENVD, E2B_TOKEN_TRAFFIC };
void e2b_sandbox_token(const struct e2b *e, const char *id, enum e2b_token which,
		       char ret[static E2B_TOKEN_BYTES]);

/* Calls fn for each, newest first, with the list locked: fn must be quick. False ends it. */
void e2b_sandbox_visit(struct e2b *e, bool (*fn)(struct e2b_sandbox *b, void *arg), void *arg);
/* One of them, with a reference; NULL: there is none. */
struct e2b_sandbox *e2b_sandbox_any(struct e2b *e);
/* Ends or pauses those whose time is over, in other threads. */
void e2b_sandbox_expire(struct e2b *e);

/* serve/seat.h - what one client owns: sessions and pools by id, alive for as long as somebody uses
 * them, ended together with the client. */
#pragma once

#include <cordon/session.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/json.h"

enum {
	SEAT_ID_BYTES = 64,
	SEAT_SESSIONS_MAX = 64,
	SEAT_FORKS_MAX = 16,
	SEAT_POOLS_MAX = 16,
	SEAT_LABEL_MAX = 256,
};

/* Sessions of several clients together. */
struct seat_quota {
	atomic_uint used;
	unsigned max;
	bool (*make_room)(void *arg); /* ends one that nobody uses; false: all are in use */
	void *arg;
};

struct seats {
	pthread_mutex_t lock;   /* guards the seats' fields too */
	pthread_cond_t changed; /* a seat was opened, left, or has ended its execution */
	struct seat *first;
	unsigned sessions, forks, pools;
	unsigned pool_count; /* ever made: names them */
	bool is_closing;
	bool is_draining;         /* nothing more is asked: who waits for that waits in vain */
	struct seat_quota *quota; /* NULL: none but the counts above */
	char *loss; /* what a session that ended could not keep, and nobody was told yet */
};

enum seat_kind { SEAT_SESSION, SEAT_POOL };

struct seat {
	char id[SEAT_ID_BYTES];
	enum seat_kind kind;
	struct cordon_session *session; /* NULL while it is opened */
	struct cordon_pool *pool;
	struct seat *lender;            /* the pool that lent the session; NULL: it is its own */
	struct cordon_project *project; /* opened in the session; NULL: none */
	json_t *opening; /* the parameters that it was opened with; NULL: it cannot be again */
	json_t *history; /* commands that ran; NULL: none */
	char *state;     /* its files while it is offloaded and the client keeps none; base64 */
	json_t *label;   /* the client's name for it; NULL: none */
	bool is_fork, is_closing, is_failed;
	bool is_suspended;   /* executions that begin wait until it is resumed */
	bool is_unwanted;    /* the execution was cancelled */
	bool is_offloaded;   /* there is no session; its files are put away */
	bool is_moving;      /* its session will be exchanged: nobody may begin to use it */
	bool is_exchanging;  /* this execution exchanges the session: it cannot be cancelled */
	bool has_storage;    /* the client keeps the files of what is offloaded */
	bool is_implicit;    /* made for a call that named none: may be ended to make room */
	char guest[16];      /* for those who want to know */
	uint64_t used_ns;    /* when somebody last looked it up or left it */
	uint64_t execution;  /* of the running one; 0: none */
	json_t *request;     /* the id of the request that runs it */
	uint64_t executions; /* ever begun: numbers them */
	unsigned snapshots;  /* ever made without a name: numbers them */
	unsigned refs;       /* the table's own is one of them */
	struct seat *next;
};

void seats_init(struct seats *t);
void seats_done(struct seats *t);

/* A seat that is not open yet, with one reference for the table and one for the caller. The counts
 * are checked here. */
int seat_new(struct seats *t, enum seat_kind kind, bool is_fork, struct seat **ret,
	     struct cordon_error **reterr);
/* A seat for a session that a pool lends; it goes back when the seat is closed. Does not count. */
int seat_lend(struct seats *t, struct seat *pool, struct cordon_session *session, struct seat **ret,
	      struct cordon_error **reterr);
/* It is open now: the session's id becomes the seat's. Or it failed and leaves the table. */
void seat_open_session(struct seats *t, struct seat *s, struct cordon_session *session);
void seat_open_pool(struct seats *t, struct seat *s, struct cordon_pool *pool);
void seat_fail(struct seats *t, struct seat *s);

/* By id; waits until it is open. NULL: there is none. The reference goes with seat_put. */
struct seat *seat_get(struct seats *t, const char *id, enum seat_kind kind);
struct seat *seat_ref(struct seats *t, struct seat *s);
void seat_put(struct seats *t, struct seat *s);
/* Waits until a seat one holds is open; false: that failed. */
bool seat_wait_open(struct seats *t, struct seat *s);

/* Marks an execution as begun, or -CORDON_STATE when one runs. */
int seat_begin(struct seats *t, struct seat *s, json_t *request, struct cordon_error **reterr);
/* The same, but waits for the end of the one that runs. -CORDON_CANCELLED: is_over said so. */
int seat_begin_in_turn(struct seats *t, struct seat *s, json_t *request, bool (*is_over)(void *arg),
		       void *arg, struct cordon_error **reterr);
void seat_end(struct seats *t, struct seat *s);
/* By who executes, after the beginning: waits while the seat is suspended. -CORDON_CANCELLED: it
 * shall not run any more. */
int seat_pass(struct seats *t, struct seat *s, struct cordon_error **reterr);
/* -CORDON_STATE: an execution runs. */
int seat_suspend(struct seats *t, struct seat *s, struct cordon_error **reterr);
void seat_resume(struct seats *t, struct seat *s);
/* No request will come any more: executions that wait for seat_resume end. */
void seats_drain(struct seats *t);
/* Ends the running execution, if any, and waits until it has ended. false: there was none, or it is
 * an exchange of the session that has begun. Whoever calls this holds a reference, for which the
 * exchange waits: so neither waits for the other without end. */
bool seat_cancel(struct seats *t, struct seat *s);
/* The seat whose execution runs for this request, or NULL. The reference goes with seat_put. */
struct seat *seat_by_request(struct seats *t, const json_t *request);
/* The request that executes in this session as JSON text, to be freed; NULL: none, or no memory. */
char *seat_request(struct seats *t, const char *session);
/* The seat's id, which stays when its session is exchanged, for that of the session. */
void seat_name(struct seats *t, const char *session, char ret[SEAT_ID_BYTES]);
/* By who holds its execution: nobody finds it from here on, and those who had found it have left.
 * others: references that stay meanwhile, beside the table's and the caller's. -CORDON_CANCELLED:
 * the execution was cancelled, or the seat closed, while others had it; nothing is locked. */
int seat_lock(struct seats *t, struct seat *s, unsigned others, struct cordon_error **reterr);
/* The end of it, with another session or none (offloaded). The old one is returned. */
struct cordon_session *seat_unlock(struct seats *t, struct seat *s, struct cordon_session *session);
/* Takes it out of the table, ends its execution, waits for everybody else, and closes it. Takes the
 * caller's reference. */
void seat_close(struct seats *t, struct seat *s);
/* All of it, executions first. No seat is made or found afterwards. */
void seats_close(struct seats *t);
/* What a session that has ended could not keep, in words, to be freed; NULL: nothing. */
char *seats_take_loss(struct seats *t);
/* Ends the sessions that nobody uses and nobody asked for since then; only_implicit: of those made
 * for calls that named none. keep: so many of them may stay whatever their age. */
void seats_expire(struct seats *t, uint64_t before_ns, bool only_implicit, unsigned keep);
/* When the session that nobody uses was last used; UINT64_MAX: there is none. */
uint64_t seats_oldest_ns(struct seats *t);
/* Calls fn for every open session, under the lock. */
void seats_visit(struct seats *t, void (*fn)(const struct seat *s, void *arg), void *arg);

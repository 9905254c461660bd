/* tests/behaviour/place_fixture.h - a place and its guests for tests, through the wall's own
 * interface. */
#pragma once

#include <stdbool.h>

#include "guest/guest.h"
#include "policy/policy.h"
#include "wall/wall.h"

enum { TENANT_TEXT = 8192 };

struct tenant {
	struct box *box;
	int in, out, wire;      /* the host's ends; the guest's stderr is its stdout */
	char text[TENANT_TEXT]; /* what it has printed */
	size_t len;
};

struct site {
	struct policy policy;
	struct box *template; /* NULL: none */
	struct box *place;
	struct tenant first, keep; /* keep: the template's streams; its box is not in it */
};

/* A place for all languages that are installed, whose first guest runs this shell script. settings:
 * "key=value" for the standard policy, ended by NULL; NULL: none. A machine without what a place
 * needs is named (needs()). */
void site_open(struct site *ret, const char *script, const char *const *settings);
/* The same, forked from a template; the first guest is Python's runtime. */
void site_fork(struct site *ret, const char *const *settings);
void site_close(struct site *s);

/* Joins a guest that runs the code; NULL: the language's runtime, with a wire. A missing
 * interpreter is named. */
void site_join(struct site *s, struct tenant *ret, enum guest_kind kind, const char *code);
/* The same; returns what box_join does. */
int site_try(struct site *s, struct tenant *ret, enum guest_kind kind, const char *code);
/* Joins a guest, waits for its end and returns what it printed. *ret_status: as from wait(2). */
const char *site_run(struct site *s, enum guest_kind kind, const char *code, int *ret_status);

/* Waits until it has printed this. */
void tenant_await(struct tenant *t, const char *text);
/* Waits for its end; returns its status as from wait(2). */
int tenant_wait(struct tenant *t);
/* Reads what is left of its output. */
void tenant_read(struct tenant *t);
void tenant_done(struct tenant *t);

bool site_has(enum guest_kind kind);

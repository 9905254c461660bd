/* session/place.h - a sandbox in which several guests run: the contexts of one session (context.h).
 * They share its root, files, processes, network and limits. A place is made once and never
 * changed; a session that loses it gets another. Engines hold a reference, so it outlives them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "guest/guest.h"
#include "wall/wall.h"

struct cordon_session;
struct network;
struct place;
struct engine;
struct template;

/* Without a box so far: the first engine that is started with it makes it (place_start), or t, a
 * template of places, forks both (place_fork; NULL: none). Opens the gateway, if the policy needs
 * one. */
int place_new(struct cordon_session *root, struct template *t, struct place **ret,
	      struct cordon_error **reterr);
struct place *place_ref(struct place *p); /* accepts NULL */
/* Drops a reference; the last one ends everything in it. Always returns NULL. */
struct place *place_put(struct place *p);
/* Ends everything in it now, and waits for that. The caller is the only one that replaces it. */
void place_end(struct place *p);
/* Between executions, its processes used up the CPU time: ends it, without waiting. */
void place_spend(struct place *p);

/* A template forked it, or will. */
bool place_is_forked(const struct place *p);
/* True: the first guest must come from its template. */
bool place_forks(const struct place *p);
/* Forks the place and its first guest, whose language is the template's. */
int place_fork(struct place *p, struct engine *e, struct cordon_error **reterr);
/* Keeps the first guest, which nobody has greeted, until a context of its language begins; once,
 * and before other threads know the place. Takes it over. */
void place_keep(struct place *p, struct engine *e);
/* That guest, now the caller's; NULL: there is none of this language. */
struct engine *place_take(struct place *p, enum guest_kind kind);
/* Starts a guest in it, the first or a further one. */
int place_start(struct place *p, const struct box_options *o, struct box **ret,
		struct cordon_error **reterr);
struct box *place_box(const struct place *p);
struct network *place_network(const struct place *p);
/* Stops everything in the session's place, or lets it go on. CORDON_UNSUPPORTED: it has none. */
int place_freeze(struct cordon_session *root, bool frozen, struct cordon_error **reterr);
/* Why no guest can run in it any more; NULL: it can be used. */
const char *place_lost(const struct place *p);
/* Waits until its end is known. False: it lives on. */
bool place_await_loss(const struct place *p, int timeout_ms);

/* Bits of 1 << enum guest_kind for the names (as guest_from_name), ended by NULL. A pod has its own
 * root, so it cannot be one of several. */
int place_languages(const char *const *names, enum guest_kind first, unsigned *ret,
		    struct cordon_error **reterr);
/* How many processes and threads the interpreters of these languages have of their own. The limit
 * of a place is that much higher, so that it leaves the code as much as that of one language. */
unsigned place_tasks(unsigned languages);
/* Their names, in room for all of them and NULL; NULL: the session has one language. */
const char *const *place_names(const struct cordon_session *root, const char **room);
/* An error if the place of this session was not opened with the language. */
int place_check_language(const struct cordon_session *root, enum guest_kind kind,
			 struct cordon_error **reterr);

/* session/engine.h - one running guest: a box, the wire to it, and its streams. A session has one
 * at a time and gets a new one after a timeout, a crash or a restart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "guest/guest.h"
#include "policy/policy.h"
#include "wall/wall.h"
#include "wire/wire.h"

struct network;
struct place;
struct template;
struct timeline;

struct engine {
	enum guest_kind kind;
	struct box *box;
	struct wire *wire; /* NULL: a script that does not use the wire */
	int stdin_fd; /* write end, non-blocking, for the first execution; -1: already handed over
		       */
	uint64_t stdin_written; /* pod only: one pipe serves all its executions */
	uint64_t cpu_us;        /* CPU time of the whole sandbox when the last execution ended */
	uint64_t cpu_guest_us;  /* the same for the guest's process alone */
	bool had_stdin;         /* the last execution was given stdin */
	int stdout_fd, stderr_fd;
	/* The guest's end of its terminal; -1: it has none. While the host holds it, the terminal
	 * never hangs up, so the host need not tell a pause from the end. */
	int terminal_fd;
	char language[32]; /* the version of the language, as the guest says in its hello */
	bool is_ready;
	/* A reference: a forked guest lives in its template's namespaces and dies with them. NULL:
	 * started without a template. */
	struct template *template;
	struct place *place; /* a reference: the place it runs in; NULL: it has a sandbox alone */
	uint64_t tasks_max;  /* the place's limit on processes and threads */
	char *assurance;     /* JSON text, written once the guest is sealed */
	/* The kernel's counters when last read. They are read after a failure, not after every
	 * execution. */
	struct box_counts counted;
	bool is_spent; /* ended between executions because leftover processes used up the CPU time
			*/
	bool was_crowded;          /* an earlier execution reached the limit on processes */
	struct timeline *timeline; /* of its session, or NULL */
};

/* The size of a terminal, in characters. */
struct engine_terminal {
	uint16_t rows, columns;
};

struct engine_options {
	const struct policy *policy;
	enum guest_kind kind;
	struct template *template; /* NULL: start without one; the reference is taken over */
	struct place *place;       /* start it in this place; NULL: in a sandbox of its own */
	const char *script;        /* sh: run this text and end; NULL: a session */
	size_t script_len;
	const char *const *args;
	const char *directory;       /* working directory; NULL: /home/user */
	const struct strlist *tools; /* sh: tools that become commands; NULL: none */
	const struct engine_terminal
		*terminal;         /* script in a place: run it on one; NULL: on pipes */
	const json_t *env;         /* script in a place: NAME to value; NULL: none */
	uint32_t layers_off;       /* `doctor --prove` only */
	struct network *network;   /* the gateway, if the policy opens the network; else NULL */
	struct timeline *timeline; /* NULL: times are not recorded */
};

/* Long enough to start an interpreter on a busy machine. A guest that takes longer is stuck. */
enum { ENGINE_START_MS = 120000 };

/* Returns while the guest is still starting. */
int engine_start(const struct engine_options *o, struct engine **ret, struct cordon_error **reterr);
/* Waits for the guest's hello and sends the welcome. Afterwards the guest accepts executions. */
int engine_greet(struct engine *e, const char *welcome, size_t len, deadline_ns deadline,
		 struct cordon_error **reterr);
struct engine *engine_free(struct engine *e);
/* Whether the guest's process is an agent, and another process, a shell, runs the code. */
bool engine_is_agent(const struct engine *e);
/* The assurance of this guest; the caller frees it. NULL: not sealed yet. Other threads may call
 * this as long as the engine is not freed. */
json_t *engine_assurance_json(const struct engine *e, const struct policy *p);
/* The same as JSON text; owned by e. */
const char *engine_assurance(struct engine *e, const struct policy *p);

/* Sets the size of its terminal, if it has one; its foreground programs get SIGWINCH. */
int engine_resize(const struct engine *e, const struct engine_terminal *size);

/* Sends a signal to the guest's process group. On a terminal those that a key sends go to the
 * programs in the foreground. Does nothing if the guest has ended. */
void engine_signal(struct engine *e, int signo);

/* The pipes and the wire of a guest, both ends. */
struct engine_ends {
	int wire, in, out, err; /* the guest's ends; closed by engine_ends_done */
	int host_wire, host_in, host_out, host_err;
	int terminal; /* instead of in, out and err */
};
#define ENGINE_ENDS_NONE                                                                           \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1, -1, -1                                                 \
	}
int engine_ends_open(struct engine_ends *ret, bool has_wire, struct cordon_error **reterr);
void engine_ends_done(struct engine_ends *e);
/* Moves the host's ends into an engine. */
int engine_adopt(struct engine *e, struct engine_ends *ends, const struct policy *p,
		 const char *token, struct cordon_error **reterr);

DEFINE_FREEP(struct engine *, engine_free)
#define cleanup_engine CLEANUP(engine_freep)

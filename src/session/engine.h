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
#include "wall/box.h"
#include "wire/wire.h"

struct network;
struct template;
struct timeline;

struct engine {
	enum guest_kind kind;
	struct box *box;
	struct wire *wire;      /* NULL: a script that speaks no wire */
	int stdin_fd;           /* write end, non-blocking, for its first execution; -1: taken */
	uint64_t stdin_written; /* a pod's, whose one pipe serves all its executions */
	uint64_t cpu_us;        /* what it had used when its last execution ended, all of it */
	uint64_t cpu_guest_us;  /* and the guest's process alone */
	bool had_stdin;         /* its last execution was given some */
	int stdout_fd, stderr_fd;
	bool is_ready;
	/* It lives in the template's namespaces and dies with it: a reference; NULL: cold. */
	struct template *template;
	char *assurance; /* JSON text, made once the guest is sealed */
	/* The kernel's counters when they were last read: after a failure, not every time. */
	struct cgroup_counts counted;
	bool is_spent;    /* ended between executions: leftover processes used up the CPU time */
	bool was_crowded; /* an earlier execution reached the limit of processes */
	struct timeline *timeline; /* its session's, or NULL */
};

struct engine_options {
	const struct policy *policy;
	enum guest_kind kind;
	struct template *template; /* NULL: a cold start; the reference is taken over */
	const char *script;        /* sh: run this file's text and end; NULL: a session */
	size_t script_len;
	const char *const *args;
	const char *directory;       /* where it starts; NULL: /home/user */
	const struct strlist *tools; /* sh: what becomes a command; NULL: nothing */
	uint32_t layers_off;         /* `doctor --prove` only */
	struct network
		*network; /* the gateway of a session whose policy opens the network, or NULL */
	struct timeline *timeline; /* NULL: nobody wants to know */
};

/* For the start of an interpreter on a busy machine. What takes longer hangs. */
enum { ENGINE_START_MS = 120000 };

/* The guest is starting when this returns. */
int engine_start(const struct engine_options *o, struct engine **ret, struct cordon_error **reterr);
/* Waits for its hello and sends the welcome; afterwards it takes executions. */
int engine_greet(struct engine *e, const char *welcome, size_t len, deadline_ns deadline,
		 struct cordon_error **reterr);
struct engine *engine_free(struct engine *e);
/* Names the reason when the guest ended before it said hello. */
int engine_explain_death(struct engine *e, struct cordon_error **reterr);
/* The assurance of this very guest, which the caller frees; NULL: it is not sealed yet. Other
 * threads may call it while its owner keeps the engine. */
json_t *engine_assurance_json(const struct engine *e, const struct policy *p);
/* The same as JSON text; owned by e. */
const char *engine_assurance(struct engine *e, const struct policy *p);

/* Pipes and the wire of a guest, the guest's ends first. */
struct engine_ends {
	int wire, in, out, err; /* the guest's; closed by engine_ends_done */
	int host_wire, host_in, host_out, host_err;
};
#define ENGINE_ENDS_NONE                                                                           \
	{                                                                                          \
		-1, -1, -1, -1, -1, -1, -1, -1                                                     \
	}
int engine_ends_open(struct engine_ends *ret, bool has_wire, struct cordon_error **reterr);
void engine_ends_done(struct engine_ends *e);
/* Moves the host's ends into an engine. */
int engine_adopt(struct engine *e, struct engine_ends *ends, const struct policy *p,
		 const char *token, struct cordon_error **reterr);

DEFINE_FREEP(struct engine *, engine_free)
#define cleanup_engine CLEANUP(engine_freep)

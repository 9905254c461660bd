/* guest/guest.h - how each language is started: interpreter, visible files, protocol. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/policy.h"
#include "wall/launch.h"

enum guest_kind {
	GUEST_KIND_NONE,
	GUEST_KIND_PYTHON,
	GUEST_KIND_R,
	GUEST_KIND_NODE,
	GUEST_KIND_SH,
	GUEST_KIND_POD
};

/* As people write it (base/language_name.h). GUEST_KIND_NONE: unknown. */
enum guest_kind guest_from_name(const char *name);
const char *guest_name(enum guest_kind kind);
bool guest_can_fork(enum guest_kind kind); /* it can have templates */
/* It reads its token as the wire's first line (docs/wire.md), not from its environment. */
bool guest_reads_token(enum guest_kind kind);

/* How many processes and threads an idle session of this kind has, its shell included. */
unsigned guest_tasks(enum guest_kind kind);

/* The heap limit that the interpreter was given; 0: only the sandbox limits it. */
uint64_t guest_heap_bytes(enum guest_kind kind, const struct policy *p);

enum guest_mode {
	GUEST_SESSION,  /* uses the wire, for many executions */
	GUEST_TEMPLATE, /* uses the wire, forks sessions */
	GUEST_SCRIPT,   /* sh: the plain shell runs the code file; its status is the result */
	GUEST_COMMAND,  /* sh: the same with the code as an argument, in a sandbox that is there */
	GUEST_VALIDATE, /* reads code on stdin, checks it and prints the outcome; runs nothing */
};

struct guest_options {
	enum guest_kind kind;
	enum guest_mode mode;
	const struct policy *policy;
	const char *token; /* GUEST_SESSION and GUEST_TEMPLATE */
	const char *code;  /* GUEST_SCRIPT */
	size_t code_len;
	const char *const *args; /* GUEST_SCRIPT: arguments of the script; ends with NULL */
	const char *directory;   /* working directory; NULL: /home/user */
	/* GUEST_SESSION of sh: names of host tools, which become commands; NULL: none */
	const struct strlist *tools;
};

/* Fills *ret. A missing interpreter is CORDON_NOT_FOUND, with the name of its package. */
int guest_launch(const struct guest_options *o, struct launch *ret, struct cordon_error **reterr);

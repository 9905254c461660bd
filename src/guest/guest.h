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

enum guest_kind guest_from_name(const char *name); /* GUEST_KIND_NONE when unknown */
const char *guest_name(enum guest_kind kind);
bool guest_can_fork(enum guest_kind kind); /* has warm templates */
/* Takes its token as the wire's first line (docs/wire.md), not from its environment. */
bool guest_reads_token(enum guest_kind kind);

/* The heap that the interpreter was told to keep within, or 0 where it knows only the wall's limit.
 */
uint64_t guest_heap_bytes(enum guest_kind kind, const struct policy *p);

enum guest_mode {
	GUEST_SESSION,  /* speaks the wire, lives for many executions */
	GUEST_TEMPLATE, /* speaks the wire, forks sessions */
	GUEST_SCRIPT,   /* sh: the plain shell runs the code file and ends with its status */
	GUEST_VALIDATE, /* reads code on stdin, checks it and prints the outcome, runs nothing */
};

struct guest_options {
	enum guest_kind kind;
	enum guest_mode mode;
	const struct policy *policy;
	const char *token; /* GUEST_SESSION and GUEST_TEMPLATE */
	const char *code;  /* GUEST_SCRIPT */
	size_t code_len;
	const char *const *args; /* GUEST_SCRIPT: arguments of the script; ends with NULL */
	const char *directory;   /* where it starts; NULL: /home/user */
	/* GUEST_SESSION of sh: names of host tools, which become commands there; NULL: none */
	const struct strlist *tools;
};

/* Fills *ret. A missing interpreter is CORDON_NOT_FOUND with the package that brings it. */
int guest_launch(const struct guest_options *o, struct launch *ret, struct cordon_error **reterr);

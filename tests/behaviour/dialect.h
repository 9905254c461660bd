/* tests/behaviour/dialect.h - live sessions for tests: the code for the same task in each guest,
 * and helpers to run it through the public API. */
#pragma once

#include <cordon/cordon.h>

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct dialect {
	const char *guest, *program; /* program: what must be installed */
	const char *set_x, *get_x, *x_value;
	const char *fail, *fail_text;
	const char *spin, *sleep;
	const char *syntax, *two_lines, *write_file, *read_file, *random;
	const char *read_all, *read_line, *close_stdin;
};

enum { DIALECTS = 4 };
extern const struct dialect dialects[DIALECTS];

#define EACH_DIALECT(d)                                                                            \
	for (const struct dialect *d = dialects; d < dialects + DIALECTS; d++)                     \
		if (dialect_is_here(d))

/* Whether its interpreter is installed; ends the test where CORDON_NEEDS=strict. */
bool dialect_is_here(const struct dialect *d);

/* set: "key=value" for the standard policy; NULL: as it is. */
struct cordon_policy *new_policy(const char *set);
struct cordon_session *open_with(const char *guest, const char *set);
/* A sandbox for these languages (ended by NULL). p is taken over. */
struct cordon_session *open_languages(const char *guest, const char *const *languages,
				      struct cordon_policy *p);
/* The host's number of the sandbox's pid 1: the parent of the guest. */
pid_t first_process(struct cordon_session *s);
struct cordon_result *run_for(struct cordon_session *s, const char *code, uint64_t timeout_ms);
struct cordon_result *run(struct cordon_session *s, const char *code);
/* Each ends the test when it is not so. */
void must(struct cordon_session *s, const char *code);
void value_is(struct cordon_session *s, const char *code, const char *value);
void must_be(struct cordon_session *s, const struct dialect *d, const char *code,
	     const char *value);
void must_fail(struct cordon_session *s, const char *code, uint64_t timeout_ms, const char *kind,
	       const char *text);

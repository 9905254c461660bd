/* serve/http/problem.h - errors as problem documents (RFC 9457): our code, a sentence, a remedy. */
#pragma once

#include "serve/http/httpd.h"

/* The HTTP status of an error's code. */
unsigned problem_status(enum cordon_code code);
/* Answers with an error; its remedy is that of the code, unless the sentence has one. */
void problem_answer(struct httpd_exchange *x, const struct cordon_error *e);
/* With a status of its own. remedy NULL: none. */
void problem_answer_as(struct httpd_exchange *x, unsigned status, const char *code,
		       const char *sentence, const char *remedy);
/* The document as text, freed by the caller; for an event of a stream. NULL: out of memory. */
char *problem_text(const struct cordon_error *e, unsigned *ret_status);

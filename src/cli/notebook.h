/* cli/notebook.h - notebooks (.ipynb) and documents (.Rmd, .qmd) that run cell by cell. */
#pragma once

#include <cordon/cordon.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/option.h"

struct cell {
	char *code;
	const char *guest; /* its language */
	size_t place;      /* number of the cell from 1, or line of the chunk */
	bool is_run;       /* false: eval=FALSE, or no code in it */
	bool may_fail;     /* an error is expected: the tag raises-exception, error=TRUE */
	bool is_hidden;    /* include=FALSE: what it prints is not shown */
	bool is_echoed;    /* echo=FALSE: not */
	char engine[32];   /* of a chunk */
	size_t from, to;   /* the chunk's bytes in the document */
	size_t number;     /* its place among those that have run; 0: it has not */
	json_t *outputs;   /* as nbformat has them; NULL: it has not run */
	json_t *node;      /* the cell in the notebook, borrowed */
};

enum { NOTEBOOK_LANGUAGES = 4 };

struct notebook {
	const char *path;
	const char *guest;                             /* of the session */
	const char *languages[NOTEBOOK_LANGUAGES + 1]; /* of its chunks; ends with NULL */
	bool is_document;
	struct cell *cells;
	size_t count;
	json_t *root;    /* a notebook's JSON */
	struct buf text; /* a document's text */
	size_t kept;     /* bytes of all outputs */
	bool is_midline; /* what was printed last does not end its line */
};

bool notebook_is(const char *path); /* by the ending of the name */
/* guest: overrides what a notebook says of its language; NULL: nothing. Errors name the cell. */
int notebook_load(const char *path, const char *guest, struct notebook *ret,
		  struct cordon_error **reterr);
void notebook_done(struct notebook *n);
#define cleanup_notebook CLEANUP(notebook_done)

/* A new cell at the end; NULL: no memory, or more cells than a notebook may have. */
struct cell *notebook_add(struct notebook *n);
/* Runs the cells in order and prints what they print. Stops at the first that fails, unless
 * --keep-going is given. *ret_status: the exit status of the first that failed, or 0. */
int notebook_run(const struct cli *c, struct notebook *n, struct cordon_session *s, int *ret_status,
		 struct cordon_error **reterr);
/* Says what a terminal does not show and no file has: plots and other rich outputs. */
void notebook_tell_unshown(const struct notebook *n, const struct cli *c);
/* Whether notebook_save could write there: said before anything runs. */
int notebook_check_target(const char *path, struct cordon_error **reterr);
/* Writes the notebook with its outputs, or the document as Markdown. */
int notebook_save(const struct notebook *n, const char *path, struct cordon_error **reterr);

/* nbformat.c: the file format of Jupyter, version 4. */
int nbformat_parse(struct notebook *n, const char *guest, struct cordon_error **reterr);
int nbformat_write(const struct notebook *n, struct buf *ret, struct cordon_error **reterr);
/* The outputs of a result, as nbformat has them; streams: those that came before, taken over. r
 * NULL: nothing but these. */
json_t *nbformat_outputs(json_t *streams, struct cordon_result *r, const char *guest,
			 size_t number);
/* Adds to the last stream, or begins another. */
void nbformat_add_stream(json_t *outputs, int stream, const char *bytes, size_t len);

/* chunk.c: R Markdown and Quarto. */
int chunk_parse(struct notebook *n, struct cordon_error **reterr);
int chunk_write(const struct notebook *n, struct buf *ret, struct cordon_error **reterr);

/* inside/guests/r/r_columns.h - binary columns (docs/values.md): the large parts of values, beside
 * their JSON. Out: the encoder collects them, and they are written later. In: they are loaded into
 * R's vectors before the JSON is decoded. The guest and the client use it. */
#pragma once

#include "inside/guests/r/encode.h"

/* ---- out */

/* From here on large parts become columns, until columns_pause. limit: of their bytes. What was
 * collected before is forgotten. */
void columns_begin(double limit);
void columns_pause(void);
void columns_end(void);
double columns_bytes(void);          /* 0: none was collected */
void columns_table(struct bytes *b); /* {"bytes":N,"columns":[…]} */
/* Writes all bytes in order. False: write failed. */
bool columns_write(bool (*write)(void *arg, const void *data, size_t len), void *arg);

/* Whether n values of this width go into a column. */
bool columns_takes(R_xlen_t n, size_t width);
/* A data frame with so many cells: its columns go together. columns_leave: after it. */
void columns_enter(double cells);
void columns_leave(void);
/* Appends a reference, {"$buf":i}. A vector's elements; double_scale: doubles are multiplied. */
void columns_put(struct encoder *e, SEXP v, double scale);
/* The vec form of a large vector of this type, with further fields; false: it has no column. */
bool columns_vector(struct encoder *e, SEXP v, const char *type, const char *more);

/* ---- in */

/* Loads the columns of a table; read delivers their bytes in order. Leaves by an R error if it
 * fails. */
void columns_load(struct json table, bool (*read)(void *arg, void *to, size_t len), void *arg);
void columns_drop(void);
bool columns_is_ref(struct json v);
/* The vector that a reference stands for, as a vec of this type; vec: the form, for its unit. The
 * result is not protected. Each can be taken once. */
SEXP columns_take(struct json ref, const char *type, struct json vec);
SEXP columns_take_array(struct json ref); /* of an array: as R has its type */
SEXP columns_list(struct json v);         /* the form `list` */
void columns_rewind(void);                /* after an error: the message is decoded again */
/* From C's order to R's, for vectors of the same type and these dimensions. */
void columns_transpose(SEXP to, SEXP from, SEXP dim);

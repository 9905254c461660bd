/* base/buf.h - a growing byte buffer that has a limit from the start. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct buf {
	char *data; /* followed by a NUL that len does not count, once anything was added */
	size_t len, cap;
	size_t max; /* len never exceeds this */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
/* 0, -CORDON_LIMIT (nothing was added) or -CORDON_NOMEM. */
int buf_add(struct buf *b, const void *bytes, size_t len);
int buf_add_str(struct buf *b, const char *s);
int buf_add_char(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds untrusted text that must not forge lines or control a terminal: control characters, those
 * that turn the direction of text, and invalid UTF-8 are escaped. */
int buf_add_printable(struct buf *b, const char *text);
/* Makes room for at least len more bytes and returns a pointer to it; NULL on failure. */
char *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len); /* after writing into buf_reserve's room */
/* Drops the first len bytes. */
void buf_consume(struct buf *b, size_t len);
void buf_clear(struct buf *b);
/* The text so far, "" if empty. Owned by b. */
const char *buf_text(const struct buf *b);
/* Returns the bytes, NUL-terminated; the caller frees them. b is empty afterwards. NULL: out of
 * memory. */
char *buf_take(struct buf *b);
#define cleanup_buf CLEANUP(buf_done)

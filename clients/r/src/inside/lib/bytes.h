/* inside/lib/bytes.h - a growing byte buffer. Running out of memory ends the program: it serves one
 * session, and the host starts another. */
#pragma once

#include <stddef.h>

struct bytes {
	char *data;
	size_t len, cap;
};

/* Where so many more can be put; the caller then adds to len. */
char *bytes_room(struct bytes *b, size_t more);
void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_text(struct bytes *b, const char *text);
void bytes_char(struct bytes *b, char c);
__attribute__((format(printf, 2, 3))) void bytes_format(struct bytes *b, const char *fmt, ...);
/* Drops the first n bytes. */
void bytes_drop(struct bytes *b, size_t n);
void bytes_done(struct bytes *b);
/* Appends in single quotes, for the shell. */
void bytes_shell(struct bytes *b, const char *data, size_t len);
/* Appends the bytes of one read(2); returns its result. */
long bytes_read(struct bytes *b, int fd);
/* Writes everything, waiting if necessary; 0 or -1. */
int bytes_write(int fd, const char *data, size_t len);

/* inside/guests/r/turn_columns.c - the binary columns of an execution (docs/values.md): those of
 * its variables, and those of its value. The host has a file for each, and gives its descriptor. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside/guests/r/r_columns.h"
#include "inside/guests/r/turn.h"

static bool fill_map(void *arg, const void *data, size_t len)
{
	char **at = arg;
	memcpy(*at, data, len);
	*at += len;
	return true;
}

/* Fills the host's file with the columns; NULL, or what is wrong. Through a mapping: the limit on
 * the size of files does not apply to it. */
static const char *send_columns(void)
{
	static char why[96];
	size_t size = (size_t)columns_bytes();
	int fd = wire_buffer(size, why);
	if (fd < 0)
		return why;
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *at = map;
	close(fd);
	if (map == MAP_FAILED)
		return "the host's buffer cannot be mapped";
	columns_write(fill_map, &at);
	munmap(map, size);
	return NULL;
}

/* The value's columns, if it has some; NULL, or what is wrong. */
const char *turn_put_columns(struct bytes *b)
{
	const char *why = NULL;
	columns_pause();
	if (columns_bytes() > 0) {
		why = send_columns();
		bytes_text(b, ",\"buffer\":");
		columns_table(b);
	}
	columns_end();
	return why;
}

static bool read_file(void *arg, void *to, size_t len)
{
	char *at = to;
	while (len > 0) {
		ssize_t n = read(*(int *)arg, at, len);
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

/* Loads the binary columns that the host has for the variables. */
void turn_take_columns(struct json table)
{
	char why[96] = "";
	static int fd;
	fd = wire_buffer(0, why);
	if (fd < 0)
		Rf_error("%s", why);
	lseek(fd, 0, SEEK_SET);
	columns_load(table, read_file, &fd);
	close(fd);
}

SEXP turn_lacks(SEXP old, const char *why)
{
	int n = TYPEOF(old) == STRSXP ? LENGTH(old) : 0;
	char text[160];

	snprintf(text, sizeof(text), "The result has no value, only its text: %s", why);
	SEXP all = PROTECT(Rf_allocVector(STRSXP, n + 1));
	SET_STRING_ELT(all, 0, Rf_mkCharCE(text, CE_UTF8));
	for (int i = 0; i < n; i++)
		SET_STRING_ELT(all, i + 1, STRING_ELT(old, i));
	UNPROTECT(1);
	return all;
}

/* fuzz/columns.c - a table of binary columns and the file that it describes: the input is the table
 * up to a newline, then the file's bytes. A table that is accepted lies inside its file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "wire/columns.h"

enum { MAX_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size;
	struct cordon_error *err = NULL;
	struct columns *c = NULL;

	if (columns_new((const char *)data, len, MAX_BYTES, &c, &err) < 0) {
		if (!err || c)
			abort();
		cordon_error_free(err);
		return 0;
	}
	if (columns_get_bytes(c) > MAX_BYTES)
		abort();
	int fd = os_memory_file("fuzz", true);
	size_t rest = end ? size - len - 1 : 0;
	/* As long as the table says, so that its columns are looked at. */
	if (fd < 0 || (rest && write(fd, end + 1, rest) != (ssize_t)rest) ||
	    ftruncate(fd, (off_t)columns_get_bytes(c)) < 0)
		abort();
	if (columns_check(c, fd, &err) < 0 && !err)
		abort();
	cordon_error_free(err);
	columns_free(c);
	close(fd);
	return 0;
}

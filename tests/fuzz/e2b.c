/* fuzz/e2b.c - hostile bodies of the E2B API. The first byte chooses: an envelope, a form, gzip, or
 * a path. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "serve/e2b/connect_rpc.h"
#include "serve/e2b/e2b_entry.h"
#include "serve/e2b/gzip.h"
#include "serve/e2b/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

static void read_envelope(const char *bytes, size_t len)
{
	const char *text = NULL;
	size_t n = 0;

	if (connect_rpc_next(bytes, len, &text, &n, NULL) == 0)
		check(text >= bytes && text + n <= bytes + len);
}

static void read_form(const char *bytes, size_t len)
{
	struct multipart m;
	int r = multipart_init(&m, "multipart/form-data; boundary=B", bytes, len, NULL);

	while (r >= 0) {
		cleanup_multipart_part struct multipart_part p = { 0 };

		r = multipart_next(&m, &p, NULL);
		if (r <= 0)
			return;
		check(p.bytes >= bytes && p.bytes + p.len <= bytes + len);
	}
}

static void read_path(const char *bytes, size_t len)
{
	cleanup_free char *given = str_ndup(bytes, len);
	cleanup_free char *path = given ? e2b_entry_path(given) : NULL;

	if (path)
		check(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/../"));
}

static void unpack(const char *bytes, size_t len)
{
	cleanup_close int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t n = 0;

	(void)gzip_unpack(bytes, len, 1 << 20, fd, &n, NULL);
	check(n <= 1 << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;

	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'e':
		read_envelope(bytes, size - 1);
		break;
	case 'f':
		read_form(bytes, size - 1);
		break;
	case 'g':
		unpack(bytes, size - 1);
		break;
	default:
		read_path(bytes, size - 1);
	}
	return 0;
}

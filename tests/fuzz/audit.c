/* fuzz/audit.c - any bytes as an audit file: verifying never crashes, and appending to a valid file
 * keeps it valid. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "cordon/audit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct cordon_audit_report before, after;
	struct audit *a = NULL;

	snprintf(path, sizeof(path), "/tmp/cordon-fuzz-audit-%d", (int)getpid());
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	check(cordon_audit_verify(path, NULL, &before, NULL) == 0);
	check(before.is_whole == (before.reason == NULL && before.lost == 0));
	struct audit_options opts = { .path = path };
	if (before.is_whole && audit_open(&opts, &a, NULL) == 0) {
		int r = audit_write(a, "e", "s", NULL, NULL, NULL);
		audit_close(a);
		check(cordon_audit_verify(opts.path, NULL, &after, NULL) == 0);
		check(r < 0 || (after.is_whole && after.lines > before.lines));
	}
	(void)unlink(path);
	strcat(path, ".lost"); /* of what could not be appended */
	(void)unlink(path);
	return 0;
}

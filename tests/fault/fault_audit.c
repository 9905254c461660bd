/* fault/fault_audit.c - the audit log when memory runs out: no line is lost or broken. */
#include <fcntl.h>

#include "audit/audit.h"
#include "cordon/audit.h"
#include "harness/fault.h"

static int write_some(const char *path, struct cordon_error **e)
{
	struct audit_options opts = { .path = path, .rotate_bytes = 1000 };
	struct audit *a = NULL;
	int r = audit_open(&opts, &a, e);

	for (int i = 0; r >= 0 && i < 8; i++) {
		struct audit_event *event = audit_begin(a, "e", "s");
		audit_add_text(event, "k", "v\x01", 2);
		audit_add_uint(event, "n", 7);
		r = audit_commit(event, e);
	}
	audit_close(a);
	return r;
}

TEST(rotating_and_mending)
{
	char dir[] = "/tmp/cordon-fault-XXXXXX", command[100], path[64], name[80];
	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(command, sizeof(command), "rm -f %s/*", dir);
	FAULT_LOOP
	{
		struct cordon_audit_report report;
		struct cordon_error *e = NULL;
		int fd = open(path, O_CREAT | O_WRONLY, 0600);
		ASSERT(fd >= 0 && write(fd, "{\"time", 6) == 6); /* torn */
		close(fd);
		int r = write_some(path, &e);
		ASSERT_FAULT(r);
		cordon_error_free(e);
		for (int i = 0; i < 5; i++) {
			snprintf(name, sizeof(name), i ? "%s.%d" : "%s", path, i);
			e = NULL;
			if (access(name, F_OK) < 0)
				continue;
			r = cordon_audit_verify(name, NULL, &report, &e);
			ASSERT(r == 0 || r == -CORDON_NOMEM || fault_was_hit());
			ASSERT(r < 0 || report.is_whole || fault_was_hit());
			cordon_error_free(e);
		}
		ASSERT_EQ(system(command), 0);
	}
	ASSERT_EQ(rmdir(dir), 0);
}

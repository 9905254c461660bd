/* unit/audit/audit_fixture.h - a log in a directory of its own, and functions to read it. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cordon/audit.h"
#include "harness/test.h"

static char dir[] = "/tmp/cordon-audit-XXXXXX";
static char path[64];

/* Every test works in a directory of its own, which goes with it. */
static inline void remove_dir(void)
{
	char command[100];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	(void)!system(command);
}

static inline void setup(void)
{
	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.jsonl", dir);
	atexit(remove_dir);
}

static inline struct audit *open_path(const char *p)
{
	struct audit *a = NULL;
	ASSERT_EQ(audit_open(&(struct audit_options){ .path = p }, &a, NULL), 0);
	return a;
}

static inline struct cordon_audit_report verify(const char *p, const char *prev)
{
	struct cordon_audit_report report;
	ASSERT_EQ(cordon_audit_verify(p, prev, &report, NULL), 0);
	return report;
}

static inline json_t *line_of(const char *p, int number)
{
	cleanup_buf struct buf b = { 0 };
	ASSERT_EQ(file_load(p, 1 << 24, &b, NULL), 0);
	char *at = b.data;
	for (; number > 1; number--)
		at = strchr(at, '\n') + 1;
	json_t *j = NULL;
	ASSERT_EQ(json_parse(at, (size_t)(strchr(at, '\n') - at), 0, &j, NULL), 0);
	return j;
}

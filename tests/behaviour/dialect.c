/* tests/behaviour/dialect.c - see dialect.h. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "harness/test.h"

const struct dialect dialects[DIALECTS] = {
	{ "python", "/usr/bin/python3", "x = 10", "x * 2", "20", "raise ValueError('user error')",
	  "user error", "while True: pass", "import time; time.sleep(60)", "if (True {",
	  "import sys, time\nprint('line1', flush=True)\ntime.sleep(0.6)\nprint('line2')",
	  "open('/tmp/f', 'w').write('kept')", "open('/tmp/f').read()",
	  "__import__('random').random()", "import sys; print(sys.stdin.read(), end='')",
	  "print(input())", "import os, time; os.close(0); time.sleep(0.3); print('on')" },
	{ "r", "/usr/lib/R/bin/exec/R", "x <- 10", "x * 2", "20.0", "stop('user error')",
	  "user error", "repeat {}", "Sys.sleep(60)", "if (TRUE {",
	  "cat('line1\\n'); flush(stdout()); Sys.sleep(0.6); cat('line2\\n')",
	  "writeLines('kept', '/tmp/f')", "readLines('/tmp/f')", "runif(1)",
	  "f <- file('stdin'); writeLines(readLines(f)); close(f)",
	  "f <- file('stdin', 'r'); writeLines(readLines(f, 1)); close(f)",
	  "Sys.sleep(0.3); cat('on\\n')" },
	{ "node", "/usr/bin/node", "var x = 10", "x * 2", "20", "throw new Error('user error')",
	  "user error", "while (true) {}", "await new Promise(r => setTimeout(r, 60000))",
	  "if (true {",
	  "console.log('line1'); await new Promise(r => setTimeout(r, 600)); console.log('line2')",
	  "require('fs').writeFileSync('/tmp/f', 'kept')",
	  "require('fs').readFileSync('/tmp/f', 'utf8')", "Math.random()",
	  "for await (const c of process.stdin) process.stdout.write(c)",
	  "let b = Buffer.alloc(1), t = ''; while (require('fs').readSync(0, b) && b != '\\n') t "
	  "+= b; "
	  "console.log(t)",
	  "require('fs').closeSync(0); await new Promise(r => setTimeout(r, 300)); "
	  "console.log('on')" },
	{ "sh", "/bin/bash", "x=10", "echo $((x * 2))", NULL, "echo user error >&2; false", NULL,
	  "while true; do :; done", "sleep 60", "if true; then",
	  "echo line1; sleep 0.6; echo line2", "echo kept > /tmp/f", "cat /tmp/f", "echo $RANDOM",
	  "cat", "read -r line; echo \"$line\"", "exec 0<&-; sleep 0.3; echo on" },
};

bool dialect_is_here(const struct dialect *d)
{
	const char *mode = getenv("CORDON_NEEDS");

	if (access(d->program, X_OK) == 0)
		return true;
	if (mode && strcmp(mode, "strict") == 0)
		test_fail("needs", 0, "%s is missing, and CORDON_NEEDS=strict", d->program);
	fprintf(stderr, "# skipped: %s, there is no %s\n", d->guest, d->program);
	return false;
}

struct cordon_policy *new_policy(const char *set)
{
	struct cordon_policy *p = NULL;

	ASSERT_EQ(cordon_policy_new(NULL, &p, NULL), 0);
	if (set)
		ASSERT_EQ(cordon_policy_set(p, set, NULL), 0);
	return p;
}

struct cordon_session *open_with(const char *guest, const char *set)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_policy *p = new_policy(set);
	struct cordon_session *s = NULL;

	if (cordon_session_open(&(struct cordon_session_options){ .guest = guest, .policy = p }, &s,
				&e))
		test_fail(__FILE__, __LINE__, "%s: %s", guest, cordon_error_message(e));
	cordon_policy_free(p);
	return s;
}

struct cordon_result *run_for(struct cordon_session *s, const char *code, uint64_t timeout_ms)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;
	struct cordon_execute_options o = { .code = code, .timeout_ms = timeout_ms };

	if (cordon_session_execute(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_error_message(e));
	return r;
}

struct cordon_result *run(struct cordon_session *s, const char *code)
{
	return run_for(s, code, 0);
}

void must(struct cordon_session *s, const char *code)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_result_error(r));
	cordon_result_free(r);
}

struct cordon_session *open_languages(const char *guest, const char *const *languages,
				      struct cordon_policy *p)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session_options o = { .guest = guest, .languages = languages, .policy = p };
	struct cordon_session *s = NULL;
	int r = cordon_session_open(&o, &s, &e);

	cordon_policy_free(p);
	if (r == -CORDON_UNSUPPORTED)
		needs(false, cordon_error_message(e));
	if (r < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return s;
}

pid_t first_process(struct cordon_session *s)
{
	cleanup_free char *text = cordon_session_describe(s);
	cleanup_json json_t *o = NULL;
	char path[64], line[256];
	pid_t parent = 0;

	ASSERT_EQ(json_parse(text, strlen(text), 0, &o, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/status",
		 (int)json_integer_value(json_object_get(o, "pid")));
	FILE *f = fopen(path, "re");
	ASSERT(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "PPid:", 5) == 0)
			parent = (pid_t)strtol(line + 5, NULL, 10);
	fclose(f);
	ASSERT(parent > 1);
	return parent;
}

void value_is(struct cordon_session *s, const char *code, const char *value)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s", code, cordon_result_json(r));
	ASSERT_STREQ(cordon_result_value_json(r), value);
	cordon_result_free(r);
}

void must_be(struct cordon_session *s, const struct dialect *d, const char *code, const char *value)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r))
		test_fail(__FILE__, __LINE__, "%s: %s: %s", d->guest, code, cordon_result_error(r));
	if (value)
		ASSERT_STREQ(cordon_result_value_json(r), value);
	cordon_result_free(r);
}

void must_fail(struct cordon_session *s, const char *code, uint64_t timeout_ms, const char *kind,
	       const char *text)
{
	struct cordon_result *r = run_for(s, code, timeout_ms);

	ASSERT(!cordon_result_success(r));
	ASSERT_STREQ(cordon_result_error_kind(r), kind);
	if (text && !strstr(cordon_result_error(r), text))
		test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", text, cordon_result_error(r));
	cordon_result_free(r);
}

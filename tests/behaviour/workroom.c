/* tests/behaviour/workroom.c - see workroom.h. */
#include "workroom.h"

#include <stdarg.h>

#include "harness/test.h"

struct cordon_session *open_with(const char *guest, const char *const *settings,
				 const char *workspace)
{
	struct cordon_error *e = NULL;
	struct cordon_policy *p = NULL;
	struct cordon_session *s = NULL;

	ASSERT_EQ(cordon_policy_new("standard", &p, NULL), 0);
	for (; settings && *settings; settings++)
		ASSERT_EQ(cordon_policy_set(p, *settings, NULL), 0);
	struct cordon_session_options o = { .guest = guest, .policy = p, .workspace = workspace };
	if (cordon_session_open(&o, &s, &e) < 0) {
		needs(cordon_error_code(e) != CORDON_UNSUPPORTED &&
			      cordon_error_code(e) != CORDON_NOT_FOUND,
		      cordon_error_message(e));
		test_fail(__FILE__, __LINE__, "%s: open: %s", guest, cordon_error_message(e));
	}
	cordon_policy_free(p);
	return s;
}

const char *run(struct cordon_session *s, const char *code)
{
	static char text[65536];
	struct cordon_error *e = NULL;
	struct cordon_result *r = NULL;
	struct cordon_execute_options o = { .code = code };

	if (cordon_session_execute(s, &o, &r, &e) < 0)
		test_fail(__FILE__, __LINE__, "execute: %s", cordon_error_message(e));
	size_t len;
	const char *out = cordon_result_stdout(r, &len);
	snprintf(text, sizeof(text), "%s%.*s%s", cordon_result_success(r) ? "" : "!", (int)len,
		 out ? out : "", cordon_result_error(r) ? cordon_result_error(r) : "");
	cordon_result_free(r);
	return text;
}

const char *runf(struct cordon_session *s, const char *format, ...)
{
	char code[4096];
	va_list ap;

	va_start(ap, format);
	vsnprintf(code, sizeof(code), format, ap);
	va_end(ap);
	return run(s, code);
}

void put(struct cordon_session *s, const char *path, const char *text)
{
	struct cordon_error *e = NULL;

	if (cordon_file_write(s, path, text, strlen(text), &e) < 0)
		test_fail(__FILE__, __LINE__, "write %s: %s", path, cordon_error_message(e));
}

const char *get(struct cordon_session *s, const char *path)
{
	static char *text;
	struct cordon_error *e = NULL;
	size_t len;

	free(text);
	text = NULL;
	if (cordon_file_read(s, path, &text, &len, &e) < 0) {
		text = malloc(512);
		snprintf(text, 512, "!%s", cordon_error_message(e));
		cordon_error_free(e);
	}
	return text;
}

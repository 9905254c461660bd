/* fuzz/rvalue.c - what a client of R makes of a guest's value, in an R of its own. No message makes
 * the decoder fail, and what it built is written as text that gives the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/cordon_r.h"

/* After R's own types. */
#define CSTACK_DEFNS
#include <Rembedded.h>
#include <Rinterface.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* R frees nothing at its end. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void start(void)
{
	static char name[] = "R", vanilla[] = "--vanilla", quiet[] = "--no-echo";
	static char *argv[] = { name, vanilla, quiet };
	static bool is_started;
	if (is_started)
		return;
	is_started = true;
#ifdef FUZZ_R_HOME /* otherwise the environment says it */
	setenv("R_HOME", FUZZ_R_HOME, 0);
#endif
	setenv("R_DEFAULT_PACKAGES", "methods,stats", 1);
	R_SignalHandlers = 0;
	check(Rf_initEmbeddedR(3, argv) >= 0);
	R_CStackLimit = (uintptr_t)-1;
	decode_is_guarded = true;
}

static SEXP whole(void *message)
{
	decode_begin(false);
	return decode_value(*(struct json *)message);
}

static SEXP plain(SEXP condition, void *message)
{
	(void)condition;
	decode_begin(true);
	return decode_value(*(struct json *)message);
}

static bool write_value(struct bytes *b, SEXP v)
{
	b->len = 0;
	return !encode_value(b, v, Rf_install("deparse"), 1 << 24);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bytes one, two, text;
	start();
	text.len = 0;
	bytes_add(&text, data, size);
	bytes_char(&text, 0);
	struct json m = { text.data, size };
	if (!json_check(m.at, m.len))
		return 0;
	SEXP v = PROTECT(R_tryCatchError(whole, &m, plain, &m));
	if (write_value(&one, v)) {
		struct json again = { one.data, one.len };
		check(json_check(again.at, again.len));
		SEXP w = PROTECT(R_tryCatchError(whole, &again, plain, &again));
		check(write_value(&two, w) && two.len == one.len &&
		      memcmp(one.data, two.data, one.len) == 0);
		UNPROTECT(1);
	}
	UNPROTECT(1);
	return 0;
}

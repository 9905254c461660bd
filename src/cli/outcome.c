/* cli/outcome.c - see outcome.h. */
#include "cli/outcome.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

void outcome_print_failure(const struct cli *c, struct cordon_result *r)
{
	const char *trace = cordon_result_traceback(r), *kind = cordon_result_error_kind(r);
	bool has_trace = trace && trace[0];

	if (has_trace)
		fprintf(stderr, "%s%s", trace, str_ends(trace, "\n") ? "" : "\n");
	/* The trace then says where the code was, not why it ended. */
	if (!has_trace || str_eq(kind, "timeout"))
		cli_error(c, "%s: %s", kind, cordon_result_error(r));
}

/* "denied: WHAT; to allow it: REMEDY": what was denied in red, what helps in green. */
static void print_denial(const struct cli *c, const char *line, size_t len)
{
	static const char start[] = "denied:", middle[] = "; to allow it: ";
	const char *plain = cli_style_on(c, stderr, STYLE_PLAIN), *remedy = NULL;
	const size_t m = sizeof(middle) - 1, s = sizeof(start) - 1;

	/* The last one: a name that the code chose could contain the same words. */
	for (size_t i = s; i + m <= len; i++)
		if (!memcmp(line + i, middle, m))
			remedy = line + i + m;
	if (len < s || memcmp(line, start, s) != 0 || !remedy) {
		fprintf(stderr, "%.*s\n", (int)len, line);
		return;
	}
	bool helps = !str_starts(remedy, "none");
	fprintf(stderr, "%s%s%s%.*s%s%.*s%s\n", cli_style_on(c, stderr, STYLE_RED), start, plain,
		(int)(remedy - line - (ptrdiff_t)s), line + s,
		cli_style_on(c, stderr, helps ? STYLE_GREEN : STYLE_DIM),
		(int)(len - (size_t)(remedy - line)), remedy, plain);
}

void outcome_print_denials(const struct cli *c, const struct cordon_result *r)
{
	cleanup_free char *text = cordon_result_denials_text(r);

	for (const char *line = text; line && *line;) {
		size_t len = strcspn(line, "\n");
		print_denial(c, line, len);
		line += len + (line[len] == '\n');
	}
}

void outcome_print_warnings(const struct cli *c, const struct cordon_result *r)
{
	cleanup_free char *text = cordon_result_warnings_text(r);

	if (text && text[0])
		fprintf(stderr, "%s%s%s", cli_style_on(c, stderr, STYLE_YELLOW), text,
			cli_style_on(c, stderr, STYLE_PLAIN));
}

/* Reported even if the code succeeded: a caller that checks only the status must not take partial
 * output for all of it. */
int outcome_print_cuts(const struct cli *c, const struct cordon_result *r)
{
	bool is_cut = cordon_result_truncated(r, 1) || cordon_result_truncated(r, 2);

	if (cordon_result_truncated(r, 1))
		cli_error(c,
			  "standard output was cut at the policy's stdout_bytes or output_lines");
	if (cordon_result_truncated(r, 2))
		cli_error(c, "standard error was cut at the policy's stderr_bytes or output_lines");
	return is_cut ? cordon_code_exit_status(CORDON_LIMIT) : 0;
}

int outcome_print_losses(const struct cli *c, const struct cordon_result *r)
{
	cleanup_free char *text = cordon_result_losses_text(r);

	if (!text || !text[0])
		return 0;
	fprintf(stderr, "%s%s%s", cli_style_on(c, stderr, STYLE_YELLOW), text,
		cli_style_on(c, stderr, STYLE_PLAIN));
	return cordon_code_exit_status(CORDON_OS);
}

/* tests/behaviour/streams.c - what code does to descriptors 0, 1 and 2 and to the language's
 * streams ends with its execution, in every guest, in the sandbox. */
#include "dialect.h"

#include <string.h>

#include "harness/test.h"

enum { BREAKS = 3 };

static const struct {
	const char *breaks[BREAKS]; /* lose stdout and stderr, each in another way */
	const char *prints;         /* out on stdout, err on stderr */
	const char *ends;           /* also loses what a session is mended from */
} table[DIALECTS] = {
	{ { "import os; os.close(0); os.close(1); os.close(2)",
	    "import os; f = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.dup2(f, 1); os.dup2(f, "
	    "2)",
	    "import sys; sys.stdout.close(); sys.stderr = None; raise ValueError('lost')" },
	  "import sys; print('out'); print('err', file=sys.stderr); print(end=sys.stdin.read())",
	  "import os; os.closerange(4, 256); os.close(1)" },
	{ { "invisible(parallel:::closeFD(0:2))",
	    "sink('/tmp/f'); sink(stdout(), type = 'message')", "sink('/tmp/f'); stop('lost')" },
	  "cat('out\\n'); message('err'); invisible(readLines(file('stdin')))",
	  "invisible(parallel:::closeFD(c(1, 4:255)))" },
	{ { "for (const i of [0, 1, 2]) require('fs').closeSync(i)",
	    "require('fs').closeSync(1); require('fs').openSync('/tmp/f', 'w'); "
	    "require('fs').closeSync(2)",
	    "process.stdout.end(); process.stderr.write = () => true; throw new Error('lost')" },
	  "console.log('out'); console.error('err'); require('fs').readFileSync(0)",
	  "for (let i = 250; i < 256; i++) try { require('fs').closeSync(i) } catch {}; "
	  "require('fs').closeSync(1)" },
	{ { "exec 0<&- 1>&- 2>&-", "exec > /tmp/f 2>&1 < /dev/zero", "exec 1>&- 2>&-; exit 3" },
	  "echo out; echo err >&2; cat",
	  "exec 252>&- 253>&- 254>&-; exec 1>&-" },
};

static void must_print(struct cordon_session *s, const char *after, const char *code)
{
	struct cordon_result *r = run(s, code);

	if (!cordon_result_success(r) || strcmp(cordon_result_stdout(r, NULL), "out\n") != 0 ||
	    strcmp(cordon_result_stderr(r, NULL), "err\n") != 0)
		test_fail(__FILE__, __LINE__, "after %s: '%s', '%s' (%s)", after,
			  cordon_result_stdout(r, NULL), cordon_result_stderr(r, NULL),
			  cordon_result_error(r));
	cordon_result_free(r);
}

TEST(what_code_does_to_its_streams_ends_with_it)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);
		size_t n = (size_t)(d - dialects);

		must(s, d->set_x);
		for (int i = 0; i < BREAKS; i++) {
			cordon_result_free(run(s, table[n].breaks[i]));
			must_print(s, table[n].breaks[i], table[n].prints);
			must_print(s, table[n].breaks[i], table[n].prints);
		}
		must_be(s, d, d->get_x, d->x_value); /* the state is as it was */
		cordon_session_close(s);
	}
}

/* What cannot be mended is replaced. */
TEST(a_session_that_lost_its_streams_for_good_is_replaced)
{
	EACH_DIALECT(d)
	{
		struct cordon_session *s = open_with(d->guest, NULL);
		size_t n = (size_t)(d - dialects);

		cordon_result_free(run(s, table[n].ends));
		must_print(s, table[n].ends, table[n].prints);
		cordon_session_close(s);
	}
}

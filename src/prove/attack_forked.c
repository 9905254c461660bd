/* prove/attack_forked.c - see attack_forked.h. */
#include "prove/attack_forked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cordon/command.h"
#include "cordon/files.h"
#include "cordon/session.h"
#include "policy/public.h"
#include "prove/attack_python.h"
#include "session/leftovers.h"
#include "session/place.h"
#include "session/session.h"
#include "wall/wall.h"

#define PROGRAM "/workspace/probe"

/* Says what judge() of attack_python.c understands, from the program's exit status (attack_table.h)
 * or the signal that ended it. */
static const char starter[] =
	"import errno, os, signal, subprocess\n"
	"os.chmod('" PROGRAM "', 0o755)\n"
	"p = subprocess.run(['" PROGRAM "', attack, *bait_words], stdin=subprocess.DEVNULL,\n"
	"                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, "
	"start_new_session=True)\n"
	"said = p.stdout.split()[:1]\n"
	"number = int(said[0]) if said and said[0].isdigit() else 0\n"
	"stops = (signal.SIGSYS, signal.SIGKILL, signal.SIGXCPU, signal.SIGXFSZ)\n"
	"('worked' if p.returncode == 0 else 'not here' if p.returncode == 77 else\n"
	" 'refused ' + errno.errorcode.get(number, 'refused') if p.returncode == 1 else\n"
	" 'refused killed by ' + signal.Signals(-p.returncode).name if -p.returncode in stops "
	"else\n"
	" 'ended with status %d' % p.returncode)\n";

static int open_session(const struct trial_options *o, struct cordon_session **ret,
			struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	static const char *const languages[] = { "python", "sh", NULL };
	struct cordon_policy policy = { 0 };
	struct cordon_session_options options = { .guest = "python",
						  .policy = &policy,
						  .languages = o->joins ? languages : NULL };

	int r = policy_copy(&policy.p, o->policy, reterr);
	if (r < 0)
		return r;
	r = cordon_session_open(&options, ret, reterr);
	policy_done(&policy.p);
	if (r == 0 &&
	    !(o->joins ? place_is_forked((*ret)->place) : (*ret)->engine->template != NULL))
		r = err_set(reterr, CORDON_STATE, "no template served the session");
	if (r == 0 && !o->attack->is_python)
		r = cordon_file_write(*ret, PROGRAM, wall.program, wall.program_len, reterr);
	return r;
}

static int native_code(const struct trial_options *o, struct buf *code, char **ret_context,
		       struct cordon_error **reterr)
{
	cleanup_json json_t *context = json_object(), *words = json_array();

	for (size_t i = 0; i < o->bait->args.count; i++)
		json_array_append_new(words, json_string(o->bait->args.items[i]));
	json_object_set(context, "bait_words", words);
	json_object_set_new(context, "attack", json_string(o->attack->name));
	cleanup_free char *text = json_text(context, NULL);
	buf_init(code, sizeof(starter) + 1);
	if (!text || buf_add_str(code, starter) < 0)
		return err_errno(reterr, ENOMEM, "the code of an attack");
	*ret_context = TAKE_PTR(text);
	return 0;
}

static int execute(struct cordon_session *s, const struct trial_options *o, struct trial *t,
		   struct cordon_error **reterr)
{
	cleanup_buf struct buf code = { 0 };
	cleanup_free char *context = NULL;
	struct cordon_result *result = NULL;
	int r = o->attack->is_python ? attack_python_code(o, "attack_", &code, &context, reterr)
				     : native_code(o, &code, &context, reterr);

	if (r < 0)
		return r;
	struct cordon_execute_options options = { .code = buf_text(&code),
						  .code_len = code.len,
						  .context_json = context };
	r = cordon_session_execute(s, &options, &result, reterr);
	if (r < 0)
		return r;
	attack_python_judge(result, t);
	cordon_result_free(result);
	return 0;
}

static int add_word(struct buf *line, const char *word, struct cordon_error **reterr)
{
	if (strchr(word, '\''))
		return err_set(reterr, CORDON_INVALID, "a word of an attack has a quote");
	return buf_printf(line, " '%s'", word) < 0 ? err_errno(reterr, ENOMEM, "an attack") : 0;
}

/* The exit status of attack_table.h; a shell says 128 and more for a signal. */
static void judge_command(const struct cordon_result *r, struct trial *t)
{
	int code = cordon_result_exit_status(r);
	size_t len;
	const char *out = cordon_result_stdout(r, &len);
	const char *name = strerrorname_np((int)strtol(out, NULL, 10));

	if (code == PROBE_WORKED && cordon_result_success(r)) {
		t->outcome = TRIAL_OPEN;
		strcpy(t->said, "worked");
	} else if (code == PROBE_NOT_HERE) {
		t->outcome = TRIAL_NOT_HERE;
		strcpy(t->said, "not here");
	} else if (code == PROBE_REFUSED) {
		t->outcome = TRIAL_HELD;
		snprintf(t->said, sizeof(t->said), "%s", name ? name : "refused");
	} else if (code == 128 + SIGSYS || code == 128 + SIGKILL || code == 128 + SIGXCPU ||
		   code == 128 + SIGXFSZ) {
		t->outcome = TRIAL_HELD;
		snprintf(t->said, sizeof(t->said), "killed by SIG%s", sigabbrev_np(code - 128));
	} else {
		snprintf(t->said, sizeof(t->said), "ended with status %d", code);
	}
}

static int command(struct cordon_session *s, const struct trial_options *o, struct trial *t,
		   struct cordon_error **reterr)
{
	cleanup_buf struct buf line = { 0 };
	struct cordon_result *result = NULL;
	int r;

	buf_init(&line, 1 << 16);
	if (buf_add_str(&line, "chmod 755 " PROGRAM " && exec " PROGRAM) < 0)
		return err_errno(reterr, ENOMEM, "an attack");
	r = add_word(&line, o->attack->name, reterr);
	for (size_t i = 0; r == 0 && i < o->bait->args.count; i++)
		r = add_word(&line, o->bait->args.items[i], reterr);
	if (r < 0)
		return r;
	struct cordon_command_options options = { .command = buf_text(&line) };
	r = cordon_session_command(s, &options, &result, reterr);
	if (r < 0)
		return r;
	judge_command(result, t);
	if (t->outcome == TRIAL_BROKEN && !cordon_result_success(result)) {
		char said[sizeof(t->said)];

		memcpy(said, t->said, sizeof(said));
		attack_python_judge(result, t); /* a limit of the sandbox ended it */
		if (t->outcome == TRIAL_BROKEN)
			memcpy(t->said, said, sizeof(said));
	}
	cordon_result_free(result);
	return 0;
}

int attack_forked_inside(const struct trial_options *o, struct trial *ret,
			 struct cordon_error **reterr)
{
	struct cordon_session *s = NULL;
	struct trial t = { .outcome = TRIAL_BROKEN };
	int r = open_session(o, &s, reterr);

	if (r == 0)
		r = o->joins ? command(s, o, &t, reterr) : execute(s, o, &t, reterr);
	cordon_session_close(s);
	if (r < 0)
		return r;
	if (o->attack->flags & PROBE_SURVIVOR) {
		bool is_found = leftovers_end(o->bait->marker) > 0;

		t.outcome = is_found ? TRIAL_OPEN : TRIAL_HELD;
		(void)str_copy(t.said, sizeof(t.said), is_found ? "worked" : "nothing left of it");
	}
	*ret = t;
	return 0;
}

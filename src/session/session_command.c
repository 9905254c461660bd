/* session/session_command.c - see session_command.h. */
#include "session/session_command.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "session/context.h"
#include "session/persist.h"
#include "session/place.h"
#include "session/renewal.h"
#include "session/session_execute.h"
#include "session/startup.h"

/* The kernel takes at most 128 KiB as one argument. A longer command goes to an agent. */
enum { ARGUMENT_MAX = 100 << 10 };

/* Where relative paths begin, as those of files do. */
#define HOME "/home/user/"

static int set_directory(struct cordon_session *c, const char *directory,
			 struct cordon_error **reterr)
{
	if (!directory)
		return 0;
	if (strlen(directory) >= PATH_MAX - sizeof(HOME))
		return err_set(reterr, CORDON_INVALID, "the directory of a command is too long");
	free(c->directory);
	c->directory = str_printf("%s%s", directory[0] == '/' ? "" : HOME, directory);
	return c->directory ? 0 : err_errno(reterr, ENOMEM, "run a command");
}

/* Zero: the size that programs expect if they cannot find out. */
enum { ROWS = 24, COLUMNS = 80 };

static int set_terminal(struct cordon_session *c, const struct cordon_command_options *o,
			struct cordon_error **reterr)
{
	if (!o->pty)
		return 0;
	if (!c->policy.pty)
		return err_set(reterr, CORDON_DENIED,
			       "the policy allows no terminals; to allow them: pty=true");
	/* Such a command has no agent, which would wait for the log. */
	if (c->policy.audit_required)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "a command on a terminal begins before the audit log has it, and "
			       "the policy forbids that (audit_required)");
	if (strlen(o->command) > ARGUMENT_MAX)
		return err_set(reterr, CORDON_INVALID,
			       "a command on a terminal may have %d bytes of text", ARGUMENT_MAX);
	c->has_terminal = true;
	c->terminal = (struct engine_terminal){
		.rows = o->pty_rows ? o->pty_rows : ROWS,
		.columns = o->pty_columns ? o->pty_columns : COLUMNS,
	};
	return 0;
}

int session_command_context(struct cordon_session *s, const struct cordon_command_options *o,
			    struct cordon_session **ret, struct cordon_error **reterr)
{
	struct cordon_session *root = session_root(s), *c = NULL;

	if (!o || !o->command)
		return err_set(reterr, CORDON_INVALID, "there is no command to run");
	int r = place_check_language(root, GUEST_KIND_SH, reterr);
	if (r == 0)
		r = context_new(root, GUEST_KIND_SH, "", &c, reterr);
	if (r < 0 || !c)
		return r;
	r = set_directory(c, o->directory, reterr);
	if (r == 0)
		r = session_add_env(c, o->env, reterr);
	if (r == 0)
		r = set_terminal(c, o, reterr);
	if (r < 0) {
		context_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

static int start_and_run(struct cordon_session *c, const struct cordon_execute_options *x,
			 struct cordon_result **ret, struct cordon_error **reterr)
{
	bool is_plain =
		c->has_terminal || (!session_needs_agent(c, x) && strlen(x->code) <= ARGUMENT_MAX &&
				    !tool_calls_argument_max(c->calls));
	cleanup_free char *lost = NULL;
	bool alive;
	int r = startup_join(c, is_plain ? x->code : NULL, &lost, reterr);

	if (r == 0)
		r = session_run_recorded(c, x, ret, &alive, reterr);
	if (r == 0) {
		renewal_tell(*ret, lost);
		persist_warn(c->owner->persist, *ret);
	}
	return r;
}

int session_command_run(struct cordon_session *c, const struct cordon_command_options *o,
			int stdin_fd, struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_execute_options x = { .code = o->command,
					    .stdin_bytes = stdin_fd > 0 ? NULL : o->stdin_bytes,
					    .stdin_len = o->stdin_len,
					    .stdin_fd = stdin_fd,
					    .timeout_ms = o->timeout_ms,
					    .output = o->output,
					    .output_arg = o->output_arg,
					    .discard_output = o->discard_output };
	int r = session_hold(c, "the session is busy with all its contexts; try again later.",
			     reterr);

	if (r < 0)
		return r;
	r = session_refuse(c, &x, reterr);
	if (r == 0)
		r = session_count_begin(c, reterr);
	if (r == 0) {
		r = start_and_run(c, &x, ret, reterr);
		session_count_end(c, r == 0);
	}
	persist_touch(c->owner->persist);
	session_let_go(c);
	return r;
}

int cordon_session_command(struct cordon_session *s, const struct cordon_command_options *o,
			   struct cordon_result **ret, struct cordon_error **reterr)
{
	struct cordon_session *c = NULL;
	int r = session_command_context(s, o, &c, reterr);

	if (r < 0 || !c)
		return r;
	r = session_command_run(c, o, -1, ret, reterr);
	context_close(c);
	return r;
}

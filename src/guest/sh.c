/* guest/sh.c - bash: with an agent for a session, alone for a script. */
#include <errno.h>

#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

/* All commands: all of /usr with its programs. A list: those programs and the shell. */
static int commands(const struct guest_options *o, struct launch *l, const char *shell,
		    struct cordon_error **reterr)
{
	const struct policy_list *list = &o->policy->commands;

	if (policy_shells_run_all(o->policy))
		return view_all(l) < 0 ? err_errno(reterr, ENOMEM, "the view")
				       : view_program(l, shell, reterr);
	/* Commands that are not listed do not exist. This handler makes the shell say why, and
	 * tells its agent. */
	static const char handler[] = "() { builtin printf '%s: not allowed: it is not among the "
				      "commands of the policy\\n' "
				      "\"$1\" >&2; { builtin printf '\\0N%s\\0' \"$1\" "
				      ">&\"$CORDON_TOLD_FD\"; } 2>/dev/null; "
				      "return 126; }";
	if (launch_env(l, "BASH_FUNC_command_not_found_handle%%", handler) < 0)
		return err_errno(reterr, ENOMEM, "the environment");
	int r = view_program(l, shell, reterr);
	if (r == 0)
		r = view_commands(l, list, reterr);
	if (r == 0 &&
	    (view_libraries(l) < 0 || view_data(l) < 0 || launch_link(l, shell, "/usr/bin/sh") < 0))
		r = err_errno(reterr, ENOMEM, "the view");
	return r;
}

static int script(const struct guest_options *o, struct launch *l, const char *shell)
{
	const char *const file[] = { "bash", "/run/cordon/code", NULL };
	const char *const text[] = { "bash", "-c", o->code, "bash", NULL };
	bool is_file = o->mode == GUEST_SCRIPT;

	if (is_file && launch_file(l, "/run/cordon/code", o->code, o->code_len, 0444) < 0)
		return -CORDON_NOMEM;
	if (language_command(l, shell, is_file ? file : text) < 0)
		return -CORDON_NOMEM;
	for (const char *const *a = o->args; a && *a; a++)
		if (strlist_add(&l->argv, *a) < 0)
			return -CORDON_NOMEM;
	return 0;
}

/* Makes host tools programs: links to the agent, which knows the tool by its name. They can do no
 * more than a call on the wire. Tools that the policy does not allow are there too: the host
 * refuses their calls and records them in the audit log. */
static int tools(const struct guest_options *o, struct launch *l)
{
	int r = 0;

	if (!o->tools || o->tools->count == 0 || o->mode != GUEST_SESSION)
		return 0;
	for (size_t i = 0; r == 0 && i < o->tools->count; i++) {
		cleanup_free char *path = str_printf("/run/cordon/bin/%s", o->tools->items[i]);
		r = path ? launch_link(l, "../cordon-sh", path) : -CORDON_NOMEM;
	}
	return r < 0 ? r : launch_env(l, "PATH", "/run/cordon/bin:/usr/local/bin:/usr/bin:/bin");
}

int sh_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	static const char *const session[] = { "cordon-sh", NULL };
	static const char *const validate[] = { "cordon-sh", "--validate", NULL };
	const char *shell = o->policy->shell ? o->policy->shell : "/usr/bin/bash";

	l->filter = LAUNCH_SH;
	int r = commands(o, l, shell, reterr);
	if (r < 0)
		return r;
	if (o->mode == GUEST_SCRIPT || o->mode == GUEST_COMMAND)
		return script(o, l, shell) < 0 ? err_errno(reterr, ENOMEM, "the launch of bash")
					       : 0;
	if (runtime_add(l, "sh") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no shell agent");
	if (launch_exec(l, "/run/cordon/cordon-sh") < 0 || tools(o, l) < 0 ||
	    language_command(l, "/run/cordon/cordon-sh",
			     o->mode == GUEST_VALIDATE ? validate : session) < 0)
		return err_errno(reterr, ENOMEM, "the launch of bash");
	return 0;
}

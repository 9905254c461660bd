/* cli/run_session.c - see run_session.h. */
#include "cli/run_session.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/approver.h"
#include "cli/base_option.h"
#include "cli/port_option.h"
#include "cli/project.h"
#include "cli/transfer.h"

bool run_session_asks(const struct cordon_policy *p)
{
	cleanup_free char *text = cordon_policy_json(p);
	cleanup_json json_t *j = NULL;

	return text && json_parse(text, strlen(text), 0, &j, NULL) == 0 &&
	       json_is_true(json_object_get(json_object_get(j, "network"), "ask"));
}

bool run_session_is_needed(const struct cli *c, const struct cordon_policy *policy)
{
	return ((cli_has(c, "policy") || cli_has(c, "profile") || cli_has(c, "set")) &&
		run_session_asks(policy)) ||
	       cli_has(c, "project") || cli_has(c, "file") || cli_has(c, "out") ||
	       cli_has(c, "tools") || cli_has(c, "workspace") || cli_has(c, "validate") ||
	       cli_has(c, "expose") || cli_has(c, "with");
}

/* A workspace that could not be saved is reported in addition to other errors. */
static int end_session(const struct cli *c, struct cordon_session *s, int r,
		       struct cordon_error **reterr)
{
	cleanup_error struct cordon_error *e = NULL;
	int ended = cordon_session_end(s, &e);

	if (ended == 0)
		return r;
	cleanup_free char *text = err_text(e);
	if (r < 0) {
		cli_error(c, "%s", text ? text : cordon_error_message(e));
		return r;
	}
	return err_set(reterr, CORDON_OS, "%s", text ? text : cordon_error_message(e));
}

const char *run_session_target(const struct cli *c)
{
	const char *target = cli_value(c, "output");

	for (size_t i = 0; !target && cli_value_at(c, "out", i); i++)
		if (!strchr(cli_value_at(c, "out", i), ':'))
			target = cli_value_at(c, "out", i);
	return target;
}

/* A notebook is written also if a cell failed: its error is among the outputs. */
static int run_notebook(const struct cli *c, struct cordon_session *s, struct run_work *w,
			struct cordon_error **reterr)
{
	const char *output = run_session_target(c);
	int r = notebook_run(c, w->notebook, s, &w->status, reterr);

	if (r == 0 && !output)
		notebook_tell_unshown(w->notebook, c);
	return r == 0 && output ? notebook_save(w->notebook, output, reterr) : r;
}

static int do_work(const struct cli *c, struct cordon_session *s, struct run_work *w,
		   struct cordon_error **reterr)
{
	if (w->notebook)
		return run_notebook(c, s, w, reterr);
	if (w->interactive)
		return interactive_run(s, w->interactive, &w->result, &w->signal, reterr);
	if (w->waiting)
		progress_spin(w->waiting, "running");
	int r = cordon_session_execute(s, w->options, &w->result, reterr);
	if (w->waiting)
		progress_end(w->waiting);
	return r;
}

int run_session_work(const struct cli *c, const struct cordon_session_options *base,
		     struct run_work *w, struct cordon_error **reterr)
{
	struct approver approver = { 0 };
	struct cordon_session_options with = *base;
	struct cordon_session *s = NULL;

	if (!approval_mode(cli_value(c, "approve"), &approver))
		return err_set(reterr, CORDON_INVALID, "--approve takes ask, allow or deny");
	with.approval = approval_decide;
	with.approval_arg = &approver;
	with.cold = true;
	cleanup_strlist struct strlist packages = { 0 };
	int r = base_packages(c, &packages, &with.packages, reterr);
	if (r == 0)
		r = cordon_session_open(&with, &s, reterr);
	if (r < 0)
		return r;
	approver.session = s;
	struct cordon_project *project = NULL;
	if (cli_value(c, "project"))
		r = cordon_project_open(s, cli_value(c, "project"), &project, reterr);
	if (r == 0)
		r = transfer_in(c, s, reterr);
	if (r == 0)
		r = port_option_open(c, s, reterr);
	if (r == 0)
		r = do_work(c, s, w, reterr);
	if (r == 0)
		r = transfer_out(c, s, w->notebook, reterr);
	if (r == 0 && project)
		r = project_review(c, project, reterr);
	cordon_project_close(project);
	return end_session(c, s, r, reterr);
}

int run_session_tools(const struct cli *c, struct cordon_tools **ret, struct cordon_error **reterr)
{
	const char *path = cli_value(c, "tools");

	if (!path)
		return 0;
	int r = cordon_tools_new(ret, reterr);
	return r < 0 ? r : cordon_tools_add_file(*ret, path, reterr);
}

/* prove/attack_python.c - see attack_python.h. */
#include "prove/attack_python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "cordon/session.h"
#include "policy/public.h"
#include "session/leftovers.h"
#include "wall/wall.h"

/* Parses "worked", "not here" or "refused WHY". */
void attack_python_said(const char *said, struct trial *t)
{
	if (str_eq(said, "worked"))
		t->outcome = TRIAL_OPEN;
	else if (str_eq(said, "not here"))
		t->outcome = TRIAL_NOT_HERE;
	else
		t->outcome = str_starts(said, "refused ") ? TRIAL_HELD : TRIAL_BROKEN;
	if (str_starts(said, "refused "))
		said += 8;
	snprintf(t->said, sizeof(t->said), "%s", said);
}

static void judge_remains(const struct trial_options *o, struct trial *t)
{
	if (!(o->attack->flags & PROBE_SURVIVOR))
		return;
	bool is_found = leftovers_end(o->bait->marker) > 0;
	t->outcome = is_found ? TRIAL_OPEN : TRIAL_HELD;
	(void)str_copy(t->said, sizeof(t->said), is_found ? "worked" : "nothing left of it");
}

/* If the code gave no answer itself, the supervisor's evidence decides. */
void attack_python_judge(struct cordon_result *r, struct trial *t)
{
	const char *kind = cordon_result_error_kind(r);
	cleanup_json json_t *value = NULL;

	if (!cordon_result_success(r)) {
		bool is_stopped = str_eq(kind, "memory") || str_eq(kind, "cpu") ||
				  str_eq(kind, "denied") || str_eq(kind, "processes");
		t->outcome = is_stopped ? TRIAL_HELD : TRIAL_BROKEN;
		snprintf(t->said, sizeof(t->said), "%s",
			 is_stopped ? kind : cordon_result_error(r));
		return;
	}
	const char *text = cordon_result_value_json(r);
	if (json_parse(text, strlen(text), 0, &value, NULL) == 0 && json_is_string(value))
		attack_python_said(json_string_value(value), t);
}

json_t *attack_python_words(const struct bait *b)
{
	json_t *a = json_array();

	for (size_t i = 0; i < b->args.count; i++)
		json_array_append_new(a, json_string(b->args.items[i]));
	return a;
}

int attack_python_code(const struct trial_options *o, const char *role, struct buf *code,
		       char **ret_context, struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	cleanup_json json_t *context = json_object();

	json_object_set_new(context, "bait_words", attack_python_words(o->bait));
	cleanup_free char *text = json_text(context, NULL);
	buf_init(code, 1 << 20);
	if (!text || buf_add(code, wall.python, wall.python_len) < 0 ||
	    buf_printf(code, "\ntry_attack(\"%s%s\", bait_words)\n", role, o->attack->name) < 0)
		return err_errno(reterr, ENOMEM, "the code of an attack");
	*ret_context = TAKE_PTR(text);
	return 0;
}

/* The host must not take what it cannot seal. */
static void judge_columns(const struct cordon_result *r, struct trial *t)
{
	uint64_t bytes = 0;
	const char *kind = cordon_result_error_kind(r);

	if (cordon_result_buffer(r, &bytes) >= 0) {
		t->outcome = TRIAL_OPEN;
		(void)str_copy(t->said, sizeof(t->said), "worked");
	} else if (str_eq(kind, "protocol")) {
		t->outcome = TRIAL_HELD;
		snprintf(t->said, sizeof(t->said), "%.60s", cordon_result_error(r));
	}
}

int attack_python_inside(const struct trial_options *o, struct trial *ret,
			 struct cordon_error **reterr)
{
	cleanup_buf struct buf code = { 0 };
	cleanup_free char *context = NULL;
	struct cordon_policy policy = { 0 };
	struct cordon_result *result = NULL;
	struct trial t = { .outcome = TRIAL_BROKEN };

	int r = attack_python_code(o, "attack_", &code, &context, reterr);
	if (r == 0)
		r = policy_copy(&policy.p, o->policy, reterr);
	if (r < 0)
		return r;
	struct cordon_session_options session = { .guest = "python", .policy = &policy };
	struct cordon_execute_options options = {
		.code = buf_text(&code),
		.code_len = code.len,
		.context_json = context,
		.takes_buffer = o->attack->flags & PROBE_COLUMNS,
	};
	r = cordon_run(&session, &options, &result, reterr);
	policy_done(&policy.p);
	if (r < 0)
		return r;
	attack_python_judge(result, &t);
	if (o->attack->flags & PROBE_COLUMNS)
		judge_columns(result, &t);
	judge_remains(o, &t);
	cordon_result_free(result);
	*ret = t;
	return 0;
}

static int start(const struct trial_options *o, int code, int out)
{
	cleanup_free char *secret = str_printf("CORDON_BAIT=%s", o->bait->secret);
	const char *python = o->policy->python ? o->policy->python : "/usr/bin/python3";
	char path[32], *env[] = { secret, (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
	const char *argv[BAIT_ARGV] = { "python3", "-I", path, o->attack->name, "control=1" };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", code);
	bait_add_args(o->bait, argv, 5);
	if (!secret)
		return -ENOMEM;
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	if (dup2(out, 1) < 0 || fcntl(code, F_SETFD, 0) < 0)
		_exit(126);
	execve(python, (char *const *)(uintptr_t)argv, env);
	_exit(126);
}

int attack_python_outside(const struct trial_options *o, struct trial *ret,
			  struct cordon_error **reterr)
{
	const struct wall_attacks wall = wall_choose(o->policy)->attacks();
	struct trial t = { .outcome = TRIAL_BROKEN };
	cleanup_close int code = -1;
	char text[80] = "";
	int out[2], status = 0;

	int r = file_from_bytes("attacks.py", wall.python, wall.python_len, &code, reterr);
	if (r < 0)
		return r;
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0)
		return err_errno(reterr, errno, "open a pipe");
	int pid = start(o, code, out[1]);
	close(out[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ssize_t n = read(out[0], text, sizeof(text) - 1);
	close(out[0]);
	if (pid < 0)
		return err_errno(reterr, -pid, "start the control of '%s'", o->attack->name);
	for (; n > 0 && text[n - 1] == '\n'; n--)
		text[n - 1] = '\0';
	if (n > 0)
		attack_python_said(text, &t);
	else
		snprintf(t.said, sizeof(t.said), "ended with status %d", WEXITSTATUS(status));
	judge_remains(o, &t);
	*ret = t;
	return 0;
}

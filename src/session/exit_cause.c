/* session/exit_cause.c - see exit_cause.h. From the guest we only take the name of its exception.
 * What killed it, what it was refused and which limit it hit are read from the kernel. */
#include "session/exit_cause.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/str.h"
#include "net/host/gateway.h"
#include "session/denial_list.h"
#include "session/guest_denial.h"
#include "session/limit_evidence.h"
#include "session/remedy.h"

/* TOLD_OBJECTS: an object of three bytes costs the parser some two hundred. */
enum { MAX_TOLD = 64, TOLD_OBJECTS = 4096 };

void evidence_begin(struct evidence *v, struct engine *e, const struct policy *p)
{
	*v = (struct evidence){ 0 };
	/* A script has begun already, and all that was refused to it is its own. What its engine
	 * counted is from before. */
	if (e->place && e->wire) /* others ran in it since this guest's last execution */
		box_count(e->box, &e->counted);
	v->before = e->counted;
	limit_evidence_begin(v, e, p);
	if (e->wire)
		box_count_denials(e->box, v->denials_before);
}

void evidence_done(struct evidence *v)
{
	free(v->protocol);
	free(v->internal);
	free(v->kind);
	free(v->name);
	free(v->message);
	free(v->told);
	*v = (struct evidence){ 0 };
}

/* True if the host cannot confirm the kind by itself. That there was an exception, and whose fault
 * it was, is always the guest's word. */
static bool is_claim(const char *kind, const struct evidence *v, const struct engine *e,
		     const struct policy *p)
{
	if (str_eq(kind, "memory"))
		return !limit_is_out_of_memory(v, e, p);
	if (str_eq(kind, "processes"))
		return !box_look(e->box).has_groups;
	if (str_eq(kind, "tool"))
		return !v->has_failed_call;
	return str_eq(kind, "syntax") || str_eq(kind, "file_size");
}

static bool is_fork_refused(const struct evidence *v, int os_errno)
{
	return os_errno == EAGAIN || (v->message && strstr(v->message, "start new thread"));
}

/* A program that is not in the view does not exist for the guest; one that may not be executed is
 * EACCES. If pid 1 saw the attempt, we report it as denied. */
static bool is_exec_refused(const struct evidence *v, const struct guest_denial *claim,
			    const struct cordon_result *r)
{
	size_t i;
	json_t *d;

	if (!v->message || !(claim->os_errno == ENOENT || strstr(v->message, " ENOENT") ||
			     strstr(v->message, " EACCES")))
		return false;
	json_array_foreach(r->denials, i, d)
	{
		const char *target = json_string_value(json_object_get(d, "target"));
		const char *slash = target ? strrchr(target, '/') : NULL;

		if (str_eq(json_string_value(json_object_get(d, "operation")), "execute") &&
		    target && strstr(v->message, slash ? slash + 1 : target))
			return true;
	}
	return false;
}

/* The guest names the exception. Its word is ignored where the kernel or the policy knows
 * better. */
static const char *exception_kind(const struct evidence *v, const struct guest_denial *d,
				  struct engine *e, const struct policy *p,
				  const struct cordon_result *r)
{
	static const struct {
		const char *said, *kind;
	} kinds[] = { { "syntax", "syntax" }, { "tool", "tool" }, { "memory", "memory" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_eq(v->kind, kinds[i].said))
			return kinds[i].kind;
	if ((str_eq(v->kind, "import") && !p->modules.all) || is_exec_refused(v, d, r))
		return "denied";
	if (d->os_errno == EFBIG)
		return "file_size";
	if (d->os_errno == ENOSPC && limit_is_full(e))
		return "disk";
	if (is_fork_refused(v, d->os_errno) && limit_is_crowded(v, e, p))
		return "processes";
	return "exception";
}

static struct guest_denial_setting setting_of(const struct evidence *v, const struct engine *e,
					      const struct policy *p)
{
	return (struct guest_denial_setting){ .policy = p,
					      .workspace = v->workspace,
					      .cwd = v->cwd,
					      .private_dir = e->box->private_dir };
}

/* R says in a warning which file it could not open. */
static bool is_file_of_r(const struct evidence *v, const struct engine *e)
{
	return e->kind == GUEST_KIND_R && v->message && strstr(v->message, "cannot open");
}

static void exception(const struct evidence *v, struct engine *e, const struct policy *p,
		      struct cordon_result *r)
{
	struct guest_denial_setting setting = setting_of(v, e, p);
	struct guest_denial claim;
	const char *name = v->name ? v->name : "error";

	box_count(e->box, &e->counted);
	guest_denial_parse(&claim, v->message);
	const char *kind = exception_kind(v, &claim, e, p, r);
	if (str_eq(kind, "exception") &&
	    (guest_denial_file(&claim, &setting, r) ||
	     (is_file_of_r(v, e) && guest_denial_lines(v->err_text, &setting, r))))
		kind = "denied";
	if (str_eq(kind, "denied") && !p->modules.all && str_eq(v->kind, "import"))
		guest_denial_module(v->message, p, r);
	else if (str_eq(kind, "denied") && json_array_size(r->denials) == 0)
		guest_denial_rights(r);
	guest_denial_done(&claim);
	r->is_claimed = is_claim(kind, v, e, p);
	if (v->message && v->message[0])
		(void)result_fail(r, kind, "%s: %s", name, v->message);
	else
		(void)result_fail(r, kind, "%s", name);
	r->exit_code = 1;
}

static bool refuses_exec(const struct policy *p, const char *target)
{
	return !policy_shells_run(p, target);
}

static bool refuses_connect(const struct policy *p, const char *target)
{
	return !gateway_is_needed(p) || !str_starts(target, "127.0.0.1:") ||
	       !str_eq(target + strlen("127.0.0.1"), strrchr(GATEWAY_PROXY_URL, ':'));
}

static bool refuses_socket(const struct policy *p, const char *target)
{
	return str_eq(target, "datagram") || (str_eq(target, "stream") && !gateway_is_needed(p));
}

/* A request that a pod's door refused. The runtime says what was tried and is not trusted: the
 * denial counts only if the policy really refuses that, and the text is ours. */
static void add_door_denial(const json_t *told, const struct policy *p, struct cordon_result *r)
{
	static const struct {
		const char *said, *operation, *rule, *remedy;
		bool (*refuses)(const struct policy *p, const char *target);
	} table[] = {
		{ "exec", "execute", "only the commands of the policy may be executed", NULL,
		  refuses_exec },
		{ "connect", "connect", "only the session's own gateway can be reached",
		  "network.allow: name the host in the policy, and use the proxy",
		  refuses_connect },
		{ "socket", "socket", "there is no network",
		  "network.allow: name the host in the policy", refuses_socket },
	};
	const char *said = json_string_value(json_object_get(told, "operation"));
	const char *target = json_string_value(json_object_get(told, "target"));
	cleanup_free char *command = target ? remedy_command(target) : NULL;

	for (size_t i = 0; said && target && i < sizeof(table) / sizeof(*table); i++)
		if (str_eq(said, table[i].said) && table[i].refuses(p, target))
			json_array_append_new(
				result_array(&r->denials),
				json_pack("{s:s, s:o, s:s, s:s, s:s, s:i}", "operation",
					  table[i].operation, "target",
					  json_string_lossy(target, strnlen(target, 256)), "layer",
					  "door", "rule", table[i].rule, "remedy",
					  table[i].remedy ? table[i].remedy
					  : command       ? command
							  : "none",
					  "count", 1));
}

/* Parsing takes much more memory than the text, and the guest may say anything. */
static bool is_modest(const char *told)
{
	size_t len = strlen(told);

	return str_count(told, len, '{') <= TOLD_OBJECTS &&
	       str_count(told, len, ',') <= (size_t)4 * TOLD_OBJECTS &&
	       str_count(told, len, '[') <= TOLD_OBJECTS;
}

static void told_denials(const struct evidence *v, const struct engine *e, const struct policy *p,
			 struct cordon_result *r)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *d;

	if (!v->told || !is_modest(v->told) ||
	    json_parse(v->told, strlen(v->told), 0, &all, NULL) < 0)
		return;
	json_array_foreach(all, i, d)
	{
		if (i >= MAX_TOLD)
			break;
		if (e->kind == GUEST_KIND_POD)
			add_door_denial(d, p, r);
		else if (e->kind == GUEST_KIND_SH
				 ? !policy_shells_run_all(p)
				 : !p->commands.all && box_saw_exec(e->box, v->denials_before))
			guest_denial_command(json_string_value(json_object_get(d, "target")), p, r);
	}
}

static void denials(const struct evidence *v, struct engine *e, const struct policy *p,
		    struct cordon_result *r)
{
	json_t *all = box_denials(e->box, v->denials_before);
	struct guest_denial_setting setting = setting_of(v, e, p);

	remedy_programs(all, &setting);
	if (all && json_array_size(all) > 0)
		json_array_extend(result_array(&r->denials), all);
	json_decref(all);
	told_denials(v, e, p, r);
	if (e->kind == GUEST_KIND_SH ? !policy_shells_run_all(p)
				     : e->kind != GUEST_KIND_POD && !p->commands.all)
		guest_denial_not_found(v->err_text, p, r);
	/* R starts programs through a shell. In a session that a template forked, pid 1 sees only
	 * that a program was to be started; where there is none, it was refused. */
	if (e->kind == GUEST_KIND_R && !p->commands.all && !policy_names_program(p) &&
	    box_saw_exec(e->box, v->denials_before))
		guest_denial_command("sh", p, r);
}

static const char *seconds(uint64_t ms, char *text, size_t size)
{
	if (ms % 1000 == 0)
		snprintf(text, size, "%llu second%s", (unsigned long long)ms / 1000,
			 ms == 1000 ? "" : "s");
	else
		snprintf(text, size, "%llu ms", (unsigned long long)ms);
	return text;
}

/* RLIMIT_CPU ends a process with SIGKILL. The kernel counts ticks for it, which runs ahead of the
 * clock that we read on a busy machine; so half of the limit is enough evidence. */
static bool is_out_of_cpu(const struct evidence *v, const struct box_state *s,
			  const struct policy *p, int signo)
{
	uint64_t limit_us = p->cpu_seconds * 1000000;

	return signo == SIGXCPU || v->over_cpu || (signo == SIGKILL && s->cpu_us >= limit_us / 2);
}

/* A shell only tells that its command was killed. The CPU time is the host's own figure. */
static bool was_killed_for_cpu(const struct policy *p, const struct cordon_result *r)
{
	return (r->exit_code == 128 + SIGKILL || r->exit_code == 128 + SIGXCPU) &&
	       r->cpu_ms >= (double)p->cpu_seconds * 500;
}

#define CODE_NAME "/run/cordon/code"

/* For a syntax error bash writes a message to stderr and exits with 2. The code is a file of this
 * name. */
static bool is_shell_syntax(const struct evidence *v, const struct engine *e, int exit_code)
{
	const char *name = v->err_text ? strstr(v->err_text, CODE_NAME ": line ") : NULL;

	/* Without user namespaces the file is in a private directory, so the path may have a
	 * prefix. */
	return !e->wire && exit_code == 2 && name && name < strchrnul(v->err_text, '\n') &&
	       v->err_text[0] == '/' && strstr(name, "syntax error");
}

/* What a shell and its programs say about files. A plain script has no session that would have
 * opened the workspace. */
static void read_stderr(const struct evidence *v, const struct engine *e, const struct policy *p,
			struct cordon_result *r)
{
	struct guest_denial_setting setting = setting_of(v, e, p);
	struct workspace_options o = { .root_fd = e->box->workspace_fd,
				       .owner_uid = e->box->uid,
				       .owner_gid = e->box->gid };
	struct workspace *own = NULL;

	if (!v->err_text ||
	    !(strstr(v->err_text, strerror(EACCES)) || strstr(v->err_text, strerror(EROFS))))
		return;
	if (!v->workspace && o.root_fd >= 0 && workspace_open(&o, &own, NULL) == 0)
		setting.workspace = own;
	(void)guest_denial_lines(v->err_text, &setting, r);
	workspace_close(own);
}

/* The guest ended by itself with a status other than 0. */
static void bad_status(const struct evidence *v, struct engine *e, const struct policy *p,
		       struct cordon_result *r)
{
	const char *kind = "exception";
	char text[64];

	if (e->kind == GUEST_KIND_SH)
		read_stderr(v, e, p, r);
	if (is_shell_syntax(v, e, r->exit_code)) {
		const char *said = strstr(v->err_text, CODE_NAME ": ") + strlen(CODE_NAME ": ");
		(void)result_fail(r, "syntax", "%.*s", (int)strcspn(said, "\n"), said);
		r->is_claimed = true;
		return;
	}
	/* RLIMIT_DATA refuses memory before the supervisor notices; a shell then ends with 2. */
	if (limit_has_filled_memory(v, e, p))
		kind = "memory";
	/* A shell passes on the signal that killed its last command. */
	else if (r->exit_code == 128 + SIGXFSZ)
		kind = "file_size";
	else if (was_killed_for_cpu(p, r))
		kind = "cpu";
	else if (r->exit_code == 126 && r->denials)
		kind = "denied";
	else if (limit_has_been_crowded(v, e, p))
		kind = "processes";
	else if (limit_has_filled_disk(v, e))
		kind = "disk";
	r->is_claimed = str_eq(kind, "file_size"); /* code can exit with any status */
	if (str_eq(kind, "cpu"))
		(void)result_fail(r, kind, "the CPU time limit of %s was reached",
				  seconds(p->cpu_seconds * 1000, text, sizeof(text)));
	else
		(void)result_fail(r, kind, "exited with status %d", r->exit_code);
}

/* A V8 heap abort is reported as `memory`. V8 aborts (SIGABRT or a trap) at the heap size that the
 * launch gave it, or at four fifths of it when garbage collection no longer helps. The kernel
 * reports only a signal; our own figures confirm that so much memory was in use. If V8 was refused
 * memory earlier, the kernel's counters say so. */
static bool gave_up(const struct engine *e, const struct policy *p, int signo)
{
	uint64_t watched = box_look(e->box).memory_peak_bytes;
	uint64_t counted = e->counted.memory_peak_bytes;
	uint64_t heap = guest_heap_bytes(e->kind, p);

	return heap > 0 && (signo == SIGABRT || signo == SIGTRAP) &&
	       (watched > counted ? watched : counted) >= heap / 5 * 4;
}

/* Nothing ran: the sandbox or its guest could not be set up. */
static void not_started(const struct evidence *v, struct engine *e, const struct policy *p,
			struct cordon_result *r)
{
	cleanup_error struct cordon_error *err = NULL;

	(void)box_failure(e->box, &err);
	bool is_crowd =
		strstr(cordon_error_message(err), strerror(EAGAIN)) && limit_is_crowded(v, e, p);
	bool is_place = cordon_error_code(err) == CORDON_NOT_FOUND && v->cwd;
	(void)result_fail(r, is_crowd ? "processes" : "internal", "%s%s%s", is_place ? v->cwd : "",
			  is_place ? ": " : "", cordon_error_message(err));
	r->exit_code = 125;
}

/* The guest is dead without a result. */
static void death(const struct evidence *v, struct engine *e, const struct policy *p,
		  struct cordon_result *r)
{
	char text[64];

	box_count(e->box, &e->counted);
	const struct box_state s = box_look(e->box);
	if (s.stage == BOX_FAILED) {
		not_started(v, e, p, r);
		return;
	}
	/* The supervisor kills the whole sandbox, so no process is left that could report the
	 * guest's end. */
	int signo = s.is_out_of_memory           ? SIGKILL
		    : WIFSIGNALED(s.wait_status) ? WTERMSIG(s.wait_status)
						 : 0;
	r->exit_code = signo ? 128 + signo : WEXITSTATUS(s.wait_status);
	if (e->counted.oom_kills > v->before.oom_kills || s.is_out_of_memory)
		(void)result_fail(r, "memory", "killed: the memory limit of %llu bytes was reached",
				  (unsigned long long)p->memory_bytes);
	else if (gave_up(e, p, signo))
		(void)result_fail(r, "memory",
				  "it aborted (%s) at its heap limit of %llu bytes (memory limit: "
				  "%llu bytes)",
				  strsignal(signo),
				  (unsigned long long)guest_heap_bytes(e->kind, p),
				  (unsigned long long)p->memory_bytes);
	else if (is_out_of_cpu(v, &s, p, signo))
		(void)result_fail(r, "cpu", "killed: the CPU time limit of %s was reached",
				  seconds(p->cpu_seconds * 1000, text, sizeof(text)));
	else if (signo == SIGXFSZ)
		(void)result_fail(r, "file_size", "killed: a file grew beyond %llu bytes",
				  (unsigned long long)p->file_bytes);
	else if (signo)
		(void)result_fail(r, "crashed", "killed by signal %d (%s)", signo,
				  strsignal(signo));
	else if (s.stage != BOX_EXITED) {
		r->exit_code = 128 + SIGKILL;
		(void)result_fail(r, "crashed", "killed: the whole sandbox ended");
	} else if (r->exit_code != 0)
		bad_status(v, e, p, r);
	else if (e->wire)
		(void)result_fail(r, "crashed", "the guest ended without a result");
	else
		r->success = true;
}

/* The code ended with a status of its own, and the guest is still alive. */
static void said_status(const struct evidence *v, struct engine *e, const struct policy *p,
			struct cordon_result *r)
{
	r->exit_code = v->exit_code;
	r->success = v->exit_code == 0;
	if (r->success)
		return;
	box_count(e->box, &e->counted);
	r->is_claimed = str_eq(v->kind, "syntax");
	if (r->is_claimed)
		(void)result_fail(r, "syntax", "%s: %s", v->name ? v->name : "SyntaxError",
				  v->message ? v->message : "invalid syntax");
	else if (e->counted.oom_kills > v->before.oom_kills)
		(void)result_fail(r, "memory",
				  "a process was killed: the memory limit of %llu bytes was "
				  "reached",
				  (unsigned long long)p->memory_bytes);
	else if (engine_is_agent(e))
		bad_status(v, e, p, r);
	else
		(void)result_fail(r, "exception", "exited with status %d", v->exit_code);
}

/* Why the guest of code that was asked to stop is gone, where it is. */
static void explain_stop(const struct evidence *v, const struct policy *p, struct cordon_result *r)
{
	const char *since = v->timed_out ? "its deadline" : "it was cancelled";
	char text[64], why[160];

	if (!v->killed)
		snprintf(why, sizeof(why), "the guest ended when it was interrupted");
	else if (v->is_urgent)
		snprintf(why, sizeof(why), "the code was killed");
	else if (p->grace_ms == 0)
		snprintf(why, sizeof(why), "the code was killed (grace_ms is 0)");
	else
		snprintf(why, sizeof(why),
			 "the code did not stop within %s after %s and was killed",
			 seconds(p->grace_ms, text, sizeof(text)), since);
	result_explain_restart(r, why);
}

/* What the code met, whether it failed or went on. */
static void note_refusals(const struct evidence *v, struct engine *e, const struct policy *p,
			  struct cordon_result *r)
{
	const char *no_files = strerror(EMFILE);

	if (e->kind == GUEST_KIND_SH || e->kind == GUEST_KIND_R)
		read_stderr(v, e, p, r);
	if (r->success && e->kind == GUEST_KIND_SH && limit_was_met_by_forks(v, e, p))
		remedy_limit_met("processes", p, r);
	if ((v->message && (strstr(v->message, no_files) || strstr(v->message, "EMFILE"))) ||
	    (e->kind == GUEST_KIND_SH && v->err_text && strstr(v->err_text, no_files)))
		remedy_limit_met("open_files", p, r);
	denial_list_merge(r->denials);
	struct denial_list_words words = { .is_success = r->success,
					   .is_shell = e->kind == GUEST_KIND_SH,
					   .message = v->message,
					   .err_text = v->err_text };
	denial_list_drop_probes(r->denials, &words);
	if (!r->success) {
		guest_denial_network(v->message, p, r);
		guest_denial_network(v->err_text, p, r);
	}
}

void exit_cause_reach(const struct evidence *v, struct engine *e, const struct policy *p,
		      struct cordon_result *r)
{
	char text[64];

	denials(v, e, p, r);
	if (v->killed || ((v->timed_out || v->cancelled) && !v->has_result))
		explain_stop(v, p, r);
	if (v->internal) {
		(void)result_fail(r, "internal", "%s", v->internal);
		r->exit_code = 125;
	} else if (v->protocol) {
		(void)result_fail(r, "protocol", "%s", v->protocol);
		r->exit_code = 125;
	} else if (v->cancelled) {
		(void)result_fail(r, "cancelled", "execution cancelled");
		r->exit_code = 125;
	} else if (v->timed_out) {
		(void)result_fail(r, "timeout", "Execution timed out after %s",
				  seconds(v->timeout_ms, text, sizeof(text)));
		r->exit_code = 124;
	} else if (v->over_cpu) {
		(void)result_fail(r, "cpu", "killed: the CPU time limit of %s was reached",
				  seconds(p->cpu_seconds * 1000, text, sizeof(text)));
		r->exit_code = 137;
	} else if (!v->has_result) {
		death(v, e, p, r);
	} else if (v->has_exit_code) {
		said_status(v, e, p, r);
	} else if (v->ok) {
		r->success = true;
	} else {
		exception(v, e, p, r);
	}
	note_refusals(v, e, p, r);
	remedy_limit(p, v->timed_out ? v->timeout_ms : 0, !r->success && limit_has_no_inode(e), r);
	limit_evidence_end(v, e, p);
}

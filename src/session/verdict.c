/* session/verdict.c - see verdict.h. What the guest says about itself only names an exception; what
 * killed it, what it was refused and what ran out is read from the kernel. */
#include "session/verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "base/str.h"

void evidence_begin(struct evidence *v, struct engine *e)
{
	*v = (struct evidence){ 0 };
	v->before = e->counted;
	for (uint32_t i = 0; i < STATUS_DENIALS; i++)
		v->denials_before[i] = box_status(e->box)->denials[i].count;
}

void evidence_done(struct evidence *v)
{
	free(v->protocol);
	free(v->kind);
	free(v->name);
	free(v->message);
	*v = (struct evidence){ 0 };
}

/* The N of "[Errno N] ..." in an exception's text; 0: none. */
static int said_errno(const struct evidence *v)
{
	const char *p = v->message ? strstr(v->message, "[Errno ") : NULL;

	return p ? (int)strtol(p + 7, NULL, 10) : 0;
}

/* The path in "[Errno 13] Permission denied: '/x'"; NULL: none. */
static char *said_path(const struct evidence *v)
{
	const char *open = v->message ? strstr(v->message, ": '") : NULL;
	const char *close = open ? strchr(open + 3, '\'') : NULL;

	return close ? str_ndup(open + 3, (size_t)(close - open - 3)) : NULL;
}

static bool is_full(const struct engine *e)
{
	struct statvfs s;

	return box_workspace_fd(e->box) >= 0 && fstatvfs(box_workspace_fd(e->box), &s) == 0 &&
	       (s.f_bavail * s.f_bsize < 65536 || s.f_ffree == 0);
}

static void add_file_denial(const struct evidence *v, int os_errno, struct cordon_result *r)
{
	cleanup_free char *path = said_path(v);
	bool is_readonly = os_errno == EROFS;

	if (!path)
		return;
	json_array_append_new(
		result_array(&r->denials),
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "operation", "open", "target", path,
			  "layer", is_readonly ? "mount" : "landlock", "rule",
			  is_readonly
				  ? "everything but /home/user, /tmp and /workspace is read-only"
				  : "no right was given for this path",
			  "remedy", "mounts: name the directory in the policy", "count", 1));
}

static const char *kind_of_exception(const struct evidence *v, const struct engine *e, int os_errno)
{
	static const char *const said[][2] = { { "syntax", "syntax" },
					       { "tool", "tool" },
					       { "memory", "memory" },
					       { "import", "denied" },
					       { "denied", "denied" } };

	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		if (str_eq(v->kind, said[i][0]))
			return said[i][1];
	switch (os_errno) {
	case EFBIG:
		return "file_size";
	case ENOSPC:
		return is_full(e) ? "disk" : "exception";
	case EAGAIN:
		return e->counted.pids_refused > v->before.pids_refused ||
				       box_cgroup(e->box)->count == 0
			       ? "processes"
			       : "exception";
	case EACCES:
	case EPERM:
	case EROFS:
		return "denied";
	default:
		return "exception";
	}
}

static void exception(const struct evidence *v, struct engine *e, struct cordon_result *r)
{
	int os_errno = said_errno(v);
	const char *name = v->name ? v->name : "error";

	cgroup_read(box_cgroup(e->box), &e->counted);
	const char *kind = kind_of_exception(v, e, os_errno);
	if (str_eq(kind, "denied"))
		add_file_denial(v, os_errno, r);
	if (v->message && v->message[0])
		(void)result_fail(r, kind, "%s: %s", name, v->message);
	else
		(void)result_fail(r, kind, "%s", name);
	r->exit_code = 1;
}

static void denials(const struct evidence *v, struct engine *e, struct cordon_result *r)
{
	json_t *all = box_denials(e->box, v->denials_before);

	if (all && json_array_size(all) > 0)
		json_array_extend(result_array(&r->denials), all);
	json_decref(all);
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

static void killed(const struct evidence *v, const struct status *s, int signo,
		   const struct policy *p, struct cordon_result *r)
{
	if (signo == SIGXCPU || v->over_cpu ||
	    (signo == SIGKILL && s->cpu_us + 100000 >= p->cpu_seconds * 1000000))
		(void)result_fail(r, "cpu",
				  "killed: the CPU time limit of %llu seconds was reached",
				  (unsigned long long)p->cpu_seconds);
	else if (signo == SIGXFSZ)
		(void)result_fail(r, "file_size", "killed: a file grew over %llu bytes",
				  (unsigned long long)p->file_bytes);
	else
		(void)result_fail(r, "crashed", "killed by signal %d (%s)", signo,
				  strsignal(signo));
}

/* The guest is dead without a result. */
static void death(const struct evidence *v, struct engine *e, const struct policy *p,
		  struct cordon_result *r)
{
	const struct status *s = box_status(e->box);
	struct cgroup_counts now;
	int status = s->wait_status;

	cgroup_read(box_cgroup(e->box), &now);
	if (s->state == STATE_FAILED) {
		cleanup_error struct cordon_error *err = NULL;
		(void)box_failure(e->box, &err);
		(void)result_fail(r, "internal", "%s", cordon_error_message(err));
		return;
	}
	/* The keeper ends the whole sandbox, so nobody was left to tell of the guest's end. */
	int signo = s->memory_kills > 0 ? SIGKILL : WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->exit_code = signo ? 128 + signo : WEXITSTATUS(status);
	if (now.oom_kills > v->before.oom_kills || s->memory_kills > 0)
		(void)result_fail(r, "memory", "killed: the memory limit of %llu bytes was reached",
				  (unsigned long long)p->memory_bytes);
	else if (signo || v->over_cpu)
		killed(v, s, signo, p, r);
	else if (s->state != STATE_EXITED)
		(void)result_fail(r, "crashed", "the sandbox ended without a status");
	else if (r->exit_code != 0)
		(void)result_fail(r,
				  now.pids_refused > v->before.pids_refused ? "processes"
				  : is_full(e)                              ? "disk"
				  : r->exit_code == 126                     ? "denied"
									    : "exception",
				  "exited with status %d", r->exit_code);
	else if (e->wire)
		(void)result_fail(r, "crashed", "the guest ended without a result");
	else
		r->success = true;
}

void verdict_reach(const struct evidence *v, struct engine *e, const struct policy *p,
		   struct cordon_result *r)
{
	char text[64];

	denials(v, e, r);
	if (v->protocol) {
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
		(void)result_fail(r, "cpu",
				  "killed: the CPU time limit of %llu seconds was reached",
				  (unsigned long long)p->cpu_seconds);
		r->exit_code = 137;
	} else if (!v->has_result) {
		death(v, e, p, r);
	} else if (v->has_exit_code) {
		r->exit_code = v->exit_code;
		r->success = v->exit_code == 0;
		if (v->exit_code != 0)
			(void)result_fail(
				r, v->exit_code == 126 && r->denials ? "denied" : "exception",
				"exited with status %d", v->exit_code);
	} else if (v->ok) {
		r->success = true;
	} else {
		exception(v, e, r);
	}
}

/* tests/soak/public.c - calls every function of the library from eight threads, on shared sessions
 * and a shared pool, for SOAK_SECONDS (10). Return values do not matter here: some calls are
 * refused, because the session is busy. The sanitizers check memory and threads.
 * tests/soak/every-function checks that no function is missing. */
#include <cordon/audit.h>
#include <cordon/command.h>
#include <cordon/cordon.h>
#include <cordon/fetch.h>
#include <cordon/files.h>
#include <cordon/pod.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

enum { THREADS = 8, SESSIONS = 2 };

static struct stage {
	struct cordon_session *sessions[SESSIONS];
	struct cordon_pool *pool;
	struct cordon_tools *tools;
	struct cordon_policy *policy, *open; /* open: of the session with languages */
	char dir[40];
	_Atomic bool is_over;
	_Atomic unsigned turns, calls, executions, names, contexts, commands, ports;
	_Atomic uint64_t process; /* the newest, of either session */
} stage;

static enum cordon_answer answer(struct cordon_call *c, void *arg)
{
	(void)arg;
	stage.calls += cordon_call_session(c) && cordon_call_tool(c) && cordon_call_args(c);
	if (stage.calls % 3 == 0)
		return cordon_call_error(c, "not now", NULL) == 0 ? CORDON_ANSWER_ERROR
								  : CORDON_ANSWER_VALUE;
	(void)cordon_call_value(c, "42", NULL);
	return CORDON_ANSWER_VALUE;
}

static void read_result(struct cordon_result *r)
{
	uint64_t bytes = 0;
	size_t len;

	if (!r)
		return;
	cleanup_free char *denials = cordon_result_denials_text(r);
	cleanup_free char *warnings = cordon_result_warnings_text(r);
	cleanup_free char *losses = cordon_result_losses_text(r);
	cleanup_free char *gone = cordon_result_restart_text(r);
	(void)cordon_result_json(r);
	(void)cordon_result_value_json(r);
	(void)cordon_result_value_text(r);
	stage.executions += cordon_result_buffer(r, &bytes) >= 0 && bytes > 0;
	(void)cordon_result_stdout(r, &len);
	(void)cordon_result_stderr(r, &len);
	(void)cordon_result_error(r);
	(void)cordon_result_error_kind(r);
	(void)cordon_result_traceback(r);
	(void)cordon_result_truncated(r, 1);
	(void)cordon_result_exit_status(r);
	stage.executions += cordon_result_success(r);
	cordon_result_free(r);
}

/* Refused before anything is started: the policy names no package. */
static void install(struct cordon_session *s)
{
	const char *const names[] = { "nothing", NULL };
	struct cordon_install_options o = { .names = names };
	char *text = NULL;

	(void)cordon_session_install(s, &o, &text, NULL);
	free(text);
}

static void execute(struct cordon_session *s, unsigned turn)
{
	static const char *const codes[] = { "answer()",
					     "1 + 1",
					     "1 / 0",
					     "open('/tmp/f', 'w').write('x')",
					     "import os; os.kill(os.getpid(), 9)",
					     "list(range(100000))" };
	struct cordon_execute_options o = { .code = codes[turn % 6],
					    .takes_buffer = true,
					    .timeout_ms = 20000 };
	struct cordon_result *r = NULL;

	if (cordon_session_execute(s, &o, &r, NULL) == 0)
		read_result(r);
	install(s);
	if (turn % 11 == 0)
		(void)cordon_session_restart(s, NULL);
}

static void disturb(struct cordon_session *s, unsigned turn)
{
	cleanup_free char *text = cordon_session_describe(s);
	cleanup_free char *value = cordon_session_getenv(s, "NAME");

	(void)cordon_session_id(s);
	(void)cordon_session_is_alive(s);
	(void)cordon_session_setenv(s, "NAME", turn % 2 ? "value" : NULL, NULL);
	(void)cordon_session_interrupt(s, NULL);
	if (turn % 5 == 0)
		(void)cordon_session_cancel(s, NULL);
	if (turn % 7 == 0)
		(void)cordon_session_kill(s, NULL);
	(void)cordon_session_resolve(s, "no such id", false, NULL, "no", NULL);
	(void)cordon_session_save(s, NULL);
}

static int see_name(const char *name, const struct cordon_file_info *info, void *arg)
{
	(void)name, (void)info, (void)arg;
	return 0;
}

static void use_files(struct cordon_session *s, unsigned turn)
{
	cleanup_close int fd = memfd_create("tar", MFD_CLOEXEC);
	cleanup_free char *bytes = NULL;
	struct cordon_file_info info;
	char some[16];
	size_t len;
	uint64_t watch = 0;

	(void)turn;
	bool is_watched = cordon_watch_open(s, "/workspace", true, &watch, NULL) == 0;
	(void)cordon_file_mkdir(s, "/workspace/a/b", true, NULL);
	(void)cordon_file_write(s, "/workspace/a/x", "abc", 3, NULL);
	(void)cordon_file_append(s, "/workspace/a/x", "def", 3, NULL);
	(void)cordon_file_read(s, "/workspace/a/x", &bytes, &len, NULL);
	(void)cordon_file_read_at(s, "/workspace/a/x", 1, some, sizeof(some), &len, NULL);
	(void)cordon_file_stat(s, "/workspace/a/x", &info, NULL);
	(void)cordon_file_list(s, "/workspace", see_name, NULL, NULL);
	(void)cordon_file_move(s, "/workspace/a/x", "/workspace/a/y", NULL);
	(void)cordon_file_remove(s, "/workspace/a", true, NULL);
	if (cordon_file_get_tar(s, "/tmp", fd, NULL, NULL) == 0 && lseek(fd, 0, SEEK_SET) == 0)
		(void)cordon_file_put_tar(s, "/workspace/t", fd, NULL, NULL);
	if (is_watched) {
		cleanup_free char *changes = NULL;

		(void)cordon_watch_wait(s, watch, turn % 3, &changes, NULL);
		(void)cordon_watch_close(s, watch, NULL);
	}
}

static void inspect(struct cordon_session *s, unsigned turn)
{
	struct cordon_inspect_options o = { .question =
						    turn % 2 ? CORDON_COMPLETE : CORDON_IS_COMPLETE,
					    .code = "pri",
					    .code_len = 3 };
	cleanup_free char *json = NULL;

	(void)cordon_session_inspect(s, &o, &json, NULL);
}

/* Two contexts that all threads share, and one of this call alone, since nobody else may use a
 * context while it is closed. */
static void use_contexts(struct cordon_session *s, unsigned turn)
{
	struct cordon_session *shared = NULL, *own = NULL;
	struct cordon_execute_options o = { .code = "echo 1", .timeout_ms = 20000 };
	struct cordon_result *r = NULL;
	char name[32];

	inspect(s, turn);
	if (cordon_session_context(s, "python", "shared", &shared, NULL) == 0) {
		execute(shared, turn);
		inspect(shared, turn);
		disturb(shared, turn);
		use_files(shared, turn);
	}
	if (cordon_session_context(s, "sh", NULL, &shared, NULL) == 0 &&
	    cordon_session_execute(shared, &o, &r, NULL) == 0)
		read_result(r);
	snprintf(name, sizeof(name), "own-%u", stage.names++);
	if (cordon_session_context(s, turn % 2 ? "sh" : "python", name, &own, NULL) < 0)
		return;
	stage.contexts++;
	if (turn % 3 != 0)
		execute(own, turn);
	cordon_session_close(own);
}

static void see_output(int stream, const char *bytes, size_t len, void *arg)
{
	(void)stream, (void)bytes, (void)len, (void)arg;
}

static void see_end(uint64_t process, void *arg)
{
	(void)process, (void)arg;
}

/* A process of this thread or of another one, which may be over, waited for or of the other
 * session. */
static void use_process(struct cordon_session *s, uint64_t process, unsigned turn)
{
	cleanup_free char *out = NULL, *err = NULL, *list = NULL;
	struct cordon_result *r = NULL;
	uint64_t from;
	size_t len;

	(void)cordon_process_write(s, process, "line\n", 5, &len, NULL);
	(void)cordon_process_output(s, process, 1, 0, &out, &len, &from, NULL);
	(void)cordon_process_output(s, process, 2, turn, &err, &len, &from, NULL);
	list = cordon_process_list(s);
	(void)cordon_process_resize(s, process, 1 + turn % 60, 80, NULL);
	if (turn % 5 == 0)
		(void)cordon_process_signal(s, process, turn % 2 ? SIGINT : SIGWINCH, NULL);
	if (turn % 3 == 0)
		(void)cordon_process_write(s, process, "", 0, &len, NULL);
	if (turn % 3 == 1)
		(void)cordon_process_kill(s, process, NULL);
	if (cordon_process_wait(s, process, (uint64_t)(turn % 4) * 50, &r, NULL) == 0)
		read_result(r);
}

static void run_commands(struct cordon_session *s, unsigned turn)
{
	static const char *const lines[] = { "cat", "echo a; echo b >&2; exit 3", "sleep 0.2",
					     "head -c 600000 /dev/zero", "kill -9 $$" };
	struct cordon_command_options o = { .command = lines[turn % 5],
					    .timeout_ms = 20000,
					    .output = see_output };
	struct cordon_result *r = NULL;
	uint64_t process;

	if (cordon_session_command(s, &o, &r, NULL) == 0) {
		stage.commands++;
		read_result(r);
	}
	o.ended = see_end;
	use_process(s, stage.process, turn);
	for (unsigned i = 0; i < 3; i++) {
		o.command = lines[(turn + i) % 5];
		if (cordon_process_start(s, &o, &process, NULL) < 0)
			continue;
		stage.process = process;
		use_process(s, process, turn + i);
	}
}

static void use_ports(struct cordon_session *s, unsigned turn)
{
	struct cordon_expose_options o = { .host_port = turn % 2 ? -1 : 0 };
	cleanup_free char *address = NULL, *list = NULL;
	unsigned port = 8000 + turn % 8;

	if (cordon_session_expose(s, port, &o, &address, NULL) == 0)
		stage.ports++;
	list = cordon_session_exposed(s);
	if (turn % 3 != 0)
		(void)cordon_session_unexpose(s, port, NULL);
}

static int see_entry(const char *path, const struct cordon_file_info *info, const char *link,
		     void *arg)
{
	(void)path, (void)info, (void)link, (void)arg;
	return 0;
}

static int save(const char *id, const void *bytes, size_t len, void *arg)
{
	(void)id;
	return write(*(int *)arg, bytes, len) == (ssize_t)len ? 0 : -CORDON_OS;
}

static int load(const char *id, void **ret, size_t *ret_len, void *arg)
{
	off_t len = lseek(*(int *)arg, 0, SEEK_END);

	(void)id;
	*ret = malloc((size_t)len);
	*ret_len = (size_t)len;
	return *ret && pread(*(int *)arg, *ret, *ret_len, 0) == (ssize_t)len ? 0 : -CORDON_OS;
}

static void carry_away(struct cordon_session *s, unsigned turn)
{
	cleanup_close int fd = memfd_create("export", MFD_CLOEXEC);
	cleanup_close int kept = memfd_create("kept", MFD_CLOEXEC), saved = -1;
	cleanup_free char *report = NULL, *diff = NULL, *list = NULL, *again = NULL;
	struct cordon_session *child = NULL;
	char name[32];

	snprintf(name, sizeof(name), "soak-%d-%u", getpid(), turn % 4);
	if (cordon_files_export(s, fd, NULL) == 0) {
		(void)lseek(fd, 0, SEEK_SET);
		(void)cordon_files_import(s, fd, &report, NULL);
		(void)lseek(fd, 0, SEEK_SET);
		(void)cordon_export_list(fd, see_entry, NULL, NULL);
		(void)cordon_export_read(fd, "/tmp/f", kept, NULL);
		(void)cordon_export_diff(fd, fd, &diff, NULL);
		(void)lseek(fd, 0, SEEK_SET);
		(void)cordon_saved_import(name, fd, &again, NULL);
	}
	if (cordon_saved_open(name, &saved, NULL) < 0)
		saved = -1;
	(void)cordon_saved_list(&list, NULL);
	(void)cordon_saved_remove(name, NULL);
	(void)ftruncate(kept, 0);
	(void)lseek(kept, 0, SEEK_SET);
	if (cordon_session_offload(s, save, &kept, NULL) == 0)
		while (cordon_session_rehydrate(s, load, &kept, NULL) == -CORDON_STATE)
			usleep(1000);
	if (cordon_session_fork(s, &child, NULL) == 0)
		(void)cordon_session_end(child, NULL);
}

static void use_snapshots(struct cordon_session *s, unsigned turn)
{
	cleanup_free char *all = NULL, *diff = NULL, *applied = NULL;
	struct cordon_project *p = NULL;

	(void)cordon_snapshot_create(s, "one", NULL);
	all = cordon_snapshot_list(s);
	(void)cordon_snapshot_restore(s, "one", NULL);
	if (turn % 3 == 0)
		(void)cordon_snapshot_remove(s, "one", NULL);
	if (cordon_project_open(s, stage.dir, &p, NULL) == 0) {
		(void)cordon_project_diff(p, &diff, NULL);
		(void)cordon_project_apply(p, NULL, 0, &applied, NULL);
	}
	cordon_project_close(p);
}

static void use_pool(struct cordon_session *s, unsigned turn)
{
	struct cordon_execute_options o = { .code = "1 + 1" };
	struct cordon_session *taken = NULL;
	struct cordon_result *r = NULL;

	(void)s;
	if (cordon_pool_execute(stage.pool, &o, 2000, &r, NULL) == 0)
		read_result(r);
	if (cordon_pool_acquire(stage.pool, 2000, &taken, NULL) == 0) {
		execute(taken, turn);
		cordon_pool_release(stage.pool, taken);
	}
	(void)cordon_pool_get_status(stage.pool);
	if (turn % 13 == 0) {
		struct cordon_pool *own = NULL;
		const struct cordon_pool_options few = { .session = { .guest = "sh" }, .size = 1 };

		if (cordon_pool_new(&few, &own, NULL) == 0)
			cordon_pool_free(own);
	}
}

static void use_policies(struct cordon_session *s, unsigned turn)
{
	struct cordon_policy *p = NULL, *copy = NULL;
	cleanup_error struct cordon_error *e = NULL, *bad = NULL;
	char file[64];

	(void)s, (void)turn;
	(void)cordon_policy_new("strict", &p, &e);
	copy = cordon_policy_copy(p, NULL);
	(void)cordon_policy_apply_json(copy, "{\"memory_bytes\": 100000000}", NULL);
	snprintf(file, sizeof(file), "%s/none.json", stage.dir);
	(void)cordon_policy_apply_file(copy, file, NULL);
	(void)cordon_policy_set(copy, "no such field=1", &bad);
	cleanup_free char *json = cordon_policy_json(copy), *words = cordon_policy_explain(copy);
	cleanup_free char *changes = cordon_policy_diff(stage.policy, copy);
	(void)cordon_policy_check(copy, NULL);
	(void)cordon_error_message(bad);
	(void)cordon_error_cause(bad);
	(void)cordon_error_errno(bad);
	(void)cordon_code_name(cordon_error_code(bad));
	(void)cordon_code_rpc(cordon_error_code(bad));
	(void)cordon_code_exit_status(cordon_error_code(bad));
	cordon_error_free(NULL);
	cordon_policy_free(p);
	cordon_policy_free(copy);
}

static void use_machine(struct cordon_session *s, unsigned turn)
{
	cleanup_free char *doctor = NULL, *attacks = NULL, *pods = NULL, *valid = NULL;
	struct cordon_session_options once = { .guest = "sh", .policy = stage.policy };
	struct cordon_execute_options o = { .code = "echo 1" };
	struct cordon_fetch_options f = { .url = "http://closed.invalid/" };
	struct cordon_fetch_result got = { 0 };
	struct cordon_audit_report audit;
	struct cordon_result *r = NULL;
	struct cordon_session *own = NULL;

	(void)s;
	(void)cordon_version();
	(void)cordon_attacks(&attacks, NULL);
	(void)cordon_pod_list(&pods, NULL);
	(void)cordon_pod_add("soak-none", "x", 1, NULL, NULL);
	(void)cordon_pod_remove("soak-none", NULL);
	(void)cordon_audit_verify(stage.dir, NULL, &audit, NULL);
	cleanup_free char *plain = cordon_sanitize("open '/etc/x': pid 17", 0);
	if (turn % 5 == 0)
		(void)cordon_doctor(&doctor, NULL);
	if (turn % 3 == 0 && cordon_fetch(&f, &got, NULL) == 0)
		cordon_fetch_done(&got);
	(void)cordon_validate("sh", "echo 1", 6, &valid, NULL);
	if (cordon_run(&once, &o, &r, NULL) == 0)
		read_result(r);
	if (cordon_session_open(&once, &own, NULL) == 0)
		cordon_session_close(own);
}

static int make_tools(struct cordon_tools **ret)
{
	return cordon_tools_new(ret, NULL) < 0 ||
	       cordon_tools_add(*ret, &(struct cordon_tool){ .name = "answer", .fn = answer },
				NULL) < 0;
}

static void use_tools(struct cordon_session *s, unsigned turn)
{
	struct cordon_tools *t = NULL;
	char file[64];

	(void)s, (void)turn;
	if (make_tools(&t) == 0) {
		(void)cordon_tools_add_json(t, "[{\"name\": \"true\", \"command\": [\"true\"]}]",
					    NULL);
		snprintf(file, sizeof(file), "%s/tools.json", stage.dir);
		(void)cordon_tools_add_file(t, file, NULL);
	}
	cordon_tools_unref(t);
	cordon_tools_unref(cordon_tools_ref(stage.tools));
	cleanup_free char *json = cordon_tools_json(stage.tools);
}

static void (*const jobs[])(struct cordon_session *,
			    unsigned) = { execute,       disturb,      use_files,    carry_away,
					  use_snapshots, use_pool,     use_policies, use_machine,
					  use_tools,     use_contexts, run_commands, use_ports };
enum { JOBS = sizeof(jobs) / sizeof(*jobs) };

/* Each thread does all of it, each in another order, so that any two meet. */
static void *act(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	for (unsigned turn = 0; !stage.is_over; turn++) {
		jobs[(turn + number) % JOBS](stage.sessions[turn % SESSIONS], turn);
		stage.turns++;
	}
	return NULL;
}

static int set_up(void)
{
	static const char *const languages[] = { "python", "sh", NULL };
	struct cordon_session_options o = { .guest = "python" }, place;
	struct cordon_prove_options one = { .only = "read-shadow", .guest = "sh", .quick = true };
	cleanup_free char *proof = NULL;

	(void)cordon_prove(&one, &proof, NULL); /* not beside other threads, says its header */
	strcpy(stage.dir, "/tmp/soak-public-XXXXXX");
	if (!mkdtemp(stage.dir) || cordon_policy_new(NULL, &stage.policy, NULL) < 0 ||
	    make_tools(&stage.tools) != 0)
		return -1;
	o.policy = stage.policy;
	o.tools = stage.tools;
	place = o;
	place.languages = languages;
	stage.open = cordon_policy_copy(stage.policy, NULL);
	place.policy = stage.open;
	if (!stage.open || cordon_policy_set(stage.open, "expose=8000-8007", NULL) < 0)
		return -1;
	for (int i = 0; i < SESSIONS; i++) /* every second one has contexts and commands */
		if (cordon_session_open(i % 2 ? &place : &o, &stage.sessions[i], NULL) < 0)
			return -1;
	const struct cordon_pool_options p = { .session = o, .size = 2 };
	return cordon_pool_new(&p, &stage.pool, NULL);
}

static void tear_down(void)
{
	char command[64];

	cordon_pool_free(stage.pool);
	for (int i = 0; i < SESSIONS; i++)
		cordon_session_close(stage.sessions[i]);
	cordon_tools_unref(stage.tools);
	cordon_policy_free(stage.policy);
	cordon_policy_free(stage.open);
	snprintf(command, sizeof(command), "rm -rf '%s'", stage.dir);
	(void)!system(command);
}

int main(void)
{
	const char *seconds = getenv("SOAK_SECONDS");
	deadline_ns until = deadline_after_ms((seconds ? strtoull(seconds, NULL, 10) : 10) * 1000);
	pthread_t threads[THREADS];

	if (set_up() < 0) {
		printf("1..1\nnot ok 1 - it starts\n");
		return 1;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, act, (void *)i) != 0)
			return 1;
	/* Everybody is to have come to everything, however busy the machine. */
	while (!deadline_is_over(until) || stage.turns < THREADS * 2 * JOBS)
		usleep(10000);
	stage.is_over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tear_down();
	const struct {
		unsigned count;
		const char *name;
	} checks[] = { { stage.executions, "code runs" },
		       { stage.calls, "tools are called" },
		       { stage.contexts, "contexts are opened" },
		       { stage.commands, "commands run" },
		       { stage.ports, "ports are exposed" } };
	int failed = 0;

	printf("1..%zu\n# %u turns\n", sizeof(checks) / sizeof(*checks), stage.turns);
	for (unsigned i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		printf("%sok %u - %s: %u\n", checks[i].count ? "" : "not ", i + 1, checks[i].name,
		       checks[i].count);
		failed += checks[i].count == 0;
	}
	return failed > 0;
}

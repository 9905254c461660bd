/* bench/tools.c - the cost of a tool call: a plain ping-pong over a socketpair, the same through
 * wire and tool calls, the same with an audit log, and from live sessions of Python, R and sh.
 * Medians, all in one run, because the machine is shared. For sh it is the helper's own work,
 * without starting its process. */
#include <cordon/cordon.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "policy/policy.h"
#include "tools/tool_calls.h"
#include "wire/wire.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HELLO "{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN "\"}\n"

enum { CALLS = 20000, SESSION_CALLS = 5000 };

static double times[CALLS];

static void check(int r, const struct cordon_error *e, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, cordon_error_message(e));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *what, size_t count)
{
	qsort(times, count, sizeof(*times), compare);
	printf("%-44s %7.1f us median, %7.1f us best\n", what, times[count / 2], times[0]);
}

static enum cordon_answer add(struct cordon_call *c, void *arg)
{
	cleanup_json json_t *args = NULL;
	char text[64];

	(void)arg;
	check(json_parse(cordon_call_args(c), strlen(cordon_call_args(c)), 0, &args, NULL), NULL,
	      "arguments");
	snprintf(text, sizeof(text), "%.17g",
		 json_number_value(json_object_get(args, "a")) +
			 json_number_value(json_object_get(args, "b")));
	check(cordon_call_value(c, text, NULL), NULL, "answer");
	return CORDON_ANSWER_VALUE;
}

/* The guest's side, in C: as quick as one can be. */
static void guest(int fd, bool says_hello)
{
	char line[200], answer[400];

	if (says_hello && write(fd, HELLO, strlen(HELLO)) < 0)
		exit(1);
	for (int i = 1; i <= CALLS; i++) {
		int n = snprintf(line, sizeof(line),
				 "{\"type\":\"tool_call\",\"id\":1,\"call\":%d,"
				 "\"tool\":\"add\",\"args\":{\"a\":1,\"b\":2}}\n",
				 i);
		uint64_t start = clock_now_ns();
		if (write(fd, line, (size_t)n) != n || read(fd, answer, sizeof(answer)) <= 0)
			exit(1);
		times[i - 1] = (double)(clock_now_ns() - start) / 1000;
	}
}

static pid_t start_guest(int *ret_fd, bool says_hello, const char *what)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		exit(1);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		guest(fds[1], says_hello);
		print(what, CALLS);
		fflush(stdout);
		_exit(0);
	}
	close(fds[1]);
	*ret_fd = fds[0];
	return pid;
}

static void ping_pong(void)
{
	static const char answer[] = "{\"type\":\"tool_result\",\"id\":1,\"call\":1,\"value\":3}\n";
	char line[400];
	int fd;
	pid_t pid = start_guest(&fd, false, "plain socketpair, same bytes");

	while (read(fd, line, sizeof(line)) > 0)
		if (write(fd, answer, sizeof(answer) - 1) < 0)
			break;
	close(fd);
	waitpid(pid, NULL, 0);
}

static void serve(struct wire *w, struct tool_calls *d)
{
	struct wire_message m;
	struct tool_calls_answer a;

	wire_begin(w, 1, UINT64_MAX);
	tool_calls_begin(d, UINT64_MAX);
	while (!wire_is_closed(w)) {
		struct pollfd p[] = { { .fd = wire_fd(w), .events = wire_events(w) },
				      { .fd = tool_calls_fd(d), .events = POLLIN } };
		if (poll(p, 2, -1) < 0 || wire_fill(w, NULL) < 0)
			break;
		while (wire_next(w, &m, NULL) > 0)
			if (m.type == WIRE_TOOL_CALL &&
			    tool_calls_dispatch(d, m.call, m.tool.data, m.args.data, m.args.len, &a,
						NULL) > 0)
				(void)wire_send_tool_value(w, 1, a.call, a.text, a.len, NULL);
	}
}

static void through_tool_calls(struct cordon_tools *tools, const char *audit_path, const char *what)
{
	struct cordon_error *e = NULL;
	struct audit *audit = NULL;
	struct policy policy;
	struct tool_calls *d = NULL;
	struct wire *w = NULL;
	int fd;

	check(policy_init_level(&policy, LEVEL_STANDARD, &e), e, "policy");
	struct audit_options log = { .path = audit_path };
	if (audit_path)
		check(audit_open(&log, &audit, &e), e, "audit");
	struct tool_calls_options options = {
		.tools = tools, .policy = &policy, .session = "sess_bench", .audit = audit
	};
	check(tool_calls_new(&options, &d, &e), e, "tool calls");
	pid_t pid = start_guest(&fd, true, what);
	struct wire_options wire = { .token = TOKEN };
	check(wire_new(fd, &wire, &w, &e), e, "wire");
	serve(w, d);
	waitpid(pid, NULL, 0);
	wire_free(w);
	tool_calls_free(d);
	audit_close(audit);
	policy_done(&policy);
}

static void from_a_session(struct cordon_tools *tools, const char *kind, const char *code,
			   const char *audit_path)
{
	struct cordon_policy *policy = NULL;
	char set[100];

	struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;
	check(cordon_policy_new(NULL, &policy, &e), e, "policy");
	snprintf(set, sizeof(set), "audit=%s", audit_path ? audit_path : "");
	if (audit_path)
		check(cordon_policy_set(policy, set, &e), e, "policy");
	struct cordon_session_options opts = { .guest = kind, .tools = tools, .policy = policy };
	struct cordon_execute_options x = { .code = code, .timeout_ms = 120000 };

	check(cordon_session_open(&opts, &s, &e), e, kind);
	check(cordon_session_execute(s, &x, &r, &e), e, kind);
	if (cordon_result_success(r))
		printf("%-44s %s", audit_path ? "from a session, audited" : "from a session",
		       cordon_result_stdout(r, NULL));
	else
		printf("%-6s failed: %s\n", kind, cordon_result_error(r));
	cordon_result_free(r);
	cordon_session_close(s);
	cordon_policy_free(policy);
}

static const char in_python[] =
	"import time\nts = []\n"
	"for i in range(5000):\n t = time.perf_counter(); add(a=1, b=2); "
	"ts.append(time.perf_counter() - t)\n"
	"print(f'{sorted(ts)[2500]*1e6:7.1f} us median, {min(ts)*1e6:7.1f} us best, Python')";
static const char in_r[] =
	"ts <- numeric(5000)\n"
	"for (i in 1:5000) { t <- as.numeric(Sys.time()); add(1, 2); ts[i] <- "
	"as.numeric(Sys.time()) - t }\n"
	"cat(sprintf('%7.1f us median, %7.1f us best, R\\n', median(ts) * 1e6, min(ts) * 1e6))";
/* What a helper does once it runs, over and over in one process: the start is not the call's. */
static const char in_sh[] =
	"exec python3 - <<'E'\n"
	"import array, os, socket, time\n"
	"agent = socket.socket(fileno=os.dup(int(os.environ['CORDON_TOOLS_FD'])))\n"
	"def call():\n"
	" a, b = socket.socketpair()\n"
	" agent.sendmsg([b'8\\nadd\\x001\\x002\\x00'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
	"array.array('i', [b.fileno()]))])\n"
	" b.close()\n"
	" data = a.recv(100)\n"
	" while a.recv(100): pass\n"
	" a.close()\n"
	" assert data == b'R0 2 0\\n3\\n', data\n"
	"ts = []\n"
	"for i in range(2000):\n t = time.perf_counter(); call(); "
	"ts.append(time.perf_counter() - t)\n"
	"print(f'{sorted(ts)[1000]*1e6:7.1f} us median, {min(ts)*1e6:7.1f} us best, sh')\n"
	"E";

int main(void)
{
	struct cordon_error *e = NULL;
	struct cordon_tools *tools = NULL;
	struct cordon_tool tool = { .name = "add",
				    .fn = add,
				    .args_json = "{\"a\":\"number\",\"b\":\"number\"}" };
	char path[] = "/tmp/cordon-bench-XXXXXX";

	close(mkstemp(path));
	check(cordon_tools_new(&tools, &e), e, "tools");
	check(cordon_tools_add(tools, &tool, &e), e, "tool");
	for (int round = 0; round < 2; round++) {
		ping_pong();
		through_tool_calls(tools, NULL, "wire and tool calls");
		through_tool_calls(tools, path, "wire and tool calls, audited (2 events a call)");
	}
	for (int round = 0; round < 2; round++) {
		from_a_session(tools, "python", in_python, NULL);
		from_a_session(tools, "python", in_python, path);
		from_a_session(tools, "r", in_r, NULL);
		from_a_session(tools, "sh", in_sh, NULL);
	}
	unlink(path);
	cordon_tools_unref(tools);
	return 0;
}

/* inside/pod/runtime/bridge.c - see inside/pod/runtime/bridge.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/bridge.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inside/guests/sh/host_wire.h"
#include "inside/guests/sh/shell.h"
#include "inside/guests/sh/shell_check.h"
#include "inside/guests/sh/tools.h"
#include "inside/guests/sh/variables.h"
#include "inside/pod/runtime/agent.h"
#include "inside/pod/runtime/input.h"
#include "inside/pod/runtime/pod_seal.h"
#include "inside/pod/runtime/prelude.h"
#include "inside/pod/runtime/syntax.h"
#include "inside/pod/runtime/toolbox.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum { GRACE_MS = 2000, DENIALS_MAX = 64 };

struct bridge {
	struct agent agent;
	struct tools tools;
	struct bytes in; /* from the host */
	size_t scanned;  /* this much of it has no newline */
	struct bytes
		out; /* to the host, unsent: a host that has answers for us may not be reading */
	struct bytes welcome; /* kept, because the tools' descriptions are slices of it */
	struct bytes code;    /* of the running execution */
	struct bytes advice;  /* warnings about it: JSON strings */
	struct prelude prelude;
	char known_cwd[PATH_MAX]; /* as last reported to the host */
	char id[24];              /* of the running execution, as JSON; "": none */
	bool is_started;          /* its code runs; before that, its prelude runs */
	bool is_last;             /* its shell exits after it */
	bool is_restarted;        /* the shell was replaced since the execution began */
	int status;               /* of the last command */
	bool is_set_up;           /* the shell knows `history list` */
	bool is_listing;          /* what runs lists the exported variables */
	int listing;              /* a file for that list */
	char **base;              /* the environment that this program was started with */
	long interrupted_ms;      /* when; 0: not interrupted */
	bool is_told;             /* the host has sent an interrupt that is not handled yet */
	int force;                /* the strongest means used so far, enum agent_force */
	struct bytes denials;
	unsigned denial_count;
	struct input input;
	bool is_sealed;
	bool is_welcome;
};

void bridge_hello(const char *token, bool is_template)
{
	struct bytes b = { 0 };

	bytes_format(&b,
		     "{\"type\":\"hello\",\"version\":1,\"guest\":\"pod\","
		     "\"language\":\"bash\",\"template\":%s,\"token\":",
		     is_template ? "true" : "false");
	json_quote(&b, token, strlen(token));
	bytes_text(&b, "}\n");
	if (bytes_write(HOST_WIRE, b.data, b.len) < 0)
		_exit(0);
	bytes_done(&b);
}

/* ---- the end of an execution */

/* Denials for the result, each listed once: {"operation", "target", "count"}. */
static void on_denied(void *arg, const char *text)
{
	struct bridge *g = arg;
	const char *space = strchr(text, ' ');
	struct bytes b = { 0 };

	if (!g->id[0] || !space || g->denial_count >= DENIALS_MAX)
		return;
	bytes_text(&b, "{\"operation\":");
	json_quote(&b, text, (size_t)(space - text));
	bytes_text(&b, ",\"target\":");
	json_quote(&b, space + 1, strlen(space + 1));
	bytes_char(&b, '}');
	/* A repeated denial is not listed again. */
	if (!g->denials.len || !memmem(g->denials.data, g->denials.len, b.data, b.len)) {
		if (g->denial_count++)
			bytes_char(&g->denials, ',');
		bytes_add(&g->denials, b.data, b.len);
	}
	bytes_done(&b);
}

static void add_error(struct bytes *b, const char *kind, const char *name, const char *message)
{
	bytes_format(b, ",\"error\":{\"kind\":\"%s\",\"name\":\"%s\",\"message\":", kind, name);
	json_quote(b, message, strlen(message));
	bytes_char(b, '}');
}

/* "bash: line 1: ..." of the parser, without its name, and only the first line. */
static void add_syntax_error(struct bytes *b, struct bytes *said)
{
	char *text, *colon;

	bytes_char(said, 0);
	text = said->data;
	text[strcspn(text, "\n")] = 0;
	colon = strstr(text, ": line ");
	add_error(b, "syntax", "SyntaxError", colon ? colon + 2 : text);
}

static void explain(struct bridge *g, int status, struct bytes *b)
{
	struct bytes said = { 0 };
	char message[64];

	if (g->interrupted_ms)
		add_error(b, "interrupted", "interrupted", "The execution was interrupted");
	else if (status == 2 && shell_is_broken(g->code.data, g->code.len, &said))
		add_syntax_error(b, &said);
	else {
		snprintf(message, sizeof(message), "the command ended with status %d", status);
		add_error(b, "exception", "exit", message);
	}
	bytes_done(&said);
}

static void end_result(struct bridge *g, struct bytes *b)
{
	const char *cwd = g->agent.cwd;

	if (cwd[0] && strcmp(cwd, g->known_cwd) != 0) {
		snprintf(g->known_cwd, sizeof(g->known_cwd), "%s", cwd);
		bytes_text(b, ",\"cwd\":");
		json_quote(b, cwd, strlen(cwd));
	}
	if (g->advice.len) {
		bytes_text(b, ",\"warnings\":[");
		bytes_add(b, g->advice.data, g->advice.len);
		bytes_char(b, ']');
	}
	bytes_text(b, "}\n");
	tools_end(&g->tools);
	input_close(&g->input);
	g->id[0] = 0;
	g->interrupted_ms = 0;
	host_wire_say(&g->out, b);
	bytes_done(b);
}

/* The answer to what is exported. */
static void tell_exported(struct bridge *g)
{
	struct bytes b = { 0 }, said = { 0 }, records = { 0 };

	(void)lseek(g->listing, 0, SEEK_SET);
	while (said.len < VARIABLES_MAX && bytes_read(&said, g->listing) > 0)
		;
	variables_collect(said.data, said.len, &records);
	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":true,\"value\":{\"environment\":",
		     g->id);
	variables_compare(&records, g->base, &b);
	bytes_char(&b, '}');
	end_result(g, &b);
	bytes_done(&said);
	bytes_done(&records);
}

static void send_result(struct bridge *g, int status)
{
	struct bytes b = { 0 };

	if (g->interrupted_ms) {
		status = status ? status : 130;
		agent_end_jobs(&g->agent);
	}
	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":%s,\"exit_code\":%d", g->id,
		     status ? "false" : "true", status);
	if (g->is_restarted)
		bytes_text(&b, ",\"restarted\":true");
	if (g->denials.len) {
		bytes_text(&b, ",\"denials\":[");
		bytes_add(&b, g->denials.data, g->denials.len);
		bytes_char(&b, ']');
	}
	if (status)
		explain(g, status, &b);
	end_result(g, &b);
}

/* ---- the beginning of one */

/* Answers for code that was not run. */
static void refuse(struct bridge *g, const char *kind, const char *name, const char *message)
{
	struct bytes b = { 0 };

	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":false,\"exit_code\":2", g->id);
	add_error(&b, kind, name, message);
	end_result(g, &b);
}

/* The shell reads and runs line by line, so a syntax error further down would be found too late. */
static bool is_broken(struct bridge *g)
{
	struct bytes said = { 0 }, b = { 0 };
	const char *line = g->code.len ? memchr(g->code.data, '\n', g->code.len) : NULL;
	bool broken = line && line + 1 < g->code.data + g->code.len &&
		      shell_is_broken(g->code.data, g->code.len, &said);

	if (broken) {
		bytes_write(2, said.data, said.len);
		bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":false,\"exit_code\":2",
			     g->id);
		add_syntax_error(&b, &said);
		end_result(g, &b);
	}
	bytes_done(&said);
	return broken;
}

/* Runs the prelude, one command after the other, then the code. */
static void next_step(struct bridge *g)
{
	const int null = g->agent.process->fds[PRIVATE_NULL];
	const int nothing[3] = { null, null, null }, listing[3] = { null, g->listing, null };
	const int streams[3] = { g->input.guest, 1, 2 };

	if (g->agent.busy) /* the shell is being set up; on_done goes on */
		return;
	const char *step = prelude_next(&g->prelude);
	g->is_started = !step;
	if (step)
		agent_run(&g->agent, step, strlen(step), nothing);
	else if (g->is_listing)
		agent_run(&g->agent, g->code.data, g->code.len, listing);
	else if (agent_run(&g->agent, g->code.data, g->code.len, streams) < 0)
		refuse(g, "value", "ValueError", "command too large");
	else
		input_given(&g->input);
}

/* After the last execution the shell exits as at the end of a script: its EXIT trap runs and may
 * change the status. */
static void leave(struct bridge *g)
{
	const int streams[3] = { g->agent.process->fds[PRIVATE_NULL], 1, 2 };
	static const char text[] = "exit";

	g->is_last = false;
	agent_run(&g->agent, text, sizeof(text) - 1, streams);
}

/* Once in each shell. */
static void set_up(struct bridge *g)
{
	if (!g->is_set_up)
		prelude_set_up(&g->prelude);
	g->is_set_up = true;
}

/* The first shell is set up while nobody waits for it: that takes longer than many a command. One
 * that replaces another is set up with its first command, whose result says that it is new. */
static void on_ready(void *arg, const char *cwd)
{
	struct bridge *g = arg;
	const int null = g->agent.process->fds[PRIVATE_NULL], nothing[3] = { null, null, null };

	(void)cwd;
	g->is_set_up = false;
	if (g->agent.restarted || g->id[0])
		return;
	prelude_clear(&g->prelude);
	set_up(g);
	prelude_end(&g->prelude, 0);
	const char *step = prelude_next(&g->prelude);
	agent_run(&g->agent, step, strlen(step), nothing);
}

static void on_done(void *arg, int status, bool restarted, const char *cwd)
{
	struct bridge *g = arg;

	(void)cwd;
	g->is_restarted = g->is_restarted || restarted;
	g->is_set_up = g->is_set_up && !restarted;
	if (!g->id[0])
		return;
	if (!g->is_started && !g->interrupted_ms) {
		next_step(g);
		return;
	}
	if (g->is_listing && !g->is_restarted && !g->interrupted_ms) {
		tell_exported(g);
		return;
	}
	if (g->is_last && !g->is_restarted && !g->interrupted_ms) {
		leave(g);
		return;
	}
	g->status = status;
	send_result(g, status);
}

static void execute(struct bridge *g, struct json m)
{
	snprintf(g->id, sizeof(g->id), "%lu", json_number(json_get(m, "id"), 0));
	g->tools.id = g->id;
	g->tools.count = 0;
	g->interrupted_ms = 0;
	g->is_told = g->is_started = g->is_restarted = g->is_listing = false;
	g->denials.len = g->code.len = g->advice.len = 0;
	g->denial_count = 0;
	prelude_clear(&g->prelude);
	set_up(g);
	json_string(json_get(m, "code"), &g->code);
	bool validates = json_kind(json_get(m, "validate")) == 't';
	g->is_last = json_kind(json_get(m, "last")) == 't';
	if (g->code.len && memchr(g->code.data, 0, g->code.len)) {
		refuse(g, "syntax", "ValueError", "the code contains a NUL");
	} else if (!prelude_fill(&g->prelude, m, g->status)) {
		refuse(g, "value", "ValueError",
		       "a name in context or env is no name of a shell variable");
	} else if (!validates || !is_broken(g)) {
		if (validates)
			shell_check_advice(g->code.data, g->code.len, &g->advice);
		input_open(&g->input, json_get(m, "stdin"), g->agent.process->fds[PRIVATE_NULL]);
		next_step(g);
	}
}

/* Which variables the code has exported, with the host's latest changes. */
static void list_exported(struct bridge *g, struct json m)
{
	char last[PRELUDE_LEAVE_BYTES];

	prelude_leave(g->status, last);
	bytes_format(&g->code, "%s\nhistory -d -1 2>/dev/null\n%s", VARIABLES_CODE, last);
	g->is_listing = true;
	g->is_last = false;
	prelude_clear(&g->prelude);
	prelude_fill(&g->prelude, m, g->status);
	if (g->listing < 0 || ftruncate(g->listing, 0) < 0 || lseek(g->listing, 0, SEEK_SET) < 0)
		refuse(g, "value", "ValueError", "there is no file for the list");
	else
		next_step(g);
}

/* What a prompt asks about code that does not run. Names are not looked for. */
static void inspect(struct bridge *g, struct json m)
{
	bool asks_status = json_is(json_get(m, "question"), "is_complete");
	struct bytes b = { 0 };

	snprintf(g->id, sizeof(g->id), "%lu", json_number(json_get(m, "id"), 0));
	g->denials.len = g->code.len = g->advice.len = 0;
	g->denial_count = 0;
	g->interrupted_ms = 0;
	g->is_told = g->is_started = g->is_restarted = g->is_listing = false;
	if (json_is(json_get(m, "question"), "environment")) {
		list_exported(g, m);
		return;
	}
	json_string(json_get(m, "code"), &g->code);
	const char *status = asks_status ? shell_check_status(g->code.data, g->code.len) : NULL;
	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":true,\"value\":{", g->id);
	bytes_format(&b, status ? "\"status\":\"%s\"}" : "\"matches\":[]}", status);
	end_result(g, &b);
}

/* ---- the session's own */

/* PYTHONPATH with the tools' packages at its end, once; all has room for one more entry. */
static void add_packages(char **all, size_t n)
{
	struct bytes b = { 0 };
	size_t i = 0;

	while (i < n && strncmp(all[i], "PYTHONPATH=", 11) != 0)
		i++;
	if (i < n && strstr(all[i], TOOLBOX_PACKAGES)) /* of a session that this one continues */
		return;
	bytes_format(&b, "%s%s", i < n ? all[i] : "PYTHONPATH=",
		     i < n && all[i][11] ? ":" TOOLBOX_PACKAGES : TOOLBOX_PACKAGES);
	bytes_char(&b, 0);
	all[i] = b.data;
}

/* The environment of the session's shells: what we were started with, and what the host adds. */
static int make_environment(struct bridge *g, char **envp, struct json added)
{
	size_t count = 0, n = 0;
	const char *at = NULL;
	struct json key, value;
	char **all;

	while (envp[count])
		count++;
	while (json_kind(added) == '{' && json_each(added, &at, &key, &value))
		count++;
	all = calloc(count + 2, sizeof *all);
	if (!all)
		return -ENOMEM;
	for (at = NULL; json_kind(added) == '{' && json_each(added, &at, &key, &value);) {
		struct bytes b = { 0 };

		if (json_kind(value) == 'n' || json_kind(value) == 'f')
			continue;
		json_string(key, &b);
		bytes_char(&b, '=');
		prelude_text(value, &b);
		bytes_char(&b, 0);
		all[n++] = b.data;
	}
	for (char **e = envp; *e; e++) {
		size_t len = strcspn(*e, "=") + 1, i = 0;

		while (i < n && strncmp(all[i], *e, len) != 0)
			i++;
		if (i == n)
			all[n++] = *e;
	}
	g->agent.envp = all;
	if (g->agent.process->fds[PRIVATE_PACKAGES] >= 0)
		add_packages(all, n);
	return 0;
}

/* Closed in the shell, as all descriptors of the agent are. */
static int listing_file(void)
{
	int fd = (int)syscall(SYS_memfd_create, "variables", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 ? open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : fd;
}

/* The tools and environment of this session are known now. Guest code runs soon, so the filter is
 * loaded first. */
static void welcome(struct bridge *g, const char *line, size_t len, char **envp)
{
	bytes_add(&g->welcome, line, len);
	struct json m = { g->welcome.data, g->welcome.len }, o = json_get(m, "guest_options");
	int tools_fd = -1;

	g->is_welcome = true;
	g->base = envp;
	g->prelude.base = envp;
	g->listing = listing_file();
	g->tools.specs = json_get(o, "tools");
	g->tools.message_bytes = json_number(json_get(o, "message_bytes"), 1u << 20);
	g->tools.out = &g->out;
	if (tools_open(&g->tools, &tools_fd) < 0 ||
	    toolbox_fill(g->agent.process, g->tools.specs, tools_fd) < 0 ||
	    make_environment(g, envp, json_get(o, "env")) < 0 || agent_open(&g->agent) < 0 ||
	    (g->is_sealed && seal_install(g->agent.process->gateway_port != 0)) ||
	    agent_start(&g->agent) < 0)
		_exit(125);
}

static void take_line(struct bridge *g, const char *line, size_t len, char **envp)
{
	struct json m = { line, len };

	if (!json_check(line, len))
		_exit(125);
	struct json type = json_get(m, "type");
	if (json_is(type, "execute") && g->is_welcome && !g->id[0])
		execute(g, m);
	else if (json_is(type, "inspect") && g->is_welcome && !g->id[0])
		inspect(g, m);
	else if (json_is(type, "welcome") && !g->is_welcome)
		welcome(g, line, len, envp);
	else if (json_is(type, "tool_result"))
		tools_answer(&g->tools, m);
	else if (json_is(type, "interrupt")) /* one that comes too late is ignored */
		g->is_told |=
			g->id[0] && json_number(json_get(m, "id"), 0) == strtoul(g->id, NULL, 10);
	else if (json_is(type, "exit"))
		_exit(0);
}

static void from_host(struct bridge *g, char **envp)
{
	size_t done = 0, from = g->scanned;

	if (bytes_read(&g->in, HOST_WIRE) <= 0)
		_exit(0); /* the whole sandbox ends with us */
	for (char *end;
	     from < g->in.len && (end = memchr(g->in.data + from, '\n', g->in.len - from));) {
		size_t len = (size_t)(end - g->in.data) - done;

		take_line(g, g->in.data + done, len, envp);
		done += len + 1;
		from = done;
	}
	bytes_drop(&g->in, done);
	g->scanned = g->in.len;
}

/* An interrupted command has two seconds to end, then its jobs are killed; after two more seconds
 * the shell is replaced. A second interrupt skips the wait. */
static void look_after_interrupt(struct bridge *g)
{
	bool is_new = g->is_told && g->id[0];

	g->is_told = false;
	if (is_new && !g->interrupted_ms) {
		g->interrupted_ms = host_now_ms();
		g->force = AGENT_ASK;
		agent_interrupt(&g->agent, AGENT_ASK);
		return;
	}
	if (!g->interrupted_ms)
		return;
	if (host_now_ms() - g->interrupted_ms > (g->force + 1L) * GRACE_MS)
		g->force += g->force < AGENT_END_ALL;
	else if (is_new && g->force < AGENT_END_JOBS)
		g->force = AGENT_END_JOBS;
	else
		return;
	agent_interrupt(&g->agent, (enum agent_force)g->force);
}

enum {
	P_WIRE,
	P_INPUT,
	P_AGENT,
	P_TOOLS = P_AGENT + AGENT_FDS,
	P_COUNT = P_TOOLS + 1 + TOOLS_CALLS
};

static int serve_once(struct bridge *g, char **envp)
{
	struct timespec grace = { 0, 100000000L };
	struct pollfd fds[P_COUNT];
	size_t tools = 0;
	sigset_t none;
	int r = 0;

	sigemptyset(&none);
	fds[P_WIRE] = (struct pollfd){ .fd = HOST_WIRE,
				       .events = g->out.len ? POLLIN | POLLOUT : POLLIN };
	fds[P_INPUT] = input_poll(&g->input);
	agent_poll(&g->agent, fds + P_AGENT);
	if (g->is_welcome)
		tools = tools_poll(&g->tools, fds + P_TOOLS);
	int n = ppoll(fds, P_TOOLS + tools, g->interrupted_ms ? &grace : NULL, &none);
	if (n <= 0) {
		look_after_interrupt(g);
		return 0;
	}
	if (g->is_welcome)
		r = agent_attend(&g->agent, fds + P_AGENT);
	if (tools)
		tools_serve(&g->tools, fds + P_TOOLS, tools);
	if (fds[P_INPUT].revents)
		input_feed(&g->input);
	if (fds[P_WIRE].revents & ~POLLOUT)
		from_host(g, envp);
	look_after_interrupt(g);
	host_wire_flush(&g->out);
	return r;
}

int bridge_serve(struct w2c_sys *p, char **envp, const char *token, bool is_sealed)
{
	static struct bridge g;
	int r = 0;

	g = (struct bridge){ .agent = { .process = p,
					.front = { on_ready, on_done, on_denied, &g },
					.channel = -1,
					.denials = -1,
					.shell_fd = -1 },
			     .input = INPUT_NONE,
			     .is_sealed = is_sealed };
	syntax_use(p);
	strcpy(g.known_cwd, "/home/user");
	host_catch_signals(false);
	fcntl(HOST_WIRE, F_SETFD, FD_CLOEXEC);
	bridge_hello(token, false);
	while (r == 0)
		r = serve_once(&g, envp);
	return 125; /* a session without its shell is over: the host replaces it */
}

/* inside/guests/sh/cordon_sh.c - the shell guest: uses the wire (docs/wire.md) on descriptor 3 and
 * controls a bash. Static, without dependencies, because it is the first program of a session.
 *
 *   cordon-sh                   one session
 *   cordon-sh --tool NAME ...   a tool as a command (also if started under the tool's name)
 *   cordon-sh --validate        checks the code on stdin, runs nothing */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/guests/sh/host_wire.h"
#include "inside/guests/sh/shell.h"
#include "inside/guests/sh/shell_check.h"
#include "inside/guests/sh/tool_process.h"
#include "inside/guests/sh/tools.h"
#include "inside/guests/sh/variables.h"

#define GRACE_MS 2000 /* from an interrupt to the forced end */

struct agent {
	struct shell shell;
	struct tools tools;
	struct bytes in;   /* from the wire */
	size_t in_scanned; /* this much of it has no newline */
	struct bytes
		out; /* to the wire, unsent: a host that has answers for us may not be reading */
	struct bytes welcome; /* kept, because the tools' descriptions are slices of it */
	struct bytes id;      /* of the running execution, as JSON, NUL-terminated; empty: none */
	struct bytes queued;  /* an execution that waits for a starting shell */
	bool is_shell_new;    /* the one before has died: the next result tells */
	struct bytes stopped; /* id of the execution that the host interrupted last, as JSON */
	struct bytes code;    /* of the running execution */
	bool is_asked;        /* what runs looks for names that `code` may go on with */
	bool is_listing;      /* or for exported variables */
	struct bytes advice;  /* warnings about it: JSON strings */
	char token[HOST_TOKEN_DIGITS + 1];
	bool greeted, welcomed;
	long interrupted_ms; /* when; 0: not interrupted */
	bool insisted;       /* for the second time */
	char self[4096];
	char known_cwd[4096]; /* as last reported to the host */
};

static void hello(struct agent *a)
{
	struct bytes b = { 0 };

	(void)bytes_room(&b, 1024); /* so that it is not copied as it grows */
	bytes_text(&b, "{\"type\":\"hello\",\"version\":1,\"token\":\"");
	bytes_text(&b, a->token);
	bytes_text(&b, "\",\"guest\":\"sh\",\"language\":");
	json_quote(&b, a->shell.version, strlen(a->shell.version));
	bytes_text(&b, "}\n");
	host_wire_say(&a->out, &b);
	explicit_bzero(b.data, b.cap); /* the code must not find the token in memory */
	bytes_done(&b);
	explicit_bzero(a->token, sizeof(a->token));
	a->greeted = true;
}

/* ---- the end of an execution */

static void say_result(struct agent *a, struct bytes *b)
{
	if (a->advice.len) {
		bytes_text(b, ",\"warnings\":[");
		bytes_add(b, a->advice.data, a->advice.len);
		bytes_char(b, ']');
	}
	if (a->shell.denied.len) {
		bytes_text(b, ",\"denials\":[");
		bytes_add(b, a->shell.denied.data, a->shell.denied.len);
		bytes_char(b, ']');
		a->shell.denied.len = 0;
	}
	if (a->shell.cwd[0] && strcmp(a->shell.cwd, a->known_cwd) != 0) {
		snprintf(a->known_cwd, sizeof(a->known_cwd), "%s", a->shell.cwd);
		bytes_text(b, ",\"cwd\":");
		json_quote(b, a->known_cwd, strlen(a->known_cwd));
	}
	if (a->is_shell_new)
		bytes_text(b, ",\"restarted\":true");
	a->is_shell_new = false;
	bytes_text(b, "}\n");
	tools_end(&a->tools);
	a->id.len = 0;
	a->interrupted_ms = 0;
	host_wire_say(&a->out, b);
	bytes_done(b);
}

static void result(struct agent *a, int status, bool gone)
{
	struct bytes b = { 0 };
	const char *kind = "exception", *name = "exit";
	char message[128];
	snprintf(message, sizeof(message), "the command ended with status %d", status);
	if (a->interrupted_ms) {
		kind = name = "interrupted";
		snprintf(message, sizeof(message), "The execution was interrupted");
		status = status ? status : 130;
	} else if (gone && status > 128) {
		snprintf(message, sizeof(message), "the shell was ended by signal %d",
			 status - 128);
	} else if (status == 2) {
		struct bytes said = { 0 };
		if (shell_is_broken(a->code.data, a->code.len, &said)) {
			kind = "syntax";
			name = "SyntaxError";
			snprintf(message, sizeof(message), "the code has a syntax error");
		}
		bytes_done(&said);
	}
	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":%s,\"exit_code\":%d", a->id.data,
		     status ? "false" : "true", status);
	if (status)
		bytes_format(&b, ",\"error\":{\"kind\":\"%s\",\"name\":\"%s\",\"message\":\"%s\"}",
			     kind, name, message);
	say_result(a, &b);
}

/* ---- the beginning of one */

static bool is_name(const char *s)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	return *s && !strchr("0123456789", *s) && strspn(s, letters) == strlen(s);
}

/* A value as one shell word: strings unchanged, tagged forms as their text, the rest as JSON. */
static void word(struct json v, struct bytes *ret)
{
	struct bytes text = { 0 };
	struct json tagged = json_get(v, "v");
	if (json_kind(v) == '"')
		json_string(v, &text);
	else if (json_kind(json_get(v, "$")) == '"' && json_kind(tagged) == '"' &&
		 !json_is(json_get(v, "$"), "bytes"))
		json_string(tagged, &text);
	else if (json_kind(v) != 'n')
		bytes_add(&text, v.at, v.len);
	bytes_shell(ret, text.data, text.len);
	if (text.len && memchr(text.data, 0, text.len))
		bytes_char(ret, 0); /* execute() refuses it */
	bytes_done(&text);
}

/* name=value; a list becomes an array, a map an associative array. */
static void variable(const char *name, struct json v, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, item;
	char kind = json_kind(v);
	if (kind == '{' && json_get(v, "$").len) {
		struct json form = json_get(v, "$"), inner = json_get(v, "v");
		bool list = json_is(form, "tuple") || json_is(form, "set") || json_is(form, "vec");
		if (list) {
			v = inner;
			kind = '[';
		}
	}
	if ((kind != '[' && kind != '{') || json_get(v, "$").len) {
		bytes_format(ret, "%s=", name);
		word(v, ret);
		bytes_char(ret, '\n');
		return;
	}
	bytes_format(ret, "unset %s; declare -%c %s=(", name, kind == '[' ? 'a' : 'A', name);
	while (json_each(v, &at, &key, &item)) {
		if (kind == '{') {
			bytes_char(ret, '[');
			word(key, ret);
			bytes_text(ret, "]=");
		}
		word(item, ret);
		bytes_char(ret, ' ');
	}
	bytes_text(ret, ")\n");
}

/* Sets a script's arguments: $1 and so on. */
static void positional(struct json list, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, v;
	bytes_text(ret, "set --");
	while (json_each(list, &at, &key, &v)) {
		bytes_char(ret, ' ');
		word(v, ret);
	}
	bytes_char(ret, '\n');
}

/* null: unset; false: what the session began with. */
static void exported(const char *name, struct json v, struct bytes *ret)
{
	char kind = json_kind(v);
	const char *base = kind == 'f' ? variables_base(environ, name) : NULL;
	if (kind == 'n' || (kind == 'f' && !base)) {
		bytes_format(ret, "unset %s\n", name);
		return;
	}
	bytes_format(ret, "export %s=", name);
	if (base)
		bytes_shell(ret, base, strlen(base));
	else
		word(v, ret);
	bytes_char(ret, '\n');
}

/* Commands that set variables and change the environment; false: an invalid name. */
static bool prelude(struct json m, struct bytes *ret)
{
	const char *const fields[] = { "env", "context" };
	bool ok = true;
	if (json_kind(json_get(m, "directory")) == '"') {
		bytes_text(ret, "cd -- ");
		word(json_get(m, "directory"), ret);
		bytes_text(ret, " 2> /dev/null || :\n");
	}
	if (json_kind(json_get(m, "args")) == '[')
		positional(json_get(m, "args"), ret);
	/* Waits until the host has opened its end; `builtin exec` would not keep it open. */
	if (json_kind(json_get(m, "stdin")) == '"') {
		bytes_format(ret, "exec %d< ", shell_input_fd());
		word(json_get(m, "stdin"), ret);
		bytes_text(ret, " || :\n");
	}
	for (int i = 0; i < 2; i++) {
		const char *at = NULL;
		struct json key, v;
		while (json_each(json_get(m, fields[i]), &at, &key, &v)) {
			struct bytes name = { 0 };
			json_string(key, &name);
			bytes_char(&name, 0);
			if (!is_name(name.data))
				ok = false;
			else if (i == 1)
				variable(name.data, v, ret);
			else
				exported(name.data, v, ret);
			bytes_done(&name);
		}
	}
	return ok;
}

/* Answers for code that was not run. */
static void refuse(struct agent *a, const char *kind, const char *name, const char *message)
{
	struct bytes b = { 0 };
	bytes_format(&b,
		     "{\"type\":\"result\",\"id\":%s,\"ok\":false,\"exit_code\":2,\"error\":"
		     "{\"kind\":\"%s\",\"name\":\"%s\",\"message\":",
		     a->id.data, kind, name);
	json_quote(&b, message, strlen(message));
	bytes_char(&b, '}');
	say_result(a, &b);
}

/* The shell reads and runs line by line, so a syntax error further down would be found too late. */
static bool is_broken(struct agent *a)
{
	struct bytes said = { 0 };
	const char *line = a->code.len ? memchr(a->code.data, '\n', a->code.len) : NULL;
	bool broken = line && line + 1 < a->code.data + a->code.len &&
		      shell_is_broken(a->code.data, a->code.len, &said);
	if (broken) {
		bytes_write(2, said.data, said.len);
		bytes_char(&said, 0);
		said.data[strcspn(said.data, "\n")] = 0;
		refuse(a, "syntax", "SyntaxError", said.data);
	}
	bytes_done(&said);
	return broken;
}

static void interrupt(struct agent *a)
{
	bool is_wanted = a->stopped.len + 1 == a->id.len &&
			 !memcmp(a->stopped.data, a->id.data, a->stopped.len);

	if (!is_wanted || (a->interrupted_ms && a->insisted))
		return;
	a->insisted = a->interrupted_ms != 0; /* asked again: a trap of the code is not run */
	if (!a->interrupted_ms)
		a->interrupted_ms = host_now_ms();
	shell_interrupt(&a->shell);
}

static void execute(struct agent *a, struct json m)
{
	struct bytes before = { 0 };
	struct json id = json_get(m, "id");
	a->id.len = a->code.len = a->advice.len = 0;
	bytes_add(&a->id, id.len ? id.at : "0", id.len ? id.len : 1);
	bytes_char(&a->id, 0);
	a->tools.id = a->id.data;
	a->tools.count = 0;
	a->interrupted_ms = 0;
	json_string(json_get(m, "code"), &a->code);
	if (!a->code.len)
		bytes_char(&a->code, '\n');
	bool validates = json_kind(json_get(m, "validate")) == 't';
	if (!prelude(m, &before)) {
		refuse(a, "value", "ValueError",
		       "a name in context or env is no name of a shell variable");
	} else if (before.len && memchr(before.data, 0, before.len)) {
		refuse(a, "value", "ValueError",
		       "a text in context or env has a NUL, which no shell variable can hold");
	} else if (a->code.len && memchr(a->code.data, 0, a->code.len)) {
		refuse(a, "syntax", "ValueError", "the code contains a NUL");
	} else if (!validates || !is_broken(a)) {
		if (validates)
			shell_check_advice(a->code.data, a->code.len, &a->advice);
		if (shell_run(&a->shell, &before, a->code.data, a->code.len) < 0)
			shell_end(&a->shell, SIGKILL);
		interrupt(a);
	}
	bytes_done(&before);
}

/* ---- what a prompt asks */

/* The word at the end of the code that names may continue. */
static const char *last_word(const struct bytes *code, size_t *ret_len)
{
	size_t at = code->len;
	while (at && !strchr(" \t\n;&|()<>\"'`={}", code->data[at - 1]) &&
	       (at == code->len || code->data[at] != '$'))
		at--;
	*ret_len = code->len - at;
	return code->data + at;
}

static void answer(struct agent *a, const char *status)
{
	struct bytes b = { 0 };
	size_t len = 0;
	const char *word = a->code.len ? last_word(&a->code, &len) : "";
	bytes_format(&b, "{\"type\":\"result\",\"id\":%s,\"ok\":true,\"value\":{", a->id.data);
	if (a->is_listing) {
		bytes_text(&b, "\"environment\":");
		variables_compare(&a->shell.variables, environ, &b);
		bytes_char(&b, '}');
	} else if (status) {
		bytes_format(&b, "\"status\":\"%s\"}", status);
	} else {
		const char *p = a->shell.names.data, *end = p + a->shell.names.len;
		bytes_text(&b, "\"token\":");
		json_quote(&b, word, len);
		bytes_text(&b, ",\"matches\":[");
		for (const char *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p)));
		     p = nl + 1) {
			json_quote(&b, p, (size_t)(nl - p));
			bytes_char(&b, ',');
		}
		json_quote(&b, p, (size_t)(end - p)); /* the last, or none */
		bytes_text(&b, "]}");
	}
	a->is_asked = a->is_listing = false;
	say_result(a, &b);
}

/* Which variables the code has exported, with the host's latest changes. */
static void list_exported(struct agent *a, struct json m)
{
	struct bytes before = { 0 };
	prelude(m, &before);
	a->is_asked = a->is_listing = true;
	if (shell_list_exported(&a->shell, &before) < 0)
		shell_end(&a->shell, SIGKILL);
	bytes_done(&before);
}

static void inspect(struct agent *a, struct json m)
{
	struct json id = json_get(m, "id");
	size_t len = 0;
	a->id.len = a->code.len = a->advice.len = 0;
	bytes_add(&a->id, id.len ? id.at : "0", id.len ? id.len : 1);
	bytes_char(&a->id, 0);
	a->interrupted_ms = 0;
	a->shell.names.len = 0;
	json_string(json_get(m, "code"), &a->code);
	if (json_is(json_get(m, "question"), "is_complete")) {
		answer(a, shell_check_status(a->code.data, a->code.len));
		return;
	}
	if (json_is(json_get(m, "question"), "environment")) {
		list_exported(a, m);
		return;
	}
	const char *word = a->code.len ? last_word(&a->code, &len) : "";
	a->is_asked = true;
	if (!len)
		answer(a, NULL);
	else if (shell_complete(&a->shell, word, len) < 0)
		shell_end(&a->shell, SIGKILL);
}

static void begin(struct agent *a, struct json m)
{
	if (json_is(json_get(m, "type"), "inspect"))
		inspect(a, m);
	else
		execute(a, m);
}

static void welcome(struct agent *a, const char *line, size_t len)
{
	bytes_add(&a->welcome, line, len);
	struct json m = { a->welcome.data, a->welcome.len }, o = json_get(m, "guest_options");
	a->tools.specs = json_get(o, "tools");
	a->tools.message_bytes = json_number(json_get(o, "message_bytes"), 1u << 20);
	tools_functions(&a->tools, a->self, &a->shell.setup);
	struct bytes env = { 0 };
	prelude(o, &env);
	bytes_add(&a->shell.setup, env.data, env.len);
	bytes_done(&env);
	a->welcomed = true;
	if (a->shell.setup.len) {
		a->shell.restoring = true;
		shell_run(&a->shell, &a->shell.setup, "", 0);
	}
}

/* ---- the wire */

static void message(struct agent *a, const char *line, size_t len)
{
	if (!json_check(line, len))
		return;
	struct json m = { line, len }, type = json_get(m, "type");
	if (json_is(type, "welcome") && !a->welcomed) {
		welcome(a, line, len);
	} else if (json_is(type, "tool_result")) {
		tools_answer(&a->tools, m);
	} else if (json_is(type, "interrupt")) {
		struct json id = json_get(m, "id");
		a->stopped.len = 0;
		bytes_add(&a->stopped, id.at, id.len);
		interrupt(a); /* a queued one is interrupted when it begins; one that has ended
				 never */
	} else if (json_is(type, "exit")) {
		shell_end(&a->shell, SIGTERM);
		_exit(0);
	} else if ((json_is(type, "execute") || json_is(type, "inspect")) && !a->id.len) {
		if (a->shell.ready && !a->shell.restoring)
			begin(a, m);
		else /* the shell has not started yet */
			bytes_add(&a->queued, line, len);
	}
}

static void read_wire(struct agent *a)
{
	if (bytes_read(&a->in, HOST_WIRE) <= 0) {
		shell_end(&a->shell, SIGKILL);
		_exit(0);
	}
	size_t done = 0, from = a->in_scanned;
	for (char *nl; (nl = memchr(a->in.data + from, '\n', a->in.len - from));) {
		size_t len = (size_t)(nl - a->in.data) - done;
		message(a, a->in.data + done, len);
		done += len + 1;
		from = done;
	}
	bytes_drop(&a->in, done);
	a->in_scanned = a->in.len;
}

/* ---- the shell */

static void shell_ready(struct agent *a)
{
	if (!a->greeted)
		hello(a);
	else if (a->shell.restoring)
		a->shell.restoring = false;
	else if (a->is_asked)
		answer(a, NULL);
	else if (a->id.len)
		result(a, a->shell.status, false);
	if (a->queued.len && a->welcomed && !a->shell.restoring) {
		struct bytes line = a->queued;
		a->queued = (struct bytes){ 0 };
		begin(a, (struct json){ line.data, line.len });
		bytes_done(&line);
	}
}

static void shell_gone(struct agent *a)
{
	static int in_a_row;
	if (!a->greeted || (a->shell.restoring && ++in_a_row > 3)) {
		fprintf(stderr, "cordon-sh: the shell cannot be started\n");
		_exit(127);
	}
	if (!a->shell.restoring)
		in_a_row = 0;
	int status = a->shell.status;
	a->is_shell_new = true;
	a->is_asked = a->is_listing = false;
	if (a->id.len)
		result(a, status, true);
	if (shell_again(&a->shell) < 0)
		_exit(127);
}

/* Ends by force what ignores the interrupt. */
static void insist(struct agent *a)
{
	long passed = a->interrupted_ms ? host_now_ms() - a->interrupted_ms : 0;
	if (passed > GRACE_MS)
		shell_end(&a->shell, SIGKILL);
	else if (passed > GRACE_MS / 2 && !a->insisted)
		shell_interrupt(&a->shell);
	a->insisted |= passed > GRACE_MS / 2;
}

static void loop(struct agent *a)
{
	struct pollfd fds[3 + TOOLS_CALLS];
	sigset_t open_mask;
	sigemptyset(&open_mask);
	for (;;) {
		fds[0] = (struct pollfd){ .fd = HOST_WIRE,
					  .events = a->out.len ? POLLIN | POLLOUT : POLLIN };
		fds[1] = (struct pollfd){ .fd = a->shell.report_fd, .events = POLLIN };
		size_t n = tools_poll(&a->tools, fds + 2);
		struct timespec grace = { 0, 100000000L };
		int r = ppoll(fds, n + 2, a->interrupted_ms ? &grace : NULL, &open_mask);
		insist(a);
		if (r > 0 && fds[1].revents & POLLIN)
			while (shell_report(&a->shell) == SHELL_DONE)
				shell_ready(a);
		if (shell_reap(&a->shell))
			shell_gone(a);
		if (r > 0)
			tools_serve(&a->tools, fds + 2, n);
		if (a->out.len)
			host_wire_flush(&a->out);
		if (r > 0 && fds[0].revents & ~POLLOUT)
			read_wire(a);
	}
}

/* ---- starting */

static void name_stdin(void)
{
	struct stat st;
	char text[64];
	if (fstat(0, &st) < 0)
		return;
	snprintf(text, sizeof(text), "%lu:%lu", (unsigned long)st.st_dev, (unsigned long)st.st_ino);
	setenv("CORDON_STDIN", text, 1);
}

static int session(void)
{
	static struct agent a;
	int tools_fd;
	host_take_token(a.token);
	ssize_t n = readlink("/proc/self/exe", a.self, sizeof(a.self) - 1);
	if (n <= 0)
		snprintf(a.self, sizeof(a.self), "/run/cordon/cordon-sh");
	fcntl(HOST_WIRE, F_SETFD, FD_CLOEXEC);
	name_stdin();
	host_catch_signals(true);
	a.tools.out = &a.out;
	if (tools_open(&a.tools, &tools_fd) < 0 || shell_start(&a.shell, a.self, tools_fd) < 0) {
		fprintf(stderr, "cordon-sh: %s\n", strerror(errno));
		return 127;
	}
	loop(&a);
	return 0;
}

int main(int argc, char **argv)
{
	const char *base = argc ? strrchr(argv[0], '/') : NULL;
	base = base ? base + 1 : argc ? argv[0] : "cordon-sh";
	if (strcmp(base, "cordon-sh") != 0 && strcmp(base, "cordon_sh") != 0)
		return tool_process_main(base, argc - 1, argv + 1);
	if (argc >= 3 && !strcmp(argv[1], "--tool"))
		return tool_process_main(argv[2], argc - 3, argv + 3);
	if (argc == 2 && !strcmp(argv[1], "--validate"))
		return shell_check_main();
	return session();
}

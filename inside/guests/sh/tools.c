/* inside/guests/sh/tools.c - see tools.h. The agent's side: serves helpers and uses the wire for
 * them. */
#include "inside/guests/sh/tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inside/guests/sh/tool_command.h"

#define INPUT_MAX (64u << 20)

int tools_open(struct tools *t, int *ret_fd)
{
	int pair[2];
	for (size_t i = 0; i < TOOLS_CALLS; i++)
		t->calls[i].fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	t->listen_fd = pair[0];
	*ret_fd = pair[1];
	return 0;
}

/* Names that the shell does not look up in PATH. */
static bool is_builtin(const char *name)
{
	static const char list[] =
		" . : [ alias bg bind break builtin caller cd command compgen complete compopt "
		"continue declare dirs disown echo enable eval exec exit export false fc fg "
		"getopts hash help history jobs kill let local logout mapfile popd printf pushd "
		"pwd read readarray readonly return set shift shopt source suspend test times "
		"trap true type typeset ulimit umask unalias unset wait ";
	char word[64];
	snprintf(word, sizeof(word), " %s ", name);
	return strstr(list, word) != NULL;
}

/* Whether the host put a program of this name into PATH. */
static bool is_program(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "/run/cordon/bin/%s", name);
	return access(path, X_OK) == 0;
}

void tools_functions(const struct tools *t, const char *self, struct bytes *ret)
{
	const char *at = NULL;
	struct json key, spec;
	struct bytes names = { 0 };
	while (json_each(t->specs, &at, &key, &spec)) {
		json_string(json_get(spec, "name"), &names);
		bytes_char(&names, 0);
	}
	if (names.len && !tool_command_find(t->specs, "extensions").len)
		bytes_add(&names, "extensions", sizeof("extensions"));
	for (const char *n = names.data; n && n < names.data + names.len; n += strlen(n) + 1) {
		/* The host has checked the name; here it only must be safe as a function's name. */
		if (strspn(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") !=
		    strlen(n))
			continue;
		bytes_format(ret, "unalias %s 2>/dev/null\n", n);
		if (is_program(n) && !is_builtin(n))
			continue;
		bytes_format(ret, "function %s { ", n);
		bytes_shell(ret, self, strlen(self));
		bytes_format(ret, " --tool %s \"$@\"; }\nexport -f %s\n", n, n);
	}
	bytes_done(&names);
}

size_t tools_poll(struct tools *t, struct pollfd *ret)
{
	size_t n = 0;
	ret[n++] = (struct pollfd){ .fd = t->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < TOOLS_CALLS; i++)
		if (t->calls[i].fd >= 0)
			ret[n++] = (struct pollfd){ .fd = t->calls[i].fd,
						    .events = t->calls[i].waiting ? 0 : POLLIN };
	return n;
}

static void drop(struct tools_call *c)
{
	close(c->fd);
	bytes_done(&c->in);
	*c = (struct tools_call){ .fd = -1 };
}

static void reply(struct tools_call *c, int status, const struct bytes *out,
		  const struct bytes *err)
{
	struct bytes all = { 0 }; /* in one piece, so that the helper wakes up once */
	bytes_format(&all, "R%d %zu %zu\n", status, out->len, err->len);
	bytes_add(&all, out->data, out->len);
	bytes_add(&all, err->data, err->len);
	bytes_write(c->fd, all.data, all.len);
	bytes_done(&all);
	drop(c);
}

static void fail(struct tools_call *c, const char *name, const char *why)
{
	struct bytes out = { 0 }, err = { 0 };
	bytes_format(&err, "%s: %s\n", name, why);
	reply(c, 1, &out, &err);
	bytes_done(&err);
}

static void take_call(struct tools *t, struct tools_call *c);

/* A helper sends one end of its own socket, together with its call or, if that is large, one
 * byte. */
static void accept_helper(struct tools *t)
{
	static char data[16384];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(t->listen_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return;
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	for (size_t i = 0; i < TOOLS_CALLS; i++) {
		if (t->calls[i].fd < 0) {
			t->calls[i] = (struct tools_call){ .fd = fd };
			if (n > 1) {
				bytes_add(&t->calls[i].in, data, (size_t)n);
				take_call(t, &t->calls[i]);
			}
			return;
		}
	}
	struct tools_call busy = { .fd = fd };
	fail(&busy, "cordon", "too many tool calls at once");
}

struct words {
	char *v[4096];
	size_t n;
};

/* Splits the first part into NUL-terminated words in place; the first is the tool's name. */
static bool split(char *data, size_t len, struct words *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < len && ret->n < sizeof(ret->v) / sizeof(ret->v[0]);
	     i += strlen(data + i) + 1)
		ret->v[ret->n++] = data + i;
	return ret->n && len && !data[len - 1];
}

/* Splits "LENGTH\n", that many bytes, and the rest; without them there is no context. */
static struct json take_context(const struct tools_call *c, struct json *input)
{
	struct json context = { 0 };
	char *nl = c->has_context && input->len ? memchr(input->at, '\n', input->len) : NULL;
	if (!nl)
		return context;
	size_t head = (size_t)(nl - input->at) + 1, len = strtoul(input->at, NULL, 10);
	if (len == 0 || len > input->len - head || input->at[head + len - 1])
		return context;
	context = (struct json){ input->at + head, len };
	*input = (struct json){ input->at + head + len, input->len - head - len };
	return context;
}

static void call_host(struct tools *t, struct tools_call *c, struct json spec, struct words *w)
{
	struct bytes args = { 0 }, line = { 0 }, why = { 0 };
	struct json input = { c->in.data + c->args_len, c->in.len - c->args_len };
	struct json context = take_context(c, &input);
	struct tool_command_call given = { w->v + 1, w->n - 1, input, context };
	/* The agent does not judge a tool that it does not know: the host refuses it. */
	bool ok = true;
	if (spec.len)
		ok = tool_command_args(spec, &given, &args, &why);
	else
		bytes_text(&args, "{}");
	if (ok) {
		c->number = ++t->count;
		bytes_format(&line,
			     "{\"type\":\"tool_call\",\"id\":%s,\"call\":%lu,\"tool\":", t->id,
			     c->number);
		json_quote(&line, w->v[0], strlen(w->v[0]));
		bytes_text(&line, ",\"args\":");
		bytes_add(&line, args.data, args.len);
		bytes_text(&line, "}\n");
		unsigned long limit =
			json_number(json_get(spec, "argument_bytes"), t->message_bytes);
		ok = line.len <= limit;
		if (!ok) {
			t->count--;
			bytes_format(&why, "IPC message too large (%zu bytes, max %lu)", line.len,
				     limit);
		}
	}
	if (ok) {
		c->waiting = true;
		bytes_add(t->out, line.data, line.len);
	} else {
		bytes_char(&why, 0);
		fail(c, w->v[0], why.data);
	}
	bytes_done(&args);
	bytes_done(&line);
	bytes_done(&why);
}

/* Handles what needs no host: help and the list of tools. False: the host is needed. */
static bool local(struct tools *t, struct tools_call *c, struct json spec, struct words *w)
{
	struct bytes out = { 0 }, err = { 0 };
	int status = 0;
	if (!spec.len && !strcmp(w->v[0], "extensions"))
		status = tool_command_extensions(t->specs, w->v + 1, w->n - 1, &out, &err);
	else if (spec.len && w->n == 2 && !strcmp(w->v[1], "--help"))
		tool_command_help(spec, &out);
	else
		return false;
	reply(c, status, &out, &err);
	bytes_done(&out);
	bytes_done(&err);
	return true;
}

/* The first part has arrived: answers at once, or says whether stdin is needed. */
static void first_part(struct tools *t, struct tools_call *c)
{
	struct words w;
	char *copy = malloc(c->args_len + 1);
	if (!copy || !split(memcpy(copy, c->in.data, c->args_len), c->args_len, &w)) {
		fail(c, "cordon", "malformed call");
	} else {
		struct json spec = tool_command_find(t->specs, w.v[0]);
		if (local(t, c, spec, &w))
			;
		else if (!t->id)
			fail(c, w.v[0], "tools can only be called while a command runs");
		else if (tool_command_is_raw(spec)) {
			c->asked = true;
			c->has_context = tool_command_wants_context(spec);
			bytes_write(c->fd, c->has_context ? "C\n" : "I\n", 2);
		} else { /* the host decides about an unknown tool too */
			call_host(t, c, spec, &w);
		}
	}
	free(copy);
}

/* "LENGTH
 * ", then that many bytes of words; may be incomplete. */
static void take_call(struct tools *t, struct tools_call *c)
{
	char *nl = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL;
	size_t want = nl ? strtoul(c->in.data, NULL, 10) : 0;
	size_t head = nl ? (size_t)(nl - c->in.data) + 1 : 0;
	if (nl && c->in.len - head >= want) {
		bytes_drop(&c->in, head);
		c->args_len = want;
		first_part(t, c);
	}
}

static void read_helper(struct tools *t, struct tools_call *c)
{
	long n = bytes_read(&c->in, c->fd);
	if (n < 0 || c->in.len > INPUT_MAX) {
		drop(c);
		return;
	}
	if (!c->asked) {
		take_call(t, c);
		if (n == 0 && c->fd >= 0 && !c->asked && !c->waiting)
			drop(c);
		return;
	}
	if (n > 0)
		return;
	struct words w; /* its stdin has ended */
	if (!t->id)
		fail(c, "cordon", "tools can only be called while a command runs");
	else if (split(c->in.data, c->args_len, &w))
		call_host(t, c, tool_command_find(t->specs, w.v[0]), &w);
	else
		drop(c);
}

void tools_serve(struct tools *t, const struct pollfd *fds, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (!fds[i].revents)
			continue;
		for (size_t k = 0; k < TOOLS_CALLS; k++) {
			struct tools_call *c = &t->calls[k];
			if (c->fd != fds[i].fd)
				continue;
			if (c->waiting)
				drop(c); /* the helper was killed while it waited */
			else
				read_helper(t, c);
			break;
		}
	}
	if (fds[0].revents)
		accept_helper(t);
}

/* "NAME: why", once. The status is that of a command that may not run, if that is the reason. */
static int refusal(const char *name, struct json error, struct bytes *ret)
{
	static const char denied[] = ": tool not allowed by security policy";
	struct bytes text = { 0 };
	json_string(error, &text);
	size_t n = strlen(name);
	bool is_named = text.len > n + 1 && !memcmp(text.data, name, n) && text.data[n] == ':';
	if (!is_named)
		bytes_format(ret, "%s: ", name);
	bytes_add(ret, text.data, text.len);
	bytes_char(ret, '\n');
	bool is_denied = is_named && text.len == n + sizeof(denied) - 1 &&
			 !memcmp(text.data + n, denied, sizeof(denied) - 1);
	bytes_done(&text);
	return is_denied ? 126 : 1;
}

void tools_answer(struct tools *t, struct json m)
{
	unsigned long number = json_number(json_get(m, "call"), 0);
	struct json id = json_get(m, "id"), error = json_get(m, "error");
	if (!t->id || id.len != strlen(t->id) || memcmp(id.at, t->id, id.len) != 0)
		return;
	for (size_t i = 0; i < TOOLS_CALLS; i++) {
		struct tools_call *c = &t->calls[i];
		if (c->fd < 0 || !c->waiting || c->number != number)
			continue;
		struct bytes out = { 0 }, err = { 0 };
		const char *name = c->in.data;
		struct json spec = tool_command_find(t->specs, name);
		int status = 1;
		if (error.len) {
			status = refusal(name, error, &err);
		} else {
			status = tool_command_show(spec, json_get(m, "value"), &out, &err);
		}
		reply(c, status, &out, &err);
		bytes_done(&out);
		bytes_done(&err);
		return;
	}
}

void tools_end(struct tools *t)
{
	for (size_t i = 0; i < TOOLS_CALLS; i++)
		if (t->calls[i].fd >= 0)
			fail(&t->calls[i], "cordon", "the command that made this call has ended");
	t->id = NULL;
	t->count = 0;
}

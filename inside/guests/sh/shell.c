/* inside/guests/sh/shell.c - see shell.h. */
#include "inside/guests/sh/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/guests/sh/preload.h"
#include "inside/guests/sh/variables.h"
#include "inside/lib/wire_json.h"

#define REPORT_MAX (256u << 10) /* more than a variable of a new program's environment */
#define DENIED_MAX 8192
#define NAMES_MAX 16000

static const char *shell_path(void)
{
	const char *p = getenv("CORDON_SHELL");
	if (p && *p)
		return p;
	return access("/usr/bin/bash", X_OK) == 0 ? "/usr/bin/bash" : "/bin/bash";
}

enum kept {
	KEPT_TEXT,
	KEPT_TICKET,
	KEPT_REPORT,
	KEPT_TOOLS,
	KEPT_IN,
	KEPT_OUT,
	KEPT_ERR,
	KEPT_COUNT
};

/* Descriptors that the shell keeps have high numbers, which scripts rarely use. */
static int high_fd(enum kept i)
{
	struct rlimit r = { 256, 256 };
	getrlimit(RLIMIT_NOFILE, &r);
	int top = r.rlim_cur < 256 ? (int)r.rlim_cur : 256;
	return top - 8 + (int)i;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static int text_file(void)
{
	int fd = memfd_create("command", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	if (fd < 0)
		fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd;
}

/* Our library comes first, before any that the policy sets. */
static void preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	struct bytes list = { 0 };
	char fds[96];
	bytes_format(&list, "%s%s%s", library, others && *others ? ":" : "", others ? others : "");
	bytes_char(&list, 0);
	setenv("LD_PRELOAD", list.data, 1);
	bytes_done(&list);
	snprintf(fds, sizeof(fds), "%d %d %d %d %d %d %d", high_fd(KEPT_TEXT), high_fd(KEPT_TICKET),
		 high_fd(KEPT_REPORT), high_fd(KEPT_IN), high_fd(KEPT_OUT), high_fd(KEPT_ERR),
		 high_fd(KEPT_TOOLS));
	setenv(PRELOAD_ENV, fds, 1);
}

static void child(const struct shell *s, int ticket, int report)
{
	int from[KEPT_COUNT] = { s->text_fd, ticket, report, s->tools_fd, 0, 1, 2 };
	sigset_t none;
	sigemptyset(&none);
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			signal(i, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	if (s->cwd[0] && chdir(s->cwd) < 0)
		errno = 0; /* the directory is gone: stay where the session began */
	for (int i = 0; i < KEPT_COUNT;
	     i++) /* above their targets first, because they may overlap */
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < KEPT_COUNT; i++)
		if (from[i] < 0 || dup2(from[i], high_fd(i)) < 0)
			_exit(126);
	char number[16];
	preload(s->library);
	snprintf(number, sizeof(number), "%d", high_fd(KEPT_TOOLS));
	setenv("CORDON_TOOLS_FD", number, 1);
	snprintf(number, sizeof(number), "%d", high_fd(KEPT_REPORT));
	setenv("CORDON_TOLD_FD", number, 1);
	execl(shell_path(), "bash", "--norc", "--noprofile", "-O", "expand_aliases", PRELOAD_SCRIPT,
	      (char *)NULL);
	fprintf(stderr, "cordon-sh: cannot start %s: %s\n", shell_path(), strerror(errno));
	_exit(127);
}

int shell_input_fd(void)
{
	return high_fd(KEPT_IN);
}

static int spawn(struct shell *s)
{
	int ticket[2], report[2];
	if (pipe2(ticket, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(report, O_CLOEXEC) < 0) {
		close(ticket[0]);
		close(ticket[1]);
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0)
		child(s, ticket[0], report[1]);
	close(ticket[0]);
	close(report[1]);
	if (pid < 0) {
		close(ticket[1]);
		close(report[0]);
		return -1;
	}
	setpgid(pid, pid);
	fcntl(report[0], F_SETFL, O_NONBLOCK);
	s->pid = pid;
	s->ticket_fd = ticket[1];
	s->report_fd = report[0];
	s->ready = false;
	s->ticket = 0;
	s->report.len = 0;
	return 0;
}

int shell_start(struct shell *s, const char *self, int tools_fd)
{
	*s = (struct shell){
		.text_fd = text_file(), .ticket_fd = -1, .report_fd = -1, .tools_fd = tools_fd
	};
	const char *slash = strrchr(self, '/');
	snprintf(s->library, sizeof(s->library), "%.*s/%s", slash ? (int)(slash - self) : 1,
		 slash ? self : ".", PRELOAD_LIBRARY);
	return s->text_fd < 0 ? -1 : spawn(s);
}

/* Writes the text to the file, whose offset we share with the shell. */
static int give(struct shell *s, const struct bytes *text)
{
	if (ftruncate(s->text_fd, 0) < 0 || lseek(s->text_fd, 0, SEEK_SET) < 0 ||
	    bytes_write(s->text_fd, text->data, text->len) < 0 ||
	    lseek(s->text_fd, 0, SEEK_SET) < 0)
		return -1;
	s->ready = false;
	s->ticket++;
	return bytes_write(s->ticket_fd, "x\n", 2);
}

int shell_run(struct shell *s, const struct bytes *prelude, const char *code, size_t len)
{
	struct bytes text = { 0 };
	bytes_add(&text, prelude->data, prelude->len);
	bytes_char(&text, 0);
	bytes_add(&text, code, len);
	bytes_char(&text, 0);
	int r = give(s, &text);
	bytes_done(&text);
	return r;
}

/* In the shell itself, because only it knows its functions and variables; as set-up code, so that
 * the code sees no trace of it. */
int shell_complete(struct shell *s, const char *word, size_t len)
{
	struct bytes b = { 0 };
	bool is_variable = len > 0 && word[0] == '$';
	bytes_format(&b, "( builtin printf 'C%%.%ds' \"$(compgen %s -- ", NAMES_MAX,
		     is_variable ? "-P '$' -A variable"
				 : "-A alias -A builtin -A function "
				   "-A keyword -A command");
	bytes_shell(&b, word + is_variable, len - is_variable);
	bytes_format(&b, ")\" ) >&%d 2> /dev/null\n", high_fd(KEPT_REPORT));
	s->names.len = 0;
	int r = shell_run(s, &b, "", 0);
	bytes_done(&b);
	return r;
}

int shell_list_exported(struct shell *s, const struct bytes *prelude)
{
	struct bytes b = { 0 };
	bytes_add(&b, prelude->data, prelude->len);
	bytes_format(&b, "%s >&%d 2> /dev/null\n", VARIABLES_CODE, high_fd(KEPT_REPORT));
	s->variables.len = 0;
	int r = shell_run(s, &b, "", 0);
	bytes_done(&b);
	return r;
}

int shell_again(struct shell *s)
{
	close(s->ticket_fd);
	close(s->report_fd);
	s->restoring = true;
	if (spawn(s) < 0)
		return -1;
	return shell_run(s, &s->setup, "", 0);
}

/* The length of a complete report at the beginning of s->report, or 0. */
static size_t whole(const struct bytes *b)
{
	if (!b->len)
		return 0;
	const char *first = memchr(b->data, 0, b->len), *end = b->data + b->len;
	if (first && b->data[0] == 'S')
		first = memchr(first + 1, 0, (size_t)(end - first - 1));
	return first ? (size_t)(first - b->data) + 1 : 0;
}

/* Notes a command that does not exist; once per name, and a bounded number. */
static void note_denied(struct shell *s, const char *name, size_t len)
{
	struct bytes row = { 0 };
	if (len == 0 || len > 255 || s->denied.len > DENIED_MAX)
		return;
	bytes_text(&row, "{\"operation\":\"exec\",\"target\":");
	json_quote(&row, name, len);
	bytes_char(&row, '}');
	if (!s->denied.len || !memmem(s->denied.data, s->denied.len, row.data, row.len)) {
		if (s->denied.len)
			bytes_char(&s->denied, ',');
		bytes_add(&s->denied, row.data, row.len);
	}
	bytes_done(&row);
}

static enum shell_event take(struct shell *s, size_t len)
{
	const char *p = s->report.data;
	switch (p[0]) {
	case 'V':
		snprintf(s->version, sizeof(s->version), "%s", p + 1);
		s->version[strcspn(s->version, "(")] = 0;
		return s->restoring ? SHELL_NOTHING : SHELL_DONE;
	case 'N':
		note_denied(s, p + 1, len - 2);
		return SHELL_NOTHING;
	case 'C':
		s->names.len = 0;
		bytes_add(&s->names, p + 1, len - 2);
		return SHELL_NOTHING;
	case VARIABLES_RECORD:
		if (s->variables.len + len <= VARIABLES_MAX)
			bytes_add(&s->variables, p + 1, len - 1);
		return SHELL_NOTHING;
	case 'S':
		s->status = (int)strtol(p + 1, NULL, 10);
		snprintf(s->cwd, sizeof(s->cwd), "%s", p + strlen(p) + 1);
		return SHELL_DONE;
	default: /* written by the code, ignored */
		return SHELL_NOTHING;
	}
}

enum shell_event shell_report(struct shell *s)
{
	for (;;) {
		for (size_t n; (n = whole(&s->report));) {
			enum shell_event e = take(s, n);
			bytes_drop(&s->report, n);
			if (e != SHELL_DONE)
				continue;
			s->ready = true;
			return e;
		}
		if (s->report.len > REPORT_MAX)
			s->report.len = 0;
		if (bytes_read(&s->report, s->report_fd) <= 0)
			return SHELL_NOTHING;
	}
}

bool shell_reap(struct shell *s)
{
	int st;
	if (s->pid <= 0 || waitpid(s->pid, &st, WNOHANG) != s->pid)
		return false;
	while (shell_report(s) == SHELL_DONE)
		; /* reads its last reports */
	s->status = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
	s->pid = 0;
	s->ready = false;
	return true;
}

void shell_interrupt(struct shell *s)
{
	/* Without a name where the code has used up its queue of signals. */
	if (s->pid > 0 &&
	    sigqueue(s->pid, PRELOAD_INTERRUPT, (union sigval){ .sival_int = s->ticket }) < 0)
		kill(s->pid, PRELOAD_INTERRUPT);
}

void shell_end(struct shell *s, int signo)
{
	if (s->pid > 0) {
		kill(-s->pid, signo);
		kill(s->pid, signo);
	}
}

bool shell_is_broken(const char *code, size_t len, struct bytes *ret)
{
	int fd = text_file(), out[2] = { -1, -1 }, st = 0;
	pid_t pid = -1;
	if (fd >= 0 && bytes_write(fd, code, len) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
	    pipe2(out, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		dup2(fd, 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		setenv("LC_ALL", "C.UTF-8", 1); /* its messages are read */
		execl(shell_path(), "bash", "--norc", "--noprofile", "-O", "extglob", "-n",
		      (char *)NULL);
		_exit(0);
	}
	close(out[1]);
	while (pid > 0 && bytes_read(ret, out[0]) > 0)
		;
	while (pid > 0 && waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	close(out[0]);
	close(fd);
	return pid > 0 && WIFEXITED(st) && WEXITSTATUS(st) != 0;
}

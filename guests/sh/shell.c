/* guests/sh/shell.c - a real bash that lives as long as the session. */
#include "shell.h"

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

#include "json.h"

#define STATE_MAX (16u << 20)
#define DENIED_MAX 8192

/* The shell's own program, on one line so that the code's line numbers are its own. %1 to %3: the
 * descriptors of text, ticket and report; %4 to %6: stdin, stdout and stderr as the session has
 * them.
 *
 * - Reports come in the loop's condition: `continue` in the code ends there too, and `break` only
 *   reaches the outer loop.
 * - A report begins with NUL, so that what the code may write there is a record of its own.
 * - What belongs to the loop runs with stderr away, or `set -x` would show it.
 * - `exit` cannot be undone, but its trap can write down the state: options last, because set -e
 *   or set -u would end the restoring. A trap on EXIT of the code's own is kept aside and runs
 * then.
 * - An interrupt is `exit 130`, so it ends the whole command, not just the program in front.
 * - What `exec` makes of 0, 1 and 2 ends with the command, whose eval is redirected as a whole. A
 *   shell that has lost what they come from ends, and the next one has them. */
static const char program[] =
	"shopt -s expand_aliases; __cordon_st=0 __cordon_exit= __cordon_pre= __cordon_cmd= "
	"__cordon_t=; "
	"__cordon_ret(){ return \"$1\"; }; "
	"__cordon_state(){ builtin trap - EXIT; builtin printf '\\0D__cordon_set(){ :\\n'; builtin "
	"set +o; "
	"builtin shopt -p; builtin printf '}\\n'; builtin set +eufxvn; builtin declare -p; "
	"builtin declare -f; builtin declare -Fx; builtin trap -p; builtin umask -p; "
	"builtin printf 'builtin cd -- %%q\\n' \"$PWD\"; builtin printf 'builtin set --'; "
	"(( $# )) && builtin printf ' %%q' \"$@\"; builtin printf '\\n'; builtin alias -p; "
	"builtin printf '__cordon_set\\n\\0'; }; "
	"__cordon_end(){ { local __cordon_x=$__cordon_exit; __cordon_exit=; "
	"__cordon_state \"$@\" >&%3$d; } 2>/dev/null; "
	"if [[ $__cordon_x ]]; then __cordon_ret \"$__cordon_st\"; builtin eval \"$__cordon_x\"; "
	"fi; }; "
	"trap(){ if [[ $BASHPID != $$ || $# == 0 || $1 == -[lp]* ]]; then builtin trap \"$@\"; "
	"return; fi; "
	"[[ $1 == -- ]] && shift; local __cordon_a=$1 __cordon_s __cordon_o=(); "
	"if (( $# == 1 )); then __cordon_a=-; else shift; fi; "
	"for __cordon_s; do case $__cordon_s in "
	"0|EXIT|exit|SIGEXIT) if [[ $__cordon_a == - ]]; then __cordon_exit=; "
	"else __cordon_exit=$__cordon_a; fi;; *) __cordon_o+=(\"$__cordon_s\");; esac; done; "
	"(( ${#__cordon_o[@]} )) || return 0; builtin trap -- \"$__cordon_a\" "
	"\"${__cordon_o[@]}\"; }; "
	"builtin trap '{ __cordon_st=$?; } 2>/dev/null; __cordon_end \"$@\"' EXIT; "
	"builtin trap 'builtin exit 130' INT; "
	"builtin printf 'V%%s\\0' \"$BASH_VERSION\" >&%3$d; "
	"while :; do while { __cordon_st=$?; if [[ $__cordon_t ]]; then "
	"{ builtin : <&%4$d >&%5$d 2>&%6$d; } || builtin exit \"$__cordon_st\"; "
	"builtin printf '\\0S%%d\\0%%s\\0' \"$__cordon_st\" \"$PWD\" >&%3$d || builtin exit; fi; "
	"TMOUT=0 IFS= builtin read -r -u %2$d __cordon_t || builtin exit 0; "
	"TMOUT=0 IFS= builtin read -r -d '' -u %1$d __cordon_pre || builtin exit 125; "
	"builtin eval \"$__cordon_pre\" >/dev/null; "
	"TMOUT=0 IFS= builtin read -r -d '' -u %1$d __cordon_cmd || builtin exit 125; } "
	"2>/dev/null; "
	"do { __cordon_ret \"$__cordon_st\" && :; } 2>/dev/null; "
	"builtin eval \"$__cordon_cmd\" <&%4$d >&%5$d 2>&%6$d; "
	"done; done";

const char *shell_path(void)
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

/* Descriptors that the shell keeps: high, where scripts do not reach by habit. */
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
		errno = 0; /* the directory has gone: stay where the session began */
	for (int i = 0; i < KEPT_COUNT; i++) /* above the targets first: they may overlap */
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < KEPT_COUNT; i++)
		if (from[i] < 0 || dup2(from[i], high_fd(i)) < 0)
			_exit(126);
	char text[sizeof(program) + 256], number[16];
	snprintf(text, sizeof(text), program, high_fd(KEPT_TEXT), high_fd(KEPT_TICKET),
		 high_fd(KEPT_REPORT), high_fd(KEPT_IN), high_fd(KEPT_OUT), high_fd(KEPT_ERR));
	snprintf(number, sizeof(number), "%d", high_fd(KEPT_TOOLS));
	setenv("CORDON_TOOLS_FD", number, 1);
	snprintf(number, sizeof(number), "%d", high_fd(KEPT_REPORT));
	setenv("CORDON_TOLD_FD", number, 1);
	execl(shell_path(), "bash", "--norc", "--noprofile", "-c", text, "bash", (char *)NULL);
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
	s->report.len = 0;
	return 0;
}

int shell_start(struct shell *s, int tools_fd)
{
	*s = (struct shell){
		.text_fd = text_file(), .ticket_fd = -1, .report_fd = -1, .tools_fd = tools_fd
	};
	return s->text_fd < 0 ? -1 : spawn(s);
}

/* Gives the file's contents to the shell, whose offset is ours too. */
static int give(struct shell *s, const struct bytes *text)
{
	if (ftruncate(s->text_fd, 0) < 0 || lseek(s->text_fd, 0, SEEK_SET) < 0 ||
	    bytes_write(s->text_fd, text->data, text->len) < 0 ||
	    lseek(s->text_fd, 0, SEEK_SET) < 0)
		return -1;
	s->ready = false;
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

int shell_again(struct shell *s)
{
	close(s->ticket_fd);
	close(s->report_fd);
	s->restoring = true;
	if (spawn(s) < 0)
		return -1;
	struct bytes text = { 0 };
	bytes_add(&text, s->setup.data, s->setup.len);
	bytes_char(&text, '\n');
	bytes_add(&text, s->state.data, s->state.len);
	int r = shell_run(s, &text, "", 0);
	bytes_done(&text);
	bytes_done(&s->state);
	return r;
}

/* One whole report at the beginning of s->report, or 0. */
static size_t whole(const struct bytes *b)
{
	if (!b->len)
		return 0;
	const char *first = memchr(b->data, 0, b->len), *end = b->data + b->len;
	if (first && b->data[0] == 'S')
		first = memchr(first + 1, 0, (size_t)(end - first - 1));
	return first ? (size_t)(first - b->data) + 1 : 0;
}

/* A command that is not there; told once, and not without end. */
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
	case 'D':
		s->state.len = 0;
		bytes_add(&s->state, p + 1, len - 2);
		return SHELL_NOTHING;
	case 'N':
		note_denied(s, p + 1, len - 2);
		return SHELL_NOTHING;
	case 'S':
		s->status = atoi(p + 1);
		snprintf(s->cwd, sizeof(s->cwd), "%s", p + strlen(p) + 1);
		return SHELL_DONE;
	default: /* the code wrote here: its own loss */
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
		if (s->report.len > STATE_MAX)
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
		; /* the state that it wrote last */
	s->status = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
	s->pid = 0;
	s->ready = false;
	return true;
}

void shell_interrupt(struct shell *s, int signo)
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

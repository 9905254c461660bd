/* inside/guests/sh/preload.c - a library that the session's bash is started with (LD_PRELOAD). With
 * it bash reads one execution after the other, each like a script file, and survives their end.
 *
 * Why not a loop in shell code around the code? Then `break` would have a meaning, the loop's
 * commands would fire the code's traps, its names would be visible, and what ends a script would
 * end the loop. Here bash itself reads the text, command by command, to its end or to `exit`;
 * between two texts no command runs at all.
 *
 * - The script that bash is started with is empty. At its end bash calls exit(3), which is ours:
 *   there the session begins, with bash's own reader_loop() for every text.
 * - read(2) on the script's descriptor is ours too, and returns the text, then end of file.
 * - After an `exit` we restore what bash's own throw_to_top_level() restores. The shell keeps its
 *   whole state: variables, descriptors, jobs, and also state that could not be saved as text.
 * - Forked children are plain bash: is_child.
 *
 * The names below are bash's own (all of 5.x has them; bash exports them for loadable builtins).
 * bash has one thread. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inside/guests/sh/preload.h"
#include "inside/guests/sh/preload_history.h"

#define BASH extern __attribute__((weak))

BASH int EOF_Reached, last_command_exit_value, line_number, default_buffered_input;
BASH int loop_level, continuing, breaking, funcnest, evalnest, sourcenest, sourcelevel;
BASH int executing_list, comsub_ignore_return, return_catch_flag, wait_intr_flag, executing_builtin;
BASH int running_trap, indirection_level, variable_context, parse_and_execute_level;
BASH int exit_immediately_on_error, unbound_vars_is_error, echo_command_at_execute;
BASH int echo_input_at_read, read_but_dont_execute, noclobber, posixly_correct;
BASH volatile sig_atomic_t interrupt_state;
BASH char *trap_list[];
BASH sigjmp_buf top_level;

BASH int reader_loop(void);
BASH int parse_and_execute(char *text, const char *from, int flags);
BASH void parse_and_execute_cleanup(int old_running_trap);
BASH void reset_parser(void);
BASH void run_unwind_protects(void);
BASH void reset_local_contexts(void);
BASH int run_exit_trap(void);
BASH void exit_shell(int status);
BASH void run_trap_cleanup(int sig);
BASH void restore_default_signal(int sig);
BASH void set_signal(int sig, char *text);
BASH int signal_is_trapped(int sig);
BASH void sigint_sighandler(int sig);
BASH void stop_making_children(void);
BASH void cleanup_the_pipeline(void);
BASH void initialize_traps(void);
BASH void initialize_signals(int reinit);
BASH char *get_string_value(const char *name);
BASH void *bind_variable(const char *name, char *value, int flags);
BASH void *save_pipestatus_array(void);
BASH void restore_pipestatus_array(void *array);

enum {
	SEVAL_NONINT = 0x01,
	SEVAL_NOHIST = 0x04,
	SEVAL_NOFREE = 0x08,
	TRAP_EXIT = 0,
	TRAP_DEBUG = NSIG, /* bash numbers its own traps after the signals */
	TRAP_ERR = NSIG + 1,
	TRAPS = NSIG + 3,
};

static struct {
	int fd[PRELOAD_FDS];
	bool is_ours;      /* this process is the session's bash */
	bool has_script;   /* bash has opened its empty script */
	bool has_begun;    /* the session runs: exit() returns to it */
	bool is_child;     /* a fork of the session's bash */
	bool is_preparing; /* what runs is the host's set-up code */
	char *text, *code; /* of the execution: the set-up code, and the code */
	size_t code_len, code_at;
	volatile sig_atomic_t ticket;      /* the number of the execution */
	volatile sig_atomic_t interrupted; /* the number of the one that the agent gave up last */
	volatile sig_atomic_t is_running;  /* its code */
	volatile sig_atomic_t is_interrupted;
	sigset_t mask;
	sigjmp_buf again;
} my;

static ssize_t plain_read(int fd, void *buf, size_t n)
{
	return syscall(SYS_read, fd, buf, n);
}

static int plain_dup2(int from, int to)
{
	return (int)syscall(SYS_dup3, from, to, 0);
}

/* A forked shell that fails would jump back into its parent's code and must not continue there. */
static void end_child(void)
{
	if (my.is_child)
		exit_shell(last_command_exit_value);
}

/* ---- the execution that comes */

static void say(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(my.fd[PRELOAD_REPORT], text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(125); /* the next shell gets the descriptors again */
		text += n;
		len -= (size_t)n;
	}
}

/* A report begins with NUL, so that whatever the code may write there is a separate record. */
static void report(void)
{
	char text[8192];
	my.is_running = 0;
	const char *cwd = get_string_value("PWD");
	int n = snprintf(text, sizeof(text), "%cS%d%c%.4096s", 0, last_command_exit_value & 255, 0,
			 cwd ? cwd : "");
	say(text, (size_t)n + 1);
}

static void wait_for_ticket(void)
{
	char c = 0;
	while (c != '\n') {
		ssize_t n = plain_read(default_buffered_input, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0); /* the agent is gone */
	}
	my.ticket++;
}

static void load(void)
{
	struct stat st;
	int fd = my.fd[PRELOAD_TEXT];
	if (fstat(fd, &st) < 0 || st.st_size < 2)
		_exit(125);
	size_t len = (size_t)st.st_size, got = 0;
	free(my.text);
	my.text = malloc(len + 1);
	while (my.text && got < len) {
		ssize_t n = pread(fd, my.text + got, len - got, (off_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (!my.text || got < len)
		_exit(125);
	my.text[len] = 0;
	my.code = my.text + strnlen(my.text, len - 1) + 1;
	my.code_len = strnlen(my.code, len - (size_t)(my.code - my.text));
	my.code_at = 0;
}

/* Also after `exec`: its redirections end with the execution. */
static void put_streams(bool quiet)
{
	int null = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
	for (int i = 0; i < 3; i++) {
		int from = i && quiet ? null : my.fd[PRELOAD_IN + i];
		if (plain_dup2(from, i) < 0 && !quiet)
			_exit(125);
	}
	if (null > 2)
		close(null);
}

/* Takes away a trap that the shell would run; NULL: none. */
static char *take_trap(int which)
{
	char *text = signal_is_trapped(which) ? trap_list[which] : NULL;
	if (!text || text == (char *)SIG_IGN)
		return NULL;
	text = strdup(text);
	restore_default_signal(which);
	return text;
}

static void put_trap(int which, char *text)
{
	if (text)
		set_signal(which, text);
	free(text);
}

static void run_text(void)
{
	my.is_preparing = true;
	if (sigsetjmp(top_level, 0) == 0)
		parse_and_execute(my.text, "bash", SEVAL_NONINT | SEVAL_NOHIST | SEVAL_NOFREE);
	my.is_preparing = false;
	end_child();
}

/* Applies variables, directory and so on from the host. The code sees their effect, but no trace of
 * the commands. */
static void prepare(void)
{
	int *const options[] = { &exit_immediately_on_error,
				 &unbound_vars_is_error,
				 &echo_command_at_execute,
				 &echo_input_at_read,
				 &read_but_dont_execute,
				 &noclobber,
				 &posixly_correct };
	enum { COUNT = sizeof(options) / sizeof(options[0]) };
	int were[COUNT], status = last_command_exit_value;
	const char *last = get_string_value("_");
	char *last_argument = last ? strdup(last) : NULL, *debug = take_trap(TRAP_DEBUG),
	     *err = take_trap(TRAP_ERR);
	void *pipestatus = save_pipestatus_array();
	for (int i = 0; i < COUNT; i++) {
		were[i] = *options[i];
		*options[i] = 0;
	}
	put_streams(true);
	run_text();
	for (int i = 0; i < COUNT; i++)
		*options[i] = were[i];
	restore_pipestatus_array(pipestatus);
	put_trap(TRAP_DEBUG, debug);
	put_trap(TRAP_ERR, err);
	if (last_argument)
		bind_variable("_", last_argument, 0);
	free(last_argument);
	last_command_exit_value = status;
}

/* ---- the session */

/* Runs the pending cleanups of functions, redirections and so on. Under set -e bash has forgotten
 * the functions by now, and prints an error, which is hidden. */
static void unwind(void)
{
	int err = fcntl(2, F_DUPFD_CLOEXEC, 10), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	plain_dup2(null, 2);
	run_unwind_protects();
	if (plain_dup2(err, 2) < 0)
		close(2);
	if (err >= 0)
		close(err);
	if (null >= 0)
		close(null);
}

/* If only some processes of a pipeline were started when the code was interrupted, the next command
 * would become the rest of it and get its status. */
static void drop_pipeline(void)
{
	stop_making_children();
	cleanup_the_pipeline();
}

/* What an interrupted builtin has not yet written would come out in the next execution. Where it
 * was meant to go is no longer known, so it is dropped. */
static void drop_leftovers(void)
{
	__fpurge(stdout);
	drop_pipeline();
}

/* Cleans up after an exit: functions that did not return, traps and loops that did not end. */
static void settle(void)
{
	while (parse_and_execute_level)
		parse_and_execute_cleanup(-1);
	unwind();
	drop_pipeline();
	if (variable_context)
		reset_local_contexts();
	for (int i = 0; i < TRAPS; i++)
		run_trap_cleanup(i);
	loop_level = continuing = breaking = funcnest = evalnest = sourcenest = sourcelevel = 0;
	executing_list = comsub_ignore_return = return_catch_flag = wait_intr_flag = 0;
	executing_builtin = running_trap = 0;
	sigprocmask(SIG_SETMASK, &my.mask, NULL);
}

/* The code has ended the shell: its EXIT trap runs, once. A trap may itself exit. */
static void leave(void)
{
	settle();
	if (sigsetjmp(top_level, 0) == 0 && signal_is_trapped(TRAP_EXIT))
		last_command_exit_value = run_exit_trap();
	end_child();
	settle();
	restore_default_signal(TRAP_EXIT);
}

/* Code without a command: only blanks and comments. */
static bool is_empty(const char *code)
{
	for (;;) {
		code += strspn(code, " \t\n");
		if (*code != '#')
			return !*code;
		code += strcspn(code, "\n");
	}
}

static void execute(void)
{
	wait_for_ticket();
	load();
	preload_history_add(my.code, my.code_len);
	if (my.is_interrupted)
		drop_leftovers();
	my.is_interrupted = 0;
	interrupt_state = 0;
	if (*my.text)
		prepare();
	put_streams(false);
	reset_parser();
	indirection_level = line_number = 0;
	EOF_Reached = 0;
	read_but_dont_execute = 0; /* set -n: no later code could undo it */
	my.is_running = 1;
	if (my.interrupted == my.ticket) /* before there was code to end: there is none to read */
		my.is_interrupted = 1;
	reader_loop();
	end_child();
	my.code_len = 0;
	if (my.code[0] && is_empty(my.code)) /* without a text, only the set-up code ran */
		last_command_exit_value = 0;
	if (EOF_Reached != 1) /* more than the end of the text */
		leave();
}

__attribute__((noreturn)) static void serve(void)
{
	char text[128];
	const char *version = get_string_value("BASH_VERSION");
	int n = snprintf(text, sizeof(text), "V%.100s", version ? version : "");
	my.has_begun = true;
	preload_history_begin();
	sigprocmask(SIG_SETMASK, NULL, &my.mask);
	say(text, (size_t)n + 1);
	if (sigsetjmp(my.again, 0) != 0) {
		/* `exec` could not start a program: bash had already dropped its traps for it. */
		my.code_len = 0;
		initialize_traps();
		initialize_signals(1);
		settle();
		restore_default_signal(TRAP_EXIT);
		report();
	}
	for (;;) {
		execute();
		report();
	}
}

/* ---- what bash calls */

static bool is_ticket(int fd)
{
	struct stat ticket, st;
	return fstat(my.fd[PRELOAD_TICKET], &ticket) == 0 && fstat(fd, &st) == 0 &&
	       ticket.st_ino == st.st_ino && ticket.st_dev == st.st_dev;
}

__attribute__((visibility("default"))) ssize_t read(int fd, void *buf, size_t n)
{
	if (!my.is_ours || !my.has_script || fd != default_buffered_input)
		return plain_read(fd, buf, n);
	/* An interrupted fork continues where its parent reads, and must get no more text. A fork
	 * that runs a file as a script has that file here. */
	if (my.is_child)
		return is_ticket(fd) ? 0 : plain_read(fd, buf, n);
	size_t left = my.is_interrupted ? 0 : my.code_len - my.code_at;
	if (n > left)
		n = left;
	if (n)
		memcpy(buf, my.code + my.code_at, n);
	my.code_at += n;
	return (ssize_t)n;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (my.is_ours && !my.has_script && !strcmp(path, PRELOAD_SCRIPT)) {
		my.has_script = true;
		return fcntl(my.fd[PRELOAD_TICKET], F_DUPFD_CLOEXEC, 3);
	}
	return openat(AT_FDCWD, path, flags, mode);
}

/* The session's own descriptors, which redirections of the code must not touch. */
static bool is_kept(int fd)
{
	bool kept = false;
	for (int i = 0; i < PRELOAD_FDS; i++)
		kept |= my.fd[i] == fd;
	return kept && my.is_ours && !my.is_child && !my.is_preparing;
}

__attribute__((visibility("default"))) int close(int fd)
{
	return is_kept(fd) ? 0 : (int)syscall(SYS_close, fd);
}

__attribute__((visibility("default"))) int dup2(int from, int to)
{
	if (!is_kept(to))
		return from == to ? fcntl(from, F_GETFD) < 0 ? -1 : to : plain_dup2(from, to);
	errno = EBADF;
	return -1;
}

__attribute__((visibility("default"), noreturn)) void exit(int status)
{
	if (my.is_ours && !my.is_child && my.has_script) {
		if (!my.has_begun)
			serve();
		last_command_exit_value = status;
		siglongjmp(my.again, 1);
	}
	void (*next)(int) = (void (*)(int))dlsym(RTLD_NEXT, "exit");
	if (next)
		next(status);
	_exit(status);
}

static int plain_kill(pid_t pid, int sig)
{
	return (int)syscall(SYS_kill, pid, sig);
}

/* Bash sends itself the SIGINT that killed a substitution. */
__attribute__((visibility("default"))) int kill(pid_t pid, int sig)
{
	if (!my.is_interrupted || my.is_child || sig != SIGINT || pid != getpid())
		return plain_kill(pid, sig);
	interrupt_state = 1;
	return 0;
}

/* Interrupts the code: programs in the foreground get SIGINT, as with ^C, and bash behaves as an
 * interactive shell does on ^C. SIGINT itself would end this bash, which is not interactive. A trap
 * of the code on INT runs and may continue; the second time it is not run. */
static void give_up(void)
{
	struct sigaction was, ignore = { .sa_handler = SIG_IGN };
	sigset_t sigint, mask;
	sigemptyset(&sigint);
	sigaddset(&sigint, SIGINT);
	sigaction(SIGINT, &ignore, &was);
	sigprocmask(SIG_UNBLOCK, &sigint,
		    &mask); /* a blocked signal stays pending, even if ignored */
	plain_kill(0, SIGINT);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGINT, &was, NULL);
	if (my.is_interrupted)
		interrupt_state = 1;
	else
		sigint_sighandler(SIGINT);
	my.is_interrupted = 1;
}

/* The agent's wish. It may come before the code runs, which then sees it, and after, where it does
 * nothing. */
static void on_interrupt(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	(void)sig;
	(void)context;
	if (!my.is_child && my.has_begun) {
		my.interrupted = info->si_code == SI_QUEUE ? info->si_value.sival_int : my.ticket;
		if (my.is_running && my.interrupted == my.ticket)
			give_up();
	}
	errno = saved;
}

static void on_fork(void)
{
	my.is_child = true;
}

static bool is_bash(void)
{
	const void *const needed[] = {
		&EOF_Reached,
		&default_buffered_input,
		&last_command_exit_value,
		&line_number,
		&loop_level,
		&running_trap,
		&indirection_level,
		(void *)&interrupt_state,
		&top_level,
		trap_list,
		(void *)reader_loop,
		(void *)parse_and_execute,
		(void *)parse_and_execute_cleanup,
		(void *)reset_parser,
		(void *)run_unwind_protects,
		(void *)reset_local_contexts,
		(void *)run_exit_trap,
		(void *)exit_shell,
		(void *)run_trap_cleanup,
		(void *)restore_default_signal,
		(void *)set_signal,
		(void *)signal_is_trapped,
		(void *)sigint_sighandler,
		(void *)stop_making_children,
		(void *)cleanup_the_pipeline,
		(void *)initialize_traps,
		(void *)initialize_signals,
		(void *)get_string_value,
		(void *)bind_variable,
		(void *)save_pipestatus_array,
		(void *)restore_pipestatus_array,
	};
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i])
			return false;
	return true;
}

/* Removes a variable from the environment that bash is about to read; its value, or NULL. bash
 * defines its own functions with the C library's names for this. */
static char *take_env(char **envp, const char *name)
{
	size_t len = strlen(name);
	char **at = envp, *value;
	while (*at && (strncmp(*at, name, len) != 0 || (*at)[len] != '='))
		at++;
	if (!*at)
		return NULL;
	value = *at + len + 1;
	for (; *at; at++)
		*at = at[1];
	return value;
}

/* Other preloaded libraries stay in the environment. */
static void hide_library(char **envp)
{
	for (char **at = envp; *at; at++) {
		char *list = *at + sizeof("LD_PRELOAD=") - 1, *others;
		if (strncmp(*at, "LD_PRELOAD=", (size_t)(list - *at)) != 0)
			continue;
		others = strchr(list, ':');
		if (others)
			memmove(list, others + 1, strlen(others));
		else
			take_env(envp, "LD_PRELOAD");
		return;
	}
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)
{
	char *rest = take_env(envp, PRELOAD_ENV);
	(void)argc;
	(void)argv;
	if (!rest)
		return;
	for (int i = 0; i < PRELOAD_FDS; i++)
		my.fd[i] = (int)strtol(rest, &rest, 10);
	hide_library(envp);
	struct sigaction act = { .sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO };
	if (!is_bash() || pthread_atfork(NULL, NULL, on_fork) != 0 ||
	    sigaction(PRELOAD_INTERRUPT, &act, NULL) < 0) {
		static const char why[] =
			"cordon-sh: this bash is static or too old; a session needs another\n";
		_exit(write(2, why, sizeof(why) - 1) < 0 ? 127 : 126);
	}
	my.is_ours = true;
}

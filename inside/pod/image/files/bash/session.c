/* inside/pod/image/files/bash/session.c - a shell that takes its commands from the pod's agent, one at a time. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cordon-door.h>

#include "bashansi.h"
#include "shell.h"
#include "bashhist.h"
#include "execute_cmd.h"
#include "flags.h"
#include "jobs.h"
#include "quit.h"
#include "trap.h"
#include "unwind_prot.h"
#include "builtins/common.h"
#include <readline/history.h>

#define COMMAND_BYTES 65537

extern int executing_list, comsub_ignore_return, wait_intr_flag, expand_aliases, parse_and_execute_level;
extern void parse_and_execute_cleanup(int);

static pid_t session; /* this process, where it is the session's shell */

int pod_session_is(void)
{
	return session && session == getpid();
}

int pod_session_begin(void)
{
	if (__pod_door(POD_COMMAND, 0, 0, 0, 0, 0, 0) != 0)
		return 0;
	session = getpid();
	/* As at a prompt: aliases expand, and what was typed is remembered. */
	expand_aliases = 1;
	using_history();
	remember_on_history = enable_history_list = 1;
	set_sigint_handler();
	return 1;
}

/* A child that ended so, after an interrupt that the shell saw too, has not dealt with it: what
 * does not stop by itself is killed by the agent. */
int pod_session_was_interrupted(int status)
{
	return WIFSIGNALED(status) &&
	       (WTERMSIG(status) == SIGINT || (WTERMSIG(status) == SIGKILL && pod_session_is()));
}

/* Back to the top from wherever exit, set -e or an error left: functions, loops, redirections. */
static void unwind(void)
{
	while (parse_and_execute_level)
		parse_and_execute_cleanup(-1);
	reset_parser();
	run_unwind_protects();
	/* A pipeline that was left while it was made: the next command would take it for its own,
	 * and wait for it, and have its status. */
	if (already_making_children)
		cleanup_the_pipeline();
	already_making_children = 0;
	loop_level = continuing = breaking = funcnest = 0;
	executing_list = comsub_ignore_return = return_catch_flag = wait_intr_flag = 0;
	restore_sigmask();
}

/* exit_shell, which is also where set -e meets an error that is fatal by itself (a variable that is
 * not set or is readonly, ${x:?}, failglob) and where exec ends that has found nothing: in the
 * session's own shell the command ends, with the trap on EXIT, and the shell stays. */
void pod_session_leave(int status)
{
	if (!pod_session_is())
		return;
	last_command_exit_value = status;
	jump_to_top_level(EXITPROG);
}

static void run_one(const char *text)
{
	int code = setjmp_nosigs(top_level);

	/* set -n and -t are of the command that said so, or nothing would ever run again. */
	read_but_dont_execute = just_one_command = 0;
	if (code == NOT_JUMPED) {
		add_history(text);
		last_command_exit_value = parse_and_execute(savestring(text), "bash", SEVAL_NOHIST | SEVAL_RESETLINE);
		return;
	}
	/* A child that came here by the same jump is not the session. */
	if (!pod_session_is())
		_exit(last_command_exit_value);
	unwind();
	if (code == DISCARD && last_command_exit_value == 0)
		last_command_exit_value = EXECUTION_FAILURE;
	/* exit runs the trap on EXIT, which may exit again. */
	if (code != DISCARD && setjmp_nosigs(top_level) == NOT_JUMPED)
		last_command_exit_value = run_exit_trap();
	if (!pod_session_is())
		_exit(last_command_exit_value);
	unwind();
	if (code != DISCARD)
		restore_default_signal(EXIT_TRAP);
}

/* Traps of signals that came between commands: they may exit, too. */
static void run_idle_traps(void)
{
	if (setjmp_nosigs(top_level) == NOT_JUMPED) {
		run_pending_traps();
		return;
	}
	if (!pod_session_is())
		_exit(last_command_exit_value);
	unwind();
}

void pod_session_loop(void)
{
	char *text = xmalloc(COMMAND_BYTES);

	for (;;) {
		long n;

		fflush(stdout);
		fflush(stderr);
		interrupt_state = 0; /* it was of a command that is over */
		n = __pod_door(POD_COMMAND, (long)text, COMMAND_BYTES, last_command_exit_value, 0, 0, 0);
		__pod_poll();
		if (n < 0) {
			run_idle_traps();
			continue;
		}
		clearerr(stdin);
		run_one(text);
	}
}

/* exec PROGRAM in the session's own shell: the program runs in its place, and then the shell is
 * as if it had exited with its status. Returns 0 in the process that is to become it. */
int pod_session_exec(void)
{
	SigHandler *interrupt;
	sigset_t block, old;
	int status = 0;
	pid_t pid;

	if (!pod_session_is() || subshell_environment)
		return 0;
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &old);
	interrupt = set_signal_handler(SIGINT, SIG_IGN); /* it is the program's */
	pid = fork();
	if (pid <= 0) {
		set_signal_handler(SIGINT, interrupt);
		sigprocmask(SIG_SETMASK, &old, NULL);
		return 0;
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	set_sigint_handler();
	sigprocmask(SIG_SETMASK, &old, NULL);
	last_command_exit_value = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	jump_to_top_level(EXITBLTIN);
	return 1;
}

/* inside/pod/image/libc/src/start.c - where a module begins: one thread, arguments from the host,
 * main. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "door.h"
#include "libc.h"
#include "pthread_impl.h"

hidden uintptr_t __pod_thread;
volatile int __thread_list_lock;
static struct pthread main_thread;
static void *thread_data[PTHREAD_KEYS_MAX];

static int main_argc;
static char **main_argv;

extern void __wasm_call_ctors(void);
int __main_void(void);
int __main_argc_argv(int argc, char **argv);

/* The compiler renames main by its parameters; this serves the one that has some. */
weak int __main_void(void)
{
	return __main_argc_argv(main_argc, main_argv);
}

hidden int __set_thread_area(void *p)
{
	__pod_thread = (uintptr_t)p;
	return 0;
}

static void start_thread(void)
{
	struct pthread *self = &main_thread;

	self->self = self;
	self->detach_state = DT_JOINABLE;
	self->locale = &libc.global_locale;
	self->robust_list.head = &self->robust_list.head;
	self->next = self->prev = self;
	self->tsd = thread_data;
	__pod_thread = (uintptr_t)self;
	self->tid = __pod_door(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Reads argv and the environment; called again where a copy of a warm program resumes. */
int __pod_arguments(char ***ret_argv)
{
	static size_t no_aux[2];
	unsigned bytes = __pod_door(POD_ARGS_SIZE, 0, 0, 0, 0, 0, 0);
	char **block = malloc(bytes);
	int argc;

	if (!block || __pod_door(POD_ARGS_COPY, (uintptr_t)block, bytes, 0, 0, 0, 0) < 0)
		_Exit(127);
	argc = (int)(uintptr_t)block[0];
	main_argc = argc;
	main_argv = block + 1;
	__environ = main_argv + argc + 1;
	libc.auxv = no_aux;
	__progname = __progname_full = argc ? main_argv[0] : "";
	for (char *p = __progname_full; *p; p++)
		if (*p == '/')
			__progname = p + 1;
	if (ret_argv)
		*ret_argv = main_argv;
	return argc;
}

/* The name under which the image knows this program: argv[0] is whatever the caller said,
 * so a program of many names must not choose by that what it is allowed to be. */
const char *__pod_program(void)
{
	static char name[256];

	if (!name[0])
		__pod_door(POD_PROGRAM, (uintptr_t)name, sizeof name, 0, 0, 0, 0);
	return name;
}

/* 1 in every copy that is resumed from here; in the original it does not return. */
int __pod_checkpoint(void)
{
	int resumed = __pod_door(POD_CHECKPOINT, 1, 0, 0, 0, 0, 0);

	if (resumed == 1) {
		main_thread.tid = __pod_door(SYS_gettid, 0, 0, 0, 0, 0, 0);
		__pod_door(POD_SIGNALS, (uintptr_t)&__pod_signals, 0, 0, 0, 0, 0);
		__pod_resume_signals();
	}
	return resumed;
}

__attribute__((export_name("_start"))) void _start(void)
{
	libc.page_size = 4096;
	start_thread();
	__pod_door(POD_SIGNALS, (uintptr_t)&__pod_signals, 0, 0, 0, 0, 0);
	__pod_arguments(0);
	__wasm_call_ctors();
	exit(__main_void());
}

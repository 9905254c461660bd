/* inside/pod/runtime/run.c - see run.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/run.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "inside/pod/runtime/checkpoint.h"
#include "inside/pod/runtime/image.h"
#include "inside/pod/runtime/instance.h"
#include "inside/pod/runtime/signals.h"

static void enter(void *arg)
{
	struct w2c_sys *p = arg;

	p->command->program->enter(p, &p->memory);
	_exit(0);
}

/* From one program to the next. There is no instance in between, so a signal that arrives now has
 * its default action. */
static void change(struct w2c_sys *p)
{
	signals_hold();
	signals_exec();
	instance_reset();
	p->memory = NULL;
	p->command = p->next;
	p->next = NULL;
	if (p->has_run)
		p->session = 0; /* a program that the shell execs is not the shell */
	p->has_run = true;
	instance.name = p->command->name;
	prctl(PR_SET_NAME, p->command->name);
	signals_release();
}

void run_programs(struct w2c_sys *p)
{
	if (_setjmp(p->exec))
		image_close_marked(p);
	change(p);
	checkpoint_resume(p);
	instance_call(enter, p);
	_exit(0);
}

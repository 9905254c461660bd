/* pod/checkpoint.c - a program that has started, kept as a snapshot that exec resumes. */
#define _GNU_SOURCE
#include "checkpoint.h"
#include "door.h"

void checkpoint_make(struct w2c_sys *p, char *const *envp)
{
	(void)p;
	(void)envp;
}

void checkpoint_resume(struct w2c_sys *p)
{
	(void)p;
}

DOOR_FN(own_checkpoint)
{
	(void)p;
	(void)a;
	return 0;
}

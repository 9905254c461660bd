/* inside/pod/image/lib/no-c-stack.c - gnulib's c-stack where a stack overflow is the engine's trap
 * already. */
#include <config.h>
#include <signal.h>

#include "c-stack.h"

int c_stack_action(void (*action)(int))
{
	(void)action;
	return 0;
}

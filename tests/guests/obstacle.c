/* tests/guests/obstacle.c - preloaded into Node: OBSTACLE=symbols hides V8's functions from
 * cordon_node.node, OBSTACLE=threads lets it make no thread. Node's own are as ever. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OUR_STACK_BYTES = 128 << 10 }; /* of the thread in interrupt.c; Node's have more */

static bool is_on(const char *what)
{
	const char *obstacle = getenv("OBSTACLE");

	return obstacle && strcmp(obstacle, what) == 0;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	void *(*real)(void *, const char *) = NULL;

	*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
	return is_on("symbols") && strstr(name, "TerminateExecution") ? NULL : real(handle, name);
}

int pthread_create(pthread_t *restrict ret, const pthread_attr_t *restrict attr,
		   void *(*run)(void *), void *restrict arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = NULL;
	size_t bytes = 0;

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	if (attr)
		(void)pthread_attr_getstacksize(attr, &bytes);
	return is_on("threads") && bytes == OUR_STACK_BYTES ? EAGAIN : real(ret, attr, run, arg);
}

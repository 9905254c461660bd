/* wall/ahead.c - see ahead.h. */
#include "wall/ahead.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

struct ahead ahead_started;

bool ahead_has(uid_t uid, struct ahead *ret)
{
	*ret = ahead_started;
	return ret->pid > 0 && ret->uid == uid;
}

void ahead_take(void)
{
	ahead_started.pid = 0;
}

void ahead_drop(void)
{
	struct ahead a = ahead_started;
	siginfo_t info;

	if (a.pid <= 0)
		return;
	ahead_take();
	close(a.plan);
	close(a.control);
	close(a.status);
	close(a.pidfd);
	while (waitid(P_PID, (id_t)a.pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

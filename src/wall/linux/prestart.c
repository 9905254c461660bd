/* wall/linux/prestart.c - see prestart.h. */
#include "wall/linux/prestart.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

struct prestart prestart_started;

bool prestart_has(uid_t uid, struct prestart *ret)
{
	*ret = prestart_started;
	return ret->pid > 0 && ret->uid == uid;
}

void prestart_take(void)
{
	prestart_started.pid = 0;
}

void prestart_drop(void)
{
	struct prestart a = prestart_started;
	siginfo_t info;

	if (a.pid <= 0)
		return;
	prestart_take();
	close(a.plan);
	close(a.control);
	close(a.status);
	close(a.pidfd);
	while (waitid(P_PID, (id_t)a.pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

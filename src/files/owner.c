/* files/owner.c - see owner.h. */
#include "files/owner.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Raw system calls, because libc would change the ids of all threads. An id of -1 changes nothing
 * and returns the current one. */
static uid_t file_uid(uid_t to)
{
	return (uid_t)syscall(SYS_setfsuid, to);
}

static gid_t file_gid(gid_t to)
{
	return (gid_t)syscall(SYS_setfsgid, to);
}

int owner_enter(struct owner *o, uid_t uid, gid_t gid)
{
	*o = (struct owner){ .uid = uid, .gid = gid };
	if (uid == (uid_t)-1 || geteuid() != 0 || uid == 0)
		return 0;
	if (file_uid((uid_t)-1) == uid && file_gid((gid_t)-1) == gid)
		return 0; /* already entered, by an outer call of this thread */
	o->back_gid = file_gid(gid);
	o->back_uid = file_uid(uid); /* also drops the capabilities that override modes */
	o->is_switched = 1;
	if (file_uid((uid_t)-1) == uid && file_gid((gid_t)-1) == gid)
		return 0;
	owner_leave(o);
	return -EPERM;
}

void owner_leave(struct owner *o)
{
	if (!o->is_switched)
		return;
	(void)file_uid(o->back_uid);
	(void)file_gid(o->back_gid);
	o->is_switched = 0;
}

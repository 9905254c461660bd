/* files/owner.c - see owner.h. */
#include "files/owner.h"

#include <errno.h>
#include <unistd.h>

#include "base/os.h"

int owner_enter(struct owner *o, uid_t uid, gid_t gid)
{
	*o = (struct owner){ .uid = uid, .gid = gid };
	if (uid == (uid_t)-1 || geteuid() != 0 || uid == 0)
		return 0;
	if (os_file_uid((uid_t)-1) == uid && os_file_gid((gid_t)-1) == gid)
		return 0; /* already entered, by an outer call of this thread */
	o->back_gid = os_file_gid(gid);
	o->back_uid = os_file_uid(uid); /* also drops the capabilities that override modes */
	o->is_switched = 1;
	if (os_file_uid((uid_t)-1) == uid && os_file_gid((gid_t)-1) == gid)
		return 0;
	owner_leave(o);
	return -EPERM;
}

void owner_leave(struct owner *o)
{
	if (!o->is_switched)
		return;
	(void)os_file_uid(o->back_uid);
	(void)os_file_gid(o->back_gid);
	o->is_switched = 0;
}

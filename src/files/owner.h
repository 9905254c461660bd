/* files/owner.h - works under the guest's file ids, so that files made by the host belong to the
 * guest. */
#pragma once

#include <sys/types.h>

/* A tmpfs of a user namespace cannot hold files of ids that the namespace does not map, uid 0 above
 * all; and with the guest's ids the kernel honours mode bits for the host as it does for the guest.
 */
struct owner {
	uid_t uid, back_uid;
	gid_t gid, back_gid;
	int is_switched;
};

/* Changes the file ids of the calling thread when the process is root and uid is another.
 * 0 or -errno. */
int owner_enter(struct owner *o, uid_t uid, gid_t gid);
void owner_leave(struct owner *o); /* no effect when not entered */

#define cleanup_owner __attribute__((cleanup(owner_leave)))

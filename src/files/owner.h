/* files/owner.h - works under the guest's file ids, so that files made by the host belong to the
 * guest. */
#pragma once

#include <sys/types.h>

/* A tmpfs in a user namespace cannot hold files of ids that the namespace does not map, such as uid
 * 0. With the guest's ids the kernel also checks mode bits for the host as it does for the
 * guest. */
struct owner {
	uid_t uid, back_uid;
	gid_t gid, back_gid;
	int is_switched;
};

/* Changes the file ids of the calling thread if the process is root and uid is another. 0 or
 * -errno. */
int owner_enter(struct owner *o, uid_t uid, gid_t gid);
void owner_leave(struct owner *o); /* no effect if not entered */

#define cleanup_owner __attribute__((cleanup(owner_leave)))

/* wall/linux/plan_send.c - see plan_send.h. */
#include "wall/linux/plan_send.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "wall/linux/idmap.h"

enum { RECEIVERS = 3 };

void plan_send_init(struct plan_send *p, const struct cgroup *c)
{
	p->mount_count = 0;
	for (int i = 0; i < INIT_FD_END; i++)
		p->fds[i] = -1;
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->is_v2)
			p->fds[INIT_FD_CGROUP + (int)i] = c->join_fds[i];
		p->fds[INIT_FD_PARENT + (int)i] = c->parent_fds[i];
	}
}

void plan_send_done(struct plan_send *p)
{
	for (uint32_t i = 0; i < p->mount_count; i++)
		close_fdp(&p->mounts[i]);
	p->mount_count = 0;
}

/* Whether a process without privileges can reach path: an interpreter of root may be in /root. */
static bool is_reachable(const char *path, uid_t uid)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *p = path; (p = strchr(p + 1, '/')) && (size_t)(p - path) < sizeof(part);) {
		memcpy(part, path, (size_t)(p - path));
		part[p - path] = '\0';
		if (stat(part, &st) == 0 && !(st.st_mode & S_IXOTH) && st.st_uid != uid)
			return false;
	}
	return true;
}

static int open_mount(const struct launch_bind *bind, uid_t uid, gid_t gid, int *ret_fd,
		      struct cordon_error **reterr)
{
	if (bind->flags & BIND_WRITABLE)
		return idmap_open(bind->host, uid, gid, ret_fd, reterr);
	*ret_fd = (int)syscall(428 /* open_tree */, AT_FDCWD, bind->host,
			       1 /* CLONE */ | 0x8000 /* RECURSIVE */ | O_CLOEXEC);
	return *ret_fd < 0 ? err_errno(reterr, errno, "mount '%s'", bind->host) : 0;
}

static bool is_made(const struct blueprint_options *blueprint, const char *host)
{
	bool found = false;

	for (uint32_t i = 0; !found && i < blueprint->made_count; i++)
		found = str_eq(blueprint->made[i], host);
	return found;
}

static int map_mounts(struct plan_send *p, const struct launch *l, uid_t uid, gid_t gid,
		      struct blueprint_options *blueprint, struct cordon_error **reterr)
{
	for (size_t i = 0; i < l->bind_count; i++) {
		const char *path = l->binds[i].host;
		int fd = -1, r = 0;

		if (!(l->binds[i].flags & BIND_WRITABLE) &&
		    (!(l->binds[i].flags & BIND_EXEC) || is_reachable(path, uid)))
			continue;
		if (l != blueprint->launch && is_made(blueprint, path))
			continue; /* several launches of a place need it */
		if (blueprint->private_dir || p->mount_count == PLAN_MOUNTS)
			return err_set(reterr, CORDON_UNSUPPORTED, "'%s' cannot be mounted: %s",
				       path,
				       blueprint->private_dir ? "there is no mount namespace"
							      : "there are already 8 such mounts");
		r = open_mount(&l->binds[i], uid, gid, &fd, reterr);
		if (r < 0)
			return r;
		if (fd < 0)
			continue;
		p->fds[INIT_FD_MOUNT + (int)p->mount_count] = fd;
		p->mounts[p->mount_count++] = fd;
		blueprint->made[blueprint->made_count++] = path;
	}
	return 0;
}

int plan_send_map_mounts(struct plan_send *p, uid_t uid, gid_t gid,
			 struct blueprint_options *blueprint, struct cordon_error **reterr)
{
	const struct launch *l;
	int r = 0;

	for (size_t k = 0;
	     r == 0 && blueprint->machine->is_root && (l = blueprint_launch(blueprint, k)); k++)
		r = map_mounts(p, l, uid, gid, blueprint, reterr);
	return r;
}

/* A message with descriptors and, after `skip` bytes, their numbers. */
struct packet {
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(INIT_FD_END * sizeof(int))];
	} u;
	unsigned char text[1 + INIT_FD_END];
	int fds[INIT_FD_END];
	size_t count;
};

static void put(struct packet *p, size_t skip, int number, int fd)
{
	if (fd < 0)
		return;
	p->text[skip + p->count] = (unsigned char)number;
	p->fds[p->count++] = fd;
}

/* 0 or -errno. */
static int send_packet(struct packet *p, size_t skip, int socket, int flags)
{
	struct iovec iov = { .iov_base = p->text, .iov_len = skip + p->count };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = p->u.room,
			      .msg_controllen = CMSG_SPACE(p->count * sizeof(int)) };

	p->u.head.cmsg_level = SOL_SOCKET;
	p->u.head.cmsg_type = SCM_RIGHTS;
	p->u.head.cmsg_len = CMSG_LEN(p->count * sizeof(int));
	memcpy(CMSG_DATA(&p->u.head), p->fds, p->count * sizeof(int));
	return sendmsg(socket, &msg, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

int plan_send_send(const struct plan_send *p, int socket, int plan_fd, struct cordon_error **reterr)
{
	struct packet packet = { 0 };

	/* In this order most of them get the right numbers on arrival (plan_receive). */
	for (int i = 0; i < INIT_FD_END; i++)
		put(&packet, 0, i, p->fds[i]);
	put(&packet, 0, INIT_FD_PLAN, plan_fd);
	for (int i = 0; i < RECEIVERS; i++) {
		int r = send_packet(&packet, 0, socket, 0);

		if (r < 0)
			return r == -EPIPE || r == -ECONNRESET
				       ? 0
				       : err_errno(reterr, -r, "send the plan");
	}
	return 0;
}

int plan_send_order(char order, int fd, int socket)
{
	struct packet packet = { .text = { (unsigned char)order } };

	put(&packet, 1, INIT_FD_CONTROL, fd);
	return send_packet(&packet, 1, socket, MSG_DONTWAIT);
}

int plan_send_join(const int fds[static PLAN_SEND_JOIN], int socket)
{
	struct packet packet = { .text = { CONTROL_JOIN } };

	for (int i = 0; i < PLAN_SEND_JOIN; i++)
		put(&packet, 1, i, fds[i]);
	return send_packet(&packet, 1, socket, MSG_DONTWAIT);
}

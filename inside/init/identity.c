/* inside/init/identity.c - see identity.h. */
#include "inside/init/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wall/linux/kernel.h"
#include "wall/linux/relay.h"

static int write_file(const char *path, const char *text)
{
	int fd = kernel_open(path, O_WRONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, strlen(text));
	int r = n < 0 ? -errno : 0;
	close(fd);
	return r;
}

int identity_map(struct job *j, uid_t outside_uid, gid_t outside_gid)
{
	char line[64];
	int r = write_file("/proc/self/setgroups", "deny");

	if (r < 0)
		return plan_fail(j, STAGE_IDMAP, 0, -r);
	snprintf(line, sizeof(line), "%d %u 1", INSIDE_ID, outside_uid);
	r = write_file("/proc/self/uid_map", line);
	if (r < 0)
		return plan_fail(j, STAGE_IDMAP, 1, -r);
	snprintf(line, sizeof(line), "%d %u 1", INSIDE_ID, outside_gid);
	r = write_file("/proc/self/gid_map", line);
	return r < 0 ? plan_fail(j, STAGE_IDMAP, 2, -r) : 0;
}

int identity_forbid_nesting(struct job *j, unsigned allowed)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", allowed);
	int r = write_file("/proc/sys/user/max_user_namespaces", text);
	return r < 0 ? plan_fail(j, STAGE_NESTED, 0, -r) : 0;
}

int identity_limit_watches(struct job *j, bool is_template)
{
	/* On most machines a user may have 128 instances for all processes. Those of a template are
	 * for all its sessions; each gets a few (root.c). */
	int r = write_file("/proc/sys/user/max_inotify_instances", is_template ? "64" : "8");

	if (r == 0)
		r = write_file("/proc/sys/user/max_inotify_watches", is_template ? "8192" : "1024");
	return r < 0 && r != -ENOENT ? plan_fail(j, STAGE_NESTED, 1, -r) : 0;
}

int identity_join_cgroups(struct job *j, const int *fds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (write(fds[i], "0", 1) != 1)
			return plan_fail(j, STAGE_CGROUP, i, errno);
	return 0;
}

int identity_hostname(struct job *j)
{
	static const char name[] = "sandbox";

	if (sethostname(name, sizeof(name) - 1) != 0 || setdomainname("", 0) != 0)
		return plan_fail(j, STAGE_HOSTNAME, 0, errno);
	return 0;
}

int identity_open_relay(struct job *j, int gateway)
{
	bool has_gateway = j->flags & PLANF_RELAY;
	struct relay_options o = { .gateway_fd = has_gateway ? gateway : -1,
				   .ports = plan_at(j, j->plan->relay_ports),
				   .port_count = j->plan->relay_port_count };
	int r = relay_open(&o, NULL);

	return r < 0 ? plan_fail(j, STAGE_NETWORK, 0, -r) : 0;
}

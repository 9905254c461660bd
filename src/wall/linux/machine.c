/* wall/linux/machine.c - see machine.h. */
#include "wall/linux/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/policy.h"
#include "wall/linux/kernel.h"
#include "wall/linux/namespaces.h"

static const char *const controller_names[MACHINE_CONTROLLERS] = { "memory", "pids", "cpu" };

static bool has_word(const char *list, const char *word, char separator)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len) {
		bool starts = p == list || p[-1] == separator || p[-1] == ' ';
		char end = p[len];
		if (starts && (end == separator || end == '\0' || end == '\n' || end == ' '))
			return true;
	}
	return false;
}

/* A directory in which we may make cgroups. */
static bool is_usable(const char *dir)
{
	return access(dir, W_OK | X_OK) == 0;
}

static bool read_line(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, ret, size - 1);
	close(fd);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Whether a v2 group passes memory and pids on to its children. */
static bool passes_on(const char *path)
{
	char file[600], text[256];

	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", path);
	return read_line(file, text, sizeof(text)) && has_word(text, "memory", ' ') &&
	       has_word(text, "pids", ' ');
}

static bool write_line(const char *dir, const char *name, const char *text)
{
	char file[600];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) >= 0;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Only a group without processes, or the root group, can enable controllers for its children. */
static bool tell_to_pass_on(const char *path)
{
	if (!write_line(path, "cgroup.subtree_control", "+memory +pids"))
		return false;
	(void)write_line(path, "cgroup.subtree_control", "+cpu");
	return passes_on(path);
}

/* A delegated service lives in its own group, which then cannot have children with controllers. If
 * the service is alone in it, it moves into a leaf group. */
static bool make_room(const char *path)
{
	char file[600], text[64], own[32], leaf[600];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	snprintf(own, sizeof(own), "%d\n", (int)getpid());
	if (!read_line(file, text, sizeof(text)) || strcmp(text, own) != 0)
		return false;
	snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
	if (!read_line(file, text, sizeof(text)) || !has_word(text, "memory", ' ') ||
	    !has_word(text, "pids", ' '))
		return false;
	snprintf(leaf, sizeof(leaf), "%s/cordon-host", path);
	if ((mkdir(leaf, 0755) != 0 && errno != EEXIST) || !write_line(leaf, "cgroup.procs", "0"))
		return false;
	if (tell_to_pass_on(path))
		return true;
	(void)write_line(path, "cgroup.procs", "0");
	(void)rmdir(leaf);
	return false;
}

/* The nearest writable group, from `own` upwards, for which `is` returns true. */
static bool find_ancestor(const char *mount, const char *own, bool (*is)(const char *),
			  char ret[static 256])
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s%s", mount, strcmp(own, "/") ? own : "") >=
	    (int)sizeof(path))
		return false;
	while (!is_usable(path) || !is(path)) {
		char *slash = strrchr(path, '/');

		if (!slash || strlen(path) <= strlen(mount))
			return false;
		*slash = '\0';
	}
	return str_copy(ret, 256, path);
}

/* v2: a group whose children get the controllers, or can be made to. */
static bool find_v2(struct machine *m, const char *mount, const char *own)
{
	static bool (*const ways[])(const char *) = { passes_on, tell_to_pass_on, make_room };

	for (size_t i = 0; !m->cgroup_v2 && i < sizeof(ways) / sizeof(*ways); i++)
		m->cgroup_v2 = find_ancestor(mount, own, ways[i], m->cgroup_dir[0]);
	return m->cgroup_v2;
}

/* One line of /proc/self/cgroup: "4:memory:/path" or "0::/path"; returns the path of the latter. */
static char *look_at_hierarchy(struct machine *m, char *line, bool v1[MACHINE_CONTROLLERS])
{
	char *names = strchr(line, ':');
	char *own = names ? strchr(names + 1, ':') : NULL;

	if (!own)
		return NULL;
	*names++ = '\0';
	*own++ = '\0';
	if (*names == '\0')
		return own;
	for (int i = 0; i < MACHINE_CONTROLLERS; i++) {
		char dir[256];

		if (!has_word(names, controller_names[i], ','))
			continue;
		int n = snprintf(dir, sizeof(dir), "/sys/fs/cgroup/%s%s", controller_names[i],
				 strcmp(own, "/") ? own : "");
		if (n > 0 && n < (int)sizeof(dir) && is_usable(dir)) {
			memcpy(m->cgroup_dir[i], dir, sizeof(dir));
			v1[i] = true;
		}
	}
	return NULL;
}

static void look_at_cgroups(struct machine *m)
{
	char text[4096], *save = NULL, *v2 = NULL;
	bool v1[MACHINE_CONTROLLERS] = { false };

	if (!read_line("/proc/self/cgroup", text, sizeof(text))) {
		str_copy(m->cgroup_why, sizeof(m->cgroup_why), "/proc/self/cgroup cannot be read");
		return;
	}
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *own = look_at_hierarchy(m, l, v1);
		v2 = own ? own : v2;
	}
	/* Hybrid: a controller mounted as v1 is not available in v2. */
	if (!v1[CONTROLLER_MEMORY] || !v1[CONTROLLER_PIDS]) {
		memset(m->cgroup_dir, 0, sizeof(m->cgroup_dir));
		if (v2 && !find_v2(m, "/sys/fs/cgroup", v2))
			(void)find_v2(m, "/sys/fs/cgroup/unified", v2);
	}
	if (!m->cgroup_dir[0][0])
		str_copy(m->cgroup_why, sizeof(m->cgroup_why),
			 "no cgroup with memory and pids controllers is delegated to this user");
}

/* Whether our user namespace maps this uid. In a container, root may not be able to use it. */
static bool has_uid(unsigned long uid, unsigned long *ret_outside)
{
	char text[4096], *save = NULL;

	if (!read_line("/proc/self/uid_map", text, sizeof(text)))
		return false;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *end;
		unsigned long inside = strtoul(l, &end, 10);
		unsigned long outside = strtoul(end, &end, 10);
		unsigned long count = strtoul(end, &end, 10);

		if (uid >= inside && uid - inside < count) {
			*ret_outside = outside + (uid - inside);
			return true;
		}
	}
	return false;
}

uid_t machine_box_uid(void)
{
	unsigned long outside;

	if (geteuid() != 0)
		return geteuid();
	if (has_uid(MACHINE_BOX_UID, &outside) &&
	    has_uid(MACHINE_BOX_UID + MACHINE_BOX_UIDS - 1, &outside))
		return MACHINE_BOX_UID;
	return has_uid(MACHINE_LONE_UID, &outside) ? MACHINE_LONE_UID : 0;
}

void machine_look_first(struct machine *m)
{
	*m = (struct machine){ .has_userns = true, .box_uid = machine_box_uid() };
	m->is_root = m->box_uid != geteuid();
	m->has_box_uids = m->is_root && m->box_uid == MACHINE_BOX_UID;
	/* Only if we must stay uid 0. An ordinary user's uid is not 0 outside either. */
	unsigned long outside = 1;
	m->is_host_root = m->box_uid == 0 && has_uid(0, &outside) && outside == 0;
	look_at_cgroups(m);
}

void machine_look_further(struct machine *m)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */);

	m->landlock_abi = abi > 0 ? (int)abi : 0;
	namespaces_read(m->namespaces);
}

/* Does what a launch does first, in a child that ends at once. */
static int try_userns(void)
{
	uid_t uid = machine_box_uid();

	if (uid != geteuid() && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
		return 1;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS) != 0)
		return 1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return 2;
	if (mount("probe", "/tmp", "tmpfs", 0, "size=4k") != 0)
		return 3;
	return 0;
}

void machine_probe(struct machine *m)
{
	static const char *const steps[] = { "", "make a user namespace", "make mounts private",
					     "mount a tmpfs" };
	int pair[2], said[2] = { 0, 0 }, status;

	machine_look_first(m);
	machine_look_further(m);
	if (pipe2(pair, O_CLOEXEC) != 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		int answer[2] = { try_userns(), 0 };
		answer[1] = answer[0] ? errno : 0;
		_exit(write(pair[1], answer, sizeof(answer)) != sizeof(answer));
	}
	close(pair[1]);
	if (pid > 0) {
		m->has_userns = read(pair[0], said, sizeof(said)) == sizeof(said) && said[0] == 0;
		m->userns_errno = said[1];
		m->userns_step = steps[said[0] > 0 && said[0] < 4 ? said[0] : 0];
		waitpid(pid, &status, 0);
	}
	close(pair[0]);
}

/* Whether a new namespace of this kind could be distinguished from ours. */
static bool can_tell(const struct machine *m, uint32_t layer)
{
	if (layer == LAYER_OWN_NETNS)
		layer = LAYER_NETNS;
	for (int i = 0; i < MACHINE_NAMESPACES; i++)
		if (layer == 1U << i)
			return m->namespaces[i] != 0;
	return true;
}

const char *machine_missing(const struct machine *m, uint32_t layer, const char **ret_remedy)
{
	switch (layer) {
	case LAYER_LANDLOCK:
		*ret_remedy =
			"use Linux 5.13 or newer with `landlock` among the boot parameter lsm=";
		return m->landlock_abi > 0 ? NULL : "this kernel has no Landlock";
	case LAYER_LANDLOCK_NET:
		*ret_remedy = "use Linux 6.7 or newer";
		return m->landlock_abi >= 4 ? NULL : "this kernel's Landlock has no TCP rules";
	case LAYER_LANDLOCK_SCOPE:
		*ret_remedy = "use Linux 6.12 or newer";
		return m->landlock_abi >= 6 ? NULL : "this kernel's Landlock has no scopes";
	case LAYER_CGROUPS:
		*ret_remedy = "run as root, or in a systemd user session with delegated memory and "
			      "pids controllers (systemd-run --user --scope -p Delegate=yes ...)";
		return m->cgroup_dir[0][0] ? NULL : m->cgroup_why;
	case LAYER_SECCOMP:
	case LAYER_RLIMITS:
		*ret_remedy = "";
		return NULL;
	default:
		if (m->has_userns && !can_tell(m, layer)) {
			*ret_remedy = "mount /proc";
			return "our own namespaces cannot be read in /proc/self/ns, so a new one "
			       "could not be verified";
		}
		*ret_remedy =
			"allow unprivileged user namespaces: sysctl user.max_user_namespaces, "
			"kernel.unprivileged_userns_clone=1, "
			"kernel.apparmor_restrict_unprivileged_userns=0, or in a container a "
			"seccomp profile that permits clone(CLONE_NEWUSER) and mount";
		return m->has_userns ? NULL : "user namespaces are not available here";
	}
}

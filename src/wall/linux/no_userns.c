/* wall/linux/no_userns.c - see no_userns.h. */
#include "wall/linux/no_userns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int no_userns_check(const struct machine *m, struct cordon_error **reterr)
{
	if (m->landlock_abi < NO_USERNS_LANDLOCK_ABI)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "user namespaces are not available here, and without them the wall "
			       "needs Landlock ABI %d (this kernel has %d); remedy: Linux 6.2 or "
			       "newer, or user namespaces",
			       NO_USERNS_LANDLOCK_ABI, m->landlock_abi);
	if (m->is_host_root)
		return err_set(
			reterr, CORDON_UNSUPPORTED,
			"user namespaces are not available here, and the code would run with "
			"the host's uid 0; remedy: start Cordon as an ordinary user");
	return 0;
}

int no_userns_make(uid_t owner, char ret[static NO_USERNS_PATH], struct cordon_error **reterr)
{
	const char *parent = getenv("TMPDIR");
	int n = snprintf(ret, NO_USERNS_PATH, "%s/cordon-XXXXXX",
			 parent && parent[0] == '/' ? parent : "/tmp");

	if (n < 0 || n >= NO_USERNS_PATH)
		return err_set(reterr, CORDON_INVALID, "the name of TMPDIR is too long");
	if (!mkdtemp(ret)) {
		int e = errno;

		ret[0] = '\0';
		return err_errno(reterr, e, "make a private directory in '%s'",
				 parent ? parent : "/tmp");
	}
	/* Independent of the host's umask. */
	if (chmod(ret, 0700) != 0 || (owner != geteuid() && chown(ret, owner, owner) != 0)) {
		int e = errno;

		(void)rmdir(ret);
		ret[0] = '\0';
		return err_errno(reterr, e, "change the owner of the private directory");
	}
	return 0;
}

static const struct {
	const char *guest, *below;
} places[] = {
	{ "/home/user", NO_USERNS_WORKSPACE "/user" },
	{ "/tmp", NO_USERNS_WORKSPACE "/tmp" },
	{ "/workspace", NO_USERNS_WORKSPACE "/workspace" },
	{ "/run/cordon", NO_USERNS_RUNTIME },
};

/* The host path of a guest path; NULL: out of memory. */
static char *host_path(const char *path, const char *dir)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		size_t len = strlen(places[i].guest);

		if (strncmp(path, places[i].guest, len) == 0 &&
		    (path[len] == '/' || path[len] == '\0'))
			return str_printf("%s/%s%s", dir, places[i].below, path + len);
	}
	return str_dup(path);
}

/* Rewrites paths, NAME=path and --option=path. */
static int rewrite_list(const struct strlist *from, const char *dir, struct strlist *to)
{
	for (size_t i = 0; i < from->count; i++) {
		const char *eq = from->items[i][0] == '/' ? NULL : strchr(from->items[i], '=');
		size_t head = eq ? (size_t)(eq - from->items[i]) + 1 : 0;
		cleanup_free char *tail = host_path(from->items[i] + head, dir);
		cleanup_free char *all =
			tail ? str_printf("%.*s%s", (int)head, from->items[i], tail) : NULL;

		if (!all || strlist_add(to, all) < 0)
			return -CORDON_NOMEM;
	}
	return 0;
}

static int rewrite_binds(const struct launch *l, struct launch *ret, struct cordon_error **reterr)
{
	for (size_t i = 0; i < l->bind_count; i++) {
		const struct launch_bind *b = &l->binds[i];

		if (!str_eq(b->host, b->guest))
			return err_set(reterr, CORDON_UNSUPPORTED,
				       "without a mount namespace '%s' cannot be seen as '%s'; "
				       "remedy: mount it under its own path",
				       b->host, b->guest);
		if (launch_bind(ret, b->host, NULL, b->flags) < 0)
			return err_errno(reterr, ENOMEM, "the launch");
	}
	return 0;
}

static int rewrite_files(const struct launch *l, const char *dir, struct launch *ret,
			 struct cordon_error **reterr)
{
	for (size_t i = 0; i < l->file_count; i++) {
		const struct launch_file *f = &l->files[i];

		if (!str_starts(f->guest, "/run/cordon/"))
			return err_set(reterr, CORDON_UNSUPPORTED,
				       "without a mount namespace there is no file of its own at "
				       "'%s'; remedy: mount it below /workspace",
				       f->guest);
		cleanup_free char *path = host_path(f->guest, dir);
		if (!path || launch_file(ret, path, f->bytes, f->len, f->mode) < 0)
			return err_errno(reterr, ENOMEM, "the launch");
	}
	return 0;
}

int no_userns_rewrite(const struct launch *l, const char *dir, struct launch *ret,
		      struct cordon_error **reterr)
{
	cleanup_launch struct launch new = { .filter = l->filter, .has_exec = l->has_exec };

	if (l->filter == LAUNCH_POD)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the pod guest needs a mount namespace, and user namespaces are not "
			       "available here; remedy: allow them, or use python, r, node or sh");
	if (l->has_network)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "%s a network namespace, and user namespaces are not "
			       "available here; remedy: leave %s empty",
			       l->has_gateway ? "the gateway needs" : "a port to be reached needs",
			       l->has_gateway ? "network.allow" : "expose");
	int r = rewrite_binds(l, &new, reterr);
	if (r == 0)
		r = rewrite_files(l, dir, &new, reterr);
	if (r < 0)
		return r;
	new.executable = host_path(l->executable, dir);
	new.cwd = host_path(l->cwd ? l->cwd : "/home/user", dir);
	if (!new.executable || !new.cwd || rewrite_list(&l->argv, dir, &new.argv) < 0 ||
	    rewrite_list(&l->env, dir, &new.env) < 0 ||
	    rewrite_list(&l->exec_paths, dir, &new.exec_paths) < 0 ||
	    rewrite_list(&l->read_paths, dir, &new.read_paths) < 0)
		return err_errno(reterr, ENOMEM, "the launch");
	*ret = new;
	new = (struct launch){ 0 };
	return 0;
}

uint64_t no_userns_count_tasks(uid_t user)
{
	uint64_t count = 0;
	DIR *d = opendir("/proc");

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300];
		struct stat st;

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task", e->d_name);
		if (stat(path, &st) == 0 && st.st_uid == user && st.st_nlink > 2)
			count += st.st_nlink - 2;
	}
	if (d)
		closedir(d);
	return count;
}

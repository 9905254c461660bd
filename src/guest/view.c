/* guest/view.c - see view.h. The dynamic loader can start any ELF file that it can read. So
 * programs that may not run are not bound at all; Landlock's execute right is a second barrier. */
#include "guest/view.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#define LOADER "ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#define LOADER "ld-linux-aarch64.so.1"
#else
#error "name this architecture's library folder and loader"
#endif

static int bind_all(struct launch *l, const char *const *paths, uint32_t flags)
{
	for (; *paths; paths++)
		if (launch_bind(l, *paths, NULL, flags) < 0)
			return -CORDON_NOMEM;
	return 0;
}

int view_libraries(struct launch *l)
{
	/* Debian keeps libraries apart from programs. On other systems all of /usr/lib is bound. */
	static const char *const debian[] = { "/usr/lib/" TRIPLET, "/usr/lib64", NULL };
	static const char *const others[] = { "/usr/lib", "/usr/lib64", NULL };
	static const char *const etc[] = { "/etc/ld.so.cache", "/etc/alternatives", NULL };
	char loader[PATH_MAX];

	if (bind_all(l, access("/usr/lib/" TRIPLET, X_OK) == 0 ? debian : others, BIND_OPTIONAL) <
		    0 ||
	    bind_all(l, etc, BIND_OPTIONAL) < 0)
		return -CORDON_NOMEM;
	/* execve opens the loader too. */
	if (realpath("/lib64/" LOADER, loader) || realpath("/lib/" LOADER, loader))
		return strlist_add(&l->exec_paths, loader);
	return 0;
}

int view_data(struct launch *l)
{
	static const char *const paths[] = { "/usr/share/zoneinfo",
					     "/usr/lib/locale",
					     "/usr/share/fonts",
					     "/usr/share/fontconfig",
					     "/etc/fonts",
					     "/etc/localtime",
					     "/usr/lib/ssl/openssl.cnf",
					     NULL };

	return bind_all(l, paths, BIND_OPTIONAL);
}

int view_program(struct launch *l, const char *path, struct cordon_error **reterr)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return err_errno(reterr, errno, "the program '%s'", path);
	struct stat st;
	if (stat(real, &st) != 0 || !S_ISREG(st.st_mode) || access(real, X_OK) != 0)
		return err_set(reterr, CORDON_INVALID, "'%s' is not an executable file", path);
	if (launch_bind(l, real, NULL, BIND_EXEC) < 0 || strlist_add(&l->exec_paths, real) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	if (strcmp(real, path) != 0 && launch_link(l, real, path) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	return 0;
}

int view_commands(struct launch *l, const struct policy_list *commands,
		  struct cordon_error **reterr)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin" };

	for (size_t i = 0; i < commands->names.count; i++) {
		const char *name = commands->names.items[i];
		char path[512] = "";

		if (strchr(name, '/') || strlen(name) > 128)
			return err_set(reterr, CORDON_INVALID, "commands: '%s' is not a plain name",
				       name);
		for (size_t d = 0; d < 3; d++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], name);
			if (access(path, X_OK) == 0)
				break;
			path[0] = '\0';
		}
		if (path[0] == '\0') /* a builtin of the shell, or not installed */
			continue;
		int r = view_program(l, path, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int view_environment(struct launch *l, const struct policy *p)
{
	static const char *const ours[][2] = {
		{ "PATH", "/usr/local/bin:/usr/bin:/bin" },
		{ "HOME", "/home/user" },
		{ "USER", "user" },
		{ "LOGNAME", "user" },
		{ "TMPDIR", "/tmp" },
		{ "SHELL", "/bin/bash" },
		/* Threads of numeric libraries cost more to start than they gain here, and a
		 * template must have only one thread. */
		{ "OPENBLAS_NUM_THREADS", "1" },
		{ "OMP_NUM_THREADS", "1" },
		{ "MKL_NUM_THREADS", "1" },
		{ "NUMEXPR_NUM_THREADS", "1" },
		{ "MPLBACKEND", "Agg" },
		{ "MPLCONFIGDIR", "/tmp/.matplotlib" },
	};

	if (launch_env(l, "LANG", "C.UTF-8") < 0)
		return -CORDON_NOMEM;
	for (size_t i = 0; i < p->env_pass.count; i++) {
		const char *value = getenv(p->env_pass.items[i]);

		if (value && launch_env(l, p->env_pass.items[i], value) < 0)
			return -CORDON_NOMEM;
	}
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (launch_env(l, ours[i][0], ours[i][1]) < 0)
			return -CORDON_NOMEM;
	for (size_t i = 0; i < p->env_set.count; i++) {
		const char *pair = p->env_set.items[i], *eq = strchr(pair, '=');
		cleanup_free char *name = eq ? str_ndup(pair, (size_t)(eq - pair)) : NULL;

		if (!name || launch_env(l, name, eq + 1) < 0)
			return -CORDON_NOMEM;
	}
	return 0;
}

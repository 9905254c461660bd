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
		return launch_exec(l, loader);
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
					     "/usr/lib/ssl/openssl.cnf", /* a link to the next */
					     "/etc/ssl/openssl.cnf",
					     NULL };

	return bind_all(l, paths, BIND_OPTIONAL);
}

bool view_hides(const char *path)
{
	static const char *const dirs[] = { "/home/", "/tmp/",  "/workspace/", "/var/tmp/",
					    "/dev/",  "/proc/", "/run/cordon/" };
	bool hides = false;

	for (size_t i = 0; !hides && i < sizeof(dirs) / sizeof(*dirs); i++)
		hides = str_starts(path, dirs[i]);
	return hides;
}

int view_program(struct launch *l, const char *path, struct cordon_error **reterr)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return err_errno(reterr, errno, "the program '%s'", path);
	struct stat st;
	if (stat(real, &st) != 0 || !S_ISREG(st.st_mode) || access(real, X_OK) != 0)
		return err_set(reterr, CORDON_INVALID, "'%s' is not an executable file", path);
	if (view_hides(path) || view_hides(real))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the program '%s' cannot be seen in the sandbox, which has its own "
			       "/home, /tmp, /dev and /workspace; remedy: a program below /usr or "
			       "/opt",
			       view_hides(path) ? path : real);
	if (launch_bind(l, real, NULL, BIND_EXEC) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	if (strcmp(real, path) != 0 && launch_link(l, real, path) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	return 0;
}

/* Settings without which programs of /usr do not start or find nothing. Only what packages install
 * and everybody may read; no accounts, keys, networks or hosts. */
static int view_settings(struct launch *l)
{
	static const char *const paths[] = {
		"/etc/ld.so.cache",
		"/etc/alternatives",
		"/etc/ImageMagick-6",
		"/etc/ImageMagick-7",
		"/etc/R",
		"/etc/fonts",
		"/etc/ghostscript",
		"/etc/java-8-openjdk",
		"/etc/java-11-openjdk",
		"/etc/java-17-openjdk",
		"/etc/java-21-openjdk",
		"/etc/java-25-openjdk",
		"/etc/manpath.config",
		"/etc/mime.types",
		"/etc/protocols",
		"/etc/services",
		"/etc/texmf",
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(paths) / sizeof(*paths); i++)
		if (access(paths[i], R_OK) == 0)
			r = launch_bind(l, paths[i], NULL, BIND_OPTIONAL);
	return r;
}

int view_all(struct launch *l)
{
	return launch_bind(l, "/usr", NULL, BIND_EXEC) < 0 ? -CORDON_NOMEM : view_settings(l);
}

/* Finds a program by its plain name; false: it is not installed. */
static bool find_command(const char *name, char *ret, size_t size)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin" };

	for (size_t d = 0; d < sizeof(dirs) / sizeof(*dirs); d++) {
		int n = snprintf(ret, size, "%s/%s", dirs[d], name);
		if (n > 0 && (size_t)n < size && access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

bool view_has_command(const char *name)
{
	char path[512];

	return !strchr(name, '/') && find_command(name, path, sizeof(path));
}

int view_commands(struct launch *l, const struct policy_list *commands,
		  struct cordon_error **reterr)
{
	for (size_t i = 0; i < commands->names.count; i++) {
		const char *name = commands->names.items[i];
		char path[512] = "";

		if (strchr(name, '/') || strlen(name) > 128)
			return err_set(reterr, CORDON_INVALID, "commands: '%s' is not a plain name",
				       name);
		/* otherwise a builtin of the shell, or not installed */
		if (!find_command(name, path, sizeof(path)))
			continue;
		int r = view_program(l, path, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

int view_programs(struct launch *l, const struct policy *p, struct cordon_error **reterr)
{
	if (!p->commands.all)
		return view_commands(l, &p->commands, reterr);
	return view_all(l) < 0 ? err_errno(reterr, ENOMEM, "the view") : 0;
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
		/* Debian's pip refuses to install beside the system's packages. Here it can only
		 * install into the workspace. */
		{ "PIP_BREAK_SYSTEM_PACKAGES", "1" },
	};
	/* Package managers try for more than a minute to reach a network that is not there. */
	static const char *const offline[][2] = { { "npm_config_fetch_retries", "0" },
						  { "PIP_RETRIES", "0" } };

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
	for (size_t i = 0; !policy_has_sockets(p) && i < sizeof(offline) / sizeof(*offline); i++)
		if (launch_env(l, offline[i][0], offline[i][1]) < 0)
			return -CORDON_NOMEM;
	for (size_t i = 0; i < p->env_set.count; i++) {
		const char *pair = p->env_set.items[i], *eq = strchr(pair, '=');
		cleanup_free char *name = eq ? str_ndup(pair, (size_t)(eq - pair)) : NULL;

		if (!name || launch_env(l, name, eq + 1) < 0)
			return -CORDON_NOMEM;
	}
	return 0;
}

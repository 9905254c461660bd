/* guest/python.c - CPython 3.9 or newer: the system's, or the one that the policy names. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

int language_command(struct launch *l, const char *executable, const char *const *argv)
{
	l->executable = str_dup(executable);
	if (!l->executable)
		return -CORDON_NOMEM;
	for (; *argv; argv++)
		if (strlist_add(&l->argv, *argv) < 0)
			return -CORDON_NOMEM;
	return 0;
}

/* The "home = /usr/bin" of a virtual environment's pyvenv.cfg; "": none. */
static void venv_home(const char *prefix, char *ret, size_t size)
{
	char path[PATH_MAX + 16];
	cleanup_buf struct buf text = { 0 };

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix);
	buf_init(&text, 65536);
	if (file_load(path, 65536, &text, NULL) < 0)
		return;
	const char *p = strstr(buf_text(&text), "home = ");
	if (p)
		sscanf(p + 7, "%4095[^\n]", ret);
	(void)size;
}

/* The directory two levels up: /opt/py/bin/python3 -> /opt/py. */
static bool prefix_of(const char *program, char *ret, size_t size)
{
	if (!str_copy(ret, size, program))
		return false;
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(ret, '/');
		if (!slash || slash == ret)
			return false;
		*slash = '\0';
	}
	return true;
}

/* Binds a prefix. ret: where the sandbox sees the host's path, which is below the prefix. */
static int bind_tree(struct launch *l, const char *prefix, const char *place, const char *path,
		     char ret[static PATH_MAX], struct cordon_error **reterr)
{
	bool is_moved = view_hides(prefix);
	int n = snprintf(ret, PATH_MAX, "%s%s", is_moved ? place : prefix, path + strlen(prefix));

	if (n < 0 || n >= PATH_MAX ||
	    launch_bind(l, prefix, is_moved ? place : NULL, BIND_EXEC) < 0)
		return err_errno(reterr, ENOMEM, "the view");
	return 0;
}

/* An interpreter outside /usr needs its whole prefix. ret: where the sandbox sees it. */
static int bind_prefix(struct launch *l, const char *program, char ret[static PATH_MAX],
		       struct cordon_error **reterr)
{
	char prefix[PATH_MAX];

	(void)str_copy(ret, PATH_MAX, program);
	if (str_starts(program, "/usr/bin/"))
		return 0;
	if (!prefix_of(program, prefix, sizeof(prefix)))
		return err_set(reterr, CORDON_INVALID, "'%s' has no installation prefix", program);
	if (str_starts(prefix, "/usr") && (prefix[4] == '\0' || str_eq(prefix, "/usr/local")))
		return 0;
	return bind_tree(l, prefix, "/opt/python", program, ret, reterr);
}

static int check_program(const char *path, char *real, struct cordon_error **reterr)
{
	char head[2] = { 0 };
	struct stat st;

	if (!realpath(path, real))
		return err_errno(reterr, errno,
				 "the Python interpreter '%s' (Debian package: python3)", path);
	if (stat(real, &st) != 0 || !S_ISREG(st.st_mode) || access(real, X_OK) != 0)
		return err_set(reterr, CORDON_INVALID, "'%s' is not an executable file", path);
	FILE *f = fopen(real, "rbe");
	size_t n = f ? fread(head, 1, 2, f) : 0;
	if (f)
		fclose(f);
	if (n == 2 && memcmp(head, "#!", 2) == 0)
		return err_set(
			reterr, CORDON_INVALID,
			"'%s' is a script that selects an interpreter; name the interpreter itself",
			path);
	return 0;
}

/* Links for the names by which an environment's python leads to /usr/bin/python3.11, because only
 * that file is bound. */
static int link_names(struct launch *l, const char *path, const char *real,
		      struct cordon_error **reterr)
{
	char at[PATH_MAX], next[PATH_MAX];

	if (!str_copy(at, sizeof(at), path))
		return 0;
	for (int hops = 0; hops < 8 && !str_eq(at, real); hops++) {
		ssize_t n = readlink(at, next, sizeof(next) - 1);
		char *slash = strrchr(at, '/');

		if (str_starts(at, "/usr/") && launch_link(l, real, at) < 0)
			return err_errno(reterr, ENOMEM, "the view");
		if (n <= 0)
			return 0;
		next[n] = '\0';
		size_t dir = next[0] == '/' ? 0 : (size_t)(slash - at) + 1;
		if (dir + (size_t)n >= sizeof(at))
			return 0;
		memcpy(at + dir, next, (size_t)n + 1);
	}
	return 0;
}

/* ret: the program's path in the sandbox. */
static int interpreter(struct launch *l, const char *path, char ret[static PATH_MAX],
		       struct cordon_error **reterr)
{
	char real[PATH_MAX], seen[PATH_MAX], prefix[PATH_MAX], home[PATH_MAX] = "";
	int r = check_program(path, real, reterr);

	if (r < 0)
		return r;
	/* A virtual environment's interpreter is a link. Its prefix is where the link is, not its
	 * target. */
	if (prefix_of(path, prefix, sizeof(prefix)) && !str_starts(path, "/usr/"))
		venv_home(prefix, home, sizeof(home));
	r = bind_prefix(l, real, seen, reterr);
	if (r == 0 && str_starts(real, "/usr/")) {
		r = view_program(l, real, reterr);
		if (r == 0)
			r = link_names(l, path, real, reterr);
	} else if (r == 0 && launch_exec(l, seen) < 0) {
		r = err_errno(reterr, ENOMEM, "the view");
	}
	if (r < 0)
		return r;
	if (!home[0]) {
		(void)str_copy(ret, PATH_MAX, str_starts(path, "/usr/") ? path : seen);
		return 0;
	}
	if (view_hides(real))
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "the virtual environment '%s' uses the interpreter '%s', but the "
			       "sandbox has its own /home, /tmp and /workspace; remedy: an "
			       "interpreter below /usr or /opt",
			       prefix, real);
	return bind_tree(l, prefix, "/opt/venv", path, ret, reterr);
}

/* Debian has one library directory per version, named after the real file: python3.11. */
static int bind_library(struct launch *l, const char *path)
{
	char real[PATH_MAX], dir[PATH_MAX + 32];

	if (!realpath(path, real))
		return 0;
	const char *name = strrchr(real, '/') + 1;
	snprintf(dir, sizeof(dir), "/usr/lib/%s", name);
	if (launch_bind(l, dir, NULL, BIND_OPTIONAL) < 0)
		return -CORDON_NOMEM;
	snprintf(dir, sizeof(dir), "/usr/local/lib/%s", name);
	if (launch_bind(l, dir, NULL, BIND_OPTIONAL) < 0)
		return -CORDON_NOMEM;
	if (launch_bind(l, "/usr/lib/python3", NULL, BIND_OPTIONAL) < 0)
		return -CORDON_NOMEM;
	if (launch_bind(l, "/etc/matplotlibrc", NULL, BIND_OPTIONAL) < 0)
		return -CORDON_NOMEM;
	return launch_bind(l, "/usr/share/matplotlib", NULL, BIND_OPTIONAL);
}

/* Adds the runtime: compiled, and also as sources if the interpreter is another version. */
static int add_runtime(struct launch *l, const char *path)
{
	int r = runtime_add(l, "python");
#ifdef PYTHON_BUNDLE
	char real[PATH_MAX];

	if (realpath(path, real) && str_ends(real, "/" PYTHON_BUNDLE))
		return r;
#else
	(void)path;
#endif
	return r < 0 ? r : runtime_add(l, "python-source");
}

/* The runtime does the work of the module `site` (cordon_site.py), but only `site` supports virtual
 * environments. */
static bool starts_bare(const char *path)
{
	char prefix[PATH_MAX], config[PATH_MAX + 16];

	if (str_starts(path, "/usr/bin/"))
		return true;
	if (!prefix_of(path, prefix, sizeof(prefix)))
		return false;
	snprintf(config, sizeof(config), "%s/pyvenv.cfg", prefix);
	if (access(config, F_OK) == 0)
		return false;
	snprintf(config, sizeof(config), "%s/bin/pyvenv.cfg", prefix);
	return access(config, F_OK) != 0;
}

static const char *mode_word(enum guest_mode mode)
{
	return mode == GUEST_TEMPLATE ? "--template" : mode == GUEST_VALIDATE ? "--validate" : NULL;
}

int python_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	const char *path = o->policy->python ? o->policy->python : "/usr/bin/python3";
	char program[PATH_MAX] = "";
	/* An interpreter finds its prefix by its name. */
	const char *const argv[] = { str_starts(path, "/usr/bin/") ? "python3" : program,
				     starts_bare(path) ? "-IS" : "-I",
				     "/run/cordon/cordon_guest.py", mode_word(o->mode), NULL };

	l->filter = LAUNCH_PYTHON;
	int r = view_programs(l, o->policy, reterr);
	if (r == 0)
		r = interpreter(l, path, program, reterr);
	if (r < 0)
		return r;
	if (view_libraries(l) < 0 || view_data(l) < 0 || bind_library(l, path) < 0 ||
	    launch_env(l, "PYTHONDONTWRITEBYTECODE", "1") < 0 || add_runtime(l, path) < 0 ||
	    language_command(l, program, argv) < 0)
		return err_errno(reterr, ENOMEM, "the launch of Python");
	if (o->mode == GUEST_TEMPLATE && runtime_add(l, "lib") < 0)
		return err_set(reterr, CORDON_UNSUPPORTED, "this build has no runtime library");
	return 0;
}

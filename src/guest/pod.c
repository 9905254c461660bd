/* guest/pod.c - the WebAssembly userland; its image is built by `make pod`. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "guest/languages.h"
#include "guest/runtime.h"
#include "guest/view.h"

#define POD_PROGRAM "/run/pod/cordon-pod"

/* CORDON_POD of the environment, else beside the running program, else where it was installed. */
static bool find_image(char *ret, size_t size)
{
	static const char *const tails[] = { "/pod", "/../libexec/cordon/pod",
					     "/../lib/cordon/pod" };
	const char *named = getenv("CORDON_POD");
	char self[PATH_MAX], path[PATH_MAX + 64];

	if (named && named[0] == '/')
		return str_copy(ret, size, named);
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
			snprintf(path, sizeof(path), "%s%s/bin/cordon-pod", self, tails[i]);
			if (access(path, X_OK) == 0) {
				snprintf(path, sizeof(path), "%s%s", self, tails[i]);
				return str_copy(ret, size, path);
			}
		}
	}
	return access("/usr/libexec/cordon/pod/bin/cordon-pod", X_OK) == 0 &&
	       str_copy(ret, size, "/usr/libexec/cordon/pod");
}

/* The image's own tree in the places of the host's. */
static int view(struct launch *l, const char *image)
{
	static const char *const trees[] = { "usr", "etc" };
	char host[PATH_MAX + 32], guest[32];

	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
		snprintf(host, sizeof(host), "%s/root/%s", image, trees[i]);
		snprintf(guest, sizeof(guest), "/%s", trees[i]);
		if (launch_bind(l, host, guest, 0) < 0)
			return -CORDON_NOMEM;
	}
	snprintf(host, sizeof(host), "%s/bin/cordon-pod", image);
	if (launch_bind(l, host, POD_PROGRAM, BIND_EXEC) < 0)
		return -CORDON_NOMEM;
	return strlist_add(&l->exec_paths, POD_PROGRAM);
}

/* The allowlist holds in the pod's own process table: exec looks only at the image. */
static int options(struct launch *l, const struct policy *p)
{
	struct buf list;
	int r = 0;

	if (strlist_add(&l->argv, "--seal") < 0)
		return -CORDON_NOMEM;
	if (p->commands.all)
		return 0;
	buf_init(&list, 65536);
	for (size_t i = 0; r == 0 && i < p->commands.names.count; i++)
		r = buf_printf(&list, "%s%s", i ? "," : "", p->commands.names.items[i]);
	if (r == 0)
		r = strlist_add(&l->argv, "--commands");
	if (r == 0)
		r = strlist_add(&l->argv, buf_text(&list));
	buf_done(&list);
	return r;
}

static int script(const struct guest_options *o, struct launch *l)
{
	static const char *const program[] = { "cordon-pod", NULL };

	if (language_command(l, POD_PROGRAM, program) < 0 || options(l, o->policy) < 0 ||
	    strlist_add(&l->argv, "bash") < 0 || strlist_add(&l->argv, "/run/cordon/code") < 0 ||
	    launch_file(l, "/run/cordon/code", o->code, o->code_len, 0444) < 0)
		return -CORDON_NOMEM;
	for (const char *const *a = o->args; a && *a; a++)
		if (strlist_add(&l->argv, *a) < 0)
			return -CORDON_NOMEM;
	return 0;
}

static int session(const struct guest_options *o, struct launch *l)
{
	static const char *const bridge[] = { "cordon-pod-bridge", POD_PROGRAM, NULL };

	if (runtime_add(l, "pod") < 0 ||
	    language_command(l, "/run/cordon/cordon-pod-bridge", bridge) < 0)
		return -CORDON_NOMEM;
	if (strlist_add(&l->exec_paths, "/run/cordon/cordon-pod-bridge") < 0)
		return -CORDON_NOMEM;
	return options(l, o->policy);
}

int pod_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	char image[PATH_MAX];

	l->filter = LAUNCH_POD;
	if (!find_image(image, sizeof(image)))
		return err_set(
			reterr, CORDON_UNSUPPORTED,
			"there is no pod image on this machine: build one with `make pod`, or name "
			"its directory in CORDON_POD");
	if (o->mode == GUEST_VALIDATE)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "validate pod commands with the guest sh");
	if (view(l, image) < 0 || launch_env(l, "PATH", "/usr/bin:/bin") < 0 ||
	    (o->mode == GUEST_SCRIPT ? script(o, l) : session(o, l)) < 0)
		return err_errno(reterr, ENOMEM, "the launch of the pod");
	return 0;
}

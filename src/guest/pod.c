/* guest/pod.c - the WebAssembly userland; its image is built by `make pod`. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "guest/languages.h"
#include "guest/podimage.h"
#include "guest/runtime.h"
#include "guest/view.h"

#define POD_PROGRAM "/run/pod/cordon-pod"
#define POD_ADDED "/run/pod/bin"

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

/* What `cordon pod add` made: mapped by cordon-pod before any guest code runs. */
static int added(struct launch *l)
{
	char dir[PATH_MAX], host[PATH_MAX + 8];

	if (!podimage_added(dir, sizeof(dir)))
		return 0;
	snprintf(host, sizeof(host), "%s/bin", dir);
	if (access(host, R_OK | X_OK) != 0)
		return 0;
	if (launch_bind(l, host, POD_ADDED, BIND_EXEC) < 0 ||
	    strlist_add(&l->argv, "--modules") < 0)
		return -CORDON_NOMEM;
	return strlist_add(&l->argv, POD_ADDED);
}

/* The allowlist holds in the pod's own process table: exec looks only at the image. */
static int options(struct launch *l, const struct policy *p)
{
	struct buf list;
	int r = 0;

	if (strlist_add(&l->argv, "--seal") < 0 || added(l) < 0)
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
	if (!podimage_find(image, sizeof(image)))
		return err_set(
			reterr, CORDON_UNSUPPORTED,
			"there is no pod image on this machine: build one with `make pod`, or name "
			"its directory in CORDON_POD");
	if (o->mode == GUEST_VALIDATE)
		return err_set(reterr, CORDON_UNSUPPORTED,
			       "validate pod commands with the guest sh");
	if (view(l, image) < 0 || launch_env(l, "PATH", "/usr/bin:/bin:" POD_ADDED) < 0 ||
	    (o->mode == GUEST_SCRIPT ? script(o, l) : session(o, l)) < 0)
		return err_errno(reterr, ENOMEM, "the launch of the pod");
	return 0;
}

/* guest/pod.c - the WebAssembly userland. `make pod` builds its image. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "guest/languages.h"
#include "guest/pod_format.h"
#include "guest/podimage.h"
#include "guest/view.h"

#define POD_PROGRAM "/run/pod/cordon-pod"
#define POD_ADDED "/run/pod/bin"
#define POD_PACKAGES "/run/pod/packages"

/* Whether the image's runtime and this library agree on the format of a plan. */
static int check_format(const char *image, struct cordon_error **reterr)
{
	char path[PATH_MAX + 16];
	cleanup_buf struct buf text = { 0 };

	snprintf(path, sizeof(path), "%s/format", image);
	buf_init(&text, 256);
	if (file_load(path, 256, &text, NULL) < 0)
		return err_set(
			reterr, CORDON_UNSUPPORTED,
			"the pod image in '%s' is incomplete: it has no file 'format'; build "
			"it again with `make pod`",
			image);
	if (str_starts(buf_text(&text), POD_FORMAT "\n"))
		return 0;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "the pod image in '%s' was built for another version of Cordon: "
		       "build it again with `make pod`",
		       image);
}

/* Binds entry by entry, because the session's own files (resolver, certificate authorities) are
 * there too. */
static int bind_etc(struct launch *l, const char *image)
{
	char host[PATH_MAX + 300], guest[300];
	const struct dirent *entry;
	int r = 0;

	snprintf(host, sizeof(host), "%s/root/etc", image);
	DIR *dir = opendir(host);
	while (dir && r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(host, sizeof(host), "%s/root/etc/%s", image, entry->d_name);
		snprintf(guest, sizeof(guest), "/etc/%s", entry->d_name);
		if (entry->d_type != DT_LNK)
			r = launch_bind(l, host, guest, 0);
	}
	if (dir)
		closedir(dir);
	return r;
}

/* The image's tree replaces the host's. */
static int view(struct launch *l, const char *image)
{
	char host[PATH_MAX + 32];

	snprintf(host, sizeof(host), "%s/root/usr", image);
	if (launch_bind(l, host, "/usr", 0) < 0 || bind_etc(l, image) < 0)
		return -CORDON_NOMEM;
	snprintf(host, sizeof(host), "%s/bin/cordon-pod", image);
	if (launch_bind(l, host, POD_PROGRAM, BIND_EXEC) < 0)
		return -CORDON_NOMEM;
	return launch_exec(l, POD_PROGRAM);
}

/* Modules made by `cordon pod add`; cordon-pod maps them before any guest code runs. */
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

/* Packages that the policy lets `pkg` install; modules/packages.c has prepared them. */
static int packages(struct launch *l, const struct policy *p)
{
	char dir[PATH_MAX];

	if (!podimage_packages(p, dir, sizeof(dir)) || access(dir, R_OK | X_OK) != 0)
		return 0;
	if (launch_bind(l, dir, POD_PACKAGES, BIND_EXEC) < 0 ||
	    strlist_add(&l->argv, "--modules") < 0)
		return -CORDON_NOMEM;
	return strlist_add(&l->argv, POD_PACKAGES "/bin");
}

/* The pod itself enforces the allowlist: its exec looks only at the image. */
static int commands(struct launch *l, const struct policy *p)
{
	const struct policy_list *list = &p->commands;
	struct buf text;
	int r = 0;

	if (policy_shells_run_all(p))
		return 0;
	buf_init(&text, 65536);
	for (size_t i = 0; r == 0 && i < list->names.count; i++)
		r = buf_printf(&text, "%s%s", i ? "," : "", list->names.items[i]);
	if (r == 0)
		r = strlist_add(&l->argv, "--commands");
	if (r == 0)
		r = strlist_add(&l->argv, buf_text(&text));
	buf_done(&text);
	return r;
}

static int command_line(const struct guest_options *o, struct launch *l)
{
	char memory[40], files[40];
	const char *const program[] = { "cordon-pod", "--seal", memory, files, NULL };

	snprintf(memory, sizeof(memory), "--memory=%llu",
		 (unsigned long long)o->policy->memory_bytes);
	snprintf(files, sizeof(files), "--files=%llu", (unsigned long long)o->policy->open_files);
	if (language_command(l, POD_PROGRAM, program) < 0 || added(l) < 0 ||
	    packages(l, o->policy) < 0 || commands(l, o->policy) < 0)
		return -CORDON_NOMEM;
	if (o->mode == GUEST_VALIDATE)
		return strlist_add(&l->argv, "--validate");
	if (l->has_network && strlist_add(&l->argv, "--network") < 0)
		return -CORDON_NOMEM;
	/* Warming up takes too long for a single session. Sessions of a template share it. */
	if (o->mode == GUEST_TEMPLATE && strlist_add(&l->argv, "--warm") < 0)
		return -CORDON_NOMEM;
	return strlist_add(&l->argv, o->mode == GUEST_TEMPLATE ? "--template" : "--wire");
}

int pod_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr)
{
	char image[PATH_MAX];

	l->filter = LAUNCH_POD;
	int r = podimage_get(image, sizeof(image), reterr);
	if (r == 0)
		r = check_format(image, reterr);
	if (r < 0)
		return r;
	if (view(l, image) < 0 ||
	    launch_env(l, "PATH", "/usr/bin:/bin:" POD_ADDED ":/home/user/.local/bin") < 0 ||
	    command_line(o, l) < 0)
		return err_errno(reterr, ENOMEM, "the launch of the pod");
	return 0;
}

/* guest/podimage.c - see podimage.h. */
#include "guest/podimage.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/random.h"
#include "base/str.h"
#include "policy/policy.h"

/* The image that CORDON_POD names is used or refused, never silently ignored. */
static int check_named(const char *named, struct cordon_error **reterr)
{
	char path[PATH_MAX];

	if (named[0] != '/')
		return err_set(reterr, CORDON_INVALID,
			       "CORDON_POD is '%s', which is not an absolute path", named);
	int n = snprintf(path, sizeof(path), "%s/bin/cordon-pod", named);
	if (n > 0 && (size_t)n < sizeof(path) && access(path, X_OK) == 0)
		return 0;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "the pod image is missing: CORDON_POD names '%s', where there is no "
		       "bin/cordon-pod; build an image with `make pod` and name its directory",
		       named);
}

int podimage_get(char *ret, size_t size, struct cordon_error **reterr)
{
	const char *named = getenv("CORDON_POD");
	int r = named && *named ? check_named(named, reterr) : 0;

	if (r < 0)
		return r;
	if (podimage_find(ret, size))
		return 0;
	return err_set(reterr, CORDON_UNSUPPORTED,
		       "the pod image is missing: there is no pod image on this machine; build one "
		       "with `make pod`, or name the directory of one in CORDON_POD");
}

bool podimage_find(char *ret, size_t size)
{
	static const char *const tails[] = { "/pod", "/../libexec/cordon/pod",
					     "/../lib/cordon/pod" };
	const char *named = getenv("CORDON_POD");
	char self[PATH_MAX], path[PATH_MAX + 64];

	if (named && *named)
		return check_named(named, NULL) == 0 && str_copy(ret, size, named);
	if (os_program_path(self, sizeof(self))) {
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

bool podimage_added(char *ret, size_t size)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int n = -1;

	if (xdg && *xdg == '/')
		n = snprintf(ret, size, "%s/cordon/pod", xdg);
	else if (geteuid() ==
		 0) /* root's sandboxes run as another user, which cannot enter root's home */
		n = snprintf(ret, size, "/var/lib/cordon/pod");
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/.local/share/cordon/pod", home);
	return n > 0 && (size_t)n < size;
}

static void add(crypto_generichash_state *h, const char *text)
{
	(void)crypto_generichash_update(h, (const unsigned char *)text, strlen(text) + 1);
}

/* Policies with the same packages, limits and hosts share a directory. */
bool podimage_packages(const struct policy *p, char *ret, size_t size)
{
	const char *registry = getenv("CORDON_REGISTRY");
	unsigned char hash[16];
	char dir[PATH_MAX], hex[2 * sizeof(hash) + 1], limits[64];
	crypto_generichash_state h;

	if ((!p->packages.all && p->packages.names.count == 0) || !podimage_added(dir, sizeof(dir)))
		return false;
	(void)crypto_generichash_init(&h, NULL, 0, sizeof(hash));
	snprintf(limits, sizeof(limits), "%llu %llu", (unsigned long long)p->package_bytes,
		 (unsigned long long)p->package_count);
	add(&h, registry ? registry : "");
	add(&h, limits);
	add(&h, p->packages.all ? "*" : "");
	for (size_t i = 0; i < p->packages.names.count; i++)
		add(&h, p->packages.names.items[i]);
	(void)crypto_generichash_final(&h, hash, sizeof(hash));
	hex_encode(hex, hash, sizeof(hash));
	int n = snprintf(ret, size, "%s/packages/%s", dir, hex);
	return n > 0 && (size_t)n < size;
}

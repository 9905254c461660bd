/* guest/podimage.c - see podimage.h. */
#include "guest/podimage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

bool podimage_find(char *ret, size_t size)
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

bool podimage_added(char *ret, size_t size)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int n = -1;

	if (xdg && *xdg == '/')
		n = snprintf(ret, size, "%s/cordon/pod", xdg);
	else if (geteuid() == 0) /* its sandboxes work as another user, who cannot enter its home */
		n = snprintf(ret, size, "/var/lib/cordon/pod");
	else if (home && *home == '/')
		n = snprintf(ret, size, "%s/.local/share/cordon/pod", home);
	return n > 0 && (size_t)n < size;
}

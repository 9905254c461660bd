/* cli/companion.c - see companion.h. */
#include "cli/companion.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"

bool companion_find(const char *name, char *ret, size_t size)
{
	static const char *const folders[] = { "", "src/net/", "../libexec/cordon/" };
	char self[PATH_MAX];

	if (!os_program_path(self, sizeof(self)))
		return false;
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		int n = snprintf(ret, size, "%s/%s%s", self, folders[i], name);
		if (n > 0 && (size_t)n < size && access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

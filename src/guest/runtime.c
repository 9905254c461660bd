/* guest/runtime.c - see runtime.h. */
#include "guest/runtime.h"

#include <stdio.h>
#include <string.h>

#include "guest/runtime_table.h"

int runtime_add(struct launch *l, const char *runtime)
{
	size_t found = 0;

	for (size_t i = 0; i < sizeof(runtime_table) / sizeof(*runtime_table); i++) {
		char path[256];

		if (!str_eq(runtime_table[i].runtime, runtime))
			continue;
		if (strlen(runtime_table[i].name) > 200)
			return -CORDON_INVALID;
		(void)snprintf(path, sizeof(path), "/run/cordon/%s", runtime_table[i].name);
		if (launch_file(l, path, runtime_table[i].bytes, *runtime_table[i].len,
				runtime_table[i].mode) < 0)
			return -CORDON_NOMEM;
		found++;
	}
	return found ? 0 : -CORDON_NOT_FOUND;
}

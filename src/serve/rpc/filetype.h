/* serve/rpc/filetype.h - names of file types, for clients. */
#pragma once

#include <cordon/files.h>

static inline const char *filetype_name(const struct cordon_file_info *info)
{
	static const char *const names[] = { "file", "directory", "symlink", "other" };

	return names[info->type];
}

/* files/skipped.c - see skipped.h. */
#include "files/skipped.h"

#include <errno.h>
#include <string.h>

enum { MAX_REPORTED = 1000 };

int skipped_init(struct skipped *s)
{
	*s = (struct skipped){ .entries = json_array() };
	return s->entries ? 0 : -ENOMEM;
}

void skipped_done(struct skipped *s)
{
	json_decref(s->entries);
	*s = (struct skipped){ 0 };
}

int skipped_add(struct skipped *s, const char *path, const char *reason)
{
	s->count++;
	if (json_array_size(s->entries) >= MAX_REPORTED)
		return 0;
	json_t *name = json_string_lossy(path, strlen(path));
	json_t *one = name ? json_pack("{s:o, s:s}", "path", name, "reason", reason) : NULL;
	return one && !json_array_append_new(s->entries, one) ? 0 : -ENOMEM;
}

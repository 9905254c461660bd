/* wall/linux/place_binds.c - see place_binds.h. */
#include "wall/linux/place_binds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Whether the bind of a directory shows the same files at the same path. */
static bool shows(const struct launch_bind *a, const struct launch_bind *b)
{
	return str_eq(a->host, a->guest) && str_eq(b->host, b->guest) &&
	       !((a->flags | b->flags) & BIND_WRITABLE) && is_below(b->guest, a->guest);
}

/* At each path the first launch decides what is there. */
static size_t add(struct launch_bind *all, size_t count, const struct launch_bind *b)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(all[i].guest, b->guest)) {
			if (!(b->flags & BIND_OPTIONAL))
				all[i].flags &= ~(uint32_t)BIND_OPTIONAL;
			all[i].flags |= b->flags & BIND_EXEC;
			return count;
		}
	all[count] = *b;
	return count + 1;
}

static int by_depth(const void *one, const void *other)
{
	const struct launch_bind *a = one, *b = other;
	size_t a_len = strlen(a->guest), b_len = strlen(b->guest);

	return a_len == b_len ? strcmp(a->guest, b->guest) : a_len < b_len ? -1 : 1;
}

static size_t leave_out_shown(struct launch_bind *all, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_shown = false;

		for (size_t k = 0; !is_shown && k < kept; k++)
			is_shown = shows(&all[k], &all[i]);
		if (!is_shown)
			all[kept++] = all[i];
	}
	return kept;
}

bool place_binds_covers(const struct blueprint_options *o, const char *path)
{
	const struct launch *l = o->launch;
	bool has_usr = !o->stays && !o->joins;

	for (size_t i = 0; !has_usr && i < l->bind_count; i++)
		has_usr = str_eq(l->binds[i].guest, "/usr");
	return str_starts(path, "/etc/") || (has_usr && str_starts(path, "/usr/"));
}

int place_binds_merge(const struct blueprint_options *o, struct launch_bind **ret,
		      size_t *ret_count)
{
	const struct launch *l;
	size_t count = 0;

	for (size_t k = 0; (l = blueprint_launch(o, k)); k++)
		count += l->bind_count;
	struct launch_bind *all = mem_grow(NULL, count + 1, sizeof(*all));
	if (!all)
		return -CORDON_NOMEM;
	count = 0;
	for (size_t k = 0; (l = blueprint_launch(o, k)); k++)
		for (size_t i = 0; i < l->bind_count; i++)
			count = add(all, count, &l->binds[i]);
	qsort(all, count, sizeof(*all), by_depth);
	*ret = all;
	*ret_count = leave_out_shown(all, count);
	return 0;
}

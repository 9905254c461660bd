/* wall/launch.c - see launch.h. */
#include "wall/launch.h"

#include <string.h>

#include "base/mem.h"

/* Room for one more element at the end of an array; NULL: out of memory. */
static void *more(void *array, size_t count, size_t size)
{
	return (count & (count - 1)) == 0 ? mem_grow(array, count ? count * 2 : 1, size) : array;
}

int launch_bind(struct launch *l, const char *host, const char *guest, uint32_t flags)
{
	struct launch_bind *a = more(l->binds, l->bind_count, sizeof(*a));

	if (!a)
		return -CORDON_NOMEM;
	l->binds = a;
	a[l->bind_count] = (struct launch_bind){ .host = str_dup(host),
						 .guest = str_dup(guest ? guest : host),
						 .flags = flags };
	l->bind_count++;
	return a[l->bind_count - 1].host && a[l->bind_count - 1].guest ? 0 : -CORDON_NOMEM;
}

int launch_file(struct launch *l, const char *guest, const void *bytes, size_t len, uint32_t mode)
{
	struct launch_file *a = more(l->files, l->file_count, sizeof(*a));

	if (!a)
		return -CORDON_NOMEM;
	l->files = a;
	a[l->file_count] = (struct launch_file){ .guest = str_dup(guest),
						 .bytes = mem_dup(bytes, len ? len : 1),
						 .len = len,
						 .mode = mode };
	l->file_count++;
	return a[l->file_count - 1].guest && a[l->file_count - 1].bytes ? 0 : -CORDON_NOMEM;
}

int launch_link(struct launch *l, const char *target, const char *guest)
{
	struct launch_link *a = more(l->links, l->link_count, sizeof(*a));

	if (!a)
		return -CORDON_NOMEM;
	l->links = a;
	a[l->link_count] =
		(struct launch_link){ .target = str_dup(target), .guest = str_dup(guest) };
	l->link_count++;
	return a[l->link_count - 1].target && a[l->link_count - 1].guest ? 0 : -CORDON_NOMEM;
}

int launch_env(struct launch *l, const char *name, const char *value)
{
	cleanup_free char *pair = str_printf("%s=%s", name, value);
	size_t name_len = strlen(name);

	if (!pair)
		return -CORDON_NOMEM;
	for (size_t i = 0; i < l->env.count; i++)
		if (strncmp(l->env.items[i], pair, name_len + 1) == 0) {
			free(l->env.items[i]);
			l->env.items[i] = TAKE_PTR(pair);
			return 0;
		}
	return strlist_add(&l->env, pair);
}

void launch_done(struct launch *l)
{
	free(l->executable);
	free(l->cwd);
	strlist_done(&l->argv);
	strlist_done(&l->env);
	strlist_done(&l->exec_paths);
	strlist_done(&l->read_paths);
	for (size_t i = 0; i < l->bind_count; i++) {
		free(l->binds[i].host);
		free(l->binds[i].guest);
	}
	for (size_t i = 0; i < l->file_count; i++) {
		free(l->files[i].guest);
		free(l->files[i].bytes);
	}
	for (size_t i = 0; i < l->link_count; i++) {
		free(l->links[i].target);
		free(l->links[i].guest);
	}
	free(l->binds);
	free(l->files);
	free(l->links);
	*l = (struct launch){ 0 };
}

/* wall/launch.c - see launch.h. */
#include "wall/launch.h"

#include <string.h>

#include "base/mem.h"

/* Room for one more element at the end of an array; NULL: out of memory. */
static void *more(void *array, size_t count, size_t size)
{
	return (count & (count - 1)) == 0 ? mem_grow(array, count ? count * 2 : 1, size) : array;
}

/* The part of path after dir: "" if they are the same, NULL if it is not beneath. */
static const char *beneath(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	return str_starts(path, dir) && (path[len] == '/' || path[len] == '\0') ? path + len : NULL;
}

/* The first bind that shows this path of the sandbox; NULL: none. */
static struct launch_bind *bind_above(const struct launch *l, const char *guest)
{
	for (size_t i = 0; i < l->bind_count; i++)
		if (beneath(l->binds[i].guest, guest))
			return &l->binds[i];
	return NULL;
}

/* Whether an earlier bind shows the same files with the same rights. */
static bool is_shown(struct launch *l, const char *host, const char *guest, uint32_t flags)
{
	struct launch_bind *b = bind_above(l, guest);
	const char *below_guest = b ? beneath(b->guest, guest) : NULL,
		   *below_host = b ? beneath(b->host, host) : NULL;

	if (!below_guest || !below_host || !str_eq(below_guest, below_host) ||
	    ((b->flags | flags) & BIND_MOUNT))
		return false;
	if (below_guest[0] == '\0') { /* both are wanted, so it has the rights of both */
		b->flags = ((b->flags | flags) & BIND_EXEC) | (b->flags & flags & BIND_OPTIONAL);
		return true;
	}
	return !(b->flags & BIND_OPTIONAL) && (b->flags & BIND_EXEC) >= (flags & BIND_EXEC);
}

int launch_bind(struct launch *l, const char *host, const char *guest, uint32_t flags)
{
	if (is_shown(l, host, guest ? guest : host, flags))
		return 0;
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

/* The root has /bin and its like as links into /usr, so each path there has two names. */
static const char *in_usr(const char *guest)
{
	static const char *const dirs[] = { "/bin", "/sbin", "/lib", "/lib64" };
	bool is_link = false;

	for (size_t i = 0; !is_link && i < sizeof(dirs) / sizeof(*dirs); i++)
		is_link = beneath(dirs[i], guest) != NULL;
	return is_link ? "/usr" : "";
}

int launch_link(struct launch *l, const char *target, const char *path)
{
	cleanup_free char *guest = str_printf("%s%s", in_usr(path), path);

	if (!guest)
		return -CORDON_NOMEM;
	bool is_there = bind_above(l, guest) != NULL;

	for (size_t i = 0; !is_there && i < l->link_count; i++)
		is_there = str_eq(l->links[i].guest, guest);
	if (is_there)
		return 0;
	struct launch_link *a = more(l->links, l->link_count, sizeof(*a));

	if (!a)
		return -CORDON_NOMEM;
	l->links = a;
	a[l->link_count] =
		(struct launch_link){ .target = str_dup(target), .guest = TAKE_PTR(guest) };
	l->link_count++;
	return a[l->link_count - 1].target && a[l->link_count - 1].guest ? 0 : -CORDON_NOMEM;
}

int launch_exec(struct launch *l, const char *guest)
{
	const struct launch_bind *b = bind_above(l, guest);

	if ((b && (b->flags & BIND_EXEC)) || strlist_has(&l->exec_paths, guest))
		return 0;
	return strlist_add(&l->exec_paths, guest);
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

void launch_unset(struct launch *l, const char *name)
{
	size_t len = strlen(name), kept = 0;

	for (size_t i = 0; i < l->env.count; i++) {
		char *item = l->env.items[i];

		if (strncmp(item, name, len) == 0 && item[len] == '=')
			free(item);
		else
			l->env.items[kept++] = item;
	}
	l->env.count = kept;
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

/* inside/pod/runtime/module.c - see module.h. Finds the added commands in a directory and maps them
 * before any guest code runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/module.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside/pod/runtime/instance.h"
#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/process.h"
#include "inside/pod/runtime/wasi.h"

static const struct module_host host = {
	.wasi = wasi_call,
	.trap = wasm_rt_trap,
	.allocate_memory = wasm_rt_allocate_memory,
	.grow_memory = wasm_rt_grow_memory,
	.free_memory = wasm_rt_free_memory,
	.allocate_table = wasm_rt_allocate_funcref_table,
	.free_table = wasm_rt_free_funcref_table,
	.seal = instance_seal,
	.memcpy = memcpy,
	.memmove = memmove,
	.memset = memset,
	.memcmp = memcmp,
	.math = { ceil, floor, trunc, nearbyint, sqrt },
	.mathf = { ceilf, floorf, truncf, nearbyintf, sqrtf },
};

const struct module *module_of(const struct w2c_sys *p, const struct command *command)
{
	for (size_t i = 0; i < p->module_count; i++)
		if (&p->modules[i].command == command)
			return &p->modules[i];
	return NULL;
}

static void enter(struct w2c_sys *p, wasm_rt_memory_t **ret_memory)
{
	const struct module *m = module_of(p, p->command);

	if (!m || wasi_start(p))
		_exit(126);
	m->head->enter(p, ret_memory, &host);
	wasi_finish(p, 0);
}

struct module *module_by_name(const struct w2c_sys *p, const char *name)
{
	for (size_t i = 0; i < p->module_count; i++)
		if (!strcmp(p->modules[i].name, name))
			return &p->modules[i];
	return NULL;
}

struct module *module_by_file(const struct w2c_sys *p, const struct stat *st)
{
	for (size_t i = 0; i < p->module_count; i++)
		if (p->modules[i].dev == st->st_dev && p->modules[i].ino == st->st_ino)
			return &p->modules[i];
	return NULL;
}

static void leave_out(const char *name, const char *why)
{
	fprintf(stderr, "cordon-pod: the added command %s is left out: %s\n", name, why);
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= MODULE_NAME && name[0] != '.' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-") ==
		       n;
}

static void add(struct w2c_sys *p, int dir, const char *name)
{
	struct module *m = &p->modules[p->module_count];
	struct module_object object;
	const char *why = "";
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		leave_out(name, "it is no plain file");
	} else if (module_map(fd, &object, &why)) {
		leave_out(name, why);
	} else {
		snprintf(m->name, sizeof m->name, "%.*s", MODULE_NAME, name);
		m->program = (struct program){ .name = m->name, .enter = enter };
		m->command = (struct command){ m->name, &m->program };
		m->head = object.head;
		m->dev = st.st_dev;
		m->ino = st.st_ino;
		p->module_count++;
	}
	if (fd >= 0)
		close(fd);
}

int module_open(struct w2c_sys *p, const char *dir)
{
	struct dirent *entry;
	DIR *list;
	int fd = path_open_read(p, dir);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (!p->modules)
		p->modules = calloc(MODULE_MAX, sizeof *p->modules);
	list = fdopendir(fd);
	if (!list)
		close(fd);
	if (!p->modules && list)
		closedir(list);
	if (!p->modules || !list)
		return -ENOMEM;
	while ((entry = readdir(list))) {
		if (entry->d_name[0] == '.')
			continue;
		if (p->module_count == MODULE_MAX)
			leave_out(entry->d_name, "there are too many");
		else if (module_by_name(p, entry->d_name))
			leave_out(entry->d_name, "another one has its name");
		else if (!is_name(entry->d_name))
			leave_out("(unnamed)", "its name is not one of a command");
		else
			add(p, fd, entry->d_name);
	}
	closedir(list);
	return 0;
}

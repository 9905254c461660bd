/* inside/pod/runtime/image.c - see image.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inside/pod/runtime/module.h"
#include "inside/pod/runtime/path.h"
#include "inside/pod/runtime/signals.h"
#include "inside/pod/runtime/toolbox.h"

#define MAX_WORDS 65536
#define MAX_BYTES (2u << 20) /* of arguments and environment, as on Linux */
#define MAX_SCRIPTS 4        /* a script whose interpreter is a script … */
#define LINE 256             /* significant bytes of a #! line */

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct command *)entry)->name);
}

const struct command *image_find(const char *name)
{
	return bsearch(name, pod_commands, pod_command_count, sizeof *pod_commands, by_name);
}

/* Reads the directory once. A command's file is identified by device and inode, so links and copies
 * elsewhere are recognised without trusting names or contents. */
int image_open(struct w2c_sys *p)
{
	struct stat st;
	struct dirent *entry;
	DIR *dir;
	int fd = path_open_read(p, "/usr/bin");

	if (fd < 0)
		return fd;
	p->image_ino = calloc(pod_command_count + 1, sizeof *p->image_ino);
	dir = fdopendir(fd);
	if (!dir || !p->image_ino || fstat(fd, &st)) {
		if (dir)
			closedir(dir);
		else
			close(fd);
		return -ENOMEM;
	}
	p->image_dev = st.st_dev;
	while ((entry = readdir(dir))) {
		const struct command *command = image_find(entry->d_name);

		if (command && entry->d_type == DT_REG)
			p->image_ino[command - pod_commands] = entry->d_ino;
	}
	closedir(dir);
	return 0;
}

int image_allow(struct w2c_sys *p, const char *list, const char **ret_unknown)
{
	static char name[64];

	p->allowed = calloc(pod_command_count + 1, sizeof *p->allowed);
	if (!p->allowed)
		return -ENOMEM;
	p->allowed_names = list;
	while (*list) {
		size_t n = strcspn(list, ",");
		const struct command *command;
		struct module *module;

		snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), list);
		command = image_find(name);
		module = command ? NULL : module_by_name(p, name);
		if (command)
			p->allowed[command - pod_commands] = true;
		else if (module)
			module->is_allowed = true;
		else
			*ret_unknown = name;
		list += n + (list[n] == ',');
	}
	return 0;
}

/* Writes to the guest's stderr, and reports to the host on a channel that the guest cannot
 * suppress. */
static int64_t deny(const struct w2c_sys *p, const char *name)
{
	static const char text[] = ": tool not allowed by security policy\n";
	struct iovec said[2] = { { (void *)name, strlen(name) },
				 { (void *)text, sizeof text - 1 } };

	if (writev(2, said, 2) < 0)
		errno = 0; /* it does not matter if the output is closed */
	process_deny(p, "exec", name);
	return -EACCES;
}

static bool is_allowed(const struct w2c_sys *p, const struct command *command)
{
	const struct module *module = module_of(p, command);

	if (!p->allowed)
		return true;
	return module ? module->is_allowed : p->allowed[command - pod_commands];
}

/* What a file is: a command (returned), a script (line is filled), or a negative errno. */
static int identify(const struct w2c_sys *p, const char *path, const struct command **ret,
		    char line[LINE])
{
	const struct module *module;
	struct stat st;
	ssize_t n;
	int fd = path_open_program(p, path);

	*ret = NULL;
	if (fd < 0)
		return fd;
	n = fstat(fd, &st);
	close(fd);
	if (n || !path_may_run(&st))
		return -EACCES;
	if (st.st_dev == p->image_dev)
		for (size_t i = 0; i < pod_command_count; i++)
			if (p->image_ino[i] == st.st_ino) {
				*ret = &pod_commands[i];
				return 0;
			}
	module = module_by_file(p, &st);
	if (module) {
		*ret = &module->command;
		return 0;
	}
	fd = path_open_read(p, path);
	if (fd < 0)
		return fd;
	n = read(fd, line, LINE - 1);
	close(fd);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return -ENOEXEC;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return 0;
}

/* "#! interpreter argument": one argument, without surrounding blanks. */
static int parse_line(char *line, char **ret_interpreter, char **ret_argument)
{
	char *s = line + 2 + strspn(line + 2, " \t"), *end;

	*ret_interpreter = s;
	*ret_argument = NULL;
	end = s + strcspn(s, " \t");
	if (end == s)
		return -ENOEXEC;
	if (*end) {
		*end++ = 0;
		end += strspn(end, " \t");
		if (*end)
			*ret_argument = end;
		for (char *last = end + strlen(end);
		     last > end && (last[-1] == ' ' || last[-1] == '\t');)
			*--last = 0;
	}
	return 0;
}

static void vector_done(struct vector *v)
{
	free(v->at);
	free(v->strings);
	memset(v, 0, sizeof *v);
}

/* The i-th string of a guest's argv, NULL at its end; false: a bad pointer. */
static bool word_at(const struct w2c_sys *p, uint64_t list, size_t i, const char **ret)
{
	const uint32_t *slot = guest_at(p, list + 4 * i, 4);
	uint64_t at;

	if (!slot)
		return false;
	at = *slot;
	*ret = at ? guest_at(p, at, 1) : NULL;
	return !at || (*ret && memchr(*ret, 0, p->memory->size - at));
}

/* Counts words and bytes of a guest's list, from word `skip` on. */
static int measure(const struct w2c_sys *p, uint64_t list, size_t skip, struct vector *v)
{
	const char *word;

	for (size_t given = 0; list; given++) {
		if (!word_at(p, list, given, &word))
			return -EFAULT;
		if (!word)
			break;
		if (given < skip)
			continue;
		v->count++;
		v->bytes += strlen(word) + 1;
		if (v->bytes > MAX_BYTES || given > MAX_WORDS)
			return -E2BIG;
	}
	return 0;
}

/* Memory shared with another process may have changed since it was measured: then -EFAULT. */
static int fill(const struct w2c_sys *p, uint64_t list, size_t skip, char *const *before,
		struct vector *v)
{
	char *to = v->strings, *end = v->strings + v->bytes;
	const char *word;
	size_t extra = 0;

	for (size_t i = 0; i < v->count; i++) {
		if (before && before[extra])
			word = before[extra++];
		else if (!word_at(p, list, i - extra + skip, &word) || !word)
			return -EFAULT;
		v->at[i] = to;
		to = memccpy(to, word, 0, (size_t)(end - to));
		if (!to)
			return -EFAULT;
	}
	return 0;
}

/* Copies a guest's list after some strings of ours; skip: leaves out its first words. */
static int vector_copy(const struct w2c_sys *p, uint64_t list, char *const *before, size_t skip,
		       struct vector *ret)
{
	struct vector v = { 0 };
	int r;

	for (; before && before[v.count]; v.count++)
		v.bytes += strlen(before[v.count]) + 1;
	r = measure(p, list, skip, &v);
	if (r)
		return r;
	v.at = calloc(v.count + 1, sizeof *v.at);
	v.strings = malloc(v.bytes + 1);
	r = v.at && v.strings ? fill(p, list, skip, before, &v) : -ENOMEM;
	if (r)
		vector_done(&v);
	else
		*ret = v;
	return r;
}

/* Follows #! lines to a command; before[] collects the beginning of its argv. */
static int64_t resolve(const struct w2c_sys *p, char *path, const struct command **ret,
		       char *before[2 * MAX_SCRIPTS + 2])
{
	char *interpreter, *argument, line[LINE];
	size_t n = 0;
	int r;

	for (int depth = 0;; depth++) {
		r = identify(p, depth ? before[0] : path, ret, line);
		if (r || *ret)
			return r;
		r = parse_line(line, &interpreter, &argument);
		if (r || depth == MAX_SCRIPTS)
			return r ? r : -ELOOP;
		/* The script's name becomes the interpreter's argv[1] or argv[2]. */
		if (!n)
			before[n++] = strdup(path);
		if (argument) {
			memmove(before + 1, before, n++ * sizeof *before);
			before[0] = strdup(argument);
		}
		memmove(before + 1, before, n++ * sizeof *before);
		before[0] = strdup(interpreter);
		before[n] = NULL;
	}
}

/* What a path starts, if the policy allows it: a host tool or a command of the image. */
static int64_t find_allowed(const struct w2c_sys *p, char *path, const struct command **ret,
			    char *before[2 * MAX_SCRIPTS + 2])
{
	const char *tool = toolbox_find(p, path);
	int64_t r;

	if (tool) {
		*ret = toolbox_command(tool);
		return toolbox_is_allowed(p, tool) ? 0 : deny(p, tool);
	}
	r = resolve(p, path, ret, before);
	if (!r && *ret && !is_allowed(p, *ret))
		r = deny(p, (*ret)->name);
	return r;
}

int64_t image_exec(struct w2c_sys *p, uint64_t path, uint64_t argv, uint64_t envp)
{
	char *before[2 * MAX_SCRIPTS + 4] = { 0 }, name[PATH_MAX];
	struct vector args = { 0 }, env = { 0 };
	const struct command *command = NULL;
	int64_t r = guest_path(p, path, name);

	if (r)
		return r;
	if (!*name)
		return -ENOENT;
	r = find_allowed(p, name, &command, before);
	if (!r)
		r = vector_copy(p, argv, before, before[0] ? 1 : 0, &args);
	if (!r)
		r = vector_copy(p, envp, NULL, 0, &env);
	if (!r && args.bytes + env.bytes > MAX_BYTES)
		r = -E2BIG;
	for (size_t i = 0; before[i]; i++)
		free(before[i]);
	if (!r)
		r = signals_leave();
	if (r) {
		vector_done(&args);
		vector_done(&env);
		return r;
	}
	vector_done(&p->argv);
	vector_done(&p->envp);
	p->argv = args;
	p->envp = env;
	p->next = command;
	/* Started by another name, such as a virtual environment's link, Python finds other
	 * modules, so it cannot use the checkpoint. */
	p->cold = strncmp(name, "/usr/bin/", 9) != 0 && strncmp(name, "/bin/", 5) != 0;
	_longjmp(p->exec, 1);
}

int image_choose(struct w2c_sys *p, const char *path)
{
	char line[LINE];
	int r = 0;

	const struct module *module = module_by_name(p, path);

	p->next = module ? &module->command : image_find(path);
	if (!p->next) {
		r = identify(p, path, &p->next, line);
		if (!r && !p->next)
			r = -ENOEXEC;
	}
	return r;
}

static int own_vector(char *const *from, struct vector *ret)
{
	struct vector v = { 0 };
	char *to;

	for (; from[v.count]; v.count++)
		v.bytes += strlen(from[v.count]) + 1;
	if (v.bytes > MAX_BYTES)
		return -E2BIG;
	v.at = calloc(v.count + 1, sizeof *v.at);
	v.strings = to = malloc(v.bytes + 1);
	if (!v.at || !to) {
		vector_done(&v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < v.count; i++) {
		v.at[i] = to;
		to = stpcpy(to, from[i]) + 1;
	}
	*ret = v;
	return 0;
}

int image_arguments(struct w2c_sys *p, char *const *argv, char *const *envp)
{
	int r = own_vector(argv, &p->argv);

	return r ? r : own_vector(envp, &p->envp);
}

void image_close_marked(const struct w2c_sys *p)
{
	for (int fd = 0; fd <= p->fd_high; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && (flags & FD_CLOEXEC))
			close(fd);
	}
}

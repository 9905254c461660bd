/* session/leftovers.c - see leftovers.h. */
#include "session/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static int has_word(const char *pid, const char *marker)
{
	char path[300], text[2048];

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return n > 0 && memmem(text, (size_t)n, marker, strlen(marker)) != NULL;
}

int leftovers_end(const char *marker)
{
	DIR *d = opendir("/proc");
	int found = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !has_word(e->d_name, marker))
			continue;
		found++;
		(void)kill(pid, SIGKILL);
	}
	if (d)
		closedir(d);
	return found;
}

int leftovers_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		count += e->d_name[0] != '.' && strtol(e->d_name, NULL, 10) != dirfd(d);
	if (d)
		closedir(d);
	return count;
}

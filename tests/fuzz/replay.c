/* fuzz/replay.c - runs a fuzz target over its kept corpus: replay DIRECTORY. Each file is a test.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, MAX_VARIANTS = 64, MAX_SECONDS = 60 };

/* The input itself, cut short, and with single bytes changed: always the same ones. Each is a block
 * of its own size, so that a read past its end is seen by a sanitizer. */
static void run_variants(const uint8_t *data, size_t size)
{
	(void)LLVMFuzzerTestOneInput(data, size);
	size_t step = size / MAX_VARIANTS + 1;
	for (size_t i = 0; i < size; i += step) {
		uint8_t *cut = malloc(i ? i : 1), *changed = malloc(size);
		if (!cut || !changed)
			abort();
		memcpy(cut, data, i);
		memcpy(changed, data, size);
		changed[i] ^= (uint8_t)(1U << (i % 8));
		(void)LLVMFuzzerTestOneInput(cut, i);
		(void)LLVMFuzzerTestOneInput(changed, size);
		free(cut);
		free(changed);
	}
}

static int replay(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > MAX_BYTES)
		return 1;
	size_t size = (size_t)st.st_size;
	uint8_t *data = malloc(size ? size : 1);
	ssize_t n = data ? read(fd, data, size) : -1;
	close(fd);
	if (n == st.st_size)
		run_variants(data, size);
	free(data);
	return n != st.st_size;
}

static int replay_forked(int dir_fd, const char *name)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(MAX_SECONDS);
		exit(replay(dir_fd, name));
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

int main(int argc, char **argv)
{
	static DIR
		*dir; /* static: the forked children do not lose it, and LeakSanitizer sees that */
	int n = 0, failed = 0;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (!dir) {
		printf("Bail out! usage: replay DIRECTORY\n");
		return 2;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		fflush(NULL);
		int bad = replay_forked(dirfd(dir), e->d_name);
		failed += bad;
		printf("%sok %d - %s\n", bad ? "not " : "", ++n, e->d_name);
	}
	closedir(dir);
	printf("1..%d\n", n);
	return failed > 0 || n == 0; /* an empty corpus tests nothing */
}

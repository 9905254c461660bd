/* fuzz/replay.c - runs a fuzz target over its kept corpus, as a test: replay DIRECTORY. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, MAX_VARIANTS = 64 };

/* The input itself, cut short, and with single bytes changed: always the same ones. */
static void run(const uint8_t *data, size_t size)
{
	(void)LLVMFuzzerTestOneInput(data, size);
	size_t step = size / MAX_VARIANTS + 1;
	for (size_t i = 0; i < size; i += step) {
		uint8_t *copy = malloc(size);
		if (!copy)
			abort();
		memcpy(copy, data, size);
		(void)LLVMFuzzerTestOneInput(copy, i);
		copy[i] ^= (uint8_t)(1U << (i % 8));
		(void)LLVMFuzzerTestOneInput(copy, size);
		free(copy);
	}
}

int main(int argc, char **argv)
{
	static uint8_t bytes[MAX_BYTES];
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "usage: replay DIRECTORY\n");
		return 2;
	}
	for (struct dirent *e; (e = readdir(dir));) {
		char path[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		FILE *f = fopen(path, "rb");
		if (!f) {
			perror(path);
			return 1;
		}
		size_t size = fread(bytes, 1, sizeof(bytes), f);
		fclose(f);
		run(bytes, size);
		count++;
	}
	closedir(dir);
	(void)LLVMFuzzerTestOneInput(bytes, 0);
	if (count == 0)
		fprintf(stderr, "%s holds no input\n", argv[1]);
	return count == 0;
}

/* wall/linux/probe/probe_main.c - `probe NAME [KEY=VALUE...]`: tries one attack. Status 0: it
 * worked, 1: it was refused (the errno is printed), 77: not applicable here. Static, so that it
 * starts in the sandbox of any guest. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wall/linux/probe/attacks.h"
#include "wall/linux/probe/list.h"
#include "wall/linux/probe/probe.h"
#include "wall/linux/probe/space.h"

static const struct {
	const char *name, *attack;
	enum probe_control control;
	probe_fn fn;
} probes[] = {
#define X(id, attack, control, flags, holds) { #id, attack, control, probe_##id },
	PROBES(X)
#undef X
};

int probe_verdict(long r)
{
	return r < 0 ? errno : 0;
}

int probe_wait(int pid)
{
	int status = 0;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return 255;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

_Noreturn void probe_exit(int verdict)
{
	_exit(verdict < 0 ? PROBE_NOT_HERE : verdict > 126 ? 126 : verdict == 77 ? 78 : verdict);
}

int probe_decode(int status)
{
	if (status == PROBE_NOT_HERE)
		return NOT_HERE;
	if (status == 128 + SIGSYS)
		return ENOSYS;
	if (status == 128 + SIGKILL)
		return ENOMEM;
	if (status == 128 + SIGXCPU)
		return ETIME;
	if (status == 128 + SIGXFSZ)
		return EFBIG;
	return status >= 128 ? EFAULT : status;
}

int probe_in_child(probe_fn fn, const struct bait *b)
{
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		probe_exit(fn(b));
	return probe_decode(probe_wait(pid));
}

void probe_name(char *ret, size_t size, const char *word)
{
	const char *dir = getenv("TMPDIR");

	snprintf(ret, size, "%s/%s.%d", dir ? dir : "/tmp", word, getpid());
}

int probe_find_secret(const char *path, const char *secret)
{
	char text[4096] = "";
	FILE *f = fopen(path, "r");

	if (!f)
		return errno;
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	int e = ferror(f) ? errno : 0;
	fclose(f);
	text[n] = '\0';
	return e ? e : strstr(text, secret) ? 0 : ENODATA;
}

static const struct {
	const char *key;
	size_t at;
} texts[] = {
	{ "file", offsetof(struct bait, file) },
	{ "secret", offsetof(struct bait, secret) },
	{ "abstract", offsetof(struct bait, abstract) },
	{ "abstract_mail", offsetof(struct bait, abstract_mail) },
	{ "path", offsetof(struct bait, path) },
	{ "path_mail", offsetof(struct bait, path_mail) },
	{ "shared", offsetof(struct bait, shared) },
	{ "shared_host", offsetof(struct bait, shared_host) },
	{ "marker", offsetof(struct bait, marker) },
	{ "seal", offsetof(struct bait, seal) },
}, numbers[] = {
	{ "tcp", offsetof(struct bait, tcp) },
	{ "udp", offsetof(struct bait, udp) },
	{ "pid", offsetof(struct bait, pid) },
	{ "shm", offsetof(struct bait, shm) },
	{ "descriptor", offsetof(struct bait, descriptor) },
	{ "network", offsetof(struct bait, network) },
	{ "groups", offsetof(struct bait, groups) },
	{ "empty", offsetof(struct bait, empty) },
	{ "processes", offsetof(struct bait, processes) },
	{ "open_files", offsetof(struct bait, open_files) },
	{ "cpu_seconds", offsetof(struct bait, cpu_seconds) },
	{ "memory_bytes", offsetof(struct bait, memory_bytes) },
	{ "fs_bytes", offsetof(struct bait, fs_bytes) },
	{ "file_count", offsetof(struct bait, file_count) },
	{ "file_bytes", offsetof(struct bait, file_bytes) },
};

static bool is_key(const char *arg, const char *key)
{
	size_t len = strlen(key);

	return strncmp(arg, key, len) == 0 && arg[len] == '=';
}

static void take_argument(struct bait *b, const char *arg)
{
	const char *value = strchr(arg, '=');

	if (!value++)
		return;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (is_key(arg, texts[i].key))
			*(const char **)(void *)((char *)b + texts[i].at) = value;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (is_key(arg, numbers[i].key))
			*(long *)(void *)((char *)b + numbers[i].at) = strtol(value, NULL, 10);
	if (is_key(arg, "control"))
		b->is_control = true;
}

/* Loads a filter, given in hexadecimal, on top of the present ones, as a pod does before it runs
 * anything. */
static bool load_seal(const char *digits)
{
	static struct sock_filter program[4096];
	size_t bytes = strlen(digits) / 2;
	struct sock_fprog prog = { .len = (unsigned short)(bytes / sizeof(*program)),
				   .filter = program };

	if (bytes == 0 || bytes > sizeof(program) || bytes % sizeof(*program) != 0)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		const char two[3] = { digits[2 * i], digits[2 * i + 1] };

		((unsigned char *)program)[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

static int list(void)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++)
		printf("%s\t%s\n", probes[i].name, probes[i].attack);
	return 0;
}

static int attack(const char *name, const struct bait *b)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(*probes); i++) {
		if (strcmp(probes[i].name, name) != 0)
			continue;
		int r = b->is_control && probes[i].control == CONTROL_SPACE
				? space_run(probes[i].fn, b)
				: probes[i].fn(b);
		if (r > 0)
			printf("%d\n", r);
		return r < 0 ? PROBE_NOT_HERE : r > 0 ? PROBE_REFUSED : PROBE_WORKED;
	}
	fprintf(stderr, "probe: there is no attack '%s'\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	struct bait b = { .secret = "-", .file = "/etc/shadow", .shm = -1, .descriptor = -1 };
	const char *name = argc > 1 ? argv[1] : "--list";

	if (strcmp(name, "--list") == 0)
		return list();
	/* The copy that an attack managed to start. */
	if (strcmp(name, "--started") == 0)
		return 42;
	if (strcmp(name, "--sleep") == 0)
		return sleep(20), 0;
	for (int i = 2; i < argc; i++)
		take_argument(&b, argv[i]);
	if (b.seal && !load_seal(b.seal)) {
		perror("probe: the seal");
		return 2;
	}
	return attack(name, &b);
}

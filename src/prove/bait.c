/* prove/bait.c - see bait.h. */
#include "prove/bait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "prove/package_server.h"

enum { FD_TCP, FD_UDP, FD_ABSTRACT, FD_ABSTRACT_MAIL, FD_PATH, FD_PATH_MAIL, FD_SHARED };
/* A descriptor that a careless host would pass on gets this number. */
enum { STRAY_FD = 200 };

static const struct bait none = { .fds = { -1, -1, -1, -1, -1, -1, -1 }, .shm = -1 };

static int say(struct bait *b, const char *key, const char *value)
{
	cleanup_free char *text = str_printf("%s=%s", key, value);

	return text ? strlist_add(&b->args, text) : -CORDON_NOMEM;
}

static int say_number(struct bait *b, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return say(b, key, text);
}

static int add_inet(struct bait *b, int slot, int type, const char *key)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	b->fds[slot] = fd;
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    (type == SOCK_STREAM && listen(fd, 64) != 0) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		return -errno;
	return say_number(b, key, ntohs(at.sin_port)) < 0 ? -ENOMEM : 0;
}

static int add_unix(struct bait *b, int slot, int type, const char *key)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	bool is_abstract = str_starts(key, "abstract");
	char name[96];

	if (is_abstract)
		snprintf(name, sizeof(name), "cordon-bait-%s-%d", b->secret, slot);
	else if (slot == FD_SHARED)
		snprintf(name, sizeof(name), "%s/%s", b->shared, key);
	else
		snprintf(name, sizeof(name), "%s/%s", b->dir, key);
	memcpy(at.sun_path + is_abstract, name, strlen(name));
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	b->fds[slot] = fd;
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 ||
	    (type == SOCK_STREAM && listen(fd, 64) != 0))
		return -errno;
	/* Any user of the machine could reach it, so only the sandbox keeps the guest away. */
	if (!is_abstract && chmod(name, 0777) != 0)
		return -errno;
	return say(b, key, name) < 0 ? -ENOMEM : 0;
}

static int add_file(struct bait *b)
{
	const char *parent = getenv("TMPDIR");
	char path[96];

	snprintf(b->dir, sizeof(b->dir), "%s/cordon-bait-XXXXXX",
		 parent && strlen(parent) < 32 ? parent : "/tmp");
	const char *dir = mkdtemp(b->dir);
	if (!dir) {
		b->dir[0] = '\0';
		return -errno;
	}
	snprintf(path, sizeof(path), "%s/file", dir);
	cleanup_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (chmod(b->dir, 0755) != 0 || fd < 0)
		return -errno;
	int r = file_write_all(fd, b->secret, strlen(b->secret));
	if (r < 0)
		return r;
	/* Open in the host without close-on-exec, as in a careless program. */
	int stray = fcntl(fd, F_DUPFD, STRAY_FD);
	if (stray < 0)
		return -errno;
	if (say_number(b, "descriptor", (uint64_t)stray) < 0 || say(b, "file", path) < 0)
		return -ENOMEM;
	return 0;
}

/* A directory that a policy may show to the code, with a daemon's socket and a file. */
static int add_shared(struct bait *b, bool is_mounted)
{
	char path[96];

	snprintf(b->shared, sizeof(b->shared), "%s/shared", b->dir);
	if (mkdir(b->shared, 0755) != 0 || chmod(b->shared, 0755) != 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/locked", b->shared);
	cleanup_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) != 0)
		return -errno;
	int r = add_unix(b, FD_SHARED, SOCK_DGRAM, "mail");
	if (r == 0 && (say(b, "shared", is_mounted ? BAIT_SHARED : b->shared) < 0 ||
		       say(b, "shared_host", b->shared) < 0))
		r = -ENOMEM;
	return r;
}

int bait_mount(const struct bait *b, struct policy *policy, struct cordon_error **reterr)
{
	struct policy_mount *m =
		mem_grow(policy->mounts, policy->mount_count + 1, sizeof(*policy->mounts));
	cleanup_free char *text = str_printf("%s:" BAIT_SHARED ":ro", b->shared);

	if (m)
		policy->mounts = m;
	if (!m || !text)
		return err_errno(reterr, ENOMEM, "the policy of an attack");
	int r = policy_parse_mount(text, &m[policy->mount_count], reterr);
	if (r == 0)
		policy->mount_count++;
	return r;
}

static int add_numbers(struct bait *b, const struct policy *p)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "pid", (uint64_t)getpid() },
		{ "processes", p->processes },
		{ "open_files", p->open_files },
		{ "cpu_seconds", p->cpu_seconds },
		{ "memory_bytes", p->memory_bytes },
		{ "fs_bytes", p->fs_bytes },
		{ "file_count", p->file_count },
		{ "file_bytes", p->file_bytes },
		{ "network", p->network.allow_count > 0 },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (say_number(b, numbers[i].key, numbers[i].value) < 0)
			return -ENOMEM;
	if (say(b, "secret", b->secret) < 0 || say(b, "marker", b->marker) < 0)
		return -ENOMEM;
	b->shm = shmget(IPC_PRIVATE, 4096, 0666 | IPC_CREAT);
	return b->shm >= 0 && say_number(b, "shm", (uint64_t)b->shm) < 0 ? -ENOMEM : 0;
}

static int add_sockets(struct bait *b)
{
	int r = add_inet(b, FD_TCP, SOCK_STREAM, "tcp");

	if (r == 0)
		r = add_inet(b, FD_UDP, SOCK_DGRAM, "udp");
	if (r == 0)
		r = add_unix(b, FD_ABSTRACT, SOCK_STREAM, "abstract");
	if (r == 0)
		r = add_unix(b, FD_ABSTRACT_MAIL, SOCK_DGRAM, "abstract_mail");
	if (r == 0)
		r = add_unix(b, FD_PATH, SOCK_STREAM, "path");
	if (r == 0)
		r = add_unix(b, FD_PATH_MAIL, SOCK_DGRAM, "path_mail");
	return r;
}

/* A registry, and what is beside it on the host. */
static int add_packages(struct bait *b, struct cordon_error **reterr)
{
	char registry[48], other[48];
	int r = package_server_new(&b->packages, reterr);

	if (r < 0)
		return r;
	snprintf(registry, sizeof(registry), "http://127.0.0.1:%u",
		 package_server_port(b->packages));
	snprintf(other, sizeof(other), "http://127.0.0.1:%u",
		 package_server_other_port(b->packages));
	b->built = json_object();
	if (!b->built || say(b, "registry", registry) < 0 || say(b, "elsewhere", other) < 0)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	return 0;
}

int bait_init(struct bait *b, const struct policy *policy, bool is_mounted, bool has_groups,
	      struct cordon_error **reterr)
{
	/* The caller may have put a secret into the environment already. */
	const char *given = getenv("CORDON_BAIT");

	*b = none;
	if (!given || !str_copy(b->secret, sizeof(b->secret), given) || strlen(given) < 8)
		random_hex(b->secret, 32);
	snprintf(b->marker, sizeof(b->marker), "marker-%s", b->secret);
	int r = add_file(b);
	if (r == 0)
		r = add_sockets(b);
	if (r == 0)
		r = add_shared(b, is_mounted);
	if (r == 0 && say_number(b, "groups", has_groups) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = add_numbers(b, policy);
	if (r < 0) {
		bait_done(b);
		return err_errno(reterr, -r, "set up the targets of the attacks");
	}
	r = add_packages(b, reterr);
	if (r < 0)
		bait_done(b);
	return r;
}

int bait_add_program(struct bait *b, const void *bytes, size_t len, struct cordon_error **reterr)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/probe", b->dir);
	cleanup_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
	int r = fd < 0 ? -errno : file_write_all(fd, bytes, len);
	if (r < 0)
		return err_errno(reterr, -r, "write '%s'", path);
	(void)str_copy(b->program, sizeof(b->program), path);
	return 0;
}

void bait_add_args(const struct bait *b, const char **argv, size_t argc)
{
	for (size_t i = 0; i < b->args.count && argc < BAIT_ARGV - 2; i++)
		argv[argc++] = b->args.items[i];
}

void bait_done(struct bait *b)
{
	static const char *const names[] = { "file",  "path",        "path_mail",
					     "probe", "shared/mail", "shared/locked" };

	for (size_t i = 0; i < b->args.count; i++)
		if (str_starts(b->args.items[i], "descriptor="))
			(void)close((int)strtol(b->args.items[i] + 11, NULL, 10));
	for (size_t i = 0; i < BAIT_FDS; i++)
		close_fdp(&b->fds[i]);
	for (size_t i = 0; b->dir[0] && i < sizeof(names) / sizeof(*names); i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s/%s", b->dir, names[i]);
		(void)unlink(path);
	}
	if (b->shared[0])
		(void)rmdir(b->shared);
	if (b->dir[0])
		(void)rmdir(b->dir);
	b->packages = package_server_free(b->packages);
	json_decref(b->built);
	if (b->shm >= 0)
		(void)shmctl(b->shm, IPC_RMID, NULL);
	strlist_done(&b->args);
	*b = none;
}

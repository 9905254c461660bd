/* unit/net/test_confine.c - what the gateway cannot do, even if an attacker controls it. */
#include "net/gateway/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static void *nothing(void *arg)
{
	return arg;
}

/* In a process that has no way back. */
static void try_confined(const char *path)
{
	struct confine_result got = { 0 };
	struct addrinfo *list = NULL;
	pthread_t thread;
	bool has_names = access("/etc/hosts", R_OK) == 0; /* a bare root has none */
	ASSERT_EQ(confine_self(NULL, &got, NULL), 0);
	ASSERT(got.has_seccomp);
	if (got.has_landlock) {
		ASSERT(open(path, O_RDONLY) < 0 && errno == EACCES);
		ASSERT(open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES);
		ASSERT(open("/tmp/x", O_WRONLY | O_CREAT, 0600) < 0);
		ASSERT(unlink(path) < 0);
	}
	ASSERT(execl("/bin/true", "true", NULL) < 0 && errno == EPERM);
	ASSERT(fork() < 0 && errno == EPERM);
	ASSERT(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EPERM);
	ASSERT(socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EPERM);
	ASSERT(kill(getppid(), 0) < 0 && errno == EPERM);
	/* What it lives of goes on. */
	ASSERT_EQ(pthread_create(&thread, NULL, nothing, NULL), 0);
	ASSERT_EQ(pthread_join(thread, NULL), 0);
	ASSERT_EQ(getaddrinfo("localhost", NULL, NULL, &list), has_names ? 0 : EAI_NONAME);
	if (list)
		freeaddrinfo(list);
	ASSERT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	ASSERT(socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno == EAFNOSUPPORT);
	_exit(0); /* the leak checker of sanitized builds could not run any more */
}

TEST(files_and_calls)
{
	char path[] = "/tmp/cordon-confine-XXXXXX";
	int status = -1, fd = mkstemp(path);

	ASSERT(fd >= 0);
	(void)close(fd);
	pid_t pid = fork();
	if (pid == 0)
		try_confined(path);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(unlink(path), 0); /* which it could not */
	ASSERT_EQ(status, 0);
}

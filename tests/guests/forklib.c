/* tests/guests/forklib.c - cordon_guest_fork() without namespaces, for tests of template mode;
 * built with inside/lib/spawn_requests.c. */
#include <signal.h>
#include <unistd.h>

int cordon_guest_fork(const int *fds);

int cordon_guest_fork(const int *fds)
{
	/* As the real one: the last seven descriptors are the library's own to close, in the
	 * session. */
	signal(SIGCHLD, SIG_IGN);
	pid_t pid = fork();
	if (pid == 0)
		for (int i = 4; i < 11; i++)
			close(fds[i]);
	return (int)pid;
}

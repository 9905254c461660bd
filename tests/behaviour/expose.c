/* tests/behaviour/expose.c - ports that code listens on in a sandbox, reached from the host: what
 * works, what is refused, and what a hostile server can do to its client. A server says when it is
 * ready; nothing here depends on time. */
#include "dialect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "belongings.h"
#include "harness/test.h"

enum { PORT = 8000, LINKS_MAX = 64, THREADS = 8, CONNECTIONS = 10000, CHUNK = 65536 };

#define LISTENS                                                                                    \
	"import socket\ns = socket.create_server(('127.0.0.1', 8000), backlog=128)\n"              \
	"print('ready', flush=True)\n"
/* Gives back what it gets, to any number at once, and ends each with its client. */
#define ECHO                                                                                       \
	"import asyncio\n"                                                                         \
	"async def serve(r, w):\n"                                                                 \
	"  try:\n"                                                                                 \
	"    while d := await r.read(65536): w.write(d); await w.drain()\n"                        \
	"  except OSError: pass\n"                                                                 \
	"  w.close()\n"                                                                            \
	"async def main():\n"                                                                      \
	"  s = await asyncio.start_server(serve, '127.0.0.1', 8000, backlog=128)\n"                \
	"  print('ready', flush=True)\n"                                                           \
	"  await s.serve_forever()\n"                                                              \
	"asyncio.run(main())\n"

static struct cordon_session *open_place(const char *set)
{
	static const char *const languages[] = { "python", "sh", NULL };
	struct cordon_policy *p = new_policy(set);

	ASSERT_EQ(cordon_policy_set(p, "cpu_seconds=600", NULL), 0);
	return open_languages("python", languages, p);
}

/* Waits until the process has printed this; it may have ended since. */
static void await(struct cordon_session *s, uint64_t process, const char *text)
{
	for (;;) {
		cleanup_free char *out = NULL;
		struct cordon_result *r = NULL;
		uint64_t from;
		size_t len;

		ASSERT_EQ(cordon_process_output(s, process, 1, 0, &out, &len, &from, NULL), 0);
		if (out && memmem(out, len, text, strlen(text)))
			return;
		if (cordon_process_wait(s, process, 10, &r, NULL) < 0)
			continue;
		const char *all = cordon_result_stdout(r, &len);
		if (!memmem(all, len, text, strlen(text)))
			test_fail(__FILE__, __LINE__, "the server ended before '%s': %s", text,
				  cordon_result_json(r));
		cordon_result_free(r);
		return;
	}
}

/* A server in the background that runs this Python; it is ready. */
static uint64_t serve(struct cordon_session *s, const char *code)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *line = str_printf("exec python3 -c \"%s\"", code);
	struct cordon_command_options o = { .command = line, .timeout_ms = UINT64_MAX };
	uint64_t process = 0;

	if (cordon_process_start(s, &o, &process, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	await(s, process, "ready");
	return process;
}

static char *expose(struct cordon_session *s, int host_port)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_expose_options o = { .host_port = host_port };
	char *address = NULL;

	if (cordon_session_expose(s, PORT, &o, &address, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	return address;
}

static int connect_port(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ASSERT(fd >= 0);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* -1: refused. */
static int dial(const char *address)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	if (address[0] != '/')
		return connect_port((uint16_t)atoi(strchr(address, ':') + 1));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT(fd >= 0 && str_copy(sa.sun_path, sizeof(sa.sun_path), address));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Reads until the end. Returns how much; -1: the connection was reset. */
static ssize_t drain(int fd, char *ret, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, ret + len, size - 1 - len)) > 0)
		len += (size_t)n;
	ret[len] = '\0';
	return n < 0 ? -1 : (ssize_t)len;
}

/* What comes back for a word whose sender then sends no more. */
static const char *ask(const char *address, const char *word)
{
	static _Thread_local char answer[256];
	cleanup_close int fd = dial(address);

	answer[0] = '\0';
	if (fd < 0)
		return "refused";
	if (send(fd, word, strlen(word), MSG_NOSIGNAL) != (ssize_t)strlen(word) ||
	    shutdown(fd, SHUT_WR) != 0)
		return "gone";
	return drain(fd, answer, sizeof(answer)) < 0 ? "reset" : answer;
}

TEST(a_server_in_the_background_is_reached)
{
	struct cordon_session *s = open_place("expose=8000");
	(void)serve(s, ECHO);
	cleanup_free char *path = expose(s, 0), *again = expose(s, 0);

	ASSERT_STREQ(ask(path, "hello"), "hello");
	ASSERT_STREQ(path, again);
	cordon_session_close(s);
}

TEST(by_a_port_of_the_hosts_loopback)
{
	struct cordon_session *s = open_place("expose=7999-8001");
	(void)serve(s, ECHO);
	cleanup_free char *address = expose(s, -1), *other = NULL;

	ASSERT_EQ(strncmp(address, "127.0.0.1:", 10), 0);
	ASSERT_STREQ(ask(address, "hello"), "hello");
	ASSERT_EQ(cordon_session_expose(s, PORT, NULL, &other, NULL), -CORDON_STATE);
	cordon_session_close(s);
	ASSERT_STREQ(ask(address, "hello"), "refused");
}

TEST(a_session_of_one_language)
{
	struct cordon_session *s = open_with("python", "expose=8000");

	value_is(s, LISTENS "1", "1");
	cleanup_free char *path = expose(s, 0);
	cleanup_close int fd = dial(path);
	ASSERT_EQ(write(fd, "abc", 3), 3);
	value_is(s, "c = s.accept()[0]; c.recv(3).decode()", "\"abc\"");
	value_is(s, "c.sendall(b'xyz'); c.close()", "null");
	char answer[8];
	ASSERT_EQ(drain(fd, answer, sizeof(answer)), 3);
	ASSERT_STREQ(answer, "xyz");
	cordon_session_close(s);
}

TEST(the_socket_is_the_users_alone)
{
	struct cordon_session *s = open_place("expose=8000");
	cleanup_free char *path = expose(s, 0);
	cleanup_free char *dir = str_ndup(path, (size_t)(strrchr(path, '/') - path));
	struct stat st;

	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0600);
	ASSERT_EQ(st.st_uid, geteuid());
	ASSERT_EQ(stat(dir, &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0700);
	cordon_session_close(s);
	ASSERT_EQ(stat(path, &st), -1);
	ASSERT_EQ(stat(dir, &st), -1);
}

TEST(a_path_of_the_callers)
{
	struct cordon_session *s = open_place("expose=8000,8001");
	char dir[] = "/tmp/expose-XXXXXX", path[64];
	struct cordon_expose_options o = { .path = path };
	cleanup_free char *address = NULL, *none = NULL;
	struct stat st;

	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/my.sock", dir);
	mode_t before = umask(0);
	ASSERT_EQ(cordon_session_expose(s, PORT, &o, &address, NULL), 0);
	(void)umask(before);
	ASSERT_STREQ(address, path);
	ASSERT_EQ(stat(path, &st), 0);
	ASSERT_EQ(st.st_mode & 07777, 0600);
	ASSERT_EQ(cordon_session_expose(s, 8001, &o, &none, NULL) < 0, 1); /* it is there already */
	ASSERT_EQ(cordon_session_unexpose(s, PORT, NULL), 0);
	ASSERT_EQ(stat(path, &st), -1);
	ASSERT_EQ(cordon_session_unexpose(s, PORT, NULL), -CORDON_NOT_FOUND);
	ASSERT_EQ(chmod(dir, 0777), 0); /* others could put theirs in its place */
	ASSERT_EQ(cordon_session_expose(s, PORT, &o, &none, NULL), -CORDON_INVALID);
	o.host_port = 9000;
	ASSERT_EQ(cordon_session_expose(s, PORT, &o, &none, NULL), -CORDON_INVALID);
	ASSERT_EQ(rmdir(dir), 0);
	cordon_session_close(s);
}

static void make_file(const char *dir, const char *name)
{
	cleanup_free char *path = str_printf("%s/%s", dir, name);
	cleanup_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	ASSERT(fd >= 0);
}

/* What is removed is the socket that was made, and only where it was made. */
TEST(a_file_in_place_of_the_socket_stays)
{
	struct cordon_session *s = open_place("expose=8000");
	char dir[] = "/tmp/expose-XXXXXX", path[64], link[64];
	struct cordon_expose_options o = { .path = path };
	cleanup_free char *first = NULL, *second = NULL;

	ASSERT(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/my.sock", dir);
	ASSERT_EQ(cordon_session_expose(s, PORT, &o, &first, NULL), 0);
	ASSERT_EQ(unlink(path), 0);
	make_file(dir, "my.sock");
	ASSERT_EQ(cordon_session_unexpose(s, PORT, NULL), 0);
	ASSERT_EQ(access(path, F_OK), 0);
	ASSERT_EQ(unlink(path), 0);

	/* A link on the way that leads elsewhere meanwhile. */
	char one[64], two[64];
	snprintf(one, sizeof(one), "%s/one", dir);
	snprintf(two, sizeof(two), "%s/two", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(path, sizeof(path), "%s/link/my.sock", dir);
	ASSERT(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0 && symlink("one", link) == 0);
	ASSERT_EQ(cordon_session_expose(s, PORT, &o, &second, NULL), 0);
	ASSERT(unlink(link) == 0 && symlink("two", link) == 0);
	make_file(two, "my.sock");
	cordon_session_close(s);
	ASSERT_EQ(access(path, F_OK), 0);
	ASSERT(unlink(path) == 0 && unlink(link) == 0);
	ASSERT(rmdir(one) == 0 && rmdir(two) == 0 && rmdir(dir) == 0);
}

TEST(a_port_that_the_policy_does_not_name)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = open_place("expose=8000");
	cleanup_free char *none = NULL;

	ASSERT_EQ(cordon_session_expose(s, 8001, NULL, &none, &e), -CORDON_DENIED);
	ASSERT_HAS(cordon_error_message(e), "expose+=8001");
	cleanup_free char *list = cordon_session_exposed(s);
	ASSERT_STREQ(list, "[]");
	cordon_session_close(s);
}

TEST(without_expose_nothing_listens)
{
	struct cordon_session *s = open_place(NULL);
	cleanup_free char *none = NULL;

	value_is(s,
		 "import socket\ntry: socket.socket(); r = 0\nexcept OSError as e: r = e.errno\nr",
		 "13");
	ASSERT_EQ(cordon_session_expose(s, PORT, NULL, &none, NULL), -CORDON_DENIED);
	cordon_session_close(s);
}

/* The code has its own loopback and nothing else. */
TEST(the_code_reaches_nothing_outside)
{
	struct cordon_session *s = open_place("expose=8000"), *other = open_place("expose=8000");
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cleanup_close int host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(sa);
	char code[400];

	ASSERT_EQ(bind(host, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ASSERT_EQ(listen(host, 4), 0);
	ASSERT_EQ(getsockname(host, (struct sockaddr *)&sa, &len), 0);
	cleanup_close int reached = connect_port(ntohs(sa.sin_port));
	ASSERT(reached >= 0);
	(void)serve(other, ECHO);
	(void)serve(s, ECHO);
	cleanup_free char *path = expose(s, 0);
	cleanup_free char *loopback = expose(other, -1);
	/* Own port: reached. The host's, the other's by its address on the host, an address
	 * elsewhere: not. */
	snprintf(code, sizeof(code),
		 "import socket\ndef t(a):\n"
		 "  try: socket.create_connection(a, 5).close(); return 1\n"
		 "  except OSError as e: return type(e).__name__\n"
		 "[t(('127.0.0.1', p)) for p in (8000, %u, %s)] + [t(('192.0.2.1', 80))]",
		 ntohs(sa.sin_port), strchr(loopback, ':') + 1);
	value_is(s, code, "[1,\"ConnectionRefusedError\",\"ConnectionRefusedError\",\"OSError\"]");
	ASSERT_STREQ(ask(path, "mine"), "mine");
	cordon_session_close(s);
	ASSERT_STREQ(ask(loopback, "still"), "still");
	cordon_session_close(other);
}

TEST(each_direction_closes_for_itself)
{
	struct cordon_session *s = open_place("expose=8000");
	/* The first: reads to the end, then answers. The second: ends first, then reads. */
	uint64_t p = serve(s, LISTENS
			   "c = s.accept()[0]\nn = 0\n"
			   "while d := c.recv(65536): n += len(d)\n"
			   "c.sendall(b'%d' % n); c.close()\n"
			   "c = s.accept()[0]; c.sendall(b'bye'); c.shutdown(socket.SHUT_WR)\n"
			   "n = 0\nwhile d := c.recv(65536): n += len(d)\n"
			   "print('got', n, flush=True)\n");
	cleanup_free char *path = expose(s, 0);
	static char bytes[CHUNK], answer[64];
	int fd = dial(path);

	for (int i = 0; i < 64; i++)
		ASSERT_EQ(send(fd, bytes, CHUNK, MSG_NOSIGNAL), CHUNK);
	ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
	ASSERT_EQ(drain(fd, answer, sizeof(answer)), 7);
	ASSERT_STREQ(answer, "4194304");
	close(fd);
	fd = dial(path);
	ASSERT_EQ(drain(fd, answer, sizeof(answer)), 3); /* its end has come; ours is open */
	for (int i = 0; i < 64; i++)
		ASSERT_EQ(send(fd, bytes, CHUNK, MSG_NOSIGNAL), CHUNK);
	close(fd);
	await(s, p, "got 4194304");
	cordon_session_close(s);
}

TEST(nobody_listens)
{
	struct cordon_session *s = open_place("expose=8000");
	cleanup_free char *path = expose(s, 0), *list = NULL;
	char answer[8];

	value_is(s, "1", "1");
	for (int i = 0; i < 100; i++) {
		cleanup_close int fd = dial(path);
		ASSERT(fd >= 0);
		ASSERT_EQ(drain(fd, answer, sizeof(answer)) <= 0, 1);
	}
	(void)serve(s, ECHO); /* later */
	ASSERT_STREQ(ask(path, "now"), "now");
	cordon_session_close(s);
}

/* Whether this end would take more now. */
static bool takes(int fd)
{
	static const char bytes[CHUNK];

	return send(fd, bytes, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* Never accepts; accepts and never reads; sends without end; resets. None of it delays others or
 * the end. */
TEST(hostile_servers)
{
	struct belongings before = count_belongings();
	struct cordon_session *s = open_place("expose=8000-8003");
	cleanup_free char *deaf = NULL, *full = NULL, *loud = NULL, *rude = NULL;
	char word[16];

	(void)serve(
		s,
		"import socket\n"
		"a = [socket.create_server(('127.0.0.1', 8000 + i), backlog=1) for i in range(4)]\n"
		"print('ready', flush=True)\n"
		"kept = a[1].accept()\n"
		"c = a[3].accept()[0]\n"
		"c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1,0,0,0,0,0,0,0)))\n"
		"c.recv(1); c.close()\n"
		"c = a[2].accept()[0]\n"
		"try:\n"
		"  while True: c.sendall(bytes(65536))\n"
		"except OSError: print('stopped', flush=True)\n"
		"a[2].accept()\n");
	ASSERT_EQ(cordon_session_expose(s, 8000, NULL, &deaf, NULL), 0);
	ASSERT_EQ(cordon_session_expose(s, 8001, NULL, &full, NULL), 0);
	ASSERT_EQ(cordon_session_expose(s, 8002, NULL, &loud, NULL), 0);
	ASSERT_EQ(cordon_session_expose(s, 8003, NULL, &rude, NULL), 0);
	int unheard[8];
	for (int i = 0; i < 8; i++)
		ASSERT((unheard[i] = dial(deaf)) >= 0);
	cleanup_close int unread = dial(full);
	while (takes(unread))
		;
	int fd = dial(rude);
	ASSERT_EQ(write(fd, "x", 1), 1);
	ASSERT_EQ(drain(fd, word, sizeof(word)) <= 0, 1);
	close(fd);
	fd = dial(loud);
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(read(fd, word, sizeof(word)) > 0, 1);
	close(fd);
	cordon_session_close(s);
	for (int i = 0; i < 8; i++)
		close(unheard[i]);
	close_fdp(&unread);
	must_be_as_before(&before);
}

static int links_of(struct cordon_session *s)
{
	cleanup_free char *text = cordon_session_exposed(s);
	cleanup_json json_t *a = NULL;

	ASSERT_EQ(json_parse(text, strlen(text), 0, &a, NULL), 0);
	return (int)json_integer_value(json_object_get(json_array_get(a, 0), "connections"));
}

TEST(connections_are_bounded)
{
	struct cordon_session *s = open_place("expose=8000");
	(void)serve(s, ECHO);
	cleanup_free char *path = expose(s, 0);
	int fds[LINKS_MAX], more[8];
	char answer[8];

	for (int i = 0; i < LINKS_MAX; i++) {
		fds[i] = dial(path);
		ASSERT_EQ(write(fds[i], "a", 1), 1);
		ASSERT_EQ(read(fds[i], answer, 1), 1);
	}
	ASSERT_EQ(links_of(s), LINKS_MAX);
	for (int i = 0; i < 8; i++) { /* these wait */
		more[i] = dial(path);
		ASSERT_EQ(write(more[i], "b", 1), 1);
	}
	ASSERT_EQ(write(fds[0], "c", 1), 1);
	ASSERT_EQ(read(fds[0], answer, 1), 1);
	ASSERT_EQ(links_of(s), LINKS_MAX);
	ASSERT_EQ(recv(more[0], answer, 1, MSG_DONTWAIT), -1);
	for (int i = 0; i < LINKS_MAX; i++)
		close(fds[i]);
	for (int i = 0; i < 8; i++) {
		ASSERT_EQ(read(more[i], answer, 1), 1);
		close(more[i]);
	}
	cordon_session_close(s);
}

TEST(a_new_guest_has_the_same_port)
{
	struct cordon_session *s = open_with("python", "expose=8000");
	cleanup_free char *path = expose(s, 0);
	char answer[8];

	for (int i = 0; i < 3; i++) {
		value_is(s, LISTENS "1", "1");
		cleanup_close int fd = dial(path);
		value_is(s, "c = s.accept()[0]; c.sendall(b'new')", "null");
		ASSERT_EQ(read(fd, answer, 3), 3);
		ASSERT_EQ(cordon_session_restart(s, NULL), 0);
		ASSERT_EQ(drain(fd, answer, sizeof(answer)) <= 0, 1); /* it ended with its guest */
	}
	cordon_session_close(s);
}

TEST(a_pools_next_user_does_not_have_it)
{
	struct cordon_policy *p = new_policy("expose=8000");
	const struct cordon_pool_options o = { .session = { .guest = "python", .policy = p },
					       .size = 1,
					       .reuse = true };
	struct cordon_pool *pool = NULL;
	struct cordon_session *s = NULL;

	ASSERT_EQ(cordon_pool_new(&o, &pool, NULL), 0);
	ASSERT_EQ(cordon_pool_acquire(pool, 60000, &s, NULL), 0);
	cleanup_free char *path = expose(s, 0);
	cordon_pool_release(pool, s);
	ASSERT_EQ(dial(path), -1);
	ASSERT_EQ(cordon_pool_acquire(pool, 60000, &s, NULL), 0);
	cleanup_free char *list = cordon_session_exposed(s);
	ASSERT_STREQ(list, "[]");
	cordon_pool_release(pool, s);
	cordon_pool_free(pool);
	cordon_policy_free(p);
}

struct load {
	const char *address;
	_Atomic unsigned answered, ended;
};

/* An answer is right, or the connection ended because the server was killed. */
static void *connect_often(void *arg)
{
	struct load *l = arg;

	for (unsigned n = 0; l->answered < CONNECTIONS; n++) {
		char word[16];

		snprintf(word, sizeof(word), "%u", n);
		const char *answer = ask(l->address, word);
		if (str_eq(answer, word)) {
			l->answered++;
		} else if (strncmp(word, answer, strlen(answer)) == 0 || str_eq(answer, "reset") ||
			   str_eq(answer, "gone")) {
			l->ended++;
			usleep(1000); /* leave the next server a processor to start on */
		} else {
			test_fail(__FILE__, __LINE__, "asked '%s', got '%s'", word, answer);
		}
	}
	return NULL;
}

TEST(ten_thousand_connections_from_eight_threads_with_kills)
{
	struct belongings before = count_belongings();
	struct cordon_session *s = open_place("expose=8000");
	uint64_t p = serve(s, ECHO);
	cleanup_free char *path = expose(s, 0);
	struct load l = { .address = path };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, connect_often, &l), 0);
	for (int kills = 0; kills < 10; kills++) {
		struct cordon_result *r = NULL;
		unsigned done = l.answered;

		while (l.answered < done + 200 && l.answered < CONNECTIONS)
			usleep(1000);
		ASSERT_EQ(cordon_process_kill(s, p, NULL), 0);
		ASSERT_EQ(cordon_process_wait(s, p, UINT64_MAX, &r, NULL), 0);
		cordon_result_free(r);
		p = serve(s, ECHO);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("# %u answered, %u ended with their server\n", l.answered, l.ended);
	ASSERT_STREQ(ask(path, "last"), "last");
	cordon_session_close(s);
	must_be_as_before(&before);
}

/* prove/package_server.c - see package_server.h. One request for each connection, one after the
 * other: the clients are our own attacks. */
#include "prove/package_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/str.h"
#include "files/tar.h"

enum { PACKAGE_BYTES = 1 << 20, REQUEST_BYTES = 8192, ANSWER_S = 10, STORED_MAX = 65535 };
enum { REGISTRY, OTHER, SERVICES };

#define FILE_NAME PACKAGE_NAME "-1.0.tar.gz"
#define TOP PACKAGE_NAME "-1.0/"

struct package_server {
	pthread_t thread;
	int wake; /* an event: it ends */
	int fds[SERVICES];
	unsigned ports[SERVICES];
	pthread_mutex_t lock; /* guards the package */
	struct buf package;
};

static int listen_on_loopback(int *ret_fd, unsigned *ret_port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*ret_fd = fd;
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		return -errno;
	*ret_port = ntohs(at.sin_port);
	return 0;
}

/* The head of the request; false: none came in time. */
static bool read_request(int fd, char *text, size_t size)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = recv(fd, text + len, size - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		if (strstr(text, "\r\n\r\n"))
			return true;
		if (len == size - 1)
			return false;
	}
}

static void send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		bytes += n;
		len -= (size_t)n;
	}
}

static void answer(int fd, const char *status, const char *more, const char *body, size_t len)
{
	cleanup_free char *head = str_printf("HTTP/1.1 %s\r\nConnection: close\r\n%s"
					     "Content-Type: text/html\r\n"
					     "Content-Length: %zu\r\n\r\n",
					     status, more, len);

	if (!head)
		return;
	send_all(fd, head, strlen(head));
	send_all(fd, body, len);
}

static void answer_registry(struct package_server *s, int fd, const char *request)
{
	static const char page[] = "<a href=\"/files/" FILE_NAME "\">" FILE_NAME "</a>";
	char place[80];

	if (str_starts(request, "POST ")) {
		answer(fd, "200 OK", "", "reached", 7);
	} else if (str_starts(request, "GET /simple/" PACKAGE_NAME "/")) {
		answer(fd, "200 OK", "", page, sizeof(page) - 1);
	} else if (str_starts(request, "GET /files/")) {
		pthread_mutex_lock(&s->lock);
		answer(fd, "200 OK", "", s->package.data, s->package.len);
		pthread_mutex_unlock(&s->lock);
	} else if (str_starts(request, "GET /elsewhere")) {
		(void)snprintf(place, sizeof(place), "Location: http://127.0.0.1:%u/\r\n",
			       s->ports[OTHER]);
		answer(fd, "302 Found", place, "", 0);
	} else {
		answer(fd, "404 Not Found", "", "", 0);
	}
}

static void serve(struct package_server *s, int service)
{
	const struct timeval wait = { .tv_sec = ANSWER_S };
	char request[REQUEST_BYTES];
	cleanup_close int fd = accept4(s->fds[service], NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) != 0 ||
	    !read_request(fd, request, sizeof(request)))
		return;
	if (service == REGISTRY)
		answer_registry(s, fd, request);
	else
		answer(fd, "200 OK", "", "reached", 7);
}

static void *run(void *arg)
{
	struct package_server *s = arg;

	for (;;) {
		struct pollfd p[] = { { .fd = s->wake, .events = POLLIN },
				      { .fd = s->fds[REGISTRY], .events = POLLIN },
				      { .fd = s->fds[OTHER], .events = POLLIN } };

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		for (int i = 0; i < SERVICES; i++)
			if (p[i + 1].revents)
				serve(s, i);
	}
}

static int start_thread(struct package_server *s)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int e = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -e;
}

static void close_all(struct package_server *s)
{
	for (int i = 0; i < SERVICES; i++)
		close_fdp(&s->fds[i]);
	close_fdp(&s->wake);
	buf_done(&s->package);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int package_server_new(struct package_server **ret, struct cordon_error **reterr)
{
	struct package_server *s = mem_alloc(sizeof(*s));

	if (!s)
		return err_errno(reterr, ENOMEM, "a registry for attacks");
	pthread_mutex_init(&s->lock, NULL);
	buf_init(&s->package, PACKAGE_BYTES);
	s->fds[REGISTRY] = s->fds[OTHER] = -1;
	s->wake = os_event_open();
	int r = s->wake < 0 ? s->wake : 0;
	for (int i = 0; r == 0 && i < SERVICES; i++)
		r = listen_on_loopback(&s->fds[i], &s->ports[i]);
	if (r == 0)
		r = start_thread(s);
	if (r < 0) {
		close_all(s);
		return err_errno(reterr, -r, "a registry for attacks");
	}
	*ret = s;
	return 0;
}

struct package_server *package_server_free(struct package_server *s)
{
	if (!s)
		return NULL;
	(void)os_event_set(s->wake);
	(void)pthread_join(s->thread, NULL);
	close_all(s);
	return NULL;
}

unsigned package_server_port(const struct package_server *s)
{
	return s->ports[REGISTRY];
}

unsigned package_server_other_port(const struct package_server *s)
{
	return s->ports[OTHER];
}

static int add_to_buf(void *arg, const void *bytes, size_t len)
{
	return buf_add(arg, bytes, len) < 0 ? -ENOMEM : 0;
}

static int add_file(struct tar *t, const char *name, const char *bytes, size_t len)
{
	struct tar_entry e = { .name = name, .mode = S_IFREG | 0644, .size = len };
	int r = tar_begin(t, &e);

	if (r == 0)
		r = tar_data(t, bytes, len);
	return r < 0 ? r : tar_end(t);
}

/* A source package that needs no other to be built. */
static int make_archive(struct buf *b, const char *backend, size_t len)
{
	static const char info[] = "Metadata-Version: 2.1\nName: " PACKAGE_NAME "\nVersion: 1.0\n";
	static const char project[] = "[build-system]\nrequires = []\nbuild-backend = 'backend'\n"
				      "backend-path = ['.']\n";
	struct tar t = { .write = add_to_buf, .arg = b };
	int r = add_file(&t, TOP "PKG-INFO", info, sizeof(info) - 1);

	if (r == 0)
		r = add_file(&t, TOP "pyproject.toml", project, sizeof(project) - 1);
	if (r == 0)
		r = add_file(&t, TOP "backend.py", backend, len);
	return r < 0 ? r : tar_finish(&t);
}

static uint32_t crc32_of(const char *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
	}
	return ~crc;
}

static int add_number(struct buf *b, uint32_t n, int bytes)
{
	int r = 0;

	for (int i = 0; r == 0 && i < bytes; i++)
		r = buf_add_char(b, (char)(n >> (8 * i) & 0xff));
	return r;
}

/* gzip without compression (RFC 1951, 3.2.4; RFC 1952). */
static int add_gzip(struct buf *b, const char *bytes, size_t len)
{
	static const char head[] = { 0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	int r = buf_add(b, head, sizeof(head));

	for (size_t at = 0; r == 0 && at < len;) {
		uint32_t n = (uint32_t)(len - at < STORED_MAX ? len - at : STORED_MAX);

		r = buf_add_char(b, at + n == len ? 1 : 0);
		r = r < 0 ? r : add_number(b, n | (~n & 0xffff) << 16, 4);
		r = r < 0 ? r : buf_add(b, bytes + at, n);
		at += n;
	}
	r = r < 0 ? r : add_number(b, crc32_of(bytes, len), 4);
	return r < 0 ? r : add_number(b, (uint32_t)len, 4);
}

int package_server_set(struct package_server *s, const char *backend, size_t len,
		       struct cordon_error **reterr)
{
	cleanup_buf struct buf archive = { 0 };

	buf_init(&archive, PACKAGE_BYTES / 2);
	int r = make_archive(&archive, backend, len);
	pthread_mutex_lock(&s->lock);
	buf_clear(&s->package);
	if (r == 0)
		r = add_gzip(&s->package, archive.data, archive.len);
	pthread_mutex_unlock(&s->lock);
	return r < 0 ? err_errno(reterr, ENOMEM, "the package of an attack") : 0;
}

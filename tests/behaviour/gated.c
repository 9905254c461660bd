/* tests/behaviour/gated.c - sessions behind a gateway that a template forks: each has its own
 * network, gateway, certificate authority and answers. All sessions of one template have the same
 * hash seed, which tells them from those that were started alone. */
#include "dialect.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "belongings.h"
#include "harness/test.h"

enum { SESSIONS = 3, THREADS = 8, ROUNDS = 12, REQUEST = 8192 };

#define SEED "str(hash('seed'))"
#define FETCH                                                                                      \
	"import urllib.request, urllib.error\n"                                                    \
	"def fetch(url, headers={}):\n"                                                            \
	"  try: return urllib.request.urlopen(urllib.request.Request(url, headers=headers),"       \
	" timeout=60).read().decode()\n"                                                           \
	"  except urllib.error.HTTPError as e: return 'refused ' + str(e.code)\n"                  \
	"  except OSError as e: return 'failed'\n"

/* A server on the host's loopback, which answers with the header X-Key of the request. */
struct server {
	pthread_t thread;
	int fd;
	unsigned port;
};

static void answer(int client)
{
	char text[REQUEST] = "", reply[REQUEST], key[128] = "none";
	size_t len = 0;

	while (len + 1 < sizeof(text) && !strstr(text, "\r\n\r\n")) {
		ssize_t n = read(client, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
		text[len] = '\0';
	}
	const char *at = strcasestr(text, "\r\nx-key: ");
	if (at)
		(void)sscanf(at + 9, "%127[^\r]", key);
	int size = snprintf(reply, sizeof(reply),
			    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			    strlen(key), key);
	(void)!write(client, reply, (size_t)size);
	close(client);
}

static void *serve(void *arg)
{
	const struct server *s = arg;
	int client;

	while ((client = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		answer(client);
	return NULL;
}

static void server_open(struct server *s)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);

	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT_EQ(bind(s->fd, (struct sockaddr *)&sa, len), 0);
	ASSERT_EQ(listen(s->fd, 128), 0);
	ASSERT_EQ(getsockname(s->fd, (struct sockaddr *)&sa, &len), 0);
	s->port = ntohs(sa.sin_port);
	ASSERT_EQ(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_close(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* A policy that opens the server. */
static const char *to(const struct server *s)
{
	static char set[64];

	snprintf(set, sizeof(set), "network.allow=127.0.0.1:%u", s->port);
	return set;
}

static char *value(struct cordon_session *s, const char *code)
{
	struct cordon_result *r = run(s, code);
	const char *text =
		cordon_result_success(r) ? cordon_result_value_json(r) : cordon_result_error(r);
	char *copy = str_dup(text ? text : "none");

	cordon_result_free(r);
	return copy;
}

static void fetches(struct cordon_session *s, unsigned port, const char *expected)
{
	cleanup_free char *code =
		str_printf(FETCH "fetch('http://127.0.0.1:%u/', {'X-Key': 'k1'})", port);

	value_is(s, code, expected);
}

static void have_python(void)
{
	needs(access("/usr/bin/python3", X_OK) == 0, "python3");
	needs(getenv("CORDON_GATEWAY") != NULL, "cordon-gateway");
}

TEST(sessions_behind_a_gateway_are_forked)
{
	struct server server;

	have_python();
	server_open(&server);
	struct cordon_session *a = open_with("python", to(&server)),
			      *b = open_with("python", to(&server));
	cleanup_free char *first = value(a, SEED), *second = value(b, SEED);
	ASSERT_STREQ(first, second);
	fetches(a, server.port, "\"k1\"");
	fetches(b, server.port, "\"k1\"");
	value_is(a, "__import__('os').environ['HTTP_PROXY']", "\"http://127.0.0.1:3128\"");
	value_is(a, "open('/etc/resolv.conf').read().split()[1]", "\"127.0.0.1\"");
	cordon_session_close(a);
	fetches(b, server.port, "\"k1\"");
	cordon_session_close(b);
	server_close(&server);
}

TEST(what_is_not_allowed_is_denied_and_told)
{
	struct server server, other;

	have_python();
	server_open(&server);
	server_open(&other);
	struct cordon_session *s = open_with("python", to(&server));
	cleanup_free char *code = str_printf(FETCH "fetch('http://127.0.0.2:%u/')", other.port);
	struct cordon_result *r = run(s, code);
	ASSERT_HAS(cordon_result_json(r), "\"network.request\"");
	ASSERT_HAS(cordon_result_json(r), "127.0.0.2");
	ASSERT_EQ(strncmp(cordon_result_value_json(r), "\"refused 403", 12), 0);
	cordon_result_free(r);
	/* Of the sandbox's own loopback: nothing listens there. */
	cleanup_free char *own = str_printf("import socket\ns = socket.socket()\n"
					    "str(s.connect_ex(('127.0.0.1', %u)))",
					    other.port);
	value_is(s, own, "\"111\"");
	cordon_session_close(s);
	server_close(&other);
	server_close(&server);
}

TEST(each_session_has_a_network_of_its_own)
{
	struct server server;

	have_python();
	server_open(&server);
	struct cordon_session *a = open_with("python", to(&server)),
			      *b = open_with("python", to(&server));
	must(a, "import socket\nl = socket.create_server(('127.0.0.1', 9000))");
	value_is(a, "import socket\nstr(socket.socket().connect_ex(('127.0.0.1', 9000)))", "\"0\"");
	value_is(b, "import socket\nstr(socket.socket().connect_ex(('127.0.0.1', 9000)))",
		 "\"111\"");
	must(b, "import socket\nl = socket.create_server(('127.0.0.1', 9000))");
	cordon_session_close(a);
	cordon_session_close(b);
	server_close(&server);
}

/* The gateway looks into TLS, so it has an authority, which only its session may trust. */
static const char inspecting[] =
	"network.allow=[{\"host\":\"127.0.0.1\",\"port\":1,\"methods\":[\"GET\"]}]";
#define BUNDLE "'/etc/ssl/certs/ca-certificates.crt'"
#define LAST "open(" BUNDLE ").read().rsplit('-----BEGIN', 1)[1]"

TEST(each_session_trusts_its_own_gateway)
{
	struct cordon_session *s[SESSIONS];
	cleanup_free char *seed = NULL;

	have_python();
	for (int i = 0; i < SESSIONS; i++)
		s[i] = open_with("python", inspecting);
	seed = value(s[0], SEED);
	for (int i = 0; i < SESSIONS; i++) {
		cleanup_free char *mine = value(s[i], LAST), *its = value(s[i], SEED);

		ASSERT_HAS(mine, "CERTIFICATE");
		ASSERT_STREQ(its, seed);
		for (int k = 0; k < i; k++) {
			cleanup_free char *other = value(s[k], LAST);

			ASSERT(strcmp(mine, other) != 0);
		}
		/* Nobody writes to it, and it has no other name. */
		value_is(s[i],
			 "import os\ntry: os.chmod(" BUNDLE ", 0o666); x = 'changed'\n"
			 "except OSError as e: x = str(e.errno in (1, 13, 30))\nx",
			 "\"True\"");
		value_is(s[i], "import os\nstr(sorted(os.listdir('/home')))",
			 "\"['tmp', 'user', 'workspace']\"");
	}
	for (int i = 0; i < SESSIONS; i++)
		cordon_session_close(s[i]);
}

TEST(a_secret_stays_with_the_gateway)
{
	struct server server;

	have_python();
	server_open(&server);
	static const char secrets[] =
		"secrets=[{\"name\":\"API_KEY\",\"value\":\"hush-hush\",\"host\":\"127.0.0.1\"}]";
	for (int i = 0; i < 2; i++) {
		struct cordon_policy *p = new_policy(to(&server));
		cleanup_error struct cordon_error *e = NULL;
		struct cordon_session *s = NULL;

		if (cordon_policy_set(p, secrets, &e) < 0)
			test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
		struct cordon_session_options o = { .guest = "python", .policy = p };
		ASSERT_EQ(cordon_session_open(&o, &s, NULL), 0);
		value_is(s, "__import__('os').environ['API_KEY']", "\"cordon-secret-API_KEY\"");
		cordon_session_close(s);
		cordon_policy_free(p);
	}
	server_close(&server);
}

static pid_t gateways[64];
static size_t gateway_count;

/* The state of a process; 0: it is gone. Its parent and name too. */
static char state_of(pid_t pid, int *ret_parent, char name[static 64])
{
	cleanup_free char *path = str_printf("/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	char state = 0;

	if (!f || fscanf(f, "%*d (%63[^)]) %c %d", name, &state, ret_parent) != 3)
		state = 0;
	if (f)
		fclose(f);
	return state;
}

/* Children of this process whose program is the gateway. */
static void find_gateways(void)
{
	DIR *d = opendir("/proc");

	gateway_count = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		char name[64] = "";
		int parent = 0;

		if (pid > 0 && state_of(pid, &parent, name) && parent == getpid() &&
		    str_eq(name, "cordon-gateway") && gateway_count < 64)
			gateways[gateway_count++] = pid;
	}
	if (d)
		closedir(d);
}

/* Returns when they have ended. */
static void kill_gateways(void)
{
	find_gateways();
	for (size_t i = 0; i < gateway_count; i++) {
		char name[64], state = 'R';
		int parent;

		(void)kill(gateways[i], SIGKILL);
		while (state && state != 'Z')
			state = state_of(gateways[i], &parent, name);
	}
}

TEST(a_gateway_that_died_while_it_waited_is_replaced)
{
	struct server server;

	have_python();
	server_open(&server);
	for (int i = 0; i < SESSIONS; i++) {
		struct cordon_session *s = open_with("python", to(&server));

		fetches(s, server.port, "\"k1\"");
		cordon_session_close(s);
		kill_gateways();
	}
	server_close(&server);
}

/* What a gateway was started with may differ from what it would be started with now. */
TEST(a_waiting_gateway_of_another_environment_is_not_used)
{
	struct server server;

	have_python();
	server_open(&server);
	struct cordon_session *s = open_with("python", to(&server));
	cordon_session_close(s);
	for (int i = 0; i < 50 && gateway_count == 0; i++, usleep(100000))
		find_gateways();
	ASSERT(gateway_count == 1);
	pid_t waiting = gateways[0];
	setenv("RES_OPTIONS", "attempts:1", 1);
	s = open_with("python", to(&server));
	fetches(s, server.port, "\"k1\"");
	ASSERT(kill(waiting, 0) != 0); /* it was ended and reaped */
	cordon_session_close(s);
	server_close(&server);
}

static void on_approval(const struct cordon_approval *a, void *arg)
{
	struct cordon_session **s = arg;

	ASSERT_EQ(cordon_session_resolve(*s, a->id, true, NULL, NULL, NULL), 0);
}

TEST(the_host_decides_about_requests_of_forked_sessions)
{
	struct server server;

	have_python();
	server_open(&server);
	for (int i = 0; i < 2; i++) {
		struct cordon_policy *p = new_policy(to(&server));
		struct cordon_session *s = NULL;
		struct cordon_session_options o = {
			.guest = "python", .policy = p, .approval = on_approval, .approval_arg = &s
		};

		ASSERT_EQ(cordon_policy_set(p, "network.ask=true", NULL), 0);
		ASSERT_EQ(cordon_session_open(&o, &s, NULL), 0);
		fetches(s, server.port, "\"k1\"");
		cordon_session_close(s);
		cordon_policy_free(p);
	}
	server_close(&server);
}

TEST(a_session_that_lost_its_gateway_gets_another)
{
	struct server server;

	have_python();
	server_open(&server);
	struct cordon_session *s = open_with("python", to(&server));
	kill_gateways();
	fetches(s, server.port, "\"k1\"");
	cordon_session_close(s);
	server_close(&server);
}

TEST(r_is_forked_behind_a_gateway_too)
{
	struct server server;

	have_python();
	needs(access("/usr/bin/R", X_OK) == 0, "R");
	server_open(&server);
	cleanup_free char *code =
		str_printf("readLines(url('http://127.0.0.1:%u/'), warn = FALSE)", server.port);
	for (int i = 0; i < 2; i++) {
		struct cordon_session *s = open_with("r", to(&server));

		value_is(s, code, "\"none\"");
		cordon_session_close(s);
	}
	server_close(&server);
}

static struct cordon_session *python_of(struct cordon_session *s, const char *name)
{
	struct cordon_session *c = NULL;

	ASSERT_EQ(cordon_session_context(s, "python", name, &c, NULL), 0);
	return c;
}

/* The guest that waited and one that joins use the same gateway; another sandbox has another. */
TEST(a_forked_sandbox_of_several_languages_has_one_gateway)
{
	static const char *const languages[] = { "sh", "python", NULL };
	struct server server;

	have_python();
	server_open(&server);
	cordon_session_close(open_languages("python", languages, new_policy(to(&server))));
	struct cordon_session *a = open_languages("sh", languages, new_policy(to(&server))),
			      *b = open_languages("sh", languages, new_policy(to(&server)));
	cleanup_free char *first = value(python_of(a, NULL), SEED),
			  *second = value(python_of(b, NULL), SEED);
	ASSERT_STREQ(first, second);
	fetches(python_of(a, NULL), server.port, "\"k1\"");
	fetches(python_of(a, "other"), server.port, "\"k1\"");
	must(a, "test \"$HTTP_PROXY\" = http://127.0.0.1:3128");
	must(python_of(a, NULL), "import socket\nl = socket.create_server(('127.0.0.1', 9000))");
	value_is(python_of(a, "other"),
		 "import socket\nstr(socket.socket().connect_ex(('127.0.0.1', 9000)))", "\"0\"");
	value_is(python_of(b, NULL),
		 "import socket\nstr(socket.socket().connect_ex(('127.0.0.1', 9000)))", "\"111\"");
	cordon_session_close(a);
	fetches(python_of(b, NULL), server.port, "\"k1\"");
	cordon_session_close(b);
	server_close(&server);
}

TEST(guests_of_one_sandbox_trust_one_gateway)
{
	static const char *const languages[] = { "sh", "python", NULL };

	have_python();
	cordon_session_close(open_languages("python", languages, new_policy(inspecting)));
	struct cordon_session *a = open_languages("sh", languages, new_policy(inspecting)),
			      *b = open_languages("sh", languages, new_policy(inspecting));
	cleanup_free char *one = value(python_of(a, NULL), LAST),
			  *same = value(python_of(a, "other"), LAST),
			  *other = value(python_of(b, NULL), LAST);
	ASSERT_HAS(one, "CERTIFICATE");
	ASSERT_STREQ(one, same);
	ASSERT(strcmp(one, other) != 0);
	cordon_session_close(a);
	cordon_session_close(b);
}

/* Pid 1 of its sandbox. */
static pid_t pid_of(struct cordon_session *s)
{
	cleanup_free char *text = cordon_session_describe(s);
	cleanup_json json_t *o = NULL;

	ASSERT_EQ(json_parse(text, strlen(text), 0, &o, NULL), 0);
	pid_t pid = (pid_t)json_integer_value(json_object_get(o, "pid"));
	ASSERT(pid > 1);
	return pid;
}

static struct server shared;

static void *use(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct cordon_session *s = open_with("python", to(&shared));

		if (rand_r(&seed) % 3 == 0)
			(void)kill(pid_of(s), SIGKILL);
		else
			fetches(s, shared.port, "\"k1\"");
		cordon_session_close(s);
	}
	return NULL;
}

TEST_WITHIN(many_at_once_leave_nothing, 300)
{
	pthread_t threads[THREADS];

	have_python();
	struct belongings before = count_belongings();
	server_open(&shared);
	for (uintptr_t i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, use, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	server_close(&shared);
	must_be_as_before(&before);
}

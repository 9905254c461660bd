/* unit/net/test_gateway.c - the gateway's process from the host program's side. */
#include "net/host/gateway.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"
#include "wall/linux/relay.h"

static struct policy_net_rule rules[] = { { .host = "a.test" },
					  { .host = "b.test", .port = 8443 } };
static struct policy policy = { .network = { .allow = rules, .allow_count = 2 } };

struct seen {
	int denied;
	char last[300];
};

static void note(const json_t *event, void *arg)
{
	struct seen *s = arg;

	if (strcmp(json_string_value(json_object_get(event, "event")), "network.denied") != 0)
		return;
	s->denied++;
	snprintf(s->last, sizeof(s->last), "%s|%s|%s",
		 json_string_value(json_object_get(event, "target")),
		 json_string_value(json_object_get(event, "execution")),
		 json_string_value(json_object_get(event, "layer")));
}

TEST(starts_tells_and_stops)
{
	struct gateway_options o = { .policy = &policy, .program = GATEWAY_PROGRAM };
	cleanup_gateway struct gateway *g = NULL;
	cleanup_error struct cordon_error *e = NULL;
	struct gateway_counters count;
	const uint16_t *ports;

	if (gateway_start(&o, &g, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	ASSERT_EQ(gateway_ports(g, &ports), 3);
	ASSERT_EQ(ports[2], 8443);
	ASSERT(!gateway_authority(g)); /* nothing to open */
	ASSERT_EQ(gateway_count(g, &count, NULL), 0);
	ASSERT_EQ(count.allowed + count.denied, 0);
}

TEST(a_bad_policy_is_refused_with_the_reason)
{
	struct policy_net_rule bad[] = { { .host = "a b" } };
	struct policy p = { .network = { .allow = bad, .allow_count = 1 } };
	struct gateway_options o = { .policy = &p, .program = GATEWAY_PROGRAM };
	cleanup_gateway struct gateway *g = NULL;
	cleanup_error struct cordon_error *e = NULL;

	ASSERT(gateway_start(&o, &g, &e) < 0);
	const struct cordon_error *last = e;
	while (cordon_error_cause(last))
		last = cordon_error_cause(last);
	ASSERT(strstr(cordon_error_message(last), "network.allow[0]"));
	o.program = "/nonexistent";
	cleanup_error struct cordon_error *e2 = NULL;
	ASSERT(gateway_start(&o, &g, &e2) < 0);
}

TEST(needed_only_where_the_policy_opens_something)
{
	struct policy none = { 0 };

	ASSERT(!gateway_is_needed(&none));
	ASSERT(gateway_is_needed(&policy));
}

TEST(environment)
{
	char *methods[] = { "GET", NULL };
	struct policy_net_rule limited[] = { { .host = "a.test",
					       .methods = { .items = methods, .count = 1 } } };
	struct policy p = { .network = { .allow = limited, .allow_count = 1 } };
	struct gateway_options o = { .policy = &p, .program = GATEWAY_PROGRAM };
	cleanup_gateway struct gateway *g = NULL;
	cleanup_strlist struct strlist env = { 0 };
	cleanup_error struct cordon_error *e = NULL;

	if (gateway_start(&o, &g, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s", cordon_error_message(e));
	ASSERT(str_starts(gateway_authority(g), "-----BEGIN CERTIFICATE-----"));
	ASSERT_EQ(strlist_add(&env, "HTTP_PROXY=mine"), 0);
	ASSERT_EQ(gateway_add_environment("/etc/bundle.pem", &env, NULL), 0);
	ASSERT(strlist_has(&env, "HTTP_PROXY=mine"));
	ASSERT(strlist_has(&env, "https_proxy=http://127.0.0.1:3128"));
	ASSERT(strlist_has(&env, "SSL_CERT_FILE=/etc/bundle.pem"));
	ASSERT(strlist_has(&env, "NODE_EXTRA_CA_CERTS=/etc/bundle.pem"));
}

/* In the guest's namespace: a denied request, as a program would make it. */
static int be_guest(int relay_fd, const uint16_t *ports, size_t count)
{
	struct relay_options o = { .gateway_fd = relay_fd, .ports = ports, .port_count = count };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(RELAY_PROXY_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char request[] = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	char answer[1000] = "";
	const char *stage;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return 77;
	int r = relay_open(&o, &stage);
	if (r < 0) {
		fprintf(stderr, "# %s: %s\n", stage, strerror(-r));
		return 1;
	}
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    write(fd, request, sizeof(request) - 1) < 0 ||
	    read(fd, answer, sizeof(answer) - 1) <= 0)
		return 2;
	return strstr(answer, " 403 ") ? 0 : 3;
}

TEST(a_guest_behind_it_is_seen)
{
	struct seen seen = { 0 };
	struct gateway_options o = {
		.policy = &policy, .program = GATEWAY_PROGRAM, .event = note, .arg = &seen
	};
	cleanup_gateway struct gateway *g = NULL;
	struct gateway_counters count;
	const uint16_t *ports;
	int status;

	ASSERT_EQ(gateway_start(&o, &g, NULL), 0);
	ASSERT_EQ(gateway_begin_execution(g, "e1", NULL), 0);
	size_t n = gateway_ports(g, &ports);
	pid_t pid = fork();
	if (pid == 0)
		_exit(be_guest(gateway_relay_fd(g), ports, n));
	ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	needs(WEXITSTATUS(status) != 77, "user namespaces");
	ASSERT_EQ(WEXITSTATUS(status), 0);
	ASSERT_EQ(gateway_wait_relay(g, 1000, NULL), 0);
	gateway_close_relay(g);
	ASSERT_EQ(gateway_count(g, &count, NULL), 0);
	ASSERT_EQ(count.denied, 1);
	ASSERT_EQ(seen.denied, 1);
	ASSERT_STREQ(seen.last, "evil.test:80|e1|gateway");
}

static int stop_children(int signo)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *f = fopen(path, "re");
	int found = 0;
	if (f && fgets(text, sizeof(text), f))
		for (char *at = text; *at; at += strspn(at, " ")) {
			pid_t pid = (pid_t)strtol(at, &at, 10);
			found += pid > 0 && kill(pid, signo) == 0;
		}
	if (f)
		fclose(f);
	return found;
}

/* Its socket fills up, and nobody may wait for it without end. */
TEST(a_gateway_that_is_stopped_holds_up_nobody)
{
	struct gateway_options o = { .policy = &policy, .program = GATEWAY_PROGRAM };
	cleanup_gateway struct gateway *g = NULL;
	struct gateway_counters count;
	int r = 0;

	needs(access("/proc/self/task", F_OK) == 0, "/proc/self/task");
	ASSERT_EQ(gateway_start(&o, &g, NULL), 0);
	ASSERT_EQ(gateway_count(g, &count, NULL), 0);
	ASSERT_EQ(stop_children(SIGSTOP), 1);
	ASSERT_EQ(gateway_count(g, &count, NULL), -CORDON_TIMEOUT);
	for (int i = 0; i < 20; i++) /* each as long as the first would outlast the test */
		ASSERT_EQ(gateway_count(g, &count, NULL), -CORDON_TIMEOUT);
	ASSERT_EQ(stop_children(SIGCONT), 1);
	while ((r = gateway_count(g, &count, NULL)) == -CORDON_TIMEOUT)
		;
	ASSERT_EQ(r, 0); /* it is as it was */
	ASSERT_EQ(stop_children(SIGSTOP), 1);
	for (r = 0; r == 0;)
		r = gateway_begin_execution(g, "e1", NULL);
	ASSERT_EQ(r, -CORDON_TIMEOUT);
	ASSERT_EQ(stop_children(SIGCONT), 1);
}

TEST(a_gateway_that_dies_is_noticed)
{
	struct gateway_options o = { .policy = &policy, .program = "/bin/true" };
	cleanup_gateway struct gateway *g = NULL;

	ASSERT_EQ(gateway_start(&o, &g, NULL), -CORDON_STATE);
}

/* tests/soak/gated.c - sessions behind gateways, forked from a template: first one after the other,
 * then from eight threads, with random kills of sessions, gateways and templates. Nothing of them
 * may stay. A few hundred; SOAK=full: 10,000 each. */
#include <cordon/cordon.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "session/template.h"
#include "soak/resources.h"

enum { WORKERS = 8, FEW = 150, MANY = 10000, WARM = 20, SLACK_KB = 12288 };

/* The second looks into TLS, so each session has a file with authorities of its own. */
static const char *const networks[] = {
	"network.allow=allowed.test",
	"network.allow=[{\"host\":\"allowed.test\",\"methods\":[\"GET\"]}]",
	"expose=8000",
};
enum { NETWORKS = sizeof(networks) / sizeof(*networks) };

static struct cordon_policy *policies[NETWORKS];
static atomic_uint started, wrong, killed;
static unsigned target;
static bool kills;

static void complain(const char *what)
{
	if (atomic_fetch_add(&wrong, 1) < 10)
		printf("# %s\n", what ? what : "?");
}

static pid_t pid_of(struct cordon_session *s)
{
	char *text = cordon_session_describe(s);
	const char *p = text ? strstr(text, "\"pid\": ") : NULL;
	long pid = p ? strtol(p + 7, NULL, 10) : 0;

	free(text);
	return (pid_t)pid;
}

static bool is_our_gateway(const char *pid)
{
	char path[300], name[64] = "";
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	int n = fscanf(f, "%*d (%63[^)]) %*c %d", name, &parent);
	fclose(f);
	return n == 2 && parent == getpid() && strcmp(name, "cordon-gateway") == 0;
}

/* Some gateway of this process: it serves a session, or waits for one. */
static void kill_a_gateway(void)
{
	DIR *d = opendir("/proc");

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_our_gateway(e->d_name) &&
		    random() % 4 == 0) {
			(void)kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
			break;
		}
	if (d)
		closedir(d);
}

static bool disturb(struct cordon_session *s)
{
	long dice = random() % 100;

	if (!kills || dice > 12)
		return false;
	if (dice == 0)
		kill_a_gateway();
	else if (dice == 1)
		template_release_all();
	else if (pid_of(s) > 1)
		(void)kill(pid_of(s), SIGKILL);
	atomic_fetch_add(&killed, 1);
	return true;
}

static void one(void)
{
	cleanup_error struct cordon_error *e = NULL;
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;
	struct cordon_session_options o = { .guest = "python",
					    .policy = policies[random() % NETWORKS] };
	struct cordon_execute_options code = { .code = "1+1" };

	if (cordon_session_open(&o, &s, &e) < 0) {
		complain(cordon_error_message(e));
		return;
	}
	bool is_disturbed = disturb(s);
	if (cordon_session_execute(s, &code, &r, &e) < 0)
		complain(cordon_error_message(e));
	else if (!is_disturbed && !cordon_result_success(r))
		complain(cordon_result_error(r));
	cordon_result_free(r);
	cordon_session_close(s);
}

static void *work(void *arg)
{
	(void)arg;
	while (atomic_fetch_add(&started, 1) < target)
		one();
	return NULL;
}

static void round_of(const char *name, unsigned workers, unsigned count)
{
	pthread_t t[WORKERS];
	uint64_t begun = clock_now_ns();

	started = wrong = killed = 0;
	target = count;
	kills = workers > 1;
	for (unsigned i = 0; i < workers; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (unsigned i = 0; i < workers; i++)
		pthread_join(t[i], NULL);
	printf("# %s: %u sessions, %u disturbed, %.1f ms each\n", name, count, (unsigned)killed,
	       (double)(clock_now_ns() - begun) / 1e6 / count);
	resources_check(wrong == 0, name, 0, (long)wrong);
}

int main(void)
{
	const char *how = getenv("SOAK");
	unsigned count = how && strcmp(how, "full") == 0 ? MANY : FEW;

	for (size_t i = 0; i < NETWORKS; i++)
		if (cordon_policy_new(NULL, &policies[i], NULL) < 0 ||
		    cordon_policy_set(policies[i], networks[i], NULL) < 0)
			return 1;
	target = WARM;
	work(NULL);
	struct resources before = resources_look(1);
	round_of("one after the other", 1, count);
	struct resources between = resources_look(1);
	resources_compare(&before, &between, SLACK_KB);
	round_of("from eight threads, with kills", WORKERS, count);
	struct resources after = resources_look(1);
	resources_compare(&between, &after, SLACK_KB);
	for (size_t i = 0; i < NETWORKS; i++)
		cordon_policy_free(policies[i]);
	return resources_end();
}

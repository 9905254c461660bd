/* tests/soak/templates.c - a template serves ten thousand sessions: the next one is ready before
 * that, and nobody waits for it. All sessions of one template have the same hash seed, which tells
 * them apart. */
#include <cordon/cordon.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AHEAD = 7500, WORN = 10000, WORKERS = 4, PAUSE_US = 5000 };

static char first[64];
static atomic_uint count, failures;
static atomic_bool is_replaced;

static void hash_of_a_session(char *ret, size_t size)
{
	struct cordon_session_options o = { .guest = "python" };
	struct cordon_execute_options code = { .code = "str(hash('seed'))" };
	struct cordon_session *s = NULL;
	struct cordon_result *r = NULL;

	if (cordon_session_open(&o, &s, NULL) == 0 &&
	    cordon_session_execute(s, &code, &r, NULL) == 0 && cordon_result_success(r))
		snprintf(ret, size, "%s", cordon_result_value_json(r));
	else
		failures++;
	cordon_result_free(r);
	cordon_session_close(s);
}

/* Until another template has served. The pause: the next one may need a while on a busy machine. */
static void *use(void *arg)
{
	char now[64] = "";
	unsigned mine;

	(void)arg;
	while (!is_replaced && !failures && (mine = ++count) < WORN) {
		hash_of_a_session(now, sizeof(now));
		if (strcmp(first, now) != 0)
			is_replaced = true;
		if (mine > AHEAD)
			usleep(PAUSE_US);
	}
	return NULL;
}

int main(void)
{
	pthread_t workers[WORKERS];

	puts("1..3");
	hash_of_a_session(first, sizeof(first));
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, use, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	printf("%sok 1 - every session opens and executes\n", failures ? "not " : "");
	printf("%sok 2 - the first template serves its part (%u sessions)\n",
	       count > AHEAD ? "" : "not ", (unsigned)count);
	printf("%sok 3 - the next one serves before the first is worn\n",
	       is_replaced && count < WORN ? "" : "not ");
	return 0;
}

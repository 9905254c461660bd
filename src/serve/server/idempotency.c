/* serve/server/idempotency.c - see idempotency.h. */
#include "serve/server/idempotency.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { KEPT = 256, KEPT_BYTES = 32 << 20, KEY_MAX = 200 };

struct idempotent {
	char *key;
	unsigned char request[32]; /* hash */
	char *answer;              /* NULL: it runs */
	size_t len;
	struct idempotent *next;
};

static void entry_free(struct idempotent *i)
{
	free(i->key);
	free(i->answer);
	free(i);
}

/* Called with the lock held. */
static struct idempotent *find(struct tenant *t, const char *key)
{
	struct idempotent *i = t->idempotents;

	while (i && !str_eq(i->key, key))
		i = i->next;
	return i;
}

/* Called with the lock held: drops the oldest answers. False: all entries run. */
static bool make_room(struct tenant *t)
{
	for (;;) {
		struct idempotent **oldest = NULL;
		size_t count = 0, bytes = 0;

		for (struct idempotent **p = &t->idempotents; *p; p = &(*p)->next) {
			count++;
			bytes += (*p)->len;
			if ((*p)->answer)
				oldest = p;
		}
		if (count < KEPT && bytes < KEPT_BYTES)
			return true;
		if (!oldest)
			return false;
		struct idempotent *i = *oldest;
		*oldest = i->next;
		entry_free(i);
	}
}

/* Called with the lock held. */
static bool add(struct tenant *t, const char *key, const unsigned char hash[32])
{
	struct idempotent *i = make_room(t) ? mem_alloc(sizeof(*i)) : NULL;

	if (!i || !(i->key = str_dup(key))) {
		free(i);
		return false;
	}
	memcpy(i->request, hash, sizeof(i->request));
	i->next = t->idempotents;
	t->idempotents = i;
	return true;
}

enum idempotency idempotency_begin(struct tenant *t, const char *key, const void *request,
				   size_t len, char **ret)
{
	enum idempotency answer = IDEMPOTENCY_KNOWN;
	unsigned char hash[32];
	struct idempotent *i;

	if (strlen(key) > KEY_MAX)
		return IDEMPOTENCY_OTHER;
	(void)crypto_generichash(hash, sizeof(hash), request, len, NULL, 0);
	pthread_mutex_lock(&t->lock);
	while ((i = find(t, key)) && !i->answer && memcmp(i->request, hash, sizeof(hash)) == 0)
		pthread_cond_wait(&t->changed, &t->lock);
	if (!i)
		answer = add(t, key, hash) ? IDEMPOTENCY_NEW : IDEMPOTENCY_FULL;
	else if (memcmp(i->request, hash, sizeof(hash)) != 0)
		answer = IDEMPOTENCY_OTHER;
	else if (!(*ret = str_dup(i->answer)))
		answer = IDEMPOTENCY_FULL;
	pthread_mutex_unlock(&t->lock);
	return answer;
}

void idempotency_end(struct tenant *t, const char *key, const char *answer)
{
	pthread_mutex_lock(&t->lock);
	for (struct idempotent **p = &t->idempotents; *p; p = &(*p)->next) {
		struct idempotent *i = *p;

		if (!str_eq(i->key, key))
			continue;
		i->answer = str_dup(answer);
		i->len = i->answer ? strlen(answer) : 0;
		if (!i->answer) {
			*p = i->next;
			entry_free(i);
		}
		break;
	}
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void idempotency_done(struct tenant *t)
{
	while (t->idempotents) {
		struct idempotent *i = t->idempotents;
		t->idempotents = i->next;
		entry_free(i);
	}
}

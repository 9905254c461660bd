/* cli/http_server_key.c - `cordon serve key add|list|revoke`: who may use the server. */
#include <cordon/cordon.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "cli/choice.h"
#include "cli/http_server.h"
#include "policy/policy.h"
#include "serve/server/key.h"

static int read_number(const struct cli *c, const char *option, unsigned *ret,
		       struct cordon_error **reterr)
{
	const char *text = cli_value(c, option);
	char *end = NULL;

	if (!text)
		return 0;
	unsigned long n = strtoul(text, &end, 10);
	if (*end || text[0] == '-' || n < 1 || n > UINT16_MAX)
		return err_set(reterr, CORDON_INVALID, "--%s must be 1 to %d", option, UINT16_MAX);
	*ret = (unsigned)n;
	return 0;
}

/* "20/s", "20" or "600/m". */
static int read_rate(const char *text, double *ret, struct cordon_error **reterr)
{
	char *end = NULL;

	if (!text)
		return 0;
	errno = 0;
	double n = strtod(text, &end);
	if (str_eq(end, "/m"))
		n /= 60;
	if (errno || end == text || (*end && !str_eq(end, "/s") && !str_eq(end, "/m")) ||
	    !(n > 0) || n > 1e6)
		return err_set(reterr, CORDON_INVALID, "--rate is a number of requests: 20/s");
	*ret = n;
	return 0;
}

static int read_limits(const struct cli *c, struct key *k, struct cordon_error **reterr)
{
	uint64_t ms = 0;
	int r = read_number(c, "max-sessions", &k->sessions, reterr);

	if (r == 0)
		r = read_number(c, "max-executions", &k->executions, reterr);
	if (r == 0)
		r = read_rate(cli_value(c, "rate"), &k->rate, reterr);
	if (r == 0 && cli_has(c, "max-memory"))
		r = policy_parse_size(cli_value(c, "max-memory"), &k->memory_bytes, reterr);
	if (r == 0 && cli_has(c, "expires"))
		r = policy_parse_duration(cli_value(c, "expires"), &ms, reterr);
	if (ms > 0)
		k->expires = (int64_t)time(NULL) + (int64_t)((ms + 999) / 1000);
	return r;
}

static int add(const struct cli *c, struct database *db, const struct cordon_policy *policy,
	       const char *name, struct cordon_error **reterr)
{
	struct key k = { .is_admin = cli_has(c, "admin") };
	char text[KEY_TEXT_BYTES];

	if (!str_copy(k.name, sizeof(k.name), name))
		return err_set(reterr, CORDON_INVALID, "the name of a key has at most %d letters",
			       KEY_NAME_BYTES - 1);
	int r = read_limits(c, &k, reterr);
	if (r < 0)
		return r;
	cleanup_free char *json = choice_is_given(c) ? cordon_policy_json(policy) : NULL;
	k.policy = json;
	r = key_add(db, &k, text, reterr);
	if (r == 0)
		printf("%s\n", text);
	return r;
}

static int list(struct database *db, struct cordon_error **reterr)
{
	struct keys all = { 0 };
	int r = key_load(db, &all, reterr);

	for (size_t i = 0; r == 0 && i < all.count; i++) {
		const struct key *k = &all.list[i];
		const char *state = k->is_revoked                  ? "revoked"
				    : !key_is_valid(k, time(NULL)) ? "expired"
				    : k->is_admin                  ? "admin"
								   : "valid";
		printf("%-24s %-8s %s\n", k->name, state,
		       k->policy ? "policy of its own" : "policy of the server");
	}
	keys_done(&all);
	return r;
}

int http_server_key(const struct cli *c, const struct cordon_policy *policy, int argc, char **argv)
{
	cleanup_error struct cordon_error *e = NULL;
	cleanup_free char *state = http_server_state(c);
	const char *word = argc > 0 ? argv[0] : "";
	bool is_list = str_eq(word, "list");
	struct database *db = NULL;

	if (!is_list && !str_eq(word, "add") && !str_eq(word, "revoke"))
		return cli_usage(c, "key add NAME, key list or key revoke NAME");
	if (argc != (is_list ? 1 : 2))
		return cli_usage(c, is_list ? "key list takes no name" : "key %s takes one name",
				 word);
	int r = state ? database_open(state, &db, &e) : err_set(&e, CORDON_NOMEM, "out of memory");
	if (r == 0 && is_list)
		r = list(db, &e);
	else if (r == 0 && str_eq(word, "add"))
		r = add(c, db, policy, argv[1], &e);
	else if (r == 0)
		r = key_revoke(db, argv[1], &e);
	db = database_close(db);
	return r < 0 ? cli_fail(c, e) : 0;
}

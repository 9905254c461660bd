/* tests/net/fetch.c - fetch POLICY URL [METHOD [BODY [HEADER…]]]: cordon_fetch() as a program, for
 * tests/net/run. Prints one JSON object. Environment variables choose https only (FETCH_HTTPS_ONLY)
 * or no redirects. */
#include <cordon/cordon.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_event(const char *json, void *arg)
{
	json_array_append_new(arg, json_loads(json, 0, NULL));
}

static json_t *error_json(const struct cordon_error *e)
{
	json_t *list = json_array();

	for (const struct cordon_error *c = e; c; c = cordon_error_cause(c))
		json_array_append_new(list, json_string(cordon_error_message(c)));
	return json_pack("{s:s, s:o}", "code", cordon_code_name(cordon_error_code(e)), "messages",
			 list);
}

int main(int argc, char **argv)
{
	struct cordon_policy *policy = NULL;
	struct cordon_error *e = NULL;
	json_t *events = json_array(), *out;
	struct cordon_fetch_result r = { 0 };

	if (argc < 3 || cordon_policy_new(NULL, &policy, &e) < 0 ||
	    cordon_policy_apply_json(policy, argv[1], &e) < 0) {
		fprintf(stderr, "fetch: %s\n", cordon_error_message(e));
		return 2;
	}
	struct cordon_fetch_options o = { .policy = policy,
					  .url = argv[2],
					  .method = argc > 3 ? argv[3] : NULL,
					  .body = argc > 4 && argv[4][0] ? argv[4] : NULL,
					  .body_len = argc > 4 ? strlen(argv[4]) : 0,
					  .headers =
						  argc > 5 ? (const char *const *)argv + 5 : NULL,
					  .https_only = getenv("FETCH_HTTPS_ONLY"),
					  .no_redirects = getenv("FETCH_NO_REDIRECTS"),
					  .ca_file = getenv("FETCH_CA"),
					  .event = on_event,
					  .arg = events };
	if (cordon_fetch(&o, &r, &e) < 0)
		out = json_pack("{s:o}", "error", error_json(e));
	else
		out = json_pack("{s:i, s:i, s:s, s:o, s:s%}", "status", (int)r.status, "redirects",
				(int)r.redirects, "url", r.url, "headers",
				json_loads(r.headers, 0, NULL), "body", r.body, r.body_len);
	json_object_set_new(out, "events", events);
	json_dumpf(out, stdout, 0);
	json_decref(out);
	cordon_fetch_done(&r);
	cordon_error_free(e);
	cordon_policy_free(policy);
	return 0;
}

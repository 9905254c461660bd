/* serve/v1/v1_keys.c - keys, for administrators. */
#include "base/str.h"
#include "serve/http/problem.h"
#include "serve/server/server.h"
#include "serve/v1/v1.h"

void v1_list_keys(struct httpd_exchange *x, void *server)
{
	struct server *s = server;
	cleanup_error struct cordon_error *e = NULL;
	struct keys all = { 0 };
	json_t *list = json_array();

	if (key_load(s->db, &all, &e) < 0) {
		json_decref(list);
		problem_answer(x, e);
		return;
	}
	for (size_t i = 0; i < all.count; i++)
		json_array_append_new(list, key_describe(&all.list[i]));
	keys_done(&all);
	cleanup_json json_t *answer = json_pack("{s:o}", "keys", list);
	v1_answer_json(x, 200, answer);
}

void v1_add_key(struct httpd_exchange *x, void *server)
{
	struct server *s = server;
	cleanup_error struct cordon_error *e = NULL;
	cleanup_json json_t *params = NULL;
	char text[KEY_TEXT_BYTES];
	struct key k = { 0 };

	int r = v1_read_params(x, httpd_route_of(x)->detail, &params, &e);
	if (r == 0)
		r = key_read(params, &k, &e);
	if (r == 0)
		r = key_add(s->db, &k, text, &e);
	free(k.policy);
	if (r < 0) {
		problem_answer(x, e);
		return;
	}
	(void)server_check_keys(s, NULL); /* if that fails, the next request tries again */
	cleanup_json json_t *answer = json_pack("{s:s,s:s}", "name", k.name, "key", text);
	v1_answer_json(x, 201, answer);
}

void v1_revoke_key(struct httpd_exchange *x, void *server)
{
	struct server *s = server;
	cleanup_error struct cordon_error *e = NULL;

	if (key_revoke(s->db, httpd_param(x, "name"), &e) < 0) {
		problem_answer(x, e);
		return;
	}
	(void)server_check_keys(s, NULL);
	httpd_answer(x, 204, NULL, NULL, 0);
}

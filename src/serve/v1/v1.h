/* serve/v1/v1.h - API v1: the methods of serve/rpc as resources (docs/openapi.json).
 *
 * Most routes are rows: a method of serve/rpc, the parameters it takes from path, query and body,
 * and the status of success (v1.c). Executions, files and answers to questions have functions of
 * their own. */
#pragma once

#include "base/json.h"
#include "serve/http/httpd.h"
#include "serve/server/tenant.h"

enum { V1_BODY_MAX = 8 << 20, V1_FILE_MAX = 1 << 30 };

/* For a table of httpd.h, with the struct server as arg. */
extern const struct httpd_route v1_routes[];

/* detail of a route whose function is v1_call. Lists have blanks between names; "name#" is a
 * number, "name?" true or false. Parameters of the path are always passed on. */
struct v1_method {
	const char *method; /* of serve/rpc */
	const char *body;   /* what may be in the body, an object; NULL: there is none */
	const char *query;  /* NULL: nothing */
	unsigned status;    /* of success; 204: the result is not sent; 0: 200 */
	const char *keep;   /* only these of the result; NULL: all */
	int (*check)(struct tenant *t, json_t *params, struct cordon_error **reterr);
};
void v1_call(struct httpd_exchange *x, void *server);

/* The parameters of a request by its row, as a new object. */
int v1_read_params(struct httpd_exchange *x, const struct v1_method *m, json_t **ret,
		   struct cordon_error **reterr);
/* Brings back the session of a request if it is parked, and tells the client. */
int v1_wake(struct httpd_exchange *x, const json_t *params, struct cordon_error **reterr);
void v1_answer_json(struct httpd_exchange *x, unsigned status, const json_t *j);

/* In v1_execution.c. */
void v1_execute(struct httpd_exchange *x, void *server);
void v1_list_executions(struct httpd_exchange *x, void *server);
void v1_show_execution(struct httpd_exchange *x, void *server);
void v1_cancel_execution(struct httpd_exchange *x, void *server);
/* In v1_files.c. */
void v1_read_file(struct httpd_exchange *x, void *server);
void v1_write_file(struct httpd_exchange *x, void *server);
void v1_get_tar(struct httpd_exchange *x, void *server);
void v1_put_tar(struct httpd_exchange *x, void *server);
void v1_export(struct httpd_exchange *x, void *server);
void v1_import(struct httpd_exchange *x, void *server);
/* In v1_ports.c. */
void v1_list_ports(struct httpd_exchange *x, void *server);
void v1_open_port(struct httpd_exchange *x, void *server);
void v1_pass_port(struct httpd_exchange *x, void *server);
/* In v1_audit.c. */
void v1_list_audit(struct httpd_exchange *x, void *server);
void v1_verify_audit(struct httpd_exchange *x, void *server);
/* In v1_keys.c. */
void v1_list_keys(struct httpd_exchange *x, void *server);
void v1_add_key(struct httpd_exchange *x, void *server);
void v1_revoke_key(struct httpd_exchange *x, void *server);
/* In v1_question.c. */
void v1_list_questions(struct httpd_exchange *x, void *server);
void v1_answer_tool_call(struct httpd_exchange *x, void *server);
void v1_answer_approval(struct httpd_exchange *x, void *server);

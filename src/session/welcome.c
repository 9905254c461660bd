/* session/welcome.c - see welcome.h. */
#include "session/welcome.h"

#include <string.h>

static json_t *modules_json(const struct policy_list *l)
{
	if (l->all)
		return json_string("*");
	json_t *a = json_array();
	for (size_t i = 0; i < l->names.count; i++)
		json_array_append_new(a, json_string(l->names.items[i]));
	return a;
}

static json_t *list_json(const struct strlist *l)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->count; i++)
		json_array_append_new(a, json_string(l->items[i]));
	return a;
}

char *welcome_line(const struct welcome_options *o, size_t *ret_len)
{
	const struct policy *p = o->policy;
	json_t *list = NULL;
	cleanup_json json_t *options = json_object();
	cleanup_json json_t *line = json_object();

	json_object_set_new(options, "result_name",
			    json_string(p->result_name ? p->result_name : "result"));
	json_object_set_new(options, "modules", modules_json(&p->modules));
	json_object_set_new(options, "preload", list_json(&p->preload));
	if (o->tools && json_parse(o->tools, strlen(o->tools), 0, &list, NULL) < 0)
		return NULL;
	json_object_set_new(options, "tools", list ? list : json_array());
	json_object_set_new(options, "message_bytes", json_integer((json_int_t)p->message_bytes));
	json_object_set_new(options, "rpc_bytes", json_integer((json_int_t)p->rpc_bytes));
	json_object_set_new(options, "value_bytes", json_integer((json_int_t)p->value_bytes));
	json_object_set_new(options, "env", o->env ? json_incref(o->env) : json_object());
	if (o->ahead)
		json_object_set_new(options, "ahead", json_true());
	json_object_set_new(line, "type", json_string("welcome"));
	json_object_set_new(line, "version", json_integer(1));
	json_object_set(line, "guest_options", options);
	return json_text(line, ret_len);
}

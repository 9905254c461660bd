/* tools/denial.c - see denial.h. */
#include "tools/denial.h"

#include "base/str.h"

enum { DENIALS_MAX = 64 };

static json_t *find(const json_t *list, const char *tool, const char *rule)
{
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (str_eq(json_string_value(json_object_get(one, "target")), tool) &&
		    str_eq(json_string_value(json_object_get(one, "rule")), rule))
			return one;
	}
	return NULL;
}

void denial_add(json_t **list, const char *tool, const char *rule)
{
	json_t *known = find(*list, tool, rule);

	if (known) {
		json_t *count = json_object_get(known, "count");
		(void)json_integer_set(count, json_integer_value(count) + 1);
		return;
	}
	if (!*list)
		*list = json_array();
	if (json_array_size(*list) >= DENIALS_MAX)
		return;
	const char *remedy = str_eq(rule, "tools")      ? "tools: name the tool in the policy"
			     : str_eq(rule, "commands") ? "commands: name the tool in the policy"
							: "approve the call when asked";
	(void)json_array_append_new(*list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:i}", "operation",
						     "tool", "target", tool, "layer", "tools",
						     "rule", rule, "remedy", remedy, "count", 1));
}

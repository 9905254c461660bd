/* cli/unshown.c - see unshown.h. */
#include "cli/unshown.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { MAX_RESULT = 64 << 20 };

void unshown_count(struct unshown *u, const char *mime)
{
	bool is_plot = mime && (str_starts(mime, "image/") || str_eq(mime, "application/pdf"));

	u->plots += is_plot;
	u->others += !is_plot;
}

void unshown_count_result(struct unshown *u, struct cordon_result *r)
{
	const char *text = cordon_result_json(r);
	cleanup_json json_t *j = NULL;
	struct unshown all = { 0 };
	size_t i;
	json_t *o;

	if (!text || json_parse(text, strlen(text), MAX_RESULT, &j, NULL) < 0)
		return;
	json_array_foreach(json_object_get(j, "outputs"), i, o)
		unshown_count(&all, json_string_value(json_object_get(o, "mime")));
	u->plots += all.plots;
	u->others += cordon_result_value_text(r) ? 0 : all.others;
}

void unshown_tell(const struct unshown *u, const struct cli *c, const char *remedy)
{
	const char *plots = u->plots == 1 ? "plot" : "plots",
		   *others = u->others == 1 ? "output" : "outputs";

	if (u->plots && u->others)
		cli_error(c, "not shown: %zu %s and %zu other %s; %s", u->plots, plots, u->others,
			  others, remedy);
	else if (u->plots || u->others)
		cli_error(c, "not shown: %zu %s%s; %s", u->plots ? u->plots : u->others,
			  u->plots ? plots : "rich ", u->plots ? "" : others, remedy);
}

/* prove/attack.c - cordon_attacks: the names of all attacks. */
#include "base/json.h"
#include "cordon/cordon.h"
#include "wall/wall.h"

int cordon_attacks(char **ret_json, struct cordon_error **reterr)
{
	const struct wall_attacks all = wall_choose(NULL)->attacks();
	cleanup_json json_t *list = json_array();
	bool is_good = list;

	for (size_t i = 0; is_good && i < all.count; i++) {
		json_t *one = json_pack("{s:s,s:s}", "name", all.table[i].name, "attack",
					all.table[i].words);
		is_good = one && json_array_append_new(list, one) == 0;
	}
	char *text = is_good ? json_text(list, NULL) : NULL;
	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret_json = text;
	return 0;
}

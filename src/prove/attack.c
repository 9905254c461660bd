/* prove/attack.c - the table of attacks; see trial.h. */
#include "base/json.h"
#include "cordon/cordon.h"
#include "prove/trial.h"
#include "wall/linux/probe/list.h"

static const struct attack attacks[] = {
#define X(id, text, how, bits, layer)                                                              \
	{ .name = #id, .words = text, .control = (how), .flags = (bits), .holds = (layer) },
	PROBES(X)
#undef X
#define X(id, text, bits, layer)                                                                   \
	{ .name = #id, .words = text, .is_python = true, .flags = (bits), .holds = (layer) },
		PYTHON_PROBES(X)
#undef X
};

const struct attack *attack_table(size_t *ret_count)
{
	*ret_count = sizeof(attacks) / sizeof(*attacks);
	return attacks;
}

int cordon_attacks(char **ret_json, struct cordon_error **reterr)
{
	cleanup_json json_t *list = json_array();
	bool is_good = list;

	for (size_t i = 0; is_good && i < sizeof(attacks) / sizeof(*attacks); i++) {
		json_t *one =
			json_pack("{s:s,s:s}", "name", attacks[i].name, "attack", attacks[i].words);
		is_good = one && json_array_append_new(list, one) == 0;
	}
	char *text = is_good ? json_text(list, NULL) : NULL;
	if (!text)
		return err_set(reterr, CORDON_NOMEM, "out of memory");
	*ret_json = text;
	return 0;
}

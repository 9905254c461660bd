/* session/attack.c - the table of attacks; see trial.h. */
#include "session/trial.h"
#include "wall/probe/list.h"

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

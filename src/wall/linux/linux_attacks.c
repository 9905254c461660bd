/* wall/linux/linux_attacks.c - see linux_attacks.h. */
#include "wall/linux/linux_attacks.h"

#include "wall/linux/probe/list.h"

/* Embedded by the build. */
extern const unsigned char cordon_probe_bytes[], cordon_attacks_py[];
extern const unsigned long cordon_probe_bytes_len, cordon_attacks_py_len;

static const struct attack table[] = {
#define X(id, text, how, bits, layer)                                                              \
	{ .name = #id, .words = text, .control = (how), .flags = (bits), .holds = (layer) },
	PROBES(X)
#undef X
#define X(id, text, bits, layer)                                                                   \
	{ .name = #id, .words = text, .is_python = true, .flags = (bits), .holds = (layer) },
		PYTHON_PROBES(X)
#undef X
};

struct wall_attacks linux_attacks(void)
{
	return (struct wall_attacks){ .table = table,
				      .count = sizeof(table) / sizeof(*table),
				      .program = cordon_probe_bytes,
				      .program_len = cordon_probe_bytes_len,
				      .python = cordon_attacks_py,
				      .python_len = cordon_attacks_py_len };
}

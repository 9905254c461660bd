/* cli/project.h - shows what code changed in a copy of a host directory, and writes it back. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

/* Prints the typed difference on stderr; with --apply or --apply-path writes it back. */
int project_review(const struct cli *c, struct cordon_project *p, struct cordon_error **reterr);

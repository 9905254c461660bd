/* cli/outcome.h - what `cordon run` says on stderr about a result. */
#pragma once

#include <cordon/cordon.h>

#include "cli/option.h"

void outcome_print_failure(const struct cli *c, struct cordon_result *r);
/* One line each, as cordon_result_denials_text has them, with colours. */
void outcome_print_denials(const struct cli *c, const struct cordon_result *r);
void outcome_print_warnings(const struct cli *c, const struct cordon_result *r);
/* Both return the exit status for what they had to say; 0: nothing. */
int outcome_print_cuts(const struct cli *c, const struct cordon_result *r);
int outcome_print_losses(const struct cli *c, const struct cordon_result *r);

/* cli/page.h - man pages and shell completions, made from the verbs' tables. */
#pragma once

#include "cli/option.h"
#include "cli/verb.h"

/* scdoc source of cordon-VERB(1) on stdout. */
void page_man(const struct verb *v);
/* On stdout; 0, or 2 for an unknown shell. */
int page_completion(const struct cli *c, const char *shell);

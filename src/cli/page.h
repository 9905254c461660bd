/* cli/page.h - man pages and the page docs/cli.md, generated from the verbs' tables. */
#pragma once

#include "cli/option.h"
#include "cli/verb.h"

/* Prints the scdoc source of cordon-VERB(1) to stdout. */
void page_man(const struct verb *v);
/* Prints docs/cli.md, all verbs, to stdout. */
void page_markdown(void);

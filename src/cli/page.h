/* cli/page.h - man pages, made from the verbs' tables. */
#pragma once

#include "cli/option.h"
#include "cli/verb.h"

/* scdoc source of cordon-VERB(1) on stdout. */
void page_man(const struct verb *v);

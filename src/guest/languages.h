/* guest/languages.h - one function per language: interpreter, view and command line. */
#pragma once

#include "guest/guest.h"

int python_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
int r_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
int node_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
uint64_t node_heap_bytes(const struct policy *p); /* V8's heap limit */
int sh_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);
int pod_launch(const struct guest_options *o, struct launch *l, struct cordon_error **reterr);

/* Sets the executable and a NULL-terminated list of arguments. */
int language_command(struct launch *l, const char *executable, const char *const *argv);

/* policy/document.h - a policy as JSON. */
#pragma once

#include "policy/policy.h"

/* A new reference; NULL: out of memory. with_secrets: never to be shown to anybody. */
json_t *document_write(const struct policy *p, bool with_secrets);

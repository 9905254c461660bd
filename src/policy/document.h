/* policy/document.h - writes a policy as JSON. */
#pragma once

#include "policy/policy.h"

/* A new reference; NULL: out of memory. with_secrets: the result must never be shown. */
json_t *document_write(const struct policy *p, bool with_secrets);
/* The level and the fields that differ from it, without the values of secrets: a file for people to
 * read and change. */
json_t *document_write_changes(const struct policy *p);

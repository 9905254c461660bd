/* serve/trace/execution_label.c - see execution_label.h. */
#include "serve/trace/execution_label.h"

#include "base/str.h"

static const char *const languages[EXECUTION_LABEL_LANGUAGES] = { "other", "python", "r",
								  "node",  "sh",     "pod" };
/* Kinds of errors of a result (docs/result.md), then codes of cordon/error.h. */
static const char *const outcomes[EXECUTION_LABEL_OUTCOMES] = {
	"other",     "success",   "exception", "syntax",      "timeout",  "cpu",
	"memory",    "processes", "file_size", "disk",        "output",   "denied",
	"tool",      "cancelled", "crashed",   "protocol",    "internal", "invalid",
	"not_found", "limit",     "state",     "unsupported", "os",       "nomem",
};
const char *const execution_label_limits[] = { "timeout",   "cpu",  "memory", "processes",
					       "file_size", "disk", "output", NULL };

static size_t find(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; name && i < count; i++)
		if (str_eq(names[i], name))
			return i;
	return 0;
}

size_t execution_label_language(const char *name)
{
	return find(languages, EXECUTION_LABEL_LANGUAGES, name);
}

size_t execution_label_outcome(const char *name)
{
	return find(outcomes, EXECUTION_LABEL_OUTCOMES, name);
}

const char *execution_label_language_name(size_t index)
{
	return languages[index];
}

const char *execution_label_outcome_name(size_t index)
{
	return outcomes[index];
}

const char *execution_label_limit(const char *outcome)
{
	for (size_t i = 0; execution_label_limits[i]; i++)
		if (str_eq(execution_label_limits[i], outcome))
			return execution_label_limits[i];
	return NULL;
}

/* serve/trace/span.c - see span.h. */
#include "serve/trace/span.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "serve/trace/execution_label.h"
#include "serve/trace/tracer.h"

static uint64_t unix_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void span_begin(struct span *s, const struct span_options *o)
{
	bool has_parent = o->parent && trace_context_is_set(o->parent);

	*s = (struct span){ .kind = o->kind ? o->kind : SPAN_INTERNAL,
			    .name = o->name,
			    .object = o->object,
			    .has_remote_parent = o->has_remote_parent };
	if (has_parent)
		s->parent = *o->parent;
	if (o->link)
		s->link = *o->link;
	if (!o->tracer) {
		s->self = s->parent;
		return;
	}
	trace_context_begin(has_parent ? &s->parent : NULL, &s->self);
	if (!s->self.is_sampled)
		return;
	s->tracer = o->tracer;
	s->begun_unix_ns = unix_ns();
	s->begun_ns = clock_now_ns();
}

static struct span_attribute *add(struct span *s, const char *key, enum span_type type)
{
	if (!s->tracer || s->count == SPAN_ATTRIBUTES)
		return NULL;
	struct span_attribute *a = &s->attributes[s->count++];
	a->key = key;
	a->type = type;
	return a;
}

void span_set_text(struct span *s, const char *key, const char *text)
{
	struct span_attribute *a = text ? add(s, key, SPAN_TEXT) : NULL;

	if (a)
		a->text = text;
}

void span_set_integer(struct span *s, const char *key, int64_t n)
{
	struct span_attribute *a = add(s, key, SPAN_INTEGER);

	if (a)
		a->integer = n;
}

static void set_real(struct span *s, const char *key, double n)
{
	struct span_attribute *a = add(s, key, SPAN_REAL);

	if (a)
		a->real = n;
}

void span_fail(struct span *s, const char *type)
{
	s->has_failed = true;
	span_set_text(s, "error.type", type);
}

void span_end(struct span *s)
{
	struct tracer *t = s->tracer;

	if (!t)
		return;
	s->ended_ns = clock_now_ns();
	s->tracer = NULL;
	tracer_add(t, s);
}

void span_set_outcome(struct span *s, const char *language, const char *outcome, double cpu_ms)
{
	const char *known = execution_label_outcome_name(execution_label_outcome(outcome));

	if (!s->tracer)
		return;
	s->object = execution_label_language_name(execution_label_language(language));
	span_set_text(s, "cordon.language", s->object);
	span_set_text(s, "cordon.outcome", known);
	span_set_text(s, "cordon.limit", execution_label_limit(known));
	set_real(s, "cordon.wall_ms", (double)(clock_now_ns() - s->begun_ns) / 1e6);
	if (cpu_ms >= 0)
		set_real(s, "cordon.cpu_ms", cpu_ms);
	if (!str_eq(known, "success"))
		span_fail(s, known);
}

/* The value of the code comes before it and may have such a key, too; what comes after it has none,
 * because quotes within a string are escaped. */
double span_cpu_ms(const char *result)
{
	static const char key[] = ", \"cpu_time_ms\": ";
	const char *last = NULL;

	for (const char *at = result; at && (at = strstr(at, key)); at += sizeof(key) - 1)
		last = at;
	return last ? strtod(last + sizeof(key) - 1, NULL) : -1;
}

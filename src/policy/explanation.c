/* policy/explanation.c - explains a policy in sentences. */
#include "policy/explanation.h"

#include <string.h>

#include "policy/document.h"
#include "policy/kind.h"

enum { TEXT_MAX_BYTES = 4 * 1024 * 1024 };

/* The sentence with the value in place of {}. */
static int say_sentence(const struct field *f, const struct policy *p, const char *sentence,
			struct buf *b)
{
	const char *hole = strstr(sentence, "{}");
	int r = buf_add(b, sentence, hole ? (size_t)(hole - sentence) : strlen(sentence));

	if (r == 0 && hole)
		r = f->kind->say(f, p, b);
	if (r == 0 && hole)
		r = buf_add_str(b, hole + 2);
	return r < 0 ? r : buf_add_char(b, '\n');
}

static int say_field(const struct field *f, const struct policy *p, struct buf *b)
{
	const char *sentence = f->says;

	switch (f->kind->extent ? f->kind->extent(f, p) : EXTENT_SOME) {
	case EXTENT_ALL:
		sentence = f->says_all;
		break;
	case EXTENT_NONE:
		sentence = f->says_none;
		break;
	case EXTENT_SOME:
		break;
	}
	return sentence ? say_sentence(f, p, sentence, b) : 0;
}

char *explanation_of(const struct field *f, const struct policy *p)
{
	cleanup_buf struct buf b = { 0 };

	buf_init(&b, TEXT_MAX_BYTES);
	if (say_field(f, p, &b) < 0)
		return NULL;
	return str_ndup(buf_text(&b), b.len ? b.len - 1 : 0);
}

/* "Level strict, changed in timeout_ms, modules." */
static int say_level(const struct policy *p, struct buf *b)
{
	cleanup_policy struct policy preset = { 0 };
	const char *between = ", changed in ";
	int r = policy_init_level(&preset, p->level, NULL);

	if (r < 0)
		return r == -CORDON_INVALID ? buf_add_str(b, "No level.\n") : r;
	r = buf_printf(b, "Level %s", policy_level_name(p->level));
	for (size_t i = 0; r == 0 && i < field_count; i++) {
		const struct field *f = &field_table[i];
		cleanup_json json_t *own = f->kind->write(f, p, true);
		cleanup_json json_t *usual = f->kind->write(f, &preset, true);
		if (!own || !usual)
			return -CORDON_NOMEM;
		if (json_equal(own, usual))
			continue;
		r = buf_printf(b, "%s%s", between, f->name);
		between = ", ";
	}
	return r < 0 ? r : buf_add_str(b, ".\n");
}

static bool is_closed(const struct policy_network *n)
{
	return n->allow_count == 0 && n->block_count == 0;
}

static int say_notes(const struct policy *p, struct buf *b)
{
	const struct {
		bool applies;
		const char *text;
	} notes[] = {
		{ p->timeout_ms == POLICY_UNLIMITED && p->cpu_seconds == POLICY_UNLIMITED,
		  "nothing ends code that runs for ever: set timeout_ms or cpu_seconds" },
		{ p->file_bytes != POLICY_UNLIMITED && p->file_bytes > p->fs_bytes,
		  "file_bytes is more than fs_bytes: the workspace is full before a file reaches "
		  "its limit" },
		{ p->network.block_count && !p->network.allow_count,
		  "network.block without network.allow opens every host that is not blocked" },
		{ !(p->require & LAYER_SECCOMP) || !(p->require & LAYER_LANDLOCK),
		  "seccomp or landlock is not required: code may run with fewer layers than "
		  "usual" },
		{ !(p->require & LAYER_CGROUPS),
		  "without cgroups, rlimits limit memory and processes; the result says which" },
		{ !p->commands.all && policy_shells_run_all(p), POLICY_SHELLS_ALL
		  " in commands means every program of /usr for shells; Python, R "
		  "and Node start only programs that are named" },
		{ !p->modules.all,
		  "modules only helps the code's author; the sandbox is the security boundary" },
		{ p->audit_required && !p->audit,
		  "audit_required needs an audit file or a host program with an audit callback" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].applies)
			r = buf_printf(b, "Note: %s.\n", notes[i].text);
	return r;
}

char *policy_explain(const struct policy *p)
{
	cleanup_buf struct buf b = { 0 };
	int r;

	buf_init(&b, TEXT_MAX_BYTES);
	r = say_level(p, &b);
	for (size_t i = 0; r == 0 && i < field_count; i++) {
		const struct field *f = &field_table[i];
		bool network = str_starts(f->name, "network.");
		if (f->kind == &kind_level)
			continue;
		if (!network || !is_closed(&p->network))
			r = say_field(f, p, &b);
		else if (str_eq(f->name, "network.allow"))
			r = buf_add_str(&b, "It reaches no network at all.\n");
	}
	if (r == 0)
		r = say_notes(p, &b);
	return r == 0 ? buf_take(&b) : NULL;
}

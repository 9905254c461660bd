/* inside/pod/runtime/prelude.c - see prelude.h. */
#include "inside/pod/runtime/prelude.h"

#include <stdio.h>
#include <string.h>

#include "inside/guests/sh/variables.h"

/* Below the longest command, with room around a piece. A byte takes at most four. */
enum { STEP_MAX = 60000, PIECE = 12000 };

bool prelude_is_name(const char *s)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *s && !strchr("0123456789", *s) && strspn(s, letters) == strlen(s);
}

/* Strings unchanged, tagged forms as their text, null as nothing, the rest as JSON. */
void prelude_text(struct json v, struct bytes *ret)
{
	struct json form = json_get(v, "$"), inner = json_get(v, "v");

	if (json_kind(v) == '"')
		json_string(v, ret);
	else if (json_kind(form) == '"' && json_kind(inner) == '"' && !json_is(form, "bytes"))
		json_string(inner, ret);
	else if (json_kind(v) != 'n')
		bytes_add(ret, v.at, v.len);
}

/* Ends a step, and keeps it out of the shell's history. */
static void end_step(struct prelude *p, const char *last)
{
	if (p->text.len == p->step)
		return;
	bytes_format(&p->text, "history -d -1 2>/dev/null\n%s", last);
	bytes_char(&p->text, 0);
	p->step = p->text.len;
}

/* Adds a command line. Starts a new step if it does not fit. */
static void add_line(struct prelude *p, const struct bytes *line)
{
	if (p->text.len - p->step + line->len > STEP_MAX)
		end_step(p, "");
	bytes_add(&p->text, line->data, line->len);
	bytes_char(&p->text, '\n');
}

/* bash's own list has the commands already. */
void prelude_set_up(struct prelude *p)
{
	struct bytes line = { 0 };

	bytes_text(&line, "history() { case ${1-} in list) builtin history \"${@:2}\";; "
			  "clear) builtin history -c;; *) builtin history \"$@\";; esac; }");
	add_line(p, &line);
	bytes_done(&line);
}

/* target=text, in pieces that fit: the first with `=`, the others with `+=`. */
static void assign(struct prelude *p, const char *target, const struct bytes *text)
{
	size_t done = 0;

	do {
		size_t n = text->len - done < PIECE ? text->len - done : PIECE;
		struct bytes line = { 0 };

		/* Does not split characters. */
		while (done + n < text->len && n > 1 && (text->data[done + n] & 0xc0) == 0x80)
			n--;
		bytes_format(&line, "%s%s", target, done ? "+=" : "=");
		bytes_shell(&line, text->data + done, n);
		add_line(p, &line);
		bytes_done(&line);
		done += n;
	} while (done < text->len);
}

static void assign_value(struct prelude *p, const char *target, struct json v)
{
	struct bytes text = { 0 };

	prelude_text(v, &text);
	assign(p, target, &text);
	bytes_done(&text);
}

/* "name[key]" for an element. A long key is skipped, because it would not be one word. */
static void assign_element(struct prelude *p, const char *name, size_t index, struct json key,
			   struct json value)
{
	struct bytes target = { 0 }, text = { 0 };

	if (key.len) {
		json_string(key, &text);
		bytes_format(&target, "%s[", name);
		bytes_shell(&target, text.data, text.len < PIECE ? text.len : PIECE);
		bytes_text(&target, "]");
	} else {
		bytes_format(&target, "%s[%zu]", name, index);
	}
	bytes_char(&target, 0);
	if (!key.len || text.len) /* bash has no empty subscript */
		assign_value(p, target.data, value);
	bytes_done(&target);
	bytes_done(&text);
}

/* name=value; a list becomes an array, a map an associative array. */
static void variable(struct prelude *p, const char *name, struct json v)
{
	struct json form = json_get(v, "$"), key, item;
	char kind = json_kind(v);
	struct bytes line = { 0 };
	const char *at = NULL;
	size_t i = 0;

	if (json_is(form, "tuple") || json_is(form, "set") || json_is(form, "vec")) {
		v = json_get(v, "v");
		kind = json_kind(v);
	} else if (form.len) {
		kind = '"';
	}
	if (kind != '[' && kind != '{') {
		assign_value(p, name, v);
		return;
	}
	bytes_format(&line, "unset %s; declare -g%c %s=()", name, kind == '[' ? 'a' : 'A', name);
	add_line(p, &line);
	while (json_each(v, &at, &key, &item))
		assign_element(p, name, i++, key, item);
	bytes_done(&line);
}

/* null: unset; false: what the session began with. */
static void change_environment(struct prelude *p, const char *name, struct json v)
{
	char kind = json_kind(v);
	const char *base = kind == 'f' && p->base ? variables_base(p->base, name) : NULL;
	struct bytes line = { 0 }, text = { 0 };

	if (kind == 'n' || (kind == 'f' && !base)) {
		bytes_format(&line, "unset %s", name);
	} else if (base) {
		bytes_text(&text, base);
		assign(p, name, &text);
		bytes_format(&line, "export %s", name);
	} else {
		assign_value(p, name, v);
		bytes_format(&line, "export %s", name);
	}
	bytes_done(&text);
	add_line(p, &line);
	bytes_done(&line);
}

static bool members(struct prelude *p, struct json object,
		    void (*add)(struct prelude *p, const char *name, struct json v))
{
	const char *at = NULL;
	struct json key, v;
	bool ok = true;

	while (json_kind(object) == '{' && json_each(object, &at, &key, &v)) {
		struct bytes name = { 0 };

		json_string(key, &name);
		bytes_char(&name, 0);
		if (strlen(name.data) + 1 == name.len && name.len < PIECE &&
		    prelude_is_name(name.data))
			add(p, name.data, v);
		else
			ok = false;
		bytes_done(&name);
	}
	return ok;
}

static void arguments(struct prelude *p, struct json list)
{
	struct json key, v;
	const char *at = NULL;
	bool first = true;

	while (json_kind(list) == '[' && json_each(list, &at, &key, &v)) {
		struct bytes line = { 0 };

		assign_value(p, "__cordon", v);
		bytes_format(&line, "set -- %s\"$__cordon\"", first ? "" : "\"$@\" ");
		add_line(p, &line);
		bytes_done(&line);
		first = false;
	}
}

static void directory(struct prelude *p, struct json v)
{
	struct bytes line = { 0 }, text = { 0 };

	if (json_kind(v) != '"')
		return;
	json_string(v, &text);
	bytes_text(&line, "builtin cd -- ");
	bytes_shell(&line, text.data, text.len);
	add_line(p, &line);
	bytes_done(&line);
	bytes_done(&text);
}

/* With set -e a failing command would end the shell, so the status is not set then. */
void prelude_leave(int status, char ret[static PRELUDE_LEAVE_BYTES])
{
	snprintf(ret, PRELUDE_LEAVE_BYTES,
		 "unset __cordon; case $- in *e*) :;; *) "
		 "__cordon() { unset -f __cordon; return %d; }; __cordon;; esac",
		 status & 255);
}

void prelude_end(struct prelude *p, int status)
{
	char last[PRELUDE_LEAVE_BYTES];

	prelude_leave(status, last);
	end_step(p, last);
}

bool prelude_fill(struct prelude *p, struct json message, int status)
{
	bool ok = members(p, json_get(message, "env"), change_environment) &&
		  members(p, json_get(message, "context"), variable);

	arguments(p, json_get(message, "args"));
	directory(p, json_get(message, "directory"));
	prelude_end(p, status);
	return ok;
}

const char *prelude_next(struct prelude *p)
{
	const char *step = p->text.data + p->at;

	if (p->at >= p->text.len)
		return NULL;
	p->at += strlen(step) + 1;
	return step;
}

void prelude_clear(struct prelude *p)
{
	p->text.len = p->step = p->at = 0;
}

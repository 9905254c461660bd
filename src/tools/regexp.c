/* tools/regexp.c - see regexp.h. An expression is parsed into a tree and compiled to a program that
 * follows all possible states at once (Thompson's construction). */
#include "tools/regexp.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

enum { PATTERN_MAX = 1024, NODES_MAX = 2100, RANGES_MAX = 1024, CODE_MAX = 1000, DEPTH_MAX = 32 };
enum { REPEAT_MAX = 1000, REPEAT_ANY = 1 << 20 };
enum { LAST_CHAR = 0x10ffff, NO_CHAR = -1 };

enum node_kind {
	NODE_EMPTY,
	NODE_SET,
	NODE_BOL,
	NODE_EOL,
	NODE_EDGE,
	NODE_CAT,
	NODE_ALT,
	NODE_REPEAT
};

struct node {
	enum node_kind kind;
	int left, right; /* CAT, ALT; REPEAT: left */
	int min, max;    /* REPEAT */
	/* SET: its ranges, and whether it is negated; EDGE: is_not. */
	int first, count;
	bool is_not;
};

struct range {
	int32_t low, high;
};

enum op_kind { OP_SET, OP_BOL, OP_EOL, OP_EDGE, OP_SPLIT, OP_JUMP, OP_MATCH };

struct op {
	enum op_kind kind;
	int first, count; /* SET */
	bool is_not;      /* SET, EDGE */
	int a, b;         /* SPLIT: both; JUMP: a */
};

struct regexp {
	struct range ranges[RANGES_MAX];
	int range_count;
	struct op code[CODE_MAX];
	int length;
};

struct parser {
	struct regexp *r;
	const char *p, *end;
	struct node *nodes;
	int node_count, depth;
	const char *why; /* the first error */
};

struct regexp *regexp_free(struct regexp *r)
{
	free(r);
	return NULL;
}

size_t regexp_cost(const struct regexp *r)
{
	return (size_t)r->length;
}

static int fail(struct parser *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return 0;
}

static int add_node(struct parser *s, struct node n)
{
	if (s->node_count >= NODES_MAX)
		return fail(s, "it is too long");
	s->nodes[s->node_count] = n;
	return s->node_count++;
}

static void add_range(struct parser *s, int32_t low, int32_t high)
{
	if (s->r->range_count >= RANGES_MAX)
		(void)fail(s, "it has too many characters in classes");
	else
		s->r->ranges[s->r->range_count++] = (struct range){ low, high };
}

/* The next character, or NO_CHAR at the end. */
static int32_t take(const char **p, const char *end)
{
	const unsigned char *s = (const unsigned char *)*p;

	if (*p >= end)
		return NO_CHAR;
	int n = str_utf8_next(*p, (size_t)(end - *p));
	*p += n > 0 ? n : -n;
	if (n <= 1)
		return s[0]; /* callers pass valid UTF-8; other bytes do no harm */
	int32_t c = s[0] & (0xff >> (n + 1));
	for (int i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static bool is_next(struct parser *s, char c)
{
	if (s->p >= s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* The ranges of \d, \w or \s; upper case negates them. */
static bool add_named(struct parser *s, char name)
{
	switch (name | 0x20) {
	case 'd':
		add_range(s, '0', '9');
		return true;
	case 'w':
		add_range(s, '0', '9');
		add_range(s, 'A', 'Z');
		add_range(s, '_', '_');
		add_range(s, 'a', 'z');
		return true;
	case 's':
		add_range(s, '\t', '\r');
		add_range(s, ' ', ' ');
		add_range(s, 0xa0, 0xa0);
		add_range(s, 0x2028, 0x2029);
		add_range(s, 0xfeff, 0xfeff);
		return true;
	default:
		return false;
	}
}

static int32_t take_hex(struct parser *s, int digits)
{
	int32_t c = 0;

	for (int i = 0; i < digits; i++) {
		static const char set[] = "0123456789abcdefABCDEF";
		const char *at = s->p < s->end && *s->p ? strchr(set, *s->p) : NULL;
		if (!at)
			return fail(s, "an escape has no hex digits");
		int d = (int)(at - set);
		c = c << 4 | (d > 15 ? d - 6 : d);
		s->p++;
	}
	return c;
}

/* The character after a backslash. The caller has already handled named classes. */
static int32_t take_escape(struct parser *s)
{
	static const char from[] = "tnrfv0", to[] = "\t\n\r\f\v";
	char c = s->p < s->end ? *s->p : '\0';
	const char *at = c ? strchr(from, c) : NULL;

	if (!c)
		return fail(s, "it ends with a backslash");
	if ((c >= '1' && c <= '9'))
		return fail(s, "back references are not supported");
	if (c == 'x' || c == 'u') {
		s->p++;
		return take_hex(s, c == 'x' ? 2 : 4);
	}
	if (at) {
		s->p++;
		return to[at - from]; /* \0 is the NUL that ends `to` */
	}
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return fail(s, "an escape is not supported");
	return take(&s->p, s->end);
}

/* One end of a range in [...]. *ret_named: it was \d or similar, which cannot be the end of a
 * range. */
static int32_t take_member(struct parser *s, bool *ret_named)
{
	*ret_named = false;
	if (!is_next(s, '\\'))
		return take(&s->p, s->end);
	char c = s->p < s->end ? *s->p : '\0';
	if (c == 'D' || c == 'W' || c == 'S')
		return fail(s, "\\D, \\W and \\S are not supported inside [...]");
	if (add_named(s, c)) {
		s->p++;
		*ret_named = true;
		return 0;
	}
	if (c == 'b') {
		s->p++;
		return '\b';
	}
	if (c == '-') {
		s->p++;
		return '-';
	}
	return take_escape(s);
}

/* After [ . */
static int take_class(struct parser *s)
{
	struct node n = { .kind = NODE_SET, .first = s->r->range_count };
	bool is_named, ends_named;

	n.is_not = is_next(s, '^');
	while (!s->why && !is_next(s, ']')) {
		if (s->p >= s->end)
			return fail(s, "a [ has no matching ]");
		int32_t low = take_member(s, &is_named);
		bool is_range = !is_named && s->end - s->p >= 2 && s->p[0] == '-' && s->p[1] != ']';
		int32_t high = low;
		if (is_range) {
			s->p++;
			high = take_member(s, &ends_named);
			if (ends_named || high < low)
				return fail(s, "a range in [...] ends before it begins");
		}
		if (!is_named)
			add_range(s, low, high);
	}
	n.count = s->r->range_count - n.first;
	return add_node(s, n);
}

static int take_alternatives(struct parser *s);

/* After ( . */
static int take_group(struct parser *s)
{
	if (is_next(s, '?') && !is_next(s, ':'))
		return fail(s, "groups that look around, or have names, are not supported");
	if (++s->depth > DEPTH_MAX)
		return fail(s, "its groups nest too deeply");
	int inside = take_alternatives(s);
	s->depth--;
	return is_next(s, ')') ? inside : fail(s, "a ( has no matching )");
}

static int add_set(struct parser *s, int32_t low, int32_t high)
{
	struct node n = { .kind = NODE_SET, .first = s->r->range_count, .count = 1 };

	add_range(s, low, high);
	return add_node(s, n);
}

/* After a backslash, outside a class. */
static int take_escaped(struct parser *s)
{
	struct node n = { .kind = NODE_SET, .first = s->r->range_count };
	char c = s->p < s->end ? *s->p : '\0';

	if (c == 'b' || c == 'B') {
		s->p++;
		return add_node(s, (struct node){ .kind = NODE_EDGE, .is_not = c == 'B' });
	}
	if (c && add_named(s, c)) {
		s->p++;
		n.is_not = c < 'a';
		n.count = s->r->range_count - n.first;
		return add_node(s, n);
	}
	int32_t meant = take_escape(s);
	return add_set(s, meant, meant);
}

static int take_atom(struct parser *s)
{
	struct node dot = { .kind = NODE_SET, .first = s->r->range_count, .is_not = true };
	char c = *s->p;

	if (strchr("*+?{", c))
		return fail(s, "a repetition has nothing to repeat");
	if (strchr("]}", c)) /* literal, as in other implementations */
		return s->p++, add_set(s, c, c);
	if (!strchr("([.^$\\", c)) {
		int32_t plain = take(&s->p, s->end);
		return add_set(s, plain, plain);
	}
	s->p++;
	switch (c) {
	case '(':
		return take_group(s);
	case '[':
		return take_class(s);
	case '^':
		return add_node(s, (struct node){ .kind = NODE_BOL });
	case '$':
		return add_node(s, (struct node){ .kind = NODE_EOL });
	case '\\':
		return take_escaped(s);
	default:
		break;
	}
	add_range(s, '\n', '\n');
	add_range(s, '\r', '\r');
	add_range(s, 0x2028, 0x2029);
	dot.count = s->r->range_count - dot.first;
	return add_node(s, dot);
}

static int take_count(struct parser *s)
{
	int n = 0, digits = 0;

	for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++, digits++)
		n = n > REPEAT_MAX ? n : n * 10 + (*s->p - '0');
	if (digits == 0 || n > REPEAT_MAX)
		return fail(s, "a {...} must have counts of at most 1000");
	return n;
}

/* {m}, {m,} or {m,n}, after the brace. */
static void take_bounds(struct parser *s, int *ret_min, int *ret_max)
{
	*ret_min = *ret_max = take_count(s);
	if (is_next(s, ','))
		*ret_max = s->p < s->end && *s->p == '}' ? REPEAT_ANY : take_count(s);
	if (!is_next(s, '}'))
		(void)fail(s, "a { has no matching }");
	if (*ret_max < *ret_min)
		(void)fail(s, "the minimum in a {...} is above its maximum");
}

static int take_repeated(struct parser *s)
{
	int atom = take_atom(s);
	struct node n = { .kind = NODE_REPEAT, .left = atom, .max = REPEAT_ANY };

	if (s->why || s->p >= s->end || !strchr("*+?{", *s->p))
		return atom;
	char c = *s->p++;
	n.min = c == '+';
	if (c == '?')
		n.max = 1;
	if (c == '{')
		take_bounds(s, &n.min, &n.max);
	(void)is_next(s, '?'); /* lazy or greedy makes no difference here */
	if (s->p < s->end && strchr("*+?{", *s->p))
		return fail(s, "a repetition is repeated");
	return add_node(s, n);
}

static int take_sequence(struct parser *s)
{
	int all = add_node(s, (struct node){ .kind = NODE_EMPTY });

	while (!s->why && s->p < s->end && *s->p != '|' && *s->p != ')') {
		int one = take_repeated(s);
		all = add_node(s, (struct node){ .kind = NODE_CAT, .left = all, .right = one });
	}
	return all;
}

static int take_alternatives(struct parser *s)
{
	int all = take_sequence(s);

	while (!s->why && is_next(s, '|')) {
		int one = take_sequence(s);
		all = add_node(s, (struct node){ .kind = NODE_ALT, .left = all, .right = one });
	}
	return all;
}

/* ---- the program */

static int emit(struct parser *s, struct op op)
{
	struct regexp *r = s->r;

	if (r->length >= CODE_MAX)
		return fail(s, "it is too large");
	r->code[r->length] = op;
	return r->length++;
}

static void emit_node(struct parser *s, int index);

static void emit_repeat(struct parser *s, const struct node *n)
{
	for (int i = 0; i < n->min && !s->why; i++)
		emit_node(s, n->left);
	if (n->max == REPEAT_ANY) {
		int split = emit(s, (struct op){ .kind = OP_SPLIT });
		emit_node(s, n->left);
		(void)emit(s, (struct op){ .kind = OP_JUMP, .a = split });
		s->r->code[split].a = split + 1;
		s->r->code[split].b = s->r->length;
		return;
	}
	/* Each further repetition is optional, together with all after it. */
	for (int i = n->min; i < n->max && !s->why; i++) {
		int split = emit(s, (struct op){ .kind = OP_SPLIT });
		emit_node(s, n->left);
		s->r->code[split].a = split + 1;
		s->r->code[split].b = s->r->length;
	}
}

static void emit_alternatives(struct parser *s, const struct node *n)
{
	int split = emit(s, (struct op){ .kind = OP_SPLIT });

	emit_node(s, n->left);
	int jump = emit(s, (struct op){ .kind = OP_JUMP });
	s->r->code[split].a = split + 1;
	s->r->code[split].b = s->r->length;
	emit_node(s, n->right);
	s->r->code[jump].a = s->r->length;
}

static void emit_node(struct parser *s, int index)
{
	const struct node *n = &s->nodes[index];

	if (s->why)
		return;
	switch (n->kind) {
	case NODE_EMPTY:
		break;
	case NODE_SET:
		(void)emit(s, (struct op){ .kind = OP_SET,
					   .first = n->first,
					   .count = n->count,
					   .is_not = n->is_not });
		break;
	case NODE_BOL:
		(void)emit(s, (struct op){ .kind = OP_BOL });
		break;
	case NODE_EOL:
		(void)emit(s, (struct op){ .kind = OP_EOL });
		break;
	case NODE_EDGE:
		(void)emit(s, (struct op){ .kind = OP_EDGE, .is_not = n->is_not });
		break;
	case NODE_CAT:
		emit_node(s, n->left);
		emit_node(s, n->right);
		break;
	case NODE_ALT:
		emit_alternatives(s, n);
		break;
	case NODE_REPEAT:
		emit_repeat(s, n);
		break;
	}
}

struct regexp *regexp_new(const char *pattern, size_t len, const char **ret_why)
{
	cleanup_free struct node *nodes = mem_array(NODES_MAX, sizeof(*nodes));
	struct regexp *r = mem_alloc(sizeof(*r));
	struct parser s = { .r = r, .p = pattern, .end = pattern + len, .nodes = nodes };

	*ret_why = "out of memory";
	if (!nodes || !r)
		return regexp_free(r);
	if (len > PATTERN_MAX || !str_is_utf8(pattern, len) || memchr(pattern, '\0', len))
		(void)fail(&s, "it must be text of at most 1024 bytes");
	int root = s.why ? 0 : take_alternatives(&s);
	if (!s.why && s.p < s.end)
		(void)fail(&s, "a ) has no matching (");
	emit_node(&s, root);
	(void)emit(&s, (struct op){ .kind = OP_MATCH });
	*ret_why = s.why;
	return s.why ? regexp_free(r) : r;
}

/* ---- running it */

/* The current states; each is listed once. */
struct places {
	int at[CODE_MAX], count;
	bool has[CODE_MAX];
};

/* The position in the text, as the characters around it. */
struct here {
	int32_t before, after; /* NO_CHAR: beginning or end of the text */
};

static bool is_word(int32_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_';
}

static bool holds(const struct op *op, struct here here)
{
	if (op->kind == OP_BOL)
		return here.before == NO_CHAR;
	if (op->kind == OP_EOL)
		return here.after == NO_CHAR;
	return (is_word(here.before) != is_word(here.after)) != op->is_not;
}

/* Adds a state and all that can be reached from it without consuming a character. True: the final
 * state is among them. */
static bool enter(const struct regexp *r, struct places *places, int start, struct here here)
{
	int stack[2 * CODE_MAX + 1], top = 0;

	stack[top++] = start;
	while (top > 0) {
		int pc = stack[--top];
		const struct op *op = &r->code[pc];
		if (places->has[pc])
			continue;
		places->has[pc] = true;
		switch (op->kind) {
		case OP_MATCH:
			return true;
		case OP_SPLIT:
			stack[top++] = op->b;
			stack[top++] = op->a;
			break;
		case OP_JUMP:
			stack[top++] = op->a;
			break;
		case OP_SET:
			places->at[places->count++] = pc;
			break;
		default:
			if (holds(op, here))
				stack[top++] = pc + 1;
		}
	}
	return false;
}

static bool takes(const struct regexp *r, const struct op *op, int32_t c)
{
	for (int i = 0; i < op->count; i++)
		if (c >= r->ranges[op->first + i].low && c <= r->ranges[op->first + i].high)
			return !op->is_not;
	return op->is_not;
}

static void clear(struct places *p, const struct regexp *r)
{
	p->count = 0;
	memset(p->has, 0, (size_t)r->length * sizeof(*p->has));
}

bool regexp_is_in(const struct regexp *r, const char *text, size_t len)
{
	struct places both[2], *now = &both[0], *next = &both[1], *old;
	const char *p = text, *end = text + len;
	struct here here = { NO_CHAR, take(&p, end) };

	clear(now, r);
	for (;;) {
		if (enter(r, now, 0, here))
			return true;
		int32_t c = here.after;
		if (c == NO_CHAR)
			return false;
		here = (struct here){ c, take(&p, end) };
		clear(next, r);
		for (int i = 0; i < now->count; i++)
			if (takes(r, &r->code[now->at[i]], c) &&
			    enter(r, next, now->at[i] + 1, here))
				return true;
		old = now;
		now = next;
		next = old;
	}
}

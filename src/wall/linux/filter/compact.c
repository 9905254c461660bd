/* wall/linux/filter/compact.c - see compact.h. Only the search for a call's number is rewritten;
 * other instructions are copied. The result is then compared with the original. */
#include "wall/linux/filter/compact.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CALLS: no call has a higher number. */
enum { MAX_RANGES = 1024, NEAR = 255, NOWHERE = -1, CALLS = 1024 };

static _Noreturn void give_up(const char *why)
{
	fprintf(stderr, "compact: %s\n", why);
	exit(1);
}

/* ---- what a program does with a call */

static bool jumps(const struct sock_filter *f, uint32_t a)
{
	switch (f->code) {
	case BPF_JMP | BPF_JEQ | BPF_K:
		return a == f->k;
	case BPF_JMP | BPF_JGT | BPF_K:
		return a > f->k;
	case BPF_JMP | BPF_JGE | BPF_K:
		return a >= f->k;
	case BPF_JMP | BPF_JSET | BPF_K:
		return a & f->k;
	default:
		give_up("an instruction that is not known");
	}
}

/* Runs the program from pc until it returns or, unless reads_arguments, reads an argument. */
static size_t follow(const struct program *p, size_t pc, const struct seccomp_data *d,
		     bool reads_arguments)
{
	uint32_t a = 0;

	for (;; pc++) {
		const struct sock_filter *f = &p->code[pc];

		if (pc >= p->len)
			give_up("a program without an end");
		if (f->code == (BPF_RET | BPF_K))
			return pc;
		if (f->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (!reads_arguments && f->k >= offsetof(struct seccomp_data, args))
				return pc;
			memcpy(&a, (const char *)d + f->k, sizeof(a));
		} else if (f->code == (BPF_ALU | BPF_AND | BPF_K)) {
			a &= f->k;
		} else if (f->code == (BPF_JMP | BPF_JA)) {
			pc += f->k;
		} else {
			pc += jumps(f, a) ? f->jt : f->jf;
		}
	}
}

/* ---- ranges of call numbers that are treated alike */

struct range {
	uint32_t first;
	size_t leads_to; /* where the original returns or reads the first argument */
};

static bool is_alike(const struct program *p, size_t a, size_t b)
{
	const struct sock_filter *x = &p->code[a], *y = &p->code[b];

	return a == b || (x->code == (BPF_RET | BPF_K) && y->code == x->code && y->k == x->k);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Behaviour can change only at a constant of the original, or just after it. */
static size_t find_ranges(const struct program *p, struct range *ret)
{
	static uint32_t edges[2 * COMPACT_MAX + 1];
	size_t count = 1, ranges = 0;

	for (size_t i = 0; i < p->len; i++)
		if (BPF_CLASS(p->code[i].code) == BPF_JMP) {
			edges[count++] = p->code[i].k;
			edges[count++] = p->code[i].k + 1;
		}
	qsort(edges, count, sizeof(*edges), compare_numbers);
	for (size_t i = 0; i < count; i++) {
		struct seccomp_data d = { .nr = (int)edges[i], .arch = AUDIT_ARCH_X86_64 };
		size_t to = follow(p, 0, &d, false);

		if (ranges > 0 && is_alike(p, ret[ranges - 1].leads_to, to))
			continue;
		if (ranges == MAX_RANGES)
			give_up("too many ranges");
		ret[ranges++] = (struct range){ .first = edges[i], .leads_to = to };
	}
	return ranges;
}

/* ---- writing, from the end to the start, so that every jump target is known */

struct draft {
	const struct program *from;
	struct sock_filter code[COMPACT_MAX]; /* in reverse order */
	long len;
	long copies[COMPACT_MAX]; /* the latest copy of each original instruction; NOWHERE: none */
};

static long put(struct draft *d, struct sock_filter f)
{
	if (d->len == COMPACT_MAX)
		give_up("too long");
	d->code[d->len] = f;
	return d->len++;
}

/* How many instructions the next one would jump over to get there. */
static long distance(const struct draft *d, long place)
{
	return d->len - 1 - place;
}

/* `place`, or a new instruction that leads there, within reach of the next few instructions. */
static long reach(struct draft *d, long place)
{
	/* Room for both branches of a comparison, which may be added first. */
	if (distance(d, place) + 2 <= NEAR)
		return place;
	if (d->code[place].code == (BPF_RET | BPF_K))
		return put(d, d->code[place]);
	return put(d, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)distance(d, place)));
}

static long copy(struct draft *d, size_t pc);

static long put_jump(struct draft *d, struct sock_filter f, long yes, long no)
{
	yes = reach(d, yes);
	no = reach(d, no);
	f.jt = (uint8_t)distance(d, yes);
	f.jf = (uint8_t)distance(d, no);
	return put(d, f);
}

/* Copies an instruction of the original and all that follow it. */
static long copy(struct draft *d, size_t pc)
{
	struct sock_filter f = d->from->code[pc];
	long *place = &d->copies[pc];

	if (*place != NOWHERE && f.code != (BPF_RET | BPF_K))
		return *place;
	if (f.code == (BPF_RET | BPF_K)) {
		if (*place == NOWHERE || distance(d, *place) + 2 > NEAR)
			*place = put(d, f);
	} else if (f.code == (BPF_JMP | BPF_JA)) {
		*place = copy(d, pc + 1 + f.k);
	} else if (BPF_CLASS(f.code) == BPF_JMP) {
		long no = copy(d, pc + 1 + f.jf), yes = copy(d, pc + 1 + f.jt);

		*place = put_jump(d, f, yes, no);
	} else {
		long next = copy(d, pc + 1);

		if (distance(d, next) > 0)
			put(d, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
							    (uint32_t)distance(d, next)));
		*place = put(d, f);
	}
	return *place;
}

/* Equal returns are one target, wherever the original has them. */
static size_t first_alike(const struct program *p, size_t pc)
{
	for (size_t i = 0; i < pc; i++)
		if (p->code[pc].code == (BPF_RET | BPF_K) && is_alike(p, i, pc))
			return i;
	return pc;
}

static long search(struct draft *d, const struct range *ranges, size_t count)
{
	if (count == 1)
		return copy(d, first_alike(d->from, ranges->leads_to));
	size_t half = count / 2;
	long above = search(d, ranges + half, count - half), below = search(d, ranges, half);

	return put_jump(
		d,
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ranges[half].first, 0, 0),
		above, below);
}

/* ---- checking that both filters are equal */

static void check_call(const struct program *a, const struct program *b,
		       const struct seccomp_data *d)
{
	const struct sock_filter *x = &a->code[follow(a, 0, d, true)],
				 *y = &b->code[follow(b, 0, d, true)];

	if (x->k != y->k)
		give_up("the two are not the same");
}

/* Checks every number with every constant of the original, and its neighbours, in every argument,
 * with and without bits in the upper half. */
static void check_number(const struct program *a, const struct program *b, uint32_t nr)
{
	struct seccomp_data d = { .nr = (int)nr, .arch = AUDIT_ARCH_X86_64 };
	bool reads = a->code[follow(a, 0, &d, false)].code != (BPF_RET | BPF_K);

	check_call(a, b, &d);
	for (size_t i = 0; reads && i < a->len; i++)
		for (unsigned arg = 0; arg < 6; arg++)
			for (unsigned how = 0; how < 6; how++) {
				uint64_t low = (uint32_t)(a->code[i].k + how % 3 - 1);

				for (unsigned k = 0; k < 6; k++)
					d.args[k] = a->code[(i + (size_t)k * 7) % a->len].k;
				d.args[arg] = how < 3 ? low : low | 1ULL << 32;
				check_call(a, b, &d);
			}
}

static void check(const struct program *a, const struct program *b)
{
	struct seccomp_data foreign = { .nr = 0, .arch = AUDIT_ARCH_I386 };

	check_call(a, b, &foreign);
	for (uint32_t nr = 0; nr < CALLS; nr++)
		check_number(a, b, nr);
	for (size_t i = 0; i < a->len; i++)
		for (uint32_t nr = a->code[i].k - 1; nr != a->code[i].k + 2; nr++)
			if (nr >= CALLS)
				check_number(a, b, nr);
}

void compact(const struct program *from, struct program *ret)
{
	static struct range ranges[MAX_RANGES];
	static struct draft d;
	struct seccomp_data foreign = { .nr = 0, .arch = AUDIT_ARCH_I386 };
	size_t count = find_ranges(from, ranges);

	d = (struct draft){ .from = from };
	for (size_t i = 0; i < COMPACT_MAX; i++)
		d.copies[i] = NOWHERE;
	long numbers = search(&d, ranges, count);
	if (distance(&d, numbers) > 0)
		give_up("the search does not come first");
	put(&d, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr)));
	long known = d.len - 1;
	long other = put(&d, from->code[follow(from, 0, &foreign, false)]);
	put_jump(&d,
		 (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 0),
		 known, other);
	put(&d, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, arch)));
	ret->len = (size_t)d.len;
	for (long i = 0; i < d.len; i++)
		ret->code[i] = d.code[d.len - 1 - i];
	check(from, ret);
}

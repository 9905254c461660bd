/* cli/option.c - see option.h. The option parser, and messages to the user. */
#include "cli/option.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/verb.h"

enum { EXIT_USAGE = 2 };

static bool wants_color(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return (!no_color || !*no_color) && term && !str_eq(term, "dumb") && isatty(fd);
}

void cli_init(struct cli *c)
{
	*c = (struct cli){ .color = wants_color(STDOUT_FILENO),
			   .color_err = wants_color(STDERR_FILENO) };
}

void cli_done(struct cli *c)
{
	free(c->given);
	c->given = NULL;
	c->given_count = 0;
}

static const struct cli_option help_option = { "help", 'h', NULL, "show this page", true };

static const struct cli_option *find_long(const struct verb *v, const char *name, size_t len)
{
	for (const struct cli_option *o = v->options; o && o->name; o++)
		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	return len == 4 && memcmp(name, "help", 4) == 0 ? &help_option : NULL;
}

static const struct cli_option *find_letter(const struct verb *v, char letter)
{
	for (const struct cli_option *o = v->options; o && o->name; o++)
		if (o->letter == letter)
			return o;
	return letter == 'h' ? &help_option : NULL;
}

static int unknown_long(const struct cli *c, const char *arg, size_t len)
{
	enum { NAMES_MAX = 64 };
	const char *names[NAMES_MAX];
	size_t count = 0;
	cleanup_free char *word = str_ndup(arg + 2, len);

	for (const struct cli_option *o = c->verb->options; o && o->name && count < NAMES_MAX; o++)
		names[count++] = o->name;
	const char *nearest = word ? str_nearest(word, names, count) : NULL;
	if (nearest)
		return cli_usage(c, "unknown option '%.*s'; did you mean '--%s'?", (int)len + 2,
				 arg, nearest);
	return cli_usage(c, "unknown option '%.*s'", (int)len + 2, arg);
}

static int keep(struct cli *c, const struct cli_option *o, const char *value)
{
	if (!o->repeats && cli_has(c, o->name))
		return cli_usage(c, "--%s was given twice", o->name);
	struct cli_given *given = mem_grow(c->given, c->given_count + 1, sizeof(*given));
	if (!given) {
		cli_error(c, "out of memory");
		return cordon_code_exit_status(CORDON_NOMEM);
	}
	c->given = given;
	c->given[c->given_count++] = (struct cli_given){ o, value };
	return 0;
}

/* The rest of the command line while it is parsed. */
struct rest {
	char **argv;
	int argc, next;
};

static int parse_long(struct cli *c, const char *arg, struct rest *rest)
{
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
	const struct cli_option *o = find_long(c->verb, arg + 2, len);

	if (!o)
		return unknown_long(c, arg, len);
	if (!o->value && equals)
		return cli_usage(c, "--%s takes no value", o->name);
	if (!o->value)
		return keep(c, o, "");
	if (equals)
		return keep(c, o, equals + 1);
	if (rest->next >= rest->argc)
		return cli_usage(c, "--%s needs a value: --%s=%s", o->name, o->name, o->value);
	return keep(c, o, rest->argv[rest->next++]);
}

static int parse_letters(struct cli *c, const char *arg, struct rest *rest)
{
	/* -t is --timeout; as people know it from containers, -it is --tty. */
	const struct cli_option *tty = find_long(c->verb, "tty", 3);

	if (tty && (str_eq(arg, "-it") || str_eq(arg, "-ti")))
		return keep(c, tty, "");
	for (const char *s = arg + 1; *s; s++) {
		const struct cli_option *o = find_letter(c->verb, *s);
		if (!o && access(arg, F_OK) == 0)
			return cli_usage(c,
					 "unknown option '-%c'; for the file of that name write -- "
					 "%s",
					 *s, arg);
		if (!o)
			return cli_usage(c, "unknown option '-%c'", *s);
		if (!o->value) {
			int r = keep(c, o, "");
			if (r != 0)
				return r;
			continue;
		}
		if (s[1])
			return keep(c, o, s + 1);
		if (rest->next >= rest->argc)
			return cli_usage(c, "-%c needs a value: -%c %s", *s, *s, o->value);
		return keep(c, o, rest->argv[rest->next++]);
	}
	return 0;
}

static int check_operands(const struct cli *c, int count, char **argv)
{
	const struct verb *v = c->verb;

	if (cli_has(c, "help"))
		return 0;
	if (v->words && count > 0) {
		size_t words = 0;
		for (; v->words[words]; words++)
			if (str_eq(v->words[words], argv[0]))
				break;
		if (!v->words[words]) {
			const char *nearest = str_nearest(argv[0], v->words, words);
			return nearest ? cli_usage(c, "unknown word '%s'; did you mean '%s'?",
						   argv[0], nearest)
				       : cli_usage(c, "unknown word '%s'", argv[0]);
		}
	}
	if (count < v->min_operands)
		return cli_usage(c, "usage: cordon %s %s", v->name, v->usage);
	if (v->max_operands >= 0 && count > v->max_operands)
		return cli_usage(c, "one argument too many: '%s'", argv[v->max_operands]);
	return 0;
}

int cli_parse(struct cli *c, int argc, char **argv, int *ret_count)
{
	struct rest rest = { .argv = argv, .argc = argc };
	bool options_over = false;
	int count = 0, r = 0;

	while (r == 0 && rest.next < argc) {
		char *arg = argv[rest.next++];
		if (options_over || arg[0] != '-' || arg[1] == '\0') {
			argv[count++] = arg;
			options_over = options_over || c->verb->options_first;
		} else if (str_eq(arg, "--")) {
			options_over = true;
		} else if (arg[1] == '-') {
			r = parse_long(c, arg, &rest);
		} else {
			r = parse_letters(c, arg, &rest);
		}
	}
	if (r == 0)
		r = check_operands(c, count, argv);
	if (r != 0)
		return r;
	argv[count] = NULL;
	*ret_count = count;
	return 0;
}

const char *cli_value_at(const struct cli *c, const char *name, size_t i)
{
	for (size_t k = 0; k < c->given_count; k++)
		if (str_eq(c->given[k].option->name, name) && i-- == 0)
			return c->given[k].value;
	return NULL;
}

const char *cli_value(const struct cli *c, const char *name)
{
	for (size_t k = c->given_count; k > 0; k--)
		if (str_eq(c->given[k - 1].option->name, name))
			return c->given[k - 1].value;
	return NULL;
}

bool cli_has(const struct cli *c, const char *name)
{
	return cli_value(c, name) != NULL;
}

PRINTF_LIKE(2, 0)
static void say(const struct cli *c, const char *fmt, va_list ap)
{
	cleanup_free char *message = str_vprintf(fmt, ap);

	/* log_error prints the program's name and escapes control characters. */
	if (c->verb)
		log_error("%s: %s", c->verb->name, message ? message : "out of memory");
	else
		log_error("%s", message ? message : "out of memory");
}

int cli_usage(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "Try 'cordon help%s%s'.\n", c->verb ? " " : "",
		      c->verb ? c->verb->name : "");
	return EXIT_USAGE;
}

void cli_error(const struct cli *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
}

int cli_fail(const struct cli *c, const struct cordon_error *e)
{
	enum cordon_code code = cordon_error_code(e);

	log_error_chain(c->verb ? c->verb->name : NULL, e);
	/* The kernel refused a file of the host's to us; that is no denial of the policy. */
	if (code == CORDON_DENIED && cordon_error_errno(e))
		code = CORDON_OS;
	return cordon_code_exit_status(code);
}

static const char *code_of(enum cli_style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m",  [STYLE_BOLD] = "\033[1m",    [STYLE_RED] = "\033[31m",
		[STYLE_GREEN] = "\033[32m", [STYLE_YELLOW] = "\033[33m", [STYLE_DIM] = "\033[2m",
	};

	return codes[style];
}

const char *cli_style(const struct cli *c, enum cli_style style)
{
	return c->color ? code_of(style) : "";
}

const char *cli_style_on(const struct cli *c, const FILE *f, enum cli_style style)
{
	return (f == stderr ? c->color_err : c->color) ? code_of(style) : "";
}

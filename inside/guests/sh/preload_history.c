/* inside/guests/sh/preload_history.c - see preload_history.h. bash's own list stays as it is in a
 * script: empty. So `history` and `fc` do what they do there.
 *
 * The types are bash's own (builtins.h, command.h), of which only the first members are used. */
#include "inside/guests/sh/preload_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMANDS_MAX = 1000, COMMAND_BYTES = 65536, BYTES_MAX = 4 << 20 };

struct word {
	char *text;
	int flags;
};
struct words {
	struct words *next;
	struct word *word;
};
struct builtin {
	char *name;
	int (*run)(struct words *arguments);
};

extern __attribute__((weak)) struct builtin *builtin_address_internal(char *name,
								      int also_disabled);

static int (*plain)(struct words *arguments);
static char *commands[COMMANDS_MAX]; /* a ring */
static size_t first, count, bytes;

static void drop_oldest(void)
{
	char **oldest = &commands[first % COMMANDS_MAX];

	bytes -= strlen(*oldest);
	free(*oldest);
	*oldest = NULL;
	first++;
	count--;
}

static int list(void)
{
	for (size_t i = first; i < first + count; i++)
		printf("%5zu  %s\n", i + 1, commands[i % COMMANDS_MAX]);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int history(struct words *arguments)
{
	const char *verb = arguments && !arguments->next ? arguments->word->text : "";

	if (!strcmp(verb, "list"))
		return list();
	if (strcmp(verb, "clear") != 0)
		return plain(arguments);
	while (count)
		drop_oldest();
	first = 0;
	return 0;
}

void preload_history_begin(void)
{
	static char name[] = "history";
	struct builtin *b = builtin_address_internal ? builtin_address_internal(name, 1) : NULL;

	if (!b) /* this bash was built without it */
		return;
	plain = b->run;
	b->run = history;
}

void preload_history_add(const char *code, size_t len)
{
	char *copy = plain && len && len <= COMMAND_BYTES ? strdup(code) : NULL;

	if (!copy)
		return;
	while (count && (count == COMMANDS_MAX || bytes + len > BYTES_MAX))
		drop_oldest();
	commands[(first + count++) % COMMANDS_MAX] = copy;
	bytes += strlen(copy);
}

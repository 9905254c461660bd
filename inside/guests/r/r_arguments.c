/* inside/guests/r/r_arguments.c - the arguments of the program, as commandArgs(TRUE) returns them.
 */
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/turn.h"

/* After R's own types. */
#include <R_ext/RStartup.h>

void arguments_take(struct json list)
{
	struct bytes text = { 0 };
	const char *at = NULL;
	struct json key, v;
	int argc = 1;

	bytes_add(&text, "R\0--args", 8);
	while (json_each(list, &at, &key, &v)) {
		bytes_char(&text, 0);
		json_string(v, &text);
		argc++;
	}
	bytes_char(&text, 0);
	char **argv = calloc((size_t)argc + 1, sizeof(*argv));
	if (argv) {
		char *next = text.data;

		for (int i = 0; i <= argc; i++) {
			argv[i] = next;
			next += strlen(next) + 1;
		}
		R_set_command_line_arguments(argc + 1, argv);
	}
	free(argv);
	bytes_done(&text);
}

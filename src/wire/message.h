/* wire/message.h - from one line of the guest to a message with checked fields. */
#pragma once

#include "wire/wire.h"

/* line is changed in place: the texts of *ret point into it. line[len] must be writable.
 * Fields that belong to the type are checked, others are ignored. The error's message is what
 * ends the execution. */
int message_parse(char *line, size_t len, struct wire_message *ret, struct cordon_error **reterr);
/* The type of a line that begins like this, where it may be longer than others; else
 * WIRE_UNKNOWN. */
enum wire_type message_type(const char *line, size_t len);
/* The token of a hello line, absent when there is none; checked before anything else is said. */
int message_parse_hello(char *line, size_t len, struct wire_message *ret,
			struct wire_text *ret_token, int64_t *ret_version,
			struct cordon_error **reterr);

/* wire/message.h - turns one line of the guest into a message with checked fields. */
#pragma once

#include "wire/wire.h"

/* Changes the line in place: the texts of *ret point into it. line[len] must be writable. Checks
 * the fields of its type and ignores others. The error's message is the reason to end the
 * execution. */
int message_parse(char *line, size_t len, struct wire_message *ret, struct cordon_error **reterr);
/* The type of a line that begins like this, if that type may be longer than others; else
 * WIRE_UNKNOWN. */
enum wire_type message_type(const char *line, size_t len);
/* Parses a hello line. The token may be absent; it is checked before anything is sent. */
int message_parse_hello(char *line, size_t len, struct wire_message *ret,
			struct wire_text *ret_token, int64_t *ret_version,
			struct cordon_error **reterr);

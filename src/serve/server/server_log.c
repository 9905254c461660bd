/* serve/server/server_log.c - see server_log.h. */
#include "serve/server/server_log.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

void server_log_write(const char *event, json_t *fields)
{
	cleanup_json json_t *owned = fields, *line = json_object();
	char now[CLOCK_UTC_SIZE];

	clock_utc_text(now);
	json_object_set_new(line, "time", json_string(now));
	json_object_set_new(line, "event", json_string(event));
	if (owned)
		json_object_update(line, owned);
	cleanup_free char *text = json_text(line, NULL);
	fprintf(stderr, "%s\n", text ? text : "{\"event\":\"failure\"}");
}

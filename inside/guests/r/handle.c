/* inside/guests/r/handle.c - objects that have no data form: functions, environments, connections.
 * The host gets an id for each, and the object stays while the session lives. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside/guests/r/turn.h"

enum { HANDLES_MAX = 16384, SLOTS = 2 * HANDLES_MAX };

static struct {
	SEXP object[HANDLES_MAX];
	int slot[SLOTS]; /* by address: the number of an object + 1; objects are never moved */
	int count;
	char mark[24]; /* of this process: an id from before a restart means nothing here */
} handles;

/* Where the object is, or belongs. */
static int *slot_of(SEXP v)
{
	size_t i = (size_t)((uintptr_t)v >> 4) % SLOTS;
	while (handles.slot[i] && handles.object[handles.slot[i] - 1] != v)
		i = (i + 1) % SLOTS;
	return &handles.slot[i];
}

static const char *hold(SEXP v)
{
	static char id[40];
	int *slot = slot_of(v);
	if (!*slot && handles.count == HANDLES_MAX)
		return NULL;
	if (!handles.mark[0])
		snprintf(handles.mark, sizeof(handles.mark), "%08x%08x",
			 (unsigned)template_random(), (unsigned)template_random());
	if (!*slot) {
		R_PreserveObject(v);
		handles.object[handles.count++] = v;
		*slot = handles.count;
	}
	snprintf(id, sizeof(id), "%s-%d", handles.mark, *slot);
	return id;
}

static SEXP held(const char *id)
{
	size_t n = strlen(handles.mark);
	if (!n || strncmp(id, handles.mark, n) != 0 || id[n] != '-')
		return NULL;
	long number = strtol(id + n + 1, NULL, 10);
	return number >= 1 && number <= handles.count ? handles.object[number - 1] : NULL;
}

void handle_init(void)
{
	encode_hold = hold;
	decode_held = held;
}

void handle_renew(void)
{
	for (int i = 0; i < handles.count; i++)
		R_ReleaseObject(handles.object[i]);
	if (handles.count)
		memset(&handles, 0, sizeof(handles));
}

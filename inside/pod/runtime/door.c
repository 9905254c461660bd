/* inside/pod/runtime/door.c - see door.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "inside/pod/runtime/door.h"

#include <sys/syscall.h>

#define DOOR(name, reason) DOOR_FN(name);
#include "inside/pod/runtime/door_list.h"
#undef DOOR
DOOR_FN(own_args_size);
DOOR_FN(own_args_copy);
DOOR_FN(own_signals);
DOOR_FN(own_program);
DOOR_FN(own_checkpoint);
DOOR_FN(own_release);
DOOR_FN(own_sigaction);
DOOR_FN(own_command);
DOOR_FN(own_take);

#define DOOR(name, reason) { SYS_##name, #name, door_##name, reason },
#define OWN(number, fn, reason)                                                                    \
	{                                                                                          \
		number, #fn, door_own_##fn, reason                                                 \
	}
const struct door_entry door_table[] = {
#include "inside/pod/runtime/door_list.h"
	OWN(DOOR_ARGS_SIZE, args_size, "the program's arguments and environment"),
	OWN(DOOR_ARGS_COPY, args_copy, "the program's arguments and environment"),
	OWN(DOOR_SIGNALS, signals, "where arrivals are noted"),
	OWN(DOOR_PROGRAM, program, "which of its names a program of many goes by"),
	OWN(DOOR_CHECKPOINT, checkpoint, "a started program as a snapshot"),
	OWN(DOOR_RELEASE, release, "pages given back"),
	OWN(DOOR_SIGACTION, sigaction, "default, ignore or catch"),
	OWN(DOOR_COMMAND, command, "the session's next command"),
	OWN(DOOR_TAKE, take, "a signal that was noted, for its handler"),
};
#undef DOOR
#undef OWN
const size_t door_count = sizeof door_table / sizeof *door_table;

#define NUMBERS 512
static const struct door_entry *by_number[NUMBERS];
static const struct door_entry *by_own[DOOR_OWN_END - DOOR_ARGS_SIZE];

void door_init(void)
{
	for (size_t i = 0; i < door_count; i++) {
		const struct door_entry *entry = &door_table[i];

		if (entry->number < NUMBERS)
			by_number[entry->number] = entry;
		else if (entry->number >= DOOR_ARGS_SIZE && entry->number < DOOR_OWN_END)
			by_own[entry->number - DOOR_ARGS_SIZE] = entry;
	}
}

const struct door_entry *door_find(uint64_t n)
{
	if (n < NUMBERS)
		return by_number[n];
	if (n >= DOOR_ARGS_SIZE && n < DOOR_OWN_END)
		return by_own[n - DOOR_ARGS_SIZE];
	return NULL;
}

uint64_t w2c_sys_call(struct w2c_sys *p, uint64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		      uint64_t e, uint64_t f)
{
	const struct door_entry *entry = door_find(n);
	const uint64_t args[6] = { a, b, c, d, e, f };

	if (!entry)
		return (uint64_t)-ENOSYS;
	return (uint64_t)entry->fn(p, args);
}

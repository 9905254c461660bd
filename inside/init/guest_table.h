/* inside/init/guest_table.h - the guests that pid 1 of a sandbox takes care of: one, or those of a
 * place. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "inside/init/plan.h"

/* What a guest left running still needs its listener answered, so its entry stays. */
enum { TABLE_SIZE = 4 * PLACE_GUESTS };

struct entry {
	bool is_used;
	struct job job;
	pid_t pid;      /* 0: has ended */
	int control;    /* its own socket to the host; -1: none */
	int report;     /* on which it will send its listener; -1: it has */
	int listener;   /* -1: none */
	unsigned dying; /* processes that were killed with it and may not have ended yet */
};

/* The first entry is the guest that the sandbox was started with. Those from guest_table_count on
 * were never used: pages that hold only them are not touched, because most sandboxes have one
 * guest. */
extern struct entry guest_table[TABLE_SIZE];
extern unsigned guest_table_count;

/* A free entry with no descriptors; NULL: there are as many guests as there may be. */
struct entry *guest_table_add(void);
struct entry *guest_table_find(pid_t pid);
/* The guest has ended: says so to the host, once all that was killed with it has ended too. */
void guest_table_settle(struct entry *e);
/* Ends a guest with what it started. If that cannot be done, all guests end. */
void guest_table_end(struct entry *e);
/* Somebody was reaped (0: look whether others have gone). */
void guest_table_forget(pid_t pid);
/* Whether guest_table_forget(0) should be called soon. */
bool guest_table_waits(void);

/* inside/pod/runtime/checkpoint.h - a started program, kept as a memory image that exec resumes. */
#pragma once

#include "inside/pod/runtime/process.h"

/* Starts Python in a child and keeps its state where it asks for a checkpoint; without one, exec
 * starts it from nothing. */
void checkpoint_make(struct w2c_sys *p);
/* Continues the snapshot of p->command's program where there is one that fits; else returns. */
void checkpoint_resume(struct w2c_sys *p);
/* At the end of a trial run of ours: the pages that it wrote are copied at once in later runs. */
__attribute__((noreturn)) void checkpoint_learn(void);

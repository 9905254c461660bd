/* inside/pod/runtime/checkpoint.h - a program that has started, kept as a memory image that exec
 * resumes. */
#pragma once

#include "inside/pod/runtime/process.h"

/* Starts Python in a child and saves its state where it asks for a checkpoint. Without one, exec
 * starts Python normally. */
void checkpoint_make(struct w2c_sys *p);
/* Resumes the checkpoint of p->command's program if there is one that fits; otherwise returns. */
void checkpoint_resume(struct w2c_sys *p);
/* Called at the end of a trial run: later runs copy at once the pages that this one wrote. */
__attribute__((noreturn)) void checkpoint_learn(void);

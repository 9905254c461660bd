/* guests/lib/pages.h - the memory of a template, made cheap to copy. */
#pragma once

/* Puts what can be into huge pages: a fork then copies one entry for 512 pages, and a session
 * splits only those that it writes to. Where the kernel has none, nothing changes. */
void pages_collapse(void);
/* Fills the holes of the heap: what a session allocates then lies side by side at its end, on few
 * pages, instead of on one page each. */
void pages_fill_holes(void);

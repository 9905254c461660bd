/* inside/lib/pages.h - makes the memory of a template cheap to fork. */
#pragma once

/* Moves memory into huge pages where possible: a fork then copies one entry for 512 pages, and a
 * session splits only those that it writes to. Without kernel support nothing changes. */
void pages_collapse(void);
/* Fills the holes of the heap: new objects of a session are then side by side at its end, on few
 * pages, instead of one on each shared page. */
void pages_fill_holes(void);
/* Moves the interpreter's memory into sealed files that are mapped privately at the same addresses.
 * A fork then copies only the page table entries that the template has touched since, and the end
 * of a session frees only what it has touched itself. Without support for such files nothing
 * changes. */
void pages_put_into_files(void);

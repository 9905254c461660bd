/* inside/lib/pages.h - the memory of a template, made cheap to copy. */
#pragma once

/* Puts what can be into huge pages: a fork then copies one entry for 512 pages, and a session
 * splits only those that it writes to. Where the kernel has none, nothing changes. */
void pages_collapse(void);
/* Fills the holes of the heap: what a session allocates then lies side by side at its end, on few
 * pages, instead of on one page each. */
void pages_fill_holes(void);
/* Moves the interpreter's memory into sealed files that are mapped privately where it was: a fork
 * then copies only the page table entries of what the template has touched since, and the end of a
 * session takes back only what it has touched itself. Where there are no such files, nothing
 * changes. */
void pages_put_into_files(void);

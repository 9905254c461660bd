/* wall/filter_nonotify.h - a filter for where nobody can listen to it: what would be told is
 * refused, and a program, which is only looked at, starts, and locks are taken. In cordon-init,
 * which loads it, and in the host, which says what was loaded. */
#pragma once

#include <stddef.h>

struct sock_filter;

enum { FILTER_NONOTIFY_MORE = 11 }; /* instructions that come on top */

/* `ret` has room for count + FILTER_NONOTIFY_MORE instructions; gives their number. */
size_t filter_nonotify_make(const struct sock_filter *from, size_t count, struct sock_filter *ret);

/* wall/linux/filter_nonotify.h - a filter for machines where it cannot have a listener. Calls that
 * would be reported are refused without a report. exec and file locks, which a listener only
 * watches, are allowed. cordon-init loads it; the host uses the same code to say what was loaded.
 */
#pragma once

#include <stddef.h>

struct sock_filter;

enum { FILTER_NONOTIFY_MORE = 11 }; /* instructions that are added */

/* `ret` has room for count + FILTER_NONOTIFY_MORE instructions. Returns their number. */
size_t filter_nonotify_make(const struct sock_filter *from, size_t count, struct sock_filter *ret);

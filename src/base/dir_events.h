/* base/dir_events.h - learns of changes in directories, as they happen: one implementation per
 * operating system, at present base/linux. A directory is watched without what is below it. */
#pragma once

#include <stdbool.h>

enum dir_event {
	DIR_EVENT_CREATED, /* or moved there, perhaps over another entry */
	DIR_EVENT_MODIFIED,
	DIR_EVENT_REMOVED, /* or moved away */
	DIR_EVENT_MOVED,   /* the directory itself, without a name */
	DIR_EVENT_GONE,    /* the directory is no longer watched, without a name */
	DIR_EVENT_LOST,    /* there were too many events; without a directory */
};

/* directory: what dir_events_add returned. */
typedef void (*dir_events_fn)(int directory, enum dir_event event, const char *name,
			      bool is_directory, void *arg);

/* A descriptor that is readable when there are events; close-on-exec, does not block. Or -errno. */
int dir_events_open(void);
/* The number of the directory, or -errno. Adding it again gives the same number. dir_fd is only
 * used during the call; O_PATH is enough. */
int dir_events_add(int fd, int dir_fd);
void dir_events_remove(int fd, int directory);
/* Calls fn for some of the events, in order, at most 512 of them with a name. 1; 0: there are none;
 * or -errno. */
int dir_events_read(int fd, dir_events_fn fn, void *arg);
